"""Runs compared in pairs on the same items: differences, their certainty, ranks, flipped probes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from snellen.comparisons.comparable import Change, NamedSpec, check_across, check_comparable
from snellen.comparisons.pairing import (
    Mask,
    ProbeKey,
    Side,
    align,
    line_up,
    matching_rows,
    narrowed,
    take_apart,
)
from snellen.errors import ComparisonError, UsageError
from snellen.metrics import Tally, reach
from snellen.protocols.rubric import GATE_FIRST_METRICS, METRICS
from snellen.runs.folder import Run
from snellen.stats import bootstrap as stats

POWER: Final = 0.8
MUCH_UNSCORED: Final = 0.05
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

    `ranks` are the chances of being first, second and so on, over resamples of images; empty where
    the metric has no better direction or some run no value. `few` warns of fewer than 20 images.
    """

    run: str
    value: float | None
    interval: Ends | None
    few: bool
    ranks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference, second run minus first, in one part of the data; None where unknown."""

    difference: float | None
    interval: Ends | None
    n_clusters: int


@dataclass(frozen=True, slots=True)
class PairDifference:
    """How much higher the second run is than the first in one metric, in the metric's unit.

    `p` is two-sided and paired by image, `p_adjusted` is Holm's over all pairs; `settled` says
    whether the latter reaches 1 - level. `more_images` beyond the `n_clusters` at hand would settle
    a difference of this size with a chance of 0.8; None where it is settled or no number would.
    `by` holds the effect for each label of each dimension.
    """

    first: str
    second: str
    difference: float | None
    interval: Ends | None
    p: float | None
    p_adjusted: float | None
    settled: bool
    more_images: int | None
    n_clusters: int
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
        raise _unknown_metric(name, [metric.name for metric in self.metrics])


def compare(
    runs: Iterable[Run],
    *,
    metrics: Sequence[str] | None = None,
    across: Collection[str] = (),
    common: bool = False,
    resampling: stats.Resampling = stats.DEFAULT_RESAMPLING,
) -> Comparison:
    """All pairs of runs compared on the same items, the later minus the earlier one.

    `metrics` are names; None: the main ones of the protocol. `across` holds the words (`judge`,
    `prompt`, `control`, `hint`, `data`) whose differences are the question. `common` leaves out
    items that not all runs have. Runs are read one after the other, so that an iterator of many
    large ones needs little memory.

    Raises:
        ComparisonError: runs differ in what makes their difference meaningless; it is named.
        UsageError: there are fewer than two runs, or a name is unknown.
    """
    check_across(across)
    sides = [take_apart(run) for run in runs]
    if len(sides) < 2:
        raise UsageError(
            f"a comparison needs two runs, not {len(sides)}", hint="give two or more run folders"
        )
    names = names_of(sides)
    changes = check_comparable(
        [NamedSpec(n, side.spec) for n, side in zip(names, sides, strict=True)], across=across
    )
    lined_up, left_out = line_up(sides, names, common=common)
    group = _Group(tuple(names), tuple(lined_up), resampling)
    cut = [side.tally() for side in lined_up]
    tallies = align(cut, _chosen_metrics(group, cut, metrics))
    return Comparison(
        benchmark=lined_up[0].spec.benchmark,
        protocol=lined_up[0].protocol.name,
        runs=tuple(_compared(n, side) for n, side in zip(names, lined_up, strict=True)),
        metrics=_compared_metrics(group, tallies),
        flips=tuple(_flips(group, a, b) for a, b in group.pairs),
        n_items=len({key.id for key in lined_up[0].probes}),
        n_clusters=tallies[0].n_clusters,
        left_out=left_out,
        changes=changes,
        notes=tuple(_notes(group, tallies[0], left_out)),
        level=resampling.level,
        resamples=resampling.resamples,
        seed=resampling.seed,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Runs that are lined up, with their names, and how they are resampled."""

    names: tuple[str, ...]
    sides: tuple[Side, ...]
    resampling: stats.Resampling

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Each earlier run with each later one, by number."""
        return list(combinations(range(len(self.sides)), 2))


@dataclass(frozen=True, slots=True)
class _Differences:
    """The paired differences of all pairs in one part of the data, for the metrics of `names`.

    None stands for a pair of which a run has nothing scored there: it has no value.
    """

    names: tuple[str, ...]
    pairs: tuple[stats.PairedDifference | None, ...]


_Parts = Mapping[str, Mapping[str, _Differences]]


def names_of(sides: Sequence[Side]) -> list[str]:
    """A name for each run that no other run has: the model's, else its folder's."""
    models = [side.spec.model.name for side in sides]
    for depth in range(1, 1 + max(len(side.folder.parts) for side in sides)):
        named = [
            name if models.count(name) == 1 else str(Path(*side.folder.parts[-depth:]))
            for name, side in zip(models, sides, strict=True)
        ]
        if len(set(named)) == len(named):
            return named
    return [
        name if models.count(name) == 1 else f"{name} #{number}"
        for number, name in enumerate(models, 1)
    ]


def _chosen_metrics(
    group: _Group, tallies: Sequence[Tally], wanted: Sequence[str] | None
) -> list[str]:
    """The names to compare: those wanted, or the protocol's main ones that all runs have."""
    own = [[metric.name for metric in tally.metrics] for tally in tallies]
    available = [name for name in own[0] if all(name in other for other in own)]
    if wanted is None:
        main = [metric.name for metric in group.sides[0].protocol.metrics if metric.is_main]
        return [name for name in main if name in available]
    for name in wanted:
        if name not in available:
            raise _unknown_metric(name, available)
    return list(dict.fromkeys(wanted))


def _unknown_metric(name: str, available: Sequence[str]) -> UsageError:
    return UsageError(
        f"these runs have no metric `{name}`", hint=f"there are: {', '.join(available)}"
    )


def _compared_metrics(group: _Group, tallies: Sequence[Tally]) -> tuple[MetricComparison, ...]:
    scored = [side.scored for side in group.sides]
    whole = _differences(group, tallies, [bool(mask.any()) for mask in scored])
    parts = _parts(group, whole.names)
    intervals = [
        tally.intervals(group.resampling) if mask.any() else None
        for tally, mask in zip(tallies, scored, strict=True)
    ]
    return tuple(
        MetricComparison(
            metric.name,
            metric.unit,
            metric.better,
            _standings(group, tallies, intervals, k=k),
            _pair_differences(group, whole, parts, k=k),
        )
        for k, metric in enumerate(tallies[0].metrics)
    )


def _differences(group: _Group, tallies: Sequence[Tally], scored: Sequence[bool]) -> _Differences:
    told = [
        pair for pair in group.pairs if all(scored[run] for run in pair) and tallies[0].n_clusters
    ]
    found = stats.compare_pairs(
        [tally.counts for tally in tallies] if told else [],
        tallies[0].statistic(),
        told,
        level=group.resampling.level,
    )
    lowest, highest = reach(tallies[0].metrics)
    most = highest - lowest
    by_pair = {
        pair: replace(one, low=np.maximum(one.low, -most), high=np.minimum(one.high, most))
        for pair, one in zip(told, found, strict=True)
    }
    names = tuple(metric.name for metric in tallies[0].metrics)
    return _Differences(names, tuple(by_pair.get(pair) for pair in group.pairs))


def _standings(
    group: _Group,
    tallies: Sequence[Tally],
    intervals: Sequence[stats.Intervals | None],
    *,
    k: int,
) -> tuple[Standing, ...]:
    ranks = None if None in intervals else _ranks(tallies, k, resampling=group.resampling)
    standings = []
    for run, (name, found) in enumerate(zip(group.names, intervals, strict=True)):
        if found is None:
            standings.append(Standing(name, None, None, tallies[0].n_clusters < stats.FEW_CLUSTERS))
            continue
        standings.append(
            Standing(
                name,
                _known(found.estimate[k]),
                _ends(found.low[k], found.high[k]),
                bool(found.few[k]),
                () if ranks is None else tuple(map(float, ranks[run])),
            )
        )
    return tuple(standings)


def _ranks(
    tallies: Sequence[Tally], k: int, *, resampling: stats.Resampling
) -> NDArray[np.float64] | None:
    """The chance of each rank (column) for each run (row); None where ranks mean nothing."""
    metric = tallies[0].metrics[k]
    values = [float(metric.value(tally.sums())) for tally in tallies]
    if metric.better == 0 or tallies[0].n_clusters < 2 or not all(map(math.isfinite, values)):
        return None
    cut = [narrowed(tally, metric.name) for tally in tallies]
    return stats.rank_probabilities(
        [tally.counts for tally in cut],
        cut[0].statistic(),
        lower_is_better=metric.better < 0,
        resampling=resampling,
    )


def _pair_differences(
    group: _Group, whole: _Differences, parts: _Parts, *, k: int
) -> tuple[PairDifference, ...]:
    p_values = [math.nan if pair is None else float(pair.p_value[k]) for pair in whole.pairs]
    adjusted = [float(p) for p in stats.holm(p_values)]
    return tuple(
        _pair_difference(
            group, number, (pair, k), p_adjusted=adjusted[number],
            by=_effects(parts, number, whole.names[k]),
        )
        for number, pair in enumerate(whole.pairs)
    )  # fmt: skip


def _pair_difference(
    group: _Group,
    number: int,
    found: tuple[stats.PairedDifference | None, int],
    *,
    p_adjusted: float,
    by: Mapping[str, Mapping[str, Effect]],
) -> PairDifference:
    a, b = group.pairs[number]
    effect = _effect(*found)
    settled = p_adjusted <= 1.0 - group.resampling.level
    pair, k = found
    return PairDifference(
        group.names[a],
        group.names[b],
        effect.difference,
        effect.interval,
        p=None if pair is None else _known(pair.p_value[k]),
        p_adjusted=_known(p_adjusted),
        settled=settled,
        more_images=None if settled else _more_images(group, *found),
        n_clusters=effect.n_clusters,
        by=by,
    )


def _more_images(group: _Group, pair: stats.PairedDifference | None, k: int) -> int | None:
    if pair is None:
        return None
    # Each of several pairs has to reach its share of the level, at worst.
    alpha = (1.0 - group.resampling.level) / len(group.pairs)
    more = stats.clusters_to_settle(
        float(pair.difference[k]),
        float(pair.standard_error[k]),
        int(pair.n_clusters[k]),
        power=POWER,
        alpha=alpha,
    )
    return None if more is None else max(1, more)


def _effect(pair: stats.PairedDifference | None, k: int) -> Effect:
    if pair is None:
        return Effect(None, None, 0)
    ends = _ends(pair.low[k], pair.high[k])
    return Effect(_known(pair.difference[k]), ends, int(pair.n_clusters[k]))


def _effects(parts: _Parts, number: int, metric: str) -> dict[str, dict[str, Effect]]:
    """The effects of one pair in one metric, by dimension and label."""
    effects = {
        dimension: {
            label: _effect(part.pairs[number], part.names.index(metric))
            for label, part in labels.items()
            if metric in part.names
        }
        for dimension, labels in parts.items()
    }
    return {dimension: labels for dimension, labels in effects.items() if labels}


def _parts(group: _Group, metrics: Sequence[str]) -> dict[str, dict[str, _Differences]]:
    protocol = group.sides[0].protocol
    return {
        dimension: {
            label: _part(
                group,
                [side.masks[dimension][label] for side in group.sides],
                protocol.metrics_by(dimension, metrics),
            )
            for label in _labels(group, dimension)
        }
        for dimension in protocol.dimensions
    }


def _labels(group: _Group, dimension: str) -> list[str]:
    """The labels of a dimension that all runs have."""
    masks = [side.masks.get(dimension, {}) for side in group.sides]
    present = [{label for label, mask in own.items() if mask.any()} for own in masks]
    return sorted(present[0].intersection(*present[1:]))


def _part(group: _Group, masks: Sequence[Mask], metrics: Sequence[str]) -> _Differences:
    sides = list(zip(group.sides, masks, strict=True))
    cut = [side.tally(mask) for side, mask in sides]
    own = {metric.name for metric in cut[0].metrics}
    # A mean over labels is no metric within one of them.
    tallies = align(cut, [name for name in metrics if name in own])
    if not tallies[0].metrics:
        return _Differences((), (None,) * len(group.pairs))
    return _differences(group, tallies, [bool((side.scored & mask).any()) for side, mask in sides])


def _compared(name: str, side: Side) -> Compared:
    spec, n_unscored = side.spec, int(side.table.unscored.sum())
    return Compared(
        name, str(side.folder), spec.model.name, spec.judge.name, side.table.n, n_unscored
    )


def _flips(group: _Group, a: int, b: int) -> Flips:
    first, second = group.sides[a], group.sides[b]
    keys, rows_a, rows_b = matching_rows(first, second)
    both = first.scored[rows_a] & second.scored[rows_b]
    right_a, right_b = first.table.correct[rows_a], second.table.correct[rows_b]
    unscored = first.table.unscored[rows_a] | second.table.unscored[rows_b]
    return Flips(
        group.names[a],
        group.names[b],
        to_right=tuple(keys[row] for row in np.flatnonzero(both & ~right_a & right_b)),
        to_wrong=tuple(keys[row] for row in np.flatnonzero(both & right_a & ~right_b)),
        scored_in_both=int(both.sum()),
        unscored=int(unscored.sum()),
        probes=len(keys),
    )


def _notes(group: _Group, whole: Tally, left_out: Sequence[str]) -> Iterator[str]:
    if left_out:
        items = "item" if len(left_out) == 1 else "items"
        yield f"left out: {len(left_out)} {items} that not all runs have"
    for name, side in zip(group.names, group.sides, strict=True):
        n = int(side.table.unscored.sum())
        if n > MUCH_UNSCORED * side.table.n:
            yield (
                f"warning: {n} of {side.table.n} probes of {name} are unscored and count as not "
                "right; start that run again to fill them in before believing a difference"
            )
    yield from _gate_first_notes(group)
    if whole.n_clusters < 2:
        yield "one image alone tells nothing about others: there are no intervals and no p values"
    elif whole.n_clusters < stats.FEW_CLUSTERS:
        yield f"few images: intervals and p values over {whole.n_clusters} images are rough"
    if any(metric.name == "density_cv" for metric in whole.metrics):
        yield "density_cv: its intervals are too short where caption lengths have heavy tails"
    if any(side.spec.judge.fidelity == "low" for side in group.sides):
        yield "low fidelity: the embedded judge read these replies; it may be wrong about a caption"


def _gate_first_notes(group: _Group) -> Iterator[str]:
    """Which metrics fall away because runs skipped the statements behind shut gates."""
    rubrics = [(n, s) for n, s in zip(group.names, group.sides, strict=True)
               if s.protocol.name == "rubric"]  # fmt: skip
    names = [name for name, side in rubrics if side.table.skipped.any()]
    if names:
        kept = {metric.name for metric in GATE_FIRST_METRICS}
        lost = ", ".join(m.name for m in METRICS if m.name not in kept)
        yield f"{', '.join(names)} skipped statements (--gate-first): not compared: {lost}"


def is_worse(comparison: Comparison, metric: str, *, margin: float = 0.0) -> bool:
    """Whether the last run is significantly worse than the first, by more than `margin`.

    The margin is in the metric's own unit: 0.01 is one point of a rate. This pair is one test,
    chosen beforehand, so that its own interval decides, not the p value adjusted for all pairs.

    Raises:
        UsageError: neither direction of the metric is better, or the margin is negative.
        ComparisonError: a run has no value, or there is one image only: nothing can be told.
    """
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
    if pair.interval is None:
        certain = pair.p <= 1.0 - comparison.level
        return certain and -found.better * pair.difference > margin
    return min(-found.better * end for end in pair.interval) > margin


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _ends(low: float, high: float) -> Ends | None:
    return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None
