"""The tables of runs: leaderboard, readings, breakdowns and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snellen.runs.folder import Run
from snellen.runs.spec import Summary
from snellen.runs.summary import summary_of
from snellen.tables.table import (
    Cell,
    Column,
    Format,
    Label,
    Number,
    Rows,
    Share,
    Table,
    format_of,
    measured,
    metric_column,
    metric_label,
    plain,
    with_range,
)

FEW_SCORED = 0.8
_RANGE = "in parentheses: the range that unscored probes leave open, counted as wrong and as right"
_RANGE_NOTES: Mapping[str, str] = {
    "reading": f"{_RANGE}; in coverage as not answered and as answered, in the uncertain share as "
    "answered and as abstained",
    "rubric": f"{_RANGE}; an image with an unscored statement is in no value over scored probes",
    "direct": _RANGE,
}
USD = Format(digits=4)
DIMENSION_TITLES: Mapping[str, str] = {"l1": "domain", "error_category": "capability"}


def leaderboard(runs: Sequence[Run], *, metrics: Sequence[str] = ()) -> Table:
    """Metrics of runs of one protocol, the best headline first, each with its interval.

    `metrics` names some; empty: all.
    """
    summaries = [(label_of(run), summary_of(run)) for run in ranked(runs)]
    names = metric_names([summary for _, summary in summaries], metrics)
    rows: Rows = tuple(
        (
            Label(name),
            *(measured(with_range(summary.metrics).get(metric)) for metric in names),
            Share(summary.counts.scored, summary.counts.probes),
        )
        for name, summary in summaries
    )
    title = f"{runs[0].spec.benchmark}: judge {runs[0].spec.judge.name}"
    columns = (Column("Model"), *map(metric_column, names), Column("Scored"))
    return Table(title, columns, rows, _notes(summaries, names))


def _notes(summaries: Sequence[tuple[str, Summary]], names: Sequence[str]) -> tuple[str, ...]:
    brackets = "in brackets: 95% intervals, clustered by image"
    spread = [summary.metrics.get("density_cv") for _, summary in summaries]
    if "density_cv" in names and any(value and value.ci95 for value in spread):
        brackets += "; those of Density CV are too short where caption lengths have heavy tails"
    return (brackets, *told(summaries), *unfinished(summaries))


def overview(runs: Sequence[Run]) -> Table:
    """One row a run: where it is, what it measured, its headline, and what is missing."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        summary, headline = summary_of(run), run.protocol.headline
        value = measured(summary.metrics.get(headline), format_of(headline))
        rows.append(
            (
                Label(str(run.folder)),
                summary.benchmark,
                Label(label_of(run), fidelity=run.spec.judge.fidelity),
                summary.judge,
                summary.status,
                metric_label(headline),
                value,
                Share(summary.counts.scored, summary.counts.probes),
            )
        )
    columns = plain("Run", "Benchmark", "Model", "Judge", "Status", "Headline", "Value", "Scored")
    return Table("Runs", columns, tuple(rows), ("in brackets: 95% intervals, clustered by image",))


def run_table(run: Run, *, metrics: Sequence[str] = ()) -> Table:
    """The metrics of one run, one a row; `metrics` names some, empty: all."""
    summary = summary_of(run)
    names = metric_names([summary], metrics)
    rows: Rows = tuple(
        (
            metric_label(name),
            measured(with_range(summary.metrics)[name], format_of(name)),
            round(summary.metrics[name].n),
        )
        for name in names
    )
    scored = f"{summary.counts.scored} of {summary.counts.probes} probes scored"
    label = label_of(run)
    return Table(
        f"{label} on {summary.benchmark}: judge {summary.judge}; {scored}",
        plain("Metric", "Value", "n"),
        rows,
        _notes([(label, summary)], names),
        fidelity=run.spec.judge.fidelity,
    )


def metric_names(summaries: Sequence[Summary], wanted: Sequence[str] = ()) -> list[str]:
    """The metrics that any of the runs has, or those wanted among them.

    A run that skipped statements has fewer.
    """
    names = max((list(summary.metrics) for summary in summaries), key=len)
    return [name for name in names if not wanted or name in wanted]


def ranked(runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their leaderboard, the best headline first."""

    def headline(run: Run) -> float:
        cell = measured(summary_of(run).metrics.get(runs[0].protocol.headline))
        return float("-inf") if cell.value is None else cell.value

    return sorted(runs, key=headline, reverse=True)


def label_of(run: Run) -> str:
    """The model's name, with the control behind it where the run is one."""
    control = run.spec.options.get("control")
    return f"{run.name} ({control})" if control and control != run.name else run.name


def named(run: Run) -> Label:
    """The model's name as a cell, with the fidelity of the run's judge."""
    return Label(run.name, fidelity=run.spec.judge.fidelity)


def told(summaries: Sequence[tuple[str, Summary]]) -> list[str]:
    """The notes of named runs; a note that not all of them have bears the names."""
    who: dict[str, list[str]] = {}
    for name, summary in summaries:
        for note in summary.notes:
            who.setdefault(note, []).append(name)
    return [
        note if len(names) == len(summaries) else f"{', '.join(dict.fromkeys(names))}: {note}"
        for note, names in who.items()
    ]


def unfinished(summaries: Sequence[tuple[str, Summary]]) -> list[str]:
    """A line for each named run that did not come to its end or has unscored probes."""
    lines = []
    for name, summary in summaries:
        counts = summary.counts
        if summary.status != "complete":
            lines.append(f"{name}: the run is {summary.status}, its numbers are not final")
        if counts.unscored:
            lines.append(
                f"{name}: {counts.unscored} of {counts.probes} probes are unscored: values are "
                "over scored probes"
            )
    if any(summary.counts.unscored for _, summary in summaries):
        lines.append(_RANGE_NOTES[summaries[0][1].protocol])
    return lines


def readings(run: Run) -> Table:
    """Each metric of one run in all its readings: strict, over scored probes, upper bound."""
    summary = summary_of(run)
    rows: Rows = tuple(
        (
            metric_label(name),
            Number(value.value, value.ci95, format=format_of(name)),
            *(
                Number(reading, format=format_of(name))
                for reading in (value.scored, value.upper, value.lower)
            ),
            round(value.n),
        )
        for name, value in summary.metrics.items()
    )
    columns = plain("Metric", "Value [95%]", "Over scored", "Upper", "Lower", "n")
    title = f"{summary.model} on {summary.benchmark}"
    return Table(title, columns, rows, summary.notes, fidelity=run.spec.judge.fidelity)


def dimension_title(dimension: str) -> str:
    """The name of a dimension of a breakdown among people.

    >>> dimension_title("l1")
    'domain'
    """
    return DIMENSION_TITLES.get(dimension, dimension).replace("_", " ")


def breakdown(run: Run, dimension: str, *, metrics: Sequence[str] = ()) -> Table:
    """One run's metrics with intervals for each label of a dimension, and n scored of n total.

    `metrics` names some; empty: all.
    """
    summary = summary_of(run)
    groups = summary.by[dimension]
    names = [n for n in next(iter(groups.values())) if not metrics or n in metrics]
    rows: list[tuple[Cell, ...]] = []
    for label, values in sorted(groups.items()):
        counts = summary.group_counts[dimension][label]
        asked = counts["probes"] - counts.get("skipped", 0)
        few = counts["scored"] < FEW_SCORED * asked
        ranged = with_range(values)
        cells = [measured(ranged[name] if counts["scored"] else None) for name in names]
        scored = Share(counts["scored"], asked, "!" if few else "")
        rows.append((label, *cells, scored, counts["items"]))
    rest = "the last column counts the items"
    if any(0 < v.n_clusters < v.n_items for m in groups.values() for v in m.values()):
        rest = "there are fewer clusters than items, since some share a picture or a source"
    notes = [f"in brackets: 95% intervals, clustered by image; {rest}"]
    if any(scored.remark for *_, scored, _ in rows if isinstance(scored, Share)):
        notes.append("! fewer than four in five probes are scored")
    if summary.counts.skipped:
        notes.append(f"{summary.counts.skipped} probes were skipped; they are in neither count")
    title = dimension_title(dimension)
    columns = (Column(title.capitalize()), *map(metric_column, names), *plain("Scored", "Items"))
    return Table(
        f"{summary.model} by {title}",
        columns,
        tuple(rows),
        tuple(notes),
        fidelity=run.spec.judge.fidelity,
    )


def counts_table(runs: Sequence[Run]) -> Table:
    """Scored and unscored probes of each run by reason, and the cost."""
    any_skipped = any(summary_of(run).counts.skipped for run in runs)
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        summary = summary_of(run)
        counts = summary.counts
        cost = summary.usage.get("cost_usd")
        rows.append(
            (
                Label(label_of(run), fidelity=run.spec.judge.fidelity),
                Share(counts.scored, counts.probes),
                _reasons(counts.unscored_by_reason),
                _reasons(counts.scored_by_reason),
                *([counts.skipped] if any_skipped else []),
                "unknown" if cost is None else float(cost),
            )
        )
    skipped = ("Skipped",) if any_skipped else ()
    columns = plain("Model", "Scored", "Unscored because", "Scored as", *skipped)
    return Table("Scored and unscored probes", (*columns, Column("Cost USD", USD)), tuple(rows))


def _reasons(reasons: Mapping[str, int]) -> str | None:
    return ", ".join(f"{name} {n}" for name, n in reasons.items()) or None
