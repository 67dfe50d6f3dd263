"""Intervals, paired comparisons, ranks: closed forms, properties, and scipy where it agrees."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from snellen.errors import UsageError
from snellen.stats.bootstrap import Resampling, holm, intervals, rank_probabilities, resample
from snellen.stats.paired import compare_paired, compare_pairs

QUICK = Resampling(resamples=2000)


def ratio(sums):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[..., :1] != 0, sums[..., 1:2] / sums[..., :1], np.nan)


def means(sums):
    return sums[..., 1:] / sums[..., :1]


def a_tally(n=60, seed=1, rate=0.7):
    rng = np.random.default_rng(seed)
    probes = rng.integers(20, 140, size=n)
    correct = rng.binomial(probes, rng.beta(rate * 20, (1 - rate) * 20, size=n))
    return np.stack([probes, correct], axis=1).astype(float)


def with_ones(values):
    return np.stack([np.ones(len(values)), values], axis=1)


def test_the_estimate_is_the_pooled_ratio():
    """The estimate is the statistic of all rows together, not a mean of rows."""
    found = intervals([[10, 10], [30, 0]], ratio, rates=[True], resampling=QUICK)
    assert found.estimate.tolist() == [0.25]


def test_the_interval_of_a_mean_agrees_with_student():
    """For a mean of near-normal values the interval is that of Student's t."""
    values = np.random.default_rng(4).normal(10.0, 2.0, size=80)
    found = intervals(with_ones(values), means)
    half = scipy_stats.t.ppf(0.975, 79) * values.std(ddof=1) / math.sqrt(80)
    assert found.low[0] == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high[0] == pytest.approx(values.mean() + half, abs=0.1 * half)
    assert found.standard_error[0] == pytest.approx(values.std(ddof=1) / math.sqrt(80))


def test_the_interval_agrees_with_the_bca_of_scipy():
    """On a tame ratio of 200 clusters the ends are those of scipy's BCa within a tenth."""
    tally = a_tally(200)
    found = intervals(tally, ratio, rates=[True])
    bca = scipy_stats.bootstrap(
        (tally[:, 0], tally[:, 1]),
        lambda m, c, axis: c.sum(axis=axis) / m.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=4000,
        batch=500,
        rng=np.random.default_rng(0),
    ).confidence_interval
    width = bca.high - bca.low
    assert found.low[0] == pytest.approx(bca.low, abs=0.1 * width)
    assert found.high[0] == pytest.approx(bca.high, abs=0.1 * width)


def test_the_interval_is_the_studentised_bootstrap_of_the_textbook():
    """A plain loop-free bootstrap-t of a skewed mean, with the guard, gives the same ends."""
    values = np.random.default_rng(6).lognormal(0.0, 0.7, size=15)
    drawn = np.random.default_rng(7).choice(values, size=(40_000, 15))
    error = values.std(ddof=1) / math.sqrt(15)
    own = drawn.std(axis=1, ddof=1) ** 2 / 15
    t = (drawn.mean(axis=1) - values.mean()) / np.sqrt((own + error**2 / 15) / (1 + 1 / 15))
    expected = values.mean() - np.quantile(t, [0.975, 0.025]) * error
    found = intervals(with_ones(values), means, resampling=Resampling(40_000))
    assert [found.low[0], found.high[0]] == pytest.approx(expected, abs=0.03)


def test_a_skewed_mean_gets_a_longer_upper_arm():
    """Heavy upper tails pull the upper end farther out than the lower one."""
    values = np.random.default_rng(2).lognormal(5.0, 0.8, size=100)
    found = intervals(with_ones(values), means, resampling=QUICK)
    assert found.high[0] - found.estimate[0] > 1.2 * (found.estimate[0] - found.low[0])


def test_clustered_questions_widen_the_interval():
    """Pooling questions as if they were independent would be too sure."""
    tally = a_tally(100)
    found = intervals(tally, ratio, rates=[True], resampling=QUICK)
    naive = math.sqrt(found.estimate[0] * (1 - found.estimate[0]) / tally[:, 0].sum())
    assert found.standard_error[0] > 1.5 * naive


def test_a_higher_level_widens_the_interval():
    """A 99% interval contains the 90% one."""
    wide = intervals(a_tally(), ratio, resampling=Resampling(2000, level=0.99))
    slim = intervals(a_tally(), ratio, resampling=Resampling(2000, level=0.90))
    assert wide.low[0] < slim.low[0] < slim.high[0] < wide.high[0]


def test_the_same_seed_gives_the_same_interval():
    """An interval is repeated to the last bit by its seed, and moves a little with another."""
    first, again = (intervals(a_tally(), ratio, resampling=QUICK) for _ in range(2))
    other = intervals(a_tally(), ratio, resampling=Resampling(2000, seed=7))
    assert first.low.tobytes() == again.low.tobytes()
    assert other.low[0] != first.low[0]
    assert other.low[0] == pytest.approx(first.low[0], abs=0.01)


def test_the_order_of_images_hardly_matters():
    """Shuffling the rows changes the interval no more than another seed would."""
    tally = a_tally()
    shuffled = tally[np.random.default_rng(3).permutation(len(tally))]
    first, second = (intervals(t, ratio, resampling=QUICK) for t in (tally, shuffled))
    assert second.estimate[0] == pytest.approx(first.estimate[0])
    assert second.low[0] == pytest.approx(first.low[0], abs=0.01)


def test_units_scale_through():
    """A metric in per mille has a thousand times the interval of the fraction."""
    tally = a_tally()
    plain = intervals(tally, ratio, resampling=QUICK)
    scaled = intervals(tally, lambda sums: 1000.0 * ratio(sums), resampling=QUICK)
    np.testing.assert_allclose(scaled.low, 1000.0 * plain.low, rtol=1e-6)
    np.testing.assert_allclose(scaled.standard_error, 1000.0 * plain.standard_error, rtol=1e-6)


def test_metrics_do_not_disturb_each_other():
    """Metrics computed together have the intervals that they have alone."""
    tally = np.column_stack([a_tally(), a_tally(seed=9)[:, 1]])
    together = intervals(tally, means, resampling=QUICK)
    alone = intervals(tally[:, [0, 2]], means, resampling=QUICK)
    assert together.low[1] == pytest.approx(alone.low[0], rel=1e-6)


@pytest.mark.parametrize(("correct", "low", "high"), [(1, 0.025 ** (1 / 40), 1.0), (0, 0.0, None)])
def test_unanimous_images_give_the_exact_binomial_bound(correct, low, high):
    """Where all 40 images agree, a rate is bounded as 40 trials bound it, not with width zero."""
    found = intervals([[50, 50 * correct]] * 40, ratio, rates=[True], resampling=QUICK)
    exact = scipy_stats.binomtest(40 * correct, 40).proportion_ci(method="exact")
    assert found.low[0] == pytest.approx(exact.low)
    assert found.high[0] == pytest.approx(exact.high)
    assert found.low[0] == pytest.approx(low)
    assert high is None or found.high[0] == high


ASKED = np.arange(10, 50)
ERRORS = np.repeat([0, 5], [37, 3])


@pytest.mark.parametrize(
    ("tally", "below", "above"),
    [
        (with_ones(np.repeat([1.0, 0.0], [28, 12])), 0.975, 0.975),
        (np.column_stack([ASKED, ASKED - ERRORS]), 0.975, 0.95),
        (np.column_stack([ASKED, ERRORS]), 0.95, 0.975),
        (with_ones(np.repeat([1.0, 0.0], [8, 4])), 0.975, 0.975),
    ],
    ids=["all or nothing", "three images with errors", "three that hold any", "few images"],
)
def test_a_coarse_rate_gets_students_t_on_the_logit_scale(tally, below, above):
    """A metric on a lattice has t limits; near 1 (or 0) that side's limit has the whole 5%."""
    found = intervals(tally, ratio, rates=[True], resampling=QUICK)
    rate, n = found.estimate[0], len(tally)
    error = found.standard_error[0] / (rate * (1 - rate))
    low, high = (scipy_stats.t.ppf(p, n - 1) * error for p in (below, above))
    middle = math.log(rate / (1 - rate))
    ends = 1 / (1 + np.exp(-np.array([middle - low, middle + high])))
    assert [found.low[0], found.high[0]] == pytest.approx(ends)


def test_resamples_without_spread_do_not_blow_up_an_interval():
    """Three outliers among 40 near-equal images: one resample in 20 has none of them."""
    values = np.concatenate([1.0 + 1e-6 * np.arange(37), np.zeros(3)])
    found = intervals(with_ones(values), means)
    assert found.high[0] - found.low[0] < 0.7


def test_a_constant_that_is_no_rate_has_no_interval():
    """Captions of one length do not tell how lengths vary."""
    found = intervals(with_ones(np.full(30, 200.0)), means, resampling=QUICK)
    assert found.estimate[0] == 200.0
    assert np.isnan([found.low[0], found.high[0]]).all()


def test_a_rate_stays_within_its_bounds():
    """The interval of a rate never leaves 0..1, however few the images."""
    few = with_ones(np.array([0.0, 0.1, 0.2, 0.6, 0.9, 1.0]))
    sure = Resampling(2000, level=0.999)
    free = intervals(few, means, resampling=sure)
    assert free.low[0] < 0.0
    assert free.high[0] > 1.0
    cut = intervals(few, means, rates=[True], resampling=sure)
    assert (cut.low[0], cut.high[0]) == (0.0, 1.0)
    gates = with_ones(np.repeat([1.0, 0.0], [37, 3]))
    found = intervals(gates, means, rates=[True], resampling=QUICK)
    assert 0.7 < found.low[0] < 0.9
    assert 0.925 < found.high[0] < 1.0


def test_one_image_has_no_interval():
    """A single cluster says nothing about the spread between clusters."""
    found = intervals([[50, 40]], ratio, rates=[True], resampling=QUICK)
    assert found.estimate[0] == 0.8
    assert np.isnan([found.low[0], found.high[0], found.standard_error[0]]).all()


def test_a_category_in_one_image_has_no_interval():
    """What occurs in one image of many is one cluster, whatever the other images hold."""
    tally = np.zeros((30, 2))
    tally[4] = [10, 6]
    found = intervals(tally, ratio, rates=[True], resampling=QUICK)
    assert found.n_clusters.tolist() == [1]
    assert found.estimate[0] == 0.6
    assert np.isnan(found.low[0])


def test_resamples_without_a_value_are_left_out_and_counted():
    """A category in two images of 30 is missing from about (28/30)**30 of the resamples."""
    tally = np.zeros((30, 2))
    tally[4], tally[5] = [10, 6], [10, 9]
    found = intervals(tally, ratio, resampling=QUICK)
    assert found.n_left_out[0] / found.n_resamples == pytest.approx((28 / 30) ** 30, abs=0.04)
    assert found.low[0] < 0.75 < found.high[0]


def test_few_clusters_are_flagged():
    """Under 20 images an interval is marked as resting on few."""
    assert intervals(a_tally(19), ratio, resampling=QUICK).few.tolist() == [True]
    assert intervals(a_tally(20), ratio, resampling=QUICK).few.tolist() == [False]


def test_nothing_scored_gives_no_number():
    """A metric without a denominator is NaN throughout and raises no warning."""
    found = intervals(np.zeros((25, 2)), ratio, rates=[True], resampling=QUICK)
    assert np.isnan([found.estimate[0], found.low[0], found.high[0]]).all()
    assert found.n_left_out[0] == QUICK.resamples


@pytest.mark.parametrize("tally", [[], [1.0, 2.0], [[1.0, math.nan]]])
def test_what_is_no_tally_is_refused(tally):
    """A tally is a table of finite numbers."""
    with pytest.raises(UsageError, match="tally of shape"):
        intervals(tally, ratio)


def test_resamples_draw_as_many_images_as_there_are():
    """Every resample holds n images, and on average each of them once."""
    tally = np.column_stack([np.ones(50), np.eye(50)])
    drawn = resample(tally, lambda sums: sums, resampling=QUICK)
    assert (drawn[:, 0] == 50).all()
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), 1.0, atol=0.12)
    assert drawn[:, 1].var() == pytest.approx(49 / 50, rel=0.15)


def test_identical_runs_do_not_differ():
    """A run and itself differ by exactly 0, p is 1, and the interval is that of a chance unseen."""
    tally = a_tally()
    found = compare_paired(tally, tally, ratio)
    bound = 1.0 - 0.025 ** (1.0 / len(tally))
    assert found.difference[0] == 0.0
    assert (found.low[0], found.high[0]) == pytest.approx((-bound, bound))
    assert found.p_value[0] == 1.0


def test_a_paired_mean_gives_the_paired_t_test():
    """For plain means p value and interval are those of scipy's paired t test."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=50)
    b = 0.8 * a + rng.normal(0.2, 0.4, size=50)
    found = compare_paired(with_ones(a), with_ones(b), means)
    test = scipy_stats.ttest_rel(b, a)
    limits = test.confidence_interval()
    assert found.p_value[0] == pytest.approx(test.pvalue, rel=1e-9)
    assert found.low[0] == pytest.approx(limits.low, rel=1e-9)
    assert found.high[0] == pytest.approx(limits.high, rel=1e-9)


def test_the_other_way_round_the_sign_turns():
    """Swapping the runs turns the difference and keeps the p value."""
    a, b = a_tally(seed=1), a_tally(seed=2, rate=0.75)
    there, back = compare_paired(a, b, ratio), compare_paired(b, a, ratio)
    assert there.difference[0] == -back.difference[0]
    assert there.p_value[0] == back.p_value[0]
    assert there.low[0] == pytest.approx(-back.high[0])


def test_pairing_sees_what_two_intervals_do_not():
    """A small drop on every image is found although the two intervals overlap."""
    rng, a = np.random.default_rng(8), a_tally(100)
    b = a - np.column_stack([np.zeros(100), rng.binomial(2, 0.5, size=100)])
    separate = [intervals(run, ratio, rates=[True], resampling=QUICK) for run in (a, b)]
    found = compare_paired(a, b, ratio)
    assert separate[1].high[0] > separate[0].low[0]
    assert found.p_value[0] < 1e-6
    assert found.high[0] < 0.0


def test_a_difference_without_spread_gets_the_sign_test():
    """Wrong on all five against right on all five: p is 2 / 32, and there is no interval."""
    found = compare_paired([[1, 0]] * 5, [[1, 1]] * 5, ratio)
    assert found.difference[0] == 1.0
    assert found.p_value[0] == 2 / 32
    assert np.isnan(found.low[0])


def test_runs_on_different_images_are_refused():
    """Tallies of different lengths cannot be paired or ranked."""
    with pytest.raises(UsageError, match="cannot be paired"):
        compare_paired(a_tally(5), a_tally(6), ratio)
    with pytest.raises(UsageError, match="cannot be ranked"):
        rank_probabilities([a_tally(5), a_tally(6)], ratio)


def test_holm_steps_down():
    """Sorted p values times m, m - 1, ..., never falling, never above 1, in the given order."""
    assert holm([0.01, 0.02, 0.03, 0.9]).tolist() == pytest.approx([0.04, 0.06, 0.06, 0.9])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_holm_skips_what_was_not_tested():
    """NaN counts as no test and stays NaN."""
    adjusted = holm([math.nan, 0.02, 0.04])
    assert math.isnan(adjusted[0])
    assert adjusted[1:].tolist() == [0.04, 0.04]


def test_rank_probabilities_are_a_double_distribution():
    """Each run takes some rank and each rank is taken: rows and columns sum to 1."""
    runs = [a_tally(seed=s, rate=r) for s, r in ((1, 0.7), (2, 0.71), (3, 0.5))]
    found = rank_probabilities(runs, ratio, resampling=QUICK)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[2, 2] == 1.0
    assert 0.05 < found[0, 0] < 0.95


def test_equal_runs_share_their_ranks():
    """Ties split the ranks that they take up."""
    found = rank_probabilities([a_tally(), a_tally()], ratio, resampling=QUICK)
    assert found.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_low_value_can_be_the_better_one():
    """For a ratio such as abstention the lowest run is first."""
    runs = [a_tally(rate=0.9), a_tally(rate=0.3)]
    found = rank_probabilities(runs, ratio, lower_is_better=True, resampling=QUICK)
    assert found.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_many_pairs_are_what_each_pair_is_alone():
    """Pairs compared together get the numbers that each gets on its own, in the order asked."""
    runs = [a_tally(40, seed=seed) for seed in range(3)]
    wanted = [(2, 0), (0, 1), (1, 2)]
    together = compare_pairs(runs, ratio, wanted)
    for (a, b), found in zip(wanted, together, strict=True):
        alone = compare_paired(runs[a], runs[b], ratio)
        assert (found.difference, found.p_value) == (alone.difference, alone.p_value)
        assert (found.low, found.high) == (alone.low, alone.high)
    assert compare_pairs([], ratio, []) == ()
