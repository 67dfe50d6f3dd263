"""The one sentence about a judge: fit for the benchmark, for ranking only, or not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from snellen.judges.fitness import Level, check_fitness, pair_fitness
from snellen.judges.reliability import Order, Pair
from snellen.records import ModelRecord
from snellen.runs.judge_errors import Confusion, JudgeCheck, ProtocolCheck, Rate
from snellen.stats.agreement import Agreement
from snellen.tables.judges import check_sentence


def checked(right: float, *, low: float | None = None, unscored: int = 0, **errors: float):
    """A check of 1,000 verdicts under the reading protocol."""
    ends = None if low is None else (low, 1.0)
    rates = {"accuracy": Rate(round(1000 * right), 1000, ends)}
    rates |= {name: Rate(round(100 * value), 100) for name, value in errors.items()}
    said = (("right", "unscored"), ((1000 - unscored, unscored),))
    confusion = Confusion(("right",), said[0], said[1], ())
    return ProtocolCheck(
        "reading", {}, 10, 10, rates, {}, confusion, {}, None, None, calls=0, seconds=0.0
    )


@pytest.mark.parametrize(
    ("found", "level", "missed"),
    [
        (checked(0.97, low=0.93, fooled_when_changed=0.05), Level.FIT, []),
        (checked(0.97, low=0.89), Level.RANKING, ["accuracy"]),
        (checked(0.97, fooled_when_changed=0.2), Level.RANKING, ["fooled_when_changed"]),
        (checked(0.70), Level.UNFIT, ["accuracy"]),
        (checked(0.95, abstained_when_stated=0.4), Level.UNFIT, ["abstained_when_stated"]),
        (checked(0.97, unscored=100), Level.UNFIT, ["unscored"]),
        (checked(0.97, fooled_when_negated=0.9), Level.FIT, []),
    ],
)
def test_a_checked_judge_is_held_against_the_thresholds(found, level, missed) -> None:
    """The lower limit of right verdicts, each kind of error, and unscored verdicts count."""
    fitness = check_fitness(found)
    assert fitness.level is level
    assert [miss.name for miss in fitness.misses] == missed


def test_the_sentence_names_each_protocol_and_why() -> None:
    """What misses a threshold stands with its value and the threshold."""
    protocols = {"reading": checked(0.97, low=0.93), "rubric": checked(0.97, low=0.801)}
    check = JudgeCheck(ModelRecord("j"), "", "", 0, {}, protocols)
    assert check_sentence(check) == (
        "j: reading fit for this benchmark; rubric fit for ranking only (right, of all (lower "
        "limit) 80.1%, at least 90.0% is needed)."
    )


PAIR = Pair("a", "b", Order(3, 0.01, 1.0, True), Agreement(100, 0.95, 0.9, None, (0.85, 0.95)),
            0, 0, 0)  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "level"),
    [
        (PAIR, Level.FIT),
        (replace(PAIR, order=Order(3, 0.05, 1.0, True)), Level.RANKING),
        (replace(PAIR, order=Order(3, 0.01, 0.3, False)), Level.UNFIT),
        (replace(PAIR, agreement=Agreement(100, 0.8, 0.7, None, (0.65, 0.75))), Level.RANKING),
        (replace(PAIR, agreement=Agreement(100, 0.6, 0.3, None, (0.2, 0.4))), Level.UNFIT),
        (replace(PAIR, agreement=Agreement(0, float("nan"), float("nan"))), Level.UNFIT),
        (replace(PAIR, order=Order(1, 0.01, float("nan"), True)), Level.FIT),
    ],
)
def test_a_second_judge_is_held_against_the_first(pair, level) -> None:
    """Kappa, the mean difference and the order of the models decide."""
    assert pair_fitness(pair, is_rate=True).level is level
