"""Limits of a sum of rates of the same images, such as a mean, from the limits of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Limits(NamedTuple):
    """An estimate between its lower and its upper limit."""

    low: float
    estimate: float
    high: float


def combined_limits(
    parts: Sequence[tuple[float, Limits]], correlations: ArrayLike
) -> tuple[float, float]:
    """The limits of a weighted sum of estimates, which correlate over samples.

    `parts` are weights with limits; a difference has the weights 1 and -1. `correlations` has the
    shape (n_parts, n_parts). The distance from the sum to a limit is that of correlated errors,
    each taken from the side of its own interval that would move the sum there. Intervals that lean
    to one side are so kept leaning, and a part that is known from its limits alone counts too.

    >>> parts = [(1.0, Limits(0.5, 0.8, 0.9)), (-1.0, Limits(0.6, 0.65, 0.7))]
    >>> low, high = combined_limits(parts, [[1.0, 0.5], [0.5, 1.0]])
    >>> round(low, 2), round(high, 2)
    (-0.13, 0.24)

    Source: Zou and Donner 2008, construction of confidence limits about effect measures.
    """
    total = sum(weight * part.estimate for weight, part in parts)
    signed = np.array([weight for weight, _ in parts])
    below = np.array([p.estimate - p.low if w > 0 else p.high - p.estimate for w, p in parts])
    above = np.array([p.high - p.estimate if w > 0 else p.estimate - p.low for w, p in parts])
    table = np.asarray(correlations, dtype=np.float64)
    down, up = (
        math.sqrt(max(0.0, float((signed * side) @ table @ (signed * side))))
        for side in (below, above)
    )
    return total - down, total + up
