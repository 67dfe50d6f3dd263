"""How alike mixes of types are: the weighted Jaccard index, and what it is by chance alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def weighted_jaccard(a: ArrayLike, b: ArrayLike) -> float:
    """The sum of the smaller shares over the sum of the larger ones, 0 to 1; NaN of nothing.

    Counts are turned into shares of their sum first.

    >>> weighted_jaccard([5, 5, 0], [5, 0, 5]).__round__(4)
    0.3333

    Source: PerceptionBench names the index, and prints no formula; this is the usual one.
    """
    return float(similarities(np.array([a, b], dtype=np.float64))[0, 1])


def similarities(counts: ArrayLike) -> Floats:
    """The weighted Jaccard index of each pair of rows of `counts` (n, k), as a matrix (n, n).

    Rows and columns of a row without any count are NaN.
    """
    table = np.asarray(counts, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / table.sum(axis=1, keepdims=True)
        least = np.minimum(shares[:, np.newaxis], shares).sum(axis=-1)
        most = np.maximum(shares[:, np.newaxis], shares).sum(axis=-1)
        found: Floats = least / most
    return found


def mean_of_pairs(matrix: Floats) -> float:
    """The mean over all pairs of different rows that both have counts; NaN without a pair."""
    values = matrix[np.triu_indices(len(matrix), 1)]
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


@dataclass(frozen=True, slots=True)
class SameMix:
    """What the mean index would be if all groups had the same mix.

    `mean` is the mean over draws in which things change groups at random, `low` and `high` bound 95
    of 100 of them; `p` is the share of draws with an index as low as the one found.
    """

    mean: float
    low: float
    high: float
    p: float


def same_mix(
    counts: ArrayLike, groups: Sequence[Hashable], *, draws: int = 999, seed: int = 0
) -> SameMix | None:
    """The mean index under the hypothesis that the groups do not differ; None below two groups.

    `counts` (n, k) are those of `n` things that belong together, such as the failures on one
    question; `groups` (n) say whose they are. Few things a group make any index low.
    """
    table = np.asarray(counts, dtype=np.float64)
    names = list(dict.fromkeys(groups))
    if len(names) < 2 or not table.size:
        return None
    place = {name: k for k, name in enumerate(names)}
    owners = np.array([place[one] for one in groups])

    def mean_for(order: NDArray[np.int64]) -> float:
        # Added up without a matrix product, whose threads cost more than the sums.
        sums = np.zeros((len(names), table.shape[1]))
        np.add.at(sums, owners[order], table)
        return mean_of_pairs(similarities(sums))

    found = mean_for(np.arange(len(table)))
    rng = np.random.default_rng(seed)
    drawn = np.array([mean_for(rng.permutation(len(table))) for _ in range(draws)])
    p = (1 + int((drawn <= found + 1e-12).sum())) / (draws + 1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return SameMix(float(drawn.mean()), float(low), float(high), p)
