"""The few probability distributions that intervals and tests need, without scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300


def beta_cdf(x: float, a: float, b: float) -> float:
    """The chance that a Beta(a, b) variate is at most `x`: the regularised incomplete beta.

    >>> round(beta_cdf(0.5, 2.0, 2.0), 6)
    0.5

    Source: Abramowitz and Stegun 26.5.8, evaluated by Lentz's method.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x)
    front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1.0 / _apart(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _apart(1.0 + term * d)
            c = _apart(1.0 + term / c)
            step = c * d
            fraction *= step
        if abs(step - 1.0) < 1e-15:
            break
    return math.exp(front) * fraction / a


def beta_quantile(p: float, a: float, b: float) -> float:
    """The `x` with `beta_cdf(x, a, b) == p`.

    >>> round(beta_quantile(0.025, 40.0, 1.0), 4)
    0.9119
    """
    return _bisect(lambda x: beta_cdf(x, a, b), p, (0.0, 1.0))


def t_two_sided(t: float, df: float) -> float:
    """The chance that Student's t with `df` degrees of freedom is farther from 0 than `t`.

    >>> round(t_two_sided(2.0, 10.0), 4)
    0.0734
    """
    if math.isinf(t):
        return 0.0
    return beta_cdf(df / (df + t * t), df / 2.0, 0.5)


@lru_cache(maxsize=1024)
def t_quantile(level: float, df: float) -> float:
    """The half-width, in standard errors, of a two-sided t interval at `level`.

    >>> round(t_quantile(0.95, 39.0), 4)
    2.0227
    """
    x = _bisect(lambda x: beta_cdf(x, df / 2.0, 0.5), 1.0 - level, (0.0, 1.0))
    return math.sqrt(df * (1.0 - x) / x) if x > 0.0 else math.inf


def normal_quantile(p: float) -> float:
    """The standard normal variate below which a share `p` lies.

    >>> round(normal_quantile(0.975), 4)
    1.96
    """
    return NormalDist().inv_cdf(p)


def _apart(value: float) -> float:
    """The value, kept off zero so that it can divide."""
    return value if abs(value) > _TINY else _TINY


def _bisect(rising: Callable[[float], float], target: float, span: tuple[float, float]) -> float:
    """Where a rising function reaches `target`, to the last bit that halving can tell."""
    low, high = span
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
