"""The qualitative card: one picture with its regions, captions side by side, probes and verdicts.

Source: CapProbe, figure 10.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snellen.errors import ImageError
from snellen.figures import style
from snellen.figures.chart import Chart
from snellen.figures.series import name_of
from snellen.figures.style import (
    DOUBLE,
    INK,
    ON_DARK,
    ON_LIGHT,
    RULE,
    SMALL,
    SOFT,
    look_of,
    new_figure,
    plain,
    styled,
)
from snellen.records import Item, Probe, Region, Verdict
from snellen.runs.folder import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image as Pixels

N_CAPTIONS = 3
N_PROBES = 3
PICTURE_WIDTH = 2.1
TOP_HEIGHT = 2.5
MARGIN = 0.08
LINE = 0.128
CHARS_AN_INCH = 17.6
FEWEST_CHARS = 8
# A line may reach this far into the gap beside its column, in inches.
SLACK = 0.06
RIGHT, WRONG, ABSTAINED, UNSCORED = "\u2713", "\u2717", "?", "\u2013"
MARK_COLOURS = {RIGHT: style.RIGHT, WRONG: style.WRONG, ABSTAINED: SOFT, UNSCORED: SOFT}


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """What the judge made of a probe from one model's caption; `mark` is one of the four marks."""

    name: str
    said: str
    mark: str


@dataclass(frozen=True, slots=True)
class CardProbe:
    """A probe of a card: `box` numbers its region in the picture, None where it has none."""

    heading: str
    question: str
    options: tuple[str, ...]
    reference: str
    answers: tuple[CardAnswer, ...]
    box: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """All that a card shows. `boxes` are (ymin, xmin, ymax, xmax) in 0-1000, numbered from 1."""

    title: str
    captions: tuple[tuple[str, str], ...]
    probes: tuple[CardProbe, ...]
    boxes: tuple[tuple[float, float, float, float], ...] = ()


def choose_card(runs: Sequence[Run], regions: Mapping[str, Region] | None = None) -> Card | None:
    """The card of the item that tells the models apart best; None without two models that differ.

    Of that item it takes three probes of different categories, those on which models differ first.
    """
    chosen = list(runs)[:N_CAPTIONS]
    if len(chosen) < 2:
        return None
    best: tuple[int, Item, list[Probe]] | None = None
    for item in chosen[0].items:
        replies = [run.replies.get((item.id, 0)) for run in chosen]
        if not item.images or not all(r and r.status == "ok" and r.reply for r in replies):
            continue
        probes = _telling_probes(chosen, item)
        score = sum(_spread(chosen, item, probe) for probe in probes)
        if len(probes) >= 2 and score > (0 if best is None else best[0]):
            best = (score, item, probes)
    return None if best is None else _card(chosen, best[1], best[2], regions or {})


def _telling_probes(runs: Sequence[Run], item: Item) -> list[Probe]:
    ranked = sorted(item.probes, key=lambda p: -_spread(runs, item, p))
    found: dict[str, Probe] = {}
    for probe in ranked:
        found.setdefault(probe.groups.get("category", probe.kind), probe)
    others = [probe for probe in ranked if probe not in found.values()]
    return [*found.values(), *others][:N_PROBES]


def _spread(runs: Sequence[Run], item: Item, probe: Probe) -> int:
    """How many different marks the models got, above one."""
    marks = {_mark(run.verdicts.get((item.id, 0, probe.id)), probe) for run in runs}
    return len(marks - {UNSCORED}) - 1


def _mark(verdict: Verdict | None, probe: Probe) -> str:
    if verdict is None or verdict.status != "scored":
        return UNSCORED
    if probe.options and verdict.verdict == chr(ord("A") + len(probe.options)):
        return ABSTAINED
    return RIGHT if verdict.correct else WRONG


def _card(
    runs: Sequence[Run], item: Item, probes: Sequence[Probe], regions: Mapping[str, Region]
) -> Card:
    def answer(run: Run, probe: Probe) -> CardAnswer:
        verdict = run.verdicts.get((item.id, 0, probe.id))
        said = "" if verdict is None or verdict.verdict is None else str(verdict.verdict)
        return CardAnswer(name_of(run), said or "no verdict", _mark(verdict, probe))

    ids = [p.groups.get("region_id", "") for p in probes]
    known = [name for name in dict.fromkeys(ids) if name in regions]
    captions = tuple((name_of(r), r.replies[item.id, 0].reply or "") for r in runs)
    shown = tuple(
        CardProbe(
            p.groups.get("category", "") or p.kind.replace("_", "-"),
            p.question,
            p.options,
            p.answer,
            tuple(answer(run, p) for run in runs),
            known.index(name) + 1 if name in known else None,
        )
        for p, name in zip(probes, ids, strict=True)
    )
    return Card(item.id, captions, shown, tuple(regions[name].bbox for name in known))


def qualitative_card(card: Card, picture: Pixels) -> Figure:
    """The card as a figure; `picture` is upright, in full size or smaller."""
    from matplotlib.lines import Line2D

    with styled():
        columns = [_probe_lines(p, _probe_width(card)) for p in card.probes]
        height = TOP_HEIGHT + LINE * max((len(c) for c in columns), default=0) + 0.18
        figure = new_figure(DOUBLE, height)
        figure.set_layout_engine("none")
        _draw_picture(figure, card, picture, height)
        _draw_captions(figure, card, height)
        for k, lines in enumerate(columns):
            left = MARGIN + k * (_probe_width(card) + 0.12)
            _write(figure, (left, height - TOP_HEIGHT - 0.22), lines, height)
        ends, y = [MARGIN / DOUBLE, 1 - MARGIN / DOUBLE], (height - TOP_HEIGHT - 0.05) / height
        figure.add_artist(Line2D(ends, [y, y], color=RULE, linewidth=0.6))
    return figure


_Line = tuple[str, str, str]


def _chars(width: float) -> int:
    return max(FEWEST_CHARS, int(width * CHARS_AN_INCH))


def _probe_width(card: Card) -> float:
    n = max(1, len(card.probes))
    return (DOUBLE - 2 * MARGIN - 0.12 * (n - 1)) / n


def _probe_lines(probe: CardProbe, width: float) -> list[_Line]:
    """The lines of a probe, `width` inches wide at most: text, colour, weight."""
    chars = _chars(width)
    number = f"[{probe.box}] " if probe.box is not None else ""
    lines: list[_Line] = [(number + plain(probe.heading, chars - 4), INK, "bold")]
    lines += [(line, INK, "normal") for line in _fold(probe.question, width, 5)]
    for k, option in enumerate(probe.options):
        letter = chr(ord("A") + k)
        is_reference = letter == probe.reference
        text = f"{letter}. {plain(option, chars - 6)}" + (f" {RIGHT}" if is_reference else "")
        lines.append((text, INK if is_reference else SOFT, "bold" if is_reference else "normal"))
    if not probe.options and probe.reference not in {"", "true"}:
        lines.append((plain(f"Reference: {probe.reference}", chars), INK, "bold"))
    lines.append(("", INK, "normal"))
    for answer in probe.answers:
        name = plain(answer.name, chars - 14)
        lines.append((f"{answer.mark} {name}: {answer.said}", MARK_COLOURS[answer.mark], "bold"))
    return lines


def _fold(text: str, width: float, most: int) -> list[str]:
    """At most `most` lines that are no wider than `width` inches, wide letters or not."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    chars, size = _chars(width), FontProperties(size=SMALL)
    while True:
        lines = textwrap.wrap(plain(text), chars)
        if len(lines) > most:
            lines = textwrap.wrap(plain(text), chars, max_lines=most, placeholder=" \u2026")
        points = (
            text_to_path.get_text_width_height_descent(line, size, ismath=False)[0]
            for line in lines
        )
        widest = max(points, default=0.0) / 72
        if widest <= width + SLACK or chars <= FEWEST_CHARS:
            return lines or [""]
        chars = max(FEWEST_CHARS, min(chars - 1, int(chars * width / widest)))


def _draw_picture(figure: Figure, card: Card, picture: Pixels, height: float) -> None:
    import numpy as np
    from matplotlib.patches import Rectangle

    small = picture.copy()
    small.thumbnail((900, 900))
    room = (PICTURE_WIDTH, TOP_HEIGHT - 0.25)
    scale = min(room[0] / small.width, room[1] / small.height)
    wide, high = small.width * scale, small.height * scale
    place = (
        MARGIN / DOUBLE,
        (height - MARGIN - 0.12 - high) / height,
        wide / DOUBLE,
        high / height,
    )
    axes = figure.add_axes(place)
    axes.imshow(np.asarray(small), extent=(0, 1000, 1000, 0), aspect="auto")
    axes.set_axis_off()
    for k, (top, left, bottom, right) in enumerate(card.boxes, 1):
        corner, extent = (left, top), (right - left, bottom - top)
        for colour, line in ((ON_DARK, 2.4), (ON_LIGHT, 1.3)):
            axes.add_patch(Rectangle(corner, *extent, fill=False, edgecolor=colour, linewidth=line))
        axes.text(
            left + 14, top + 18, str(k), ha="left", va="top", color=ON_DARK, fontsize=SMALL,
            fontweight="bold", bbox={"facecolor": ON_LIGHT, "edgecolor": ON_DARK, "pad": 1.5},
        )  # fmt: skip


def _draw_captions(figure: Figure, card: Card, height: float) -> None:
    left = MARGIN + PICTURE_WIDTH + 0.15
    width = (DOUBLE - MARGIN - left - 0.12 * (len(card.captions) - 1)) / len(card.captions)
    most = int((TOP_HEIGHT - 0.3) / LINE) - 1
    for k, (name, text) in enumerate(card.captions):
        chars = _chars(width)
        lines: list[_Line] = [(plain(name, chars - 2), look_of(name, k).colour, "bold")]
        lines += [(line, INK, "normal") for line in _fold(text, width, most)]
        _write(figure, (left + k * (width + 0.12), height - MARGIN - 0.22), lines, height)


def _write(
    figure: Figure, corner: tuple[float, float], lines: Sequence[_Line], height: float
) -> None:
    for k, (text, colour, weight) in enumerate(lines):
        figure.text(
            corner[0] / DOUBLE, (corner[1] - LINE * k) / height, text, color=colour,
            fontsize=SMALL, fontweight=weight, va="baseline",
        )  # fmt: skip


def card_chart(runs: Sequence[Run], regions: Mapping[str, Region] | None) -> Chart | None:
    """The card of the picture that tells the best models apart; None without one."""
    from snellen.pictures.prepare import open_upright

    found = choose_card(runs, regions)
    if found is None:
        return None
    item = next(i for i in runs[0].items if i.id == found.title)
    try:
        picture = open_upright(item.images[0])
    except ImageError:
        return None
    caption = (
        f"Picture {item.id}: captions side by side, and three probes on which they differ. "
        "\u2713 right, \u2717 wrong, ? the judge could not tell."
    )
    return Chart(
        "card", "One picture, several captions", caption, qualitative_card(found, picture),
    )  # fmt: skip
