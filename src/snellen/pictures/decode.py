"""Decodes pictures to upright RGB, a bounded number of pixels at a time.

Colour profiles and gamma are not applied, since the servers of models do not apply them either.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from snellen.errors import ImageError
from snellen.pictures import headers
from snellen.settings import decoding_pixels

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels
    from PIL.ImageFile import ImageFile

Colour = tuple[int, int, int]
BLOCK_BYTES = 64 * 1024 * 1024

BROKEN: tuple[type[Exception], ...] = (
    *(OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, AttributeError),
    *(OverflowError, MemoryError, RuntimeError, AssertionError, struct.error, zlib.error),
    # Pillow warns of damage, and a host may have made warnings errors.
    Warning,
)


class PixelBudget:
    """Pixels that are decoded at once in this process.

    A picture that needs more than is left waits for those before it; one that needs more than the
    whole is decoded alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._gate = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Holds so many pixels, once there is room for them; the first to ask is the first."""
        with self._gate, self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + pixels <= self._most)
            self._used += pixels
        try:
            yield
        finally:
            with self._changed:
                self._used -= pixels
                self._changed.notify_all()


@cache
def budget() -> PixelBudget:
    """The budget of this process.

    Pillow takes the memory of large pictures in blocks; those of 64 MB go back to the system when a
    picture is done, and smaller ones may stay with the thread that decoded it.
    """
    from PIL import _imaging

    _imaging.set_block_size(BLOCK_BYTES)
    return PixelBudget(decoding_pixels())


@contextmanager
def decoding(name: str) -> Iterator[None]:
    """Turns what Pillow raises on broken files into ImageError; its own errors have many types."""
    from PIL import Image

    try:
        yield
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(f"has too many pixels to decode: {error}", file=name) from error
    except BROKEN as error:
        what = str(error) or type(error).__name__
        raise ImageError(f"is broken or cut off: {what}", file=name) from error


def exif_notes(header: headers.Header) -> tuple[str, ...]:
    """What is said of EXIF that cannot be read."""
    return ("EXIF unreadable: ignored",) if header.exif_broken else ()


def trim(header: headers.Header, data: bytes) -> tuple[headers.Header, bytes, tuple[str, ...]]:
    """The first picture of a file alone, without encoding it anew.

    What follows its end goes, and so do texts and profiles of more than a megabyte.
    """
    if header.bulky and header.kind in {"jpeg", "png"}:
        slim = headers.without_texts(header, data)
        read = headers.read_header(headers.RawBytes(slim)) or header
        # A left-out text may have said how the picture is turned.
        read = replace(read, exif=header.exif, xmp=header.xmp, bulky=False)
        read, slim, notes = trim(read, slim)
        return read, slim, ("large texts and profiles left out", *notes)
    end = header.end
    if header.kind == "jpeg" and (end is None or header.index is not None):
        end = headers.find_jpeg_end(data)
    if end is None or (end == len(data) and header.index is None):
        return header, data, ()
    notes = (f"{len(data) - end} bytes after the picture's end cut off",)
    cut_from, cut_to = header.index or (end, end)
    data = data[:cut_from] + data[cut_to:end]
    if header.index is not None:
        notes = ("first of several pictures in the file",)
    read = headers.read_header(headers.RawBytes(data)) or header
    return replace(read, exif=header.exif, xmp=header.xmp), data, notes


_PLUGINS = {
    "jpeg": ("JpegImagePlugin", "JpegImageFile"),
    "png": ("PngImagePlugin", "PngImageFile"),
    "webp": ("WebPImagePlugin", "WebPImageFile"),
    "gif": ("GifImagePlugin", "GifImageFile"),
    "bmp": ("BmpImagePlugin", "BmpImageFile"),
    "tiff": ("TiffImagePlugin", "TiffImageFile"),
    "avif": ("AvifImagePlugin", "AvifImageFile"),
    "jp2": ("Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "ppm": ("PpmImagePlugin", "PpmImageFile"),
}


@contextmanager
def upright(
    header: headers.Header, data: bytes, name: str, *, limit: int, ground: Colour
) -> Iterator[tuple[Pixels, tuple[str, ...]]]:
    """The pixels of a picture in RGB, and what was done to them, while they are in the budget.

    `limit` is the stored size above which a picture is refused, `ground` the colour under
    transparent pixels.

    Raises: ImageError when the picture is too large, or cannot be decoded to its end.
    """
    _check_size((header.width, header.height), name, limit)
    with decoding(name):
        # Pillow's own `open` would try every format it has, among them some that start other
        # programs, and would warn of large pictures through global state.
        module, plugin = _PLUGINS[header.kind]
        opened: ImageFile = getattr(import_module(f"PIL.{module}"), plugin)(BytesIO(data))
    _check_size(opened.size, name, limit)
    with budget().taken(opened.size[0] * opened.size[1]):
        with decoding(name):
            found = _decoded(header, opened, ground)
        yield found


_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""How a picture with an orientation mark is made upright."""


def _decoded(
    header: headers.Header, opened: ImageFile, ground: Colour
) -> tuple[Pixels, tuple[str, ...]]:
    from PIL.Image import Transpose

    animated = header.animated or getattr(opened, "is_animated", False)
    opened.load()
    turn, exif = header.orientation, exif_notes(header)
    if header.kind in {"tiff", "avif"}:  # TIFF is turned by loading it
        try:
            turn, exif = int(opened.getexif().get(headers.ORIENTATION_TAG, 1)), ()
        except BROKEN:
            turn, exif = 1, ("EXIF unreadable: ignored",)
    mode = opened.mode
    pixels, colours = _to_rgb(opened, ground)
    if header.kind == "jpeg" and mode == "CMYK" and not header.adobe:
        colours = ("CMYK without Adobe mark taken as inverted", *colours)
    turned: tuple[str, ...] = ()
    if turn in _TURNS:
        pixels = pixels.transpose(Transpose[_TURNS[turn]])
        turned = (f"turned upright ({'XMP' if header.xmp and not header.exif else 'EXIF'} {turn})",)
    pixels.info.clear()
    ends = header.end is not None or header.kind not in {"jpeg", "png"}
    whole = () if ends else ("end of the file missing, all pixels there",)
    several = "pages" if header.kind == "tiff" else "frames"
    frames = (f"first of several {several}",) if animated and header.kind != "jpeg" else ()
    return pixels, (*whole, *frames, *exif, *colours, *turned)


def _check_size(size: tuple[int, int], name: str, limit: int) -> None:
    if size[0] * size[1] <= limit:
        return
    raise ImageError(
        f"has too many pixels: {size[0]} x {size[1]}, more than {limit:,}",
        file=name,
        hint="shrink the file: one of this size could fill the memory",
    )


_COLOURS = {"1": "black and white", "L": "grey", "P": "palette"}


def _to_rgb(opened: Pixels, ground: Colour) -> tuple[Pixels, tuple[str, ...]]:
    from PIL import Image

    if opened.mode == "RGB" and not opened.has_transparency_data:
        return opened.copy(), ()
    if opened.mode.startswith(("I", "F")):
        return _deep_grey_to_rgb(opened)
    if opened.has_transparency_data:
        pixels = opened.convert("RGBA")
        alpha = pixels.getchannel("A")
        if alpha.getextrema() == (255, 255):
            return pixels.convert("RGB"), ("opaque alpha dropped",)
        laid = Image.new("RGB", pixels.size, ground)
        laid.paste(pixels.convert("RGB"), mask=alpha)
        colour = "white" if ground == (255, 255, 255) else hex_of(ground)
        return laid, (f"alpha on {colour}",)
    return opened.convert("RGB"), (f"{_COLOURS.get(opened.mode, opened.mode)} to RGB",)


def _deep_grey_to_rgb(opened: Pixels) -> tuple[Pixels, tuple[str, ...]]:
    """Grey of 16 bits over its full range; wider or real numbers over the range that occurs."""
    import numpy as np
    from PIL import Image

    values = np.asarray(opened, dtype=np.float32)
    values = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if opened.mode != "F" and low >= 0 and high <= 65535:
        low, high, note = 0.0, 65535.0, "16-bit grey scaled to 8 bit"
    elif opened.mode == "F" and low >= 0 and high <= 1:
        low, high, note = 0.0, 1.0, "grey of 0 to 1 scaled to 8 bit"
    else:
        note = f"grey of {low:g} to {high:g} scaled to 8 bit"
    scale = 255.0 / (high - low) if high > low else 0.0
    grey = np.rint((values - low) * scale).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB"), (note,)


def hex_of(colour: Colour) -> str:
    """A colour as #rrggbb."""
    return "#" + "".join(f"{c:02x}" for c in colour)
