"""How all figures look: sizes, colours that colour-blind readers can tell apart, and saving.

Everything is drawn inside `styled()`, so that the settings of a host program stay as they are, and
no text is ever read as mathematics.
"""

from __future__ import annotations

import io
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from snellen.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SINGLE = 3.35
"""The width of one column of a paper, in inches."""
DOUBLE = 6.9
"""The width of both columns, in inches."""
SMALL = 7.0
"""The smallest size of type, in points."""
PNG_DPI = 300
PHOTO_DPI = 170

INK = "#1a1a1a"
SOFT = "#5f6368"
RULE = "#c9ccd1"
PALE = "#d4d7db"
# Marks of right and wrong have colours that no model has.
RIGHT, WRONG = "#009e73", "#d55e00"
# Models: Okabe and Ito's colours, without those of right and wrong and without their yellow, which
# is too light for lines on white; indigo and olive of Tol's come last.
COLOURS = ("#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#332288", "#999933", "#333333")
# On cells and photographs, which look the same on every page.
ON_DARK, ON_LIGHT = "#fefefe", "#1b1b1b"
# What is no model, such as the share of a category.
NEUTRAL = "#8b9199"
# The colours of a page with a dark ground; all others stay.
DARK: Mapping[str, str] = {
    INK: "#e8e6e1", SOFT: "#a5a8ad", RULE: "#4a4f57", PALE: "#4d535b", NEUTRAL: "#858b94",
    "#ffffff": "#1c1f23", RIGHT: "#5fcfa4", WRONG: "#ff9a66", "#0072b2": "#5fb0ea",
    "#e69f00": "#f2b84b", "#cc79a7": "#e8a3c9", "#56b4e9": "#8fd3f7", "#332288": "#a497ee",
    "#999933": "#c6c665", "#333333": "#c9ccd1",
}  # fmt: skip
Dash = str | tuple[int, tuple[float, ...]]
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "*", "p", "d")
DASHES: tuple[Dash, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)))
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")

FONT = "DejaVu Sans"
# Fonts that matplotlib does not bring; where a machine has one, such scripts are drawn with it.
WIDE_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei")
MISSING = "\u25af"

STYLE: Mapping[str, object] = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "axes.facecolor": "none",
    "figure.facecolor": "white",
    "text.color": INK,
    "text.usetex": False,
    "text.parse_math": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.5,
    "patch.linewidth": 0.5,
    "svg.hashsalt": "snellen",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, slots=True)
class Look:
    """How one model is drawn everywhere; colour, marker, line and filling all tell it apart."""

    colour: str
    marker: str
    dash: Dash
    hatch: str


def look(k: int) -> Look:
    """The look of the k-th model of a figure; the first 28 differ."""
    turn = k // len(COLOURS)
    return Look(
        COLOURS[k % len(COLOURS)],
        MARKERS[k % len(MARKERS)],
        DASHES[(k + turn) % len(DASHES)],
        HATCHES[k % len(HATCHES)],
    )


LOW_SUFFIX = " (low fidelity)"
"""Said behind the name of a model whose numbers are of low fidelity."""
_PLACES: ContextVar[Mapping[str, int] | None] = ContextVar("places of models", default=None)


@contextmanager
def same_looks(names: Iterable[str]) -> Iterator[None]:
    """In the block a model of these names has one look in all figures, whatever its place there."""
    token = _PLACES.set({name: k for k, name in enumerate(dict.fromkeys(names))})
    try:
        yield
    finally:
        _PLACES.reset(token)


def look_of(name: str, k: int) -> Look:
    """The look of a model: that of its name within `same_looks`, else of the k-th of a figure."""
    places = _PLACES.get() or {}
    return look(places.get(name.removesuffix(LOW_SUFFIX), len(places) + k))


@contextmanager
def styled() -> Iterator[None]:
    """Drawing settings for the block; what they were before holds after it.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtraError("matplotlib, which draws the figures,", "report") from error
    settings: dict[Any, Any] = {**STYLE, "font.family": list(_fonts())}
    with mpl.rc_context(settings):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches; its parts make room for each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@cache
def _fonts() -> tuple[str, ...]:
    from matplotlib import font_manager

    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return (FONT, *(name for name in WIDE_FONTS if name in installed))


@cache
def _drawable() -> frozenset[int]:
    """The code points that the fonts have."""
    from matplotlib import font_manager

    found: set[int] = set()
    for name in _fonts():
        path = font_manager.findfont(font_manager.FontProperties(family=[name]))
        found.update(font_manager.get_font(path).get_charmap())
    return frozenset(found)


def plain(text: str, most: int | None = None) -> str:
    """Foreign text as a figure can draw it, on one line, cut to `most` characters.

    Characters that no font has become a box, control characters go.

    >>> plain("a\\tb\\x00c")
    'a bc'
    >>> plain("a long name", 7)
    'a long\u2026'
    """
    kept = []
    for char in " ".join(text.split()):
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"}:
            continue
        kept.append(char if ord(char) in _drawable() else MISSING)
    line = "".join(kept)
    if most is not None and len(line) > most:
        line = line[: most - 1].rstrip() + "\u2026"
    return line


def readable(label: str, most: int | None = None) -> str:
    """A label of the data as people write it.

    >>> readable("visual_relation_error")
    'visual relation error'
    """
    return plain(label.replace("_", " "), most)


def ability(label: str) -> str:
    """The ability that a label measures, where the label is the name of an error.

    >>> ability("visual_counting_error"), ability("hallucination"), ability("OCR/Text")
    ('visual counting', 'no hallucination', 'OCR/Text')
    """
    name = readable(label).removesuffix(" error")
    return "no hallucination" if name == "hallucination" else name


def faded(colour: str, pale: str = PALE) -> str:
    """The colour, greyed: what it stands for carries little weight.

    >>> faded("#000000")
    '#a7aaad'
    """
    ground = [int(pale[k : k + 2], 16) for k in (1, 3, 5)]
    own = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [round(0.21 * a + 0.79 * b) for a, b in zip(own, ground, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def wrapped(label: str, width: int) -> str:
    """A label broken into lines between words."""
    return "\n".join(textwrap.wrap(label, width, break_long_words=False)) or label


def legend_name(text: str, most: int = 34) -> str:
    """A name for a legend; matplotlib hides names that begin with an underscore."""
    line = plain(text, most)
    return "\u2009" + line if line.startswith("_") else line


def save(figure: Figure, kind: str, *, clear: bool = False) -> bytes:
    """The figure as `svg`, `png` or `pdf`, the same bytes each time; `clear`: without ground."""
    dates: Mapping[str, Mapping[str, str | None]] = {
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
    }
    buffer = io.BytesIO()
    with styled():
        if figure.get_layout_engine() is not None:
            # Laid out once: each drawing would move parts a little, and page and file differ.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        figure.savefig(
            buffer,
            format=kind,
            dpi=PNG_DPI if kind == "png" else PHOTO_DPI,
            transparent=clear,
            metadata=dates.get(kind),
        )
    return buffer.getvalue()


_COLOUR = re.compile(r"#[0-9a-f]{6}\b")


def page_svg(figure: Figure) -> bytes:
    """The figure without ground, with dark colours of its own where the reader prefers them."""
    dark = {**DARK, **{faded(c): faded(DARK[c], DARK[PALE]) for c in COLOURS}}
    used: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        colour = found[0]
        if colour not in dark:
            return colour
        used[colour] = dark[colour]
        return f"var(--c{colour[1:]})"

    drawn = _COLOUR.sub(named, save(figure, "svg", clear=True).decode())
    light = "".join(f"--c{colour[1:]}:{colour};" for colour in used)
    night = "".join(f"--c{colour[1:]}:{other};" for colour, other in used.items())
    style = (
        f"<style>:root{{{light}}}@media screen and (prefers-color-scheme:dark)"
        f"{{:root{{{night}}}}}</style>"
    )
    return drawn.replace("<defs>", style + "<defs>", 1).encode()


def stamp(figure: Figure, words: str) -> None:
    """Writes a remark into the upper right corner; a figure with a layout makes room for it."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        height = figure.get_figheight()
        figure.set_figheight(height + 0.15)
        engine.set(rect=(0, 0, 1, height / (height + 0.15)))
    figure.text(0.99, 0.995, words, ha="right", va="top", fontsize=SMALL, color=SOFT)


def percent_axis(axes: Axes, which: str = "x", *, top: float = 100.0) -> None:
    """Makes an axis run from 0 to `top` per cent, with a light grid."""
    if which == "x":
        axes.set_xlim(0, top)
    else:
        axes.set_ylim(0, top)
    axes.grid(visible=True, axis="x" if which == "x" else "y")


def spread_labels(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    size: tuple[float, float],
    *,
    avoid: Sequence[tuple[float, float]] = (),
) -> None:
    """Writes names beside points so that they stay clear of each other where there is room.

    `size` is the drawing area in points of type (width, height), as far as it is known; `avoid`
    are places that no name may cover.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()

    def to_box(x: float, y: float) -> tuple[float, float]:
        return size[0] * (x - left) / (right - left), size[1] * (y - low) / (high - low)

    taken = [_box(to_box(x, y), (6.0, 6.0)) for x, y in (*points, *avoid)]
    for (x, y), name in zip(points, names, strict=True):
        extent = (0.6 * SMALL * len(name), SMALL + 1.5)
        spots = [(_at(to_box(x, y), extent, spot), spot) for spot in _SPOTS]
        box, spot = min(spots, key=lambda entry: _clash(entry[0], taken, size))
        taken.append(box)
        dx, dy, across, up = spot
        axes.annotate(
            name, (x, y), xytext=(dx, dy), textcoords="offset points", ha=across, va=up,
            fontsize=SMALL,
        )  # fmt: skip


Box = tuple[float, float, float, float]
_Spot = tuple[float, float, str, str]
_SPOTS: tuple[_Spot, ...] = (
    (4, 4, "left", "bottom"),
    (0, 5, "center", "bottom"),
    (5, 0, "left", "center"),
    (-5, 0, "right", "center"),
    (0, -5, "center", "top"),
    (4, -4, "left", "top"),
    (-4, 4, "right", "bottom"),
    (-4, -4, "right", "top"),
    (0, 13, "center", "bottom"),
    (0, -13, "center", "top"),
)


def _box(centre: tuple[float, float], extent: tuple[float, float]) -> Box:
    x, y = centre
    return x - extent[0] / 2, y - extent[1] / 2, x + extent[0] / 2, y + extent[1] / 2


def _at(point: tuple[float, float], extent: tuple[float, float], spot: _Spot) -> Box:
    dx, dy, across, up = spot
    shift_x = {"left": extent[0] / 2, "right": -extent[0] / 2, "center": 0.0}[across]
    shift_y = {"bottom": extent[1] / 2, "top": -extent[1] / 2, "center": 0.0}[up]
    return _box((point[0] + dx + shift_x, point[1] + dy + shift_y), extent)


def _clash(box: Box, taken: Sequence[Box], size: tuple[float, float]) -> float:
    """The area that a box shares with others or that lies outside, in square points."""
    shared = sum(_overlap(box, other) for other in taken)
    inside = _overlap(box, (0.0, 0.0, size[0], size[1]))
    return shared + 2 * ((box[2] - box[0]) * (box[3] - box[1]) - inside)


def _overlap(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)
