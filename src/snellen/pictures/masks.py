"""Run-length encoded masks, as COCO writes them: checked, packed and unpacked."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from snellen.errors import DataError

# Characters of the short form carry five bits each, above the character "0".
_ZERO, _BITS, _MORE, _SIGN = 48, 5, 0x20, 0x10


def mask_fault(mask: object) -> str:
    """What is wrong with a mask; empty where nothing is, or where there is no mask.

    Source: COCO, the run-length format of its annotations.

    >>> mask_fault({"size": [3, 4], "counts": [2, 4, 6]}), mask_fault(None)
    ('', '')
    >>> mask_fault({"size": [3, 4], "counts": "24"})
    'the runs cover 6 pixels, and 3 x 4 are 12'
    """
    if mask is None:
        return ""
    if not isinstance(mask, dict) or not {"size", "counts"} <= mask.keys():
        return 'expected null or {"size": [height, width], "counts": runs}'
    size, counts = mask["size"], mask["counts"]
    if not _are_counts(size) or len(size) != 2 or 0 in size:
        return f"expected a size [height, width], found {size!r}"
    height, width = size
    runs = _unpacked(counts) if isinstance(counts, str) else counts
    if not _are_counts(runs):
        return "the runs are no counts of pixels"
    if sum(runs) != height * width:
        pixels = height * width
        return f"the runs cover {sum(runs)} pixels, and {height} x {width} are {pixels}"
    return ""


def shape_fault(mask: object, size: tuple[int, int]) -> str:
    """Whether a mask cannot lie over a picture of (width, height); empty where it can.

    A mask may be smaller or larger than its picture, and its sides are then rounded.

    >>> shape_fault({"size": [30, 40], "counts": [1200]}, (400, 300))
    ''
    >>> shape_fault({"size": [640, 480], "counts": [307200]}, (640, 480))
    'the mask is 640 high and 480 wide, and the picture 480 high and 640 wide'
    """
    if not isinstance(mask, dict) or mask_fault(mask):
        return ""
    (height, width), (wide, high) = mask["size"], size
    # By how far rounding half a pixel in each side of the mask may change its proportions.
    allowed = 0.5 * (high + wide) + 1e-9
    if abs(height * wide - width * high) <= allowed:
        return ""
    return (
        f"the mask is {height} high and {width} wide, and the picture {high} high and {wide} wide"
    )


def _are_counts(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _unpacked(text: str) -> list[int] | None:
    """The runs of the short form, where a later run is a difference; None if it is cut off."""
    runs: list[int] = []
    value = shift = 0
    for char in text:
        part = ord(char) - _ZERO
        if not 0 <= part < 2 * _MORE:
            return None
        value |= (part & (_MORE - 1)) << shift
        shift += _BITS
        if part & _MORE:
            continue
        if part & _SIGN:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return None if shift else runs


def encode_mask(mask: NDArray[np.bool_]) -> dict[str, object]:
    """A mask of shape (height, width) as run lengths in the short form.

    >>> encode_mask(np.array([[0, 1], [0, 1]], bool))
    {'size': [2, 2], 'counts': '22'}
    """
    height, width = mask.shape
    flat = np.concatenate(([False], mask.ravel(order="F"), [not mask[-1, -1]]))
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(ends, prepend=0).tolist()
    chars = []
    for place, run in enumerate(runs):
        # A run after the second is the difference from the one two before.
        value = run - runs[place - 2] if place > 2 else run
        while True:
            part = value & (_MORE - 1)
            value >>= _BITS
            is_last = value == (-1 if part & _SIGN else 0)
            chars.append(chr((part if is_last else part | _MORE) + _ZERO))
            if is_last:
                break
    return {"size": [height, width], "counts": "".join(chars)}


def decode_mask(mask: object) -> NDArray[np.bool_]:
    """The pixels of a mask, (height, width); its runs may be packed or not.

    >>> decode_mask({"size": [2, 2], "counts": [2, 2]}).tolist()
    [[False, True], [False, True]]

    Raises:
        DataError: the mask has a fault.
    """
    if fault := mask_fault(mask) or ("" if mask else "there is no mask"):
        raise DataError(fault, field="mask")
    assert isinstance(mask, dict)
    height, width = mask["size"]
    counts = mask["counts"]
    runs = _unpacked(counts) if isinstance(counts, str) else counts
    assert runs is not None
    values = np.arange(len(runs)) % 2 == 1
    return np.repeat(values, runs).reshape((height, width), order="F")
