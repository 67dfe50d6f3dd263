"""How far judges, repeats and outside ratings agree: kappa, correlations, calibration.

Nothing here is resampled unless it says so. Functions give NaN where a number does not exist: no
data, no variation to correlate, or values that are unknown (NaN) themselves.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snellen.errors import UsageError
from snellen.stats.bootstrap import DEFAULT_RESAMPLING, Intervals, Resampling, Statistic, intervals
from snellen.stats.distributions import beta_cdf, normal_quantile, t_quantile, t_two_sided

Floats = NDArray[np.float64]
Kind = Literal["pearson", "spearman", "kendall"]

ALL_PERMUTATIONS_UP_TO: Final = 8
_BLOCK: Final = 500
# With fewer clusters than this in which raters disagree, the bootstrap knows too little of kappa.
_FEW_DISAGREE: Final = 10
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Agreement:
    """Raw agreement and kappa of two raters on `n` things; kappa is NaN where chance is certain.

    The intervals are (low, high), or None where they were not asked for or cannot be had.
    """

    n: int
    raw: float
    kappa: float
    raw_interval: tuple[float, float] | None = None
    kappa_interval: tuple[float, float] | None = None


def raw_agreement(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """The share of things on which two raters give the same label.

    >>> raw_agreement("AAB", "ABB") == 2 / 3
    True
    """
    _check_pairs(a, b)
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a) if len(a) else math.nan


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Agreement:
    """Agreement of two raters beyond chance, for labels without an order.

    With `clusters` (the image of each thing) both numbers get an interval, resampled by cluster.

    >>> round(cohen_kappa("AABB", "AABA").kappa, 3)
    0.5

    Raises:
        UsageError: the raters labelled different numbers of things.
    """
    _check_pairs(a, b)
    n = len(a)
    if n == 0:
        return Agreement(0, math.nan, math.nan)
    table, size = _confusions(a, b, clusters if clusters is not None else [None] * n)
    raw, kappa = (float(value) for value in agreement_statistic(size)(table.sum(axis=0)))
    if clusters is None:
        return Agreement(n, raw, kappa)
    found = intervals(table, agreement_statistic(size), rates=[True, False], resampling=resampling)
    ends = _pair(found, 0)
    disagreeing = int(
        (table.sum(axis=1) > np.trace(table.reshape(-1, size, size), axis1=1, axis2=2)).sum()
    )
    if ends is not None and raw > kappa and disagreeing < _FEW_DISAGREE:
        # The limits of the raw agreement, with the agreement by chance as it is.
        chance = (raw - kappa) / (1.0 - kappa)
        low, high = ((end - chance) / (1.0 - chance) for end in ends)
        return Agreement(n, raw, kappa, ends, _within_reach((low, high)))
    return Agreement(n, raw, kappa, ends, _within_reach(_pair(found, 1)))


def agreement_statistic(size: int) -> Statistic:
    """Raw agreement and kappa of confusion tables of `size` labels, as a statistic of sums.

    It takes flattened tables of shape (..., size * size) and gives (..., 2).
    """

    def metrics(sums: Floats) -> Floats:
        tables = np.asarray(sums, dtype=np.float64).reshape(*sums.shape[:-1], size, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            totals = tables.sum(axis=(-2, -1))
            # Of counts, not of shares: full agreement is exactly 1.
            raw = np.trace(tables, axis1=-2, axis2=-1) / totals
            shares = tables / totals[..., np.newaxis, np.newaxis]
            chance = (shares.sum(axis=-1) * shares.sum(axis=-2)).sum(axis=-1)
            # A rater with one label for all agrees as chance does: exactly, in every resample.
            beyond = np.where(np.abs(raw - chance) < 1e-12, 0.0, raw - chance)
            kappa = np.where(chance < 1.0 - 1e-12, beyond / (1.0 - chance), np.nan)
        return np.stack([raw, kappa], axis=-1)

    return metrics


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha over `n` things; NaN without things, or where all labels are one.

    `interval` is (low, high), or None where it cannot be had.
    """

    n: int
    value: float
    interval: tuple[float, float] | None = None


def krippendorff_alpha(
    labels: Sequence[Sequence[Hashable]],
    *,
    clusters: Sequence[Hashable],
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Alpha:
    """Agreement of any number of raters beyond chance, for labels without an order.

    `labels` holds the labels that each thing got, from any raters; things with fewer than two are
    left out. `clusters` names the image of each thing: the interval is resampled by cluster.

    >>> round(krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"]], clusters=[1, 2, 3]).value, 3)
    0.444

    Raises:
        UsageError: there are not as many clusters as things.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
    """
    _check_pairs(labels, clusters)
    rated = [(row, owner) for row, owner in zip(labels, clusters, strict=True) if len(row) > 1]
    names = {label: i for i, label in enumerate(dict.fromkeys(x for row, _ in rated for x in row))}
    owners = {owner: i for i, owner in enumerate(dict.fromkeys(owner for _, owner in rated))}
    size = len(names)
    if not rated or size < 2:
        return Alpha(len(rated), math.nan)
    tables = np.zeros((len(owners), size, size))
    for row, owner in rated:
        for x, y in permutations(row, 2):
            tables[owners[owner], names[x], names[y]] += 1.0 / (len(row) - 1)
    flat = tables.reshape(len(owners), size * size)
    value = float(alpha_statistic(size)(flat.sum(axis=0))[0])
    ends = _pair(intervals(flat, alpha_statistic(size), resampling=resampling), 0)
    return Alpha(len(rated), value, _within_reach(ends))


def alpha_statistic(size: int) -> Statistic:
    """Krippendorff's alpha of coincidence tables of `size` labels, as a statistic of sums.

    It takes flattened tables of shape (..., size * size) and gives (..., 1).
    """

    def metric(sums: Floats) -> Floats:
        tables = np.asarray(sums, dtype=np.float64).reshape(*sums.shape[:-1], size, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            totals = tables.sum(axis=(-2, -1))
            observed = totals - np.trace(tables, axis1=-2, axis2=-1)
            margins = tables.sum(axis=-1)
            expected = (totals**2 - (margins**2).sum(axis=-1)) / (totals - 1.0)
            alpha = np.where(expected > 0, 1.0 - observed / expected, np.nan)
        return alpha[..., np.newaxis]

    return metric


def fleiss_kappa(counts: ArrayLike) -> float:
    """Agreement of several raters beyond chance.

    `counts` has the shape (n_things, n_labels): how many raters gave each label. Things that fewer
    than two raters labelled are left out; numbers of raters may differ.

    >>> round(fleiss_kappa([[3, 0], [0, 3], [2, 1]]), 3)
    0.55

    Source: Fleiss 1971; for uneven numbers of raters, each thing's agreement counts alike.
    """
    table = np.asarray(counts, dtype=np.float64)
    raters = table.sum(axis=1)
    table, raters = table[raters >= 2], raters[raters >= 2]
    if raters.size == 0:
        return math.nan
    observed = float((((table**2).sum(axis=1) - raters) / (raters * (raters - 1.0))).mean())
    chance = float(((table.sum(axis=0) / raters.sum()) ** 2).sum())
    return (observed - chance) / (1.0 - chance) if chance < 1.0 else math.nan


def pearson(x: ArrayLike, y: ArrayLike) -> tuple[float, int]:
    """The linear correlation and the number of pairs.

    >>> pearson([1, 2, 3], [2, 4, 6])
    (1.0, 3)
    """
    first, second = _pairs(x, y)
    return _product_moment(first, second), first.size


def spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, int]:
    """The correlation of ranks (ties share their average rank) and the number of pairs.

    >>> spearman([1, 2, 3, 4], [1, 4, 9, 16])
    (1.0, 4)
    """
    first, second = _pairs(x, y)
    if not _known(first, second):
        return math.nan, first.size
    return _product_moment(average_ranks(first), average_ranks(second)), first.size


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> tuple[float, int]:
    """Concordant less discordant pairs, corrected for ties, and the number of points.

    >>> kendall_tau_b([1, 2, 3], [1, 3, 2])
    (0.3333333333333333, 3)
    """
    first, second = _pairs(x, y)
    if not _known(first, second):
        return math.nan, first.size
    signs_x = np.sign(first[:, np.newaxis] - first)
    signs_y = np.sign(second[:, np.newaxis] - second)
    untied = math.sqrt(float(np.abs(signs_x).sum()) * float(np.abs(signs_y).sum()))
    return (float((signs_x * signs_y).sum()) / untied if untied else math.nan), first.size


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1; equal values share the average of the ranks that they take up.

    Values are equal where they agree in 12 digits: the rest is rounding.

    >>> average_ranks([10, 30, 10]).tolist()
    [1.5, 3.0, 1.5]
    """
    rounded = _rounded(np.asarray(values, dtype=np.float64))
    _, place, sizes = np.unique(rounded, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2.0)[place], dtype=np.float64)


def fisher_interval(r: float, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """The interval of a Pearson correlation by Fisher's z; None for fewer than 4 pairs.

    >>> low, high = fisher_interval(0.9155, 5)
    >>> round(low, 2), round(high, 2)
    (0.17, 0.99)
    """
    if n < 4 or math.isnan(r):
        return None
    if abs(r) >= 1.0:
        return r, r
    half = normal_quantile(0.5 + level / 2.0) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def pearson_p(r: float, n: int) -> float:
    """The two-sided p value of a Pearson correlation of normal data, by Student's t.

    >>> round(pearson_p(0.172, 503), 5)
    0.00011
    """
    if n < 3 or math.isnan(r):
        return math.nan
    if abs(r) >= 1.0:
        return 0.0
    return t_two_sided(r * math.sqrt((n - 2) / (1.0 - r * r)), n - 2.0)


def permutation_p(
    x: ArrayLike, y: ArrayLike, *, kind: Kind = "pearson", draws: int = 9999, seed: int = 0
) -> float:
    """The two-sided p value of a correlation: how often shuffled pairs correlate as much.

    All permutations up to 8 pairs, so that the value is exact; above, (k + 1) / (draws + 1) of
    seeded random ones. Few pairs set a floor: five models in perfect order have 2 / 120.

    >>> round(permutation_p([1, 2, 3, 4, 5], [2, 3, 5, 8, 9], kind="spearman"), 4)
    0.0167
    """
    first, second = _pairs(x, y)
    n = first.size
    if n < 2 or not _known(first, second) or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return math.nan
    if kind == "spearman":
        first, second = average_ranks(first), average_ranks(second)

    def strength(orders: NDArray[np.int64]) -> Floats:
        """What the absolute correlation is proportional to, for each order of `second`."""
        if kind != "kendall":
            return np.asarray(np.abs((second - second.mean())[orders] @ (first - first.mean())))
        signs_x, signs_y = (np.sign(v[:, np.newaxis] - v) for v in (first, second))
        shuffled = signs_y[orders[:, :, np.newaxis], orders[:, np.newaxis, :]]
        return np.asarray(np.abs((shuffled * signs_x).sum(axis=(1, 2))))

    observed = float(strength(np.arange(n)[np.newaxis])[0]) * (1.0 - 1e-12)
    if n <= ALL_PERMUTATIONS_UP_TO:
        orders = np.array(list(permutations(range(n))))
        return float((strength(orders) >= observed).mean())
    rng, found = np.random.default_rng(seed), 0
    for start in range(0, draws, _BLOCK):
        order = np.tile(np.arange(n), (min(_BLOCK, draws - start), 1))
        found += int((strength(rng.permuted(order, axis=1)) >= observed).sum())
    return (found + 1) / (draws + 1)


def mcnemar_p(gained: int, lost: int) -> float:
    """The exact two-sided p value that changes of verdict go either way with the same chance.

    `gained` counts the probes that only the second run has right, `lost` those that only the first
    has. Probes count as independent.

    >>> round(mcnemar_p(4, 0), 6)
    0.125

    Source: McNemar 1947, in the exact binomial form.
    """
    n, least = gained + lost, min(gained, lost)
    if n == 0:
        return 1.0
    if 2 * least == n:
        return 1.0
    # The chance of at most `least` of n is the upper tail of a Beta variate.
    return min(1.0, 2.0 * (1.0 - beta_cdf(0.5, least + 1.0, float(n - least))))


def r_squared(x: ArrayLike, y: ArrayLike) -> float:
    """The share of the variance of `y` that a straight line on `x` explains.

    >>> r_squared([1, 2, 3], [3, 5, 7])
    1.0
    """
    return pearson(x, y)[0] ** 2


@dataclass(frozen=True, slots=True)
class Slope:
    """A line fitted by least squares to `n` points; low and high bound the slope (NaN: unknown)."""

    slope: float
    intercept: float
    low: float
    high: float
    n: int


def slope(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Slope:
    """The straight line of `y` on `x`, with the t interval of its slope.

    >>> found = slope([0, 1, 2, 3], [1.0, 3.1, 4.9, 7.0])
    >>> round(found.slope, 2), round(found.low, 2), round(found.high, 2)
    (1.98, 1.8, 2.16)
    """
    first, second = _pairs(x, y)
    n = first.size
    spread = float(((first - first.mean()) ** 2).sum()) if n else 0.0
    if spread == 0.0:
        return Slope(math.nan, math.nan, math.nan, math.nan, n)
    rise = float(((first - first.mean()) * (second - second.mean())).sum()) / spread
    start = float(second.mean()) - rise * float(first.mean())
    if n < 3:
        return Slope(rise, start, math.nan, math.nan, n)
    residuals = second - start - rise * first
    error = math.sqrt(float((residuals**2).sum()) / (n - 2) / spread)
    half = t_quantile(level, n - 2.0) * error
    return Slope(rise, start, rise - half, rise + half, n)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """One bar of a reliability diagram: `n` answers with a confidence in [low, high).

    `confidence` and `accuracy` are means over the bin, NaN where it is empty. The last bin holds
    a confidence of 1 too.
    """

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The bins of a reliability diagram and the expected calibration error (NaN without data)."""

    bins: tuple[CalibrationBin, ...]
    ece: float


def calibration(probabilities: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> Calibration:
    """How well confidences in 0..1 match what turned out right, in bins of equal width.

    >>> calibration([0.9, 0.8, 0.9, 0.8], [1, 1, 1, 0], bins=2).ece.__round__(3)
    0.1

    Raises:
        UsageError: a confidence lies outside 0..1, or the lengths differ.
    """
    sure, right = _pairs(probabilities, correct)
    if sure.size and not (sure.min() >= 0.0 and sure.max() <= 1.0):
        raise UsageError("a confidence lies outside 0..1", hint="give probabilities, not percents")
    place = np.minimum((sure * bins).astype(np.int64), bins - 1)
    found = []
    for i in range(bins):
        inside = place == i
        n = int(inside.sum())
        means = [float(v[inside].mean()) if n else math.nan for v in (sure, right)]
        found.append(CalibrationBin(i / bins, (i + 1) / bins, n, *means))
    gaps = [b.n * abs(b.accuracy - b.confidence) for b in found if b.n]
    return Calibration(tuple(found), sum(gaps) / sure.size if sure.size else math.nan)


def _check_pairs(a: Sequence[Hashable], b: Sequence[Hashable]) -> None:
    if len(a) != len(b):
        raise UsageError(
            f"{len(a)} values cannot be paired with {len(b)}", hint="give one pair a thing"
        )


def _pairs(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two lists of numbers to be held against each other, rounded to 12 digits."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise UsageError(
            f"values of shapes {first.shape} and {second.shape} cannot be paired",
            hint="give two lists of the same length",
        )
    return _rounded(first), _rounded(second)


def _rounded(values: Floats) -> Floats:
    """The values without the last digits, in which equal numbers differ after arithmetic."""
    known = values[np.isfinite(values)]
    largest = float(np.abs(known).max()) if known.size else 0.0
    if largest == 0.0:
        return values
    return np.round(values, _DIGITS - 1 - math.floor(math.log10(largest)))


def _known(x: Floats, y: Floats) -> bool:
    return bool(np.isfinite(x).all() and np.isfinite(y).all())


def _product_moment(x: Floats, y: Floats) -> float:
    if x.size < 2 or not _known(x, y) or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return math.nan
    a, b = x - x.mean(), y - y.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    r = float((a * b).sum()) / math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return max(-1.0, min(1.0, r))


def _confusions(
    a: Sequence[Hashable], b: Sequence[Hashable], clusters: Sequence[Hashable]
) -> tuple[Floats, int]:
    """Confusion tables by cluster, flattened to (n_clusters, size * size), and the size."""
    _check_pairs(a, clusters)
    labels = {label: i for i, label in enumerate(dict.fromkeys([*a, *b]))}
    owners = {owner: i for i, owner in enumerate(dict.fromkeys(clusters))}
    size = len(labels)
    tables = np.zeros((len(owners), size, size))
    for x, y, owner in zip(a, b, clusters, strict=True):
        tables[owners[owner], labels[x], labels[y]] += 1.0
    return tables.reshape(len(owners), size * size), size


def _within_reach(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """The interval of a kappa without the part beyond -1 and 1, where no kappa lies."""
    return None if ends is None else (max(-1.0, ends[0]), min(1.0, ends[1]))


def _pair(found: Intervals, metric: int) -> tuple[float, float] | None:
    low, high = float(found.low[metric]), float(found.high[metric])
    return None if math.isnan(low) or math.isnan(high) else (low, high)
