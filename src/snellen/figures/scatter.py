"""Points and lines: trade-offs, alignment with outside ratings, curves.

Sources: CapProbe, figure 5 (coverage against density); PerceptionRubrics, figures 6 (the gap),
8 (rubric coverage) and 9 (alignment).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snellen.figures.chart import Chart
from snellen.figures.series import MOST_SHOWN, name_of, plain_value, scaled
from snellen.figures.style import (
    DOUBLE,
    INK,
    NEUTRAL,
    PALE,
    SINGLE,
    SMALL,
    SOFT,
    look_of,
    new_figure,
    percent_axis,
    plain,
    spread_labels,
    styled,
)
from snellen.runs.folder import Run
from snellen.runs.naming import kept_share, whole_name
from snellen.runs.summary import summary_of
from snellen.stats.agreement import pearson, spearman
from snellen.studies.published import METRICS, published_models

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME_CHARS = 24
MOST_NAMES = 6
"""How many points carry their names; more are numbered, with a key beside the figure."""


@dataclass(frozen=True, slots=True)
class Point:
    """A named point; `x_interval` and `y_interval` are 95% intervals in the units of the axes."""

    name: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class LengthPoint:
    """Captions of about one length: mean tokens, coverage and effective accuracy in per cent."""

    name: str
    tokens: float
    coverage: float
    effective: float


@dataclass(frozen=True, slots=True)
class SpreadPoint:
    """How far scores scatter (standard deviation, in points) when a share of rubrics is kept.

    `share` is a fraction of 1; `values` holds one spread a model.
    """

    share: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GapPoint:
    """A model's atomic accuracy and gate pass rate, in per cent."""

    name: str
    atomic: float
    gate: float


def frontier(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that no other beats on both axes, from left to right.

    >>> [p.name for p in frontier([Point("a", 1, 3), Point("b", 2, 2), Point("c", 1, 1)])]
    ['a', 'b']
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.x, -p.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return tuple(reversed(best))


def trade_off(
    points: Sequence[Point],
    *,
    x_title: str = "Coverage, %",
    y_title: str = "Global density, \u2030",
    published: Sequence[Point] = (),
) -> Figure:
    """Two goals against each other, with intervals and the frontier that no model beats.

    `published` are grey points of others, without names.
    """
    known = [p for p in points if not (math.isnan(p.x) or math.isnan(p.y))]
    with styled():
        figure = _figure_for(known)
        axes = figure.add_subplot()
        edge = frontier(known)
        axes.plot(
            [p.x for p in edge], [p.y for p in edge], color=SOFT, linewidth=0.9, linestyle="--",
            drawstyle="steps-pre", label="Pareto frontier", zorder=1,
        )  # fmt: skip
        if published:
            axes.plot(
                [p.x for p in published], [p.y for p in published], linestyle="", marker="o",
                markersize=3.5, color=NEUTRAL, alpha=0.7, label="published", zorder=2,
            )  # fmt: skip
        _crosses(axes, known)
        _dots(axes, known)
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        _pad_limits(axes, [*known, *published])
        axes.grid(visible=True)
        axes.legend(loc="upper right")
        _name_points(axes, known, avoid=_along(edge))
    return figure


def _figure_for(points: Sequence[Point]) -> Figure:
    """A narrow figure, or a wide one where a key needs room."""
    return new_figure(SINGLE if len(points) <= MOST_NAMES else DOUBLE, 2.7)


def _dots(axes: Axes, points: Sequence[Point]) -> None:
    for k, point in enumerate(points):
        style = look_of(point.name, k)
        axes.plot(
            [point.x], [point.y], linestyle="", marker=style.marker, color=style.colour,
            markeredgecolor="white", markeredgewidth=0.5, markersize=6, zorder=3,
        )  # fmt: skip


def _crosses(axes: Axes, points: Sequence[Point]) -> None:
    for k, p in enumerate(points):
        colour = look_of(p.name, k).colour
        if p.x_interval is not None:
            axes.plot(p.x_interval, [p.y, p.y], color=colour, linewidth=0.8, alpha=0.55, zorder=2)
        if p.y_interval is not None:
            axes.plot([p.x, p.x], p.y_interval, color=colour, linewidth=0.8, alpha=0.55, zorder=2)


def _pad_limits(axes: Axes, points: Sequence[Point]) -> None:
    for values, setter in (
        ([v for p in points for v in (p.x, *(p.x_interval or ()))], axes.set_xlim),
        ([v for p in points for v in (p.y, *(p.y_interval or ()))], axes.set_ylim),
    ):
        low, high = min(values), max(values)
        pad = 0.12 * (high - low) or max(abs(high), 1.0) * 0.1
        setter(low - pad, high + pad)


def _along(edge: Sequence[Point], steps: int = 14) -> list[tuple[float, float]]:
    """Places along the drawn frontier, which names should not cover."""
    places = []
    for left, right in itertools.pairwise(edge):
        for k in range(1, steps):
            share = k / steps
            places.append((left.x, left.y + share * (right.y - left.y)))
            places.append((left.x + share * (right.x - left.x), right.y))
    return places


def _name_points(
    axes: Axes, points: Sequence[Point], *, avoid: Sequence[tuple[float, float]] = ()
) -> None:
    """Names beside the points, or their numbers where there are many, and a key."""
    places = [(p.x, p.y) for p in points]
    if len(points) <= MOST_NAMES:
        names = [plain(p.name, NAME_CHARS) for p in points]
        spread_labels(axes, places, names, (190.0, 135.0), avoid=avoid)
        return
    spread_labels(axes, places, _numbers(points), (260.0, 150.0), avoid=avoid)
    _key(axes, [p.name for p in points])


def _numbers(points: Sequence[object]) -> list[str]:
    return [str(k) for k in range(1, len(points) + 1)]


def _key(axes: Axes, names: Sequence[str]) -> None:
    """A list of numbers and names beside the figure."""
    from matplotlib.lines import Line2D

    looks = [look_of(name, k) for k, name in enumerate(names)]
    handles = [Line2D([], [], linestyle="", marker=s.marker, color=s.colour) for s in looks]
    texts = [f"{k}  {plain(name, 32)}" for k, name in enumerate(names, 1)]
    axes.figure.legend(handles, texts, loc="outside right upper", handlelength=1.0)


def alignment(
    points: Sequence[Point], *, x_title: str = "Outside rating", y_title: str = "Score, %"
) -> Figure:
    """Scores against outside ratings, with Pearson's r, R squared and Spearman's rho."""
    with styled():
        figure = _figure_for(points)
        axes = figure.add_subplot()
        _crosses(axes, points)
        _dots(axes, points)
        axes.set_xlabel(plain(x_title, 48))
        axes.set_ylabel(plain(y_title, 48))
        _pad_limits(axes, points)
        axes.grid(visible=True)
        xs, ys = [p.x for p in points], [p.y for p in points]
        r = pearson(xs, ys)[0]
        axes.set_title(
            f"Pearson {r:.3f} (R\u00b2 {r * r:.3f}), Spearman {spearman(xs, ys)[0]:.3f}, "
            f"n = {len(points)}",
            fontsize=SMALL, fontweight="normal", color=SOFT,
        )  # fmt: skip
        _name_points(axes, points)
    return figure


def length_lines(points: Sequence[LengthPoint]) -> Figure:
    """Coverage and effective accuracy of models against the mean length of their captions."""
    ordered = sorted(points, key=lambda p: p.tokens)
    tokens = [p.tokens for p in ordered]
    with styled():
        figure = new_figure(SINGLE if len(points) <= MOST_NAMES else DOUBLE, 2.6)
        axes = figure.add_subplot()
        for p in ordered:
            axes.plot([p.tokens] * 2, [p.coverage, p.effective], color=PALE, linewidth=1, zorder=1)
        _pairs(axes, ("Coverage", "Effective accuracy"), {
            p.name: ((p.tokens, p.coverage), (p.tokens, p.effective)) for p in points
        })  # fmt: skip
        _length_axes(axes, tokens)
        axes.set_yticks([0, 20, 40, 60, 80, 100])
        axes.set_ylabel("%")
        figure.legend(loc="outside upper left", ncols=2)
        tops = [(p.tokens, max(p.coverage, p.effective)) for p in ordered]
        lows = [(p.tokens, min(p.coverage, p.effective)) for p in ordered]
        if len(ordered) <= MOST_NAMES:
            names = [plain(p.name, NAME_CHARS) for p in ordered]
            spread_labels(axes, tops, names, (200.0, 125.0), avoid=lows)
        else:
            spread_labels(axes, tops, _numbers(ordered), (330.0, 125.0), avoid=lows)
            _key(axes, [p.name for p in ordered])
    return figure


Place = tuple[float, float]


def _pairs(axes: Axes, titles: tuple[str, str], places: Mapping[str, tuple[Place, Place]]) -> None:
    """Two numbers of each model in its colour: a full circle and an empty square."""
    for k, (name, pair) in enumerate(places.items()):
        colour = look_of(name, k).colour
        for (x, y), marker, filling in zip(pair, "os", (colour, "white"), strict=True):
            axes.plot([x], [y], linestyle="", marker=marker, color=colour, markerfacecolor=filling)
    for title, marker, filling in zip(titles, "os", (SOFT, "white"), strict=True):
        axes.plot([], [], linestyle="", marker=marker, color=SOFT, markerfacecolor=filling,
                  label=title)  # fmt: skip


def length_curves(curves: Mapping[str, Sequence[LengthPoint]]) -> Figure:
    """Coverage and effective accuracy against the length of cut captions: one curve a model."""
    with styled():
        figure = new_figure(DOUBLE, 2.6)
        panels = figure.subplots(1, 2, sharex=True)
        for k, (name, points) in enumerate(curves.items()):
            ordered, style = sorted(points, key=lambda p: p.tokens), look_of(name, k)
            for axes, values in zip(
                panels, ([p.coverage for p in ordered], [p.effective for p in ordered]), strict=True
            ):
                axes.plot(
                    [p.tokens for p in ordered], values, color=style.colour, marker=style.marker,
                    linestyle=style.dash, label=plain(name, NAME_CHARS),
                )  # fmt: skip
        tokens = [p.tokens for points in curves.values() for p in points]
        for axes, title in zip(panels, ("Coverage, %", "Effective accuracy, %"), strict=True):
            _length_axes(axes, tokens)
            axes.set_ylabel(title)
            axes.grid(visible=True)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=3)
    return figure


def _length_axes(axes: Axes, tokens: Sequence[float]) -> None:
    percent_axis(axes, "y", top=109)
    pad = 0.12 * (max(tokens) - min(tokens)) or 10.0
    axes.set_xlim(max(0.0, min(tokens) - pad), max(tokens) + pad)
    axes.set_xlabel("Tokens per caption")


def gap_lines(points: Sequence[GapPoint]) -> Figure:
    """Atomic accuracy and gate pass of each model, joined: the length is the reliability gap."""
    ordered = sorted(points, key=lambda p: (-p.gate, p.name))
    with styled():
        figure = new_figure(SINGLE, 0.95 + 0.24 * len(ordered))
        axes = figure.add_subplot()
        for y, p in enumerate(ordered):
            axes.plot([p.gate, p.atomic], [y, y], color=PALE, linewidth=3.0, zorder=1)
            axes.text(
                max(p.gate, p.atomic) + 3.5, y, f"{p.gate - p.atomic:+.1f}".replace("-", "\u2212"),
                va="center_baseline", fontsize=SMALL, color=SOFT,
            )  # fmt: skip
        rows = range(len(ordered))
        _pairs(axes, ("Atomic accuracy", "Gate pass"), {
            p.name: ((p.atomic, ordered.index(p)), (p.gate, ordered.index(p))) for p in points
        })  # fmt: skip
        axes.set_yticks(rows, [plain(p.name, 28) for p in ordered])
        axes.set_ylim(len(ordered) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        percent_axis(axes, top=113)
        axes.set_xticks([0, 20, 40, 60, 80, 100])
        axes.set_xlabel("%  (number: the gap in points)")
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def coverage_curve(points: Sequence[SpreadPoint], *, remark: str = "") -> Figure:
    """How steady scores are when only a share of the rubrics is kept: a dot a model, and means.

    `remark` stands behind the models in the legend.
    """
    dot = f"one model{remark}"
    ordered = sorted(points, key=lambda p: p.share)
    with styled():
        figure = new_figure(SINGLE, 2.4)
        axes = figure.add_subplot()
        for k, point in enumerate(ordered):
            axes.plot(
                [100 * point.share] * len(point.values), point.values, linestyle="", marker="o",
                markersize=3, color=NEUTRAL, alpha=0.7, label=dot if k == 0 else None,
            )  # fmt: skip
        means = [(100 * p.share, sum(p.values) / len(p.values)) for p in ordered if p.values]
        axes.plot(*zip(*means, strict=True), color=INK, marker="s", label="mean of models")
        for x, y in means:
            axes.annotate(
                f"{y:.2f}", (x, y), xytext=(6, 4), textcoords="offset points", fontsize=SMALL,
                color=INK,
            )  # fmt: skip
        axes.set_xlim(0, 106)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True)
        axes.set_xlabel("Rubrics kept, %")
        axes.set_ylabel("Spread of scores, points")
        figure.legend(loc="outside upper left", ncols=2)
    return figure


def trade_chart(runs: Sequence[Run]) -> Chart | None:
    """Coverage against global density of runs and published rows; None for fewer than two."""
    points = []
    for run in runs:
        metrics = summary_of(run).metrics
        x, y = metrics.get("coverage"), metrics.get("global_density")
        if x is not None and y is not None and x.value is not None and y.value is not None:
            points.append(
                Point(name_of(run), 100 * x.value, y.value, scaled(x.ci95, 100), scaled(y.ci95, 1))
            )
    published = published_points(runs[0].spec.benchmark)
    if len(points) + len(published) < 2 or not points:
        return None
    caption = (
        "Correct answers per thousand caption tokens against how many questions the captions let "
        "the judge answer. Bars are 95% intervals."
    )
    if published:
        caption += f" Grey: the {len(published)} published rows, under another judge."
    figure = trade_off(points, published=published)
    return Chart("coverage-density", "Coverage against global density", caption, figure)


def published_points(benchmark: str) -> list[Point]:
    """Coverage in per cent and global density of the published rows; none where none are known."""
    if "coverage" not in METRICS.get(benchmark, ()):
        return []
    rows = [(row.model, row.metrics) for row in published_models(benchmark)]
    return [Point(name, 100 * m["coverage"], m["global_density"]) for name, m in rows]


def length_chart(runs: Sequence[Run]) -> Chart | None:
    """Coverage and effective accuracy by the length of captions; None for fewer than two runs."""
    whole = [run for run in runs if kept_share(run) is None]
    points = [point for run in whole for point in _length_points(run)]
    if len(points) < 2:
        return None
    caption = "Each point is one model, at the mean length of its captions."
    return Chart(
        "length", "Coverage and effective accuracy by caption length", caption,
        length_lines(points),
    )  # fmt: skip


def curves_chart(runs: Sequence[Run]) -> Chart | None:
    """The same by model for captions cut to several lengths; None without such runs."""
    curves: dict[str, list[LengthPoint]] = {}
    for run in runs:
        if kept_share(run) is not None:
            model = replace(run.spec.model, name=whole_name(run))
            name = name_of(replace(run, spec=replace(run.spec, model=model)))
            curves.setdefault(name, []).extend(_length_points(run))
    drawn = {name: curve for name, curve in curves.items() if len(curve) > 1}
    shown = dict(list(drawn.items())[:MOST_SHOWN])
    if not shown:
        return None
    caption = "Stored captions, cut at sentence ends and judged again: one curve a model."
    if len(drawn) > len(shown):
        caption += f" The first {len(shown)} of {len(drawn)} models."
    return Chart(
        "length-curves", "What shorter captions would score", caption, length_curves(shown)
    )


def _length_points(run: Run) -> list[LengthPoint]:
    """A run's place in a figure of lengths; none where a number of it is missing."""
    metrics = summary_of(run).metrics
    known = [plain_value(metrics.get(n)) for n in ("tokens_per_image", "coverage", "effective_acc")]
    if any(math.isnan(v) for v in known):
        return []
    return [LengthPoint(name_of(run), known[0], 100 * known[1], 100 * known[2])]


def gap_chart(runs: Sequence[Run]) -> Chart | None:
    """Atomic accuracy beside gate pass; None where no run has both."""
    points = []
    for run in runs:
        metrics = summary_of(run).metrics
        atomic, gate = plain_value(metrics.get("atomic_acc")), plain_value(metrics.get("gate_pass"))
        if not (math.isnan(atomic) or math.isnan(gate)):
            points.append(GapPoint(name_of(run), 100 * atomic, 100 * gate))
    if not points:
        return None
    caption = (
        "Single statements that hold, against pictures on which every Must-Right one holds. The "
        "gap is gate pass \u2212 atomic accuracy."
    )
    left_out = len(runs) - len(points)
    if left_out:
        caption += f" Left out for want of atomic accuracy: {left_out} of {len(runs)} runs."
    return Chart("gap", "Atomic accuracy and gate pass", caption, gap_lines(points))
