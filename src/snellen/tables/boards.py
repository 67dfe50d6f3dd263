"""Tables of several runs: the main table with its marks, breakdowns across models, usage."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.tables.runs import USD, dimension_title, leaderboard, metric_names, named, ranked
from snellen.tables.table import (
    Cell,
    Column,
    Number,
    Share,
    Table,
    format_of,
    measured,
    metric_column,
    metric_label,
    plain,
    with_range,
)


def main_table(runs: Sequence[Run], *, intervals: bool = False) -> Table:
    """The leaderboard as papers print it: the best three of each column are marked.

    Source: CapProbe, table 3.
    """
    full, order = leaderboard(runs), ranked(runs)
    metrics = metric_names([summary_of(run) for run in order])
    rows = []
    for run, (_, *cells) in zip(order, full.rows, strict=True):
        bare = (replace(c, interval=None) if isinstance(c, Number) else c for c in cells)
        rows.append((named(run), *(cells if intervals else bare)))
    columns = (
        Column("Model"),
        *map(metric_column, metrics),
        Column("Scored"),
    )
    notes = full.notes if intervals else full.notes[1:]
    return Table(full.title, columns, tuple(rows), notes, marked=True)


def across(runs: Sequence[Run], dimension: str, metric: str) -> Table:
    """One metric of several runs by the labels of a dimension: value, interval, scored/total."""
    found = [(run, summary_of(run)) for run in runs if dimension in summary_of(run).by]
    labels = sorted({label for _, summary in found for label in summary.by[dimension]})
    rows: list[tuple[Cell, ...]] = []
    for label in labels:
        cells, items = [], 0
        for _, summary in found:
            counts = summary.group_counts[dimension].get(label, {})
            asked = counts.get("probes", 0) - counts.get("skipped", 0)
            share = Share(counts.get("scored", 0), asked)
            value = with_range(summary.by[dimension].get(label, {})).get(metric)
            cells.append(measured(value if share.part else None, format_of(metric), share=share))
            items = max(items, counts.get("items", 0))
        rows.append((label, *cells, items))
    models = (Column(run.name, fidelity=run.spec.judge.fidelity) for run, _ in found)
    title = dimension_title(dimension)
    return Table(
        f"{metric_column(metric).heading} by {title}",
        (Column(title.capitalize()), *models, Column("Items")),
        tuple(rows),
        ("in brackets: 95% intervals; then how many of the probes are scored",),
    )


_CALLS = ("done", "failed", "cached", "replayed", "retries")
_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")


def usage_table(runs: Sequence[Run]) -> Table:
    """Calls, tokens and cost of model and judge apart; what is not known is called unknown."""
    rows: list[tuple[Cell, ...]] = []
    for run, role in itertools.product(runs, ("model", "judge")):
        usage: Mapping[str, float] = summary_of(run).usage.get(role) or {}
        calls: list[Cell] = [int(usage.get(name, 0)) for name in _CALLS]
        tokens: list[Cell] = [int(usage.get(name, 0)) for name in _TOKENS]
        cost: Cell = usage.get("cost_usd")
        unknown = usage.get("unknown_usage", 0)
        if not usage:
            calls, tokens, cost = ["unknown"] * len(_CALLS), ["unknown"] * len(_TOKENS), "unknown"
        elif not any(calls):
            tokens, cost = [None] * len(_TOKENS), None
        else:
            cost = "unknown" if cost is None else cost
            if unknown and unknown >= usage.get("done", 0) + usage.get("cached", 0):
                tokens = ["unknown"] * len(_TOKENS)
        rows.append((named(run), role, *calls, *tokens, cost))
    columns = plain(
        "Model", "Role", "Calls", "Failed", "From the cache", "Replayed", "Retries",
        "Prompt tokens", "Completion tokens", "Reasoning tokens", "Cached tokens",
    )  # fmt: skip
    notes = ("as the endpoints counted them; replayed calls were paid for in an earlier session",)
    return Table("Calls, tokens and cost", (*columns, Column("Cost USD", USD)), tuple(rows), notes)


def headline_readings(runs: Sequence[Run]) -> Table:
    """The headline number of each run in its readings: strict, over scored probes, upper."""
    name = runs[0].protocol.headline
    form = format_of(name)
    rows = []
    for run in runs:
        value, counts = summary_of(run).metrics[name], summary_of(run).counts
        strict = Number(value.value, value.ci95)
        rows.append(
            (named(run), strict, value.scored, value.upper, Share(counts.scored, counts.probes))
        )
    numbers = (Column(title, form) for title in ("Value", "Over scored", "Upper"))
    columns = (Column("Model"), *numbers, Column("Scored"))
    return Table(f"{metric_column(name).heading} in its readings", columns, tuple(rows))


def readings_across(runs: Sequence[Run]) -> Table:
    """Each metric of each run in all readings, one row a number: for other programs to read."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        for name, value in summary_of(run).metrics.items():
            low, high = value.ci95 if value.ci95 is not None else (None, None)
            readings = (value.value, low, high, value.scored, value.upper, value.lower)
            numbers = (Number(reading, format=format_of(name)) for reading in readings)
            counts = (round(value.n), value.n_clusters or value.n_items)
            rows.append((named(run), metric_label(name), *numbers, *counts))
    columns = (
        *plain("Model", "Metric"),
        Column("Value", name="value"),
        Column("Low 95%", name="ci_low"),
        Column("High 95%", name="ci_high"),
        Column("Over scored", name="scored"),
        *plain("Upper", "Lower", "n", "Clusters"),
    )
    return Table("All readings", columns, tuple(rows))
