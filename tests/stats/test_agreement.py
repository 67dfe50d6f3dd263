"""Kappa, correlations and calibration: scipy, textbook tables and the papers' own figures."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from snellen.errors import UsageError
from snellen.stats.agreement import (
    average_ranks,
    calibration,
    cohen_kappa,
    fisher_interval,
    fleiss_kappa,
    kendall_tau_b,
    pearson,
    pearson_p,
    permutation_p,
    r_squared,
    raw_agreement,
    slope,
    spearman,
)
from snellen.stats.bootstrap import Resampling

# GPT-5.4, Kimi-K2.6, MiMo-V2.5, Qwen3-VL-235B, GPT-4o (PerceptionRubrics, figure 9 and table 2).
ARENA = [1283, 1264, 1237, 1190, 1162]
SCORES = [60.81, 51.77, 45.65, 41.88, 12.59]


def tied_pairs(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 8, size=n).astype(float)
    return x, x + rng.integers(-3, 4, size=n)


def test_the_published_alignment_is_reproduced():
    """Arena ratings against scores of five models: Pearson 0.9155 and Spearman 1.000."""
    assert pearson(ARENA, SCORES)[0] == pytest.approx(0.9155, abs=5e-5)
    assert spearman(ARENA, SCORES) == (1.0, 5)
    assert kendall_tau_b(ARENA, SCORES) == (1.0, 5)


def test_five_models_leave_a_wide_interval():
    """A correlation of 0.9155 over five models may be anything from 0.17 to 0.99."""
    low, high = fisher_interval(pearson(ARENA, SCORES)[0], 5)
    assert round(low, 2) == 0.17
    assert round(high, 2) == 0.99


def test_the_published_consistency_is_reproduced():
    """Gate pass against Easy-Wrong accuracy of six models: R squared 0.988."""
    gate = [83.62, 79.67, 66.76, 72.16, 64.16, 56.65]
    easy_wrong = [81.96, 77.48, 65.77, 71.04, 64.40, 59.72]
    assert r_squared(gate, easy_wrong) == pytest.approx(0.988, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_those_of_scipy(seed):
    """Pearson, Spearman and Kendall's tau-b agree to twelve digits, with many ties."""
    x, y = tied_pairs(seed=seed)
    assert pearson(x, y) == (pytest.approx(scipy_stats.pearsonr(x, y).statistic, rel=1e-12), 40)
    assert spearman(x, y)[0] == pytest.approx(scipy_stats.spearmanr(x, y).statistic, rel=1e-12)
    assert kendall_tau_b(x, y)[0] == pytest.approx(
        scipy_stats.kendalltau(x, y).statistic, rel=1e-12
    )


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0.0), (1e9, 1e6), (1.0, 1e7)])
def test_a_correlation_has_no_unit(scale, offset):
    """Scaling and shifting change nothing."""
    x, y = tied_pairs()
    assert pearson(x * scale + offset, y)[0] == pytest.approx(pearson(x, y)[0], rel=1e-6)


def test_average_ranks_are_those_of_scipy():
    """Ties share the average of their ranks."""
    x, _ = tied_pairs()
    assert average_ranks(x).tolist() == scipy_stats.rankdata(x).tolist()


def test_no_variation_means_no_correlation():
    """Constant ratings, a single pair and no pair have no correlation, nor a p value."""
    for x, y in (([1, 1, 1], [1, 2, 3]), ([1], [2]), ([], [])):
        assert all(math.isnan(f(x, y)[0]) for f in (pearson, spearman, kendall_tau_b))
        assert math.isnan(permutation_p(x, y))


@pytest.mark.parametrize("gap", [math.nan, math.inf])
@pytest.mark.parametrize("measure", [pearson, spearman, kendall_tau_b])
def test_an_unknown_value_leaves_no_correlation(measure, gap):
    """A NaN among the values is neither a rank nor a perfect correlation, nor is it significant."""
    for x, y in (([gap, 2, 3, 4], [1, 2, 3, 4]), ([1, 2, 3, 4], [1, 2, 3, gap])):
        value, n = measure(x, y)
        assert (math.isnan(value), n) == (True, 4)
        assert math.isnan(permutation_p(x, y))


def test_unequal_lists_are_refused():
    """Correlations and kappa need pairs."""
    with pytest.raises(UsageError, match="cannot be paired"):
        pearson([1, 2], [1, 2, 3])
    with pytest.raises(UsageError, match="cannot be paired"):
        cohen_kappa("AB", "ABC")


@pytest.mark.parametrize(("r", "n"), [(0.3, 10), (-0.8, 25), (0.05, 1038)])
def test_fishers_interval_is_that_of_scipy(r, n):
    """The interval is the one scipy gives for a correlation of that size."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    noise = rng.normal(size=n)
    noise -= np.polyval(np.polyfit(x, noise, 1), x)
    y = r * (x - x.mean()) / x.std() + math.sqrt(1 - r * r) * noise / noise.std()
    expected = scipy_stats.pearsonr(x, y).confidence_interval()
    assert fisher_interval(r, n) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_three_pairs_have_no_interval():
    """Fisher's z has no variance below four pairs."""
    assert fisher_interval(0.5, 3) is None
    assert fisher_interval(1.0, 9) == (1.0, 1.0)


def test_the_p_value_of_pearson_is_that_of_scipy():
    """Student's t for small and large samples."""
    for n in (5, 40, 400):
        rng = np.random.default_rng(n)
        x = rng.normal(size=n)
        y = rng.normal(size=n) + 0.3 * x
        expected = scipy_stats.pearsonr(x, y)
        assert pearson_p(expected.statistic, n) == pytest.approx(expected.pvalue, rel=1e-9)
    assert pearson_p(1.0, 9) == 0.0
    assert math.isnan(pearson_p(0.5, 2))


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_small_samples_get_the_exact_permutation_p(kind):
    """Up to eight pairs the p value is a count over all orders."""
    measure = {"pearson": pearson, "spearman": spearman, "kendall": kendall_tau_b}[kind]
    x, y = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 5, 5]
    own = abs(measure(x, y)[0])
    strong = [abs(measure(x, p)[0]) >= own - 1e-12 for p in itertools.permutations(y)]
    assert permutation_p(x, y, kind=kind) == pytest.approx(sum(strong) / 720)


def test_perfect_order_of_five_models_has_p_one_in_sixty():
    """Of 120 orders of five models two are perfect."""
    assert permutation_p(ARENA, SCORES, kind="spearman") == pytest.approx(2 / 120)


def test_large_samples_get_a_seeded_permutation_p():
    """Above eight pairs the p value is Monte Carlo, near Student's, repeatable, never 0."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = 0.25 * x + rng.normal(size=60)
    p = permutation_p(x, y)
    assert p == pytest.approx(scipy_stats.pearsonr(x, y).pvalue, abs=0.01)
    assert permutation_p(x, y) == p
    assert permutation_p(x, x, draws=99) == 1 / 100


def test_the_slope_is_that_of_scipy():
    """Slope, intercept and the t interval of the slope."""
    x, y = tied_pairs()
    found, expected = slope(x, y), scipy_stats.linregress(x, y)
    half = scipy_stats.t.ppf(0.975, 38) * expected.stderr
    assert found.slope == pytest.approx(expected.slope)
    assert found.intercept == pytest.approx(expected.intercept)
    assert (found.low, found.high) == pytest.approx((expected.slope - half, expected.slope + half))


def test_a_slope_needs_two_places_and_its_interval_three_points():
    """Points above one another have no slope; two points have one without an interval."""
    assert math.isnan(slope([1, 1], [1, 2]).slope)
    two = slope([0, 1], [0, 2])
    assert two.slope == 2.0
    assert math.isnan(two.low)


def test_kappa_of_the_textbook_table():
    """20 yes-yes, 15 no-no, 5 and 10 apart: raw 0.7, kappa 0.4."""
    a, b = "Y" * 25 + "N" * 25, "Y" * 20 + "N" * 5 + "Y" * 10 + "N" * 15
    found = cohen_kappa(a, b)
    assert found.raw == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert raw_agreement(a, b) == pytest.approx(0.7)
    assert (found.raw_interval, found.kappa_interval) == (None, None)


def test_kappa_is_one_for_the_same_labels_and_unknown_for_a_single_one():
    """Full agreement is 1; where both always say the same label, chance agrees fully too."""
    assert cohen_kappa("ABCE", "ABCE").kappa == 1.0
    assert math.isnan(cohen_kappa("AAA", "AAA").kappa)
    assert math.isnan(cohen_kappa("", "").kappa)


def test_chance_agreement_has_kappa_near_zero():
    """Independent raters agree by chance only."""
    rng = np.random.default_rng(0)
    a, b = (rng.choice(list("ABCDE"), size=20_000).tolist() for _ in range(2))
    assert cohen_kappa(a, b).kappa == pytest.approx(0.0, abs=0.02)


def test_kappa_resampled_by_image_is_less_sure():
    """Judges that disagree image by image have wider intervals than the probes suggest."""
    rng = np.random.default_rng(1)
    images = np.repeat(np.arange(60), 30)
    a = rng.choice(list("AB"), size=1800)
    hard = rng.random(60)[images] < 0.3
    b = np.where(hard & (rng.random(1800) < 0.8), np.where(a == "A", "B", "A"), a)
    resampling = Resampling(1000)
    by_image = cohen_kappa(a, b, clusters=images.tolist(), resampling=resampling)
    by_probe = cohen_kappa(a, b, clusters=list(range(1800)), resampling=resampling)
    low, high = by_image.kappa_interval
    assert low < by_image.kappa < high
    assert high - low > 2 * (by_probe.kappa_interval[1] - by_probe.kappa_interval[0])
    assert by_image.kappa == by_probe.kappa


def test_a_rater_with_one_label_agrees_exactly_by_chance():
    """Kappa is then 0 in every resample, and rounding makes no interval of it."""
    rng = np.random.default_rng(0)
    a, owners = rng.choice(list("ABCDE"), 199).tolist(), (np.arange(199) // 13).tolist()
    found = cohen_kappa(a, ["A"] * 199, clusters=owners, resampling=Resampling(200))
    assert found.kappa == 0.0
    assert found.kappa_interval is None


@pytest.mark.parametrize("seed", range(12))
def test_full_agreement_is_exactly_one_and_has_its_bound(seed):
    """Whatever the labels' shares add up to, raters that agree on all get the exact bound."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(list("ABCDE"), int(rng.integers(10, 80))).tolist()
    owners = [k % 8 for k in range(len(labels))]
    found = cohen_kappa(labels, labels, clusters=owners, resampling=Resampling(100))
    assert (found.raw, found.kappa) == (1.0, 1.0)
    assert found.raw_interval == pytest.approx((0.025 ** (1 / 8), 1.0))


def test_an_interval_of_kappa_stays_where_kappas_are():
    """Few things in few images do not lead beyond -1 and 1."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(5, 15))
        a, b = rng.choice(list("AB"), size=(2, n)).tolist()
        owners = rng.integers(0, 4, n).tolist()
        found = cohen_kappa(a, b, clusters=owners, resampling=Resampling(100))
        if found.kappa_interval is not None:
            low, high = found.kappa_interval
            assert -1.0 <= low <= found.kappa <= high <= 1.0


def test_fleiss_kappa_of_the_published_example():
    """The example of Fleiss' layout with 14 raters, 10 things and 5 labels: 0.210."""
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    assert fleiss_kappa(table) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_leaves_out_what_one_rater_saw():
    """A thing with a single label says nothing about agreement."""
    table = [[3, 0], [0, 3], [2, 1]]
    assert fleiss_kappa([*table, [1, 0]]) == fleiss_kappa(table)
    assert math.isnan(fleiss_kappa([[1, 0]]))


def test_calibration_error_weighs_the_gaps_of_the_bins():
    """90% sure and right 3 times of 4, 30% sure and never right: (4*0.15 + 2*0.3) / 6."""
    found = calibration([0.9] * 4 + [0.3] * 2, [1, 1, 1, 0, 0, 0])
    assert found.ece == pytest.approx((4 * 0.15 + 2 * 0.3) / 6)
    assert [b.n for b in found.bins] == [0, 0, 0, 2, 0, 0, 0, 0, 0, 4]
    assert found.bins[9].accuracy == 0.75
    assert math.isnan(found.bins[0].confidence)


def test_a_full_confidence_belongs_to_the_last_bin():
    """1.0 is counted, and one who is always sure and right is calibrated."""
    found = calibration([1.0, 1.0], [1, 1], bins=5)
    assert found.bins[4].n == 2
    assert found.ece == 0.0


def test_percents_are_no_probabilities():
    """A confidence of 90 is refused; no data gives no error."""
    with pytest.raises(UsageError, match=r"outside 0\.\.1"):
        calibration([90.0], [1])
    assert math.isnan(calibration([], []).ece)
