"""Runs compared in pairs on the same items: differences, their certainty, ranks, flipped probes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from snellen.comparisons.comparable import NamedSpec, check_across, check_comparable
from snellen.comparisons.pairing import (
    Mask,
    Side,
    align,
    line_up,
    matching_rows,
    narrowed,
    take_apart,
)
from snellen.comparisons.results import (
    Compared,
    Comparison,
    Effect,
    Ends,
    Flips,
    MetricComparison,
    PairDifference,
    Standing,
    unknown_metric,
)
from snellen.errors import UsageError
from snellen.metrics import Tally, reach
from snellen.runs.folder import Run
from snellen.stats import bootstrap as stats
from snellen.stats import multiple, paired
from snellen.stats.agreement import mcnemar_p
from snellen.stats.distributions import normal_quantile, t_quantile

POWER: Final = 0.8


MUCH_UNSCORED: Final = 0.05


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
    tallies = align(cut, group.chosen_metrics(cut, metrics))
    return Comparison(
        benchmark=lined_up[0].spec.benchmark,
        protocol=lined_up[0].protocol.name,
        runs=tuple(_compared(n, side) for n, side in zip(names, lined_up, strict=True)),
        metrics=group.compared_metrics(tallies),
        flips=tuple(group.flips(a, b) for a, b in group.pairs),
        n_items=len({key.id for key in lined_up[0].probes}),
        n_clusters=tallies[0].n_clusters,
        left_out=left_out,
        changes=changes,
        notes=tuple(group.notes(tallies[0], left_out)),
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

    def chosen_metrics(self, tallies: Sequence[Tally], wanted: Sequence[str] | None) -> list[str]:
        """The names to compare: those wanted, or the protocol's main ones that all runs have."""
        own = [[metric.name for metric in tally.metrics] for tally in tallies]
        available = [name for name in own[0] if all(name in other for other in own)]
        if wanted is None:
            main = [metric.name for metric in self.sides[0].protocol.metrics if metric.is_main]
            return [name for name in main if name in available]
        for name in wanted:
            if name not in available:
                raise unknown_metric(name, available)
        return list(dict.fromkeys(wanted))

    def compared_metrics(self, tallies: Sequence[Tally]) -> tuple[MetricComparison, ...]:
        scored = [side.scored for side in self.sides]
        whole = self.differences(tallies, [bool(mask.any()) for mask in scored])
        adjusted = self.adjusted(whole)
        both = [self.on_scored(whole, number) for number in range(len(self.pairs))]
        parts = self.parts(whole.names)
        intervals = [
            tally.intervals(self.resampling) if mask.any() else None
            for tally, mask in zip(tallies, scored, strict=True)
        ]
        found = []
        for k, metric in enumerate(tallies[0].metrics):
            pairs = tuple(
                self.pair_difference(
                    number, (pair, k), adjusted=adjusted, on_scored=_effect(both[number], k),
                    by=_effects(parts, number, metric.name),
                )
                for number, pair in enumerate(whole.pairs)
            )  # fmt: skip
            standings = self.standings(tallies, intervals, k=k)
            ranked = _with_rank_sets(standings, pairs, metric.better)
            found.append(MetricComparison(metric.name, metric.unit, metric.better, ranked, pairs))
        return tuple(found)

    def adjusted(self, whole: _Differences) -> multiple.Together:
        """P values of all metrics and pairs together, metric by metric, then pair by pair."""
        known = [pair for pair in whole.pairs if pair is not None]
        if not known:
            return multiple.Together(np.full(len(whole.names) * len(whole.pairs), np.nan), 1.0)
        none = np.zeros(known[0].influence.shape[0])
        columns, p_values = [], []
        for k in range(len(whole.names)):
            for pair in whole.pairs:
                columns.append(none if pair is None else pair.influence[:, k])
                p_values.append(math.nan if pair is None else float(pair.p_value[k]))
        return multiple.adjust_together(
            np.stack(columns, axis=1),
            p_values,
            level=self.resampling.level,
            seed=self.resampling.seed,
        )

    def on_scored(self, whole: _Differences, number: int) -> paired.PairedDifference | None:
        """The paired difference of one pair over the probes that both runs have scored."""
        pair = [self.sides[run] for run in self.pairs[number]]
        _, rows_a, rows_b = matching_rows(*pair)
        both = pair[0].scored[rows_a] & pair[1].scored[rows_b]
        if not both.any():
            return None
        masks = [np.zeros(side.table.n, bool) for side in pair]
        masks[0][rows_a], masks[1][rows_b] = both, both
        if all((mask | side.table.skipped).all() for mask, side in zip(masks, pair, strict=True)):
            return whole.pairs[number]
        tallies = [side.tally(mask) for side, mask in zip(pair, masks, strict=True)]
        if not all(set(whole.names) <= {m.name for m in tally.metrics} for tally in tallies):
            return None
        two = replace(self, names=self.names[:2], sides=tuple(pair))
        return two.differences(align(tallies, whole.names), [True, True]).pairs[0]

    def differences(self, tallies: Sequence[Tally], scored: Sequence[bool]) -> _Differences:
        told = [
            pair
            for pair in self.pairs
            if all(scored[run] for run in pair) and tallies[0].n_clusters
        ]
        lowest, highest = reach(tallies[0].metrics)
        most = highest - lowest
        found = paired.compare_pairs(
            [tally.counts for tally in tallies] if told else [],
            tallies[0].statistic(),
            told,
            level=self.resampling.level,
            reach=most,
        )
        by_pair = {
            pair: replace(one, low=np.maximum(one.low, -most), high=np.minimum(one.high, most))
            for pair, one in zip(told, found, strict=True)
        }
        names = tuple(metric.name for metric in tallies[0].metrics)
        return _Differences(names, tuple(by_pair.get(pair) for pair in self.pairs))

    def standings(
        self,
        tallies: Sequence[Tally],
        intervals: Sequence[stats.Intervals | None],
        *,
        k: int,
    ) -> tuple[Standing, ...]:
        ranks = None if None in intervals else _ranks(tallies, k, resampling=self.resampling)
        standings = []
        for run, (name, found) in enumerate(zip(self.names, intervals, strict=True)):
            if found is None:
                standings.append(
                    Standing(name, None, None, tallies[0].n_clusters < stats.FEW_CLUSTERS)
                )
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

    def pair_difference(
        self,
        number: int,
        found: tuple[paired.PairedDifference | None, int],
        *,
        adjusted: multiple.Together,
        on_scored: Effect,
        by: Mapping[str, Mapping[str, Effect]],
    ) -> PairDifference:
        a, b = self.pairs[number]
        pair, k = found
        effect = _effect(*found)
        p_adjusted = float(adjusted.p_adjusted[k * len(self.pairs) + number])
        is_clear = p_adjusted <= 1.0 - self.resampling.level
        first, second = self.sides[a], self.sides[b]
        keys, rows_a, rows_b = matching_rows(first, second)
        both = first.scored[rows_a] & second.scored[rows_b]
        skipped = first.table.skipped[rows_a] | second.table.skipped[rows_b]
        n_unscored = len(keys) - int((both | skipped).sum())
        agrees = n_unscored == 0 or _point_the_same_way(effect.difference, on_scored)
        right_a, right_b = first.table.correct[rows_a][both], second.table.correct[rows_b][both]
        return PairDifference(
            self.names[a],
            self.names[b],
            effect.difference,
            effect.interval,
            p=None if pair is None else _known(pair.p_value[k]),
            p_adjusted=_known(p_adjusted),
            settled=is_clear and agrees,
            n_clusters=effect.n_clusters,
            together=_widened(effect, adjusted.widening),
            on_scored=on_scored,
            n_unscored=n_unscored,
            rests_on_unscored=is_clear and not agrees,
            detectable=_detectable(pair, k, level=self.resampling.level),
            mcnemar=mcnemar_p(int((~right_a & right_b).sum()), int((right_a & ~right_b).sum())),
            by=by,
        )

    def parts(self, metrics: Sequence[str]) -> dict[str, dict[str, _Differences]]:
        protocol = self.sides[0].protocol
        return {
            dimension: {
                label: self.part(
                    [side.masks[dimension][label] for side in self.sides],
                    protocol.metrics_by(dimension, metrics),
                )
                for label in self.labels(dimension)
            }
            for dimension in protocol.dimensions
        }

    def labels(self, dimension: str) -> list[str]:
        """The labels of a dimension that all runs have."""
        masks = [side.masks.get(dimension, {}) for side in self.sides]
        present = [{label for label, mask in own.items() if mask.any()} for own in masks]
        return sorted(present[0].intersection(*present[1:]))

    def part(self, masks: Sequence[Mask], metrics: Sequence[str]) -> _Differences:
        sides = list(zip(self.sides, masks, strict=True))
        cut = [side.tally(mask) for side, mask in sides]
        own = {metric.name for metric in cut[0].metrics}
        # A mean over labels is no metric within one of them.
        tallies = align(cut, [name for name in metrics if name in own])
        if not tallies[0].metrics:
            return _Differences((), (None,) * len(self.pairs))
        return self.differences(tallies, [bool((side.scored & mask).any()) for side, mask in sides])

    def flips(self, a: int, b: int) -> Flips:
        first, second = self.sides[a], self.sides[b]
        keys, rows_a, rows_b = matching_rows(first, second)
        both = first.scored[rows_a] & second.scored[rows_b]
        right_a, right_b = first.table.correct[rows_a], second.table.correct[rows_b]
        unscored = first.table.unscored[rows_a] | second.table.unscored[rows_b]
        return Flips(
            self.names[a],
            self.names[b],
            to_right=tuple(keys[row] for row in np.flatnonzero(both & ~right_a & right_b)),
            to_wrong=tuple(keys[row] for row in np.flatnonzero(both & right_a & ~right_b)),
            scored_in_both=int(both.sum()),
            unscored=int(unscored.sum()),
            probes=len(keys),
        )

    def notes(self, whole: Tally, left_out: Sequence[str]) -> Iterator[str]:
        if left_out:
            items = "item" if len(left_out) == 1 else "items"
            yield f"left out: {len(left_out)} {items} that not all runs have"
        for name, side in zip(self.names, self.sides, strict=True):
            n = int(side.table.unscored.sum())
            if n > MUCH_UNSCORED * side.table.n:
                yield (
                    f"warning: {n} of {side.table.n} probes of {name} are unscored; start that run "
                    "again to fill them in before believing a difference"
                )
        yield from self.gate_first_notes()
        if whole.n_clusters < 2:
            yield (
                "one image alone tells nothing about others: there are no intervals and no p values"
            )
        elif whole.n_clusters < stats.FEW_CLUSTERS:
            yield f"few images: intervals and p values over {whole.n_clusters} images are rough"
        if any(metric.name == "density_cv" for metric in whole.metrics):
            yield "density_cv: its intervals are too short where caption lengths have heavy tails"
        if any(side.spec.judge.fidelity == "low" for side in self.sides):
            yield (
                "low fidelity: the embedded judge read these replies; it may be wrong about a "
                "caption"
            )

    def gate_first_notes(self) -> Iterator[str]:
        """Which metrics fall away because runs skipped the statements behind shut gates."""
        skipping = [
            (name, side)
            for name, side in zip(self.names, self.sides, strict=True)
            if side.table.skipped.any()
        ]
        for _, side in skipping[:1]:
            kept = {metric.name for metric in side.tally().metrics}
            lost = ", ".join(m.name for m in side.protocol.metrics if m.name not in kept)
            if lost:
                names = ", ".join(name for name, _ in skipping)
                yield f"{names} skipped statements (--gate-first): not compared: {lost}"


@dataclass(frozen=True, slots=True)
class _Differences:
    """The paired differences of all pairs in one part of the data, for the metrics of `names`.

    None stands for a pair of which a run has nothing scored there: it has no value.
    """

    names: tuple[str, ...]
    pairs: tuple[paired.PairedDifference | None, ...]


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


def _with_rank_sets(
    standings: Sequence[Standing], pairs: Sequence[PairDifference], better: int
) -> tuple[Standing, ...]:
    """The runs with the ranks that the simultaneous intervals of their pairs leave open.

    Source: Mogstad, Romano, Shaikh and Wilhelm 2024, inference for ranks.
    """
    if better == 0 or any(pair.together is None for pair in pairs):
        return tuple(standings)
    above, below = Counter[str](), Counter[str]()
    for pair in pairs:
        low, high = pair.together or (0.0, 0.0)
        if low <= 0.0 <= high:
            continue
        first_leads = (high < 0.0) == (better > 0)
        behind, ahead = (pair.second, pair.first) if first_leads else (pair.first, pair.second)
        above[behind] += 1
        below[ahead] += 1
    return tuple(
        replace(one, rank_set=(1 + above[one.run], len(standings) - below[one.run]))
        for one in standings
    )


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


def _point_the_same_way(difference: float | None, other: Effect) -> bool:
    """Whether another reading of a difference has the same sign, with an interval off 0."""
    if difference is None or other.difference is None or other.interval is None:
        return False
    low, high = other.interval
    return low > 0.0 if difference > 0.0 else high < 0.0


def _widened(effect: Effect, widening: float) -> Ends | None:
    """The interval that holds together with those of all other differences."""
    if effect.interval is None:
        return None
    middle = sum(effect.interval) / 2.0
    half = widening * (effect.interval[1] - effect.interval[0]) / 2.0
    return middle - half, middle + half


def _detectable(pair: paired.PairedDifference | None, k: int, *, level: float) -> float | None:
    """The smallest true difference that so many images show with a chance of 0.8.

    Source: Miller 2024, Adding error bars to evals, minimum detectable effect.
    """
    if pair is None or pair.n_clusters[k] < 2 or not pair.standard_error[k] > 0.0:
        return None
    reached = t_quantile(level, pair.n_clusters[k] - 1.0) + normal_quantile(POWER)
    return float(reached * pair.standard_error[k])


def _effect(pair: paired.PairedDifference | None, k: int) -> Effect:
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


def _compared(name: str, side: Side) -> Compared:
    spec, n_unscored = side.spec, int(side.table.unscored.sum())
    return Compared(
        name, str(side.folder), spec.model.name, spec.judge.name, side.table.n, n_unscored
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _ends(low: float, high: float) -> Ends | None:
    return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None
