"""Draws seven pictures of the bundled `mini` benchmark; the same pixels on every run.

Run as `python benchmarks/draw_mini.py [FOLDER]`; the folder defaults to the bundled images. All
shapes are ours; the letters come from the DejaVu fonts that ship with matplotlib.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from draw_pages import draw_app, draw_chart, draw_puzzle, draw_receipt
from draw_scenes import draw_poster, draw_science, draw_street
from PIL import Image

IMAGES = Path(__file__).parent.parent / "src" / "snellen" / "data" / "mini" / "images"

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
