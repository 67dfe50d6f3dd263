"""Likeness of mixes: the weighted Jaccard index by hand, and what it is by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snellen.stats.mixes import mean_of_pairs, same_mix, similarities, weighted_jaccard


def test_the_index_by_hand() -> None:
    """Shares (0.5, 0.3, 0.2) and (0.2, 0.3, 0.5): least 0.2 + 0.3 + 0.2, most 0.5 + 0.3 + 0.5."""
    assert weighted_jaccard([5, 3, 2], [2, 3, 5]) == pytest.approx(0.7 / 1.3)
    assert weighted_jaccard([1, 0], [0, 7]) == 0.0
    # The size of a benchmark does not count.
    assert weighted_jaccard([1, 3], [10, 30]) == pytest.approx(1.0)
    assert math.isnan(weighted_jaccard([0, 0], [1, 1]))


def test_a_matrix_and_its_mean_by_hand() -> None:
    """Three benchmarks and an empty one, which is in no pair."""
    found = similarities([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]])
    assert found[:3, :3] == pytest.approx(np.array([[1, 1 / 3, 1 / 3], [1 / 3, 1, 1 / 3],
                                                    [1 / 3, 1 / 3, 1]]))  # fmt: skip
    assert np.isnan(found[3]).all()
    assert np.isnan(found[:, 3]).all()
    assert mean_of_pairs(found) == pytest.approx(1 / 3)
    assert math.isnan(mean_of_pairs(similarities([[1, 2]])))


def test_groups_that_differ_lie_below_chance() -> None:
    """Twenty things a group, all of one kind in one group, all of another in the other."""
    counts = [[1, 0]] * 20 + [[0, 1]] * 20
    found = same_mix(counts, ["a"] * 20 + ["b"] * 20, draws=199, seed=1)
    assert found is not None
    assert found.p == pytest.approx(1 / 200)
    assert 0.0 < found.low <= found.mean <= found.high <= 1.0
    assert same_mix(counts, ["a"] * 20 + ["b"] * 20, draws=199, seed=1) == found


def test_groups_of_one_mix_do_not() -> None:
    """The same mix in both groups: as alike as chance makes them, and few things make less."""
    counts = [[1, 0], [0, 1]] * 20
    many = same_mix(counts, ["a"] * 20 + ["b"] * 20, draws=199)
    few = same_mix(counts[:4], ["a"] * 2 + ["b"] * 2, draws=199)
    assert many is not None
    assert few is not None
    assert many.p == 1.0
    assert few.mean < many.mean
    assert same_mix(counts, ["a"] * 40) is None
