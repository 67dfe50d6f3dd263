"""One HTML page about runs: self-contained, without network, safe against what models wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from snellen.errors import DataError
from snellen.figures.chart import Chart
from snellen.figures.selection import overview_chart, write_charts
from snellen.figures.style import page_svg, same_looks
from snellen.records import Region
from snellen.report.environment import environment
from snellen.report.gallery import KINDS, data_uri, gallery_of
from snellen.report.provenance import facts_of, item_sets, prompts_of
from snellen.report.sections import (
    RUBRIC_STUDIES,
    Section,
    breakdowns,
    dimensions,
    failures_table,
    names_of,
    overview_of,
    sections_of,
    stem_of,
    tables_of,
)
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.tables import boards
from snellen.tables.judges import sensitivity_table
from snellen.tables.panel import panel_tables
from snellen.tables.rubric import study_tables
from snellen.tables.runs import breakdown, counts_table, readings, told, unfinished
from snellen.tables.table import Label, Table, counted, plain
from snellen.tables.writers import MARKED, WRITERS, shown

GALLERY_CARDS = 40
MOST_IDS = 4000
WIDE_INCHES = 4.5


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a report holds: failures a run, whether pictures are embedded, known regions by id."""

    gallery: int = GALLERY_CARDS
    pictures: bool = True
    regions: Mapping[str, Region] | None = None


def report(sections: Sequence[Section], options: ReportOptions | None = None) -> str:
    """The page as text.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    options = options or ReportOptions()
    runs = [run for section in sections for run in section.runs]
    gallery = gallery_of(
        runs, most=options.gallery, regions=options.regions, with_pictures=options.pictures
    )
    with same_looks(names_of(sections)):
        # Without figures of the sections none is wanted.
        is_drawn = any(section.charts for section in sections)
        glance = overview_chart({s.title: s.runs for s in sections}) if is_drawn else None
    titles = (section.title for section in sections for _ in section.runs)
    named = [{**run, "benchmark": title} for run, title in zip(gallery.runs, titles, strict=True)]
    return environment().get_template("page.html").render(
        titles=list(dict.fromkeys(s.title for s in sections)),
        style=asset("report.css"),
        script=asset("report.js"),
        overview=shown(overview_of(sections)),
        at_a_glance=glance and _figure(glance),
        went_wrong=shown(failures_table(sections, gallery.totals)),
        sections=[_section(section) for section in sections],
        gallery=replace(gallery, runs=named),
        n_failures={kind: sum(total[kind] for total in gallery.totals) for kind in KINDS},
    )  # fmt: skip


def asset(name: str) -> str:
    """A style or script of this package: the only text that a page takes as it is."""
    from markupsafe import Markup

    return Markup((resources.files("snellen.report") / name).read_text(encoding="utf-8"))


def _section(section: Section) -> dict[str, object]:
    """The values of the section template."""
    runs = section.runs
    summaries = [(run.name, summary_of(run)) for run in runs]
    counts = [summary.counts for _, summary in summaries]
    lead = (
        f"{counted(len(runs), 'model')}, "
        f"{counted(max(c.items for c in counts), 'item')}, "
        f"{counted(max(c.probes for c in counts), 'probe')}; "
        f"judge {runs[0].spec.judge.name}"
    )
    # The warnings stand above the leaderboard already.
    leaderboard = boards.main_table(runs, intervals=True)
    leaderboard = replace(leaderboard, notes=(leaderboard.notes[0], MARKED))
    facts = facts_of(runs)
    differing = None
    if facts.differing:
        cells = zip(*(values for _, values in facts.differing), strict=True)
        rows = tuple((Label(run.name), *c) for run, c in zip(runs, cells, strict=True))
        columns = plain("Model", *(name for name, _ in facts.differing))
        differing = shown(Table("What differs between the models", columns, rows))
    judging = [t for run in runs for t in (sensitivity_table(run), *panel_tables(run)) if t]
    studies = study_tables(runs) if RUBRIC_STUDIES in runs[0].protocol.tables else ()
    return {
        "anchor": section.anchor,
        "title": section.title,
        "protocol": runs[0].spec.protocol,
        "lead": lead,
        "about": runs[0].protocol.about,
        "warnings": list(dict.fromkeys([*told(summaries), *unfinished(summaries)])),
        "leaderboard": shown(leaderboard),
        "figures": [_figure(chart) for chart in section.charts if not chart.is_thin],
        "thin_figures": [_figure(chart) for chart in section.charts if chart.is_thin],
        "breakdowns": [shown(table) for table in breakdowns(runs).values()],
        "headline": shown(boards.headline_readings(runs)),
        "readings": [
            (
                run.name,
                shown(replace(readings(run), notes=())),
                [shown(breakdown(run, name)) for name in dimensions([run])],
            )
            for run in runs
        ],
        "studies": [shown(table) for table in studies],
        "judging": [shown(table) for table in judging],
        "counts": shown(counts_table(runs)),
        "usage": shown(boards.usage_table(runs)),
        "facts": facts.shared,
        "differing": differing,
        "prompts": prompts_of(runs),
        "item_lists": [
            (
                names,
                len(items),
                [f"{name} {digest[:12]}" for name, digest in list(items.items())[:MOST_IDS]],
                max(0, len(items) - MOST_IDS),
            )
            for names, items in item_sets(runs)
        ],
    }


def _figure(chart: Chart) -> dict[str, object]:
    """The values of the figure template."""
    width, height = chart.figure.get_size_inches()
    return {
        "title": chart.title,
        "caption": chart.caption,
        "src": data_uri("image/svg+xml", page_svg(chart.figure)),
        "width": f"{96 * width:.0f}",
        "height": f"{96 * height:.0f}",
        "is_wide": width > WIDE_INCHES,
    }


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
    stems = [stem_of(section.title) or section.anchor for section in sections]
    written = [out]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(report(sections, options), encoding="utf-8")
        for section, stem in zip(sections, stems, strict=True):
            # Sections whose titles make one stem have their numbers behind it.
            prefix = f"{stem}-{section.anchor}-" if stems.count(stem) > 1 else f"{stem}-"
            if figures is not None:
                written += write_charts(section.charts, figures, prefix=prefix)
            if tables_to is not None:
                tables_to.mkdir(parents=True, exist_ok=True)
                for name, table in tables_of(section).items():
                    for kind, write in WRITERS.items():
                        path = tables_to / f"{prefix}{name}.{kind}"
                        path.write_text(write(table), encoding="utf-8")
                        written.append(path)
    except OSError as error:
        raise DataError(f"cannot be written: {error}", file=error.filename or out) from error
    return tuple(written)


def regions_of(folder: str | Path) -> dict[str, Region]:
    """The regions of a benchmark by id: a folder's, or a bundled one's by name."""
    from snellen.readers import load_benchmark

    return {region.region_id: region for region in load_benchmark(str(folder)).regions}


def bundled_regions(runs: Sequence[Run]) -> dict[str, Region]:
    """The regions of those runs' benchmarks that come with Snellen; no other is looked for."""
    from snellen.readers.catalog import KNOWN

    found: dict[str, Region] = {}
    for name in dict.fromkeys(run.spec.benchmark for run in runs):
        if name in KNOWN and KNOWN[name].folder:
            found |= regions_of(name)
    return found
