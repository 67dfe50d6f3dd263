"""Pictures that are alike: copies of one photo in other formats, sizes and qualities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from snellen.builders.rows import PictureRow
from snellen.builders.steps import Rejected

BITS = 64
P = TypeVar("P", bound=PictureRow)


def distance(a: str, b: str) -> int:
    """How many of the 64 bits of two fingerprints differ.

    >>> distance("00000000000000ff", "000000000000000f")
    4
    """
    return (int(a, 16) ^ int(b, 16)).bit_count()


def without_copies(pictures: Sequence[P], most: int) -> tuple[tuple[P, ...], tuple[Rejected, ...]]:
    """Pictures of which no two differ in `most` bits or fewer, in their order; -1 keeps all.

    The one with the most pixels is kept, of equals the one with the first id. A picture is compared
    with kept ones only, so that a chain of likenesses does not empty a whole set; neither rule
    depends on the order of the pictures.
    """
    if most < 0:
        return tuple(pictures), ()
    ranked = sorted(pictures, key=lambda one: (-one.width * one.height, one.id))
    kept: dict[str, P] = {}
    signs = np.empty((len(ranked), BITS), np.float32)
    gone: dict[str, Rejected] = {}
    for one in ranked:
        value = int(one.fingerprint, 16)
        own = np.array([1.0 if value >> k & 1 else -1.0 for k in range(BITS)], np.float32)
        far = (BITS - signs[: len(kept)] @ own) / 2
        if kept and far.min() <= most:
            partner = list(kept)[int(far.argmin())]
            detail = {"partner": partner, "distance": int(far.min())}
            gone[one.id] = Rejected(
                id=one.id, made_from=one.made_from, reason="near_duplicate", detail=detail
            )
            continue
        signs[len(kept)] = own
        kept[one.id] = one
    return (
        tuple(one for one in pictures if one.id in kept),
        tuple(gone[one.id] for one in pictures if one.id in gone),
    )
