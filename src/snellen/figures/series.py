"""What figures are drawn from: one named series a model, taken from its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snellen.figures.style import LOW_SUFFIX
from snellen.runs.folder import Run
from snellen.runs.spec import Value
from snellen.runs.summary import summary_of
from snellen.tables.table import metric_column

FEW_IMAGES = 5
"""A label with fewer items than these is grey: its rate describes those items and no more."""
MOST_SHOWN = 6
"""How many models a figure shows whose series would cover each other."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one model by label; `n_items` counts the items behind each label."""

    name: str
    values: Mapping[str, Value]
    n_items: Mapping[str, int] = field(default_factory=dict)
    n_probes: Mapping[str, int] = field(default_factory=dict)


def name_of(run: Run) -> str:
    """A run's name in a figure, with low fidelity where its judge has it."""
    return run.name + (LOW_SUFFIX if run.spec.judge.fidelity == "low" else "")


def series_of(runs: Sequence[Run], dimension: str, metric: str) -> tuple[Series, ...]:
    """A metric of each run by the labels of a dimension; runs without any value are left out."""
    found = []
    for run in runs:
        summary = summary_of(run)
        groups = summary.by.get(dimension, {})
        counts = summary.group_counts.get(dimension, {})
        values = {
            label: m[metric]
            for label, m in groups.items()
            if metric in m and counts.get(label, {}).get("scored") != 0
        }
        if all(value.value is None for value in values.values()):
            continue
        items = {label: int(c.get("items", 0)) for label, c in counts.items()}
        probes = {label: int(c.get("probes", 0)) for label, c in counts.items()}
        found.append(Series(name_of(run), values, items, probes))
    return tuple(found)


def labels_of(series: Sequence[Series]) -> tuple[str, ...]:
    """All labels of several series, in the order in which they first appear."""
    return tuple(dict.fromkeys(label for one in series for label in one.values))


def percent(value: Value | None) -> float:
    """A rate's strict value in per cent, NaN where there is none."""
    return math.nan if value is None or value.value is None else 100 * value.value


def best_runs(runs: Sequence[Run], most: int = MOST_SHOWN) -> tuple[Run, ...]:
    """The runs with the best headline numbers, in that order."""

    def key(run: Run) -> float:
        value = summary_of(run).metrics[run.protocol.headline].value
        return float("-inf") if value is None else value

    return tuple(sorted(runs, key=key, reverse=True)[:most])


def few_of(runs: Sequence[Run]) -> tuple[Sequence[Run], str]:
    """The runs that one figure can show, and a remark if that is not all of them."""
    if len(runs) <= MOST_SHOWN:
        return runs, ""
    return runs[:MOST_SHOWN], f" The best {MOST_SHOWN} of {len(runs)} models are shown."


def scaled(pair: tuple[float, float] | None, factor: float) -> tuple[float, float] | None:
    """An interval in another unit; None stays None."""
    return None if pair is None else (factor * pair[0], factor * pair[1])


def is_thin(series: Sequence[Series]) -> bool:
    """Whether most labels have so few pictures that they are grey."""
    n = [max(one.n_items.get(label, 0) for one in series) for label in labels_of(series)]
    return sum(count < FEW_IMAGES for count in n) > len(n) / 2


def axis_title(metric: str) -> str:
    """A metric's title for an axis: `Overall, %`."""
    return metric_column(metric).heading.replace(" %", ", %")


def plain_value(value: Value | None) -> float:
    """A strict value, NaN where there is none."""
    return math.nan if value is None or value.value is None else value.value
