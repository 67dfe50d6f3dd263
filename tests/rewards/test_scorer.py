"""Scores for training: those of an evaluation, reply by reply."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.fakes.server import Body, error_response
from tests.worlds.engine_world import JUDGE, answer, chats, serve, small_benchmark

import snellen
from snellen.errors import EndpointError, UsageError
from snellen.rewards import Scorer

CAPTIONS = ("A red bus stands under a tall tree.", "A cat.", "", "A wall, a wall and a wall.")


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pictures with forty questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"))


def scorer_at(url: str, benchmark: Path, **more: object) -> Scorer:
    return Scorer(str(benchmark), JUDGE, judge_url=url, **more)  # type: ignore[arg-type]


def test_scores_are_those_of_an_evaluation(benchmark: Path, tmp_path: Path) -> None:
    """Every part of every reply equals the metric of a run on that item alone."""
    with serve() as server:
        scorer = scorer_at(server.url, benchmark)
        names = [item.id for item in scorer.benchmark.items][: len(CAPTIONS)]
        scores = scorer.score_now(CAPTIONS, names)
        for k, (name, caption, score) in enumerate(zip(names, CAPTIONS, scores, strict=True)):
            run = snellen.score_captions(
                {name: caption}, benchmark=str(benchmark), judge=JUDGE, judge_url=server.url,
                out=tmp_path / str(k),
            )  # fmt: skip
            assert score is not None
            alone = [p for p in run.samples() if p.id == name]
            right = sum(p.correct is True for p in alone)
            assert score.value == pytest.approx(right / len(alone))
            assert score.n == len(alone)
            assert score.tokens == run.replies[name, 0].tokens


def test_equal_replies_are_judged_once_and_calls_are_micro_batched(benchmark: Path) -> None:
    """A group of sixteen with two different replies costs the calls of two."""
    with serve() as server:
        scorer = scorer_at(server.url, benchmark)
        item = scorer.benchmark.items[0]
        group = ["A bus.", "A tree."] * 8

        async def one_by_one() -> list[float]:
            found = await asyncio.gather(*(scorer.score([r], [item.id]) for r in group))
            return [float(one[0]) for one in found if one[0] is not None]

        values = asyncio.run(one_by_one())
        assert len(values) == 16
        assert len(set(values[::2])) == len(set(values[1::2])) == 1
        assert len(chats(server)) == 2 * len(item.probes)
        asyncio.run(scorer.score(group, [item.id] * 16))
        assert len(chats(server)) == 2 * len(item.probes)


def test_a_journal_spares_the_next_process_every_call(benchmark: Path, tmp_path: Path) -> None:
    """What was judged is not paid for again; another judge or rank has a folder of its own."""
    with serve() as server:
        for _ in range(2):
            scorer = scorer_at(server.url, benchmark, out=tmp_path)
            names = [item.id for item in scorer.benchmark.items]
            first = scorer.score_now(["A bus under a tree."] * len(names), names)
            scorer.close()
            n = len(chats(server))
        assert n == sum(score.n for score in first if score is not None)
        assert len(list(tmp_path.glob("*/rank-0/calls.jsonl"))) == 1
        other = scorer_at(server.url, benchmark, out=tmp_path, judge_temperature=0.7)
        other.score_now(["A bus."], names[:1])
        other.close()
        assert len(list(tmp_path.glob("*/rank-0/calls.jsonl"))) == 2


@pytest.mark.parametrize(("stated", "expected"), [(None, None), (-1.0, -1.0)])
def test_a_reply_without_a_score_is_none_or_the_stated_number(
    benchmark: Path, stated: float | None, expected: float | None
) -> None:
    """A judge that gives no letter makes no zero."""
    with serve(lambda body: "I would rather not say.") as server:
        scorer = scorer_at(server.url, benchmark, unscored=stated, reasks=0)
        [score] = scorer.score_now(["A bus."], [scorer.benchmark.items[0].id])
    assert (None if score is None else score.value) == expected
    assert score is None or not score.is_scored


def test_a_judge_that_is_away_raises_and_costs_nothing_that_was_done(
    benchmark: Path, tmp_path: Path
) -> None:
    """An exception never becomes a zero; the same call then goes on from the journal."""
    broken = False

    def script(body: Body) -> object:
        return error_response(401, "no such key") if broken else answer(body)

    with serve(script) as server:
        scorer = scorer_at(server.url, benchmark, out=tmp_path)
        a, b = (item.id for item in scorer.benchmark.items[:2])
        scorer.score_now(["A bus."], [a])
        n = len(chats(server))
        broken = True
        with pytest.raises(EndpointError, match="key"):
            scorer.score_now(["A bus.", "A tree."], [a, b])
        broken = False
        found = scorer.score_now(["A bus.", "A tree."], [a, b])
        assert None not in found
        judged = [body for body in chats(server)[n:] if "A bus." in str(body)]
        assert not judged


def test_length_is_a_weight(benchmark: Path) -> None:
    """A thousand tokens cost the weight, and the part says so."""
    with serve() as server:
        plain = scorer_at(server.url, benchmark)
        names = [plain.benchmark.items[0].id]
        [without] = plain.score_now(["A bus. " * 50], names)
        [score] = scorer_at(server.url, benchmark, length_weight=0.5).score_now(
            ["A bus. " * 50], names
        )
    assert score is not None
    assert without is not None
    assert score.parts["length_penalty"] == pytest.approx(0.5 * score.tokens / 1000)
    assert score.value == pytest.approx(without.value - 0.5 * score.tokens / 1000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"metric": "overal_acc"}, "overall_acc"),
        ({"repeat": 2}, "repeat"),
        ({"concurency": 2}, "concurrency"),
    ],
)
def test_wrong_arguments_are_named(benchmark: Path, words: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Scorer(str(benchmark), "embedded", **words)  # type: ignore[arg-type]
    assert said in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("replies", "names"),
    [(["a"], []), (["a"], ["nobody"]), ([None], ["{item}"]), ([3], ["{item}"])],
)
def test_wrong_calls_are_refused(benchmark: Path, replies: list[str], names: list[str]) -> None:
    scorer = Scorer(str(benchmark), "embedded")
    item = scorer.benchmark.items[0].id
    with pytest.raises(UsageError):
        scorer.score_now(replies, [name.format(item=item) for name in names])


def test_a_running_loop_is_no_hindrance(benchmark: Path) -> None:
    """In a notebook, or in a trainer's loop, the plain call works too."""
    with serve() as server:
        scorer = scorer_at(server.url, benchmark)

        async def inside() -> object:
            return scorer.score_now(["A bus."], [scorer.benchmark.items[0].id])

        assert asyncio.run(inside())


def test_the_messages_are_those_of_an_evaluation(benchmark: Path, tmp_path: Path) -> None:
    """A trainer shows its model what a run would show it."""
    with serve() as server:
        scorer = scorer_at(server.url, benchmark)
        item = scorer.benchmark.items[0].id
        snellen.run(
            str(benchmark), model="eye", api_url=server.url, judge=JUDGE, judge_url=server.url,
            out=tmp_path / "run", limit=1,
        )  # fmt: skip
        sent = chats(server, "model")[0]["messages"]
    assert scorer.messages(item) == sent
