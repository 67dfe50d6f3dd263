"""The published tables, and what their own numbers must satisfy."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.worlds.compared_runs import bundled, varied

from snellen.cli import cli
from snellen.errors import UsageError
from snellen.studies.published import published_checks
from snellen.tables.studies import published_table
from snellen.tables.writers import to_markdown


def test_the_identities_of_the_formulas_hold_in_the_published_tables() -> None:
    """Overall is effective times coverage, and the mean over the capabilities, but for rounding."""
    for benchmark in ("capprobe", "perception_bench"):
        checks = published_checks(benchmark)
        assert [check.model for check in checks if not check.holds] == []


def test_a_printed_number_that_does_not_follow_is_named() -> None:
    """Rubric scores lie above the mean of their domains by up to 0.1; all printed gaps follow."""
    checks = published_checks("perception_rubrics")
    beyond = [check for check in checks if not check.holds]
    assert {check.rule for check in beyond} == {"overall = mean of the columns"}
    assert max(check.printed - check.computed for check in beyond) == pytest.approx(0.10, abs=0.01)
    assert sum(check.rule.startswith("gap") for check in checks) == 10


def test_a_benchmark_without_published_scores_is_refused() -> None:
    """The message names the benchmarks that have some."""
    with pytest.raises(UsageError, match="mini-reading") as refused:
        published_checks("mini-reading")
    assert "capprobe" in refused.value.hint


def test_published_rows_and_checks_are_printed() -> None:
    """The command prints the rows of the paper and a line for each rule; JSON holds each check."""
    shown = CliRunner().invoke(cli, ["published", "capprobe", "--markdown"])
    assert shown.exit_code == 0, shown.output
    assert "34.41" in shown.output
    assert "| overall = effective x coverage | 13/13 |" in shown.output
    found = CliRunner().invoke(cli, ["published", "perception_bench", "--json"])
    assert all(check["holds"] for check in json.loads(found.stdout)["checks"])


def test_a_part_of_a_benchmark_is_marked_in_its_row() -> None:
    """An own run of 55 of 3,000 items has its interval and its number of items in the row."""
    run = varied(bundled("terse", "direct"), benchmark="perception_bench")
    [row] = [r for r in to_markdown(published_table("perception_bench", [run])).splitlines()
             if "(yours)" in r]  # fmt: skip
    assert f"{len(run.items):,} of 3,000" in row
    assert "[" in row
