"""Tallies: counts by image, and metrics as functions of their column sums.

A tally is an array (images x columns). Because every metric is a function of column sums, a
resample of images is a weighted sum of rows, and bootstrap, breakdown and comparison are one
matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snellen.records import Item, Verdict, abstains, walk
from snellen.stats.bootstrap import (
    DEFAULT_RESAMPLING,
    Intervals,
    Resampling,
    intervals,
    resamples_for,
)

Array = NDArray[np.float64]
Sums = Mapping[str, Array]
Formula = Callable[[Sums], Array]
Unit = Literal["%", "points", "‰", "tokens", ""]
# How a unit follows a metric's title. A count of tokens says its unit in the title.
UNIT_SUFFIXES: Mapping[str, str] = {"%": " %", "points": ", points", "‰": " ‰"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A number with its strict value, its value over scored probes, and its upper bound.

    Each formula maps column sums, arrays of any one shape, to an array of that shape; NaN where
    a denominator is zero. None where a metric has no such reading. `n` is the denominator of the
    strict value. `better` is +1, -1, or 0 where neither direction is better. `lower` is the reading
    that counts unscored probes against the metric, where the strict value does not already.

    `title` is the name for people, without the unit. `unit` is `%` (the value is a fraction of 1),
    `points` (a difference of two rates, which `parts` names), `‰` (the value is per mille),
    `tokens`, or "" for a plain number. `digits` is the number of decimals that tables print.
    `is_main` marks the metrics that a comparison looks at when none is named. `definition`,
    `formula` (of the strict value) and `example` are for the reference page. `mean_of` are the
    rates whose unweighted mean the metric is; they need no name of their own.
    """

    name: str
    value: Formula
    scored: Formula | None
    upper: Formula | None
    n: Formula
    title: str = ""
    unit: Unit = "%"
    digits: int = 1
    is_main: bool = False
    definition: str = ""
    formula: str = ""
    example: str = ""
    better: int = 1
    lower: Formula | None = None
    parts: tuple[str, str] | None = None
    mean_of: tuple[Metric, ...] = ()

    @property
    def heading(self) -> str:
        """The title with the unit, for the head of a column: `Overall %`."""
        return (self.title or self.name) + UNIT_SUFFIXES.get(self.unit, "")

    @property
    def scale(self) -> int:
        """How much a printed number is larger than the value: 100 for `%` and `points`, else 1."""
        return 100 if self.unit in {"%", "points"} else 1


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts by cluster: `counts` is (n_clusters, n_columns), rows named by `clusters`."""

    clusters: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Array
    metrics: tuple[Metric, ...]

    @property
    def n_clusters(self) -> int:
        """How many clusters it has."""
        return len(self.clusters)

    def sums(self, totals: Array | None = None) -> dict[str, Array]:
        """Column sums by name: of `totals` (..., n_columns), or of all rows."""
        array = self.counts.sum(axis=0) if totals is None else totals
        return {name: array[..., k] for k, name in enumerate(self.columns)}

    def statistic(self, names: Sequence[str] | None = None) -> Callable[[Array], Array]:
        """The strict values as a function from (..., n_columns) to (..., n_metrics)."""
        chosen = [m for m in self.metrics if names is None or m.name in names]

        def compute(totals: Array) -> Array:
            sums = self.sums(totals)
            return np.stack([metric.value(sums) for metric in chosen], axis=-1)

        return compute

    def intervals(self, resampling: Resampling = DEFAULT_RESAMPLING) -> Intervals:
        """The intervals of the strict values, cut to what each metric can be.

        A difference or a mean of rates gets its limits from theirs. Large tallies get fewer
        resamples (`resamples_for`).
        """
        hidden = [part for metric in self.metrics for part in metric.mean_of]
        every = (*self.metrics, *hidden)
        rows = self.sums(self.counts)
        found = intervals(
            self.counts,
            replace(self, metrics=every).statistic(),
            rates=[metric.unit == "%" for metric in every],
            sizes=np.stack([np.broadcast_to(m.n(rows), self.n_clusters) for m in every], axis=1),
            combined=self._combined(),
            resampling=replace(
                resampling, resamples=resamples_for(self.n_clusters, resampling.resamples)
            ),
        )
        n = len(self.metrics)
        low, high = np.clip([found.low[:n], found.high[:n]], *reach(self.metrics))
        return Intervals(
            found.estimate[:n],
            low,
            high,
            found.standard_error[:n],
            found.n_clusters[:n],
            found.n_left_out[:n],
            found.n_resamples,
            found.n_effective[:n],
        )

    def _combined(self) -> dict[int, dict[int, float]]:
        """By place of a metric that is a difference or mean of rates, the places and weights."""
        places = {metric.name: k for k, metric in enumerate(self.metrics)}
        found: dict[int, dict[int, float]] = {}
        at, sums = len(self.metrics), self.sums()
        for k, metric in enumerate(self.metrics):
            if metric.parts is not None and places.keys() >= set(metric.parts):
                found[k] = {places[metric.parts[0]]: 1.0, places[metric.parts[1]]: -1.0}
            if metric.mean_of:
                known = [j for j, p in enumerate(metric.mean_of) if np.isfinite(p.value(sums))]
                found[k] = {at + j: 1.0 / len(known) for j in known}
                at += len(metric.mean_of)
        return found

    def metric(self, name: str) -> Metric:
        """The metric of that name."""
        return next(m for m in self.metrics if m.name == name)


def reach(metrics: Sequence[Metric]) -> tuple[Array, Array]:
    """The lowest and the highest value that each metric can have, both (n_metrics,).

    An interval by resampling may go further. Counts and densities have no upper end.
    """
    ends = {"%": (0.0, 1.0), "points": (-1.0, 1.0)}
    low, high = np.array([ends.get(m.unit, (0.0, np.inf)) for m in metrics]).reshape(-1, 2).T
    return low, high


def ratio(top: Any, bottom: Any) -> Array:
    """top / bottom, NaN where the bottom is zero.

    >>> float(ratio(np.float64(1.0), np.float64(4.0)))
    0.25
    """
    top, bottom = np.asarray(top, float), np.asarray(bottom, float)
    safe = np.where(bottom == 0, np.nan, bottom)
    return np.asarray(top / safe, float)


def column(name: str) -> Formula:
    """The sum of one column, as a formula."""
    return lambda s: s[name]


def quotient(top: str, bottom: str) -> Formula:
    """The ratio of two columns, as a formula."""
    return lambda s: ratio(s[top], s[bottom])


def hit_rate(name: str, hits: str, n: str, unscored: str, *, title: str) -> Metric:
    """The share of hits; an unscored probe counts as none in the strict value, as one in `upper`.

    `hits`, `n` and `unscored` name columns.
    """
    return Metric(
        name,
        quotient(hits, n),
        lambda s: ratio(s[hits], s[n] - s[unscored]),
        lambda s: ratio(s[hits] + s[unscored], s[n]),
        column(n),
        title=title,
    )


def pool(rows: NDArray[np.intp], values: NDArray[Any], n_rows: int) -> Array:
    """Sums of `values` by row index: an array (n_rows,)."""
    sums = np.bincount(rows, weights=values.astype(float), minlength=n_rows)
    return sums.astype(np.float64)


@dataclass(frozen=True, slots=True)
class ProbeTable:
    """The probes of a run in columns, one row a probe and repeat.

    A unit is one (item, repeat); `unit` holds a row number into `units`, and `unit_cluster` the
    cluster of each unit, a row number into `clusters`. `verdict` holds letters or "true"/"false",
    "" where there is none. `labels` maps a dimension to one label a probe. Arrays other than
    `unit_cluster` are (n_probes,).
    """

    clusters: tuple[str, ...]
    units: tuple[tuple[str, int], ...]
    unit_cluster: NDArray[np.intp]
    unit: NDArray[np.intp]
    correct: NDArray[np.bool_]
    uncertain: NDArray[np.bool_]
    unscored: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    verdict: NDArray[np.str_]
    kind: NDArray[np.str_]
    labels: Mapping[str, NDArray[np.str_]]

    @property
    def n(self) -> int:
        """How many probes there are."""
        return len(self.unit)

    def where(self, mask: NDArray[np.bool_]) -> ProbeTable:
        """The probes for which the mask holds; units and clusters keep their numbers."""
        return ProbeTable(
            self.clusters,
            self.units,
            self.unit_cluster,
            self.unit[mask],
            self.correct[mask],
            self.uncertain[mask],
            self.unscored[mask],
            self.skipped[mask],
            self.verdict[mask],
            self.kind[mask],
            {name: labels[mask] for name, labels in self.labels.items()},
        )

    def by_cluster(
        self,
        columns: tuple[str, ...],
        by_unit: Mapping[str, Array],
        metrics: tuple[Metric, ...],
    ) -> Tally:
        """A tally from columns by unit, added up by cluster; empty clusters are left out.

        Clusters stand in the order of their names, so that resamples do not depend on the order
        of the data.
        """
        n = len(self.clusters)
        sums = [pool(self.unit_cluster, by_unit[name], n) for name in columns]
        counts = np.stack(sums, axis=1)
        present = pool(self.unit_cluster[self.unit], np.ones(self.n), n) > 0
        order = sorted(np.flatnonzero(present), key=lambda row: self.clusters[row])
        names = tuple(self.clusters[row] for row in order)
        return Tally(names, columns, counts[order], metrics)


def probe_table(
    items: Sequence[Item],
    verdicts: Mapping[tuple[str, int, str], Verdict],
    *,
    repeats: int = 1,
) -> ProbeTable:
    """The table of all probes of all items; a probe without a verdict is unscored."""
    clusters = list(dict.fromkeys(item.cluster or item.id for item in items))
    number = {name: k for k, name in enumerate(clusters)}
    units = list(walk(items, repeats))
    rows = [(k, item, p) for k, (item, _) in enumerate(units) for p in item.probes]
    found = [verdicts.get((item.id, units[k][1], p.id)) for k, item, p in rows]
    dimensions = sorted({name for item in items for p in item.probes for name in p.groups})
    most: dict[str, int] = {}
    for item in items:
        for name, labels in item.groups.items():
            most[name] = max(most.get(name, 0), len(labels))
    # The item dimensions of which no item carries more than one label.
    single = sorted(name for name, n in most.items() if n == 1)

    def written(verdict: Verdict | None) -> str:
        value = None if verdict is None else verdict.verdict
        return "" if value is None else str(value).lower() if isinstance(value, bool) else value

    return ProbeTable(
        clusters=tuple(clusters),
        units=tuple((item.id, repeat) for item, repeat in units),
        unit_cluster=np.array([number[i.cluster or i.id] for i, _ in units], np.intp),
        unit=np.array([k for k, _, _ in rows], np.intp),
        correct=np.array([v is not None and v.correct is True for v in found], bool),
        uncertain=np.array(
            [abstains(v, p) for v, (_, _, p) in zip(found, rows, strict=True)], bool
        ),
        unscored=np.array([v is None or v.status == "unscored" for v in found], bool),
        skipped=np.array([v is not None and v.status == "skipped" for v in found], bool),
        verdict=np.array([written(v) for v in found], str),
        kind=np.array([p.kind for _, _, p in rows], str),
        labels={
            name: np.array([p.groups.get(name, "") for _, _, p in rows], str) for name in dimensions
        }
        | {
            name: np.array([next(iter(i.groups.get(name, ())), "") for _, i, _ in rows], str)
            for name in single
        },
    )


def group_masks(
    table: ProbeTable, items: Sequence[Item], dimension: str
) -> dict[str, NDArray[np.bool_]]:
    """For each label of a dimension, the probes that carry it; an item may carry several."""
    if dimension in table.labels:
        column_ = table.labels[dimension]
        return {str(label): column_ == label for label in np.unique(column_) if label}
    carried = {item.id: item.groups.get(dimension, ()) for item in items}
    labels = dict.fromkeys(label for values in carried.values() for label in values)
    has = {
        label: np.array([label in carried[item_id] for item_id, _ in table.units], bool)
        for label in labels
    }
    return {label: member[table.unit] for label, member in has.items()}
