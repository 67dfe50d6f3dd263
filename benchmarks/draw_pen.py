"""A pen that draws smooth shapes and DejaVu letters on a picture, the same pixels on every run.

Pictures are drawn at three times their size and reduced at the end, so that edges are smooth.
The fonts are those that ship with matplotlib, so that no font of the system is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

SCALE = 3
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


def trace(count: int, of: Callable[[float], Point], start: Point = (0, 0)) -> list[Point]:
    """Points of a curve that begins near `start`: `of` is asked at `count` + 1 places of 0..1."""
    x, y = start
    places = [of(i / count) for i in range(count + 1)]
    return [(x + dx, y + dy) for dx, dy in places]


def make_layer(width: int, height: int) -> Pen:
    layer = Image.new("RGBA", (width * SCALE, height * SCALE), (0, 0, 0, 0))
    return Pen(layer, ImageDraw.Draw(layer))
