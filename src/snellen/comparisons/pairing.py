"""Runs lined up: the same items, clusters and columns, so that they can be compared row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snellen.errors import ComparisonError
from snellen.metrics import Metric, ProbeTable, Tally, group_masks, pool
from snellen.protocols import Protocol, protocol_of
from snellen.records import ReplyRow
from snellen.runs.folder import Run
from snellen.runs.spec import RunSpec

Mask = NDArray[np.bool_]
Unit = tuple[str, int]


class ProbeKey(NamedTuple):
    """A probe of a run, in the words of `verdicts.jsonl`."""

    id: str
    repeat: int
    probe_id: str


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a comparison, without the texts of its items and verdicts.

    `probes` names the rows of `table`; `masks` maps a dimension and a label to the probes that
    carry it, (n_probes,).
    """

    folder: Path
    spec: RunSpec
    table: ProbeTable
    probes: tuple[ProbeKey, ...]
    masks: Mapping[str, Mapping[str, Mask]]
    replies: Mapping[Unit, ReplyRow]

    @property
    def protocol(self) -> Protocol:
        """The protocol that the run was made under."""
        return protocol_of(self.spec.protocol, self.spec.benchmark)

    @property
    def scored(self) -> Mask:
        """The probes that have a verdict, (n_probes,)."""
        return ~self.table.unscored & ~self.table.skipped

    def tally(self, mask: Mask | None = None) -> Tally:
        """Counts by cluster, of all probes or of those for which the mask holds."""
        table = self.table if mask is None else self.table.where(mask)
        return self.protocol.tally(table, self.replies)


def take_apart(run: Run) -> Side:
    """What a comparison needs of a run."""
    table = run.table()
    probes = tuple(
        ProbeKey(item.id, repeat, probe.id)
        for item in run.items
        for repeat in range(run.spec.repeats)
        for probe in item.probes
    )
    masks = {name: group_masks(table, run.items, name) for name in run.protocol.dimensions}
    return Side(run.folder, run.spec, table, probes, masks, run.replies)


def line_up(
    sides: Sequence[Side], names: Sequence[str], *, common: bool
) -> tuple[list[Side], tuple[str, ...]]:
    """The runs on the units that all of them have, and the ids of items that this leaves out.

    A unit is an item, or one repeat of it; one of which every probe was skipped counts as absent.

    Raises:
        ComparisonError: the items differ and `common` is not asked for, or none is in common.
    """
    units = [_units(side) for side in sides]
    shared = set(units[0]).intersection(*units[1:])
    if not shared:
        raise ComparisonError(
            f"{' and '.join(names)} have no item in common", hint="give runs on the same data"
        )
    outside = dict.fromkeys(unit for own in units for unit in own if unit not in shared)
    if outside and not common:
        at = next(k for k, own in enumerate(units) if own.keys() != units[0].keys())
        only_first = [unit for unit in units[0] if unit not in units[at]]
        only_other = [unit for unit in units[at] if unit not in units[0]]
        raise ComparisonError(
            f"{names[0]} and {names[at]} were not made on the same items: "
            f"{_listed(only_first)} only in the first, {_listed(only_other)} only in the second",
            hint=f"--common compares the {len(shared)} that all runs have",
        )
    kept = [_restricted(side, shared) for side in sides]
    # Runs whose probes stand in the same order get the same object to name them.
    first = kept[0].probes
    kept = [replace(side, probes=first) if side.probes == first else side for side in kept]
    left_out = tuple(dict.fromkeys(item for item, _ in outside))
    return _with_common_clusters(kept), left_out


def _units(side: Side) -> dict[Unit, None]:
    table = side.table
    asked = pool(table.unit, ~table.skipped, len(table.units)) > 0
    return {unit: None for unit, here in zip(table.units, asked, strict=True) if here}


def _listed(units: Sequence[Unit]) -> str:
    if not units:
        return "none"
    named = [item if repeat == 0 else f"{item} repeat {repeat}" for item, repeat in units[:3]]
    return f"{len(units)} ({', '.join(named)}{', ...' if len(units) > 3 else ''})"


def _restricted(side: Side, shared: set[Unit]) -> Side:
    """The run without the units that are not shared; its clusters keep their numbers."""
    keep = np.array([unit in shared for unit in side.table.units], bool)[side.table.unit]
    if keep.all():
        return side
    return replace(
        side,
        table=side.table.where(keep),
        probes=tuple(key for key, here in zip(side.probes, keep, strict=True) if here),
        masks={
            name: {label: mask[keep] for label, mask in labels.items()}
            for name, labels in side.masks.items()
        },
    )


def matching_rows(
    first: Side, second: Side
) -> tuple[tuple[ProbeKey, ...], NDArray[np.intp], NDArray[np.intp]]:
    """The probes that both runs have, and their rows in the table of each."""
    if first.probes is second.probes:
        rows = np.arange(len(first.probes))
        return first.probes, rows, rows
    at = {key: row for row, key in enumerate(second.probes)}
    pairs = [(row, at[key]) for row, key in enumerate(first.probes) if key in at]
    rows_first, rows_second = np.array(pairs, np.intp).reshape(-1, 2).T
    return tuple(first.probes[row] for row in rows_first), rows_first, rows_second


def _with_common_clusters(sides: Sequence[Side]) -> list[Side]:
    """The runs with one clustering: what one of them holds together stays together in all.

    Clusters of direct questions are found among the items that a run has, so that a run on fewer
    items may have other ones.
    """
    found = [
        {
            table.units[unit]: table.clusters[table.unit_cluster[unit]]
            for unit in np.unique(table.unit)
        }
        for table in (side.table for side in sides)
    ]
    if all(own == found[0] for own in found[1:]):
        return list(sides)
    joined = _joined(found)
    names = {name: number for number, name in enumerate(dict.fromkeys(joined.values()))}
    lined_up = []
    for side in sides:
        # A unit without probes adds nothing, whatever its cluster.
        numbers = [names.get(joined.get(unit, ""), 0) for unit in side.table.units]
        table = replace(
            side.table, clusters=tuple(names), unit_cluster=np.array(numbers, dtype=np.intp)
        )
        lined_up.append(replace(side, table=table))
    return lined_up


def _joined(found: Iterable[Mapping[Unit, str]]) -> dict[Unit, str]:
    """One cluster name a unit: the item id of the cluster's first unit."""
    parent: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    units: dict[Unit, None] = {}
    for number, clusters in enumerate(found):
        for unit, name in clusters.items():
            units.setdefault(unit)
            parent[root(unit)] = root((number, "cluster", name))
    first: dict[Hashable, str] = {}
    return {unit: first.setdefault(root(unit), unit[0]) for unit in units}


def align(tallies: Sequence[Tally], names: Sequence[str]) -> list[Tally]:
    """The tallies on the clusters that all have, with the named metrics and what these read.

    Columns that a tally lacks, such as those of a label that it has not met, are 0. The first
    tally's metrics serve all.
    """
    shared = set(tallies[0].clusters).intersection(*(tally.clusters for tally in tallies[1:]))
    clusters = tuple(name for name in tallies[0].clusters if name in shared)
    metrics = tuple(tallies[0].metric(name) for name in names)
    columns = _columns_read(metrics)
    return [
        Tally(clusters, columns, _rearranged(tally, clusters, columns), metrics)
        for tally in tallies
    ]


def narrowed(tally: Tally, name: str) -> Tally:
    """The tally with one metric and the columns that it reads, which are quicker to resample."""
    metrics = (tally.metric(name),)
    columns = _columns_read(metrics)
    return Tally(tally.clusters, columns, _rearranged(tally, tally.clusters, columns), metrics)


def _columns_read(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """The columns that strict values look up: a formula is asked, and the look-ups are kept."""
    read: defaultdict[str, NDArray[np.float64]] = defaultdict(lambda: np.ones(()))
    for metric in metrics:
        metric.value(read)
    return tuple(read)


def _rearranged(
    tally: Tally, clusters: tuple[str, ...], columns: tuple[str, ...]
) -> NDArray[np.float64]:
    at = {name: row for row, name in enumerate(tally.clusters)}
    rows = [at[name] for name in clusters]
    counts = np.zeros((len(clusters), len(columns)))
    for place, name in enumerate(columns):
        if name in tally.columns:
            counts[:, place] = tally.counts[rows, tally.columns.index(name)]
    return counts
