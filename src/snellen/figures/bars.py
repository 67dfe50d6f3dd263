"""Bar charts: accuracy by domain and generator, shares of categories, the tree of domains.

Source: CapProbe, figures 2 (domains), 3 (categories) and 9 (accuracy by domain).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from snellen.figures.series import Series, labels_of, percent
from snellen.figures.style import (
    DOUBLE,
    INK,
    NEUTRAL,
    PALE,
    SINGLE,
    SMALL,
    SOFT,
    faded,
    legend_name,
    look,
    look_of,
    new_figure,
    percent_axis,
    plain,
    readable,
    styled,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW_IMAGES = 5
BAR_HEIGHT = 0.135
GROUP_GAP = 0.1
THIN_BAR = 0.075
MOST_NUMBERED = 3
MOST_HEIGHT = 8.3
ROWS_A_COLUMN = 20
LABEL_CHARS = 24
CHARS_AN_INCH = 15.5


@dataclass(frozen=True, slots=True)
class _Plan:
    """How rows of bars are laid out: inches a bar, rows a column, columns, numbers on each bar."""

    bar: float
    n_columns: int
    a_column: int
    number_each: bool

    @property
    def row(self) -> float:
        """The height of a row of bars in inches, its gap included."""
        return self.bar + GROUP_GAP


def _plan(n_series: int, n_rows: int) -> _Plan:
    """Few models have thick bars that carry a number each; many are packed to fit a page."""
    each = n_series <= MOST_NUMBERED
    bar = (BAR_HEIGHT if each else THIN_BAR) * n_series
    for n_columns in (1, 2, 3):
        a_column = math.ceil(n_rows / n_columns)
        if a_column * (bar + GROUP_GAP) <= MOST_HEIGHT:
            break
    return _Plan(bar, n_columns, a_column, each)


def domain_bars(
    series: Sequence[Series], *, few: int = FEW_IMAGES, unit: str = "images", title: str = ""
) -> Figure:
    """Rates by domain, best domain first, with the number of items on the bars.

    Domains with fewer than `few` items are grey: their rates describe those items and no more.
    """
    rows = _by_mean(series)
    plan = _plan(len(series), len(rows))
    with styled():
        narrow = plan.n_columns == 1 and len(series) == 1
        figure = new_figure(SINGLE if narrow else DOUBLE, 0.85 + plan.a_column * plan.row)
        grid = figure.subplots(1, plan.n_columns, squeeze=False)[0]
        for k, axes in enumerate(grid):
            part = rows[k * plan.a_column : (k + 1) * plan.a_column]
            _domain_column(axes, series, part, few=few, plan=plan)
            axes.set_ylim(plan.a_column - 0.5, -0.5)
        figure.supxlabel(title or "Overall accuracy, %", fontsize=8)
        _domain_legend(figure, series, few=few, unit=unit, rows=rows)
    return figure


def _by_mean(series: Sequence[Series]) -> list[str]:
    def mean(label: str) -> float:
        known = [v for one in series if not math.isnan(v := percent(one.values.get(label)))]
        return sum(known) / len(known) if known else -1.0

    return sorted(labels_of(series), key=lambda label: (-mean(label), label))


def _n_items(series: Sequence[Series], label: str) -> int:
    return max((one.n_items.get(label, 0) for one in series), default=0)


def _domain_column(
    axes: Any, series: Sequence[Series], rows: Sequence[str], *, few: int, plan: _Plan
) -> None:
    for place, label in enumerate(rows):
        _domain_row(axes, series, (place, label), few=few, plan=plan)
    width = LABEL_CHARS if plan.n_columns < 3 else 14
    names = [wrapped(readable(label), width) for label in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.tick_params(axis="y", length=0)
    percent_axis(axes, top=114)
    axes.set_xticks([0, 25, 50, 75, 100] if plan.n_columns < 3 else [0, 50, 100])
    axes.spines["left"].set_visible(False)


def _domain_row(
    axes: Any, series: Sequence[Series], row: tuple[int, str], *, few: int, plan: _Plan
) -> None:
    place, label = row
    n = _n_items(series, label)
    thick = plan.bar / len(series) / plan.row
    values = [percent(one.values.get(label)) for one in series]
    for k, value in enumerate(values):
        if math.isnan(value):
            continue
        y = place + thick * (k - (len(series) - 1) / 2)
        colour = look_of(series[k].name, k).colour
        colour = faded(colour) if n < few else colour
        axes.barh(y, value, height=thick * 0.92, color=colour)
        if plan.number_each:
            _put_number(axes, value, y, n)
    known = [value for value in values if not math.isnan(value)]
    if not plan.number_each and known:
        _put_number(axes, max(known), place, n)


def _put_number(axes: Any, value: float, y: float, n: int) -> None:
    axes.text(value + 1.5, y, str(n), fontsize=SMALL, va="center_baseline", color=SOFT)


def _domain_legend(
    figure: Figure, series: Sequence[Series], *, few: int, unit: str, rows: Sequence[str]
) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=look_of(one.name, k).colour) for k, one in enumerate(series)]
    names = [legend_name(one.name) for one in series]
    if any(_n_items(series, label) < few for label in rows):
        handles.append(Patch(facecolor=PALE))
        names.append(f"greyed: fewer than {few} {unit}")
    columns = 2 if figure.get_figwidth() < DOUBLE else 4
    figure.legend(
        handles, names, loc="outside upper left", ncols=columns, columnspacing=1.2,
        title=f"Number beside a bar: {unit}", title_fontsize=SMALL, alignment="left",
    )  # fmt: skip


def group_bars(series: Sequence[Series], *, title: str = "Overall accuracy, %") -> Figure:
    """Rates of a few groups side by side, such as question generators, with intervals."""
    labels = labels_of(series)
    height = 0.9 + len(series) * (0.17 * len(labels) + 0.12)
    with styled():
        figure = new_figure(SINGLE, height)
        axes = figure.add_subplot()
        thick = 0.82 / len(labels)
        for k, label in enumerate(labels):
            for place, one in enumerate(series):
                value = one.values.get(label)
                y = place + thick * (k - (len(labels) - 1) / 2)
                style = replace(look_of(one.name, place), hatch=look(k).hatch)
                _bar_with_interval(axes, y, value, thick, style)
            axes.barh([math.nan], [math.nan], color=PALE, hatch=look(k).hatch, edgecolor=INK,
                      linewidth=0.4, label=legend_name(label))  # fmt: skip
        axes.set_yticks(range(len(series)), [plain(one.name, 26) for one in series])
        axes.set_ylim(len(series) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        percent_axis(axes)
        axes.set_xlabel(title)
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def _bar_with_interval(axes: Any, y: float, value: Any, thick: float, style: Any) -> None:
    width = percent(value)
    if math.isnan(width):
        return
    axes.barh(
        y, width, height=thick * 0.9, color=style.colour, hatch=style.hatch, edgecolor=INK,
        linewidth=0.4,
    )  # fmt: skip
    if value.ci95 is not None:
        axes.plot([100 * end for end in value.ci95], [y, y], color=INK, linewidth=0.9, zorder=4)


def share_bars(counts: Mapping[str, int], *, unit: str = "questions") -> Figure:
    """How a total splits into categories: a bar each, with its share and its count."""
    rows = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    total = sum(counts.values()) or 1
    with styled():
        figure = new_figure(SINGLE, 0.65 + 0.2 * len(rows))
        axes = figure.add_subplot()
        shares = [100 * n / total for _, n in rows]
        axes.barh(range(len(rows)), shares, height=0.72, color=NEUTRAL)
        for place, (share, (_, n)) in enumerate(zip(shares, rows, strict=True)):
            axes.text(
                share + max(shares) * 0.015, place, f"{share:.1f}%  ({n:,})", va="center_baseline",
                fontsize=SMALL,
            )  # fmt: skip
        axes.set_yticks(range(len(rows)), [readable(name, 34) for name, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, max(shares) * 1.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"Share of {total:,} {unit}, %")
        axes.spines["left"].set_visible(False)
    return figure


def domain_tree(tree: Mapping[str, Mapping[str, float]], *, unit: str = "images") -> Figure:
    """Two levels of domains: a bar each on the first level, cut into those of the second.

    `tree` maps a domain to the weight of each of its sub-domains, in items. It shows what a
    sunburst shows, in a form in which lengths can be compared.
    """
    rows = sorted(tree.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    n_columns = 2 if len(rows) > ROWS_A_COLUMN else 1
    a_column = math.ceil(len(rows) / n_columns)
    longest = max((sum(parts.values()) for _, parts in rows), default=1.0)
    with styled():
        figure = new_figure(DOUBLE, 0.6 + 0.22 * a_column)
        for k, axes in enumerate(figure.subplots(1, n_columns, squeeze=False)[0]):
            chars_a_unit = (DOUBLE / n_columns - 1.5) * CHARS_AN_INCH / (1.2 * longest)
            _tree_column(axes, rows[k * a_column : (k + 1) * a_column], longest, chars_a_unit)
            axes.set_ylim(a_column - 0.5, -0.5)
        figure.supxlabel(
            f"{unit.capitalize()} (number at the end: {unit} / sub-domains)", fontsize=8
        )
    return figure


def _tree_column(
    axes: Any,
    rows: Sequence[tuple[str, Mapping[str, float]]],
    longest: float,
    chars_a_unit: float,
) -> None:
    for place, (_, parts) in enumerate(rows):
        start = 0.0
        ordered = sorted(parts.items(), key=lambda entry: (-entry[1], entry[0]))
        for k, (name, weight) in enumerate(ordered):
            axes.barh(
                place, weight, left=start, height=0.74, color=NEUTRAL,
                alpha=(0.55, 0.3)[k % 2], edgecolor="white", linewidth=0.6,
            )  # fmt: skip
            room = int(weight * chars_a_unit)
            if room >= max(4, 0.6 * len(name)):
                axes.text(
                    start + weight / 2, place, plain(name, room), ha="center", color=INK,
                    va="center_baseline", fontsize=SMALL, clip_on=True,
                )  # fmt: skip
            start += weight
        axes.text(
            start + longest * 0.015, place, f"{start:.0f} / {len(parts)}", va="center_baseline",
            fontsize=SMALL, color=SOFT,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [plain(name, LABEL_CHARS) for name, _ in rows])
    axes.set_xlim(0, longest * 1.2)
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
