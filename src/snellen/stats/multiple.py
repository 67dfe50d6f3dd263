"""Many tests at once: p values and intervals that hold for all of them together.

The tests of a comparison (metrics and pairs of runs) share their clusters, so that their errors
correlate. Holm's correction ignores that and pays for it. Here the largest of all t values is
simulated with the correlations that the influences show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snellen.stats.distributions import t_quantile

Floats = NDArray[np.float64]

DRAWS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Together:
    """`p_adjusted` of each test, NaN where there is no test, and how much wider intervals get.

    `widening` is the factor by which a single interval's half-width grows to hold together with
    all others.
    """

    p_adjusted: Floats
    widening: float


def adjust_together(
    influences: ArrayLike,
    p_values: ArrayLike,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Together:
    """Adjust p values of tests on the same clusters for being many.

    `influences` has the shape (n_clusters, n_tests): what each cluster adds to each difference.
    `p_values` are two-sided, (n_tests,), NaN where there is no test. One test alone stays as it is.

    >>> moves = np.array([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0], [-2.0, -2.0]])
    >>> alike = adjust_together(moves, [0.03, 0.03])
    >>> bool(abs(alike.p_adjusted[0] - 0.03) < 0.01), bool(alike.widening < 1.1)
    (True, True)

    Source: Westfall and Young 1993, step-down resampling; the joint distribution is the t with the
    correlations of the influences (Hothorn, Bretz and Westfall 2008).
    """
    moves, given = np.asarray(influences, dtype=np.float64), np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(given))
    if tested.size < 2:
        adjusted[tested] = given[tested]
        return Together(adjusted, 1.0)
    df = max(1, moves.shape[0] - 1)
    sizes = np.abs(_joint_t(moves[:, tested], df, draws, seed))
    order = np.argsort(given[tested], kind="stable")
    inside = np.clip(given[tested], 1e-300, 1.0)
    reached = np.array([0.0 if p == 1.0 else t_quantile(1.0 - p, float(df)) for p in inside])
    reached[given[tested] <= 0.0] = math.inf
    # Step down: each test is held against the largest of those that are no more certain.
    largest = np.maximum.accumulate(sizes[:, order[::-1]], axis=1)[:, ::-1]
    shares = (largest >= reached[order] * (1.0 - 1e-12)).mean(axis=0)
    shares = np.maximum(np.maximum.accumulate(shares), given[tested][order])
    adjusted[tested[order]] = np.minimum(1.0, shares)
    widest = float(np.quantile(sizes.max(axis=1), level))
    return Together(adjusted, max(1.0, widest / t_quantile(level, float(df))))


def _joint_t(moves: Floats, df: int, draws: int, seed: int) -> Floats:
    """Draws of t values that correlate as the influences do, shape (draws, n_tests)."""
    centred = moves - moves.mean(axis=0)
    norms = np.sqrt((centred**2).sum(axis=0))
    rng = np.random.default_rng([seed, *moves.shape])
    # A test without any spread among clusters stands on its own.
    alone = norms == 0.0
    scaled = centred / np.where(alone, 1.0, norms)
    normal = rng.standard_normal((draws, moves.shape[0])) @ scaled
    normal[:, alone] = rng.standard_normal((draws, int(alone.sum())))
    spread: Floats = np.sqrt(rng.chisquare(df, size=(draws, 1)) / df)
    return np.asarray(normal / spread, dtype=np.float64)
