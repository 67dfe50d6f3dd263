"""One HTML page about runs: self-contained, without network, safe against what models wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from snellen.errors import DataError, UsageError
from snellen.figures.chart import Chart
from snellen.figures.selection import charts_of, write_charts
from snellen.figures.series import best_runs
from snellen.protocols import PROTOCOLS
from snellen.records import Region
from snellen.report.gallery import Gallery, all_kinds, gallery_of
from snellen.report.markup import (
    Html,
    data_uri,
    element,
    join,
    json_element,
    scroll_box,
    source_hash,
    table_element,
    text,
)
from snellen.report.provenance import facts_of, item_sets, prompts_of
from snellen.runs.folder import Run
from snellen.runs.naming import named_apart
from snellen.runs.summary import summary_of
from snellen.tables import boards
from snellen.tables.judges import sensitivity_table
from snellen.tables.panel import panel_tables
from snellen.tables.rubric import study_tables
from snellen.tables.runs import breakdown, counts_table, dimension_title, readings, told, unfinished
from snellen.tables.table import Label, Number, Table, counted, format_of, metric_label, plain
from snellen.tables.writers import MARKED, WRITERS
from snellen.templates import Template

GALLERY_CARDS = 40
MOST_IDS = 4000
WIDE_INCHES = 4.5


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a report holds: failures a run, whether pictures are embedded, known regions by id."""

    gallery: int = GALLERY_CARDS
    pictures: bool = True
    regions: Mapping[str, Region] | None = None


# The name under which a protocol lists the tables about a benchmark of rubrics.
RUBRIC_STUDIES = "rubric-studies"


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
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(_kin(run), []).append(replace(run, summary=summary_of(run)))
    order = {name: k for k, name in enumerate(PROTOCOLS)}
    sections = []
    for number, kin in enumerate(sorted(groups, key=lambda k: (order[k[0]], *k)), 1):
        same = named_apart(best_runs(groups[kin], len(groups[kin])))
        title = kin[1] + (f", {kin[4]} control" if kin[4] else "")
        charts = charts_of(same, regions=regions) if with_charts else ()
        sections.append(Section(f"s{number}", title, same, charts))
    for distinction in (_judge_of, _items_of, _number_of):
        sections = _told_apart(sections, distinction)
    return tuple(sections)


def _told_apart(sections: list[Section], distinction: Callable[[Section], str]) -> list[Section]:
    """The same sections, those of one title with what tells them apart behind it."""
    same: dict[str, list[str]] = {}
    for section in sections:
        same.setdefault(section.title, []).append(distinction(section))
    return [
        replace(section, title=f"{section.title}, {distinction(section)}")
        if len(set(same[section.title])) > 1
        else section
        for section in sections
    ]


def _judge_of(section: Section) -> str:
    return f"judge {section.runs[0].spec.judge.name}"


def _items_of(section: Section) -> str:
    return counted(max(len(run.items) for run in section.runs), "item")


def _number_of(section: Section) -> str:
    return f"section {section.anchor.removeprefix('s')}"


def _kin(run: Run) -> tuple[str, ...]:
    """What two runs must share to stand in one table."""
    spec = run.spec
    control = str(spec.options.get("control") or "")
    return spec.protocol, spec.benchmark, spec.data_digest, spec.judge.name, control


def report(sections: Sequence[Section], options: ReportOptions | None = None) -> str:
    """The page as text."""
    options = options or ReportOptions()
    runs = [run for section in sections for run in section.runs]
    gallery = gallery_of(
        runs, most=options.gallery, regions=options.regions, with_pictures=options.pictures
    )
    titles = (section.title for section in sections for _ in section.runs)
    named = [{**run, "benchmark": title} for run, title in zip(gallery.runs, titles, strict=True)]
    gallery = replace(gallery, runs=named)
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{source_hash(style)}'; script-src '{source_hash(script)}'"
    )
    title = "Snellen report: " + ", ".join(dict.fromkeys(s.title for s in sections))
    return Template("report.html", _asset("report.html")).fill(
        policy=text(policy),
        title=text(title),
        style=style,
        script=script,
        contents=_contents(sections, gallery),
        overview=_overview(sections),
        sections=join(_section(section) for section in sections),
        gallery=_gallery(gallery),
        data=json_element("gallery-data", gallery),
    )


def write_report(
    runs: Sequence[Run],
    out: Path,
    *,
    options: ReportOptions | None = None,
    figures: Path | None = None,
    tables_to: Path | None = None,
) -> tuple[Path, ...]:
    """Writes the page, and figures and tables as files where folders for them are given.

    Without options, regions are known of the benchmarks that come with Snellen.

    Raises:
        DataError: a file cannot be written.
    """
    options = options or ReportOptions(regions=bundled_regions(runs))
    sections = sections_of(runs, regions=options.regions)
    written = [out]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(report(sections, options), encoding="utf-8")
        for section in sections:
            prefix = _stem(section, sections)
            if figures is not None:
                written += write_charts(section.charts, figures, prefix=prefix)
            if tables_to is not None:
                written += _write_tables(section, tables_to, prefix)
    except OSError as error:
        raise DataError(f"cannot be written: {error}", file=error.filename or out) from error
    return tuple(written)


def _stem(section: Section, sections: Sequence[Section]) -> str:
    """How the file names of a section begin; sections of one title get their number."""
    stem = stem_of(section.title) or section.anchor
    twice = sum(stem_of(other.title) == stem_of(section.title) for other in sections) > 1
    return f"{stem}-{section.anchor}-" if twice else f"{stem}-"


def stem_of(title: str) -> str:
    """A title as part of a file name; empty where nothing of it can stand in one.

    >>> stem_of("Length bias")
    'Length-bias'
    """
    return re.sub(r"[^\w.-]+", "-", title).strip("-.")


def _write_tables(section: Section, folder: Path, prefix: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables_of(section).items():
        for kind, write in WRITERS.items():
            path = folder / f"{prefix}{name}.{kind}"
            path.write_text(write(table), encoding="utf-8")
            written.append(path)
    return written


def tables_of(section: Section) -> dict[str, Table]:
    """The tables of a section by file name."""
    runs = section.runs
    found = {
        "main": boards.main_table(runs),
        "main-intervals": boards.main_table(runs, intervals=True),
        "readings": boards.readings_across(runs),
    }
    for dimension in _dimensions(runs):
        found[f"by-{dimension}"] = boards.across(runs, dimension, _first_metric(runs, dimension))
    if RUBRIC_STUDIES in runs[0].protocol.tables:
        found |= {f"study-{stem_of(t.title)}": t for t in study_tables(runs)}
    return found | {"counts": counts_table(runs), "usage": boards.usage_table(runs)}


def _first_metric(runs: Sequence[Run], dimension: str) -> str:
    """The headline, or what stands in for it where it has no meaning."""
    protocol = runs[0].protocol
    return protocol.partial.get(dimension, (protocol.headline,))[0]


def _dimensions(runs: Sequence[Run]) -> list[str]:
    """The dimensions by which any of the runs is broken down."""
    return [d for d in runs[0].protocol.dimensions if any(summary_of(r).by.get(d) for r in runs)]


def _asset(name: str) -> str:
    file = resources.files("snellen") / "data" / "report" / name
    return file.read_text(encoding="utf-8")


def _contents(sections: Sequence[Section], gallery: Gallery) -> Html:
    links = [element("a", text(s.title), href=f"#{s.anchor}") for s in sections]
    if gallery.failures:
        links.append(element("a", text("Failures"), href="#failures"))
    return element("nav", *links, aria_label="Contents")


def _overview(sections: Sequence[Section]) -> Html:
    rows = []
    for s in sections:
        protocol = s.runs[0].protocol
        best = boards.main_table(s.runs, intervals=True)
        headline = metric_label(protocol.headline)
        cell = best.column(headline.text)[0]
        if isinstance(cell, Number):
            cell = replace(cell, format=format_of(protocol.headline))
        items = max(len(r.items) for r in s.runs)
        title = Label(s.title, fidelity=s.runs[0].spec.judge.fidelity)
        model = best.rows[0][0]
        name = model.text if isinstance(model, Label) else model
        rows.append(
            (title, protocol.name, s.runs[0].spec.judge.name, len(s.runs), items, name, headline,
             cell)
        )  # fmt: skip
    columns = plain(
        "Benchmark", "Protocol", "Judge", "Models", "Items", "Best model", "Number", "Value"
    )
    return table_element(Table("Overview", columns, tuple(rows)))


def _section(section: Section) -> Html:
    counts = [summary_of(run).counts for run in section.runs]
    lead = (
        f"{counted(len(section.runs), 'model')}, "
        f"{counted(max(c.items for c in counts), 'item')}, "
        f"{counted(max(c.probes for c in counts), 'probe')}; "
        f"judge {section.runs[0].spec.judge.name}"
    )
    kicker = element("p", text(f"{section.runs[0].spec.protocol} protocol"), class_="kicker")
    parts = [
        kicker,
        element("h2", text(section.title)),
        element("p", text(lead), class_="lead"),
        element("p", text(section.runs[0].protocol.about)),
        _warnings(section),
        element("h3", text("Leaderboard")),
        table_element(_leaderboard(section)),
        _figures(section.charts),
        _breakdowns(section),
        _readings(section),
        _studies(section),
        _judging(section),
        element("h3", text("What was scored, and what was not")),
        table_element(counts_table(section.runs)),
        element("h3", text("Calls, tokens and cost")),
        table_element(boards.usage_table(section.runs)),
        _how(section),
    ]
    return element("section", *parts, id=section.anchor)


def _leaderboard(section: Section) -> Table:
    """The main table; what warns of its numbers stands above it already."""
    table = boards.main_table(section.runs, intervals=True)
    return replace(table, notes=(table.notes[0], MARKED))


def _warnings(section: Section) -> Html:
    """What a reader must know before believing a number, above all low fidelity."""
    summaries = [(run.name, summary_of(run)) for run in section.runs]
    notes = dict.fromkeys([*told(summaries), *unfinished(summaries)])
    return join(
        element("p", text(note), class_="warning low" if "low fidelity" in note else "warning")
        for note in notes
    )


def _studies(section: Section) -> Html:
    """What the runs say about the benchmark itself, where the protocol has such studies."""
    if RUBRIC_STUDIES not in section.runs[0].protocol.tables:
        return Html("")
    parts = [element("h3", text("About the benchmark"))]
    for table in study_tables(section.runs):
        parts += [element("h4", text(table.title)), table_element(table)]
    return join(parts)


def _judging(section: Section) -> Html:
    """How far the judge's measured errors reach, and how a panel voted, where that is known."""
    tables = [t for run in section.runs for t in (sensitivity_table(run), *panel_tables(run)) if t]
    drawn = [part for t in tables for part in (element("h4", text(t.title)), table_element(t))]
    return join([element("h3", text("The judge")), *drawn]) if drawn else Html("")


def _figures(charts: Sequence[Chart]) -> Html:
    if not charts:
        return Html("")
    return join(
        [
            element("h3", text("Figures")),
            element("div", *(_figure(chart) for chart in charts), class_="figures"),
        ]
    )


def _figure(chart: Chart) -> Html:
    from snellen.figures.style import save

    source = data_uri("image/svg+xml", save(chart.figure, "svg", clear=True))
    width, height = (96 * inches for inches in chart.figure.get_size_inches())
    image = element(
        "img", src=source, alt=f"{chart.title}. {chart.caption}", width=f"{width:.0f}",
        height=f"{height:.0f}", class_="photo" if chart.has_photo else "drawing",
    )  # fmt: skip
    caption = element("figcaption", element("b", text(chart.title)), text(" " + chart.caption))
    is_wide = chart.figure.get_figwidth() > WIDE_INCHES
    return element(
        "figure", scroll_box(image, chart.title), caption, class_="wide" if is_wide else None
    )


def _breakdowns(section: Section) -> Html:
    parts = []
    for k, dimension in enumerate(_dimensions(section.runs)):
        table = boards.across(section.runs, dimension, _first_metric(section.runs, dimension))
        summary = element("summary", text(table.title))
        parts.append(element("details", summary, table_element(table), open=k == 0))
    return join([element("h3", text("Breakdowns")), *parts]) if parts else Html("")


def _readings(section: Section) -> Html:
    """Every number in its readings, and every breakdown with all metrics, a fold a run."""
    note = (
        "Value is the protocol's strict number: what could not be scored counts against it. "
        "\u201cOver scored\u201d leaves that out, \u201cupper\u201d counts it as right; n is the "
        "denominator."
    )
    headline = boards.headline_readings(section.runs)
    parts = [
        element("h3", text("All readings")),
        element("p", text(note), class_="note"),
        element("h4", text(headline.title)),
        table_element(headline),
    ]
    for k, run in enumerate(section.runs):
        name = element("summary", text(run.name))
        first = table_element(replace(readings(run), notes=()))
        # The breakdowns stay closed on paper.
        folds = [
            element(
                "details",
                element("summary", text(f"All metrics by {dimension_title(dimension)}")),
                table_element(breakdown(run, dimension)),
                class_="screen-only",
            )
            for dimension in _dimensions([run])
        ]
        is_open = k == 0 and len(section.runs) == 1
        parts.append(element("details", name, first, *folds, open=is_open))
    return join(parts)


def _how(section: Section) -> Html:
    """All of `run.json` in readable form."""
    facts = facts_of(section.runs)
    rows = [
        element("tr", element("th", text(name), scope="row"), element("td", text(value)))
        for name, value in facts.shared
    ]
    shared = element("table", element("tbody", *rows), class_="facts")
    parts = [
        element("h3", text("How it was measured")),
        scroll_box(shared, "How it was measured"),
    ]
    if facts.differing:
        columns = plain("Model", *(name for name, _ in facts.differing))
        cells = zip(*(values for _, values in facts.differing), strict=True)
        names = [Label(run.name) for run in section.runs]
        table = Table("", columns, tuple((n, *c) for n, c in zip(names, cells, strict=True)))
        parts += [element("h4", text("What differs between the models")),
                  table_element(table, label="What differs between the models")]  # fmt: skip
    parts += [_prompt(purpose, p.name, p.sha256, p.text) for purpose, p in prompts_of(section.runs)]
    parts += [_items(names, items) for names, items in item_sets(section.runs)]
    return element("div", *parts, class_="how")


def _prompt(purpose: str, name: str, sha256: str, words: str) -> Html:
    return element(
        "details",
        element("summary", text(f"Prompt: {purpose} ({name})")),
        element("p", text("sha256 "), element("code", text(sha256)), class_="note"),
        element("pre", text(words), dir="auto"),
    )


def _items(names: Sequence[str], items: Mapping[str, str]) -> Html:
    shown = [f"{name} {digest[:12]}" for name, digest in list(items.items())[:MOST_IDS]]
    left = len(items) - len(shown)
    whose = "" if len(names) == 1 else f" of {len(names)} runs"
    more = f"\n\u2026 and {left:,} more in run.json" if left > 0 else ""
    return element(
        "details",
        element(
            "summary", text(f"The {len(items):,} items{whose}, with the start of their hashes")
        ),
        element("pre", text("\n".join(shown) + more), class_="ids"),
        class_="screen-only",
    )


def _gallery(gallery: Gallery) -> Html:
    """The frame of the gallery; the script fills it from the data."""
    if not gallery.failures:
        return Html("")
    kinds = dict(all_kinds(gallery))
    said = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n)
    lead = (
        f"{sum(kinds.values()):,} probes were not right ({said}); "
        f"{len(gallery.failures):,} of them are here."
    )
    script_note = element(
        "noscript", element("p", text("The gallery needs JavaScript; all else does not."))
    )
    selects = [
        _select(name, label)
        for name, label in (
            ("protocol", "Protocol"), ("model", "Model"), ("kind", "Verdict"),
            ("category", "Category"), ("domain", "Domain"),
        )
    ]  # fmt: skip
    search = element(
        "label", element("span", text("Search")),
        element("input", type="search", id="filter-text", autocomplete="off", spellcheck="false"),
    )  # fmt: skip
    reset = element("button", text("Clear"), type="button", id="filter-clear")
    return element(
        "section",
        element("h2", text("Failures")),
        element("p", text(lead), class_="lead"),
        script_note,
        element("div", *selects, search, reset, class_="filters", role="search", id="filters"),
        element("p", id="found", role="status", aria_live="polite"),
        element("div", id="cards"),
        element("button", text("Show more"), type="button", id="more", hidden=True),
        id="failures",
    )


def _select(name: str, label: str) -> Html:
    return element(
        "label", element("span", text(label)),
        element("select", element("option", text("all"), value=""), id=f"filter-{name}"),
    )  # fmt: skip


def regions_of(folder: str | Path) -> dict[str, Region]:
    """The regions of a benchmark by id: a folder's, or a bundled one's by name."""
    from snellen.readers import load_benchmark

    return {region.region_id: region for region in load_benchmark(str(folder)).regions}


def bundled_regions(runs: Sequence[Run]) -> dict[str, Region]:
    """The regions of those runs' benchmarks that come with Snellen; no other is looked for."""
    from snellen.readers.catalog import KNOWN

    found: dict[str, Region] = {}
    for name in dict.fromkeys(run.spec.benchmark for run in runs):
        if name in KNOWN and KNOWN[name].path is not None:
            found |= regions_of(name)
    return found
