"""The published tables, and what their own numbers must satisfy."""

from __future__ import annotations

import pytest

from snellen.errors import UsageError
from snellen.studies.published import published_checks


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
