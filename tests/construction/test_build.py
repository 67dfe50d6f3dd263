"""Stages one after the other: funnels, resume, removed and added inputs, failures, people."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.worlds.capprobe_world import (
    PLAYERS,
    Counted,
    Messages,
    alpha,
    beta,
    config,
    construct,
    describer,
    paint,
)

from snellen.builders.options import (
    BalanceOptions,
    QuestionOptions,
    ReviewOptions,
    SelectOptions,
    VerifyOptions,
)
from snellen.builders.reviewing import Decision
from snellen.builders.rows import QuestionRow
from snellen.construction import review
from snellen.construction.build import BuildRequest
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.files import read_funnel, read_record, read_rejected, read_stage
from snellen.construction.forecast import forecast
from snellen.errors import DataError, RunFolderError, UsageError
from snellen.readers import check_benchmark, load_benchmark

LAST = CAPPROBE.stages[-1]


def rows_of(out: Path, name: str) -> tuple[Any, ...]:
    stage = CAPPROBE.stages[CAPPROBE.number(name) - 1]
    rows = read_stage(out, CAPPROBE, stage)
    assert rows is not None
    return rows


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pictures_become_a_clean_benchmark_and_every_funnel_adds_up(tmp_path: Path) -> None:
    """From a folder to a benchmark without a fault; each row that entered is kept or rejected."""
    built = construct(paint(tmp_path / "in", 1, 2), tmp_path / "out")
    assert built.exit_code == 0
    assert [row.stage for row in built.funnel] == [stage.name for stage in CAPPROBE.stages]
    assert all(row.adds_up for row in built.funnel)
    filters = [row for row in built.funnel if row.made is None]
    for before, after in pairwise(filters[1:]):
        assert before.kept == after.entered
    questions = next(row for row in built.funnel if row.stage == "question")
    assert questions.made == filters[1].entered > 0
    assert sum(row.rejected + row.dropped for row in built.funnel) == len(
        read_rejected(tmp_path / "out")
    )
    folder = tmp_path / "out" / "benchmark"
    assert check_benchmark(str(folder)) == []
    benchmark = load_benchmark(str(folder))
    assert benchmark.protocol == "reading"
    assert sum(len(item.probes) for item in benchmark.items) == built.funnel[-1].kept
    assert {region.nature for region in benchmark.regions} == {"stuff"}


def test_a_second_start_asks_nobody_and_writes_the_same(tmp_path: Path) -> None:
    """What is done is not done again."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    construct(source, out)
    before = {path: path.read_bytes() for path in sorted((out / "stages").iterdir())}
    again = Counted()
    construct(source, out, players=again.players)
    assert again.calls == {}
    assert {path: path.read_bytes() for path in sorted((out / "stages").iterdir())} == before


def test_removed_pictures_leave_and_only_new_ones_are_processed(tmp_path: Path) -> None:
    """Two pictures out and three in: calls for three, ids of the others as they were."""
    source, out = paint(tmp_path / "in", 1, 2, 3), tmp_path / "out"
    construct(source, out, until="question")
    kept = {row.id for row in rows_of(out, "question") if row.image_id == kept_id(out, "003.png")}
    (source / "001.png").unlink()
    (source / "002.png").unlink()
    paint(source, 4, 5, 6)
    again = Counted()
    construct(source, out, until="question", players=again.players)
    assert {row.name for row in rows_of(out, "select")} == {f"00{n}.png" for n in (3, 4, 5, 6)}
    new = [row for row in rows_of(out, "segment") if row.image_id != kept_id(out, "003.png")]
    assert len({row.image_id for row in new}) == 3
    assert again.calls == {
        "matcher": 6, "describer": len(new), "alpha": len(new), "beta": len(new)
    }  # fmt: skip
    assert kept <= {row.id for row in rows_of(out, "question")}


def kept_id(out: Path, name: str) -> str:
    return next(row.id for row in rows_of(out, "select") if row.name == name)


def test_a_changed_threshold_asks_nobody_and_a_changed_model_asks_again(tmp_path: Path) -> None:
    """Calls depend on models, prompts and inputs; what is computed of them does not cost any."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    construct(source, out, until="describe")
    again = Counted()
    other = config(balance=BalanceOptions(per_subdomain=1))
    construct(source, out, until="describe", config=other, players=again.players)
    assert again.calls == {}

    def second(messages: Messages) -> str:
        return describer(messages)

    named = Counted({**PLAYERS, "describer": second})
    construct(source, out, until="describe", players=named.players)
    assert named.calls == {"second": len(rows_of(out, "segment"))}


def test_until_only_and_limit_choose_the_work(tmp_path: Path) -> None:
    """A build can stop after a stage, run one alone, and take the first pictures only."""
    source, out = paint(tmp_path / "in", 1, 2, 3), tmp_path / "out"
    built = construct(source, out, until="segment", limit=2)
    assert [row.stage for row in built.funnel] == ["select", "segment"]
    assert built.funnel[0].entered == 2
    alone = construct(source, out, only="describe", limit=2)
    assert [row.stage for row in alone.funnel] == ["select", "segment", "describe"]
    with pytest.raises(UsageError, match="`dedup` has not been run"):
        construct(source, out, only="verify", config=config(verify=VerifyOptions(enabled=True)))
    with pytest.raises(UsageError, match="no stage `dedupe`"):
        construct(source, out, until="dedupe")


def test_a_role_without_a_model_is_named_before_any_call(tmp_path: Path) -> None:
    """The error names the role and the stage, and nothing has been asked."""
    counted = Counted({k: v for k, v in PLAYERS.items() if k != "describer"})
    with pytest.raises(UsageError, match="stage `describe` needs the role `describer`"):
        construct(paint(tmp_path / "in", 1), tmp_path / "out", players=counted.players)
    assert counted.calls == {}


def test_a_describer_that_writes_prose_is_asked_again_and_its_regions_rejected(
    tmp_path: Path,
) -> None:
    """Prose is no metadata: three asks a region, then a rejection with the reply, and exit 3."""
    asked: list[str] = []

    def poet(messages: Messages) -> str:
        asked.append(str(messages[-1]["content"][-1]["text"]))
        return "What a lovely view."

    built = construct(
        paint(tmp_path / "in", 1), tmp_path / "out", until="describe",
        players={**PLAYERS, "describer": poet},
    )  # fmt: skip
    record = built.funnel[-1]
    assert (record.kept, record.reasons) == (0, {"unreadable": record.entered})
    assert len(asked) == 3 * record.entered
    assert "JSON is malformed" in asked[-1]
    assert built.exit_code == 3
    rejected = read_rejected(tmp_path / "out")[-1]
    assert rejected.detail["reply"] == "What a lovely view."


@pytest.mark.slow
def test_a_failed_call_is_counted_and_asked_again_at_the_next_start(tmp_path: Path) -> None:
    """A region whose call failed is missing once, and there after the next start."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"

    def broken(messages: Messages) -> str:
        raise ValueError("no memory")

    broken.__name__ = "describer"
    first = construct(source, out, until="describe", players={**PLAYERS, "describer": broken})
    assert set(first.funnel[-1].reasons) <= {"call_bad_reply"} or first.error is not None
    second = construct(source, out, until="describe")
    assert second.exit_code == 0
    assert second.funnel[-1].kept == second.funnel[-1].entered == len(rows_of(out, "segment"))


GENERATORS = {
    "fences": lambda m: f"```json\n{alpha(m)}\n```",
    "prose": lambda m: "Here are some thoughts about the picture.",
    "half": lambda m: alpha(m)[:300],
    "repeats": lambda m: json.dumps({"qas": json.loads(alpha(m))["qas"] * 2}),
    "empty": lambda m: "",
}


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_odd_generators_are_handled_and_counted(tmp_path: Path, name: str) -> None:
    """Fences are taken off; prose, halves and blanks are asked again; repetitions are dropped."""

    def odd(messages: Messages) -> str:
        return GENERATORS[name](messages)

    players = {**PLAYERS, "questioner": (odd, beta)}
    source = paint(tmp_path / "in", 1)
    built = construct(source, tmp_path / "out", until="question", players=players)
    record = built.funnel[-1]
    assert record.adds_up
    n_regions = len(rows_of(tmp_path / "out", "segment"))
    made = {"fences": 5, "repeats": 5}.get(name, 0) + 5
    assert record.made == made * n_regions
    if name == "repeats":
        assert record.reasons == {"repeated": 5 * n_regions}
    elif name != "fences":
        assert record.reasons == {"unreadable": n_regions}
        assert record.counts["asked_again"] == 2 * n_regions
        assert built.exit_code == 3


def test_questions_are_divided_among_generators_where_it_is_asked_for(tmp_path: Path) -> None:
    """With `split` each region has one generator, and both have some."""
    split = config(most=6, question=QuestionOptions(regions="split"))
    counted = Counted()
    construct(
        paint(tmp_path / "in", 1, 2), tmp_path / "out", until="question", config=split,
        players=counted.players,
    )  # fmt: skip
    n_regions = len(rows_of(tmp_path / "out", "segment"))
    assert counted.calls["alpha"] + counted.calls["beta"] == n_regions
    assert min(counted.calls["alpha"], counted.calls["beta"]) > 0


def test_right_letters_are_spread_though_a_generator_always_says_a(tmp_path: Path) -> None:
    """Each letter is right about equally often, in every region."""
    construct(paint(tmp_path / "in", 1, 2), tmp_path / "out", until="question")
    rows: tuple[QuestionRow, ...] = rows_of(tmp_path / "out", "question")
    letters = [sum(row.answer == letter for row in rows) for letter in "ABCD"]
    assert max(letters) - min(letters) <= len(rows) / 5
    for row in rows:
        assert row.right


def test_checkers_flag_and_drop(tmp_path: Path) -> None:
    """A checker that always says A is right by chance, and disagrees with what is not A."""
    out = tmp_path / "out"
    checks = VerifyOptions(enabled=True, blind_draws=2, blind_hits=2)
    built = construct(paint(tmp_path / "in", 1), out, until="verify", config=config(verify=checks))
    record = built.funnel[-1]
    assert record.adds_up
    assert set(record.reasons) <= {"answerable_blind"}
    for row in rows_of(out, "verify"):
        assert ("disagreement" in row.flags) == (row.answer != "A")


def test_decisions_of_people_count_and_outlive_a_new_start(tmp_path: Path) -> None:
    """A deleted question leaves, an edited one is exported as edited; a new start keeps both."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    first = construct(source, out)
    gone, changed, *_ = [one.task for one in review.pending(out, "annotator")]
    review.decide(out, Decision(gone.id, "annotator", "delete", ("redundancy",)))
    after = {"question": "What colour is the wide area at the top left?"}
    review.decide(out, Decision(changed.id, "annotator", "edit", after=after))
    assert [one.task.id for one in review.pending(out, "adjudicator")] == [changed.id]
    for _ in range(2):
        built = construct(source, out)
        assert built.funnel[-1].kept == first.funnel[-1].kept - 1
    exported = lines_of(out / "benchmark" / "questions.jsonl")
    assert gone.id not in {row["question_id"] for row in exported}
    assert (
        next(r for r in exported if r["question_id"] == changed.id)["question"]
        == (after["question"])
    )
    reviewed = config(review=ReviewOptions(reviewed_only=True))
    strict = construct(source, out, config=reviewed)
    assert strict.funnel[-1].kept == 0
    review.decide(out, Decision(changed.id, "adjudicator", "accept"))
    assert construct(source, out, config=reviewed).funnel[-1].kept == 1


def test_a_text_written_anew_is_put_up_for_review_again(tmp_path: Path) -> None:
    """A decision on another text of the same id does not count."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    construct(source, out)
    task = review.pending(out, "annotator")[0].task
    review.decide(out, Decision(task.id, "annotator", "delete"))

    def other(messages: Messages) -> str:
        return alpha(messages).replace("Which colour", "What colour").replace("kind", "sort")

    other.__name__ = "alpha"
    changed = config(question=QuestionOptions(wanted=16))
    construct(source, out, players={**PLAYERS, "questioner": (other, beta)}, config=changed)
    [again] = [one for one in review.state(out) if one.task.id == task.id]
    assert again.task.digest != task.digest
    assert again.first is None


def test_pictures_wait_for_people_where_that_is_set(tmp_path: Path) -> None:
    """With `manual` nothing goes on until each picture is decided; one failed criterion removes."""
    source, out = paint(tmp_path / "in", 1, 2), tmp_path / "out"
    manual = config(select=SelectOptions(manual=True))
    built = construct(source, out, config=manual)
    assert "2 pictures wait" in built.waits
    assert [row.stage for row in built.funnel] == ["select"]
    one, two = [settled.task.id for settled in review.pending(out, "annotator")]
    review.decide(out, Decision(one, "annotator", "accept"))
    review.decide(out, Decision(two, "annotator", "delete", ("image_quality",)))
    built = construct(source, out, config=manual)
    assert built.waits == ""
    assert built.funnel[0].reasons == {"refused_by_people": 1}
    assert {row.image_id for row in rows_of(out, "dedup")} == {one}


def test_people_may_edit_the_list_of_balanced_pictures(tmp_path: Path) -> None:
    """`keep` in the list wins over the rule, and stays when the list is written anew."""
    source, out = paint(tmp_path / "in", 1, 2), tmp_path / "out"
    construct(source, out)
    path = out / "balance.jsonl"
    listed = lines_of(path)
    listed[0]["keep"] = False
    path.write_text("".join(json.dumps(row) + "\n" for row in listed), encoding="utf-8")
    built = construct(source, out)
    record = next(row for row in built.funnel if row.stage == "balance")
    assert set(record.reasons) == {"dropped_by_people"}
    assert record.counts["pictures_kept"] == 1
    assert lines_of(path)[0]["keep"] is False


def test_the_record_says_who_wrote_and_by_which_prompts(tmp_path: Path) -> None:
    """`build.json` holds models, prompts with their hashes, options, and each start."""
    construct(paint(tmp_path / "in", 1), tmp_path / "out", until="select")
    construct(tmp_path / "in", tmp_path / "out", until="select")
    record = read_record(tmp_path / "out")
    assert record.models["questioner"][1]["name"] == "beta"
    assert len(record.prompts["build_question"]["sha256"]) == 64
    assert record.options["dedup"]["global"] == 0.9
    assert [session.until for session in record.sessions] == ["select", "select"]
    assert record.source_digest


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """A folder in which another kind is built is not written to."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, until="select")
    record = read_record(out)
    record.kind = "rubrics"
    (out / "build.json").write_bytes(msgspec.json.encode(record))
    with pytest.raises(RunFolderError, match="holds a rubrics benchmark"):
        construct(tmp_path / "in", out)


def test_a_dry_run_counts_calls_and_sends_nothing(tmp_path: Path) -> None:
    """Before the first start calls are estimated; for stages that are ready they are counted."""
    source, out = paint(tmp_path / "in", 1, 2), tmp_path / "out"
    counted = Counted()
    request = BuildRequest(CAPPROBE, str(source), out, config(), counted.players)
    first = {one.stage: one for one in forecast(request)}
    assert first["select"].is_counted
    assert not first["question"].is_counted
    assert not out.exists()
    construct(source, out, until="describe")
    then = {one.stage: one for one in forecast(request)}
    n_regions = len(rows_of(out, "segment"))
    assert (then["describe"].done, then["describe"].calls) == (n_regions, 0)
    assert then["question"].calls == 2 * n_regions
    assert counted.calls == {}


def test_a_source_that_is_absent_is_named(tmp_path: Path) -> None:
    """The error says what was looked for, and what a source may be."""
    built = construct_error(tmp_path)
    assert "no such file or folder" in built.message


def construct_error(tmp_path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        construct(tmp_path / "nothing", tmp_path / "out")
    return caught.value


def test_no_picture_is_lost_silently(tmp_path: Path) -> None:
    """Broken, dark, small and equal files are rejected, each with its reason."""
    source = paint(tmp_path / "in", 1)
    (source / "copy.png").write_bytes((source / "001.png").read_bytes())
    (source / "cut.png").write_bytes((source / "001.png").read_bytes()[:900])
    (source / "page.png").write_bytes(b"<html>404</html>")
    paint(source, 7, size=(80, 80))
    built = construct(source, tmp_path / "out", until="select")
    record = read_funnel(tmp_path / "out")[0]
    assert built.funnel == (record,)
    assert record.reasons == {"identical": 1, "broken": 2, "low_resolution": 1}
    assert (record.entered, record.kept) == (5, 1)


def test_a_moved_folder_goes_on_and_asks_nobody(tmp_path: Path) -> None:
    """Build folder and pictures under other names: no call, the same rows, the same benchmark."""
    construct(paint(tmp_path / "in", 1), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out" / "stages").iterdir()}
    assert all(str(tmp_path).encode() not in data for data in before.values())
    (tmp_path / "in").rename(tmp_path / "pictures")
    out = (tmp_path / "out").rename(tmp_path / "elsewhere")
    counted = Counted()
    changed = config(question=QuestionOptions(wanted=16))
    built = construct(tmp_path / "pictures", out, players=counted.players)
    assert (built.exit_code, counted.calls) == (0, {})
    assert {path.name: path.read_bytes() for path in (out / "stages").iterdir()} == before
    task = review.pending(out, "annotator")[0].task
    assert task.pictures[0].path == str(tmp_path / "pictures" / "001.png")
    # New questions need the pictures and the views where they are now.
    construct(tmp_path / "pictures", out, players=counted.players, config=changed)
    n_regions = len(rows_of(out, "segment"))
    assert counted.calls == {"alpha": n_regions, "beta": n_regions}


def test_a_folder_with_whole_paths_is_read(tmp_path: Path) -> None:
    """Folders of older versions hold whole paths: they go on where they are, without a call."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    construct(source, out)
    for path in [*(out / "stages").iterdir(), *(out / "work").iterdir()]:
        text = path.read_text(encoding="utf-8")
        whole = text.replace("build:", f"{out}/").replace("source:", f"{source}/")
        path.write_text(whole, encoding="utf-8")
    counted = Counted()
    built = construct(source, out, players=counted.players)
    assert (built.exit_code, counted.calls) == (0, {})
