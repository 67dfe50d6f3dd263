"""A heat map: one row a model, one column a domain, the number in each cell.

Source: PerceptionRubrics, table 2 (scores by domain) as a figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snellen.figures.series import Series, labels_of, percent
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAP = "YlGnBu"


def heat_map(series: Sequence[Series], *, title: str = "Score, %") -> Figure:
    """Rates in per cent by model and label; a cell without a value stays empty."""
    labels = sorted(labels_of(series), key=lambda name: (-_items(series, name), name))
    cells = [[percent(one.values.get(label)) for label in labels] for one in series]
    with styled():
        figure = new_figure(DOUBLE, 1.35 + 0.24 * len(series))
        axes = figure.add_subplot()
        drawn = axes.imshow(cells, cmap=MAP, vmin=0, vmax=100, aspect="auto")
        for row, values in enumerate(cells):
            for column, value in enumerate(values):
                if not math.isnan(value):
                    axes.text(
                        column, row, f"{value:.1f}", ha="center", va="center_baseline",
                        fontsize=SMALL, color=_ink_on(value),
                    )  # fmt: skip
        names = [f"{_narrow(label)}\n(n = {_items(series, label)})" for label in labels]
        axes.set_xticks(range(len(labels)), names)
        axes.set_yticks(range(len(series)), [plain(one.name, 30) for one in series])
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(drawn, ax=axes, pad=0.01, fraction=0.025)
        bar.set_label(title)
        bar.outline.set_visible(False)
    return figure


def _ink_on(value: float) -> str:
    """White on dark cells and ink on light ones, by the relative luminance of the cell."""
    import matplotlib as mpl

    ground: Any = mpl.colormaps[MAP](value / 100)
    linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04 else c / 12.92 for c in ground[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return ON_DARK if luminance < 0.2 else ON_LIGHT


def _items(series: Sequence[Series], label: str) -> int:
    return max((one.n_items.get(label, 0) for one in series), default=0)


def _narrow(label: str) -> str:
    return wrapped(readable(label).replace("/", "/ "), 11).replace("/ ", "/")
