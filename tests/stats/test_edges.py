"""Numbers at the edges: few images, nothing different, all right, judges like a coin."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from snellen.metrics import Tally
from snellen.protocols.direct import ACCURACY, macro
from snellen.stats.agreement import average_ranks, cohen_kappa, pearson, spearman
from snellen.stats.bootstrap import Resampling, intervals
from snellen.stats.correction import (
    Trials,
    audit_tally,
    invert_confusion,
    prediction_powered,
    rogan_gladen,
)
from snellen.stats.multiple import adjust_together
from snellen.stats.paired import compare_paired

QUICK = Resampling(400)


def rate(sums: np.ndarray) -> np.ndarray:
    """Hits over trials, of columns (trials, hits)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[..., 1:2] / sums[..., :1])


def limits(rows: np.ndarray) -> tuple[float, float]:
    """The interval of hits over trials by cluster."""
    found = intervals(rows, rate, rates=[True], sizes=rows[:, :1], resampling=QUICK)
    return float(found.low[0]), float(found.high[0])


def answers(n: int, trials: int, wrong: int) -> np.ndarray:
    """`n` clusters of `trials`, of which `wrong` in all are wrong, each in a cluster of its own."""
    rows = np.tile([float(trials), float(trials)], (n, 1))
    for k in range(wrong):
        rows[k % n, 1] -= 1.0
    return rows


@pytest.mark.parametrize(("n", "bound"), [(7, 0.410), (15, 0.218), (40, 0.088), (200, 0.018)])
def test_no_image_that_differs_leaves_room_for_a_difference(n: int, bound: float) -> None:
    """Where none of n clusters differs, a share up to 1 - 0.025 ** (1 / n) may."""
    rows = answers(n, 1, n // 4)
    found = compare_paired(rows, rows, rate)
    assert (found.low[0], found.high[0]) == pytest.approx((-bound, bound), abs=6e-4)
    assert found.p_value[0] == 1.0


def test_a_number_without_end_has_no_interval_where_nothing_differs() -> None:
    """Token counts that are all alike say nothing about how far they may differ."""
    rows = answers(20, 5, 3)
    found = compare_paired(rows, rows, lambda s: s[..., 1:2], reach=[math.inf])
    assert (found.difference[0], found.p_value[0]) == (0.0, 1.0)
    assert np.isnan([found.low[0], found.high[0]]).all()


@pytest.mark.parametrize("n", [40, 200])
def test_each_image_more_that_differs_moves_both_limits(n: int) -> None:
    """The limits of a difference fall with every image more that the second run has wrong."""
    before, found = answers(n, 1, n // 20), []
    for n_differ in range(13):
        after = before.copy()
        after[n - n_differ :, 1] = 0.0
        difference = compare_paired(before, after, rate)
        found.append((difference.low[0], difference.high[0]))
    assert (np.diff(found, axis=0) < 0.0).all(), found


@pytest.mark.slow
@pytest.mark.parametrize(("n", "high"), [(40, 1.0), (200, 0.98)])
def test_paired_intervals_of_near_equals_hold_their_difference(n: int, high: float) -> None:
    """4,000 studies: runs at 95% that differ by 2 points are covered in 93 to 98%.

    At 40 items the difference is less than one item, so that hardly any outcome excludes it.
    """
    rng, held, truth = np.random.default_rng(7), 0, 0.95 * 0.97 + 0.05 * 0.17 - 0.95
    for _ in range(4000):
        before = rng.random(n) < 0.95
        after = np.where(before, rng.random(n) >= 0.03, rng.random(n) < 0.17)
        tallies = [np.stack([np.ones(n), hits.astype(float)], axis=1) for hits in (before, after)]
        found = compare_paired(*tallies, rate)
        held += bool(found.low[0] <= truth <= found.high[0])
    assert 0.93 <= held / 4000 <= high


@pytest.mark.parametrize("n_differ", [1, 2, 4])
def test_few_images_that_differ_do_not_settle(n_differ: int) -> None:
    """Up to four of 3,000 verdicts flipped one way are as likely by chance as not."""
    before = answers(3000, 1, 100)
    after = before.copy()
    after[-n_differ:, 1] = 0.0
    found = compare_paired(before, after, rate)
    assert found.p_value[0] > 0.05
    assert found.low[0] < 0.0 < found.high[0]


@pytest.mark.parametrize(
    ("sensitivity", "specificity"),
    [
        ((3, 5), (5, 12)),
        ((3, 5), (11, 27)),
        ((6, 10), (20, 49)),
        ((5, 9), (9, 20)),
        ((9, 10), (0, 0)),
    ],
)
def test_a_judge_like_a_coin_corrects_nothing(
    sensitivity: tuple[int, int], specificity: tuple[int, int]
) -> None:
    """Where sensitivity + specificity - 1 may be 0 there is no estimate, and all is possible."""
    for raw in (0.3, 0.55, 0.9):
        found = rogan_gladen(
            raw, 0.05, sensitivity=Trials(*sensitivity), specificity=Trials(*specificity)
        )
        assert math.isnan(found.estimate)
        assert (found.raw, found.low, found.high) == (raw, 0.0, 1.0)


def test_a_judge_of_three_classes_like_a_coin_corrects_nothing() -> None:
    """The same holds for right, wrong and E."""
    found = invert_confusion([[5, 3, 2]] * 20, [[4, 3, 3], [3, 4, 3], [3, 3, 4]], resampling=QUICK)
    assert all(math.isnan(one.estimate) for one in found.values())
    assert {(one.low, one.high) for one in found.values()} == {(0.0, 1.0)}


def test_an_audit_that_confirms_every_verdict_changes_no_score() -> None:
    """100 of 200 verdicts audited and all confirmed (82 right): the raw 75.0 stays 75.0."""
    audited = [1] * 82 + [0] * 18
    called = audited + [1] * 68 + [0] * 32
    truth = [float(value) for value in audited] + [math.nan] * 100
    tally = audit_tally([f"image{k}" for k in range(200)], called, truth)
    found = prediction_powered(tally, resampling=QUICK)
    assert (found.raw, found.estimate) == (0.75, pytest.approx(0.75))
    assert found.low < 0.75 < found.high


@pytest.mark.parametrize(("n", "trials"), [(15, 67), (40, 50), (40, 1), (15, 1), (200, 5)])
def test_one_more_right_never_lowers_a_limit(n: int, trials: int) -> None:
    """From all right downwards both limits fall with each wrong answer, or stay."""
    found = [limits(answers(n, trials, wrong)) for wrong in range(n // 4)]
    for better, worse in pairwise(found):
        assert worse[0] <= better[0] + 1e-9
        assert worse[1] <= better[1] + 1e-9


def test_all_right_is_worth_as_much_as_one_wrong() -> None:
    """15 images of 67 answers, all right: the limit is that of one wrong answer."""
    assert limits(answers(15, 67, 0))[0] == pytest.approx(0.9915, abs=0.001)
    assert limits(answers(15, 67, 1))[0] == pytest.approx(0.9915, abs=0.001)


def test_images_that_agree_on_a_rate_between_have_an_interval() -> None:
    """20 images with 3 of 5 right each: the limits are those of 60 of 100."""
    rows = np.tile([5.0, 3.0], (20, 1))
    assert limits(rows) == pytest.approx((0.4972, 0.6967), abs=5e-4)


def test_a_few_large_images_count_as_few() -> None:
    """Clusters count by their effective number: one of 1,000 answers among 30 of one is few."""
    rows = np.vstack([[1000.0, 700.0], np.tile([1.0, 1.0], (29, 1))])
    rows[5, 1] = 0.0
    found = intervals(rows, rate, rates=[True], sizes=rows[:, :1], resampling=QUICK)
    assert found.n_clusters[0] == 30
    assert found.n_effective[0] < 2.0
    assert found.few[0]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_two_to_five_images_get_a_t_interval(n: int) -> None:
    """A number that is no rate has the t interval of n - 1 degrees of freedom."""
    values = np.array([10.0, 14.0, 11.0, 19.0, 12.0])[:n]
    rows = np.stack([np.ones(n), values], axis=1)
    found = intervals(rows, rate, resampling=QUICK)
    t = {2: 12.706, 3: 4.303, 5: 2.776}[n]
    half = t * values.std(ddof=1) / math.sqrt(n)
    assert float(found.high[0] - found.low[0]) / 2.0 == pytest.approx(half, rel=1e-3)


def test_kappa_near_one_has_an_interval() -> None:
    """299 of 300 verdicts alike, one an image: kappa's limits are those of the raw agreement."""
    first = ["true"] * 180 + ["false"] * 120
    second = ["false", *first[1:]]
    found = cohen_kappa(first, second, clusters=[str(k) for k in range(300)], resampling=QUICK)
    assert found.kappa == pytest.approx(0.9931, abs=1e-3)
    assert found.raw_interval is not None
    assert found.kappa_interval is not None
    low, high = found.kappa_interval
    assert 0.94 < low < found.kappa < high <= 1.0


def test_equal_numbers_that_rounding_made_unequal_are_ties() -> None:
    """0.1 + 0.2 and 0.3 have the same rank, and four equal scores correlate with nothing."""
    assert average_ranks([0.1 + 0.2, 0.3, 0.5]).tolist() == [1.5, 1.5, 3.0]
    scores = [0.7, 0.7 + 1e-16, 0.1 * 7, 0.6 + 0.1]
    assert math.isnan(pearson(scores, [1.0, 2.0, 3.0, 4.0])[0])
    assert math.isnan(spearman(scores, [1.0, 2.0, 3.0, 4.0])[0])


def test_a_difference_of_rounding_is_none() -> None:
    """Two runs whose metric differs in the sixteenth digit do not differ."""
    rows = answers(30, 3, 5)
    found = compare_paired(rows, rows * (1.0 + 1e-16), rate)
    assert (found.difference[0], found.p_value[0]) == (0.0, 1.0)


@pytest.mark.slow
def test_tests_together_hold_their_level() -> None:
    """Of 400 families of eight correlated tests of nothing, about 5% find something."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(400):
        shared = rng.standard_normal((40, 1))
        moves = 0.6 * shared + 0.8 * rng.standard_normal((40, 8))
        t = moves.mean(axis=0) / (moves.std(axis=0, ddof=1) / math.sqrt(40))
        p_values = [float(2 * _t_tail(abs(value), 39)) for value in t]
        together = adjust_together(moves, p_values, draws=2_000)
        found += bool((together.p_adjusted < 0.05).any())
    assert 0.02 <= found / 400 <= 0.085


def _t_tail(t: float, df: int) -> float:
    from scipy import stats

    return float(stats.t.sf(t, df))


@pytest.mark.parametrize("n", [20, 40])
def test_a_mean_over_categories_holds_the_truth_where_one_is_hard(n: int) -> None:
    """One category at 0.3 and nine at 1: the macro accuracy's interval covers 0.93 in most studies.

    The bootstrap covered 53 of 100 at 20 items and 77 at 40.
    """
    rng, held = np.random.default_rng(4), 0
    labels = [f"c{k}" for k in range(10)]
    metrics = (ACCURACY, macro(labels))
    columns = ("M", "C", "X", *(f"{c}:{k}" for c in "MCX" for k in labels))
    for _ in range(40):
        category = rng.integers(0, 10, n)
        right = rng.random(n) < np.where(category == 0, 0.3, 1.0)
        here = category[:, None] == np.arange(10)
        zero = np.zeros((n, 1))
        parts = [np.ones((n, 1)), right[:, None], zero, here, here & right[:, None], zero * here]
        counts = np.concatenate(parts, axis=1).astype(float)
        tally = Tally(tuple(f"i{k:03d}" for k in range(n)), columns, counts, metrics)
        found = tally.intervals(Resampling(100))
        held += bool(found.low[1] <= 0.93 <= found.high[1])
    assert held >= 37
