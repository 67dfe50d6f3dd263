"""Pictures and masks as a browser gets them: from allowed folders, as they were measured."""

from __future__ import annotations

import io
from binascii import a2b_base64
from functools import lru_cache

import msgspec
import numpy as np

from snellen.errors import ImageError
from snellen.pictures.headers import headers_of
from snellen.pictures.masks import decode_mask
from snellen.pictures.prepare import PictureRules, open_upright, prepare, read
from snellen.records import Image

# As a model gets it, but not enlarged, padded or made smaller: boxes lie where they lay.
RULES = PictureRules(min_side=1, max_bytes=512 * 1024 * 1024)
TINT = (255, 138, 31)
TURNED = 5
"""From this EXIF orientation on, a picture lies on its side."""


def picture_bytes(image: Image) -> tuple[str, bytes]:
    """The type and the bytes of a picture, upright and in full size.

    Raises: ImageError where it cannot be read or has changed since the run.
    """
    from snellen.keys import digest

    if image.row is None and digest(read(image)) != image.digest:
        raise ImageError("the file has changed since the run", file=image.name)
    picture = prepare(image, RULES)
    return picture.mime, a2b_base64(picture.base64)


@lru_cache(maxsize=4096)
def size_of(image: Image) -> tuple[int, int]:
    """The width and height of a picture once it is upright.

    Raises: ImageError where it is no picture; OSError where it cannot be read.
    """
    _, header = next(headers_of([image]))
    if header is None or not header.width or not header.height:
        size: tuple[int, int] = open_upright(image, RULES).size
        return size
    size = (header.width, header.height)
    return (size[1], size[0]) if header.orientation >= TURNED else size


def mask_png(mask: msgspec.Raw) -> bytes | None:
    """A mask as a picture: tinted where it covers, clear elsewhere; None where there is no mask.

    Raises: DataError where the mask has a fault.
    """
    from PIL import Image as Pillow

    found = msgspec.json.decode(mask)
    if found is None:
        return None
    covered = decode_mask(found)
    pixels = np.zeros((*covered.shape, 4), np.uint8)
    pixels[covered] = (*TINT, 255)
    buffer = io.BytesIO()
    Pillow.fromarray(pixels).quantize(2).save(buffer, "PNG")
    return buffer.getvalue()
