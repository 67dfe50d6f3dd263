"""What a benchmark of perception questions is made of, as the public set's pages print it.

Source: PerceptionBench, the data set and its evaluation notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from snellen.builders.perception.rows import DECOMPOSED, NEW, NEWLY_WRITTEN, STRATA
from snellen.schemas import ERROR_CATEGORIES


class Counted(msgspec.Struct, frozen=True):
    """What is counted of one question; lengths are in characters."""

    capability: str
    source_bmk: str
    pictures: int
    problem_chars: int
    answer_chars: int
    has_hint: bool
    stratum: str = ""


class CapabilityCounts(msgspec.Struct, frozen=True):
    """The questions of one capability: where they come from, and how hard they are."""

    questions: int
    decomposed: int
    new: int
    pictures: int
    answer_chars: float
    strata: dict[str, int]


class PerceptionCounts(msgspec.Struct, frozen=True):
    """The whole benchmark, and each capability; `sources` counts questions by source benchmark."""

    questions: int
    decomposed: int
    new: int
    pictures: int
    several_pictures: int
    most_pictures: int
    hints: int
    problem_chars: float | None
    answer_chars: float | None
    strata: dict[str, int]
    sources: dict[str, int]
    capabilities: dict[str, CapabilityCounts]

    @property
    def new_share(self) -> float | None:
        """The share of questions that come from no failure."""
        return self.new / self.questions if self.questions else None


def count_questions(found: Iterable[Counted]) -> PerceptionCounts:
    """Counts questions; capabilities stand in the order of the public set, others after them."""
    rows = list(found)
    labels = [name for name in ERROR_CATEGORIES if any(row.capability == name for row in rows)]
    labels += sorted({row.capability for row in rows} - set(labels))
    origins = _origins(rows)
    sources = Counter(row.source_bmk for row in rows if row.source_bmk != NEWLY_WRITTEN)
    return PerceptionCounts(
        questions=len(rows),
        decomposed=origins[DECOMPOSED],
        new=origins[NEW],
        pictures=sum(row.pictures for row in rows),
        several_pictures=sum(row.pictures > 1 for row in rows),
        most_pictures=max((row.pictures for row in rows), default=0),
        hints=sum(row.has_hint for row in rows),
        problem_chars=fmean(row.problem_chars for row in rows) if rows else None,
        answer_chars=fmean(row.answer_chars for row in rows) if rows else None,
        strata=_strata(rows),
        sources=dict(sorted(sources.items(), key=lambda pair: (-pair[1], pair[0]))),
        capabilities={
            name: _capability([row for row in rows if row.capability == name]) for name in labels
        },
    )


def _capability(rows: Sequence[Counted]) -> CapabilityCounts:
    origins = _origins(rows)
    return CapabilityCounts(
        len(rows),
        origins[DECOMPOSED],
        origins[NEW],
        sum(row.pictures for row in rows),
        fmean(row.answer_chars for row in rows),
        _strata(rows),
    )


def _origins(rows: Sequence[Counted]) -> Counter[str]:
    return Counter(NEW if row.source_bmk == NEWLY_WRITTEN else DECOMPOSED for row in rows)


def _strata(rows: Sequence[Counted]) -> dict[str, int]:
    return {name: n for name in STRATA if (n := sum(row.stratum == name for row in rows))}
