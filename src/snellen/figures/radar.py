"""Radar charts: one axis a category or capability, one outline a model.

Source: CapProbe, figure 4 (question categories).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from snellen.figures.chart import Chart
from snellen.figures.series import Series, few_of, labels_of, percent, series_of
from snellen.figures.style import (
    DOUBLE,
    INK,
    RULE,
    SMALL,
    SOFT,
    ability,
    legend_name,
    look_of,
    new_figure,
    styled,
    wrapped,
)
from snellen.runs.folder import Run
from snellen.tables.table import title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

LEAST_AXES = 3
WRAP = 16
LEGEND_COLUMNS = 3


def radar(series: Sequence[Series], *, intervals: bool = False) -> Figure:
    """A radar of rates in per cent; with `intervals`, their 95% intervals on each axis."""
    labels = labels_of(series)
    with styled():
        rows = math.ceil(len(series) / LEGEND_COLUMNS)
        figure = new_figure(DOUBLE, 3.85 + 0.15 * rows)
        axes = cast("PolarAxes", figure.add_subplot(projection="polar"))
        angles = [2 * math.pi * k / len(labels) for k in range(len(labels))]
        top = _top(series, intervals=intervals)
        _dress(axes, labels, angles, top)
        for k, one in enumerate(series):
            values = [percent(one.values.get(label)) for label in labels]
            style = look_of(one.name, k)
            axes.plot(
                [*angles, angles[0]], [*values, values[0]], color=style.colour,
                marker=style.marker, linestyle=style.dash, label=legend_name(one.name),
                clip_on=False, zorder=3,
            )  # fmt: skip
            if len(series) == 1:
                axes.fill([*angles, angles[0]], [*values, values[0]], color=style.colour, alpha=0.1)
            if intervals:
                for label, angle in zip(labels, angles, strict=True):
                    found = one.values.get(label)
                    if found is not None and found.ci95 is not None:
                        # Whiskers of several models stand side by side.
                        shifted = angle + 0.035 * (k - (len(series) - 1) / 2)
                        axes.plot(
                            [shifted] * 2, [100 * end for end in found.ci95], color=style.colour,
                            linewidth=0.9, alpha=0.8,
                        )  # fmt: skip
        figure.legend(loc="outside lower center", ncols=min(LEGEND_COLUMNS, len(series)))
    return figure


def _top(series: Sequence[Series], *, intervals: bool) -> float:
    """The outer ring: the next ten per cent above everything shown."""
    highest = 0.0
    for one in series:
        for value in one.values.values():
            highest = max(highest, 0.0 if value.value is None else value.value)
            if intervals and value.ci95 is not None:
                highest = max(highest, value.ci95[1])
    return min(100.0, max(20.0, 10 * math.ceil(10 * highest - 1e-9)))


def _dress(axes: PolarAxes, labels: Sequence[str], angles: Sequence[float], top: float) -> None:
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, top)
    step = 20 if top > 40 else 10
    axes.set_yticks([float(t) for t in range(step, int(top) + 1, step)])
    axes.set_yticklabels([f"{t}" for t in range(step, int(top) + 1, step)], color=SOFT)
    axes.set_rlabel_position(180 / len(labels))
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_xticks(angles)
    axes.set_xticklabels([""] * len(labels))
    axes.spines["polar"].set_color(RULE)
    for label, angle in zip(labels, angles, strict=True):
        across = math.sin(angle)
        axes.text(
            angle, top * 1.08, wrapped(ability(label), WRAP), color=INK, fontsize=8.0,
            ha="center" if abs(across) < 0.2 else "left" if across > 0 else "right",
            va="center" if abs(across) >= 0.2 else "bottom" if math.cos(angle) > 0 else "top",
        )  # fmt: skip


def _radar_chart(
    runs: Sequence[Run], dimension: str, metric: str, title: str, *, intervals: bool = False
) -> Chart | None:
    shown, remark = few_of(runs)
    series = series_of(shown, dimension, metric)
    labels = {label for one in series for label in one.values}
    if len(labels) < LEAST_AXES:
        return None
    lines = " Lines across the axes are 95% intervals." if intervals else ""
    caption = f"Strict values in per cent.{lines}{remark}"
    return Chart(f"radar-{dimension}", title, caption, radar(series, intervals=intervals))


def headline_radar(runs: Sequence[Run]) -> Chart | None:
    """The headline by category of the questions; None for fewer than three categories."""
    headline = runs[0].protocol.headline
    title = f"{title_of(headline)} by question category"
    return _radar_chart(runs, "category", headline, title)


def capability_radar(runs: Sequence[Run]) -> Chart | None:
    """The accuracy by capability with intervals; None for fewer than three capabilities."""
    title = "Accuracy by capability"
    return _radar_chart(runs, "error_category", "accuracy", title, intervals=True)
