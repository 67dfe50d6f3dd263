"""What a benchmark of regions is made of: rings of its domains, bars of its categories.

Source: CapProbe, figures 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from snellen.figures.chart import Chart
from snellen.figures.style import COLOURS, DOUBLE, INK, SINGLE, SMALL, new_figure, plain, styled

if TYPE_CHECKING:
    from snellen.builders.counts import DataCounts

WIDEST_LABEL = 24
# A sector below this share has no room for its name.
NAMED_FROM = 0.012


def domain_rings(counts: DataCounts) -> Chart | None:
    """Domains inside and sub-domains outside, each sector as large as its share of the images.

    An image with two labels counts under both. None where no image has a label.
    """
    nested = counts.subdomains or {name: {"": n} for name, n in counts.domains.items()}
    total = sum(sum(subs.values()) for subs in nested.values())
    if not total:
        return None
    with styled():
        figure = new_figure(DOUBLE, DOUBLE)
        axes = figure.add_subplot()
        inner = {name: sum(subs.values()) for name, subs in nested.items()}
        tints = [COLOURS[k % len(COLOURS)] for k in range(len(nested))]
        axes.pie(list(inner.values()), radius=0.62, colors=tints, startangle=90, counterclock=False,
                 wedgeprops={"width": 0.34, "edgecolor": "white", "linewidth": 0.5})  # fmt: skip
        outer = [n for subs in nested.values() for n in subs.values()]
        shades: list[Any] = [
            (*_rgb(tint), 0.75 if k % 2 else 0.5)
            for tint, subs in zip(tints, nested.values(), strict=True)
            for k in range(len(subs))
        ]
        wedges, _ = axes.pie(outer, radius=0.98, colors=shades, startangle=90, counterclock=False,
                             wedgeprops={"width": 0.34, "edgecolor": "white",
                                         "linewidth": 0.5})  # fmt: skip
        names = [name for subs in nested.values() for name in subs]
        _name_sectors(axes, wedges, names, radius=1.0, shares=[n / total for n in outer])
        centre, _ = axes.pie(list(inner.values()), radius=0.62, startangle=90, counterclock=False,
                             wedgeprops={"alpha": 0})  # fmt: skip
        shares = [n / total for n in inner.values()]
        _name_sectors(axes, centre, list(inner), radius=0.3, shares=shares, is_inside=True)
        axes.set_xlim(-1.45, 1.45)
        axes.set_ylim(-1.45, 1.45)
    text = f"{len(nested)} domains and {len(outer)} sub-domains of {counts.images:,} images."
    return Chart("domains", "Domains and sub-domains", text, figure)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def _name_sectors(axes: Any, wedges: Any, names: list[str], *, radius: float,
                  shares: list[float], is_inside: bool = False) -> None:  # fmt: skip
    import math

    for wedge, name, share in zip(wedges, names, shares, strict=True):
        if share < NAMED_FROM or not name:
            continue
        angle = (wedge.theta1 + wedge.theta2) / 2
        x, y = (radius * f(math.radians(angle)) for f in (math.cos, math.sin))
        turned = angle % 360
        is_left = 90 < turned < 270
        axes.text(
            x, y, plain(name, WIDEST_LABEL),
            rotation=turned + 180 if is_left else turned, rotation_mode="anchor",
            ha="right" if is_left else "left", va="center",
            fontsize=SMALL - 2 if is_inside else SMALL - 1, color=INK,
        )  # fmt: skip


def category_bars(counts: DataCounts) -> Chart | None:
    """The share of each of the ten categories among all questions; None without a question."""
    if not counts.questions:
        return None
    ranked: Mapping[str, int] = dict(
        sorted(counts.categories.items(), key=lambda pair: (pair[1], pair[0]))
    )
    with styled():
        figure = new_figure(SINGLE, 2.4)
        axes = figure.add_subplot()
        shares = [100 * n / counts.questions for n in ranked.values()]
        bars = axes.barh(list(ranked), shares, color=COLOURS[0], height=0.7)
        axes.bar_label(
            bars, [f"{share:.1f}" for share in shares], padding=2, fontsize=SMALL, color=INK
        )
        axes.set_xlim(0, max(shares) * 1.18)
        axes.set_xlabel("Share of questions, %")
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
    text = f"{counts.questions:,} questions in ten categories."
    return Chart("categories", "Questions by category", text, figure)
