"""A heat map: one row a model, one column a domain, the number in each cell.

Source: PerceptionRubrics, table 2 (scores by domain) as a figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snellen.figures.chart import Chart
from snellen.figures.series import Series, is_thin, labels_of, percent, series_of
from snellen.figures.style import (
    DOUBLE,
    ON_DARK,
    ON_LIGHT,
    SMALL,
    new_figure,
    plain,
    readable,
    styled,
    wrapped,
)
from snellen.runs.folder import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAP = "YlGnBu"
# With more columns than these, cells are too narrow for a number.
MOST_NUMBERED = 14


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers in rows and columns, with their names; NaN for none.

    `top` is the number of the darkest colour, the lightest is 0. `digits` are the decimals, `title`
    is that of the scale. `turned` writes the columns' names upwards.
    """

    cells: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str
    top: float = 100.0
    digits: int = 1
    turned: bool = False


def heat_map(series: Sequence[Series], *, title: str = "Score, %") -> Figure:
    """Rates in per cent by model and label; a cell without a value stays empty."""
    labels = sorted(labels_of(series), key=lambda name: (-_items(series, name), name))
    return draw_grid(
        Grid(
            [[percent(one.values.get(label)) for label in labels] for one in series],
            [plain(one.name, 30) for one in series],
            [f"{narrow(label)}\n(n = {_items(series, label)})" for label in labels],
            title,
        )
    )


def draw_grid(grid: Grid) -> Figure:
    """A grid with the number in each cell; the columns' names stand above.

    Cells of very many columns have no number.
    """
    is_crowded = len(grid.columns) > MOST_NUMBERED
    lines = 10 if grid.turned else max((name.count("\n") for name in grid.columns), default=0)
    height = (0.14 if is_crowded else 0.24) * len(grid.rows)
    with styled():
        figure = new_figure(DOUBLE, 1.15 + 0.1 * max(2, lines) + height)
        axes = figure.add_subplot()
        drawn = axes.imshow(grid.cells, cmap=MAP, vmin=0, vmax=grid.top, aspect="auto")
        for row, values in enumerate(grid.cells):
            for column, value in enumerate(values):
                if not math.isnan(value) and not is_crowded:
                    axes.text(
                        column, row, f"{value:.{grid.digits}f}", ha="center",
                        va="center_baseline", fontsize=SMALL, color=_ink_on(value / grid.top),
                    )  # fmt: skip
        turn = 90 if grid.turned else 0
        axes.set_xticks(range(len(grid.columns)), grid.columns, rotation=turn)
        axes.set_yticks(range(len(grid.rows)), grid.rows)
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(drawn, ax=axes, pad=0.01, fraction=0.025)
        bar.set_label(grid.title)
        bar.outline.set_visible(False)
    return figure


def _ink_on(value: float) -> str:
    """White on dark cells and ink on light ones, by the relative luminance of the cell."""
    import matplotlib as mpl

    ground = mpl.colormaps[MAP](min(1.0, value))
    linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04 else c / 12.92 for c in ground[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return ON_DARK if luminance < 0.2 else ON_LIGHT


def _items(series: Sequence[Series], label: str) -> int:
    return max((one.n_items.get(label, 0) for one in series), default=0)


def narrow(label: str) -> str:
    """A label in short lines, as it stands above a column."""
    return wrapped(readable(label).replace("/", "/ "), 11).replace("/ ", "/")


def heat_chart(runs: Sequence[Run]) -> Chart | None:
    """The score of rubric runs by domain and model; None for fewer than two domains."""
    series = series_of(runs, "category", "score")
    if not series or len(series[0].values) < 2:
        return None
    caption = "Mean gated score of the pictures of each domain; n counts pictures."
    return Chart(
        "heat-category", "Score by domain and model", caption, heat_map(series),
        is_thin=is_thin(series),
    )  # fmt: skip
