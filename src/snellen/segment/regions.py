"""Regions as masks, and the rules by which some of them are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snellen.builders.options import SegmentOptions

Mask = NDArray[np.bool_]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Found:
    """A region as a segmenter gives it: `mask` has the shape of the upright picture.

    `guess` is a class name or a printed text, `nature` `thing`, `stuff` or empty, `score` 0 to 1.
    `name` is its id in annotations that exist.
    """

    mask: Mask
    guess: str = ""
    nature: str = ""
    score: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """A region that was not kept, and the rule that said so."""

    found: Found
    reason: str


def box_of(mask: Mask) -> Box:
    """The box (ymin, xmin, ymax, xmax) around a mask, in thousandths of height and width.

    >>> mask = np.zeros((4, 10), bool); mask[1:3, 2:7] = True; box_of(mask)
    (250.0, 200.0, 750.0, 700.0)
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = mask.shape
    return (
        round(1000 * float(rows[0]) / height, 1),
        round(1000 * float(columns[0]) / width, 1),
        round(1000 * float(rows[-1] + 1) / height, 1),
        round(1000 * float(columns[-1] + 1) / width, 1),
    )


def choose(
    found: Iterable[Found], options: SegmentOptions
) -> tuple[tuple[Found, ...], tuple[Left, ...]]:
    """Regions by the stated rules: area, then overlap with a better one, then the cap.

    The better one is a thing before stuff, then the one with the higher score, then the larger.
    What is left is in that order too.
    """
    kept: list[Found] = []
    left: list[Left] = []
    for one in sorted(
        found, key=lambda one: (one.nature == "stuff", -(one.score or 0.0), -int(one.mask.sum()))
    ):
        share = float(one.mask.mean()) if one.mask.size else 0.0
        if share <= 0:
            left.append(Left(one, "empty_mask"))
        elif share < options.min_area:
            left.append(Left(one, "too_small"))
        elif share > options.max_area:
            left.append(Left(one, "too_large"))
        elif any(
            # The common area as a share of the smaller one.
            (one.mask & other.mask).sum()
            > options.max_overlap * min(one.mask.sum(), other.mask.sum())
            for other in kept
        ):
            left.append(Left(one, "overlap"))
        elif len(kept) == options.max_regions:
            left.append(Left(one, "over_region_cap"))
        else:
            kept.append(one)
    return tuple(kept), tuple(left)


def covered(masks: Sequence[Mask]) -> float:
    """The share of a picture that masks cover together; 0 for none."""
    return float(np.logical_or.reduce(masks).mean()) if masks else 0.0


def recall(boxes: Sequence[Box], regions: Sequence[Box], *, least: float = 0.5) -> tuple[int, int]:
    """How many true boxes are hit by a region of their own, and how many there are.

    A hit is an intersection over union of at least `least`; the best pairs are made first.

    >>> recall([(0, 0, 10, 10), (20, 20, 30, 30)], [(0, 0, 10, 9)])
    (1, 2)
    """
    from snellen.builders.describing import overlap

    pairs = sorted(
        ((overlap(a, b), i, j) for i, a in enumerate(boxes) for j, b in enumerate(regions)),
        reverse=True,
    )
    hit: set[int] = set()
    used: set[int] = set()
    for share, i, j in pairs:
        if share >= least and i not in hit and j not in used:
            hit.add(i)
            used.add(j)
    return len(hit), len(boxes)
