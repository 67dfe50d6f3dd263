"""Three scenes of the `mini` benchmark: the water cycle, a poster and a street."""

from __future__ import annotations

import math
from dataclasses import dataclass

from draw_pen import Pen, Point, make_layer, trace
from PIL import Image


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
        wave = trace(16, lambda t: (40 * t - 20, 3 * math.sin(12 * t)), (x, y))
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
        steam = trace(24, lambda t: (7 * math.sin(9 * t), -170 * t), (x, 500))
        pen.arrow(steam, "#e4572e", 5)
    pen.arrow([(606, 224), (440, 200)], "#1b3a57", 6)
    pen.arrow([(392, 514), (520, 556)], "#ffffff", 5)
    pen.arrow([(430, 674), (640, 674)], "#cfe8f7", 6)
    pen.text((24, 628), "soil", 15, color="#ffffff", style="Sans-Oblique", anchor="lm")
    pen.text((950, 668), "sea", 17, color="#ffffff", style="Sans-Oblique", anchor="mm")
    draw_steps(pen)
    return pen.finish()


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
        pen.line(trace(120, lambda t: (648 * t, 6 * math.sin(48 * t)), (40, y)), color, 7)
    pen.text((44, 888), "Friday 21 June, 8 pm", 30, style="Sans-Bold")
    pen.text((44, 932), "Old Mill Pier", 26, color="#1f5fa8", style="Sans-Bold")
    pen.text((44, 968), "Bring a blanket", 17, style="Sans-Oblique")
    pen.disc((624, 924), 62, "#1f5fa8")
    pen.text((624, 910), "FREE", 28, color="#ffffff", style="Sans-Bold", anchor="mm")
    pen.text((624, 940), "ENTRY", 20, color="#ffffff", style="Sans-Bold", anchor="mm")
    return pen.finish()


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
