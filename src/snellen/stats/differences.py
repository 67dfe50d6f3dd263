"""Limits of a difference of two rates of the same images, from the limits of the two."""

from __future__ import annotations

import math
from typing import NamedTuple


class Limits(NamedTuple):
    """An estimate between its lower and its upper limit."""

    low: float
    estimate: float
    high: float


def difference_limits(first: Limits, second: Limits, correlation: float) -> tuple[float, float]:
    """The limits of `first - second`, whose estimates correlate over samples.

    The distance from the difference to a limit is that of two correlated errors, each taken from
    the side of its own interval that would move the difference there. Intervals that lean to one
    side are so kept leaning, and one that is known from its limits alone counts too.

    >>> low, high = difference_limits(Limits(0.5, 0.8, 0.9), Limits(0.6, 0.65, 0.7), 0.5)
    >>> round(low, 2), round(high, 2)
    (-0.13, 0.24)

    Source: Zou and Donner 2008, construction of confidence limits about effect measures.
    """
    difference = first.estimate - second.estimate
    down = _distance(first.estimate - first.low, second.high - second.estimate, correlation)
    up = _distance(first.high - first.estimate, second.estimate - second.low, correlation)
    return difference - down, difference + up


def _distance(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(0.0, a * a + b * b - 2.0 * correlation * a * b))
