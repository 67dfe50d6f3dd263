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
from snellen.stats.distributions import beta_quantile, t_quantile

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
# By place of a metric, the places and weights of the rates that it is the sum of.
Combined = Mapping[int, Mapping[int, float]]

FEW_CLUSTERS: Final = 20
# With fewer clusters than this, and fewer than a quarter of all, that fall short (or stand out), a
# rate is so near 1 (or 0) that the limit on its far side can hardly miss the truth; the limit on
# the near side then gets the whole chance of an error.
FEW_OFF: Final = 10
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
    rows = checked_rows(counts)
    jackknife = jackknife_of(rows, statistic, sizes)
    is_rate = np.broadcast_to(
        np.asarray(False if rates is None else rates, dtype=np.bool_), jackknife.estimate.shape
    )
    values, errors = _bootstrap(rows, statistic, resampling)
    low, high = _studentised_interval(values, errors, jackknife, resampling.level)
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
            tail = (1.0 - resampling.level) / 2.0
            ends = 0.0 if estimate < 1.0 else tail, 1.0 if estimate > 0.0 else 1.0 - tail
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
    rows = checked_rows(counts)
    blocks = _weights(rows.shape[0], resampling)
    return np.concatenate([statistic(block.astype(np.float64) @ rows) for block in blocks])


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
    tables = [checked_rows(run) for run in runs]
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
class Jackknife:
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
        """How many clusters know each metric."""
        return count_known(self.known)


def checked_rows(counts: ArrayLike) -> Floats:
    """A tally as a table of finite numbers.

    Raises:
        UsageError: the tally is none.
    """
    rows = np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] == 0 or not np.isfinite(rows).all():
        raise UsageError(
            f"a tally of shape {rows.shape} is not a table of finite numbers",
            hint="give one row a cluster and one column a count",
        )
    return rows


def jackknife_of(rows: Floats, statistic: Statistic, sizes: ArrayLike | None = None) -> Jackknife:
    """What leaving out one cluster at a time tells of each metric; `sizes` as in `intervals`."""
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
        return Jackknife(estimate, influence, unknown, flat, own, known, trials, effective)
    left = statistic(total - rows)
    influence = (n - 1) * (left.mean(axis=0) - left)
    error = np.sqrt((influence**2).sum(axis=0) / (n * (n - 1)))
    spread = error > 1e-12 * np.maximum(np.abs(estimate), 1e-300)
    return Jackknife(estimate, influence, error, spread, own, known, trials, effective)


def count_known(known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many clusters know each metric, shape (n_metrics,)."""
    return np.asarray(known.sum(axis=0), dtype=np.int64)


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


def _bootstrap(rows: Floats, statistic: Statistic, resampling: Resampling) -> tuple[Floats, Floats]:
    """The metrics of every resample and their standard errors, both (resamples, n_metrics)."""
    n, total = rows.shape[0], rows.sum(axis=0)
    centred = rows - rows.mean(axis=0)
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    first, second = np.triu_indices(moving.size)
    moves = centred[:, moving]
    # The columns, then the products of all pairs of moves, in the order of `np.triu_indices`.
    n_columns, n_moves = rows.shape[1], moves.shape[1]
    features = np.empty((rows.shape[0], n_columns + n_moves * (n_moves + 1) // 2))
    features[:, :n_columns] = rows
    at = n_columns
    # Written in place: of 3,000 clusters all pairs at once take 20 MB more.
    for k in range(n_moves):
        pairs = features[:, at : at + n_moves - k]
        np.multiply(moves[:, k:], moves[:, k : k + 1], out=pairs)
        at += n_moves - k
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


def _studentised_interval(
    values: Floats, errors: Floats, jackknife: Jackknife, level: float
) -> tuple[Floats, Floats]:
    guard = 1.0 / np.maximum(jackknife.n_effective, 1.0)
    own = (errors**2 + guard * jackknife.error**2) / (1.0 + guard)
    # How many of its own standard errors each resample lies off the estimate; NaN if unknown.
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Floats = (values - jackknife.estimate) / np.sqrt(own)
    scaled[~np.isfinite(scaled)] = np.nan
    tail = (1.0 - level) / 2.0
    # Quantiles of each column without its NaNs, shape (2, n_columns); NaN for an empty column.
    shares = (tail, 1.0 - tail)
    found = np.full((2, scaled.shape[1]), np.nan)
    for column in range(scaled.shape[1]):
        kept = scaled[:, column]
        kept = kept[~np.isnan(kept)]
        if kept.size:
            found[:, column] = np.quantile(kept, shares)
    below, above = found
    low = jackknife.estimate - above * jackknife.error
    return low, jackknife.estimate - below * jackknife.error


def _coarse(jackknife: Jackknife, errors: Floats) -> NDArray[np.bool_]:
    """Metrics too discrete for the bootstrap: most clusters agree, or resamples have no spread."""
    flat = (errors < 1e-6 * jackknife.error).mean(axis=0) > 1e-3
    agree = np.array(
        [_mode_share(jackknife, m) > 0.5 or _few_off(jackknife, m) for m in range(flat.size)]
    )
    return np.asarray(flat | agree | ~jackknife.spread, dtype=np.bool_)


def _mode_share(jackknife: Jackknife, metric: int) -> float:
    """The share of clusters that have the most common influence on a metric."""
    known = jackknife.influence[jackknife.known[:, metric], metric]
    if known.size == 0 or not np.isfinite(known).all():
        return 0.0
    scale = np.abs(known).max() or 1.0
    _, sizes = np.unique(np.rint(known / scale * 1e8), return_counts=True)
    return float(sizes.max() / known.size)


def _few_off(jackknife: Jackknife, metric: int) -> bool:
    """Whether few clusters pull a metric to one side, against all others: a rate near 0 or 1."""
    known = jackknife.influence[jackknife.known[:, metric], metric]
    off = min((known < 0).sum(), (known > 0).sum())
    return bool(off < min(FEW_OFF, known.size / 4))


def _coarse_interval(
    jackknife: Jackknife, metric: int, level: float, *, is_even: bool = False
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
