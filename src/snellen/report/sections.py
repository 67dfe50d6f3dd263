"""The sections of a report: runs that belong side by side, with their figures and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from snellen.errors import UsageError
from snellen.figures.chart import Chart
from snellen.figures.series import FEW_IMAGES, best_runs
from snellen.figures.style import ability, same_looks
from snellen.protocols import PROTOCOLS
from snellen.records import Region
from snellen.runs.folder import Run
from snellen.runs.naming import named_apart
from snellen.runs.summary import summary_of
from snellen.tables import boards
from snellen.tables.rubric import study_tables
from snellen.tables.runs import counts_table
from snellen.tables.table import (
    Cell,
    Column,
    Number,
    Table,
    counted,
    measured,
    metric_column,
    plain,
)

# The name under which a protocol lists the tables about a benchmark of rubrics.
RUBRIC_STUDIES: Final = "rubric-studies"


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that belong side by side: one protocol, the same data, the same judge and control."""

    anchor: str
    title: str
    runs: tuple[Run, ...]
    charts: tuple[Chart, ...] = ()


def sections_of(
    runs: Sequence[Run],
    *,
    regions: Mapping[str, Region] | None = None,
    with_charts: bool = True,
) -> tuple[Section, ...]:
    """Runs sorted into sections, each with its figures if wanted; runs of one name get numbers.

    Raises:
        UsageError: there is no run.
    """
    if not runs:
        raise UsageError("a report needs at least one run", hint="name a run folder")
    order = {name: k for k, name in enumerate(PROTOCOLS)}
    groups: dict[tuple[str, str, str, str, str], list[Run]] = {}
    for run in runs:
        spec, control = run.spec, str(run.spec.options.get("control") or "")
        kin = (spec.protocol, spec.benchmark, spec.data_digest, spec.judge.name, control)
        groups.setdefault(kin, []).append(replace(run, summary=summary_of(run)))
    sections = []
    for number, kin in enumerate(sorted(groups, key=lambda k: (order[k[0]], *k)), 1):
        same = named_apart(best_runs(groups[kin], len(groups[kin])))
        title = kin[1] + (f", {kin[4]} control" if kin[4] else "")
        sections.append(Section(f"s{number}", title, same))
    if with_charts:
        from snellen.figures.bars import judges_chart
        from snellen.figures.selection import charts_of

        with same_looks(names_of(sections)):
            sections = [replace(s, charts=charts_of(s.runs, regions=regions)) for s in sections]
            judged: dict[tuple[str, ...], list[int]] = {}
            for k, section in enumerate(sections):
                spec = section.runs[0].spec
                control = str(spec.options.get("control") or "")
                alike = (spec.protocol, spec.benchmark, spec.data_digest, control)
                judged.setdefault(alike, []).append(k)
            for places in judged.values():
                first = sections[places[0]]
                chart = judges_chart([run for k in places for run in sections[k].runs])
                if chart is not None:
                    sections[places[0]] = replace(first, charts=(*first.charts, chart))
    return tuple(_titled_apart(sections))


def names_of(sections: Sequence[Section]) -> list[str]:
    """The names of all models of a report, each once, in the order of the page."""
    return list(dict.fromkeys(run.name for section in sections for run in section.runs))


def _titled_apart(sections: list[Section]) -> list[Section]:
    """The sections; a title that several have gets the judge, the items or a number behind it."""
    distinctions: tuple[Callable[[Section], str], ...] = (
        lambda s: f"judge {s.runs[0].spec.judge.name}",
        lambda s: counted(max(len(run.items) for run in s.runs), "item"),
        lambda s: f"section {s.anchor.removeprefix('s')}",
    )
    for words_of in distinctions:
        words: dict[str, set[str]] = {}
        for section in sections:
            words.setdefault(section.title, set()).add(words_of(section))
        sections = [
            replace(s, title=f"{s.title}, {words_of(s)}") if len(words[s.title]) > 1 else s
            for s in sections
        ]
    return sections


def tables_of(section: Section) -> dict[str, Table]:
    """The tables of a section by file name."""
    runs = section.runs
    found = {
        "main": boards.main_table(runs),
        "main-intervals": boards.main_table(runs, intervals=True),
        "readings": boards.readings_across(runs),
    }
    found |= {f"by-{name}": table for name, table in breakdowns(runs).items()}
    if RUBRIC_STUDIES in runs[0].protocol.tables:
        found |= {f"study-{stem_of(t.title)}": t for t in study_tables(runs)}
    return found | {"counts": counts_table(runs), "usage": boards.usage_table(runs)}


def stem_of(title: str) -> str:
    """A title as part of a file name; empty where nothing of it can stand in one.

    >>> stem_of("Length bias")
    'Length-bias'
    """
    return re.sub(r"[^\w.-]+", "-", title).strip("-.")


def dimensions(runs: Sequence[Run]) -> list[str]:
    """The dimensions by which any of the runs is broken down."""
    return [d for d in runs[0].protocol.dimensions if any(summary_of(r).by.get(d) for r in runs)]


def breakdowns(runs: Sequence[Run]) -> dict[str, Table]:
    """The headline, or the metric that stands in for it, by each dimension."""
    protocol = runs[0].protocol
    return {
        name: boards.across(runs, name, protocol.partial.get(name, (protocol.headline,))[0])
        for name in dimensions(runs)
    }


def overview_of(sections: Sequence[Section]) -> Table:
    """One row a model, one column a benchmark: its headline number."""
    columns, found = [Column("Model")], []
    for section in sections:
        headline = section.runs[0].protocol.headline
        column = metric_column(headline)
        is_low = any(run.spec.judge.fidelity == "low" for run in section.runs)
        columns.append(
            replace(column, title=f"{section.title}: {column.title}", name="",
                    fidelity="low" if is_low else "full")
        )  # fmt: skip
        found.append({run.name: summary_of(run).metrics[headline] for run in section.runs})
    rows: list[tuple[Cell, ...]] = [
        (name, *(measured(values.get(name)) for values in found)) for name in names_of(sections)
    ]
    return Table("Leaderboard", tuple(columns), tuple(rows), marked=len(rows) > 1)


def failures_table(sections: Sequence[Section], totals: Sequence[Mapping[str, int]]) -> Table:
    """How many probes of each benchmark went wrong and how, and the group that is hardest.

    `totals` counts the failures of each run by kind, in the order of the page.
    """
    rows: list[tuple[Cell, ...]] = []
    counts = iter(totals)
    for section in sections:
        kinds: Counter[str] = Counter()
        for _ in section.runs:
            kinds.update(next(counts))
        n = sum(summary_of(run).counts.probes for run in section.runs)
        label, value = _hardest(section.runs) or (None, None)
        rows.append(
            (section.title, kinds["wrong"], kinds["abstained"], kinds["unscored"], n, label, value)
        )
    columns = plain(
        "Benchmark", "Wrong", "Could not tell", "Unscored", "Of probes", "Hardest group",
        "Mean there",
    )  # fmt: skip
    return Table("What went wrong", columns, tuple(rows))


def _hardest(runs: Sequence[Run]) -> tuple[str, Number] | None:
    """The group with the lowest mean of the headline among those with at least five items."""
    protocol = runs[0].protocol
    for dimension in dimensions(runs):
        metric = protocol.partial.get(dimension, (protocol.headline,))[0]
        values: dict[str, list[float]] = {}
        for run in runs:
            summary = summary_of(run)
            for label, metrics in summary.by.get(dimension, {}).items():
                found = measured(metrics.get(metric)).value
                items = summary.group_counts[dimension].get(label, {}).get("items", 0)
                if found is not None and items >= FEW_IMAGES:
                    values.setdefault(label, []).append(found)
        if len(values) > 1:
            label = min(values, key=lambda name: fmean(values[name]))
            return ability(label), Number(fmean(values[label]), format=metric_column(metric).format)
    return None
