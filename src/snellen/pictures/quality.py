"""What a picture is worth: size, sharpness, exposure, and a hash that like pictures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

SIDE = 512
_HASH_SIDE, _HASH_KEPT = 32, 8


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures of one picture: pixels, variance of the Laplacian, mean grey (0 to 1)."""

    pixels: int
    sharpness: float
    brightness: float


def quality_of(picture: Pixels) -> Quality:
    """The figures of an upright picture.

    Sharpness is measured with the longer side at 512 pixels, so that it does not depend on how
    large the picture is; a smaller picture is measured as it is.
    """
    from PIL import Image

    width, height = picture.size
    grey = picture.convert("L")
    scale = SIDE / max(width, height)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        grey = grey.resize(size, Image.Resampling.BOX)
    values = np.asarray(grey, dtype=np.float64)
    sharpness = 0.0  # where a side has fewer than 3 pixels
    if min(values.shape) >= 3:
        inner = values[1:-1, 1:-1]
        around = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
        sharpness = round(float((around - 4 * inner).var()), 3)
    return Quality(width * height, sharpness, round(float(values.mean()) / 255, 4))


def fingerprint(picture: Pixels) -> str:
    """A perceptual hash of 64 bits, in hex: the low frequencies of a picture, above their median.

    Copies in another format, size or quality differ in few bits. A mirrored copy is another
    picture: left and right are what questions ask about.
    """
    from PIL import Image

    grey = picture.convert("L").resize((_HASH_SIDE, _HASH_SIDE), Image.Resampling.LANCZOS)
    values = np.asarray(grey, dtype=np.float64)
    k = np.arange(_HASH_SIDE)
    basis = np.cos(np.pi * (2 * k[None] + 1) * k[:, None] / (2 * _HASH_SIDE))
    low = (basis @ values @ basis.T)[:_HASH_KEPT, :_HASH_KEPT].ravel()
    bits = low > np.median(low[1:])
    return f"{int(''.join('1' if bit else '0' for bit in bits), 2):016x}"
