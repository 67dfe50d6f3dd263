"""What a review comes to: rates of decisions, agreement of annotators, hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from snellen.builders.reviewing import Decision, Settled, Word
from snellen.stats.agreement import Agreement, Alpha, cohen_kappa, krippendorff_alpha

# A decision that took longer was left open while somebody did something else.
LONGEST_S = 600.0
WORDS: tuple[Word, ...] = ("accept", "edit", "delete")


@dataclass(frozen=True, slots=True)
class Rates:
    """How many tasks of a label were accepted, edited and deleted, out of `n` tasks."""

    label: str
    n: int
    accept: int
    edit: int
    delete: int

    @property
    def open(self) -> int:
        """How many tasks nobody has decided on."""
        return self.n - self.accept - self.edit - self.delete


@dataclass(frozen=True, slots=True)
class Person:
    """What one person has done: tasks that were given, decisions, and the time they took.

    `median_s` is None without a decision whose time is known; `hours` adds up known times, each
    counted as ten minutes at most.
    """

    name: str
    given: int
    done: int
    hours: float
    median_s: float | None


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two annotators agree on the tasks that both decided on."""

    names: tuple[str, str]
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class ReviewCounts:
    """The figures of a review.

    `by` maps a dimension (`category`, `generator`, `annotator`) to its labels: for annotators their
    own decisions count, elsewhere those that hold. `alpha` is over all tasks that two annotators or
    more decided on.
    """

    n: int
    undecided: int
    for_adjudicator: int
    adjudicated: int
    by: Mapping[str, Sequence[Rates]]
    people: Sequence[Person]
    pairs: Sequence[PairAgreement]
    alpha: Alpha

    @property
    def hours(self) -> float:
        """All hours of all people."""
        return sum(person.hours for person in self.people)


def count_review(
    settled: Sequence[Settled], annotators: Sequence[str], adjudicator: str
) -> ReviewCounts:
    """The figures of a review from what was decided on each task."""
    dimensions = list(dict.fromkeys(name for one in settled for name in one.task.labels))
    by: dict[str, list[Rates]] = {
        name: rates([(one.task.labels.get(name, ""), one.deciding) for one in settled])
        for name in dimensions
    }
    own = [(d.annotator, d) for one in settled for d in one.by]
    by["annotator"] = rates(own)
    names = list(dict.fromkeys([*annotators, *(name for name, _ in own)]))
    shared = [one for one in settled if len(one.by) > 1]
    pairs = []
    for a, b in combinations(names, 2):
        both = [one for one in shared if one.of(a) is not None and one.of(b) is not None]
        if both:
            words = [[_word(one, name) for one in both] for name in (a, b)]
            images = [one.task.image or one.task.id for one in both]
            pairs.append(PairAgreement((a, b), cohen_kappa(*words, clusters=images)))
    return ReviewCounts(
        n=len(settled),
        undecided=sum(one.deciding is None for one in settled),
        for_adjudicator=sum(one.needs_adjudicator for one in settled),
        adjudicated=sum(one.final is not None for one in settled),
        by=by,
        people=[_person(name, settled, is_adjudicator=name == adjudicator)
                for name in [*names, adjudicator]],
        pairs=pairs,
        alpha=krippendorff_alpha(
            [[d.decision for d in one.by] for one in shared],
            clusters=[one.task.image or one.task.id for one in shared],
        ),
    )  # fmt: skip


def _word(settled: Settled, name: str) -> str:
    decision = settled.of(name)
    return "" if decision is None else decision.decision


def rates(pairs: Sequence[tuple[str, Decision | None]]) -> list[Rates]:
    """Counts of decisions by label, the labels in the order of their names."""
    n = Counter(label for label, _ in pairs)
    words = Counter((label, one.decision) for label, one in pairs if one is not None)
    return [Rates(label, n[label], *(words[label, word] for word in WORDS)) for label in sorted(n)]


def _person(name: str, settled: Sequence[Settled], *, is_adjudicator: bool) -> Person:
    found = [one.final if is_adjudicator else one.of(name) for one in settled]
    done = [one for one in found if one is not None]
    given = sum(
        (one.needs_adjudicator or one.final is not None) if is_adjudicator
        else name in (one.task.annotator, one.task.second)
        for one in settled
    )  # fmt: skip
    times = [min(one.seconds, LONGEST_S) for one in done if one.seconds is not None]
    return Person(name, given, len(done), sum(times) / 3600, median(times) if times else None)
