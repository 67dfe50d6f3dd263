"""Which figures a group of runs has, and how they are written as files.

A figure that needs more runs, or numbers that are not there, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from snellen.figures import overview, style
from snellen.figures.bars import (
    domain_chart,
    generator_chart,
    rubric_domain_chart,
    shares_chart,
    shut_gates_chart,
    tree_chart,
)
from snellen.figures.calibration import reliability_chart
from snellen.figures.card import card_chart
from snellen.figures.chart import Chart
from snellen.figures.heat import heat_chart
from snellen.figures.radar import capability_radar, headline_radar
from snellen.figures.rings import rings_chart
from snellen.figures.scatter import curves_chart, gap_chart, length_chart, trade_chart
from snellen.figures.series import (
    MOST_SHOWN,
    axis_title,
    best_runs,
    scaled,
)
from snellen.figures.study_charts import rubric_coverage_chart
from snellen.records import Region
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.tables.table import measured, metric_column

KINDS = ("png", "svg", "pdf")
# Charts of the benchmark alone, which no judge can get wrong.
OF_THE_DATA = frozenset({"shares-category", "domains", "rings"})


def charts_of(
    runs: Sequence[Run], *, regions: Mapping[str, Region] | None = None
) -> tuple[Chart, ...]:
    """All figures of runs of one protocol on the same data, the best run first.

    `regions` by id let the qualitative card show where its probes are anchored.
    """
    ordered = best_runs(runs, len(runs))
    is_low = all(run.spec.judge.fidelity == "low" for run in ordered)
    if is_low:
        # Said once in each figure, instead of behind each name.
        ordered = tuple(
            replace(run, spec=replace(run.spec, judge=replace(run.spec.judge, fidelity="")))
            for run in ordered
        )
    charts = [CHARTS[name](ordered) for name in ordered[0].protocol.charts]
    shown = card_chart(ordered, regions)
    found = tuple(chart for chart in (*charts, shown) if chart is not None)
    if is_low:
        for chart in (chart for chart in found if chart.name not in OF_THE_DATA):
            style.stamp(chart.figure, style.LOW_SUFFIX.strip(" ()"))
    return found


def overview_chart(groups: Mapping[str, Sequence[Run]]) -> Chart | None:
    """The headline number of each run with its interval: a panel for each titled group of runs."""
    panels = []
    for title, runs in groups.items():
        metric = runs[0].protocol.headline
        factor = 100 if metric_column(metric).format.unit == "%" else 1
        rows = []
        for run in best_runs(runs):
            cell = measured(summary_of(run).metrics[metric])
            if cell.value is not None:
                rows.append((run.name, factor * cell.value, scaled(cell.interval, factor)))
        is_low = any(run.spec.judge.fidelity == "low" for run in runs)
        if rows:
            panels.append(
                overview.Panel(title + (style.LOW_SUFFIX if is_low else ""), axis_title(metric),
                               tuple(rows))
            )  # fmt: skip
    if not panels:
        return None
    caption = "Headline numbers; lines are 95% intervals."
    if len(panels) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(panels)} benchmarks."
    if any(len(runs) > MOST_SHOWN for runs in groups.values()):
        caption += f" The best {MOST_SHOWN} models of each benchmark."
    return Chart("overview", "At a glance", caption, overview.overview(panels[:MOST_SHOWN]))


def write_charts(charts: Sequence[Chart], folder: Path, *, prefix: str = "") -> list[Path]:
    """Writes each chart as PNG, SVG and PDF; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        for kind in KINDS:
            path = folder / f"{prefix}{chart.name}.{kind}"
            path.write_bytes(style.save(chart.figure, kind))
            written.append(path)
    return written


# The charts of runs of one protocol, by the names that protocols have for them.
CHARTS: Mapping[str, Callable[[Sequence[Run]], Chart | None]] = {
    "radar-category": headline_radar,
    "radar-capability": capability_radar,
    "trade": trade_chart,
    "length": length_chart,
    "length-curves": curves_chart,
    "bars-generator": generator_chart,
    "reliability": reliability_chart,
    "shares": lambda runs: shares_chart(runs[0]),
    "bars-l1": lambda runs: domain_chart(runs, "l1"),
    "bars-domain": lambda runs: domain_chart(runs, "domain"),
    "tree": lambda runs: tree_chart(runs[0]),
    "rings": lambda runs: rings_chart(runs[0]),
    "heat": heat_chart,
    "gap": gap_chart,
    "coverage": rubric_coverage_chart,
    "bars-category": rubric_domain_chart,
    "bars-gates": shut_gates_chart,
}
