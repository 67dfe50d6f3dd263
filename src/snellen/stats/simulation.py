"""Simulated captioners and judges of known quality, to test every number that Snellen prints.

A simulated captioner mentions a fact of a picture with a known probability and is right about it
with another; its ability differs from picture to picture, and so does the length of its captions.
A simulated judge reads the captions with known error rates. What is true is therefore known, most
of it in closed form: an estimate or an interval can be held against it.

Arrays of counts have one row a picture. Pictures are independent, so that many studies are drawn at
once and cut apart. `SCENARIOS` are the captioners that the intervals and tests of `stats` are held
against, `coverage` and `false_alarms` hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from snellen.stats.bootstrap import (
    DEFAULT_RESAMPLING,
    Intervals,
    Resampling,
    intervals,
)
from snellen.stats.paired import compare_paired

Floats = NDArray[np.float64]

READING_COLUMNS: Final = (
    "probes",
    "correct",
    "uncertain",
    "tokens",
    "probe_tokens",
    "density",
    "density_squared",
    "images",
)
READING_METRICS: Final = (
    "overall_acc",
    "effective_acc",
    "uncertain_ratio",
    "coverage",
    "tokens_per_image",
    "mean_density",
    "global_density",
    "density_cv",
)
RUBRIC_COLUMNS: Final = (
    "must_right",
    "must_right_true",
    "easy_wrong",
    "easy_wrong_true",
    "gate",
    "easy_wrong_rate",
    "score",
    "images",
)
RUBRIC_METRICS: Final = (
    "score",
    "gate_pass",
    "atomic_acc",
    "must_right_acc",
    "easy_wrong_acc",
    "easy_wrong_avg",
    "reliability_gap",
)
DIRECT_COLUMNS: Final = ("probes", "correct")
DIRECT_METRICS: Final = ("accuracy",)

RIGHT, WRONG, ABSENT = range(3)


@dataclass(frozen=True, slots=True)
class Captioner:
    """What a simulated captioner does; all rates are fractions of 1.

    `mention` is the chance that a caption speaks of a fact, `right` that what it says is so.
    `spread` is the correlation of two facts of one picture (0: all pictures are equally hard).
    `tokens` is the median length, `tail` the standard deviation of its logarithm, and
    `length_pull` the correlation of a caption's log-length with how much it mentions.
    """

    mention: float = 0.75
    right: float = 0.85
    spread: float = 0.05
    tokens: float = 250.0
    tail: float = 0.5
    length_pull: float = 0.4


@dataclass(frozen=True, slots=True)
class ReadingJudge:
    """A judge's error rates on multiple-choice questions about a caption.

    `false_commit`: it answers although the caption is silent (right by luck one time in four).
    `false_abstain`: it says E although the caption speaks of it.
    `misread`: what the caption has right it reads as another option.
    """

    false_commit: float = 0.0
    false_abstain: float = 0.0
    misread: float = 0.0

    def confusion(self) -> Floats:
        """Chance of each verdict (column) by what the caption says (row), shape (3, 3).

        Both orders are right, wrong, absent (the verdict E). Rows sum to 1. A wrong statement
        that is misread becomes the right option one time in three.

        >>> ReadingJudge().confusion().diagonal().tolist()
        [1.0, 1.0, 1.0]
        """
        reads, luck = 1.0 - self.false_abstain, self.misread / 3.0
        return np.array(
            [
                [reads * (1.0 - self.misread), reads * self.misread, self.false_abstain],
                [reads * luck, reads * (1.0 - luck), self.false_abstain],
                [self.false_commit / 4.0, self.false_commit * 0.75, 1.0 - self.false_commit],
            ]
        )


@dataclass(frozen=True, slots=True)
class RubricWriter:
    """How often a simulated captioner fulfils rubrics; rates are fractions of 1.

    `spread` is the correlation of two rubrics of one kind in one picture, `shared` the share of a
    picture's hardness that both kinds have in common.
    """

    must_right: float = 0.93
    easy_wrong: float = 0.75
    spread: float = 0.08
    shared: float = 0.6


@dataclass(frozen=True, slots=True)
class RubricJudge:
    """`sensitivity`: a fulfilled rubric is called true; `specificity`: a failed one false."""

    sensitivity: float = 1.0
    specificity: float = 1.0

    def called_true(self, rate: Floats) -> Floats:
        """The chance that a rubric is called true when it is fulfilled with chance `rate`."""
        return rate * self.sensitivity + (1.0 - rate) * (1.0 - self.specificity)


def simulate_reading(
    n_images: int,
    captioner: Captioner = Captioner(),
    *,
    judge: ReadingJudge = ReadingJudge(),
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """What captions say against what a judge says, and the lengths of the captions.

    Returns counts of shape (n_images, 3, 3) (truth right, wrong, absent; verdict right, wrong, E;
    20 to 140 questions an image) and token counts of shape (n_images,).

    >>> joint, tokens = simulate_reading(5)
    >>> joint.shape, bool((joint.sum(axis=(1, 2)) >= 20).all())
    ((5, 3, 3), True)
    """
    return simulate_rivals(n_images, [captioner], judge=judge, seed=seed)[0]


def simulate_rivals(
    n_images: int,
    captioners: Sequence[Captioner],
    *,
    judge: ReadingJudge = ReadingJudge(),
    shared: float = 0.7,
    seed: int = 0,
) -> list[tuple[Floats, Floats]]:
    """Several captioners on the same images and questions, each as `simulate_reading` gives one.

    `shared` is the share of an image's hardness that all of them feel; 0 makes them independent.
    """
    rng = np.random.default_rng(seed)
    spread = max(captioner.spread for captioner in captioners)
    mention = _shared_betas(rng, [c.mention for c in captioners], (spread, shared), n_images)
    right = _shared_betas(rng, [c.right for c in captioners], (spread, shared), n_images)
    probes = np.rint(20.0 + 120.0 * rng.beta(1.5, 2.0, size=n_images)).astype(np.int64)
    runs = []
    for captioner, says, holds in zip(captioners, mention, right, strict=True):
        said = np.stack([says * holds, says * (1.0 - holds), 1.0 - says], axis=-1)
        truth = rng.multinomial(probes, said / said.sum(axis=-1, keepdims=True))
        joint = rng.multinomial(truth, judge.confusion()).astype(np.float64)
        runs.append((joint, _token_counts(rng, captioner, says)))
    return runs


def simulate_audit(joint: Floats, n_audited: int, *, seed: int = 0) -> Floats:
    """People look at `n_audited` random probes of a simulated run: the tally of an audit.

    `joint` is what `simulate_reading` gives. The columns, shape (n_images, 6), are probes, those
    called right, audited ones, and of these: called right, truly right, and both.

    >>> joint, _ = simulate_reading(5)
    >>> float(simulate_audit(joint, 10)[:, 2].sum())
    10.0
    """
    rng = np.random.default_rng(seed)
    cells = joint.astype(np.int64)
    seen = rng.multivariate_hypergeometric(cells.ravel(), n_audited, method="marginals")
    audited = seen.reshape(cells.shape).astype(np.float64)
    columns = [
        joint.sum(axis=(1, 2)),
        joint[:, :, RIGHT].sum(axis=1),
        audited.sum(axis=(1, 2)),
        audited[:, :, RIGHT].sum(axis=1),
        audited[:, RIGHT, :].sum(axis=1),
        audited[:, RIGHT, RIGHT],
    ]
    return np.stack(columns, axis=-1)


def reading_tally(verdicts: Floats, tokens: Floats) -> Floats:
    """The tally of `READING_COLUMNS`, shape (n_images, 8), from counts of right, wrong and E.

    `verdicts` has the shape (n_images, 3): the joint counts summed over axis 1 for what the judge
    says, over axis 2 for what is true.
    """
    probes, correct, uncertain = verdicts.sum(axis=1), verdicts[:, RIGHT], verdicts[:, ABSENT]
    density = 1000.0 * correct / (probes * tokens)
    columns = [probes, correct, uncertain, tokens, probes * tokens, density, density**2]
    return np.stack([*columns, np.ones_like(probes)], axis=-1)


def reading_metrics(sums: Floats) -> Floats:
    """The eight `READING_METRICS` of column sums of shape (..., 8); NaN where nothing divides.

    Source: CapProbe, the formulas of its metrics.
    """
    probes, correct, uncertain, tokens, probe_tokens, density, squared, images = np.moveaxis(
        sums, -1, 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = density / images
        deviation = np.sqrt(np.maximum(squared / images - mean**2, 0.0))
        rows = [
            correct / probes,
            correct / (probes - uncertain),
            uncertain / probes,
            (probes - uncertain) / probes,
            tokens / images,
            mean,
            1000.0 * correct / probe_tokens,
            deviation / mean,
        ]
    return _defined(np.stack(rows, axis=-1))


def expected_reading(captioner: Captioner, judge: ReadingJudge = ReadingJudge()) -> Floats:
    """The true overall_acc, effective_acc, uncertain_ratio and coverage, shape (4,), exactly.

    >>> expected_reading(Captioner(mention=0.5, right=0.8)).tolist()
    [0.4, 0.8, 0.5, 0.5]
    """
    mention, right = captioner.mention, captioner.right
    said = np.array([mention * right, mention * (1.0 - right), 1.0 - mention])
    correct, wrong, uncertain = said @ judge.confusion()
    answered = correct + wrong
    return np.array([correct, correct / answered, uncertain, answered])


def simulate_rubric(
    n_images: int,
    writer: RubricWriter = RubricWriter(),
    *,
    judge: RubricJudge = RubricJudge(),
    seed: int = 0,
) -> Floats:
    """The tally of `RUBRIC_COLUMNS`, shape (n_images, 8), as a judge of known errors sees it.

    2 to 7 Must-Right and 2 to 13 Easy-Wrong rubrics an image, as in the published data.

    >>> simulate_rubric(3).shape
    (3, 8)
    """
    rng = np.random.default_rng(seed)
    means, kinship = (writer.must_right, writer.easy_wrong), (writer.spread, writer.shared)
    must_rate, easy_rate = _shared_betas(rng, means, kinship, n_images)
    must = rng.choice(_MUST_RIGHT, size=n_images, p=_MUST_RIGHT_SHARES)
    easy = 2 + rng.binomial(11, 0.4, size=n_images)
    must_true = rng.binomial(must, judge.called_true(must_rate))
    easy_true = rng.binomial(easy, judge.called_true(easy_rate))
    gate, rate = (must_true == must).astype(np.float64), easy_true / easy
    columns = [must, must_true, easy, easy_true, gate, rate, gate * rate, np.ones(n_images)]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)


def rubric_metrics(sums: Floats) -> Floats:
    """The seven `RUBRIC_METRICS` of column sums of shape (..., 8); NaN where nothing divides.

    Source: PerceptionRubrics, equations 1 and 2 (gated score) and figure 6 (reliability gap).
    """
    must, must_true, easy, easy_true, gate, rate, score, images = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        atomic = (must_true + easy_true) / (must + easy)
        rows = [
            score / images,
            gate / images,
            atomic,
            must_true / must,
            easy_true / easy,
            rate / images,
            gate / images - atomic,
        ]
    return _defined(np.stack(rows, axis=-1))


def expected_gate_pass(writer: RubricWriter) -> float:
    """The true gate pass of a captioner under a faultless judge, exactly.

    >>> round(expected_gate_pass(RubricWriter(must_right=0.9, spread=0.0)), 3)
    0.665
    """
    if writer.spread == 0.0:
        powers = writer.must_right ** _MUST_RIGHT.astype(np.float64)
        return float(powers @ _MUST_RIGHT_SHARES)
    size = 1.0 / writer.spread - 1.0
    steps = np.arange(_MUST_RIGHT.max())
    moments = np.cumprod((writer.must_right * size + steps) / (size + steps))
    return float(moments[_MUST_RIGHT - 1] @ _MUST_RIGHT_SHARES)


def simulate_direct(
    n_clusters: int, accuracy: float = 0.45, *, spread: float = 0.3, seed: int = 0
) -> Floats:
    """The tally of `DIRECT_COLUMNS`, shape (n_clusters, 2): 1 to 4 questions share a picture.

    >>> simulate_direct(4).shape
    (4, 2)
    """
    rng = np.random.default_rng(seed)
    probes = rng.choice([1, 2, 3, 4], size=n_clusters, p=[0.7, 0.15, 0.1, 0.05])
    correct = rng.binomial(probes, _shared_betas(rng, [accuracy], (spread, 0.0), n_clusters)[0])
    return np.stack([probes, correct], axis=-1).astype(np.float64)


def direct_metrics(sums: Floats) -> Floats:
    """Accuracy of column sums of shape (..., 2), as (..., 1); NaN where nothing divides."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _defined(sums[..., 1:2] / sums[..., 0:1])


@dataclass(frozen=True, slots=True)
class Scenario:
    """A simulated system whose metrics are known.

    `draw(n_images, seed)` gives a tally, `draw_equals` those of two systems of the same quality on
    the same pictures. `rates` says which metrics are fractions of 1, `differences` which are the
    difference of two others.
    """

    metrics: tuple[str, ...]
    statistic: Callable[[Floats], Floats]
    rates: tuple[bool, ...]
    draw: Callable[[int, int], Floats]
    draw_equals: Callable[[int, int], tuple[Floats, Floats]]
    differences: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def intervals(self, study: Floats, resampling: Resampling = DEFAULT_RESAMPLING) -> Intervals:
        """The intervals of all metrics of one study."""
        return intervals(
            study,
            self.statistic,
            rates=self.rates,
            combined={k: {a: 1.0, b: -1.0} for k, (a, b) in self.differences.items()},
            resampling=resampling,
        )

    def truth(self, n_images: int = 400_000) -> Floats:
        """The true metrics, from so many pictures that their error does not count."""
        return self.statistic(self.draw(n_images, _TRUTH_SEED).sum(axis=0))


def coverage(
    scenario: Scenario,
    n_images: int,
    *,
    repeats: int,
    resampling: Resampling = DEFAULT_RESAMPLING,
    truth: Floats | None = None,
) -> Floats:
    """The share of simulated studies whose interval holds the truth, shape (n_metrics,).

    A study without an interval for a metric counts as one that misses.
    """
    true = scenario.truth() if truth is None else truth
    studies = np.split(scenario.draw(n_images * repeats, resampling.seed), repeats)
    held = np.zeros(true.shape)
    for study in studies:
        found = scenario.intervals(study, resampling)
        held += (found.low <= true) & (true <= found.high)
    return held / repeats


def false_alarms(
    scenario: Scenario, n_images: int, *, repeats: int, alpha: float = 0.05, seed: int = 0
) -> Floats:
    """The share of comparisons of equals with a p value of at most `alpha`, (n_metrics,)."""
    first, second = scenario.draw_equals(n_images * repeats, seed)
    pairs = zip(np.split(first, repeats), np.split(second, repeats), strict=True)
    alarms = [compare_paired(a, b, scenario.statistic).p_value <= alpha for a, b in pairs]
    return np.asarray(np.mean(alarms, axis=0), dtype=np.float64)


def _reading_scenario(captioner: Captioner, judge: ReadingJudge) -> Scenario:
    def draw(n: int, seed: int) -> Floats:
        joint, tokens = simulate_reading(n, captioner, judge=judge, seed=seed)
        return reading_tally(joint.sum(axis=1), tokens)

    def draw_equals(n: int, seed: int) -> tuple[Floats, Floats]:
        runs = simulate_rivals(n, [captioner, captioner], judge=judge, seed=seed)
        first, second = (reading_tally(joint.sum(axis=1), tokens) for joint, tokens in runs)
        return first, second

    rates = (True,) * 4 + (False,) * 4
    return Scenario(READING_METRICS, reading_metrics, rates, draw, draw_equals)


def _rubric_scenario(writer: RubricWriter) -> Scenario:
    def draw(n: int, seed: int) -> Floats:
        return simulate_rubric(n, writer, seed=seed)

    def draw_equals(n: int, seed: int) -> tuple[Floats, Floats]:
        return draw(n, seed), draw(n, seed + 1)

    gap = {
        RUBRIC_METRICS.index("reliability_gap"): (
            RUBRIC_METRICS.index("gate_pass"),
            RUBRIC_METRICS.index("atomic_acc"),
        )
    }
    rates = (True,) * 6 + (False,)
    return Scenario(RUBRIC_METRICS, rubric_metrics, rates, draw, draw_equals, gap)


def _direct_scenario(accuracy: float) -> Scenario:
    def draw(n: int, seed: int) -> Floats:
        return simulate_direct(n, accuracy, seed=seed)

    def draw_equals(n: int, seed: int) -> tuple[Floats, Floats]:
        return draw(n, seed), draw(n, seed + 1)

    return Scenario(DIRECT_METRICS, direct_metrics, (True,), draw, draw_equals)


_TRUTH_SEED: Final = 20_261_130
_USUAL_JUDGE: Final = ReadingJudge(false_commit=0.05, false_abstain=0.03, misread=0.02)
_STRONG: Final = Captioner(mention=0.95, right=0.96, spread=0.1, tokens=600.0, tail=0.8)

SCENARIOS: Final = {
    "reading, middling": _reading_scenario(Captioner(), _USUAL_JUDGE),
    "reading, strong": _reading_scenario(_STRONG, _USUAL_JUDGE),
    "rubric, weak": _rubric_scenario(RubricWriter(must_right=0.65, easy_wrong=0.3, spread=0.15)),
    "rubric, middling": _rubric_scenario(RubricWriter()),
    "rubric, strong": _rubric_scenario(RubricWriter(must_right=0.96, easy_wrong=0.85, spread=0.1)),
    "rubric, near perfect": _rubric_scenario(
        RubricWriter(must_right=0.985, easy_wrong=0.9, spread=0.1)
    ),
    "direct, middling": _direct_scenario(0.45),
    "direct, strong": _direct_scenario(0.9),
}

_MUST_RIGHT: Final = np.array([2, 3, 4, 5, 6, 7])
_MUST_RIGHT_SHARES: Final = np.array([0.03, 0.32, 0.40, 0.21, 0.03, 0.01])


def _shared_betas(
    rng: np.random.Generator, means: Sequence[float], kinship: tuple[float, float], n: int
) -> Floats:
    """Beta-distributed rates, one row a mean, shape (len(means), n).

    `kinship` is the spread within a row and the share that the rows have in common: a beta variate
    is g / (g + h) of two gamma variates, and all rows have a part of g and of h in common.
    """
    spread, shared = kinship
    if spread == 0.0 or any(mean in (0.0, 1.0) for mean in means):
        return np.repeat(np.asarray(means)[:, np.newaxis], n, axis=1)
    size = 1.0 / spread - 1.0
    wins = _shared_gammas(rng, np.asarray(means) * size, shared, n)
    losses = _shared_gammas(rng, (1.0 - np.asarray(means)) * size, shared, n)
    return np.asarray(wins / (wins + losses), dtype=np.float64)


def _shared_gammas(rng: np.random.Generator, shapes: Floats, shared: float, n: int) -> Floats:
    common = shared * float(shapes.min())
    base = rng.gamma(common, size=n) if common > 0.0 else np.zeros(n)
    return np.stack([base + rng.gamma(shape - common, size=n) for shape in shapes])


def _token_counts(rng: np.random.Generator, captioner: Captioner, mention: Floats) -> Floats:
    """Lengths of captions: log-normal, longer where more is mentioned."""
    noise = rng.standard_normal(mention.shape)
    scale = np.sqrt(captioner.spread * captioner.mention * (1.0 - captioner.mention))
    pull = captioner.length_pull if scale > 0.0 else 0.0
    ability = (mention - captioner.mention) / scale if scale > 0.0 else 0.0
    score = pull * ability + np.sqrt(1.0 - pull**2) * noise
    lengths = np.rint(captioner.tokens * np.exp(captioner.tail * score))
    return np.asarray(np.maximum(1.0, lengths), dtype=np.float64)


def _defined(values: Floats) -> Floats:
    """The same values with NaN for every infinity: a zero denominator is no number."""
    return np.where(np.isfinite(values), values, np.nan)
