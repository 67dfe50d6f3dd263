"""Rates corrected for what the judge gets wrong.

Two ways, for two kinds of knowledge. A judge that was checked on material of known truth has error
rates: `rogan_gladen` (right or not) and `invert_confusion` (right, wrong, E) undo them, which is
fair as long as the judge errs on the run as it did on that material; `rates_differ` tests that. A
run of which people audited some verdicts needs no such assumption: `prediction_powered` adds to
the raw rate the mean error that the audit found.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snellen.errors import UsageError
from snellen.stats.bootstrap import DEFAULT_RESAMPLING, Resampling, intervals, resample
from snellen.stats.distributions import normal_quantile

Floats = NDArray[np.float64]

AUDIT_COLUMNS: Final = (
    "probes",
    "correct",
    "audited",
    "audited_correct",
    "audited_true",
    "audited_both",
)
READING_RATES: Final = (
    "overall_acc",
    "wrong_ratio",
    "uncertain_ratio",
    "effective_acc",
    "coverage",
)


# Two audited probes more, one disagreement each way, widen the interval of an audit that found few
# (Bonett and Price 2012). With 100 audited verdicts of a judge that is 98% right it covers the
# truth 99 times of 100, and without them 89; of a judge that is 86% right, 97 and 95.
_DISAGREEMENTS: Final = np.array([[0.0, 0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]])


@dataclass(frozen=True, slots=True)
class Corrected:
    """A raw rate, the corrected one, and the interval of the latter; NaN where there is none."""

    raw: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Trials:
    """`hits` out of `n` tries, for example true statements that a judge called true."""

    hits: float
    n: float

    @property
    def rate(self) -> float:
        """The share of hits; NaN without tries."""
        return self.hits / self.n if self.n else math.nan


def rogan_gladen(
    rate: float,
    standard_error: float,
    *,
    sensitivity: Trials,
    specificity: Trials,
    level: float = 0.95,
) -> Corrected:
    """The true rate behind the rate that an erring judge reports.

    `rate` is the share called right, with its standard error clustered by image. Of what is right,
    the judge calls a share `sensitivity` right; of what is not, a share `specificity` not right.
    The interval allows for the errors of all three. Where sensitivity + specificity - 1 may be 0
    by its own interval, the judge does not tell the two apart: no estimate (NaN), and an interval
    from 0 to 1.

    >>> found = rogan_gladen(0.7, 0.01, sensitivity=Trials(95, 100), specificity=Trials(80, 100))
    >>> round(found.estimate, 3), round(found.low, 2), round(found.high, 2)
    (0.667, 0.61, 0.73)

    Source: Rogan and Gladen 1978; the interval is that of Lang and Reiczigel 2014, with the number
    of independent probes that the standard error stands for.
    """
    z = normal_quantile(0.5 + level / 2.0)
    edge = sensitivity.rate + specificity.rate - 1.0
    if not _tells_apart(sensitivity, specificity, level):
        return Corrected(rate, math.nan, 0.0, 1.0)
    seen = _Softened.clustered(rate, standard_error, z)
    hit = _Softened.of((sensitivity.hits + 1.0) / (sensitivity.n + 2.0), sensitivity.n + 2.0)
    miss = _Softened.of((specificity.hits + 1.0) / (specificity.n + 2.0), specificity.n + 2.0)
    softened_edge = hit.rate + miss.rate - 1.0
    true = (seen.rate + miss.rate - 1.0) / softened_edge
    shift = 2.0 * z * z * (true * hit.variance - (1.0 - true) * miss.variance)
    variance = seen.variance + (1.0 - true) ** 2 * miss.variance + true**2 * hit.variance
    half = z * math.sqrt(variance) / softened_edge
    estimate = (rate + specificity.rate - 1.0) / edge
    return _corrected(rate, estimate, (true + shift - half, true + shift + half))


def _tells_apart(sensitivity: Trials, specificity: Trials, level: float) -> bool:
    """Whether sensitivity + specificity - 1 is above 0 beyond what few trials allow.

    Source: Newcombe 1998, limits of a sum of two rates from Wilson's limits of each.
    """
    if not sensitivity.n or not specificity.n:
        return False
    shortfalls = [
        one.rate - wilson(one.hits, one.n, level=level)[0] for one in (sensitivity, specificity)
    ]
    return sensitivity.rate + specificity.rate - 1.0 > math.hypot(*shortfalls)


def wilson(hits: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a rate of `hits` out of `n` independent tries, as (low, high).

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]

    Raises:
        ValueError: there are no tries.

    Source: Wilson (1927), as in Newcombe (1998), method 3.
    """
    if n <= 0:
        raise ValueError("there are no tries")
    z = normal_quantile(0.5 + level / 2.0)
    rate = hits / n
    middle = rate + z * z / (2.0 * n)
    half = z * math.sqrt(rate * (1.0 - rate) / n + z * z / (4.0 * n * n))
    return (middle - half) / (1.0 + z * z / n), (middle + half) / (1.0 + z * z / n)


@dataclass(frozen=True, slots=True)
class _Softened:
    """A rate drawn a little towards one half, and its variance."""

    rate: float
    variance: float

    @staticmethod
    def of(rate: float, n: float) -> _Softened:
        return _Softened(rate, rate * (1.0 - rate) / n)

    @staticmethod
    def clustered(rate: float, error: float, z: float) -> _Softened:
        n = rate * (1.0 - rate) / error**2 if error > 0.0 else math.inf
        if math.isinf(n):
            return _Softened(rate, 0.0)
        return _Softened.of((rate * n + z * z / 2.0) / (n + z * z), n + z * z)


def invert_confusion(
    verdicts: ArrayLike,
    confusion: ArrayLike,
    *,
    level: float = 0.95,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[str, Corrected]:
    """The true `READING_RATES` behind the verdicts of an erring judge.

    `verdicts` has the shape (n_images, 3): verdicts right, wrong and E of each image. `confusion`
    counts, on other material, what the judge said (columns) by what was true (rows), shape (3, 3).
    The interval resamples images and redraws the judge's error rates from what the counts allow.
    Where the counts allow a judge that does not tell the three truths apart, there is no estimate
    (NaN) and the interval is 0 to 1.

    >>> found = invert_confusion([[30, 10, 10], [25, 5, 20]], [[9, 1, 0], [1, 9, 0], [1, 2, 7]])
    >>> round(found["coverage"].raw, 2), round(found["coverage"].estimate, 2)
    (0.7, 0.57)

    Source: Rogan and Gladen 1978, for three classes: the inverse of the misclassification matrix.
    """
    tally, counts = np.asarray(verdicts, dtype=np.float64), np.asarray(confusion, dtype=np.float64)
    if counts.shape != (3, 3) or tally.ndim != 2 or tally.shape[1] != 3:
        raise UsageError(
            f"verdicts of shape {tally.shape} and a confusion of shape {counts.shape} do not fit",
            hint="both count right, wrong and E, in this order",
        )
    raw = _shares(tally.sum(axis=0))
    # A truth that the check never met leaves a row of zeros, which no inverse survives.
    chances = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    seen = resample(tally, _shares, resampling=resampling)
    n = seen.shape[0]
    rng = np.random.default_rng(resampling.seed)
    drawn = np.stack([rng.dirichlet(row + 0.5, size=n) for row in counts], axis=1)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    estimate = _rates(_solved(raw[np.newaxis], chances[np.newaxis]))[0]
    if np.quantile(np.linalg.det(drawn), tails[0]) <= 0.0:
        # The counts allow judges that do not tell the truths apart: nothing can be undone.
        return {
            name: Corrected(float(rate), math.nan, 0.0, 1.0)
            for name, rate in zip(READING_RATES, _rates(raw), strict=True)
        }
    unknown = np.isnan(estimate)
    allowed = np.where(unknown, 0.0, _rates(_solved(seen, drawn)))
    low, high = np.where(unknown, np.nan, np.nanquantile(allowed, tails, axis=0))
    values = zip(READING_RATES, _rates(raw), estimate, low, high, strict=True)
    return {
        name: _corrected(float(r), float(e), (float(lo), float(hi)))
        for name, r, e, lo, hi in values
    }


def _shares(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Floats = sums / sums.sum(axis=-1, keepdims=True)
    return shares


def _solved(seen: Floats, chances: Floats) -> Floats:
    """The true shares (n, 3) whose verdicts would be `seen`; NaN for judges that see nothing."""
    sees = np.abs(np.linalg.det(chances)) > 1e-6
    solved = np.full_like(seen, np.nan)
    turned = np.swapaxes(chances[sees], -1, -2)
    solved[sees] = np.linalg.solve(turned, seen[sees][..., np.newaxis])[..., 0]
    return solved


def _rates(shares: Floats) -> Floats:
    """`READING_RATES` of shares of right, wrong and E, (..., 3) to (..., 5), kept in 0..1."""
    right, wrong, absent = np.moveaxis(np.clip(shares, 0.0, 1.0), -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([right, wrong, absent, right / (right + wrong), 1.0 - absent], axis=-1)


def audit_tally(images: Sequence[Hashable], correct: ArrayLike, truth: ArrayLike) -> Floats:
    """The tally of `AUDIT_COLUMNS`, one row an image, from one entry a probe.

    `correct` is what the judge's verdict amounts to (1 right, 0 not); `truth` is what a person
    found, NaN where nobody looked.

    >>> audit_tally(["a", "a", "b"], [1, 0, 1], [1, np.nan, 0]).tolist()
    [[2.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]]
    """
    called, found = np.asarray(correct, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if not len(images) == called.size == found.size:
        raise UsageError("images, verdicts and truths differ in number", hint="give one a probe")
    audited = ~np.isnan(found)
    real = np.where(audited, found, 0.0)
    columns = [np.ones_like(called), called, audited, called * audited, real, called * real]
    owners = {image: i for i, image in enumerate(dict.fromkeys(images))}
    tally = np.zeros((len(owners), len(AUDIT_COLUMNS)))
    np.add.at(tally, [owners[image] for image in images], np.stack(columns, axis=-1))
    return tally


def prediction_powered(
    tally: ArrayLike, *, resampling: Resampling = DEFAULT_RESAMPLING
) -> Corrected:
    """The true rate from the raw verdicts on all probes and an audit of a random sample of them.

    `tally` has `AUDIT_COLUMNS`. The judge's verdicts are trusted as far as they follow the truth in
    the audit: a judge that does not help is ignored, and the rate is that of the audit alone.
    Images are resampled whole, audited probes and all, so that the interval is clustered.

    >>> tally = audit_tally(list("aabbccdd"), [1, 0, 1, 1, 0, 1, 1, 0], [1, 0, 1, 0, 0, 1, 1, 0])
    >>> prediction_powered(tally, resampling=Resampling(200)).estimate
    0.5

    Source: Angelopoulos and others 2023, Prediction-powered inference; the weight of the verdicts
    is that of its sequel PPI++ (power tuning).
    """
    rows = np.asarray(tally, dtype=np.float64)
    sums = rows.sum(axis=0)
    raw = float(sums[1] / sums[0]) if sums[0] else math.nan
    softened = np.concatenate([rows, _DISAGREEMENTS])
    found = intervals(softened, _powered_rate, rates=[True], resampling=resampling)
    estimate = float(_powered_rate(sums)[0])
    return _corrected(raw, estimate, (float(found.low[0]), float(found.high[0])))


def _powered_rate(sums: Floats) -> Floats:
    """The prediction-powered rate of sums of `AUDIT_COLUMNS`, (..., 6) to (..., 1)."""
    probes, correct, audited, called, true, both = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        called, true, both = called / audited, true / audited, both / audited
        variance = called * (1.0 - called)
        # The audited verdicts are part of the raw rate: the best weight is covariance / variance.
        weight = (both - called * true) / variance
        weight = np.clip(np.where(variance > 1e-12, weight, 1.0), 0.0, 1.0)
        rate = true + weight * (correct / probes - called)
    return np.where(np.isfinite(rate), rate, np.nan)[..., np.newaxis]


def rates_differ(check: Trials, audit: Trials) -> float:
    """The two-sided p value that a judge errs alike on the check's material and in the audit.

    Fisher's exact test; probes count as independent.

    >>> round(rates_differ(Trials(8, 10), Trials(1, 6)), 4)
    0.035

    Raises:
        UsageError: hits or tries are not whole numbers, or there are more hits than tries.
    """
    counts = (check.hits, check.n, audit.hits, audit.n)
    for value in counts:
        if value < 0 or value != int(value):
            raise UsageError(f"{value} is no count", hint="give whole numbers of verdicts")
    a, n, b, m = map(int, counts)
    if a > n or b > m:
        raise UsageError("there are more hits than tries", hint="give hits first, then tries")
    hits = a + b
    possible = range(max(0, hits - m), min(n, hits) + 1)
    logs = [_log_choose(n, k) + _log_choose(m, hits - k) for k in possible]
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    own = weights[a - possible.start] * (1.0 + 1e-9)
    return min(1.0, sum(w for w in weights if w <= own) / sum(weights))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _corrected(raw: float, estimate: float, ends: tuple[float, float]) -> Corrected:
    """A corrected rate within 0..1, in an interval that holds it; NaN stays NaN.

    Interval ends come from softened counts, which near 0 and 1 stop short of the estimate.
    """
    middle, low, high = np.clip([estimate, *ends], 0.0, 1.0)
    low, high = np.where(np.isnan([low, high]), np.nan, [min(low, middle), max(high, middle)])
    return Corrected(raw, float(middle), float(low), float(high))
