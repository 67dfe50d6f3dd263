"""Corrected rates find the truth of simulated captioners where the raw rates miss it."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from snellen.errors import UsageError
from snellen.stats.bootstrap import Resampling, intervals
from snellen.stats.correction import (
    Trials,
    audit_tally,
    invert_confusion,
    prediction_powered,
    rates_differ,
    rogan_gladen,
)
from snellen.stats.simulation import (
    Captioner,
    ReadingJudge,
    expected_reading,
    simulate_audit,
    simulate_reading,
)

QUICK = Resampling(resamples=1000)
CAPTIONER = Captioner()
POOR_JUDGE = ReadingJudge(false_commit=0.3, false_abstain=0.05, misread=0.1)
TRUE_OVERALL = expected_reading(CAPTIONER)[0]


def raw_interval(verdicts):
    tally = np.stack([verdicts.sum(axis=1), verdicts[:, 0]], axis=1)
    return intervals(tally, lambda s: s[..., 1:] / s[..., :1], rates=[True], resampling=QUICK)


def holds(found, truth):
    return found.low <= truth <= found.high


def test_a_faultless_judge_needs_no_correction():
    """With sensitivity and specificity 1 the rate stands."""
    found = rogan_gladen(0.6, 0.02, sensitivity=Trials(500, 500), specificity=Trials(500, 500))
    assert found.estimate == pytest.approx(0.6)
    assert found.raw == 0.6
    assert found.low < 0.6 < found.high


def test_rogan_gladen_undoes_known_error_rates():
    """0.9 of what is right and 0.2 of the rest called right: 0.7 x 0.9 + 0.3 x 0.2 = 0.69."""
    found = rogan_gladen(0.69, 0.0, sensitivity=Trials(900, 1000), specificity=Trials(800, 1000))
    assert found.estimate == pytest.approx(0.7)


def test_a_smaller_check_is_a_wider_interval():
    """The uncertainty of the error rates is part of the interval."""
    large, small = (
        rogan_gladen(
            0.69, 0.01, sensitivity=Trials(9 * n, 10 * n), specificity=Trials(8 * n, 10 * n)
        )
        for n in (100, 4)
    )
    assert small.high - small.low > 2 * (large.high - large.low)


def test_a_judge_like_a_coin_corrects_nothing():
    """Sensitivity and specificity of one half, or unknown ones, leave no estimate."""
    for trials in (Trials(50, 100), Trials(0, 0)):
        found = rogan_gladen(0.6, 0.01, sensitivity=trials, specificity=trials)
        assert math.isnan(found.estimate)
        assert found.raw == 0.6


def test_a_corrected_rate_stays_a_rate():
    """A rate below the false alarms of the judge is corrected to 0, not below."""
    found = rogan_gladen(0.1, 0.01, sensitivity=Trials(90, 100), specificity=Trials(80, 100))
    assert (found.estimate, found.low) == (0.0, 0.0)


def test_an_inverse_confusion_undoes_known_errors():
    """Expected verdicts of a judge with a known confusion lead back to the truth."""
    verdicts = np.tile(np.array([0.6, 0.1, 0.3]) @ POOR_JUDGE.confusion() * 100, (50, 1))
    found = invert_confusion(verdicts, POOR_JUDGE.confusion() * 10_000, resampling=QUICK)
    assert found["overall_acc"].estimate == pytest.approx(0.6)
    assert found["wrong_ratio"].estimate == pytest.approx(0.1)
    assert found["uncertain_ratio"].estimate == pytest.approx(0.3)
    assert found["coverage"].estimate == pytest.approx(0.7)
    assert found["effective_acc"].estimate == pytest.approx(6 / 7)


@pytest.mark.parametrize(
    ("verdicts", "confusion"),
    [
        ([[5, 3, 2]] * 10, [[50, 30, 20]] * 3),
        ([[5, 3, 2]] * 10, [[9, 1, 0], [1, 9, 0], [0, 0, 0]]),
        ([[0, 0, 0]] * 10, [[9, 1, 0], [1, 9, 0], [1, 2, 7]]),
    ],
    ids=["says the same to all", "one truth never checked", "nothing scored"],
)
def test_what_tells_nothing_corrects_nothing(verdicts, confusion):
    """Without knowledge of the judge or of the run there is no estimate; anything is possible."""
    found = invert_confusion(verdicts, confusion, resampling=QUICK)["overall_acc"]
    assert np.isnan(found.estimate)
    assert not found.low > 0.0
    assert not found.high < 1.0


def test_confusions_of_another_shape_are_refused():
    """Three verdicts need three truths."""
    with pytest.raises(UsageError, match="do not fit"):
        invert_confusion([[5, 3, 2]], [[1, 0], [0, 1]])


def test_a_hundred_audited_verdicts_find_the_truth_that_the_raw_score_misses():
    """One study: the raw interval misses the true accuracy, the corrected one holds it."""
    joint, _ = simulate_reading(346, CAPTIONER, judge=POOR_JUDGE, seed=5)
    raw = raw_interval(joint.sum(axis=1))
    found = prediction_powered(simulate_audit(joint, 100, seed=5))
    assert not raw.low[0] <= TRUE_OVERALL <= raw.high[0]
    assert holds(found, TRUE_OVERALL)
    assert found.raw == pytest.approx(raw.estimate[0])
    assert found.high - found.low < 0.16 < 2 * 1.96 * math.sqrt(0.64 * 0.36 / 100)


@pytest.mark.slow
def test_corrections_hold_the_truth_in_most_studies():
    """In 100 studies each correction holds the truth in 89 or more and the raw rate in none.

    An interval that covers 95% falls below 89 of 100 once in 200.
    """
    truth = dict(zip(("overall_acc", "effective_acc"), expected_reading(CAPTIONER), strict=False))
    joint, _ = simulate_reading(346 * 100, CAPTIONER, judge=POOR_JUDGE, seed=1)
    rng, held = np.random.default_rng(2), np.zeros(4)
    silent = np.array([CAPTIONER.mention * (1 - CAPTIONER.right), 1 - CAPTIONER.mention])
    chances = POOR_JUDGE.confusion()
    false_right = silent @ chances[1:, 0] / silent.sum()
    for seed, study in enumerate(np.split(joint, 100)):
        verdicts = study.sum(axis=1)
        raw = raw_interval(verdicts)
        checked = np.stack([rng.multinomial(60, row) for row in chances])
        inverted = invert_confusion(verdicts, checked, resampling=QUICK)
        corrected = rogan_gladen(
            float(raw.estimate[0]),
            float(raw.standard_error[0]),
            sensitivity=Trials(checked[0, 0], 60),
            specificity=Trials(60 - rng.binomial(60, false_right), 60),
        )
        audited = prediction_powered(simulate_audit(study, 100, seed=seed), resampling=QUICK)
        held += [
            raw.low[0] <= TRUE_OVERALL <= raw.high[0],
            holds(audited, TRUE_OVERALL),
            holds(corrected, TRUE_OVERALL),
            all(holds(inverted[name], value) for name, value in truth.items()),
        ]
    assert held[0] == 0
    assert (held[1:] >= 89).all(), held


def test_an_audit_of_everything_is_the_truth():
    """Where people saw every probe their verdicts are the estimate."""
    truth = [1, 0, 1, 0, 1, 1, 0, 1]
    tally = audit_tally(list("aabbccdd"), [1, 1, 1, 0, 0, 1, 0, 1], truth)
    assert prediction_powered(tally, resampling=QUICK).estimate == pytest.approx(5 / 8)


def test_a_useless_judge_leaves_the_audit_alone():
    """Verdicts that do not follow the truth are not used: the estimate is that of the audit."""
    images = np.repeat(np.arange(40), 10).tolist()
    verdicts = np.tile([1, 0], 200)
    truth = np.full(400, np.nan)
    truth[::5] = np.repeat([1, 0], 40)
    found = prediction_powered(audit_tally(images, verdicts, truth), resampling=QUICK)
    assert found.estimate == pytest.approx(0.5, abs=0.03)


def test_no_audit_gives_no_correction():
    """Without a single audited probe there is only the raw rate."""
    found = prediction_powered(audit_tally("ab", [1, 0], [math.nan] * 2), resampling=QUICK)
    assert found.raw == 0.5
    assert math.isnan(found.estimate)
    assert math.isnan(found.low)


def audits_at_the_edge():
    """Audits of few probes, and of judges that are always right or always wrong."""
    rng = np.random.default_rng(5)
    for n, share, faults in itertools.product((2, 9, 40), (0.0, 0.9, 1.0), (0.0, 0.2, 1.0)):
        truth = (rng.random(n) < share).astype(float)
        said = np.where(rng.random(n) < faults, 1.0 - truth, truth)
        for seen in (1, 2, n):
            looked = np.where(np.arange(n) < seen, truth, np.nan)
            yield audit_tally([k // 3 for k in range(n)], said, looked)


def test_a_corrected_rate_is_a_rate_in_an_interval_that_holds_it():
    """Neither few audited probes nor an erring judge lead below 0, above 1, or past the ends."""
    few = Resampling(resamples=200)
    found = [prediction_powered(tally, resampling=few) for tally in audits_at_the_edge()]
    for hits in (6, 7):
        right, wrong = Trials(34, 34), Trials(hits, 8)
        found += [
            rogan_gladen(1.0, 0.01, sensitivity=right, specificity=wrong),
            rogan_gladen(0.0, 0.01, sensitivity=wrong, specificity=right),
        ]
    for one in found:
        assert 0.0 <= one.estimate <= 1.0, one
        assert math.isnan(one.low) or one.low <= one.estimate <= one.high, one
    assert sum(not math.isnan(one.low) for one in found) > 20


def test_an_unknown_rate_stays_unknown():
    """NaN is not corrected to the rate 0."""
    found = rogan_gladen(math.nan, 0.01, sensitivity=Trials(9, 10), specificity=Trials(9, 10))
    assert math.isnan(found.estimate)


def test_an_audit_needs_one_entry_a_probe():
    """Lists of different lengths are refused."""
    with pytest.raises(UsageError, match="differ in number"):
        audit_tally("ab", [1], [1, 0])


@pytest.mark.parametrize(
    "table", [(8, 10, 1, 6), (50, 60, 30, 60), (0, 5, 0, 9), (990, 1000, 90, 100)]
)
def test_rates_differ_is_fishers_exact_test(table):
    """The p value is that of scipy, also where a cell is empty."""
    a, n, b, m = table
    expected = scipy_stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue
    assert rates_differ(Trials(a, n), Trials(b, m)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("trials", [Trials(3, 2), Trials(0.5, 2), Trials(-1, 2)])
def test_impossible_counts_are_refused(trials):
    """Hits are whole numbers up to the number of tries."""
    with pytest.raises(UsageError):
        rates_differ(trials, Trials(1, 2))
