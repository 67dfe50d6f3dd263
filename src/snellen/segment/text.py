"""Regions of printed text, found by an OCR library whose wheel holds its models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snellen.errors import MissingExtraError
from snellen.segment.regions import Found

LEAST_SCORE = 0.8


def text_regions(pixels: NDArray[np.uint8]) -> Iterator[Found]:
    """The lines of text of a picture (height, width, 3), each with what was read as its guess.

    Lines below a score of 0.8 are left out.

    Raises:
        MissingExtraError: rapidocr is not installed.
    """
    from PIL import Image, ImageDraw

    read = _engine()(np.ascontiguousarray(pixels[..., ::-1]))
    if read.boxes is None:
        return
    for corners, text, score in zip(read.boxes, read.txts, read.scores, strict=True):
        if score >= LEAST_SCORE:
            drawn = Image.new("1", (pixels.shape[1], pixels.shape[0]))
            ImageDraw.Draw(drawn).polygon([(float(x), float(y)) for x, y in corners], fill=1)
            yield Found(np.asarray(drawn, dtype=bool), text, "thing", float(score))


@cache
def _engine() -> Any:
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        raise MissingExtraError("rapidocr, which finds printed text", "ocr") from error
    return RapidOCR(params={"Global.log_level": "error"})
