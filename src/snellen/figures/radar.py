"""Radar charts: one axis a category or capability, one outline a model.

Source: CapProbe, figure 4 (question categories).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snellen.figures.series import Series, labels_of, percent
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_AXES = 3
WRAP = 16
LEGEND_COLUMNS = 3


def radar(series: Sequence[Series], *, intervals: bool = False) -> Figure:
    """A radar of rates in per cent; with `intervals`, their 95% intervals on each axis."""
    labels = labels_of(series)
    with styled():
        rows = math.ceil(len(series) / LEGEND_COLUMNS)
        figure = new_figure(DOUBLE, 3.85 + 0.15 * rows)
        axes = figure.add_subplot(projection="polar")
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
                _whiskers(axes, one, labels, _fan(angles, k, len(series)), style.colour)
        figure.legend(loc="outside lower center", ncols=min(LEGEND_COLUMNS, len(series)))
    return figure


def _fan(angles: Sequence[float], k: int, n: int) -> list[float]:
    """Angles shifted a little for each model, so that whiskers stand side by side."""
    return [a + 0.035 * (k - (n - 1) / 2) for a in angles]


def _top(series: Sequence[Series], *, intervals: bool) -> float:
    """The outer ring: the next ten per cent above everything shown."""
    highest = 0.0
    for one in series:
        for value in one.values.values():
            highest = max(highest, 0.0 if value.value is None else value.value)
            if intervals and value.ci95 is not None:
                highest = max(highest, value.ci95[1])
    return min(100.0, max(20.0, 10 * math.ceil(10 * highest - 1e-9)))


def _dress(axes: Any, labels: Sequence[str], angles: Sequence[float], top: float) -> None:
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


def _whiskers(
    axes: Any, one: Series, labels: Sequence[str], angles: Sequence[float], colour: str
) -> None:
    for label, angle in zip(labels, angles, strict=True):
        value = one.values.get(label)
        if value is not None and value.ci95 is not None:
            low, high = (100 * end for end in value.ci95)
            axes.plot([angle, angle], [low, high], color=colour, linewidth=0.9, alpha=0.8)
