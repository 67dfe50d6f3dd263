"""The rubrics pipeline from pictures to a benchmark: funnels, resume, review, evaluation."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.capprobe_world import Counted, some_pictures
from tests.worlds.rubrics_world import (
    AUTHORS,
    NAMES,
    PLAYERS,
    POOL,
    Messages,
    config,
    construct,
    judge,
)

import snellen
from snellen.builders.options import ExportOptions, ReviewOptions
from snellen.builders.reviewing import Decision
from snellen.builders.rubrics.options import CurateOptions, GoldenOptions, PoolOptions
from snellen.construction import review
from snellen.construction.build import BuildRequest
from snellen.construction.files import read_rejected, read_stage
from snellen.construction.forecast import forecast
from snellen.construction.rubrics.pipeline import RUBRICS
from snellen.construction.rubrics.statistics import rubric_counts
from snellen.errors import DataError, UsageError
from snellen.readers import check_benchmark


def rows_of(out: Path, name: str) -> tuple[Any, ...]:
    rows = read_stage(out, RUBRICS, RUBRICS.stages[RUBRICS.number(name) - 1])
    assert rows is not None
    return rows


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Counted, Any]:
    """One whole build of five bundled pictures; nobody may write to it."""
    folder = tmp_path_factory.mktemp("rubrics")
    counted = Counted(PLAYERS)
    source = some_pictures(folder / "in", *NAMES)
    built = construct(source, folder / "out", players=counted.players)
    return source, folder / "out", counted, built


World = tuple[Path, Path, Counted, Any]


def test_pictures_become_a_clean_benchmark_and_every_funnel_adds_up(world: World) -> None:
    """Each row that entered a stage is kept or rejected, and the next stage gets what was kept."""
    _, out, _, built = world
    assert built.exit_code == 0
    assert [row.stage for row in built.funnel] == [stage.name for stage in RUBRICS.stages]
    assert all(row.adds_up for row in built.funnel)
    for before, after in pairwise(built.funnel):
        assert (before.kept if before.made is None else before.made) == after.entered
    assert sum(row.rejected + row.dropped for row in built.funnel) == len(read_rejected(out))
    assert check_benchmark(str(out / "benchmark")) == []
    card = (out / "benchmark" / "card.md").read_text(encoding="utf-8")
    assert "pictures were discarded" in card


def test_calls_are_those_of_the_circle(world: World) -> None:
    """Six calls for a picture that is agreed on at once, twelve for one that never is."""
    _, _, counted, built = world
    golden = built.funnel[1]
    divided = golden.reasons["no_unanimity"]
    assert golden.calls == 6 * golden.kept + 12 * divided
    assert golden.kept > 0 < divided
    assert {counted.calls[one.__name__] for one in AUTHORS} == {golden.calls // 3}
    assert {counted.calls[one.__name__] for one in POOL} == {golden.kept}


def test_the_discard_report_names_exactly_the_divided(world: World) -> None:
    """By domain and by complexity, with every draft, vote and critique beside it."""
    _, out, _, built = world
    report = json.loads((out / "discards.json").read_text(encoding="utf-8"))
    assert report["whole"] == {"pictures": built.funnel[1].entered,
                               "discarded": built.funnel[1].rejected}  # fmt: skip
    for groups in (report["domains"], report["complexity"]):
        assert sum(one["discarded"] for one in groups.values()) == built.funnel[1].rejected
    assert report["complexity"]["high"]["discarded"] == built.funnel[1].rejected
    assert report["complexity_difference"] < 0
    reviews = lines_of(out / "peer_review.jsonl")
    assert len(reviews) == built.funnel[1].entered
    for one in reviews:
        assert len(one["rounds"]) == (1 if one["agreed"] is not None else 2)
        for each in one["rounds"]:
            assert len(each["candidates"]) == len(each["ballots"]) == 3
            assert all(len(ballot["critiques"]) == 3 for ballot in each["ballots"])


def test_rates_are_those_of_the_pool_and_the_judge_finds_the_same(world: World) -> None:
    """Two of four lie about the colour, two see a dragon; what nobody errs in is flagged."""
    _, out, _, built = world
    for row in rows_of(out, "trial"):
        if "dragon" in row.text:
            assert (row.wrong_in, row.failed_by) == (("dreamer", "fool"),) * 2
        elif "colour" in row.text:
            assert (row.wrong_in, row.failed_by) == (("liar", "fool"),) * 2
        else:
            assert row.flags[0] == "all_pass"
            continue
        assert row.error_rate == row.difficulty == 0.5
        assert row.discrimination is not None
    counts = built.funnel[5].counts
    assert counts["claimed errors"] == counts["claimed errors confirmed"] > 0


def test_what_the_golden_caption_does_not_say_is_rejected_with_its_reason(world: World) -> None:
    """A window that is in no caption fails the trial; a border beside the picture its check."""
    _, out, _, built = world
    n = built.funnel[2].kept
    reasons: dict[str, dict[str, int]] = {row.stage: row.reasons for row in built.funnel}
    assert reasons["ground"] == {"not_in_image": n}
    assert reasons["trial"] == {"fails_golden_caption": n}
    gone = [one for one in read_rejected(out) if one.stage == "trial"]
    assert {one.detail["text"] for one in gone} == {"The response must mention a window."}
    assert reasons["propose"] == {"rare_error": 2 * n, "other_form": n}


def test_the_benchmark_has_the_public_form_with_proposers(world: World, tmp_path: Path) -> None:
    """`snellen run` evaluates the folder: a golden caption scores one, a dragon shuts nothing."""
    _, out, _, _ = world
    folder = out / "benchmark"
    [first, *_] = rows = lines_of(folder / "rubrics.jsonl")
    assert set(first) == {"id", "image", "category", "golden_caption", "must_right", "easy_wrong"}
    statements = [one for row in rows for key in ("must_right", "easy_wrong") for one in row[key]]
    assert {one["proposer"] for one in statements} == {"proposer"}
    assert {tuple(one["jurors"]) for one in statements} == {("ann", "ben", "cat")}
    golden = {row["id"]: row["golden_caption"] for row in rows}
    perfect = snellen.run(str(folder), replies=golden, judge=judge, out=tmp_path / "a")
    assert perfect.summary.metrics["score"].value == 1.0
    dreams = {name: text + " There is a dragon." for name, text in golden.items()}
    worse = snellen.run(str(folder), replies=dreams, judge=judge, out=tmp_path / "b")
    assert worse.summary.metrics["gate_pass"].value == 1.0
    assert worse.summary.metrics["score"].value == pytest.approx(2 / 3)
    evidence = lines_of(folder / "evidence.jsonl")
    verdicts = {(name, probe) for name, _, probe in perfect.verdicts}
    assert {(one["id"], one["probe_id"]) for one in evidence} == verdicts


def test_statistics_are_those_of_the_folder_and_of_the_benchmark(world: World) -> None:
    """Words a caption, statements an image and domains, the same from both."""
    _, out, _, built = world
    built_in, stage = rubric_counts(out, RUBRICS)
    alone, where = rubric_counts(out / "benchmark", RUBRICS)
    assert (stage, where) == ("review", "benchmark")
    assert built_in == alone
    assert alone.rubrics == built.funnel[-1].kept
    assert alone.words_mean is not None


def test_a_second_start_asks_nobody_and_writes_the_same(tmp_path: Path) -> None:
    """What is done is not done again, and a new picture is all that is paid for."""
    source, out = some_pictures(tmp_path / "in", "cat.jpg", "coffee.jpg"), tmp_path / "out"
    construct(source, out)
    before = {path: path.read_bytes() for path in sorted((out / "stages").iterdir())}
    again = Counted(PLAYERS)
    construct(source, out, players=again.players)
    assert again.calls == {}
    assert {path: path.read_bytes() for path in sorted((out / "stages").iterdir())} == before
    some_pictures(source, "app.png")
    more = Counted(PLAYERS)
    construct(source, out, players=more.players)
    assert more.calls["scorer"] == 2


def test_people_delete_in_captions_and_statements_and_write_in_neither_caption(
    tmp_path: Path,
) -> None:
    """A shortened caption is proposed on anew; an edit that adds words is refused."""
    source, out = some_pictures(tmp_path / "in", "coffee.jpg"), tmp_path / "out"
    manual = config(golden=GoldenOptions(unanimity="first-round", manual=True),
                    curate=CurateOptions(min_pixels=1000, threshold=2))  # fmt: skip
    built = construct(source, out, config=manual)
    assert "1 golden captions wait" in built.waits
    [task] = [one.task for one in review.pending(out, "annotator")]
    text = task.shown["caption"]
    longer = {"caption": text + " It is lovely."}
    with pytest.raises(UsageError, match="adds or moves words"):
        review.decide(out, Decision(task.id, "annotator", "edit", after=longer))
    shorter = text.partition(" It has")[0]
    review.decide(
        out, Decision(task.id, "annotator", "edit", ("doubtful",), after={"caption": shorter})
    )
    built = construct(source, out, config=manual)
    assert built.waits == ""
    [row] = lines_of(out / "benchmark" / "rubrics.jsonl")
    assert row["golden_caption"] == shorter
    gone, changed, *_ = review.pending(out, "annotator")
    assert {one.task.kind for one in (gone, changed)} == {"rubric"}
    review.decide(out, Decision(gone.task.id, "annotator", "delete", ("essential",)))
    after = {"text": "The response must state that the light of it is dim."}
    review.decide(out, Decision(changed.task.id, "annotator", "edit", after=after))
    last = construct(source, out, config=manual).funnel[-1]
    assert last.kept == built.funnel[-1].kept - 1
    [row] = lines_of(out / "benchmark" / "rubrics.jsonl")
    texts = [one["text"] for one in (*row["must_right"], *row["easy_wrong"])]
    assert after["text"] in texts
    assert gone.task.shown["text"] not in texts
    reviewed = config(golden=manual.options[GoldenOptions], curate=manual.options[CurateOptions],
                      review=ReviewOptions(reviewed_only=True))  # fmt: skip
    review.decide(out, Decision(changed.task.id, "adjudicator", "accept"))
    assert construct(source, out, config=reviewed).funnel[-1].kept <= 1


def test_a_pool_is_taken_from_replies_that_exist(tmp_path: Path) -> None:
    """Names of pictures find their replies; nobody of the pool is asked."""
    source, out = some_pictures(tmp_path / "in", "coffee.jpg"), tmp_path / "out"
    for model, text in (("one", "A dragon."), ("two", "A cup.")):
        row = json.dumps({"id": "coffee", "reply": text})
        (tmp_path / f"{model}.jsonl").write_text(row + "\n", encoding="utf-8")
    runs = tuple(str(tmp_path / f"{model}.jsonl") for model in ("one", "two"))
    words = {"config": config(pool=PoolOptions(size=2, runs=runs),
                              curate=CurateOptions(min_pixels=1000, threshold=2)),
             "players": {k: v for k, v in PLAYERS.items() if k != "pool"}}  # fmt: skip
    built = construct(source, out, until="trial", **words)
    assert built.funnel[2].calls == 0
    [row] = [one for one in rows_of(out, "trial") if "dragon" in one.text]
    assert (row.wrong_in, row.error_rate) == (("one",), 0.5)


def test_roles_and_sizes_are_checked_before_any_call(tmp_path: Path) -> None:
    """Two authors are no circle, and a pool has the size that was set."""
    source = some_pictures(tmp_path / "in", "cat.jpg")
    counted = Counted({**PLAYERS, "author": AUTHORS[:2]})
    with pytest.raises(UsageError, match="at least 3 authors, found 2"):
        construct(source, tmp_path / "out", players=counted.players)
    with pytest.raises(UsageError, match=r"4 models .* size is 8"):
        construct(source, tmp_path / "out", config=config(pool=PoolOptions()))
    twins = PoolOptions(size=6, runs=("runs/a", "old/a"))
    with pytest.raises(UsageError, match="two predictors of the pool are called a"):
        construct(source, tmp_path / "out", config=config(pool=twins))
    with pytest.raises(UsageError, match="parquet is for benchmarks of regions"):
        construct(source, tmp_path / "out", config=config(export=ExportOptions(parquet=True)))
    assert counted.calls == {}


def test_folders_give_domains_and_a_picture_outside_of_them_is_named(tmp_path: Path) -> None:
    """The scorer is asked once a picture, and not about its domain."""
    source = some_pictures(tmp_path / "in" / "GUI", "app.png").parent
    some_pictures(source / "other", "cat.jpg")
    counted = Counted(PLAYERS)
    by_folder = config(curate=CurateOptions(domain="folder", threshold=2))
    built = construct(
        source, tmp_path / "out", until="curate", config=by_folder, players=counted.players
    )
    assert [row.domain for row in rows_of(tmp_path / "out", "curate")] == ["Digital UI/UX"]
    assert built.funnel[0].reasons == {"no_domain": 1}
    assert counted.calls == {"scorer": 1}


@pytest.mark.slow
def test_a_failed_call_is_counted_and_only_it_is_repeated(tmp_path: Path) -> None:
    """The picture is missing once; the next start asks the proposer, and whoever comes after."""
    source, out = some_pictures(tmp_path / "in", "coffee.jpg"), tmp_path / "out"

    def broken(_: Messages) -> str:
        raise ValueError("no memory")

    broken.__name__ = "proposer"
    first = construct(source, out, players={**PLAYERS, "proposer": broken})
    assert first.exit_code != 0
    again = Counted(PLAYERS)
    second = construct(source, out, players=again.players)
    assert second.exit_code == 0
    assert set(again.calls) == {"proposer", "grounder", "judge"}
    assert again.calls["proposer"] == 2
    assert second.funnel[-1].kept > 0


def test_a_folder_without_statements_has_no_statistics(tmp_path: Path) -> None:
    """Before anything was proposed the error says to go on building."""
    source = some_pictures(tmp_path / "in", "cat.jpg")
    construct(source, tmp_path / "out", until="curate")
    with pytest.raises(DataError, match="no stage has written statements"):
        rubric_counts(tmp_path / "out", RUBRICS)


def test_a_dry_run_counts_calls_by_role(tmp_path: Path) -> None:
    """Two questions a picture for the scorer; later stages are estimated; nothing is sent."""
    source = some_pictures(tmp_path / "in", *NAMES)
    counted = Counted(PLAYERS)
    request = BuildRequest(RUBRICS, str(source), tmp_path / "out", config(), counted.players)
    found = {one.stage: one for one in forecast(request)}
    assert (found["curate"].calls, found["curate"].is_counted) == (10, True)
    assert found["golden"].calls == 12 * 3
    assert all(found[name].calls > 0 for name in ("pool", "propose", "ground", "trial"))
    assert counted.calls == {}
