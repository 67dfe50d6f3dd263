"""What a comparison finds: runs, their values, differences of pairs, and flipped probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snellen.comparisons.comparable import Change
from snellen.comparisons.pairing import ProbeKey
from snellen.errors import UsageError

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Compared:
    """A run of a comparison: its name here, and how many of its compared probes are unscored."""

    name: str
    folder: str
    model: str
    judge: str
    probes: int
    unscored: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A run's strict value of a metric on the compared items; None where there is none.

    `ranks` are the shares of resamples of images in which the run is first, second and so on; empty
    where the metric has no better direction or some run no value. They are no chances of being the
    best: the leader of two equals gets 75% on average. `rank_set` are the best and the worst rank
    that the simultaneous intervals of the pairs leave open. `few` warns of fewer than 20 effective
    images.
    """

    run: str
    value: float | None
    interval: Ends | None
    few: bool
    ranks: tuple[float, ...] = ()
    rank_set: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference, second run minus first, in one part of the data; None where unknown."""

    difference: float | None
    interval: Ends | None
    n_clusters: int


@dataclass(frozen=True, slots=True)
class PairDifference:
    """How much higher the second run is than the first in one metric, in the metric's unit.

    `difference` compares strict values; `interval` and the two-sided `p` are its own. `p_adjusted`
    and `together` (an interval) hold for all metrics and pairs of the comparison together.
    `on_scored` is the same difference over the probes that both runs have scored, and `n_unscored`
    counts those left out there. `settled` says whether `p_adjusted` reaches 1 - level and
    `on_scored` points the same way with an interval off 0; `rests_on_unscored` whether the strict
    difference alone does. `detectable` is the smallest true difference that `n_clusters` such
    images show with a chance of 0.8 (None: unknown). `mcnemar` is the exact p value of McNemar's
    test over probes scored in both. `by` holds the effect for each label of each dimension.
    """

    first: str
    second: str
    difference: float | None
    interval: Ends | None
    p: float | None
    p_adjusted: float | None
    settled: bool
    n_clusters: int
    together: Ends | None = None
    on_scored: Effect | None = None
    n_unscored: int = 0
    rests_on_unscored: bool = False
    detectable: float | None = None
    mcnemar: float | None = None
    by: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric over all runs and pairs. `better` is +1, -1, or 0 where neither is better."""

    name: str
    unit: str
    better: int
    standings: tuple[Standing, ...]
    pairs: tuple[PairDifference, ...]

    def pair(self, first: str, second: str) -> PairDifference:
        """The difference of two runs, by their names in the order that they were given."""
        return next(p for p in self.pairs if (p.first, p.second) == (first, second))


@dataclass(frozen=True, slots=True)
class Flips:
    """Probes that both runs have scored, and differently; `unscored` are so in either run."""

    first: str
    second: str
    to_right: tuple[ProbeKey, ...]
    to_wrong: tuple[ProbeKey, ...]
    scored_in_both: int
    unscored: int
    probes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared in pairs.

    `changes` is what differs beside the model, `left_out` the ids of items that not all runs have,
    `notes` what to bear in mind.
    """

    benchmark: str
    protocol: str
    runs: tuple[Compared, ...]
    metrics: tuple[MetricComparison, ...]
    flips: tuple[Flips, ...]
    n_items: int
    n_clusters: int
    left_out: tuple[str, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    level: float
    resamples: int
    seed: int

    def metric(self, name: str) -> MetricComparison:
        """The comparison in one metric.

        Raises:
            UsageError: the metric was not compared.
        """
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise unknown_metric(name, [metric.name for metric in self.metrics])


def unknown_metric(name: str, available: Sequence[str]) -> UsageError:
    """The error for a metric that a comparison does not have."""
    return UsageError(
        f"these runs have no metric `{name}`", hint=f"there are: {', '.join(available)}"
    )
