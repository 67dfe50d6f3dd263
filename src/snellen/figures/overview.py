"""The headline numbers of all benchmarks at a glance: a panel a benchmark, a line a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snellen.figures.style import SINGLE, SMALL, SOFT, look_of, new_figure, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = tuple[str, float, tuple[float, float] | None]
ROW_HEIGHT = 0.2
PANEL_HEIGHT = 0.62


@dataclass(frozen=True, slots=True)
class Panel:
    """A benchmark: its title, the title of its axis, and name, value and interval of each model."""

    title: str
    axis: str
    rows: tuple[Row, ...]


def overview(panels: Sequence[Panel]) -> Figure:
    """Values with their 95% intervals, the best model first; each panel has its own axis."""
    heights = [PANEL_HEIGHT + ROW_HEIGHT * len(panel.rows) for panel in panels]
    with styled():
        figure = new_figure(SINGLE, sum(heights))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, panel in zip(grid, panels, strict=True):
            for y, (name, value, interval) in enumerate(panel.rows):
                style = look_of(name, y)
                if interval is not None:
                    axes.plot(interval, [y, y], color=style.colour, linewidth=2.0, alpha=0.55)
                axes.plot([value], [y], marker=style.marker, color=style.colour, linestyle="",
                          markersize=6)  # fmt: skip
            axes.set_yticks(range(len(panel.rows)), [plain(row[0], 22) for row in panel.rows])
            axes.set_ylim(len(panel.rows) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=5)
            axes.grid(visible=True, axis="x")
            axes.spines["left"].set_visible(False)
            axes.set_title(plain(panel.title, 44))
            axes.set_xlabel(panel.axis, fontsize=SMALL, color=SOFT, loc="right")
    return figure
