"""Four pages of the `mini` benchmark: a receipt, a chart, a settings window and a puzzle."""

from __future__ import annotations

import io
import math

from draw_pen import Box, Pen, Point, make_layer, trace
from matplotlib.figure import Figure
from PIL import Image


def draw_table_top(pen: Pen) -> None:
    for i, color in enumerate(("#8a5a35", "#94623b", "#84552f", "#905e38", "#875832")):
        pen.rect((i * 152, 0, i * 152 + 152, 1000), color)
        pen.line([(i * 152, 0), (i * 152, 1000)], "#6a4223", 2)
        for k in range(5):
            y, x = 90 + 190 * k + 37 * i, i * 152 + 76
            pen.line(trace(20, lambda t: (9 * math.sin(6 * t) - 40, 120 * t), (x, y)), "#7a4d2a", 1)


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


SERIES = (
    ("Clock Museum", "#1f3b73", (12, 18, 25, 15)),
    ("Glass Museum", "#f28e2b", (20, 22, 17, 24)),
    ("Salt Museum", "#2a9d8f", (8, 14, 31, 10)),
)


def draw_chart() -> Image.Image:
    """A grouped bar chart of museum visitors: three series, four quarters, one estimate."""
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


def render(figure: Figure) -> Image.Image:
    """The pixels of a figure, without a window system."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return Image.open(buffer).convert("RGB")


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
