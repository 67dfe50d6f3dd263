"""Draws seven pictures of the bundled `mini` benchmark; the same pixels on every run.

Run as `python benchmarks/draw_mini.py [FOLDER]`; the folder defaults to the bundled images. All
shapes are ours; the letters come from the DejaVu fonts that ship with matplotlib. Pictures are
drawn at three times their size and reduced, so that edges are smooth.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

matplotlib.use("Agg")

SCALE = 3
IMAGES = Path(__file__).parent.parent / "src" / "snellen" / "data" / "mini" / "images"
Point = tuple[float, float]
Box = tuple[float, float, float, float]


@cache
def load_font(size: float, style: str) -> ImageFont.FreeTypeFont:
    """A DejaVu font; `style` is the end of its file name, such as `Sans-Bold`."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(str(folder / f"DejaVu{style}.ttf"), round(size * SCALE))


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws on a picture in final pixels; the canvas behind it is `SCALE` times larger."""

    canvas: Image.Image
    draw: ImageDraw.ImageDraw

    @staticmethod
    def on(width: int, height: int, color: str) -> Pen:
        canvas = Image.new("RGB", (width * SCALE, height * SCALE), color)
        return Pen(canvas, ImageDraw.Draw(canvas))

    def rect(
        self, box: Box, fill: str | None, *, line: str | None = None, width: float = 0
    ) -> None:
        self.round(box, 0, fill, line=line, width=width)

    def round(
        self,
        box: Box,
        radius: float,
        fill: str | None,
        *,
        line: str | None = None,
        width: float = 0,
    ) -> None:
        self.draw.rounded_rectangle(
            [v * SCALE for v in box], radius * SCALE, fill, line, round(width * SCALE)
        )

    def oval(
        self, box: Box, fill: str | None, *, line: str | None = None, width: float = 0
    ) -> None:
        self.draw.ellipse([v * SCALE for v in box], fill, line, round(width * SCALE))

    def disc(
        self,
        at: Point,
        radius: float,
        fill: str | None,
        *,
        line: str | None = None,
        width: float = 0,
    ) -> None:
        x, y = at
        box = (x - radius, y - radius, x + radius, y + radius)
        self.oval(box, fill, line=line, width=width)

    def poly(self, points: Sequence[Point], fill: str) -> None:
        self.draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill)

    def line(self, points: Sequence[Point], color: str, width: float = 2) -> None:
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self.draw.line(scaled, color, round(width * SCALE), joint="curve")

    def slice(self, box: Box, angles: tuple[float, float], fill: str) -> None:
        self.draw.pieslice([v * SCALE for v in box], *angles, fill)

    def arc(self, box: Box, angles: tuple[float, float], color: str, width: float = 2) -> None:
        self.draw.arc([v * SCALE for v in box], *angles, color, round(width * SCALE))

    def text(
        self, at: Point, words: str, size: float, *, color: str = "#222222", style: str = "Sans",
        anchor: str = "la",
    ) -> None:  # fmt: skip
        x, y = at
        self.draw.text((x * SCALE, y * SCALE), words, color, load_font(size, style), anchor)

    def arrow(self, points: Sequence[Point], color: str, width: float = 6) -> None:
        """A line through the points with a head at the last one."""
        (ax, ay), (bx, by) = points[-2:]
        angle, size = math.atan2(by - ay, bx - ax), width * 2.4
        self.line(points, color, width)
        wings = [
            (bx + size * math.cos(angle + t), by + size * math.sin(angle + t))
            for t in (0, 2.2, -2.2)
        ]
        self.poly(wings, color)

    def paste(self, layer: Image.Image, at: Point, angle: float) -> None:
        """Lays a transparent layer, turned by `angle` degrees, with its middle at a point."""
        turned = layer.rotate(angle, Image.Resampling.BICUBIC, expand=True)
        left = round(at[0] * SCALE - turned.width / 2), round(at[1] * SCALE - turned.height / 2)
        self.canvas.paste(turned, left, turned)

    def finish(self) -> Image.Image:
        width, height = self.canvas.width // SCALE, self.canvas.height // SCALE
        return self.canvas.resize((width, height), Image.Resampling.LANCZOS)


def trace(count: int, of: Callable[[float], Point]) -> list[Point]:
    """Points of a curve: `of` is asked at `count` + 1 places from 0 to 1."""
    return [of(i / count) for i in range(count + 1)]


def make_layer(width: int, height: int) -> Pen:
    layer = Image.new("RGBA", (width * SCALE, height * SCALE), (0, 0, 0, 0))
    return Pen(layer, ImageDraw.Draw(layer))


# Receipt


def draw_table_top(pen: Pen) -> None:
    for i, color in enumerate(("#8a5a35", "#94623b", "#84552f", "#905e38", "#875832")):
        pen.rect((i * 152, 0, i * 152 + 152, 1000), color)
        pen.line([(i * 152, 0), (i * 152, 1000)], "#6a4223", 2)
        for k in range(5):
            y, x = 90 + 190 * k + 37 * i, i * 152 + 76
            pen.line(
                trace(20, lambda t, x=x, y=y: (x - 40 + 9 * math.sin(6 * t), y + 120 * t)),
                "#7a4d2a",
                1,
            )


def draw_receipt_head(pen: Pen) -> None:
    mono = "SansMono"
    pen.text((340, 92), "HARBOUR STREET BOOKS", 28, style="Serif-Bold", anchor="ma")
    pen.text((340, 130), "14 Harbour Street, Wexley", 17, style="Serif", anchor="ma")
    pen.text((340, 154), "Tel. 0155 302 117", 17, style="Serif", anchor="ma")
    pen.text((130, 200), "Receipt No. 20417", 17, style=mono)
    pen.text((130, 225), "Date 12 March 2024", 17, style=mono)
    pen.text((550, 225), "16:42", 17, style=mono, anchor="ra")
    pen.text((130, 250), "Served by: Ines", 17, style=mono)
    for y in (188, 282, 322, 500):
        pen.line([(120, y), (560, y)], "#555555", 1.2)
    pen.text((130, 291), "QTY  ITEM", 17, style="SansMono-Bold")
    pen.text((550, 291), "PRICE", 17, style="SansMono-Bold", anchor="ra")


def draw_receipt_lines(pen: Pen) -> None:
    lines = (
        (" 2   Notebook A5", "9.00"),
        (" 1   Atlas of Rivers", "24.50"),
        (" 3   Pencil HB", "3.60"),
        (" 1   Tea towel", "7.90"),
        (" 1   Postcard", "1.20"),
    )
    for i, (item, price) in enumerate(lines):
        pen.text((130, 336 + 32 * i), item, 17, style="SansMono")
        pen.text((550, 336 + 32 * i), price, 17, style="SansMono", anchor="ra")
    for i, (what, price) in enumerate((("Subtotal", "46.20"), ("Discount 10 %", "-4.62"))):
        pen.text((290, 512 + 30 * i), what, 17, style="SansMono")
        pen.text((550, 512 + 30 * i), price, 17, style="SansMono", anchor="ra")
    pen.rect((276, 576, 560, 616), "#ece6d2")
    pen.text((290, 584), "TOTAL", 22, style="SansMono-Bold")
    pen.text((550, 584), "41.58", 22, style="SansMono-Bold", anchor="ra")
    pen.text((290, 628), "Paid by card", 17, style="SansMono")
    pen.text((550, 628), "* 8834", 17, style="SansMono", anchor="ra")


def draw_stamp(pen: Pen) -> None:
    layer = make_layer(160, 160)
    layer.disc((80, 80), 74, None, line="#c8283cdd", width=5)
    layer.disc((80, 80), 62, None, line="#c8283cdd", width=2)
    layer.text((80, 80), "PAID", 40, color="#c8283cdd", style="Sans-Bold", anchor="mm")
    layer.text((80, 112), "12 MAR", 14, color="#c8283cdd", style="Sans-Bold", anchor="mm")
    for x in (56, 80, 104):
        layer.text((x, 45), "★", 14, color="#c8283cdd", anchor="mm")
    pen.paste(layer.canvas, (193, 612), 18)


def draw_signature(pen: Pen) -> None:
    pen.line([(300, 760), (560, 760)], "#555555", 1.2)
    pen.text((300, 766), "Signature", 13, color="#666666", style="Serif-Italic")
    ink = "#23429a"
    loops = trace(
        160,
        lambda t: (330 + 190 * t + 9 * math.cos(44 * t), 738 + (19 - 12 * t) * math.sin(44 * t)),
    )
    pen.line(loops, ink, 2.4)
    pen.line(trace(40, lambda t: (318 + 26 * math.sin(6 * t), 762 - 74 * t)), ink, 2.4)
    pen.line(trace(40, lambda t: (330 + 220 * t, 756 - 8 * math.sin(4 * t))), ink, 1.8)


def draw_receipt_foot(pen: Pen) -> None:
    pen.text((340, 806), "Thank you. Come back soon!", 17, style="Serif-Italic", anchor="ma")
    x, seed = 210.0, 20417
    while x < 470:
        seed = (seed * 1103515245 + 12345) % 2**31
        bar, gap = 1.5 + (seed >> 8) % 3 * 1.5, 2 + (seed >> 12) % 3
        pen.rect((x, 842, x + bar, 892), "#222222")
        x += bar + gap
    pen.text((340, 898), "4 006381 20417 8", 14, style="SansMono", anchor="ma")


def draw_pen_and_clip(pen: Pen) -> None:
    layer = make_layer(40, 520)
    layer.round((8, 60, 32, 430), 8, "#1f7a4d")
    layer.rect((8, 250, 32, 262), "#d9b44a")
    layer.round((26, 66, 32, 200), 3, "#d9b44a")
    layer.poly([(8, 425), (32, 425), (23, 490), (17, 490)], "#c9ccd1")
    layer.poly([(17, 490), (23, 490), (20, 506)], "#444444")
    layer.round((10, 44, 30, 64), 6, "#17603c")
    pen.paste(layer.canvas, (660, 560), -6)
    for box, radius in (((128, 26, 154, 84), 13), ((134, 38, 148, 84), 7)):
        pen.round(box, radius, None, line="#8d949e", width=3)


def draw_receipt() -> Image.Image:
    """A paid shop receipt that lies on a wooden table beside a green pen."""
    pen = Pen.on(760, 1000, "#8a5a35")
    draw_table_top(pen)
    pen.poly([(98, 68), (598, 68), (598, 948), (98, 948)], "#5c391e")
    pen.poly([(90, 58), (590, 58), (590, 880), (534, 936), (90, 936)], "#fbf8ef")
    pen.poly([(590, 880), (534, 880), (534, 936)], "#d8d1bd")
    for part in (draw_receipt_head, draw_receipt_lines, draw_stamp, draw_signature):
        part(pen)
    draw_receipt_foot(pen)
    draw_pen_and_clip(pen)
    return pen.finish()


# Chart

SERIES = (
    ("Clock Museum", "#1f3b73", (12, 18, 25, 15)),
    ("Glass Museum", "#f28e2b", (20, 22, 17, 24)),
    ("Salt Museum", "#2a9d8f", (8, 14, 31, 10)),
)


def draw_chart() -> Image.Image:
    """A grouped bar chart of museum visitors: three series, four quarters, one estimate."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 6.4), dpi=100, facecolor="white")
    axes = figure.add_axes((0.09, 0.15, 0.88, 0.66))
    for i, (name, color, values) in enumerate(SERIES):
        places = [q + (i - 1) * 0.26 for q in range(4)]
        bars = axes.bar(places, values, 0.24, color=color, label=name, zorder=3)
        axes.bar_label(bars, fontsize=11, padding=2)
        if name == "Glass Museum":
            bars[3].set(hatch="///", edgecolor="white")
    axes.axhline(20, color="#c0392b", linestyle="--", linewidth=1.6, zorder=4, label="Target: 20")
    axes.annotate(
        "Record: free\nentry in August", (2.36, 31.8), (3.05, 31.2), fontsize=12, va="center",
        arrowprops={"arrowstyle": "->", "linewidth": 1.6},
    )  # fmt: skip
    axes.set(ylim=(0, 36), xlim=(-0.55, 3.8), xticks=range(4))
    axes.set_xticklabels(["Q1\nwinter", "Q2\nspring", "Q3\nsummer", "Q4\nautumn"], fontsize=12)
    axes.set_ylabel("Visitors (thousands)", fontsize=12)
    axes.yaxis.grid(visible=True, linestyle=":", color="#999999", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", fontsize=11, frameon=True)
    figure.text(0.09, 0.925, "Visitors to the Tarn museums, 2023", fontsize=19, weight="bold")
    figure.text(
        0.09, 0.87, "Tickets sold per quarter; the striped bar is an estimate", fontsize=12.5
    )
    figure.text(0.97, 0.02, "Source: Tarn town council", fontsize=10, ha="right", color="#555555")
    return render(figure)


def render(figure: matplotlib.figure.Figure) -> Image.Image:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    size = canvas.get_width_height()
    return Image.frombytes("RGBA", size, bytes(canvas.buffer_rgba())).convert("RGB")


# Settings window

BLUE = "#2563eb"
GREY = "#64748b"


def draw_window(pen: Pen) -> None:
    pen.round((24, 20, 1000, 680), 14, "#ffffff", line="#94a3b8", width=1.5)
    pen.round((24, 20, 1000, 72), 14, "#e2e8f0")
    pen.rect((24, 56, 1000, 72), "#e2e8f0")
    for x, color in ((50, "#ef4444"), (74, "#f59e0b"), (98, "#22c55e")):
        pen.disc((x, 46), 8, color)
    pen.text((512, 46), "Pigeon Mail - Settings", 16, style="Sans-Bold", anchor="mm")
    pen.disc((968, 46), 17, "#7c3aed")
    pen.text((968, 46), "MK", 13, color="#ffffff", style="Sans-Bold", anchor="mm")


def draw_sidebar(pen: Pen) -> None:
    pen.round((24, 72, 244, 680), 14, "#1e293b")
    pen.rect((24, 72, 244, 120), "#1e293b")
    pen.round((40, 88, 228, 120), 8, "#334155")
    pen.disc((57, 103), 6, None, line="#cbd5e1", width=2)
    pen.line([(61, 107), (66, 112)], "#cbd5e1", 2)
    pen.text((76, 104), "Search settings", 13, color="#cbd5e1", anchor="lm")
    names = ("Account", "Notifications", "Privacy", "Appearance", "Storage", "Help")
    for i, name in enumerate(names):
        y = 160 + 48 * i
        if name == "Notifications":
            pen.round((36, y - 20, 232, y + 20), 8, BLUE)
        pen.round((52, y - 8, 68, y + 8), 4 if i % 2 else 8, "#e2e8f0")
        pen.text((84, y), name, 15, color="#f8fafc", anchor="lm")
    pen.disc((212, 256), 12, "#ef4444")
    pen.text((212, 256), "3", 13, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.text((52, 628), "Version 4.2.1", 12, color="#94a3b8")
    pen.text((52, 648), "Last sync 09:14", 12, color="#94a3b8")


def draw_tabs(pen: Pen) -> None:
    pen.text((276, 94), "Notifications", 26, style="Sans-Bold")
    for x, name in ((276, "General"), (372, "Email"), (450, "Devices")):
        active = name == "Email"
        pen.text((x, 152), name, 15, color=BLUE if active else GREY, style="Sans-Bold", anchor="lm")
    pen.line([(276, 172), (972, 172)], "#cbd5e1", 1.5)
    pen.line([(368, 171), (422, 171)], BLUE, 4)
    pen.round((276, 190, 972, 234), 8, "#fef3c7", line="#f59e0b", width=1.5)
    pen.poly([(300, 200), (312, 222), (288, 222)], "#f59e0b")
    pen.text((300, 215), "!", 13, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.text((324, 212), "Your storage is 85 % full.", 14, anchor="lm")
    pen.text((952, 212), "Manage", 14, color=BLUE, style="Sans-Bold", anchor="rm")


def draw_toggles(pen: Pen) -> None:
    rows = (
        ("New message alerts", True),
        ("Play a sound", False),
        ("Desktop banners", True),
        ("Weekly summary", False),
    )
    for i, (name, on) in enumerate(rows):
        y = 266 + 46 * i
        pen.text((276, y), name, 15, anchor="lm")
        pen.round((564, y - 13, 612, y + 13), 13, "#16a34a" if on else "#cbd5e1")
        pen.disc((599 if on else 577, y), 10, "#ffffff")
        pen.line([(276, y + 23), (612, y + 23)], "#e2e8f0", 1)
    pen.text((276, 462), "Volume", 15, anchor="lm")
    pen.round((360, 459, 560, 465), 3, "#cbd5e1")
    pen.round((360, 459, 500, 465), 3, BLUE)
    pen.disc((500, 462), 10, "#ffffff", line=BLUE, width=3)
    pen.text((612, 462), "70", 15, anchor="rm")
    pen.text((276, 514), "Quiet hours", 15, anchor="lm")
    pen.round((400, 495, 612, 533), 8, "#ffffff", line="#94a3b8", width=1.5)
    pen.text((416, 514), "22:00 to 07:00", 15, anchor="lm")
    pen.poly([(588, 510), (602, 510), (595, 519)], GREY)


def draw_cards(pen: Pen) -> None:
    pen.round((644, 252, 972, 412), 10, "#f8fafc", line="#cbd5e1", width=1.5)
    pen.text((664, 268), "Tell me about", 15, style="Sans-Bold")
    for i, (name, on) in enumerate((("Replies", True), ("Mentions", True), ("Likes", False))):
        y = 316 + 34 * i
        pen.round(
            (664, y - 10, 684, y + 10),
            4,
            BLUE if on else "#ffffff",
            line=BLUE if on else GREY,
            width=1.5,
        )
        if on:
            pen.line([(668, y), (673, y + 5), (681, y - 5)], "#ffffff", 2.5)
        pen.text((698, y), name, 15, anchor="lm")
    pen.round((644, 430, 972, 566), 10, "#f8fafc", line="#cbd5e1", width=1.5)
    pen.text((664, 446), "Banner size", 15, style="Sans-Bold")
    for i, name in enumerate(("Small", "Large")):
        y = 496 + 36 * i
        pen.disc((674, y), 10, "#ffffff", line=BLUE if i else GREY, width=2)
        if i:
            pen.disc((674, y), 5, BLUE)
        pen.text((698, y), name, 15, anchor="lm")
    pen.round((800, 482, 952, 548), 8, "#334155")
    pen.disc((824, 515), 12, "#f59e0b")
    pen.round((846, 502, 936, 510), 4, "#e2e8f0")
    pen.round((846, 520, 910, 528), 4, "#94a3b8")


def draw_app() -> Image.Image:
    """The settings window of a mail program, with the Email tab of Notifications open."""
    pen = Pen.on(1024, 700, "#bfdbfe")
    for part in (draw_window, draw_sidebar, draw_tabs, draw_toggles, draw_cards):
        part(pen)
    pen.line([(244, 596), (1000, 596)], "#e2e8f0", 1.5)
    pen.round((686, 616, 806, 656), 8, "#ffffff", line="#94a3b8", width=1.5)
    pen.text((746, 636), "Cancel", 15, color=GREY, style="Sans-Bold", anchor="mm")
    pen.round((822, 616, 972, 656), 8, BLUE)
    pen.text((897, 636), "Save changes", 15, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.text(
        (276, 636), "2 unsaved changes", 14, color="#b45309", style="Sans-Oblique", anchor="lm"
    )
    return pen.finish()


# Water cycle


def draw_cloud(pen: Pen, at: Point, size: float, color: str) -> None:
    x, y = at
    for dx, dy, r in ((-1.1, 0.1, 0.5), (-0.45, -0.25, 0.7), (0.4, -0.15, 0.6), (1.05, 0.12, 0.45)):
        pen.disc((x + dx * size, y + dy * size), r * size, color)
    pen.round((x - 1.5 * size, y + 0.02 * size, x + 1.45 * size, y + 0.6 * size), 0.3 * size, color)


def draw_sun(pen: Pen, at: Point, radius: float) -> None:
    x, y = at
    for i in range(12):
        c, s = math.cos(i * math.pi / 6), math.sin(i * math.pi / 6)
        ends = [(x + k * radius * c, y + k * radius * s) for k in (1.25, 1.6)]
        pen.line(ends, "#f5a623", 5)
    pen.disc((x, y), radius, "#ffc93c")


def draw_pine(pen: Pen, at: Point, size: float) -> None:
    x, y = at
    pen.rect((x - 0.08 * size, y - 0.25 * size, x + 0.08 * size, y), "#6b4226")
    for k, w in ((0.2, 0.38), (0.5, 0.3), (0.8, 0.2)):
        tip = y - (k + 0.42) * size
        pen.poly([(x - w * size, y - k * size), (x + w * size, y - k * size), (x, tip)], "#1f6b3a")


def draw_land_and_sea(pen: Pen) -> None:
    pen.rect((0, 90, 1000, 700), "#cfe8f7")
    pen.poly(
        [(0, 470), (150, 220), (235, 330), (300, 265), (470, 480), (470, 560), (0, 560)], "#8b8f9a"
    )
    pen.poly([(150, 220), (188, 270), (168, 285), (150, 268), (132, 290), (114, 281)], "#ffffff")
    pen.poly([(300, 265), (326, 298), (312, 308), (300, 297), (286, 309), (277, 291)], "#ffffff")
    pen.rect((560, 500, 1000, 700), "#2f7fc1")
    shore = trace(30, lambda t: (600 * t, 452 + 48 * t + 14 * math.sin(2 * math.pi * t)))
    coast = trace(20, lambda t: (600 + 60 * t + 60 * t * t, 500 + 106 * t))
    pen.poly([*shore, *coast, (0, 606)], "#7cb564")
    pen.poly([(0, 606), (720, 606), (752, 700), (0, 700)], "#a9764a")
    pen.poly([(0, 648), (734, 648), (752, 700), (0, 700)], "#5b7fa3")
    for x, y in (
        (766, 540),
        (962, 556),
        (800, 590),
        (936, 600),
        (790, 640),
        (872, 628),
        (830, 680),
    ):
        wave = trace(16, lambda t, x=x, y=y: (x - 20 + 40 * t, y + 3 * math.sin(12 * t)))
        pen.line(wave, "#bfe0f5", 2.5)


def draw_river(pen: Pen) -> None:
    middle = trace(40, lambda t: (330 + 300 * t, 458 + 62 * t + 8 * math.sin(7 * t)))
    left = [(x, y - 2 - 0.03 * (x - 330)) for x, y in middle]
    right = [(x, y + 2 + 0.04 * (x - 330)) for x, y in middle]
    pen.poly([*left, *reversed(right)], "#2f7fc1")


def draw_boat(pen: Pen) -> None:
    pen.poly([(826, 528), (926, 528), (906, 552), (846, 552)], "#a8323e")
    pen.line([(874, 528), (874, 430)], "#4a3524", 4)
    pen.poly([(880, 436), (880, 520), (928, 520)], "#ffffff")
    pen.poly([(868, 446), (868, 520), (836, 520)], "#f6e3b4")


def draw_steps(pen: Pen) -> None:
    steps = (
        (1, "Evaporation", (600, 388)),
        (2, "Condensation", (640, 176)), (3, "Precipitation", (430, 330)),
        (4, "Runoff", (474, 440)), (5, "Groundwater flow", (196, 674)),
    )  # fmt: skip
    for number, name, (x, y) in steps:
        width = 44 + len(name) * 10.4
        pen.round(
            (x - 18, y - 18, x - 18 + width, y + 18), 18, "#ffffff", line="#1b3a57", width=1.5
        )
        pen.disc((x, y), 14, "#1b3a57")
        pen.text((x, y), str(number), 16, color="#ffffff", style="Sans-Bold", anchor="mm")
        pen.text((x + 22, y), name, 15.5, style="Sans-Bold", anchor="lm")


def draw_science() -> Image.Image:
    """A diagram of the water cycle with five numbered steps."""
    pen = Pen.on(1000, 700, "#1b3a57")
    pen.text((30, 45), "The Water Cycle", 32, color="#ffffff", style="Serif-Bold", anchor="lm")
    pen.text((970, 46), "Plate 7", 18, color="#cfe8f7", style="Serif-Italic", anchor="rm")
    draw_land_and_sea(pen)
    draw_river(pen)
    draw_sun(pen, (920, 168), 36)
    draw_cloud(pen, (300, 172), 62, "#76869a")
    draw_cloud(pen, (700, 240), 44, "#ffffff")
    for i in range(6):
        x, y = 236 + 26 * i, 226 + 22 * (i % 2)
        pen.line([(x, y), (x - 12, y + 34)], "#2f6fd0", 3.5)
    for x, y, size in ((70, 560, 74), (130, 588, 86), (208, 556, 70), (330, 586, 80)):
        draw_pine(pen, (x, y), size)
    draw_boat(pen)
    for x in (780, 810, 840):
        pen.arrow(trace(24, lambda t, x=x: (x + 7 * math.sin(9 * t), 500 - 170 * t)), "#e4572e", 5)
    pen.arrow([(606, 224), (440, 200)], "#1b3a57", 6)
    pen.arrow([(392, 514), (520, 556)], "#ffffff", 5)
    pen.arrow([(430, 674), (640, 674)], "#cfe8f7", 6)
    pen.text((24, 628), "soil", 15, color="#ffffff", style="Sans-Oblique", anchor="lm")
    pen.text((950, 668), "sea", 17, color="#ffffff", style="Sans-Oblique", anchor="mm")
    draw_steps(pen)
    return pen.finish()


# Poster


def draw_record(pen: Pen) -> None:
    pen.disc((196, 560), 130, "#1d1d1f")
    for radius in (114, 98, 82, 66):
        pen.disc((196, 560), radius, None, line="#4a4a4e", width=1.5)
    pen.disc((196, 560), 46, "#f2b632")
    pen.disc((196, 560), 7, "#f6efdf")


def draw_trumpet(pen: Pen) -> None:
    layer = make_layer(560, 240)
    gold, dark = "#f2b632", "#1d1d1f"
    for k, color in ((3, dark), (0, gold)):
        layer.round((70 - k, 108 - k, 420 + k, 126 + k), 9, color)
        layer.poly(
            [(400, 108 - k), (520 + k, 48 - k * 2), (520 + k, 186 + k * 2), (400, 126 + k)], color
        )
        layer.oval((504 - k, 44 - k, 540 + k, 190 + k), color)
        layer.poly([(44 - k, 100 - k), (74, 110 - k), (74, 124 + k), (44 - k, 134 + k)], color)
    layer.oval((510, 56, 534, 178), "#c98a12")
    layer.round((130, 112, 350, 196), 38, None, line=dark, width=22)
    layer.round((133, 115, 347, 193), 36, None, line=gold, width=16)
    for x in (190, 230, 270):
        layer.round((x, 84, x + 26, 188), 5, gold, line=dark, width=3)
        layer.rect((x + 9, 64, x + 17, 84), dark)
        layer.round((x + 1, 56, x + 25, 68), 4, "#f6efdf", line=dark, width=2.5)
    pen.paste(layer.canvas, (440, 500), 24)


def draw_piano(pen: Pen) -> None:
    for i in range(12):
        pen.rect((40 + 54 * i, 716, 94 + 54 * i, 806), "#fdfaf2", line="#1d1d1f", width=2)
    for i in (0, 1, 3, 4, 5, 7, 8, 10):
        pen.rect((78 + 54 * i, 716, 110 + 54 * i, 770), "#1d1d1f")


def draw_poster() -> Image.Image:
    """A poster for a jazz evening: red sun, record, trumpet, piano keys and waves."""
    pen = Pen.on(728, 1020, "#f6efdf")
    pen.rect((16, 16, 712, 1004), None, line="#1d1d1f", width=4)
    pen.text((54, 20), "JAZZ", 190, color="#1d1d1f", style="Sans-Bold")
    pen.text((44, 234), "BY THE RIVER", 46, color="#c7362f", style="Sans-Bold")
    pen.disc((500, 478), 170, "#d6453b")
    pen.poly([(40, 690), (40, 330), (250, 690)], "#1f5fa8")
    draw_record(pen)
    draw_trumpet(pen)
    for x, y in ((110, 352), (176, 330), (240, 366)):
        wings = [(x - 24, y - 10), (x, y), (x + 24, y - 10), (x, y + 10)]
        pen.poly(wings, "#1d1d1f")
    draw_piano(pen)
    for i, color in enumerate(("#1f5fa8", "#3f8fd2", "#8cc3ea")):
        y = 832 + 16 * i
        pen.line(trace(120, lambda t, y=y: (40 + 648 * t, y + 6 * math.sin(48 * t))), color, 7)
    pen.text((44, 888), "Friday 21 June, 8 pm", 30, style="Sans-Bold")
    pen.text((44, 932), "Old Mill Pier", 26, color="#1f5fa8", style="Sans-Bold")
    pen.text((44, 968), "Bring a blanket", 17, style="Sans-Oblique")
    pen.disc((624, 924), 62, "#1f5fa8")
    pen.text((624, 910), "FREE", 28, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.text((624, 940), "ENTRY", 20, color="#ffffff", style="Sans-Bold", anchor="mm")
    return pen.finish()


# Puzzle


def draw_shape(pen: Pen, at: Point, kind: str, style: tuple[str, str]) -> None:
    """One shape of 15 px radius; `style` is a colour and `solid`, `empty` or `dotted`."""
    (x, y), (color, fill) = at, style
    sides = {"triangle": 3, "square": 4, "circle": 60}[kind]
    turn = -math.pi / 4 if sides == 4 else -math.pi / 2
    size = {"triangle": 19, "square": 20, "circle": 16}[kind]
    y += 4 if sides == 3 else 0

    def ring(radius: float) -> list[Point]:
        angles = [turn + 2 * math.pi * i / sides for i in range(sides)]
        return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]

    pen.poly(ring(size), color)
    if fill == "empty":
        pen.poly(ring(size * (0.5 if sides == 3 else 0.72)), "#ffffff")
    elif fill == "dotted":
        pen.disc((x, y), 5, "#ffffff")


def draw_cell(pen: Pen, box: Box, shapes: tuple[int, str, str, str]) -> None:
    """A tile with `count` shapes in a row: (count, kind, colour, fill)."""
    count, kind, color, fill = shapes
    pen.round(box, 10, "#ffffff", line="#334155", width=2.5)
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    for i in range(count):
        draw_shape(pen, (x + 44 * (i - (count - 1) / 2), y), kind, (color, fill))


def draw_puzzle_head(pen: Pen) -> None:
    pen.rect((0, 0, 820, 84), "#4338ca")
    pen.text((30, 42), "Puzzle 27", 30, color="#ffffff", style="Sans-Bold", anchor="lm")
    for i in range(5):
        pen.text((410 + 34 * i, 42), "★", 28, color="#facc15" if i < 3 else "#6d63e0", anchor="mm")
    pen.disc((676, 42), 16, None, line="#ffffff", width=3)
    pen.line([(676, 32), (676, 42), (684, 47)], "#ffffff", 3)
    pen.text((790, 42), "02:30", 24, color="#ffffff", style="SansMono-Bold", anchor="rm")
    pen.text((410, 116), "Which tile completes the grid?", 22, style="Sans-Bold", anchor="mm")


RED, SKY, GREEN = "#dc2626", "#0284c7", "#16a34a"


def draw_puzzle() -> Image.Image:
    """A three by three grid of shapes with its last tile missing, and four tiles to choose from."""
    pen = Pen.on(820, 860, "#eef2ff")
    draw_puzzle_head(pen)
    rows = (("circle", RED), ("triangle", SKY), ("square", GREEN))
    for row, (kind, color) in enumerate(rows):
        for column, fill in enumerate(("solid", "empty", "dotted")):
            x, y = 155 + 174 * column, 146 + 146 * row
            if (row, column) != (2, 2):
                draw_cell(pen, (x, y, x + 162, y + 134), (column + 1, kind, color, fill))
    pen.round((503, 438, 665, 572), 10, "#fef9c3", line="#ca8a04", width=4)
    pen.text((584, 505), "?", 64, color="#ca8a04", style="Sans-Bold", anchor="mm")
    pen.line([(30, 602), (790, 602)], "#a5b4fc", 2)
    choices = (
        (3, "square", GREEN, "empty"), (3, "triangle", GREEN, "dotted"),
        (3, "square", GREEN, "dotted"), (3, "square", SKY, "dotted"),
    )  # fmt: skip
    for i, choice in enumerate(choices):
        x = 41 + 190 * i
        draw_cell(pen, (x, 626, x + 168, 760), choice)
        pen.text((x + 84, 786), "ABCD"[i], 24, style="Sans-Bold", anchor="mm")
    for ends in ([(50, 636), (198, 750)], [(198, 636), (50, 750)]):
        pen.line(ends, "#f97316", 7)
    pen.text(
        (30, 832), "Hint: look along the rows, then down the columns.", 16, color=GREY, anchor="lm"
    )
    pen.text((790, 832), "Page 14", 16, color=GREY, anchor="rm")
    return pen.finish()


# Street


@dataclass(frozen=True, slots=True)
class Look:
    """What a person wears: colours of hair, top and legs; a `skirt` hides the upper legs."""

    hair: str
    top: str
    legs: str
    skin: str = "#e8b48c"
    skirt: str = ""


def draw_person(pen: Pen, at: Point, size: float, look: Look) -> None:
    """A standing figure whose feet are at a point and who is `size` pixels tall."""
    x, y = at
    s = size / 100
    for side in (-1, 1):
        pen.line([(x + side * 6 * s, y - 46 * s), (x + side * 10 * s, y)], look.legs, 9 * s)
        pen.oval(
            (x + side * 10 * s - 7 * s, y - 4 * s, x + side * 10 * s + 7 * s, y + 4 * s), "#2b2b2b"
        )
        pen.line([(x + side * 9 * s, y - 74 * s), (x + side * 19 * s, y - 46 * s)], look.top, 7 * s)
        pen.disc((x + side * 19 * s, y - 45 * s), 4 * s, look.skin)
    pen.round((x - 13 * s, y - 80 * s, x + 13 * s, y - 42 * s), 6 * s, look.top)
    if look.skirt:
        pen.poly(
            [
                (x - 12 * s, y - 48 * s),
                (x + 12 * s, y - 48 * s),
                (x + 20 * s, y - 18 * s),
                (x - 20 * s, y - 18 * s),
            ],
            look.skirt,
        )
    pen.disc((x, y - 91 * s), 11 * s, look.hair)
    pen.disc((x, y - 88 * s), 9 * s, look.skin)


def draw_bakery(pen: Pen) -> None:
    pen.rect((40, 150, 320, 500), "#e9b872")
    pen.poly([(28, 150), (332, 150), (290, 84), (70, 84)], "#a34a34")
    for x in (76, 156, 236):
        pen.rect((x, 180, x + 48, 250), "#bfe3f5", line="#ffffff", width=5)
        pen.line([(x + 24, 180), (x + 24, 250)], "#ffffff", 3)
    pen.rect((56, 276, 304, 322), "#5a2d1a")
    pen.text((180, 299), "BAKERY", 30, color="#ffe9b8", style="Serif-Bold", anchor="mm")
    pen.rect((60, 384, 208, 470), "#fff3d1", line="#5a2d1a", width=5)
    for i in range(4):
        pen.oval((72 + 33 * i, 440, 100 + 33 * i, 458), "#b5702c")
    pen.rect((226, 384, 294, 500), "#2f6b4f")
    pen.rect((238, 398, 282, 440), "#bfe3f5")
    pen.disc((284, 456), 4, "#f2c84b")
    for i in range(8):
        left, right = 52 + 32 * i, 84 + 32 * i
        pen.poly(
            [(left, 328), (right, 328), (right, 372), (left, 372)],
            "#ffffff" if i % 2 else "#d33f3f",
        )
        pen.slice((left, 360, right, 384), (0, 180), "#ffffff" if i % 2 else "#d33f3f")


def draw_blue_house(pen: Pen) -> None:
    pen.rect((320, 190, 520, 500), "#7aa7d9")
    pen.poly([(308, 190), (532, 190), (420, 104)], "#4b5563")
    pen.rect((470, 100, 494, 158), "#8c4a3a")
    for x, y in ((346, 220), (446, 220), (346, 330)):
        pen.rect((x, y, x + 52, y + 66), "#fff7d6", line="#ffffff", width=5)
    pen.rect((338, 288, 406, 300), "#7a4a2a")
    for i in range(5):
        pen.disc((346 + 13 * i, 284), 6, "#e0527e")
    pen.rect((438, 388, 494, 500), "#8c2f39")
    pen.text((466, 376), "12", 16, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.disc((486, 446), 4, "#f2c84b")


def draw_tower(pen: Pen) -> None:
    pen.rect((520, 90, 700, 500), "#b9b4c7")
    pen.poly([(510, 90), (710, 90), (610, 26)], "#5d5470")
    pen.disc((610, 158), 42, "#ffffff", line="#352f44", width=5)
    for i in range(12):
        c, s = math.cos(i * math.pi / 6), math.sin(i * math.pi / 6)
        pen.line([(610 + 32 * c, 158 + 32 * s), (610 + 36 * c, 158 + 36 * s)], "#352f44", 2.5)
    hour = math.radians(300 + 0 - 90)
    pen.line([(610, 158), (610 + 19 * math.cos(hour), 158 + 19 * math.sin(hour))], "#352f44", 5)
    pen.line([(610, 158), (610, 128)], "#352f44", 3)
    for x in (545, 595, 645):
        for y in (216, 284):
            pen.rect((x, y, x + 30, y + 52), "#6f86a8")
    pen.rect((574, 404, 646, 500), "#352f44")
    pen.slice((574, 370, 646, 438), (180, 360), "#352f44")
    pen.text((610, 354), "LIBRARY", 15, color="#352f44", style="Sans-Bold", anchor="mm")


def draw_tree(pen: Pen, at: Point, size: float) -> None:
    x, y = at
    pen.rect((x - 0.07 * size, y - 0.6 * size, x + 0.07 * size, y), "#7a5230")
    for dx, dy in ((-0.25, -0.75), (0.25, -0.75), (0, -1.0)):
        pen.disc((x + dx * size, y + dy * size), 0.32 * size, "#3f8f4f")


def draw_bus(pen: Pen) -> None:
    pen.round((560, 520, 900, 646), 16, "#c9252d")
    pen.rect((560, 612, 900, 622), "#f5d76e")
    skins, coats = ("#e8b48c", "#8d5a3a", "", "#f0c9a4"), ("#2563eb", "#f59e0b", "", "#7c3aed")
    for x, skin, coat in zip((632, 690, 748, 806), skins, coats, strict=True):
        pen.round((x, 552, x + 48, 594), 5, "#d8eefb")
        if skin:
            pen.disc((x + 24, 574), 9, skin)
            pen.slice((x + 11, 580, x + 37, 608), (180, 360), coat)
    pen.round((568, 552, 622, 608), 5, "#d8eefb")
    pen.disc((590, 576), 9, "#e8b48c")
    pen.slice((577, 582, 603, 624), (180, 360), "#1f2937")
    pen.round((572, 526, 700, 547), 4, "#1f2937")
    pen.text((636, 537), "24 HARBOUR", 14, color="#ffd34d", style="Sans-Bold", anchor="mm")
    pen.round((862, 550, 890, 634), 4, "#8f1820")
    pen.disc((566, 630), 7, "#fff3b0")
    for x in (628, 832):
        pen.disc((x, 646), 25, "#23272e")
        pen.disc((x, 646), 11, "#b8bec8")


def draw_dog_walker(pen: Pen) -> None:
    draw_person(pen, (440, 600), 132, Look("#3a2a1c", "#2f9e6e", "#34495e"))
    pen.line([(415, 541), (362, 564)], "#8c2f39", 2.5)
    pen.round((312, 564, 364, 586), 10, "#8a5a2b")
    for x in (318, 328, 348, 357):
        pen.rect((x, 580, x + 6, 604), "#8a5a2b")
    pen.disc((309, 560), 13, "#8a5a2b")
    pen.oval((292, 560, 310, 572), "#a8743c")
    pen.disc((293, 564), 3, "#1f1f1f")
    pen.disc((304, 556), 2, "#1f1f1f")
    pen.oval((312, 550, 322, 574), "#5f3b18")
    pen.line([(362, 568), (374, 552)], "#8a5a2b", 5)


def draw_bench_reader(pen: Pen) -> None:
    pen.rect((64, 540, 204, 548), "#7a4a2a")
    pen.rect((64, 566, 204, 576), "#8c5a34")
    for x in (74, 188):
        pen.rect((x, 540, x + 7, 606), "#4b5563")
    pen.round((118, 520, 148, 570), 8, "#6b7fa8")
    for x in (122, 138):
        pen.rect((x, 566, x + 10, 602), "#4a4238")
        pen.oval((x - 3, 597, x + 13, 606), "#2b2b2b")
    pen.disc((133, 506), 13, "#e8b48c")
    pen.slice((118, 488, 148, 520), (180, 360), "#e6e6e6")
    pen.rect((112, 532, 154, 560), "#fafafa", line="#777777", width=1.5)
    pen.text((133, 537), "NEWS", 9, style="Sans-Bold", anchor="ma")
    for y in (549, 553):
        pen.line([(117, y), (149, y)], "#999999", 1)


def draw_lamp_and_light(pen: Pen) -> None:
    pen.rect((534, 370, 541, 506), "#2f3640")
    pen.round((525, 344, 550, 374), 6, "#fff2b3", line="#2f3640", width=3)
    pen.rect((944, 420, 952, 612), "#2f3640")
    pen.round((930, 330, 966, 428), 8, "#2f3640")
    for y, color in ((350, "#5b2020"), (379, "#5b4a18"), (408, "#2ee56b")):
        pen.disc((948, y), 11, color)


def draw_ground(pen: Pen) -> None:
    pen.rect((0, 480, 1024, 640), "#d8d3c8")
    pen.rect((0, 478, 1024, 500), "#8fbf74")
    pen.rect((520, 500, 1024, 516), "#d8d3c8")
    pen.rect((0, 606, 1024, 720), "#5f6670")
    pen.rect((0, 606, 1024, 613), "#c2bdb2")
    for x in range(20, 680, 110):
        pen.rect((x, 668, x + 60, 675), "#f3f3f3")
    for x in range(916, 1000, 34):
        pen.rect((x, 624, x + 20, 712), "#f3f3f3")


def draw_street() -> Image.Image:
    """A street with a bakery, a house, a library, a red bus, people, a dog and trees."""
    pen = Pen.on(1024, 720, "#a9dcf5")
    draw_sun(pen, (940, 84), 34)
    for x, y, size in ((430, 62, 26), (760, 70, 34), (850, 190, 24)):
        draw_cloud(pen, (x, y), size, "#ffffff")
    draw_ground(pen)
    for part in (draw_bakery, draw_blue_house, draw_tower):
        part(pen)
    for x, y, size in ((768, 500, 150), (868, 500, 180), (990, 500, 140)):
        draw_tree(pen, (x, y), size)
    draw_lamp_and_light(pen)
    draw_bus(pen)
    draw_bench_reader(pen)
    draw_dog_walker(pen)
    draw_person(pen, (254, 606), 84, Look("#c96f2a", "#f2b632", "#2f5fa8"))
    pen.line([(270, 568), (284, 446)], "#666666", 1.5)
    pen.oval((264, 392, 306, 446), "#e23b6d")
    draw_person(pen, (986, 606), 132, Look("#1f1f1f", "#ffffff", "#8d5a3a", "#8d5a3a", "#f28e2b"))
    for x, y in ((400, 644), (436, 636), (466, 650)):
        pen.oval((x - 11, y - 7, x + 9, y + 6), "#9aa3b5")
        pen.disc((x + 10, y - 8), 5, "#7b8598")
        pen.poly([(x + 14, y - 9), (x + 20, y - 7), (x + 14, y - 6)], "#f2a33c")
    return pen.finish()


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "receipt": draw_receipt,
    "chart": draw_chart,
    "app": draw_app,
    "science": draw_science,
    "poster": draw_poster,
    "puzzle": draw_puzzle,
    "street": draw_street,
}


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw().save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
