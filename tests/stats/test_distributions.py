"""The distributions against scipy."""

import math

import pytest
from scipy import special
from scipy import stats as scipy_stats

from snellen.stats.distributions import (
    beta_cdf,
    beta_quantile,
    normal_quantile,
    t_quantile,
    t_two_sided,
)


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("b", [0.5, 2.0, 350.0])
@pytest.mark.parametrize("x", [0.0, 1e-6, 0.2, 0.7, 0.999, 1.0])
def test_the_incomplete_beta_is_that_of_scipy(a, b, x):
    """Ten digits over small, even and large shapes."""
    assert beta_cdf(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("p", "a", "b"), [(0.025, 40, 1), (0.5, 2, 7), (0.975, 1, 300)])
def test_beta_quantiles_are_those_of_scipy(p, a, b):
    """The quantile undoes the distribution function."""
    assert beta_quantile(p, a, b) == pytest.approx(scipy_stats.beta.ppf(p, a, b), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 5, 39, 345, 10_000])
def test_students_t_is_that_of_scipy(df):
    """Tails and quantiles agree from one degree of freedom to many."""
    for t in (0.0, 0.5, -2.0, 9.0):
        expected = 2 * scipy_stats.t.sf(abs(t), df)
        assert t_two_sided(t, df) == pytest.approx(expected, rel=1e-9)
    assert t_quantile(0.95, df) == pytest.approx(scipy_stats.t.ppf(0.975, df), rel=1e-9)
    assert t_two_sided(math.inf, df) == 0.0


def test_the_normal_is_that_of_scipy():
    """Its quantiles agree."""
    assert normal_quantile(0.975) == pytest.approx(scipy_stats.norm.ppf(0.975), rel=1e-9)
