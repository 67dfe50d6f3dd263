"""Intervals and paired comparisons for metrics of images, resampled by cluster.

A *tally* is an array `counts` of shape (n_clusters, n_columns): one row an image, its probes,
correct verdicts, tokens and so on. A *statistic* takes column sums of shape (..., n_columns) and
gives metrics of shape (..., n_metrics), NaN where a denominator is zero. A metric of a resample is
therefore the statistic of one matrix product, and all runs share the resamples.

The interval is the studentised bootstrap (Efron and Tibshirani 1993, section 12.5): each resample
carries its own standard error, from the gradient of the statistic and the resampled second moments
of the columns. It was chosen by measurement: 2,000 repetitions at 40 images, simulated captioners
from middling to strong with heavy-tailed lengths, nominal 95%:

                        percentile   BCa    BCa with t quantiles   studentised
    effective_acc         91-93      92-93        93-94               94-95
    tokens_per_image      91-93      91-93        92-94               93-94
    global_density        91-92      90-91        92                  94
    score                 91-94      91-95        93-96               93-96
    density_cv            56-78      68-83        69-85               79-89

At 346 images all of them give 93 to 97, but for the density CV (80-90, 84-92, 84-93, 89-94), which
no bootstrap knows at such tails: reports mark it. `benchmarks/coverage_table.py` prints the table
of what is built here. Two mendings, both measured:

- To the squared standard error of a resample 1/n of the observed one is mixed in (n clusters),
  else a resample without spread gives an interval without end.
- A rate whose clusters are nearly all or nothing (a gate, one question an image, a rate near 0 or
  1) is too discrete for the studentised bootstrap, which there covers 34 to 98 of 100. It gets a t
  interval on the logit scale (94 to 98). Where few clusters fall short, only the limit near 1 can
  miss the truth and gets the whole chance of an error (else 98.7 for a rate of 0.96 at 40 images,
  now 96.3). Where no cluster falls short, the data show no design effect. It is borrowed from the
  case with one trial wrong (the idea of Korn and Graubard 1998), so that the limit never falls when
  one more trial is right; the exact binomial bound with one trial a cluster stands in where it is
  narrower. Where all clusters agree on another rate, the limits are Clopper and Pearson's.
- Clusters of unequal size count as fewer: degrees of freedom and the mark `few` use the effective
  number (Kish 1965). Under 8 clusters, a number that is no rate gets a t interval.

The paired comparison is a t test on the difference of the influence that each cluster has on the
two metrics. Of 2,000 comparisons of equals at a nominal 5% it calls 4.0 to 6.0% different at 40
and at 346 images; the exceptions, both at 40, are the density CV (up to 7.7) and item rates near 1
(3.0). Swapping clusters between the runs at random calls 0.4 to 5.9% different, few where verdicts
are coarse, and a symmetric studentised bootstrap 2.2 to 6.0%. Where few clusters differ between the
runs, two clusters more, one that differs each way, keep the interval from being too short (Bonett
and Price 2012). Where none differs, the interval is what a share of clusters that none of n showed
may be: 1 - 0.025 ** (1 / n) each way. `stats.multiple` adjusts many comparisons together.

A difference of two rates, such as the reliability gap, gets its limits from theirs. The bootstrap
sees no sign that a gate can shut where all images of a sample pass, and has hardly any lattice
left where few fail: of 1,500 studies with a true gate pass of 0.95 it held the truth in 74% at 15
images and in 85% at 40; from the limits of the two rates it is 92 and 94%, and for gates from 0.28
to 0.87 it is 95 to 98% (the bootstrap 86 to 98). The gate's limits share the chance of an error
evenly there: a near limit with all of it lost one point and a half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snellen.errors import UsageError
from snellen.stats.differences import Limits, combined_limits
from snellen.stats.distributions import beta_quantile, t_quantile, t_two_sided

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
# By place of a metric, the places and weights of the rates that it is the sum of.
Combined = Mapping[int, Mapping[int, float]]

FEW_CLUSTERS: Final = 20
# With fewer clusters than this, and fewer than a quarter of all, that fall short (or stand out), a
# rate is so near 1 (or 0) that the limit on its far side can hardly miss the truth; the limit on
# the near side then gets the whole chance of an error.
_FEW_OFF: Final = 10
# Under so many clusters the bootstrap knows too little of a metric that is no rate.
_FEW_FOR_BOOTSTRAP: Final = 8
_BLOCK_ELEMENTS: Final = 500_000  # 4 MB while a block is drawn
_KEPT_ELEMENTS: Final = 10_000_000
LEAST_RESAMPLES: Final = 2_000
_MOST_DRAWS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Resampling:
    """How often to resample, the two-sided confidence level, and the seed of the resamples."""

    resamples: int = 10_000
    level: float = 0.95
    seed: int = 0


DEFAULT_RESAMPLING: Final = Resampling()


@dataclass(frozen=True, slots=True)
class Intervals:
    """A metric's estimate and interval, arrays of shape (n_metrics,); NaN means none.

    `n_clusters` are the clusters that have a value of their own for the metric (a category may
    occur in few images), `n_effective` is their number had they all the same size, and
    `n_left_out` counts the resamples in which the metric had no value.
    """

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    n_clusters: NDArray[np.int64]
    n_left_out: NDArray[np.int64]
    n_resamples: int
    n_effective: Floats

    @property
    def few(self) -> NDArray[np.bool_]:
        """Where fewer than 20 effective clusters stand behind an interval: read it with care."""
        return np.asarray(self.n_effective < FEW_CLUSTERS - 1e-9, dtype=np.bool_)


def intervals(
    counts: ArrayLike,
    statistic: Statistic,
    *,
    rates: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    combined: Combined | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Intervals:
    """Estimates and intervals of all metrics of a tally, resampled by cluster.

    `rates` says which metrics are fractions of 1, shape (n_metrics,); None: none is. Rates are cut
    to 0..1 and get an interval even where all clusters agree. `sizes` counts the trials behind each
    metric by cluster, shape (n_clusters, n_metrics); None: one a cluster. `combined` maps a metric
    to the rates that it is a weighted sum of (by place and weight): it gets its limits from theirs.
    Another metric without spread, or one that fewer than two clusters know, gets none.

    >>> tally = np.array([[10, 7], [20, 15], [15, 9], [12, 10]])
    >>> found = intervals(tally, lambda sums: sums[..., 1:] / sums[..., :1], rates=[True])
    >>> found.estimate.round(3), bool(found.low[0] < 0.719 < found.high[0])
    (array([0.719]), True)

    Raises:
        UsageError: the tally is no table of finite numbers.
    """
    rows = _checked(counts)
    jackknife = _jackknife(rows, statistic, sizes)
    is_rate = _rate_mask(rates, jackknife.estimate)
    values, errors = _bootstrap(rows, statistic, resampling)
    scaled = _studentised(values, errors, jackknife)
    low, high = _studentised_interval(scaled, jackknife, resampling.level)
    low, high = (
        np.where(is_rate, np.maximum(low, 0.0), low),
        np.where(is_rate, np.minimum(high, 1.0), high),
    )
    n = jackknife.n_clusters
    for k in map(int, np.flatnonzero(~is_rate & (n >= 2) & (n < _FEW_FOR_BOOTSTRAP))):
        half = t_quantile(resampling.level, n[k] - 1.0) * jackknife.error[k]
        low[k], high[k] = jackknife.estimate[k] - half, jackknife.estimate[k] + half
    coarse = is_rate & _coarse(jackknife, errors)
    for k in map(int, np.flatnonzero(coarse)):
        low[k], high[k] = _coarse_interval(jackknife, k, resampling.level)
    needs_spread = ~is_rate

    def limits(k: int) -> Limits:
        estimate, ends = float(jackknife.estimate[k]), (low[k], high[k])
        if n[k] < 2:
            ends = _lone_interval(estimate, resampling.level)
        elif coarse[k]:
            ends = _coarse_interval(jackknife, k, resampling.level, is_even=True)
        return Limits(ends[0], estimate, ends[1])

    for k, terms in (combined or {}).items():
        known = {place: w for place, w in terms.items() if np.isfinite(jackknife.estimate[place])}
        parts = [(weight, limits(place)) for place, weight in known.items()]
        low[k], high[k] = combined_limits(parts, _correlations(jackknife.influence[:, list(known)]))
        needs_spread[k] = False
    unknown = (needs_spread & ~jackknife.spread) | (jackknife.n_clusters < 2)
    return Intervals(
        estimate=jackknife.estimate,
        low=np.where(unknown, np.nan, low),
        high=np.where(unknown, np.nan, high),
        standard_error=np.where(jackknife.n_clusters < 2, np.nan, jackknife.error),
        n_clusters=jackknife.n_clusters,
        n_left_out=np.isnan(values).sum(axis=0),
        n_resamples=resampling.resamples,
        n_effective=jackknife.n_effective,
    )


def resamples_for(n_clusters: int, wanted: int = 10_000) -> int:
    """How many resamples a tally of so many clusters gets: fewer above 1,000 clusters.

    Each resample of many clusters says more, and costs more.

    >>> resamples_for(346), resamples_for(3000), resamples_for(20_000)
    (10000, 3333, 2000)
    """
    return min(wanted, max(LEAST_RESAMPLES, _MOST_DRAWS // max(n_clusters, 1)))


def resample(
    counts: ArrayLike, statistic: Statistic, *, resampling: Resampling = DEFAULT_RESAMPLING
) -> Floats:
    """The metrics of every resample, shape (resamples, n_metrics).

    Tallies of equally many clusters are resampled alike, so that differences pair up.
    """
    rows = _checked(counts)
    blocks = _weights(rows.shape[0], resampling)
    return np.concatenate([statistic(block.astype(np.float64) @ rows) for block in blocks])


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
    tables = [_checked(table) for table in counts]
    for table in tables[1:]:
        if table.shape != tables[0].shape:
            raise UsageError(
                f"tallies of shapes {tables[0].shape} and {table.shape} cannot be paired",
                hint="give both runs the same images in the same order",
            )
    used = {number for pair in pairs for number in pair}
    found = {number: _jackknife(tables[number], statistic) for number in used}
    return tuple(_paired_difference(found[a], found[b], level, reach) for a, b in pairs)


def _paired_difference(
    a: _Jackknife, b: _Jackknife, level: float, reach: ArrayLike | None
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
        difference, low, high, error, p_value, _count(known), _count(differs), influence
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
    middle = difference
    if math.isfinite(most) and 0 < pair.moved.size < min(_FEW_OFF, n / 2):
        # Two clusters more, as different as the most different one, one each way.
        most_moved = float(np.abs(pair.moved).max())
        total = n + 2.0
        middle = difference * n / total
        squares = float((pair.moved**2).sum()) + 2.0 * most_moved**2
        error = max(error, math.sqrt(max(0.0, squares / total - middle**2) / total))
    half = t_quantile(level, n - 1.0) * error
    return t_two_sided(middle / error, n - 1.0), middle - half, middle + half, error


def holm(p_values: ArrayLike) -> Floats:
    """P values adjusted for being many, in the same order; NaN is no test and stays NaN.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]

    Source: Holm 1979, a simple sequentially rejective multiple test procedure.
    """
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    return adjusted


def rank_probabilities(
    runs: Sequence[ArrayLike],
    statistic: Statistic,
    *,
    metric: int = 0,
    lower_is_better: bool = False,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Floats:
    """How often each run (row) takes each rank (column, best first) over shared resamples.

    Shape (n_runs, n_runs); rows and columns sum to 1. Tied runs share the ranks they tie for.
    Resamples in which a run has no value are left out.

    >>> tally = np.array([[10.0, 7.0], [20.0, 15.0], [15.0, 9.0]])
    >>> worse = tally - [0.0, 3.0]
    >>> rank_probabilities([worse, tally], lambda sums: sums[..., 1:] / sums[..., :1]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    tables = [_checked(run) for run in runs]
    if len({table.shape for table in tables}) != 1:
        raise UsageError("runs of different shapes cannot be ranked", hint="use the same images")
    drawn = [resample(table, statistic, resampling=resampling) for table in tables]
    values = np.stack([table[:, metric] for table in drawn], axis=1)
    values = values[~np.isnan(values).any(axis=1)] * (-1.0 if lower_is_better else 1.0)
    above = (values[:, np.newaxis, :] > values[:, :, np.newaxis]).sum(axis=2)
    level = (values[:, np.newaxis, :] == values[:, :, np.newaxis]).sum(axis=2)
    ranks = np.arange(len(tables))
    shares = (ranks >= above[..., np.newaxis]) & (ranks < (above + level)[..., np.newaxis])
    return np.asarray((shares / level[..., np.newaxis]).mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Jackknife:
    """What leaving out one cluster at a time tells.

    `influence` has the shape (n_clusters, n_metrics) and sums to 0; its mean square over n is the
    squared standard error. `spread` is false where no cluster changes the metric. `own` is the
    metric of each cluster alone, NaN where the cluster does not know it (`known`). `trials` counts
    what stands behind each metric, `n_effective` the clusters had they all the same size.
    """

    estimate: Floats
    influence: Floats
    error: Floats
    spread: NDArray[np.bool_]
    own: Floats
    known: NDArray[np.bool_]
    trials: Floats
    n_effective: Floats

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        return _count(self.known)


def _checked(counts: ArrayLike) -> Floats:
    rows = np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] == 0 or not np.isfinite(rows).all():
        raise UsageError(
            f"a tally of shape {rows.shape} is not a table of finite numbers",
            hint="give one row a cluster and one column a count",
        )
    return rows


def _jackknife(rows: Floats, statistic: Statistic, sizes: ArrayLike | None = None) -> _Jackknife:
    n, total = rows.shape[0], rows.sum(axis=0)
    estimate = np.asarray(statistic(total), dtype=np.float64)
    own = np.asarray(statistic(rows), dtype=np.float64)
    known = np.isfinite(own)
    size = np.where(known, 1.0 if sizes is None else np.asarray(sizes, dtype=np.float64), 0.0)
    trials = size.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.where(trials > 0.0, trials**2 / (size**2).sum(axis=0), 0.0)
    if n == 1:
        unknown = np.full_like(estimate, np.nan)
        flat = np.zeros(estimate.shape, dtype=np.bool_)
        influence = unknown[np.newaxis]
        return _Jackknife(estimate, influence, unknown, flat, own, known, trials, effective)
    left = statistic(total - rows)
    influence = (n - 1) * (left.mean(axis=0) - left)
    error = np.sqrt((influence**2).sum(axis=0) / (n * (n - 1)))
    spread = error > 1e-12 * np.maximum(np.abs(estimate), 1e-300)
    return _Jackknife(estimate, influence, error, spread, own, known, trials, effective)


def _count(known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many clusters know each metric, shape (n_metrics,)."""
    return np.asarray(known.sum(axis=0), dtype=np.int64)


def _rate_mask(rates: ArrayLike | None, estimate: Floats) -> NDArray[np.bool_]:
    if rates is None:
        return np.zeros(estimate.shape, dtype=np.bool_)
    return np.broadcast_to(np.asarray(rates, dtype=np.bool_), estimate.shape)


def _weights(n_clusters: int, resampling: Resampling) -> Iterator[NDArray[np.uint8]]:
    """How often each cluster occurs in each resample: blocks of shape (some, n_clusters).

    Small ones are kept, since breakdowns and runs share them.
    """
    drawing = (n_clusters, resampling.resamples, resampling.seed)
    if n_clusters * resampling.resamples <= _KEPT_ELEMENTS:
        return iter(_kept(*drawing))
    return _draw(*drawing)


@lru_cache(maxsize=4)
def _kept(n_clusters: int, resamples: int, seed: int) -> tuple[NDArray[np.uint8], ...]:
    return tuple(_draw(n_clusters, resamples, seed))


def _draw(n_clusters: int, resamples: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Bytes, since they may be kept: one would overflow where a cluster is drawn 256 times."""
    rng = np.random.default_rng([seed, n_clusters])
    step = max(1, _BLOCK_ELEMENTS // n_clusters)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, n_clusters, size=(size, n_clusters))
        drawn += np.arange(size)[:, np.newaxis] * n_clusters
        tally = np.bincount(drawn.ravel(), minlength=size * n_clusters)
        block = tally.reshape(size, n_clusters).astype(np.uint8)
        block.setflags(write=False)
        yield block


def _features(rows: Floats, moves: Floats) -> Floats:
    """The columns, then the products of all pairs of moves, in the order of `np.triu_indices`."""
    n_columns, n_moves = rows.shape[1], moves.shape[1]
    features = np.empty((rows.shape[0], n_columns + n_moves * (n_moves + 1) // 2))
    features[:, :n_columns] = rows
    at = n_columns
    # Written in place: of 3,000 clusters all pairs at once take 20 MB more.
    for k in range(n_moves):
        pairs = features[:, at : at + n_moves - k]
        np.multiply(moves[:, k:], moves[:, k : k + 1], out=pairs)
        at += n_moves - k
    return features


def _bootstrap(rows: Floats, statistic: Statistic, resampling: Resampling) -> tuple[Floats, Floats]:
    """The metrics of every resample and their standard errors, both (resamples, n_metrics)."""
    n, total = rows.shape[0], rows.sum(axis=0)
    centred = rows - rows.mean(axis=0)
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    first, second = np.triu_indices(moving.size)
    moves = centred[:, moving]
    features = _features(rows, moves)
    found = []
    for weights in _weights(n, resampling):
        sums = weights.astype(np.float64) @ features
        # Sums of the rows themselves: a column that a resample lacks must sum to exactly 0.
        resampled, products = sums[:, : total.size], sums[:, total.size :]
        shift = resampled[:, moving] - total[moving]
        moments = np.empty((sums.shape[0], moving.size, moving.size))
        moments[:, first, second] = moments[:, second, first] = products
        moments -= shift[:, :, np.newaxis] * shift[:, np.newaxis, :] / n
        gradient = _gradient(statistic, resampled, moving, moves)
        variance = (gradient * (moments @ gradient)).sum(axis=1) * n / max(n - 1, 1)
        found.append((statistic(resampled), np.sqrt(np.maximum(variance, 0.0))))
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _gradient(
    statistic: Statistic, sums: Floats, moving: NDArray[np.int64], moves: Floats
) -> Floats:
    """Central differences of the statistic by the columns that vary, (resamples, moving, metrics).

    The step is a thousandth of what resampling moves a column by.
    """
    steps = 1e-3 * np.sqrt((moves**2).sum(axis=0))
    slopes = []
    for column, step in zip(moving, steps, strict=True):
        shifted = sums.copy()
        shifted[:, column] += step
        above = statistic(shifted)
        shifted[:, column] = sums[:, column] - step
        slopes.append((above - statistic(shifted)) / (2.0 * step))
    if not slopes:
        return np.zeros((sums.shape[0], 0, statistic(sums).shape[-1]))
    return np.stack(slopes, axis=1)


def _studentised(values: Floats, errors: Floats, jackknife: _Jackknife) -> Floats:
    """How many of its own standard errors each resample lies off the estimate; NaN if unknown."""
    guard = 1.0 / np.maximum(jackknife.n_effective, 1.0)
    own = (errors**2 + guard * jackknife.error**2) / (1.0 + guard)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Floats = (values - jackknife.estimate) / np.sqrt(own)
    scaled[~np.isfinite(scaled)] = np.nan
    return scaled


def _studentised_interval(
    scaled: Floats, jackknife: _Jackknife, level: float
) -> tuple[Floats, Floats]:
    tail = (1.0 - level) / 2.0
    below, above = _quantiles(scaled, (tail, 1.0 - tail))
    low = jackknife.estimate - above * jackknife.error
    return low, jackknife.estimate - below * jackknife.error


def _quantiles(values: Floats, shares: tuple[float, float]) -> Floats:
    """Quantiles of each column without its NaNs, shape (2, n_columns); NaN for an empty column."""
    found = np.full((2, values.shape[1]), np.nan)
    for column in range(values.shape[1]):
        kept = values[:, column]
        kept = kept[~np.isnan(kept)]
        if kept.size:
            found[:, column] = np.quantile(kept, shares)
    return found


def _coarse(jackknife: _Jackknife, errors: Floats) -> NDArray[np.bool_]:
    """Metrics too discrete for the bootstrap: most clusters agree, or resamples have no spread."""
    flat = (errors < 1e-6 * jackknife.error).mean(axis=0) > 1e-3
    agree = np.array(
        [_mode_share(jackknife, m) > 0.5 or _few_off(jackknife, m) for m in range(flat.size)]
    )
    return np.asarray(flat | agree | ~jackknife.spread, dtype=np.bool_)


def _mode_share(jackknife: _Jackknife, metric: int) -> float:
    """The share of clusters that have the most common influence on a metric."""
    known = jackknife.influence[jackknife.known[:, metric], metric]
    if known.size == 0 or not np.isfinite(known).all():
        return 0.0
    scale = np.abs(known).max() or 1.0
    _, sizes = np.unique(np.rint(known / scale * 1e8), return_counts=True)
    return float(sizes.max() / known.size)


def _few_off(jackknife: _Jackknife, metric: int) -> bool:
    """Whether few clusters pull a metric to one side, against all others: a rate near 0 or 1."""
    known = jackknife.influence[jackknife.known[:, metric], metric]
    off = min((known < 0).sum(), (known > 0).sum())
    return bool(off < min(_FEW_OFF, known.size / 4))


def _coarse_interval(
    jackknife: _Jackknife, metric: int, level: float, *, is_even: bool = False
) -> tuple[float, float]:
    """A t interval on the logit scale; limits of counts where all clusters agree.

    With `is_even` both limits have the same chance of an error, however near 0 or 1 they are.
    """
    rate, n = float(jackknife.estimate[metric]), float(jackknife.n_effective[metric])
    if jackknife.n_clusters[metric] < 2 or math.isnan(rate):
        return math.nan, math.nan
    if not jackknife.spread[metric]:
        return _agreed_interval(rate, n, float(jackknife.trials[metric]), level)
    if not 0.0 < rate < 1.0:
        return math.nan, math.nan
    is_near_edge = _few_off(jackknife, metric)
    near = 2.0 * level - 1.0 if is_near_edge and not is_even else level
    low, high = _logit_interval(rate, float(jackknife.error[metric]), n, (level, near))
    trials = float(jackknife.trials[metric])
    if is_near_edge and trials > n + 1.0:
        # Two wrong trials must not give a better limit than one.
        bound = _one_off_limit(n, trials, level)
        low, high = (low, max(high, 1.0 - bound)) if rate < 0.5 else (min(low, bound), high)
    return low, high


def _logit_interval(
    rate: float, error: float, n: float, levels: tuple[float, float]
) -> tuple[float, float]:
    """A t interval on the logit scale with n - 1 degrees of freedom.

    `levels` are those of the limit on the side of one half and of the other one.
    """
    scaled = error / (rate * (1.0 - rate))
    middle = math.log(rate / (1.0 - rate))
    far, near = (t_quantile(level, max(1.0, n - 1.0)) * scaled for level in levels)
    if rate < 0.5:
        return _logistic(middle - near), _logistic(middle + far)
    return _logistic(middle - far), _logistic(middle + near)


def _agreed_interval(rate: float, n: float, trials: float, level: float) -> tuple[float, float]:
    """The limits of a rate on which all clusters agree, so that no design effect can be seen.

    For 0 and 1: the better of the exact bound with one trial a cluster, and the limit that one
    wrong trial would give. For a rate between: Clopper and Pearson's limits of all trials.
    """
    tail = (1.0 - level) / 2.0
    if rate in {0.0, 1.0}:
        bound = tail ** (1.0 / n)
        if trials > n + 1.0:
            bound = max(bound, _one_off_limit(n, trials, level))
        return (bound, 1.0) if rate == 1.0 else (0.0, 1.0 - bound)
    if not 0.0 < rate < 1.0:
        return math.nan, math.nan
    hits = rate * trials
    low = beta_quantile(tail, hits, trials - hits + 1.0)
    return low, beta_quantile(1.0 - tail, hits + 1.0, trials - hits)


def _lone_interval(rate: float, level: float) -> tuple[float, float]:
    """The limits of a rate that one cluster alone knows: nearly all is possible."""
    tail = (1.0 - level) / 2.0
    return 0.0 if rate < 1.0 else tail, 1.0 if rate > 0.0 else 1.0 - tail


def _one_off_limit(n: float, trials: float, level: float) -> float:
    """The lower limit where one trial of all in n clusters is wrong."""
    error = math.sqrt(n / (n - 1.0)) / trials if n > 1.0 else 1.0 / trials
    return _logit_interval(1.0 - 1.0 / trials, error, n, (level, level))[0]


def _correlations(moves: Floats) -> Floats:
    """How metrics move together over samples, from their influences (n, k): shape (k, k)."""
    moves = np.where(np.isfinite(moves), moves, 0.0)  # a lone cluster's part is alone, too
    sizes = np.sqrt((moves**2).sum(axis=0))
    safe = np.where(sizes > 0.0, sizes, 1.0)
    found: Floats = (moves / safe).T @ (moves / safe)
    np.fill_diagonal(found, 1.0)
    return found


def _logistic(x: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * x))
