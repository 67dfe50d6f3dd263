"""Duplicates among questions: two levels of cosine similarity, and what keeps questions apart.

Source: CapProbe, section 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from snellen.builders.options import DedupOptions
from snellen.builders.rows import QuestionRow
from snellen.builders.steps import Rejected
from snellen.errors import DataError

Vectors = NDArray[np.float32]
Level = Literal["across", "within"]
REASONS: dict[Level, str] = {"across": "duplicate_in_picture", "within": "duplicate_in_region"}
SHORTEST = 2

# Words whose exchange makes another question, each with the group of those that it stands for.
_GROUPS: dict[str, tuple[str, ...]] = {
    "left": ("left", "leftmost", "left-hand"),
    "right": ("right", "rightmost", "right-hand"),
    "up": ("above", "top", "upper", "over", "upward", "upwards", "up", "highest", "uppermost"),
    "down": ("below", "bottom", "lower", "under", "beneath", "underneath", "downward", "down",
             "lowest"),
    "front": ("front", "foreground", "nearest", "closest"),
    "back": ("behind", "background", "back", "rear", "farthest", "furthest"),
    "middle": ("centre", "center", "middle", "central"),
    "inside": ("inside", "indoors", "within"),
    "outside": ("outside", "outdoors"),
    "not": ("not", "no", "never", "without", "none", "isn't", "aren't", "doesn't", "don't",
            "except", "absent", "missing"),
}  # fmt: skip
_COLOURS = (
    "red", "green", "blue", "yellow", "orange", "purple", "violet", "pink", "brown", "black",
    "white", "grey", "gray", "silver", "gold", "golden", "beige", "cyan", "turquoise", "maroon",
    "navy", "teal", "cream", "tan",
)  # fmt: skip
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "first", "second", "third", "fourth", "fifth", "sixth", "last", "single",
    "double", "half",
)  # fmt: skip
_SIGNS = {
    **{word: group for group, words in _GROUPS.items() for word in words},
    **{word: "grey" if word == "gray" else "gold" if word == "golden" else word
       for word in (*_COLOURS, *_NUMBERS)},
}  # fmt: skip
_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class Removal:
    """A question that was removed: on which level, for the likeness to which other one."""

    id: str
    partner: str
    similarity: float
    level: Level


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """What is left, in order, what was removed, and how many pairs a rule kept apart."""

    kept: tuple[QuestionRow, ...]
    removals: tuple[Removal, ...] = ()
    kept_by_answer: int = 0
    kept_by_guard: int = 0

    def rejected(self, rows: Iterable[QuestionRow]) -> tuple[Rejected, ...]:
        """The removals as rows of `rejected.jsonl`."""
        regions = {row.id: row.region_id for row in rows}
        return tuple(
            Rejected(id=one.id, made_from=(regions[one.id],), reason=REASONS[one.level],
                     detail={"partner": one.partner, "similarity": one.similarity})
            for one in self.removals
        )  # fmt: skip


def embedded_text(row: QuestionRow) -> str:
    """What is embedded of a question: its text and all options. Source: section 3.5.

    Options are in the order of their letters with the letters left out.
    """
    return " ".join((row.question, *row.options))


def unit_vectors(vectors: NDArray[np.generic], rows: Sequence[QuestionRow]) -> Vectors:
    """Embeddings (n, d) of length 1.

    Raises:
        DataError: one is not finite, zero or too short, or there is not one a question.
    """
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or len(found) != len(rows) or found.shape[1] < SHORTEST:
        raise DataError(
            f"expected {len(rows)} embeddings of one length, found an array of {found.shape}",
            hint="check the embeddings endpoint",
        )
    lengths = np.linalg.norm(found, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths < 1e-12))
    if len(bad):
        what = "zero" if np.isfinite(lengths[bad[0]]) else "not finite"
        raise DataError(
            f"the embedding of question {rows[bad[0]].id} is {what}",
            hint="check the embeddings endpoint: such a vector is like all others, or like none",
        )
    unit: Vectors = (found / lengths[:, None]).astype(np.float32)
    return unit


def in_order(rows: Iterable[QuestionRow]) -> list[QuestionRow]:
    """Questions in the order that says which is the later one: region, generator, index."""
    return sorted(rows, key=lambda row: (row.region_id, row.generator, row.index, row.id))


def deduplicate(
    rows: Sequence[QuestionRow], vectors: NDArray[np.generic], options: DedupOptions
) -> Deduplicated:
    """Removes the later one of each pair of like questions of one picture.

    `vectors` (n, d) are in the order of `rows`. Level 1 compares all pairs of the picture, level 2
    the survivors within each region. A similarity counts when it is strictly above its threshold.
    Pairs whose answers differ in their texts stay, and so do those that the guard keeps apart.
    """
    unit = unit_vectors(vectors, rows) if rows else np.zeros((0, SHORTEST), np.float32)
    place = {row.id: k for k, row in enumerate(rows)}
    ordered = in_order(rows)
    unit = unit[[place[row.id] for row in ordered]]
    comparison = _Comparison(ordered, unit, options)
    everywhere = list(range(len(ordered)))
    gone = comparison.remove(everywhere, options.across, "across")
    alive = [k for k in everywhere if k not in gone]
    regions: dict[str, list[int]] = {}
    for k in alive:
        regions.setdefault(ordered[k].region_id, []).append(k)
    for members in regions.values():
        gone |= comparison.remove(members, options.within, "within")
    return Deduplicated(
        tuple(row for k, row in enumerate(ordered) if k not in gone),
        tuple(gone[k] for k in sorted(gone)),
        comparison.by_answer,
        comparison.by_guard,
    )


class _Comparison:
    """The pairs of one picture's questions, and how many of them a rule has kept apart."""

    def __init__(self, rows: Sequence[QuestionRow], unit: Vectors, options: DedupOptions) -> None:
        self._rows, self._options = rows, options
        # Cosines are compared at 6 decimals: the order of a matrix product's sums is no matter.
        self._near = np.round(unit.astype(np.float64) @ unit.T.astype(np.float64), 6)
        self.by_answer = self.by_guard = 0

    def remove(self, members: Sequence[int], above: float, level: Level) -> dict[int, Removal]:
        """The members that are like an earlier one, each with the first such one."""
        gone: dict[int, Removal] = {}
        near = self._near[np.ix_(members, members)]
        for later, earlier in zip(*np.nonzero(np.tril(near > above, -1)), strict=True):
            b, a = members[later], members[earlier]
            if b in gone or (self._options.kept_only and a in gone):
                continue
            if self._may_differ(a, b):
                continue
            row, partner = self._rows[b], self._rows[a]
            gone[b] = Removal(row.id, partner.id, float(self._near[b, a]), level)
        return gone

    def _may_differ(self, a: int, b: int) -> bool:
        one, other = self._rows[a], self._rows[b]
        if folded(one.right) != folded(other.right):
            self.by_answer += 1
            return True
        if self._options.guard and signs(one.question) != signs(other.question):
            self.by_guard += 1
            return True
        return False


def folded(text: str) -> str:
    """A text without the differences that do not tell answers apart.

    >>> folded(" Dark  red. ")
    'dark red'
    """
    return " ".join(text.casefold().split()).strip(" .")


def signs(text: str) -> tuple[str, ...]:
    """The words of direction, number, colour and negation of a text, sorted.

    >>> signs("Which of the 2 red cups is left of the bus?"), signs("What is not red?")
    (('2', 'left', 'red'), ('not', 'red'))
    """
    found = (token.casefold().replace("’", "'") for token in _TOKEN.findall(text))
    return tuple(sorted({_SIGNS.get(t, t) for t in found if t in _SIGNS or t[0].isdigit()}))


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a threshold would do on a labelled sample: shares of 1, None where nothing counts."""

    value: float
    precision: float | None
    recall: float | None
    f1: float


def calibrate(
    similarities: Sequence[float], are_same: Sequence[bool], *, step: float = 0.01
) -> tuple[Threshold, ...]:
    """What each threshold from 0.5 to 0.99 does on pairs that people have labelled.

    Precision is the share of pairs above the threshold that are the same, recall the share of
    pairs that are the same and above it.

    >>> best(calibrate([0.95, 0.9, 0.7], [True, True, False])).value
    0.7

    Raises:
        DataError: there is no pair that is the same, or none that is not.
    """
    same = np.asarray(are_same, bool)
    values = np.asarray(similarities, float)
    if not same.any() or same.all():
        raise DataError(
            "the labelled pairs are all alike", hint="label pairs of both kinds: same and not"
        )
    found = []
    for threshold in np.arange(0.5, 1.0, step).round(6):
        above = np.round(values, 6) > threshold
        hits = int((above & same).sum())
        precision = hits / int(above.sum()) if above.any() else None
        share = hits / int(same.sum())
        f1 = 2 * hits / (int(above.sum()) + int(same.sum()))
        found.append(Threshold(float(threshold), precision, share, f1))
    return tuple(found)


def best(thresholds: Sequence[Threshold]) -> Threshold:
    """The threshold with the best F1; of equals the lowest."""
    return max(thresholds, key=lambda one: (one.f1, -one.value))
