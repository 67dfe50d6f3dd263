"""Summaries of runs: what is counted, what has no value, and what is not known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tests.worlds.compared_runs import bundled

from snellen.engine.counters import Counters, RoleCounters
from snellen.runs.folder import Run
from snellen.runs.summary import summarise, usage_of


def skipping(run: Run, items: Collection[str]) -> Run:
    """The run with all statements of some items skipped, as after a gate that was shut."""
    skipped = {
        key: replace(verdict, status="skipped", verdict=None, correct=None)
        for key, verdict in run.verdicts.items()
        if key[0] in items
    }
    return replace(run, verdicts={**run.verdicts, **skipped})


def test_an_item_of_skipped_probes_is_behind_no_number() -> None:
    """Numbers rest on the items of which something was asked."""
    run = bundled("terse", "rubric")
    found = summarise(skipping(run, [run.items[0].id]), status="complete")
    assert found.metrics["score"].n_items == len(run.items) - 1


def test_a_label_of_skipped_probes_has_no_value() -> None:
    """Nothing was asked, which is not the value zero."""
    run = bundled("terse", "rubric")
    label = run.items[0].groups["category"][0]
    some = [item.id for item in run.items if label in item.groups["category"]]
    by = summarise(skipping(run, some), status="complete").by["category"]
    assert {value.value for value in by[label].values()} == {None}
    assert all(by[other]["score"].value is not None for other in by.keys() - {label})


def test_a_probe_without_a_verdict_was_not_run() -> None:
    """It is unscored, with that reason, beside those that have another."""
    run = bundled("terse")
    first, second, *others = run.verdicts.items()
    lost = replace(second[1], status="unscored", verdict=None, correct=None, reason="judge_timeout")
    found = summarise(replace(run, verdicts=dict([(second[0], lost), *others])), status="complete")
    assert first[0] not in dict(others)
    assert found.counts.unscored == 2
    assert found.counts.unscored_by_reason == {"judge_timeout": 1, "not_run": 1}


def test_a_cost_of_which_a_part_is_unknown_is_unknown() -> None:
    """A sum of what is known would look like all that was spent."""
    model, judge = RoleCounters(done=2, cost_usd=0.5), RoleCounters(done=2, cost_usd=0.25)
    assert usage_of(Counters(roles={"model": model, "judge": judge}))["cost_usd"] == 0.75
    judge.unknown_cost = 1
    assert usage_of(Counters(roles={"model": model, "judge": judge}))["cost_usd"] is None
    assert usage_of(None)["cost_usd"] is None
