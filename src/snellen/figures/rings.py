"""The domains of a benchmark as two rings: domains inside, their sub-domains outside.

Source: CapProbe, figure 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from snellen.figures.bars import domain_weights
from snellen.figures.chart import Chart
from snellen.figures.style import (
    DOUBLE,
    INK,
    ON_LIGHT,
    SMALL,
    new_figure,
    plain,
    styled,
)
from snellen.runs.folder import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inner and outer edge of each ring, in a unit circle.
INNER, OUTER = (0.34, 0.66), (0.67, 0.8)
# The names outside need this much room.
EDGE = 1.2
# Narrower sectors have no room for a name.
LEAST_ANGLES = {INNER: math.radians(4.2), OUTER: math.radians(2.5)}
# Tints that dark ink can be read on, and that no model has.
TINTS = ("#b9d5e8", "#f3d9a8", "#e6c3d6", "#c3e3c9", "#cbc4e6", "#dedeb0", "#d0d3d6")


def domain_rings(tree: Mapping[str, Mapping[str, float]], *, unit: str = "labels") -> Figure:
    """Two rings whose sectors are as wide as their share of the items, the largest first.

    `tree` maps a domain to the weight of each of its sub-domains, in items. Names stand where
    there is room; colours repeat and only tell neighbours apart.
    """
    rows = sorted(tree.items(), key=lambda entry: (-sum(entry[1].values()), entry[0]))
    total = sum(sum(parts.values()) for parts in tree.values()) or 1.0
    n_parts = sum(len(parts) for parts in tree.values())
    with styled():
        figure = new_figure(DOUBLE, DOUBLE)
        axes = figure.add_subplot()
        axes.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), aspect="equal")
        axes.set_axis_off()
        start = 0.0
        for k, (name, parts) in enumerate(rows):
            # The last domain is the first one's neighbour.
            is_doubled = k == len(rows) - 1 and k % len(TINTS) == 0
            colour = TINTS[(k + is_doubled) % len(TINTS)]
            width = 2 * math.pi * sum(parts.values()) / total
            _sector(axes, (start, width), INNER, colour=colour, alpha=1.0)
            _name(axes, (start, width), INNER, name)
            ordered = sorted(parts.items(), key=lambda entry: (-entry[1], entry[0]))
            edges = list(
                itertools.accumulate((2 * math.pi * n / total for _, n in ordered), initial=start)
            )
            for turn, ((sub, _), (left, right)) in enumerate(
                zip(ordered, itertools.pairwise(edges), strict=True)
            ):
                alpha = (0.75, 0.45)[turn % 2]
                _sector(axes, (left, right - left), OUTER, colour=colour, alpha=alpha)
                _name(axes, (left, right - left), OUTER, sub)
            start += width
        axes.text(
            0, 0, f"{len(rows)} domains\n{n_parts} sub-domains\n{total:.0f} {unit}", ha="center",
            va="center", color=INK, fontsize=9,
        )  # fmt: skip
    return figure


def _sector(
    axes: Axes,
    angles: tuple[float, float],
    radii: tuple[float, float],
    *,
    colour: str,
    alpha: float,
) -> None:
    """A sector of a ring; angles run clockwise from the top, in radians."""
    from matplotlib.patches import Wedge

    left, right = (90 - math.degrees(angle) for angle in (sum(angles), angles[0]))
    axes.add_patch(
        Wedge((0, 0), radii[1], left, right, width=radii[1] - radii[0], facecolor=colour,
              alpha=alpha, edgecolor="white", linewidth=0.6)
    )  # fmt: skip


def _name(axes: Axes, angles: tuple[float, float], radii: tuple[float, float], name: str) -> None:
    """A name along the radius: within the inner ring, outside of the outer one."""
    start, width = angles
    if width < LEAST_ANGLES[radii]:
        return
    middle = start + width / 2

    def place(radius: float) -> tuple[float, float]:
        return radius * math.sin(middle), radius * math.cos(middle)

    is_right = middle < math.pi
    turn = 90 - math.degrees(middle) + (0 if is_right else 180)
    if radii == OUTER:
        axes.text(
            *place(OUTER[1] + 0.015), plain(name, 20), rotation=turn, rotation_mode="anchor",
            ha="left" if is_right else "right", va="center", color=INK, fontsize=SMALL,
        )  # fmt: skip
        return
    axes.text(
        *place(sum(INNER) / 2), plain(name, 15), rotation=turn, rotation_mode="anchor",
        ha="center", va="center", fontsize=SMALL, color=ON_LIGHT,
    )  # fmt: skip


def rings_chart(run: Run) -> Chart | None:
    """The domains of a benchmark as two rings; None for fewer than two domains."""
    tree = domain_weights(run.items)
    if len(tree) < 2:
        return None
    caption = (
        "Inside the domains, outside their sub-domains, as wide as their share of the pictures. "
        "Colours only tell neighbours apart."
    )
    return Chart("rings", "Domains and sub-domains", caption, domain_rings(tree))
