"""The sections of a report: runs that belong side by side, with their figures and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from snellen.errors import UsageError
from snellen.figures.chart import Chart
from snellen.figures.selection import charts_of
from snellen.figures.series import best_runs
from snellen.protocols import PROTOCOLS
from snellen.records import Region
from snellen.runs.folder import Run
from snellen.runs.naming import named_apart
from snellen.runs.summary import summary_of
from snellen.tables import boards
from snellen.tables.rubric import study_tables
from snellen.tables.runs import counts_table
from snellen.tables.table import Label, Number, Table, counted, format_of, metric_label, plain

# The name under which a protocol lists the tables about a benchmark of rubrics.
RUBRIC_STUDIES: Final = "rubric-studies"


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that belong side by side: one protocol, the same data, the same judge and control."""

    anchor: str
    title: str
    runs: tuple[Run, ...]
    charts: tuple[Chart, ...]


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
        charts = charts_of(same, regions=regions) if with_charts else ()
        sections.append(Section(f"s{number}", title, same, charts))
    return tuple(_titled_apart(sections))


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
    """One row a section: the best model and its headline number."""
    rows = []
    for s in sections:
        protocol = s.runs[0].protocol
        best = boards.main_table(s.runs, intervals=True)
        headline = metric_label(protocol.headline)
        cell = best.column(headline.text)[0]
        if isinstance(cell, Number):
            cell = replace(cell, format=format_of(protocol.headline))
        title = Label(s.title, fidelity=s.runs[0].spec.judge.fidelity)
        rows.append(
            (title, protocol.name, s.runs[0].spec.judge.name, len(s.runs),
             max(len(r.items) for r in s.runs), s.runs[0].name, headline, cell)
        )  # fmt: skip
    columns = plain(
        "Benchmark", "Protocol", "Judge", "Models", "Items", "Best model", "Number", "Value"
    )
    return Table("Overview", columns, tuple(rows))
