"""The tables of runs: leaderboard, readings, breakdowns and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snellen.runs.folder import Run
from snellen.runs.spec import Summary
from snellen.tables.table import Table, number, title_of, with_interval

# The share of probes above which unscored ones are warned of.
MUCH_UNSCORED = 0.05


def leaderboard(runs: Sequence[Run]) -> Table:
    """All metrics of runs of one protocol, the best headline first, each with its interval."""
    summaries = [(label_of(run), summary_of(run)) for run in ranked(runs)]
    names = metric_names([summary for _, summary in summaries])
    rows = tuple(
        (
            name,
            *(with_interval(metric, summary.metrics.get(metric)) for metric in names),
            _scored(summary),
        )
        for name, summary in summaries
    )
    columns = ("Model", *(title_of(n) for n in names), "Scored")
    title = f"{runs[0].spec.benchmark}: judge {runs[0].spec.judge.name}"
    return Table(title, columns, rows, (*_notes(summaries), *unfinished(summaries)))


def overview(runs: Sequence[Run]) -> Table:
    """The headline of runs of any benchmarks, one row a run, in their order."""
    rows = []
    for run in runs:
        summary, name = summary_of(run), run.protocol.headline
        value = with_interval(name, summary.metrics.get(name))
        rows.append((run.spec.benchmark, label_of(run), title_of(name), value, _scored(summary)))
    summaries = [(f"{label_of(run)} on {run.spec.benchmark}", summary_of(run)) for run in runs]
    columns = ("Benchmark", "Model", "Metric", "Value", "Scored")
    judges = ", ".join(dict.fromkeys(run.spec.judge.name for run in runs))
    return Table(
        f"{len(runs)} runs: judge {judges}", columns, tuple(rows), tuple(unfinished(summaries))
    )


def metric_names(summaries: Sequence[Summary]) -> list[str]:
    """The metrics that any of the runs has: a run that skipped statements has fewer."""
    return max((list(summary.metrics) for summary in summaries), key=len)


def ranked(runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their leaderboard, the best first."""
    headline = runs[0].protocol.headline
    return sorted(runs, key=lambda run: -_headline(summary_of(run), headline))


def label_of(run: Run) -> str:
    """The model's name, with the control behind it where the run is one."""
    control = run.spec.options.get("control")
    return f"{run.name} ({control})" if control and control != run.name else run.name


def summary_of(run: Run) -> Summary:
    """The run's summary, computed anew where the run ended before it was written."""
    if run.summary is not None:
        return run.summary
    from snellen.runs.summary import summarise

    return summarise(run, status="incomplete")


def _headline(summary: Summary, name: str) -> float:
    metric = summary.metrics.get(name)
    return float("-inf") if metric is None or metric.value is None else metric.value


def _scored(summary: Summary) -> str:
    counts = summary.counts
    return f"{counts.scored}/{counts.probes}"


def _notes(summaries: Sequence[tuple[str, Summary]]) -> tuple[str, ...]:
    brackets = "in brackets: 95% intervals, clustered by image"
    spread = [summary.metrics.get("density_cv") for _, summary in summaries]
    if any(value is not None and value.ci95 is not None for value in spread):
        brackets += "; those of Density CV are too short where caption lengths have heavy tails"
    return (brackets, *told(summaries))


def told(summaries: Sequence[tuple[str, Summary]]) -> list[str]:
    """What named runs say of themselves; what not all of them say bears the names."""
    who: dict[str, list[str]] = {}
    for name, summary in summaries:
        for note in summary.notes:
            who.setdefault(note, []).append(name)
    return [
        note if len(names) == len(summaries) else f"{', '.join(dict.fromkeys(names))}: {note}"
        for note, names in who.items()
    ]


def unfinished(summaries: Sequence[tuple[str, Summary]]) -> list[str]:
    """A line for each named run that did not come to its end, or left many probes unscored."""
    lines = []
    for name, summary in summaries:
        counts = summary.counts
        if summary.status != "complete":
            lines.append(f"{name}: the run is {summary.status}, its numbers are not final")
        elif counts.unscored > MUCH_UNSCORED * counts.probes:
            lines.append(
                f"{name}: {counts.unscored} of {counts.probes} probes are unscored and count as "
                "not right"
            )
    return lines


def readings(run: Run) -> Table:
    """Each metric of one run in all its readings: strict, over scored probes, upper bound."""
    summary = summary_of(run)
    rows = tuple(
        (
            title_of(name),
            with_interval(name, value),
            number(name, value.scored),
            number(name, value.upper),
            number(name, value.lower),
            f"{value.n:.0f}",
        )
        for name, value in summary.metrics.items()
    )
    columns = ("Metric", "Value [95%]", "Over scored", "Upper", "Lower", "n")
    return Table(f"{summary.model} on {summary.benchmark}", columns, rows, summary.notes)


def breakdown(run: Run, dimension: str) -> Table:
    """One run's metrics with intervals for each label of a dimension, and n scored of n total."""
    summary = summary_of(run)
    groups = summary.by[dimension]
    names = list(next(iter(groups.values())))
    rows = []
    for label, metrics in sorted(groups.items()):
        counts = summary.group_counts[dimension][label]
        asked = counts["probes"] - counts.get("skipped", 0)
        flag = " !" if counts["scored"] < 0.8 * asked else ""
        rows.append(
            (
                label,
                *(
                    with_interval(name, metrics[name] if counts["scored"] else None)
                    for name in names
                ),
                f"{counts['scored']}/{asked}{flag}",
                str(counts["items"]),
            )
        )
    columns = (dimension, *(title_of(n) for n in names), "Scored", "Items")
    rest = "how many there are stands last"
    if any(0 < v.n_clusters < v.n_items for m in groups.values() for v in m.values()):
        rest = "fewer clusters than items, since some share a picture or a source"
    notes = [f"in brackets: 95% intervals, clustered by image; {rest}"]
    if _flagged(rows):
        notes.append("! fewer than four in five probes are scored")
    if summary.counts.skipped:
        notes.append(f"{summary.counts.skipped} probes were skipped; they are in neither count")
    return Table(f"{summary.model} by {dimension}", columns, tuple(rows), tuple(notes))


def _flagged(rows: Sequence[tuple[str, ...]]) -> bool:
    return any(row[-2].endswith("!") for row in rows)


def counts_table(runs: Sequence[Run]) -> Table:
    """What was and was not scored, by reason, and what it cost."""
    rows = []
    any_skipped = any(summary_of(run).counts.skipped for run in runs)
    for run in runs:
        summary = summary_of(run)
        counts = summary.counts
        cost = summary.usage.get("cost_usd")
        rows.append(
            (
                label_of(run),
                f"{counts.scored}/{counts.probes}",
                _reasons(counts.unscored_by_reason),
                _reasons(counts.scored_by_reason),
                *([str(counts.skipped)] if any_skipped else []),
                "unknown" if cost is None else f"{cost:.4f}",
            )
        )
    skipped = ("Skipped",) if any_skipped else ()
    columns = ("Model", "Scored", "Unscored because", "Scored as", *skipped, "Cost USD")
    return Table("What was scored", columns, tuple(rows))


def _reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in reasons.items()) or "-"
