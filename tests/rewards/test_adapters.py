"""Each adapter, called as its trainer calls it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.worlds.engine_world import JUDGE, serve, small_benchmark

from snellen.errors import UsageError
from snellen.rewards import Scorer, easyr1, ms_swift, openrlhf, slime, trl, verl
from snellen.rewards.shapes import text_of

CHAT = [{"role": "assistant", "content": "A red bus under a tree."}]
PLAIN = "A red bus under a tree."


class World:
    """A scorer, an item's id, and the value that every adapter must give."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer, self.item = scorer, scorer.benchmark.items[0].id
        [score] = scorer.score_now([PLAIN], [self.item])
        assert score is not None
        self.value, self.names = score.value, {*score.parts, "tokens", "unscored"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = small_benchmark(tmp_path_factory.mktemp("benchmark"))
    with serve() as server:
        yield World(Scorer(str(folder), JUDGE, judge_url=server.url, unscored=0.0))


def test_trl(world: World) -> None:
    """The whole batch by keywords, chat messages or text; parts are logged as means."""
    logged: dict[str, float] = {}
    reward = trl.reward_function(world.scorer)
    assert asyncio.iscoroutinefunction(reward)
    found = asyncio.run(
        reward(
            prompts=["Describe."] * 2,
            completions=[CHAT, PLAIN],
            completion_ids=[[1], [2]],
            item_id=[world.item] * 2,
            trainer_state=None,
            log_extra=lambda *a: None,
            log_metric=logged.__setitem__,
        )
    )
    assert found == [world.value, world.value]
    assert {f"snellen/{name}" for name in ("coverage", "tokens", "unscored")} <= logged.keys()


def test_ms_swift(world: World) -> None:
    """A class for `orms`, in a new event loop each step."""

    class AsyncORM:
        pass

    reward = ms_swift.reward_class(world.scorer, base=AsyncORM)()
    assert isinstance(reward, AsyncORM)
    for _ in range(2):
        assert asyncio.run(reward([PLAIN], item_id=[world.item])) == [world.value]


@pytest.mark.parametrize("extra", [True, False])
def test_verl(world: World, extra: bool) -> None:
    """One sample a call; the same names for every sample, a blank reply included."""
    score = verl.compute_score(world.scorer)
    info, truth = ({"item_id": world.item}, "") if extra else ({}, world.item)

    async def batch() -> list[dict[str, float]]:
        calls = (score("snellen", text, truth, info, num_turns=1) for text in (PLAIN, ""))
        return await asyncio.gather(*calls)

    first, blank = asyncio.run(batch())
    assert first["score"] == world.value
    assert first.keys() == blank.keys() == {"score"} | world.names


def test_easyr1(world: World) -> None:
    score = easyr1.compute_score(world.scorer)
    sample = {"response": PLAIN, "response_length": 7, "ground_truth": world.item}
    [first, second] = score([sample, sample])
    assert first == second
    assert first["overall"] == world.value


def test_openrlhf_answers_plain_lists(world: World) -> None:
    """The reply is what follows the prompt in a query."""
    assert openrlhf.reply_of("Describe. " + PLAIN, "Describe. ") == PLAIN
    answer = openrlhf.answer_of(world.scorer.score_now([PLAIN], [world.item]))
    assert answer["rewards"] == answer["scores"] == [world.value]


@pytest.mark.parametrize("grouped", [True, False])
def test_slime(world: World, grouped: bool) -> None:
    rm = slime.custom_rm(world.scorer)
    sample = SimpleNamespace(prompt="Describe.", response=PLAIN, label=world.item)
    found = asyncio.run(rm(None, [sample, sample] if grouped else sample))
    assert found == ([world.value] * 2 if grouped else world.value)


@pytest.mark.parametrize(
    "adapt",
    [verl.compute_score, easyr1.compute_score, openrlhf.reward_func, slime.custom_rm],
    ids=["verl", "easyr1", "openrlhf", "slime"],
)
def test_trainers_that_take_no_none_want_a_stated_number(adapt, tmp_path: Path) -> None:
    """Nothing is guessed for a reply without a score."""
    scorer = Scorer("mini-reading", "embedded")
    with pytest.raises(UsageError, match="None"):
        adapt(scorer)


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("A cat.", "A cat."),
        (CHAT, PLAIN),
        ([{"role": "user", "content": "?"}, *CHAT], PLAIN),
        ([{"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}], "A cat."),
        ([{"role": "assistant", "content": None}], ""),
    ],
)
def test_completions_come_in_several_shapes(completion: object, text: str) -> None:
    assert text_of(completion) == text


@pytest.mark.parametrize("completion", [3, None, [], [7]])
def test_what_is_no_completion_is_refused(completion: object) -> None:
    with pytest.raises(UsageError):
        text_of(completion)
