"""Power and sample size: the numbers of statsmodels, and of a simulation with clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from snellen.stats.paired import compare_paired
from snellen.stats.power import clusters_needed, design_effect, detectable_difference, halfwidth


def power_of(effect: float, n: int) -> float:
    """The power of a two-sided one-sample t test, by the noncentral t."""
    edge = scipy_stats.t.ppf(0.975, n - 1)
    return float(
        scipy_stats.nct.sf(edge, n - 1, effect * math.sqrt(n))
        + scipy_stats.nct.cdf(-edge, n - 1, effect * math.sqrt(n))
    )


@pytest.mark.parametrize("n", [10, 40, 200, 664])
def test_the_detectable_difference_has_the_power_that_was_asked_for(n: int) -> None:
    """The t test finds a difference of that size in 80 of 100 tries, within two."""
    found = detectable_difference(0.2, n)
    assert power_of(found / 0.2, n) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("difference", [0.02, 0.05, 0.1, 0.15])
def test_the_number_of_clusters_is_that_of_the_t_test(difference: float) -> None:
    """As few clusters as reach the power, to within one in ten."""
    found = clusters_needed(0.2, difference)
    assert found is not None
    exact = next(n for n in range(2, 2000) if power_of(difference / 0.2, n) >= 0.8)
    assert found == pytest.approx(exact, rel=0.1, abs=1)


def test_no_difference_needs_no_number_of_clusters() -> None:
    """Nothing shows a difference of 0, or one that is not known."""
    assert clusters_needed(0.2, 0.0) is None
    assert clusters_needed(math.nan, 0.1) is None
    assert math.isnan(detectable_difference(0.2, 1))
    assert math.isnan(halfwidth(0.2, 1))


def test_the_power_holds_for_questions_that_go_together_by_image() -> None:
    """Of 400 studies with clustered verdicts and the detectable difference, 80% settle it."""
    n, m, icc, rate = 100, 20, 0.1, 0.7
    rng = np.random.default_rng(2)
    deviation = math.sqrt(rate * (1 - rate) * design_effect(m, icc) / m) * math.sqrt(2.0)
    difference = detectable_difference(deviation, n)
    a, b = rate * (1 - icc) / icc, (1 - rate) * (1 - icc) / icc
    higher = rate + difference
    a2, b2 = higher * (1 - icc) / icc, (1 - higher) * (1 - icc) / icc
    found = 0
    for _ in range(400):
        runs = [
            np.stack([np.full(n, float(m)), rng.binomial(m, rng.beta(x, y, n))], axis=1)
            for x, y in ((a, b), (a2, b2))
        ]
        test = compare_paired(*runs, lambda s: s[..., 1:] / s[..., :1])
        found += bool(test.p_value[0] <= 0.05)
    assert found / 400 == pytest.approx(0.8, abs=0.08)
