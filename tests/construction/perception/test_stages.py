"""The perception pipeline from result files to a benchmark: funnels, resume, review, evaluation."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.perception_world import (
    PLAYERS,
    SOLVERS,
    SPARE,
    Counted,
    config,
    construct,
    judge,
    results,
    small_pictures,
)

import snellen
from snellen.builders.options import ExportOptions, ReviewOptions
from snellen.builders.perception.options import (
    CollectOptions,
    InduceOptions,
    PanelOptions,
    PerceptionOptions,
    SampleOptions,
    WriteOptions,
)
from snellen.builders.reviewing import Decision
from snellen.construction import review
from snellen.construction.build import BuildRequest, Built
from snellen.construction.files import read_rejected, read_stage
from snellen.construction.forecast import forecast
from snellen.construction.perception.pipeline import PERCEPTION
from snellen.construction.perception.statistics import perception_counts
from snellen.errors import DataError, UsageError
from snellen.readers import check_benchmark, load_benchmark

TWO = ("cat.jpg", "app.png")
FOREIGN = Path(__file__).parents[2] / "data" / "foreign"


def rows_of(out: Path, name: str) -> tuple[Any, ...]:
    rows = read_stage(out, PERCEPTION, PERCEPTION.stages[PERCEPTION.number(name) - 1])
    assert rows is not None
    return rows


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reasons(out: Path, stage: str) -> dict[str, str]:
    return {one.id: one.reason for one in read_rejected(out) if one.stage == stage}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Counted, Built]:
    """One whole build from results on three bundled pictures; nobody may write to it."""
    folder = tmp_path_factory.mktemp("perception")
    counted = Counted(PLAYERS)
    source = results(folder / "in")
    spare = small_pictures(folder / "spare", *SPARE)
    built = construct(
        source, folder / "out", players=counted.players,
        config=config(write=WriteOptions(pictures=str(spare), quota=1)),
    )  # fmt: skip
    return source, folder / "out", counted, built


World = tuple[Path, Path, Counted, Built]


def test_failures_become_a_clean_benchmark_and_every_funnel_adds_up(world: World) -> None:
    """Each row that entered a stage is kept or rejected, and the next stage gets what was kept."""
    _, out, _, built = world
    assert (built.exit_code, built.error) == (0, None)
    assert [row.stage for row in built.funnel] == [stage.name for stage in PERCEPTION.stages]
    assert all(row.adds_up for row in built.funnel)
    by_name = {row.stage: row for row in built.funnel}
    for before, after in pairwise(("collect", "induce", "attribute", "map", "decompose")):
        handed = by_name[before].made if before == "collect" else by_name[before].kept
        assert handed == by_name[after].entered
    for before, after in pairwise(("write", "verify", "review", "export")):
        row = by_name[before]
        assert (row.kept if row.made is None else row.made) == by_name[after].entered
    assert sum(row.rejected + row.dropped for row in built.funnel) == len(read_rejected(out))
    assert check_benchmark(str(out / "benchmark")) == []


def test_the_benchmark_has_the_public_form(world: World) -> None:
    """Decomposed questions name their source, new ones name none; evidence stands beside them."""
    _, out, _, _ = world
    rows = lines_of(out / "benchmark" / "questions.jsonl")
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert {tuple(row) for row in rows} == {
        ("index", "problem", "image", "answer", "hint", "error_category", "source_bmk",
         "source_idx"),
    }  # fmt: skip
    new = [row for row in rows if row["source_bmk"] == "NA"]
    old = [row for row in rows if row["source_bmk"] != "NA"]
    assert new
    assert old
    assert all(row["source_idx"] is None for row in new)
    assert {row["source_bmk"] for row in old} <= {"palette", "frames"}
    assert all(isinstance(row["source_idx"], int) for row in old)
    assert all("<|image_1|>" in row["problem"] for row in rows)
    evidence = lines_of(out / "benchmark" / "evidence.jsonl")
    assert [one["index"] for one in evidence] == [row["index"] for row in rows]
    assert all(one["right"] >= 1 and one["right_blind"] == 0 for one in evidence)
    card = (out / "benchmark" / "card.md").read_text(encoding="utf-8")
    assert "ann and bob name the same type for" in card


def test_only_wrong_replies_are_attributed(world: World) -> None:
    """Two models, two benchmarks: all but the first sample of each; pictures lie in the folder."""
    _, out, counted, built = world
    assert built.funnel[0].counts["right"] == 4
    failures = rows_of(out, "collect")
    assert len(failures) == built.funnel[0].counts["wrong"] == 14
    assert all(Path(row.files[0].path).is_relative_to(out) for row in failures)
    assert {(row.model, row.source_bmk) for row in failures} == {
        (model, bmk) for model in ("seer", "mole") for bmk in ("palette", "frames")
    }  # fmt: skip
    assert counted.calls["ann"] == counted.calls["bob"] == 14


def test_the_arbiter_is_asked_where_attributors_differ(world: World) -> None:
    """They differ on shapes alone; the report says on how many."""
    _, out, counted, _ = world
    rows = rows_of(out, "attribute")
    differing = [row for row in rows if len({one.type for one in row.attributions}) > 1]
    assert len(differing) == counted.calls["arbiter"] == 4
    assert all(row.decided_by == "arbiter" for row in differing)
    report = json.loads((out / "agreement.json").read_text(encoding="utf-8"))
    assert report["pairs"][0]["types"] == pytest.approx(10 / 14)
    assert report["pairs"][0]["branch"] == 1.0


def test_what_is_beyond_perception_is_mapped_and_not_decomposed(world: World) -> None:
    """The map has all types; questions are made of perceptual failures alone."""
    _, out, _, _ = world
    found = json.loads((out / "map.json").read_text(encoding="utf-8"))
    by_name = {one["name"]: one for one in found["benchmarks"]}
    assert by_name["frames"]["types"] == {"reasoning": 6, "visual_comparison_error": 4}
    assert by_name["palette"]["leading"] == [["visual_attribute_error", 1.0]]
    assert found["perceptual"]["mean"] == 0.0
    beyond = [k for k, why in reasons(out, "decompose").items() if why == "beyond_perception"]
    assert len(beyond) == 6


def test_the_panel_finds_what_breaks_a_rule(world: World) -> None:
    """A question without need of the picture goes; a wrong reference waits for people."""
    _, out, _, _ = world
    dropped = [one for one in read_rejected(out) if one.stage == "verify"]
    assert {one.reason for one in dropped} == {"answerable_blind"}
    assert all(one.detail["answer"] == "yes" for one in dropped)
    doubtful = [row for row in rows_of(out, "verify") if row.flags]
    assert {row.answer for row in doubtful} == {"octarine"}
    assert {flag for row in doubtful for flag in row.flags} == {"unconfirmed", "disputed"}
    assert all(row.stratum == "hard" for row in doubtful)
    assert set(reasons(out, "review").values()) == {"unconfirmed_by_people"}


def test_a_writer_may_decline(world: World) -> None:
    """No question for hallucinations; one quota each for the nine other capabilities."""
    _, out, _, built = world
    assert built.funnel[5].reasons == {"unsuited": 2}
    new = {row.error_category for row in rows_of(out, "write") if row.origin == "new"}
    assert len(new) == 9


@pytest.mark.slow
def test_the_benchmark_can_be_run(world: World, tmp_path: Path) -> None:
    """A solver of the panel gets what it got before."""
    _, out, _, _ = world

    def sees(messages: Any) -> str:
        return SOLVERS[0](messages)

    run = snellen.run(str(out / "benchmark"), model=sees, judge=judge, out=tmp_path / "run")
    assert run.summary is not None
    assert run.summary.metrics["accuracy"].value == 1.0


@pytest.mark.slow
def test_nothing_is_asked_twice(world: World) -> None:
    """A second start, and another rule of the panel, make no call."""
    source, out, _, built = world
    again = Counted(PLAYERS)
    spare = str(source.parent / "spare")
    words = {"players": again.players, "until": "verify"}
    write = WriteOptions(pictures=spare, quota=1)
    same = construct(source, out, config=config(write=write), **words)
    assert [row.kept for row in same.funnel] == [row.kept for row in built.funnel]
    strict = construct(
        source, out, config=config(write=write, panel=PanelOptions(agree=1.0, steady=0.9)), **words
    )
    assert again.calls == {}
    assert strict.exit_code == 0
    construct(source, out, config=config(write=write), players=again.players)
    assert again.calls == {}


@pytest.mark.slow
def test_people_decide_on_doubtful_and_other_questions(tmp_path: Path) -> None:
    """An accepted doubtful one is in, an edited one has the new answer, a deleted one is out."""
    source, out = results(tmp_path / "in", "seer", names=TWO), tmp_path / "out"
    construct(source, out)
    tasks = {one.task.shown["answer"]: one.task for one in review.pending(out, "annotator")}
    review.decide(out, Decision(tasks["octarine"].id, "annotator", "edit",
                                after={"answer": "grey"}))  # fmt: skip
    other = next(task for answer, task in tasks.items() if answer != "octarine")
    review.decide(out, Decision(other.id, "annotator", "delete", ("form",)))
    built = construct(source, out)
    rows = lines_of(out / "benchmark" / "questions.jsonl")
    assert [row["answer"] for row in rows] == ["grey"]
    assert built.funnel[-2].reasons["deleted_by_people"] == 1
    [evidence] = lines_of(out / "benchmark" / "evidence.jsonl")
    assert evidence["confirmed_by"] == "people"


@pytest.mark.slow
def test_an_edit_must_leave_a_question(tmp_path: Path) -> None:
    """It is refused when it is made; the message names the question and what is wrong."""
    source, out = results(tmp_path / "in", "seer", names=TWO), tmp_path / "out"
    construct(source, out)
    [task, *_] = [one.task for one in review.pending(out, "annotator")]
    with pytest.raises(DataError, match=r"leaves no question: .*there are 1"):
        review.decide(
            out, Decision(task.id, "annotator", "edit", after={"problem": "<|image_4|>?"})
        )
    with pytest.raises(DataError, match="changes `reference`"):
        review.decide(out, Decision(task.id, "annotator", "edit", after={"reference": "x"}))
    assert review.read_decisions(out) == []


def test_people_settle_what_attributors_differ_on(tmp_path: Path) -> None:
    """The build waits, then takes the type that they name."""
    source, out = results(tmp_path / "in", "seer", names=TWO), tmp_path / "out"
    words = {"config": config(perception=PerceptionOptions(disagreement="people"))}
    built = construct(source, out, **words)
    assert "1 attributions wait" in built.waits
    assert [row.stage for row in built.funnel] == ["collect", "induce", "attribute"]
    assert built.funnel[-1].reasons == {"undecided": 1}
    [one] = review.pending(out, "annotator")
    assert one.task.kind == "attribution"
    with pytest.raises(DataError, match="names no type"):
        review.decide(out, Decision(one.task.id, "annotator", "edit", after={"type": "ocr"}))
    review.decide(out, Decision(one.task.id, "annotator", "edit", after={"type": "ocr_error"}))
    counted = Counted(PLAYERS)
    built = construct(source, out, players=counted.players, **words)
    assert (built.waits, built.exit_code) == ("", 0)
    assert "ann" not in counted.calls
    settled = [row for row in rows_of(out, "attribute") if row.decided_by == "people"]
    assert [row.type for row in settled] == ["ocr_error"]


def test_bad_rows_and_lost_pictures_are_named(tmp_path: Path) -> None:
    """The others go on; when the picture is there, it is read without being asked for."""
    source, out = results(tmp_path / "in", "seer"), tmp_path / "out"
    path = source / "reviews" / "seer" / "palette_test.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n", encoding="utf-8")
    picture = source / "pictures" / "app.png"
    picture.rename(source / "hidden.bin")
    built = construct(source, out, until="collect")
    found = [one for one in read_rejected(out) if one.stage == "collect"]
    bad = next(one for one in found if one.reason == "bad_row")
    assert "palette_test.jsonl, row 2" in bad.detail["error"]
    lost = [one for one in found if one.reason == "no_picture"]
    assert len(lost) == 3
    assert lost[0].detail["row"] > 1
    assert built.funnel[0].adds_up
    (source / "hidden.bin").rename(picture)
    built = construct(source, out, until="collect")
    assert built.funnel[0].reasons == {"bad_row": 1}


def test_limits_of_what_is_collected(tmp_path: Path) -> None:
    """At most so many a benchmark, by a draw; then the first N."""
    source = results(tmp_path / "in", "seer")
    capped = construct(
        source,
        tmp_path / "a",
        until="collect",
        config=config(collect=CollectOptions(per_benchmark=1)),
    )
    assert (capped.funnel[0].made, capped.funnel[0].reasons) == (2, {"over_benchmark_cap": 5})
    limited = construct(source, tmp_path / "b", until="collect", limit=3)
    assert (limited.funnel[0].made, limited.funnel[0].reasons) == (3, {"over_limit": 4})


@pytest.mark.slow
def test_a_taxonomy_is_induced_and_people_edit_it(tmp_path: Path) -> None:
    """Descriptions are clustered and named; a renamed type is what failures are attributed to."""
    source, out = results(tmp_path / "in", "seer"), tmp_path / "out"
    options = InduceOptions(taxonomy="induced", least=2, similarity=0.85, manual=True)
    counted = Counted(PLAYERS)
    built = construct(source, out, config=config(induce=options), players=counted.players)
    assert "taxonomy.json" in built.waits
    induced = json.loads((out / "taxonomy.json").read_text(encoding="utf-8"))
    names = {one["name"] for one in induced}
    assert {"unseen_colour_error", "unseen_shape_error"} <= names
    assert {"reasoning", "ambiguous"} <= names
    assert (counted.calls["ann"], "bob" in counted.calls) == (7, False)
    assert sum(one["n"] for one in induced) == 7
    for one in induced:
        if one["name"] == "unseen_colour_error":
            one["new_name"] = "visual_attribute_error"
        if one["name"] == "unseen_shape_error":
            one["new_name"] = "visual_comparison_error"
    (out / "taxonomy.json").write_text(json.dumps(induced), encoding="utf-8")
    before = dict(counted.calls)
    edited = construct(
        source, out, config=config(induce=options), players=counted.players, until="induce"
    )
    assert (edited.waits, counted.calls) == ("", before)
    types = {one.id: one for one in rows_of(out, "induce")}
    assert {"visual_attribute_error", "visual_comparison_error"} <= set(types)
    assert types["visual_attribute_error"].definition == "The colour is not seen."
    assert types["visual_attribute_error"].nearest
    clusters = json.loads((out / "clusters.json").read_text(encoding="utf-8"))
    assert sum(len(one["failures"]) for one in clusters) == 7


def test_a_taxonomy_of_ones_own(tmp_path: Path) -> None:
    """A file of types; a label of one's own is what questions carry."""
    types = [{"name": name, "definition": f"About {name}.", "is_perceptual": True}
             for name in ("visual_attribute_error", "visual_comparison_error",
                          "visual_relation_error", "tone_error")]  # fmt: skip
    types.append({"name": "reasoning", "definition": "Wrong thought.", "is_perceptual": False})
    path = tmp_path / "types.json"
    path.write_text(json.dumps(types), encoding="utf-8")
    source, out = results(tmp_path / "in", "seer", names=TWO), tmp_path / "out"
    built = construct(source, out, config=config(induce=InduceOptions(taxonomy=str(path))))
    assert built.exit_code == 0
    assert [one.id for one in rows_of(out, "induce")] == [one["name"] for one in types]
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="no perceptual type"):
        construct(source, tmp_path / "b", config=config(induce=InduceOptions(taxonomy=str(path))))


@pytest.mark.slow
def test_an_index_outlives_further_questions(tmp_path: Path) -> None:
    """With more failures the questions of before keep their places."""
    source, out = (
        results(tmp_path / "in", "seer", names=("cat.jpg", "coffee.jpg")),
        tmp_path / "out",
    )
    construct(source, out)

    def indices() -> dict[str, int]:
        rows = lines_of(out / "benchmark" / "evidence.jsonl")
        return {row["question"]: row["index"] for row in rows}

    before = indices()
    results(tmp_path / "in", "ant", "seer", names=("app.png", "cat.jpg", "coffee.jpg"))
    construct(source, out)
    after = indices()
    kept = before.keys() & after.keys()
    assert all(after[name] == before[name] for name in kept)
    assert len(set(after.values())) == len(after) > len(kept)


@pytest.mark.slow
def test_a_sample_of_a_size(tmp_path: Path) -> None:
    """The export draws; what is not drawn is named."""
    source, out = results(tmp_path / "in", "seer"), tmp_path / "out"
    built = construct(source, out, config=config(sample=SampleOptions(size=1)))
    assert built.funnel[-1].kept == 1
    assert set(reasons(out, "export").values()) == {"not_drawn"}
    assert len(load_benchmark(str(out / "benchmark")).items) == 1


@pytest.mark.parametrize(
    ("players", "options", "message"),
    [
        ({"attributor": PLAYERS["attributor"][:1]}, {}, "attributors is 2, and 1 models"),
        ({"solver": SOLVERS[:2]}, {}, "at least 3 solvers, found 2"),
        ({"arbiter": ()}, {}, "needs the role `arbiter`"),
        ({"writer": ()}, {"write": WriteOptions(pictures="p")}, "needs the role `writer`"),
        ({}, {"export": ExportOptions(parquet=True)}, "parquet is for benchmarks of regions"),
    ],
)
def test_what_is_missing_is_said_before_any_call(
    tmp_path: Path, players: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    """Role and stage stand in the message."""
    counted = Counted({**PLAYERS, **players})
    with pytest.raises(UsageError, match=message):
        construct(results(tmp_path / "in", "seer", names=TWO), tmp_path / "out",
                  players=counted.players, config=config(**options))  # fmt: skip
    assert counted.calls == {}


def test_a_dry_run_counts_what_is_known_and_writes_nothing(tmp_path: Path) -> None:
    """Failures are counted from the files once they are collected; later stages are estimated."""
    source, out = results(tmp_path / "in", "seer"), tmp_path / "out"
    words: dict[str, Any] = {"config": config(), "players": PLAYERS}
    first = forecast(BuildRequest(PERCEPTION, str(source), out, **words))
    assert not out.exists()
    assert {one.role for one in first} == {
        "", "attributor", "arbiter", "decomposer", "solver", "judge",
    }  # fmt: skip
    construct(source, out, until="attribute")
    later = {
        one.stage: one for one in forecast(BuildRequest(PERCEPTION, str(source), out, **words))
    }
    assert (later["attribute"].inputs, later["attribute"].done) == (7, 7)
    assert later["decompose"].is_counted


def test_statistics_of_a_build_and_of_its_benchmark(world: World) -> None:
    """The folder and the benchmark in it hold the same."""
    _, out, _, _ = world
    counts, stage = perception_counts(out, PERCEPTION)
    assert stage == "export"
    assert perception_counts(out / "benchmark", PERCEPTION)[0] == counts
    assert counts.questions == counts.decomposed + counts.new == sum(counts.strata.values())
    assert next(iter(counts.capabilities)) == "visual_relation_error"


@pytest.mark.slow
def test_reviewed_only_leaves_undecided_questions_out(tmp_path: Path) -> None:
    """Without a decision there is no benchmark."""
    source, out = results(tmp_path / "in", "seer", names=TWO), tmp_path / "out"
    built = construct(source, out, config=config(review=ReviewOptions(reviewed_only=True)))
    assert built.funnel[-1].entered == 0
    assert not (out / "benchmark").exists()


def test_failures_of_four_tools_are_collected_with_their_pictures(tmp_path: Path) -> None:
    """Result files that the tools themselves wrote; the same log in two forms counts once."""
    folders = tuple(str(FOREIGN / one) for one in ("evalscope", "vlmevalkit", "lmms_eval/pictures"))
    collect = CollectOptions(pictures=folders)
    built = construct(FOREIGN, tmp_path / "out", until="collect", config=config(collect=collect))
    [row] = built.funnel
    assert (row.entered, row.counts["wrong"], row.counts["right"]) == (6, 10, 6)
    # A question without a picture fails too, and is none of ours.
    assert row.reasons == {"no_picture": 2, "duplicate": 1}
    failures = rows_of(tmp_path / "out", "collect")
    assert {Path(one.file).parent.name for one in failures} == {"seer-1", "inspect"}
    assert {one.source_bmk for one in failures} == {"general_vmcq", "colours", "colours-choice"}
    assert sum(len(one.files) for one in failures) == len(failures) + 1
    assert all(Path(file.path).read_bytes()[:4] == b"\x89PNG" for o in failures for file in o.files)
    bare = construct(FOREIGN, tmp_path / "bare", until="collect")
    assert bare.funnel[0].reasons["no_picture"] > 2


@pytest.mark.slow
def test_runs_of_ours_are_a_source(world: World, tmp_path: Path) -> None:
    """Failures of a run on a built benchmark name the benchmark that their questions came from."""
    _, out, _, _ = world
    run = tmp_path / "run"
    snellen.run(str(out / "benchmark"), model=lambda _: "octarine", judge=judge, out=run)
    built = construct(run, tmp_path / "again", until="collect")
    n = len(lines_of(out / "benchmark" / "questions.jsonl"))
    assert built.funnel[0].counts == {"samples": n, "wrong": n}
    failures = rows_of(tmp_path / "again", "collect")
    assert {"frames", "out"} == {one.source_bmk for one in failures}


def test_a_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    """Pictures lie in the folder: nothing is asked again from another place."""
    source = results(tmp_path / "in", "seer", names=TWO)
    construct(source, tmp_path / "out", until="decompose")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    counted = Counted(PLAYERS)
    built = construct(source, tmp_path / "elsewhere", until="decompose", players=counted.players)
    assert (built.exit_code, counted.calls) == (0, {})
