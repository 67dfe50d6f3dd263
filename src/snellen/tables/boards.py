"""Tables of several runs: the main table with its marks, breakdowns across models, usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snellen.runs.folder import Run
from snellen.runs.spec import Summary
from snellen.tables.runs import leaderboard, metric_names, ranked, summary_of
from snellen.tables.table import Table, number, title_of, with_interval

LOW_SUFFIX = " (low fidelity)"
DIMENSION_TITLES: Mapping[str, str] = {"l1": "domain", "error_category": "capability"}


def main_table(runs: Sequence[Run], *, intervals: bool = False) -> Table:
    """The leaderboard as papers print it: the best three of each column are marked.

    Numbers that look alike share a place. No more places are given than there are losers to tell
    them from, so that two runs have one mark a column. Low fidelity stands beside the name.

    Source: CapProbe, table 3.
    """
    full = leaderboard(runs)
    order = ranked(runs)
    metrics = metric_names([summary_of(run) for run in order])
    better = {metric.name: metric.better for run in order for metric in run.tally().metrics}
    shown = [
        [number(name, _value(run, name)) for name in metrics] for run in order
    ]  # fmt: skip
    places = [
        _places([row[k] for row in shown], better.get(name, 1)) for k, name in enumerate(metrics)
    ]
    rows = tuple(
        (labelled(run), *(old[1:-1] if intervals else new), old[-1])
        for run, old, new in zip(order, full.rows, shown, strict=True)
    )
    marks = tuple((0, *(p[k] for p in places), 0) for k in range(len(order)))
    notes = full.notes if intervals else full.notes[1:]
    return Table(full.title, full.columns, rows, notes, marks)


def _value(run: Run, name: str) -> float | None:
    value = summary_of(run).metrics.get(name)
    return None if value is None else value.value


def labelled(run: Run) -> str:
    """A run's name, and low fidelity with it."""
    return run.name + (LOW_SUFFIX if run.spec.judge.fidelity == "low" else "")


def _places(shown: Sequence[str], better: int) -> list[int]:
    """The place of each written number among the best three, else 0."""
    if better == 0:
        return [0] * len(shown)
    known = sorted({float(text) for text in shown if text != "-"}, reverse=better > 0)
    places = dict(zip(known, (1, 2, 3), strict=False))
    most = len(shown) - 1
    found = [0 if text == "-" else places.get(float(text), 0) for text in shown]
    return [place if place <= most else 0 for place in found]


def dimension_title(dimension: str) -> str:
    """What a dimension of a breakdown is called among people.

    >>> dimension_title("l1")
    'domain'
    """
    return DIMENSION_TITLES.get(dimension, dimension).replace("_", " ")


def across(runs: Sequence[Run], dimension: str, metric: str) -> Table:
    """One metric of several runs by the labels of a dimension: value, interval, scored/total."""
    found = [(labelled(run), summary_of(run)) for run in runs]
    found = [(name, s) for name, s in found if dimension in s.by]
    labels = sorted({label for _, s in found for label in s.by[dimension]})
    rows = []
    for label in labels:
        cells = [_group_cell(s, dimension, label, metric) for _, s in found]
        counts = [s.group_counts[dimension].get(label, {}) for _, s in found]
        items = max(int(c.get("items", 0)) for c in counts)
        rows.append((label, *cells, str(items)))
    columns = (dimension_title(dimension).capitalize(), *(name for name, _ in found), "Items")
    notes = ("in brackets: 95% intervals; then how many of the probes are scored",)
    return Table(f"{title_of(metric)} by {dimension_title(dimension)}", columns, tuple(rows), notes)


def _group_cell(summary: Summary, dimension: str, label: str, metric: str) -> str:
    value = summary.by[dimension].get(label, {}).get(metric)
    counts = summary.group_counts[dimension].get(label, {})
    asked = counts.get("probes", 0) - counts.get("skipped", 0)
    scored = f"{counts.get('scored', 0)}/{asked}"
    known = value if counts.get("scored") else None
    return f"{with_interval(metric, known)} {scored}"


def usage_table(runs: Sequence[Run]) -> Table:
    """Calls, tokens and cost of model and judge apart; what is not known is called unknown."""
    rows = [
        (labelled(run), role, *_usage_cells(summary_of(run).usage.get(role)))
        for run in runs
        for role in ("model", "judge")
    ]
    columns = (
        "Model", "Role", "Calls", "Failed", "From the cache", "Replayed", "Retries",
        "Prompt tokens", "Completion tokens", "Reasoning tokens", "Cached tokens", "Cost USD",
    )  # fmt: skip
    notes = ("as the endpoints counted them; replayed calls were paid for in an earlier session",)
    return Table("Calls, tokens and cost", columns, tuple(rows), notes)


_CALLS = ("done", "failed", "cached", "replayed", "retries")
_TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")


def _usage_cells(usage: Mapping[str, Any] | None) -> list[str]:
    if not usage:
        return ["unknown"] * (len(_CALLS) + len(_TOKENS) + 1)
    calls = [f"{usage.get(name, 0):,}" for name in _CALLS]
    if not any(usage.get(name, 0) for name in _CALLS):
        return [*calls, *["-"] * len(_TOKENS), "-"]
    unknown = usage.get("unknown_usage", 0)
    none_said = unknown and unknown >= usage.get("done", 0) + usage.get("cached", 0)
    tokens = ["unknown" if none_said else f"{usage.get(n, 0):,}" for n in _TOKENS]
    cost = usage.get("cost_usd")
    return [*calls, *tokens, "unknown" if cost is None else f"{cost:.4f}"]


def headline_readings(runs: Sequence[Run]) -> Table:
    """The headline number of each run in its readings: strict, over what was scored, upper."""
    name = runs[0].protocol.headline
    rows = []
    for run in runs:
        summary = summary_of(run)
        value = summary.metrics[name]
        readings = (number(name, v) for v in (value.scored, value.upper))
        scored = f"{summary.counts.scored}/{summary.counts.probes}"
        rows.append((labelled(run), with_interval(name, value), *readings, scored))
    columns = ("Model", "Value", "Over scored", "Upper", "Scored")
    return Table(f"{title_of(name)} in its readings", columns, tuple(rows))


def readings_across(runs: Sequence[Run]) -> Table:
    """Each metric of each run in all readings, one row a number: for other programs to read."""
    rows = []
    for run in runs:
        for name, value in summary_of(run).metrics.items():
            low, high = value.ci95 if value.ci95 is not None else (None, None)
            cells = (value.value, low, high, value.scored, value.upper, value.lower)
            texts = tuple(number(name, cell) for cell in cells)
            counts = (f"{value.n:.0f}", str(value.n_clusters or value.n_items))
            rows.append((labelled(run), title_of(name), *texts, *counts))
    columns = (
        "Model", "Metric", "Value", "Low 95%", "High 95%", "Over scored", "Upper", "Lower", "n",
        "Clusters",
    )  # fmt: skip
    return Table("All readings", columns, tuple(rows))
