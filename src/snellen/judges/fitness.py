"""Whether a judge is fit for a benchmark, by thresholds on its measured errors and agreement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from snellen.judges.reliability import JudgeStudy, Pair
from snellen.runs.judge_errors import ProtocolCheck

# Each threshold with what it is held against: (fit for the benchmark, fit for ranking).
RIGHT: Final = (0.90, 0.75)
ERRORS: Final = (0.10, 0.30)
UNSCORED: Final = (0.05, 0.05)
KAPPA: Final = (0.80, 0.60)
DIFFERENCE: Final = 0.02
# The errors that are held against a judge. Negated facts are rare in real captions.
ERROR_RATES: Final = ("abstained_when_stated", "committed_when_absent", "fooled_when_changed")


class Level(Enum):
    """What a judge may be used for."""

    FIT = "fit for this benchmark"
    RANKING = "fit for ranking only"
    UNFIT = "not fit"


@dataclass(frozen=True, slots=True)
class Miss:
    """A number that misses the threshold of the level above: at least or at most `threshold`."""

    name: str
    value: float
    threshold: float
    is_least: bool


@dataclass(frozen=True, slots=True)
class Fitness:
    """The level that a judge reaches, and the misses that keep it from the next level."""

    level: Level
    misses: tuple[Miss, ...]


def check_fitness(found: ProtocolCheck) -> Fitness:
    """The level that a checked judge reaches under one protocol.

    Held against the thresholds: the lower limit of the share of right verdicts, each error rate,
    and the share of unscored verdicts.
    """
    right = found.rates["accuracy"]
    low = right.ci95[0] if right.ci95 is not None else right.value
    unscored = sum(row[-1] for row in found.confusion.counts)
    total = sum(sum(row) for row in found.confusion.counts)
    errors = {
        name: rate.value
        for name in ERROR_RATES
        if (rate := found.rates.get(name)) is not None and rate.value is not None
    }

    def misses(step: int) -> Iterator[Miss]:
        if low is None or low < RIGHT[step]:
            yield Miss("accuracy", 0.0 if low is None else low, RIGHT[step], is_least=True)
        for name, value in errors.items():
            if value > ERRORS[step]:
                yield Miss(name, value, ERRORS[step], is_least=False)
        if total and unscored / total > UNSCORED[step]:
            yield Miss("unscored", unscored / total, UNSCORED[step], is_least=False)

    return _level(tuple(misses(0)), tuple(misses(1)))


def pair_fitness(pair: Pair, *, is_rate: bool) -> Fitness:
    """Whether the second judge of a pair can stand in for the first on these replies.

    For scores kappa and, of a rate, the mean difference count; for ranking kappa, and the order
    where there are two models or more.
    """
    ends = pair.agreement.kappa_interval
    kappa = pair.agreement.kappa if ends is None else ends[0]
    kappa = -1.0 if math.isnan(kappa) else kappa
    order = pair.order

    def misses(step: int) -> Iterator[Miss]:
        if kappa < KAPPA[step]:
            yield Miss("kappa", kappa, KAPPA[step], is_least=True)
        if order.n_models > 1 and not order.same_order:
            yield Miss("tau", order.tau, 1.0, is_least=True)
        if step == 0 and is_rate and abs(order.mean_difference) > DIFFERENCE:
            yield Miss("difference", abs(order.mean_difference), DIFFERENCE, is_least=False)

    return _level(tuple(misses(0)), tuple(misses(1)))


def _level(scores: tuple[Miss, ...], ranking: tuple[Miss, ...]) -> Fitness:
    if not scores:
        return Fitness(Level.FIT, ())
    if not ranking:
        return Fitness(Level.RANKING, scores)
    return Fitness(Level.UNFIT, ranking)


def study_fitness(study: JudgeStudy, *, is_rate: bool) -> Sequence[tuple[Pair, Fitness]]:
    """Each pair of judges with the level that the second reaches beside the first."""
    return [(pair, pair_fitness(pair, is_rate=is_rate)) for pair in study.pairs]
