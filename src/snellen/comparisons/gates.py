"""Release gates: whether the last run is worse than the first, or shown to be as good."""

from __future__ import annotations

from enum import Enum

from snellen.comparisons.results import Comparison, Effect, Ends, MetricComparison, PairDifference
from snellen.errors import ComparisonError, UsageError


class Gate(Enum):
    """What a comparison says about a release: `UNSETTLED` where it depends on unscored probes."""

    PASSED = "passed"
    FAILED = "failed"
    UNSETTLED = "unsettled"


def gate_worse(comparison: Comparison, metric: str, *, margin: float = 0.0) -> Gate:
    """Fail where the last run is significantly worse than the first, by more than `margin`.

    The margin is in the metric's own unit: 0.01 is one point of a rate. This pair is one test,
    chosen beforehand, so that its own interval decides, not the p value adjusted for all pairs.
    The strict difference and the one over probes scored in both runs must agree.

    Raises:
        UsageError: neither direction of the metric is better, or the margin is negative.
        ComparisonError: a run has no value, or there is one image only: nothing can be told.
    """
    found, pair = _gated_pair(comparison, metric, margin)

    def is_worse(effect: Effect, p: float | None) -> bool:
        if effect.difference is None:
            return False
        if effect.interval is None:
            certain = p is not None and p <= 1.0 - comparison.level
            return certain and -found.better * effect.difference > margin
        return min(-found.better * end for end in effect.interval) > margin

    strict = is_worse(Effect(pair.difference, pair.interval, pair.n_clusters), pair.p)
    if not pair.n_unscored:
        return Gate.FAILED if strict else Gate.PASSED
    scored = pair.on_scored is not None and is_worse(pair.on_scored, None)
    if strict != scored:
        return Gate.UNSETTLED
    return Gate.FAILED if strict else Gate.PASSED


def gate_as_good(comparison: Comparison, metric: str, *, margin: float) -> Gate:
    """Pass where the last run is shown to be no more than `margin` worse than the first.

    That is a test of non-inferiority: the interval's end on the worse side must lie above -margin,
    for the strict difference and for the one over probes scored in both runs.

    Raises:
        UsageError, ComparisonError: as for `gate_worse`.
    """
    found, pair = _gated_pair(comparison, metric, margin)

    def is_shown(interval: Ends | None) -> bool:
        return interval is not None and max(-found.better * end for end in interval) < margin

    scored = pair.on_scored is not None and is_shown(pair.on_scored.interval)
    if is_shown(pair.interval) and (scored or not pair.n_unscored):
        return Gate.PASSED
    return Gate.FAILED


def _gated_pair(
    comparison: Comparison, metric: str, margin: float
) -> tuple[MetricComparison, PairDifference]:
    found = comparison.metric(metric)
    pair = found.pair(comparison.runs[0].name, comparison.runs[-1].name)
    if found.better == 0:
        raise UsageError(
            f"a higher `{metric}` is neither better nor worse", hint="choose another metric"
        )
    if margin < 0.0:
        raise UsageError(f"a margin of {margin} is negative", hint="give 0 or more")
    if pair.difference is None or pair.p is None:
        raise ComparisonError(
            f"whether {pair.second} is worse than {pair.first} in `{metric}` cannot be told",
            hint="both runs need scored probes on two images at least",
        )
    return found, pair
