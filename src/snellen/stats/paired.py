"""Paired differences of two runs on the same clusters, with intervals and p values.

The paired comparison is a t test on the difference of the influence that each cluster has on the
two metrics. Of 2,000 comparisons of equals at a nominal 5% it calls 4.0 to 6.0% different at 40
and at 346 images; the exceptions, both at 40, are the density CV (up to 7.7) and item rates near 1
(2.6). Swapping clusters between the runs at random calls 0.4 to 5.9% different, few where verdicts
are coarse, and a symmetric studentised bootstrap 2.2 to 6.0%. Where few clusters differ between the
runs, two clusters more, one that differs each way, keep the interval from being too short (Bonett
and Price 2012): with full weight where fewer than four differ, which settle nothing either way, and
with a weight of 0.1 from there on. Where none differs, the interval is what a share of clusters
that none of n showed may be: 1 - 0.025 ** (1 / n) each way. `stats.multiple` adjusts many
comparisons together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snellen.errors import UsageError
from snellen.stats.bootstrap import (
    FEW_OFF,
    Floats,
    Jackknife,
    Statistic,
    checked_rows,
    count_known,
    jackknife_of,
)
from snellen.stats.distributions import t_quantile, t_two_sided

# Fewer clusters than this that differ all one way settle nothing at 95%, with or without clusters
# more: these can then weigh fully, and keep the interval from being too short.
_TOO_FEW_TO_SETTLE: Final = 4
# From there on the least weight that leaves four to none of thousands unsettled. At 40 images, a
# weight of 1 calls 0.3 to 3.4% of equals different beyond a rate of 0.85, where 5 are nominal.
_FEW_WEIGHT: Final = 0.1


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much higher run b is than run a, by metric, arrays of shape (n_metrics,); NaN: unknown.

    `p_value` is two-sided; the interval excludes 0 where it is below 1 - level. `n_clusters` are
    the clusters that have a value of their own in both runs, `n_differ` those of them whose values
    differ. `influence` is what each cluster adds, (n_clusters, n_metrics), for tests of many
    differences together (`stats.multiple`).
    """

    difference: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    p_value: Floats
    n_clusters: NDArray[np.int64]
    n_differ: NDArray[np.int64]
    influence: Floats


def compare_paired(
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    statistic: Statistic,
    *,
    level: float = 0.95,
    reach: ArrayLike | None = None,
) -> PairedDifference:
    """Differences b - a of two runs on the same clusters in the same order.

    Runs that agree on every cluster differ by 0 with p = 1; the interval is then what a difference
    that no cluster showed can be. Where all clusters differ alike there is no spread to judge by:
    the p value is that of the sign test, and there is no interval. `reach` is the largest
    difference that each metric can have, 1 for a rate; None: 1 for all, infinite: without end.

    >>> a = np.array([[10, 7], [20, 15], [15, 9], [12, 10]])
    >>> found = compare_paired(a, a, lambda sums: sums[..., 1:] / sums[..., :1])
    >>> found.difference, found.p_value, found.high.round(3)
    (array([0.]), array([1.]), array([0.602]))

    Raises:
        UsageError: the tallies differ in shape or are no tables of finite numbers.
    """
    tables = [counts_a, counts_b]
    return compare_pairs(tables, statistic, [(0, 1)], level=level, reach=reach)[0]


def compare_pairs(
    counts: Sequence[ArrayLike],
    statistic: Statistic,
    pairs: Sequence[tuple[int, int]],
    *,
    level: float = 0.95,
    reach: ArrayLike | None = None,
) -> tuple[PairedDifference, ...]:
    """The paired difference of each pair of runs, by number, the second minus the first.

    What `compare_paired` gives for each of them; the jackknife of a run is made once.

    Raises:
        UsageError: the tallies differ in shape or are no tables of finite numbers.
    """
    tables = [checked_rows(table) for table in counts]
    for table in tables[1:]:
        if table.shape != tables[0].shape:
            raise UsageError(
                f"tallies of shapes {tables[0].shape} and {table.shape} cannot be paired",
                hint="give both runs the same images in the same order",
            )
    used = {number for pair in pairs for number in pair}
    found = {number: jackknife_of(tables[number], statistic) for number in used}
    return tuple(_paired_difference(found[a], found[b], level, reach) for a, b in pairs)


def _paired_difference(
    a: Jackknife, b: Jackknife, level: float, reach: ArrayLike | None
) -> PairedDifference:
    known, n = a.known & b.known, a.influence.shape[0]
    influence = b.influence - a.influence
    error = np.sqrt((influence**2).sum(axis=0) / (n * max(n - 1, 1)))
    scale = np.maximum(np.abs(a.estimate), np.abs(b.estimate))
    error = np.where(error <= 1e-12 * scale, 0.0, error)
    difference = b.estimate - a.estimate
    # What is left of equal numbers after rounding is no difference.
    difference = np.where(np.abs(difference) <= 1e-12 * scale, 0.0, difference)
    differs = known & ~np.isclose(a.own, b.own, rtol=1e-9, atol=1e-12)
    most = np.broadcast_to(np.asarray(1.0 if reach is None else reach, float), difference.shape)
    tests = np.full((4, difference.size), np.nan)
    for k in range(difference.size):
        moved = influence[differs[:, k], k] + difference[k]
        case = _Pair(float(difference[k]), float(error[k]), int(known[:, k].sum()), moved)
        tests[:, k] = _paired_test(case, level, float(most[k]))
    p_value, low, high, error = tests
    return PairedDifference(
        difference, low, high, error, p_value, count_known(known), count_known(differs), influence
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """A difference, its standard error, the clusters behind it, and how far those that differ do.

    `moved` has one number for each cluster that differs between the runs: what the difference
    would be if all clusters differed so.
    """

    difference: float
    error: float
    n: int
    moved: Floats


def _paired_test(pair: _Pair, level: float, most: float) -> tuple[float, float, float, float]:
    """The two-sided p value, both limits, and the standard error that they rest on."""
    difference, error, n = pair.difference, pair.error, pair.n
    if math.isnan(difference) or math.isnan(error):
        return math.nan, math.nan, math.nan, error
    if error == 0.0 and difference != 0.0:
        return min(1.0, 2.0 ** (1 - n)), math.nan, math.nan, error
    if error == 0.0:
        bound = most * (1.0 - ((1.0 - level) / 2.0) ** (1.0 / n)) if n else math.nan
        bound = bound if math.isfinite(bound) else math.nan
        return 1.0, -bound, bound, error
    if n < 2:
        return math.nan, math.nan, math.nan, error
    middle, n_moved = difference, pair.moved.size
    if math.isfinite(most) and 0 < n_moved < min(FEW_OFF, n / 2):
        # Two clusters more, as different as the most different one, one each way.
        weight = 1.0 if n_moved < _TOO_FEW_TO_SETTLE else _FEW_WEIGHT
        most_moved = float(np.abs(pair.moved).max())
        total = n + 2.0 * weight
        middle = difference * n / total
        squares = float((pair.moved**2).sum()) + 2.0 * weight * most_moved**2
        error = max(error, math.sqrt(max(0.0, squares / total - middle**2) / total))
    half = t_quantile(level, n - 1.0) * error
    return t_two_sided(middle / error, n - 1.0), middle - half, middle + half, error
