"""A region alone: cut out, enlarged, with everything around it faded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from snellen.builders.rows import Shot
from snellen.keys import digest

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

MARGIN = 0.08
FADED = 0.2
SIDE = 768


def view_of(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> Pixels:
    """The part of a picture (height, width, 3) around a mask (height, width), as a new picture.

    A margin of 8% is left. What is outside the mask is faded to a fifth on grey, and a small view
    is enlarged until its longer side has 768 pixels.
    """
    from PIL import Image

    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = mask.shape
    more_y = max(4, int(MARGIN * (rows[-1] - rows[0] + 1)))
    more_x = max(4, int(MARGIN * (columns[-1] - columns[0] + 1)))
    window = (
        slice(max(0, rows[0] - more_y), min(height, rows[-1] + 1 + more_y)),
        slice(max(0, columns[0] - more_x), min(width, columns[-1] + 1 + more_x)),
    )
    part = pixels[window].astype(np.float32)
    faded = 128 + FADED * (part - 128)
    drawn = np.where(mask[window][..., None], part, faded).astype(np.uint8)
    view = Image.fromarray(drawn)
    factor = SIDE / max(view.size)
    if factor > 1:
        size = (max(1, round(view.width * factor)), max(1, round(view.height * factor)))
        view = view.resize(size, Image.Resampling.LANCZOS)
    return view


def save_view(view: Pixels, path: Path) -> Shot:
    """Writes a view as JPEG of quality 95 with full colour, whole or not at all.

    A PNG of an enlarged photo takes a hundred times as long, and ten times the room.
    """
    from io import BytesIO

    buffer = BytesIO()
    view.save(buffer, "JPEG", quality=95, subsampling=0)
    data = buffer.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
    return Shot(str(path), digest(data))
