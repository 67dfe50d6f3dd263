"""The range that a check's measured errors allow holds the truth, and says when it cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.worlds.judged_world import World, boolean_world, reading_world

from snellen.records import ModelRecord, Verdict
from snellen.runs.folder import Run
from snellen.runs.judge_errors import Confusion, JudgeCheck, ProtocolCheck
from snellen.runs.sensitivity import attachment, ranges_of
from snellen.runs.summary import summarise
from snellen.tables.judges import sensitivity_table

READING_ERRORS = np.array([[0.75, 0.05, 0.2], [0.0, 0.9, 0.1], [0.05, 0.05, 0.9]])
BOOLEAN_ERRORS = np.array([[0.9, 0.1], [0.3, 0.7]])


def check_of(errors: np.ndarray, protocol: str, *, n: int = 2000, **words: Any) -> JudgeCheck:
    """A check that measured a judge's errors on `n` verdicts of each truth."""
    truths = ("right", "wrong", "E") if len(errors) == 3 else ("true", "false")
    counts = tuple((*(round(n * x) for x in row), 0) for row in errors.tolist())
    found = ProtocolCheck(
        protocol,  # type: ignore[arg-type]
        {"verdict": words.pop("prompt", "hash")},
        10,
        10,
        {},
        {},
        Confusion(truths, (*truths, "unscored"), counts, ()),
        {},
        None,
        None,
        0,
        0.0,
    )
    judge = words.pop("judge", ModelRecord("judge", model="judge"))
    return JudgeCheck(judge, "2026-01-01T00:00:00Z", "1", 0, {}, {protocol: found})


def attached(run: Run, check: JudgeCheck) -> Run:
    """The run with a check attached."""
    return replace(run, spec=replace(run.spec, judge_check=attachment(check, run.spec)))


def real_values(world: World) -> dict[str, float]:
    """The metrics under the truth."""
    run = world.run
    verdicts = {}
    for item in run.items:
        for probe in item.probes:
            truth = world.truth[item.id, probe.id]
            correct = truth if isinstance(truth, bool) else truth == probe.answer
            verdicts[item.id, 0, probe.id] = Verdict(item.id, probe.id, truth, correct, "scored")
    tally = replace(run, verdicts=verdicts).tally()
    values = tally.statistic()(tally.counts.sum(axis=0))
    return dict(zip((m.name for m in tally.metrics), map(float, values), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_the_range_holds_the_true_reading_scores_where_the_raw_ones_miss(seed: int) -> None:
    """A judge with false abstentions moves the raw score; the range reaches the true one."""
    world = reading_world(errors=READING_ERRORS, images=200, seed=seed)
    run = attached(world.run, check_of(READING_ERRORS, "reading"))
    summary = summarise(run, status="complete")
    ranges, real = summary.extra["judge_check"]["ranges"], real_values(world)
    raw = summary.metrics["overall_acc"].value
    assert raw is not None
    assert abs(raw - real["overall_acc"]) > 0.08
    for name in ("overall_acc", "coverage", "effective_acc"):
        assert ranges[name]["low"] - 0.02 <= real[name] <= ranges[name]["high"] + 0.02
        assert ranges[name]["low"] <= ranges[name]["raw"] <= ranges[name]["high"]
        assert ranges[name]["high"] - ranges[name]["low"] < 0.25


def test_the_range_of_a_gate_holds_the_true_one() -> None:
    """Metrics of whole images follow from drawn truths too."""
    world = boolean_world(errors=BOOLEAN_ERRORS, share=0.85, images=400)
    ranges = ranges_of(
        world.run,
        world.run.table(),
        attachment(check_of(BOOLEAN_ERRORS, "rubric"), world.run.spec)["confusion"],
    )
    real = real_values(world)
    assert ranges is not None
    for name in ("score", "gate_pass", "atomic_acc"):
        assert ranges[name].low - 0.02 <= real[name] <= ranges[name].high + 0.02
    assert abs(ranges["gate_pass"].raw - real["gate_pass"]) > 0.03


def test_a_faultless_judge_moves_nothing() -> None:
    """With a clean confusion the range closes around the score."""
    world = reading_world(images=40)
    check = check_of(np.eye(3), "reading", n=100_000)
    found = ranges_of(world.run, world.run.table(), attachment(check, world.run.spec)["confusion"])
    assert found is not None
    assert found["overall_acc"].high - found["overall_acc"].low < 0.01


def test_a_check_of_another_judge_or_prompt_gives_a_notice_and_no_range() -> None:
    """What does not fit is named, and nothing is concluded from it."""
    run = boolean_world("direct").run
    for check, said in (
        (
            check_of(BOOLEAN_ERRORS, "direct", judge=ModelRecord("other", model="judge")),
            "judge name",
        ),
        (check_of(BOOLEAN_ERRORS, "direct", prompt="changed"), "another judge prompt"),
        (check_of(BOOLEAN_ERRORS, "rubric"), "nothing on the direct protocol"),
    ):
        summary = summarise(attached(run, check), status="complete")
        assert "ranges" not in summary.extra["judge_check"]
        assert any(said in note for note in summary.notes)
        assert sensitivity_table(replace(run, summary=summary)) is None


def test_a_judge_no_better_than_a_coin_gives_a_notice_and_no_range() -> None:
    """Where verdicts do not depend on the truth, no range follows."""
    check = check_of(np.full((2, 2), 0.5), "direct", n=10**8)
    summary = summarise(attached(boolean_world("direct").run, check), status="complete")
    assert any("the judge told too little apart" in note for note in summary.notes)


def test_error_rates_under_which_the_verdicts_could_not_have_come_about_are_named() -> None:
    """A run with fewer credits than the check's false credits alone would make contradicts it."""
    world = reading_world(shares=(0.05, 0.05, 0.9), images=100)
    harsh = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.4, 0.4, 0.2]])
    summary = summarise(attached(world.run, check_of(harsh, "reading")), status="complete")
    assert summary.extra["judge_check"]["misfit"] == ["all"]
    assert any("could not have come about" in note for note in summary.notes)


def test_the_range_spans_what_each_kind_of_material_allows() -> None:
    """Two kinds of material with other error rates give one range that holds both."""
    world = boolean_world("direct", images=300)
    mild, harsh = (np.array([[x, 1 - x], [0.02, 0.98]]) for x in (0.98, 0.8))
    check = check_of(mild, "direct")
    found = check.protocols["direct"]
    other = check_of(harsh, "direct").protocols["direct"].confusion
    both = replace(found, confusions={"labelled": found.confusion, "facts": other})
    check = replace(check, protocols={"direct": both})
    extra = summarise(attached(world.run, check), status="complete").extra["judge_check"]
    alone = [
        ranges_of(world.run, world.run.table(), one)
        for one in attachment(check, world.run.spec)["confusions"].values()
    ]
    assert alone[0] is not None
    assert alone[1] is not None
    lowest = min(alone[0]["accuracy"].low, alone[0]["accuracy"].raw)
    assert extra["ranges"]["accuracy"]["low"] == lowest
    assert extra["ranges"]["accuracy"]["high"] == alone[1]["accuracy"].high


def test_the_table_calls_the_range_no_corrected_score() -> None:
    """The table says as judged, could be, and what it is not."""
    run = attached(boolean_world("direct").run, check_of(BOOLEAN_ERRORS, "direct"))
    table = sensitivity_table(replace(run, summary=summarise(run, status="complete")))
    assert table is not None
    assert table.headings == ("Metric", "As judged", "Lowest", "Highest")
    assert "not a corrected score" in table.notes[0]
    assert "from no error at all" in table.notes[0]
