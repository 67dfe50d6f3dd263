"""Figures of the studies: alignment with outside ratings, and rubric coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from snellen.figures import scatter
from snellen.figures.chart import Chart
from snellen.figures.style import LOW_SUFFIX
from snellen.runs.folder import Run
from snellen.studies.alignment import Alignment
from snellen.studies.rubric import CoveragePoint, coverage_of
from snellen.tables.studies import aligned_title as title_of
from snellen.tables.table import format_of


def alignment_chart(alignment: Alignment, metric: str) -> Chart:
    """One metric against the outside ratings, a point a model; rates are in per cent."""
    is_percent = format_of(metric).unit in {"%", "points"}
    factor = 100.0 if is_percent else 1.0
    scores = alignment.scores[metric]
    points = [
        scatter.Point(model, rating, factor * scores[model])
        for model, rating in alignment.ratings.items()
        if not math.isnan(scores[model])
    ]
    title = title_of(metric)
    is_low = any(note.startswith("low fidelity") for note in alignment.notes)
    low = LOW_SUFFIX if is_low else ""
    unit = ", %" if is_percent else ""
    caption = f"{title} of {len(points)} models against outside ratings."
    figure = scatter.alignment(points, y_title=f"{title}{unit}{low}")
    return Chart(f"alignment-{metric}", f"Alignment: {title}", caption, figure)


def coverage_chart(points: Sequence[CoveragePoint], *, is_low: bool = False) -> Chart:
    """How far scores scatter when a share of the rubrics is kept, in points.

    `is_low` says that the scores are of low fidelity.
    """
    spread = [
        scatter.SpreadPoint(p.share, tuple(100 * sd for sd in p.score_sd.values())) for p in points
    ]
    caption = (
        f"Standard deviation of the score over {points[0].draws} draws, in points: a dot a model, "
        "squares their means."
    )
    figure = scatter.coverage_curve(spread, remark=LOW_SUFFIX if is_low else "")
    return Chart("coverage", "Rubric coverage", caption, figure)


def rubric_coverage_chart(runs: Sequence[Run]) -> Chart | None:
    """How far the scores of runs scatter when rubrics are left out; None where unknown."""
    points = coverage_of(runs)
    is_low = any(run.spec.judge.fidelity == "low" for run in runs)
    return coverage_chart(points, is_low=is_low) if points else None
