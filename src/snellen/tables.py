"""Tables as data, and how they look as text, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from snellen.analysis.judgecheck import JudgeRow
from snellen.readers.info import BenchmarkInfo, PictureInfo, Spread
from snellen.results import Run, Summary, Value

# The share of probes above which unscored ones are warned of.
MUCH_UNSCORED = 0.05
TITLES: Mapping[str, str] = {
    "overall_acc": "Overall %",
    "effective_acc": "Effective %",
    "uncertain_ratio": "Uncertain %",
    "coverage": "Coverage %",
    "tokens_per_image": "Tokens/image",
    "mean_density": "Mean dens. ‰",
    "global_density": "Global dens. ‰",
    "density_cv": "Density CV",
    "score": "Score %",
    "gate_pass": "Gate pass %",
    "atomic_acc": "Atomic %",
    "must_right_acc": "Must-Right %",
    "easy_wrong_acc": "Easy-Wrong %",
    "easy_wrong_avg": "E-W avg (no gate) %",
    "reliability_gap": "Gap, points",
    "accuracy": "Accuracy %",
    "macro_accuracy": "Macro %",
    "cannot_answer_rate": "Cannot answer %",
}
PERCENT = frozenset(
    {
        "overall_acc", "effective_acc", "uncertain_ratio", "coverage", "score", "gate_pass",
        "atomic_acc", "must_right_acc", "easy_wrong_acc", "easy_wrong_avg", "reliability_gap",
        "accuracy", "macro_accuracy", "cannot_answer_rate",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the first column is text, the others are numbers written out.

    `marks` has the shape of `rows`, or is empty: 1, 2 and 3 are the best three of a column, else 0.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    marks: tuple[tuple[int, ...], ...] = ()


def number(name: str, value: float | None, digits: int = 1) -> str:
    """A metric's number as people read it: rates in per cent, `-` where there is none.

    >>> number("overall_acc", 0.6872)
    '68.7'
    >>> number("density_cv", 0.2724)
    '0.272'
    """
    if value is None:
        return "-"
    if name in PERCENT:
        return f"{100 * value:.{digits}f}"
    if name == "tokens_per_image":
        return f"{value:.0f}"
    return f"{value:.{3 if name == 'density_cv' else 2}f}"


def with_interval(name: str, value: Value | None) -> str:
    """A number with its interval behind it: `68.7 [66.0, 71.2]`."""
    if value is None or value.value is None:
        return "-"
    text = number(name, value.value)
    if value.ci95 is None:
        return text
    return f"{text} [{number(name, value.ci95[0])}, {number(name, value.ci95[1])}]"


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "item"), counted(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def title_of(name: str) -> str:
    """A metric's column title."""
    return TITLES.get(name, name)


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
    from snellen.summaries import summarise

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


def fidelity_table(rows: Sequence[JudgeRow]) -> Table:
    """How good a judge is on the bundled material of known truth, by protocol and half."""
    written = tuple(
        (
            f"{row.protocol}, {'frozen paraphrases' if row.half == 'frozen' else 'tuning half'}",
            str(row.n),
            _percent(row.accuracy),
            _percent(row.right_when_stated),
            _percent(row.uncertain_when_absent),
            _percent(row.fooled_when_changed),
        )
        for row in sorted(rows, key=lambda row: (row.half != "frozen", row.protocol))
    )
    columns = (
        "Material", "n", "Right %", "Right when stated %", "E when absent %", "Fooled %",
    )  # fmt: skip
    note = "the frozen half was reworded and set aside before any tuning: quote that one"
    return Table("The embedded judge against a perfect judge's labels", columns, written, (note,))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def info_tables(found: BenchmarkInfo) -> list[Table]:
    """A benchmark's statistics: totals, then counts and lengths by label, then pictures."""
    totals = [
        ("items", str(found.items)),
        ("probes", str(found.probes)),
        ("clusters for resampling", str(found.clusters)),
        ("regions", str(found.regions)),
        ("items with a hint", str(found.hints)),
        ("items with several pictures", str(found.multi_image_items)),
        ("probes an item", _spread(found.probes_per_item)),
        ("prompt length, characters", _spread(found.prompt_chars)),
        ("answer length, characters", _spread(found.answer_chars)),
        ("golden caption, words", _spread(found.reference_words)),
        ("bad rows left out", str(found.skipped)),
    ]
    kept = tuple(row for row in totals if row[1] not in {"-", "0"})
    tables = [Table("Totals", ("What", "Value"), kept)]
    tables += [_groups_table(found, name) for name in (*found.groups, *found.probe_groups)]
    return [*tables, _pictures_table(found)]


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"mean {spread.mean:.2f}, {spread.min:g} to {spread.max:g}"


def _groups_table(found: BenchmarkInfo, name: str) -> Table:
    counts = found.groups.get(name) or found.probe_groups[name]
    rows = tuple(
        (
            label,
            str(n),
            _spread(found.prompt_chars_by.get(label)),
            _spread(found.answer_chars_by.get(label)),
            *_picture_cells(found.pictures_by.get(label)),
        )
        for label, n in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    what = "items" if name in found.groups else "probes"
    measured = ("pictures", "sizes") if len(rows[0]) > 4 else ()
    columns = (name, what, "prompt characters", "answer characters", *measured)
    if all(row[2] == "-" for row in rows):
        return Table(f"By {name}", columns[:2], tuple(row[:2] for row in rows))
    return Table(f"By {name}", columns, rows)


def _picture_cells(pictures: PictureInfo | None) -> tuple[str, ...]:
    if pictures is None:
        return ()
    return str(pictures.uses), f"{_size(pictures.smallest)} to {_size(pictures.largest)}"


def _size(size: tuple[int, int] | None) -> str:
    return f"{size[0]}x{size[1]}" if size else "-"


def _pictures_table(found: BenchmarkInfo) -> Table:
    pictures = found.pictures
    rows = [
        ("pictures, as used", str(pictures.uses)),
        ("pictures, distinct", str(pictures.distinct)),
        ("pictures an item", _spread(pictures.per_item)),
        ("formats", ", ".join(f"{k} {n}" for k, n in sorted(pictures.formats.items()))),
        ("smallest", _size(pictures.smallest)),
        ("largest", _size(pictures.largest)),
        ("of unknown size", str(pictures.size_unknown)),
        ("unreadable", str(pictures.unreadable)),
    ]
    kept = tuple(row for row in rows if row[1] not in {"-", "0"})
    return Table("Pictures", ("What", "Value"), kept)


def _reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in reasons.items()) or "-"


def to_markdown(table: Table) -> str:
    """The table in Markdown; a bar in a cell is escaped."""
    lines = [
        f"**{_markdown_text(table.title)}**",
        "",
        _markdown_row([_markdown_text(column) for column in table.columns]),
        "|" + "|".join(["---", *["--:"] * (len(table.columns) - 1)]) + "|",
        *(_markdown_row(row) for row in _decorated(table, _MARKDOWN_MARKS, _markdown_text)),
    ]
    lines += [f"\n{note}" for note in table.notes]
    lines += [f"\n{MARKED}"] if table.marks else []
    return "\n".join(lines) + "\n"


# Markdown has no underline of its own, and `ins` is what code hosts let through.
_MARKDOWN_MARKS = {1: ("**", "**"), 2: ("<ins>", "</ins>"), 3: ("*", "*")}
_LATEX_MARKS = {1: (r"\textbf{", "}"), 2: (r"\underline{", "}"), 3: (r"\textit{", "}")}
MARKED = "bold, underlined, italic: first, second and third of a column"


def _decorated(
    table: Table, marks: Mapping[int, tuple[str, str]], write: Callable[[str], str]
) -> list[tuple[str, ...]]:
    """The rows, written for a format, with the marks of the best three around their cells."""
    places = table.marks or ((0,) * len(table.columns),) * len(table.rows)
    rows = []
    for row, row_places in zip(table.rows, places, strict=True):
        ends = [marks.get(place, ("", "")) for place in row_places]
        cells = zip(row, ends, strict=True)
        rows.append(tuple(before + write(cell) + after for cell, (before, after) in cells))
    return rows


# Emphasis, code, links, and a backslash that would hide the sign behind it. The underscores within
# a name are none.
_MARKUP = re.compile(r"[*`]|(?<!\w)_|_(?!\w)|(?<=\])\(|\\(?=[!-/:-@\[-`{-~])")


def _markdown_text(cell: str) -> str:
    """Foreign text that Markdown must not take for markup."""
    return _MARKUP.sub(r"\\\g<0>", cell).replace("<", "&lt;")


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", r"\|").replace("\n", " ") for c in cells) + " |"


def to_csv(table: Table) -> str:
    """The table as comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([table.columns, *table.rows])
    return out.getvalue()


_LATEX = str.maketrans(
    {
        "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
        "‰": r"\textperthousand{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "|": r"\textbar{}", "\n": " ", "\r": " ",
    }
)  # fmt: skip


def to_latex(table: Table) -> str:
    """The table as a LaTeX tabular with booktabs rules."""
    layout = "l" + "r" * (len(table.columns) - 1)
    head = _latex_row([column.translate(_LATEX) for column in table.columns])
    lines = [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule"]
    rows = _decorated(table, _LATEX_MARKS, lambda cell: cell.translate(_LATEX))
    lines += [_latex_row(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    # After the line before, a bracket or a star would be read as an argument of its end.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


WRITERS: Mapping[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
}
