"""Comparisons as tables and in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from snellen.comparisons.results import Comparison, MetricComparison, PairDifference
from snellen.stats.agreement import mcnemar_p
from snellen.tables.runs import dimension_title
from snellen.tables.table import (
    P_VALUE,
    RATE,
    Cell,
    Column,
    Format,
    Label,
    Number,
    Rows,
    Share,
    Table,
    counted,
    format_of,
    metric_column,
    metric_label,
    plain,
)
from snellen.tables.writers import interval_text, written

# The findings of a positive and a negative difference, by which direction is better.
_FINDINGS = {1: ("better", "worse"), -1: ("worse", "better"), 0: ("higher", "lower")}


def tables_of(comparison: Comparison) -> Iterator[Table]:
    """All tables of a comparison: two runs by metric, or more runs by metric and pair; flips."""
    rows: Rows
    if len(comparison.runs) == 2:
        first, second = (run.name for run in comparison.runs)
        rows = tuple(
            (
                metric_label(metric.name),
                *(
                    Number(standing.value, standing.interval, format=format_of(metric.name))
                    for standing in metric.standings
                ),
                *_difference(metric, metric.pairs[0]),
            )
            for metric in comparison.metrics
        )
        columns = (
            *plain("Metric", first, second, "Difference"), Column("p", P_VALUE), Column("Finding"),
        )  # fmt: skip
        yield Table(f"{second} against {first}", columns, rows, _notes(comparison))
    else:
        for metric in comparison.metrics:
            yield _ranking(comparison, metric)
            rows = tuple(
                (f"{pair.second} against {pair.first}", *_difference(metric, pair))
                for pair in metric.pairs
            )
            columns = (*plain("Pair", "Difference"), Column("p", P_VALUE), Column("Finding"))
            yield Table(f"Pairs in {metric.name}", columns, rows)
    rows = tuple(
        (
            f"{flip.second} against {flip.first}",
            len(flip.to_right),
            len(flip.to_wrong),
            flip.scored_in_both,
            Share(flip.unscored, flip.probes),
            mcnemar_p(len(flip.to_right), len(flip.to_wrong)),
        )
        for flip in comparison.flips
    )
    titles = ("Pair", "Wrong to right", "Right to wrong", "Scored in both", "Unscored in either")
    columns = (*plain(*titles), Column("McNemar p", P_VALUE))
    yield Table("Probes that flipped", columns, rows)


def _notes(comparison: Comparison) -> tuple[str, ...]:
    n = sum(len(metric.pairs) for metric in comparison.metrics)
    together = [f"intervals and p values of differences hold for all {n} of them together"]
    return (
        f"{counted(comparison.n_items, 'item')} in {counted(comparison.n_clusters, 'cluster')}; "
        f"in brackets: {100 * comparison.level:g}% intervals; a difference is the later run minus "
        "the earlier one, rates in points; p values are paired by image",
        *(together if n > 1 else ()),
        *comparison.notes,
    )


def _difference(metric: MetricComparison, pair: PairDifference) -> tuple[Cell, ...]:
    """The difference with its interval, the adjusted p value, and the finding."""
    number = Number(pair.difference, pair.together, format=_signed(metric.name))
    return number, pair.p_adjusted, finding(metric, pair)


def _signed(name: str) -> Format:
    form = format_of(name)
    return replace(form, unit="points" if form.unit == "%" else form.unit, signed=True)


def finding(metric: MetricComparison, pair: PairDifference) -> str:
    """What a difference shows, and what such runs can show if it shows nothing."""
    if pair.difference is None:
        return "unknown: a run has no value"
    if pair.difference == 0.0:
        return "no difference"
    form = _signed(metric.name)
    other = pair.on_scored
    on_scored = ""
    if pair.n_unscored and other is not None and other.difference is not None:
        ends = interval_text(other.interval, form)
        on_scored = (
            f"; over probes scored in both {written(other.difference, form)} {ends}".rstrip()
        )
    if pair.settled:
        better, worse = _FINDINGS[metric.better]
        return f"{pair.second} is {better if pair.difference > 0 else worse}{on_scored}"
    if pair.rests_on_unscored:
        unscored = counted(pair.n_unscored, "unscored probe")
        return f"not settled: the difference rests on {unscored}{on_scored}"
    if pair.detectable is None:
        return "not settled"
    unit = {"‰": "per mille"}.get(form.unit, form.unit)
    least = f"{written(pair.detectable, replace(form, signed=False))} {unit}".strip()
    return f"not settled: these images show a difference of {least} in 8 of 10 tries"


def _ranking(comparison: Comparison, metric: MetricComparison) -> Table:
    ordered = sorted(
        metric.standings,
        key=lambda s: (s.value is None, -(s.value or 0.0) * (metric.better or 1)),
    )
    rows: Rows = tuple(
        (
            Label(standing.run),
            Number(standing.value, standing.interval),
            standing.ranks[0] if standing.ranks else None,
            None
            if standing.rank_set is None
            else "-".join(map(str, dict.fromkeys(standing.rank_set))),
        )
        for standing in ordered
    )
    columns = (
        Column("Run"),
        metric_column(metric.name),
        Column("First in resamples", replace(RATE, digits=0)),
        Column(f"Ranks, {100 * comparison.level:g}%"),
    )
    notes = _notes(comparison) if metric is comparison.metrics[0] else ()
    return Table(f"Standing in {metric.name}", columns, rows, notes)


def breakdown_tables(comparison: Comparison, dimension: str) -> Iterator[Table]:
    """The differences of each pair for each label of a dimension."""
    title = dimension_title(dimension)
    for at, pair in enumerate(comparison.metrics[0].pairs):
        by_metric = {
            metric.name: metric.pairs[at].by[dimension]
            for metric in comparison.metrics
            if dimension in metric.pairs[at].by
        }
        rows: list[tuple[Cell, ...]] = []
        for label, first in next(iter(by_metric.values()), {}).items():
            effects = [by_label.get(label) for by_label in by_metric.values()]
            cells = (Number(e.difference, e.interval) if e else None for e in effects)
            rows.append((label, *cells, first.n_clusters))
        columns = (
            Column(title.capitalize()),
            *(replace(metric_column(name), format=_signed(name)) for name in by_metric),
            Column("Images"),
        )
        note = "many categories are many tests: one in twenty intervals misses 0 by chance"
        yield Table(f"{pair.second} minus {pair.first}, by {title}", columns, tuple(rows), (note,))


def change_lines(comparison: Comparison) -> Iterator[str]:
    """What differs beside the model, a line each, and prompts line by line.

    Of a run and its control without pictures, also how much of the score needs no picture.
    """
    for change in comparison.changes:
        yield f"across {change.across}: {change.what}: {change.first} -> {change.second}"
        yield from (f"    {line}" for line in change.detail.splitlines())
        if len(comparison.runs) != 2 or "no-image" not in (change.first, change.second):
            continue
        order = -1 if change.first == "no-image" else 1
        for metric in comparison.metrics:
            seen, unseen = (s.value for s in metric.standings[::order])
            if metric.name == "accuracy" and seen and unseen is not None:
                form = format_of(metric.name)
                yield (
                    f"without the pictures {written(unseen, form)} of {written(seen, form)} "
                    f"points of accuracy are reached: {100 * unseen / seen:.0f}% of the score "
                    "needs no picture"
                )
