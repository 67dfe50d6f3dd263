"""Checks of statements by code: form, length, one fact each, and no two that say the same.

They compare words, hence find what is plainly wrong; the trial on the golden caption and people
find the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from snellen.builders.dedup import signs
from snellen.builders.rubrics.rows import MUST_RIGHT, RubricRow
from snellen.builders.steps import Made, Rejected

SHORTEST = 2
_FORM = re.compile(r"The response must (?P<no>not )?(?P<rest>\S.*)", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|(?<!\w)'[^']*'(?!\w)|`[^`]*`|「[^」]*」")
_SEVERAL = re.compile(
    r";|[.!?]\s+\S|\b(?:and|as well as|but|while|whereas|plus|along with)\b", re.IGNORECASE
)
# A demand for one thing or another leaves room for one fact; a ban of two is two bans.
_EITHER = re.compile(r"\bn?or\b", re.IGNORECASE)
# Pairs that are one fact: a range, two colours of one thing, a numeral.
_PAIR = re.compile(
    r"\bbetween\b[^,;.]{1,60}?\band\b|\b(?:black|white|red|green|blue|yellow|orange|purple|pink"
    r"|brown|gr[ae]y|gold|silver) and (?:black|white|red|green|blue|yellow|orange|purple|pink"
    r"|brown|gr[ae]y|gold|silver)\b|\b(?:hundred|thousand) and\b|\bmore or less\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
# Words that a statement is built with, and that say nothing about the picture.
_EMPTY = frozenset(
    """a an the that there is are was were be being been it its this these those of to in on at by
    with for from as into onto has have had mention mentions state states identify identifies
    describe describes indicate indicates report reports say says note notes specify specifies
    recognise recognises recognize recognizes name names claim claims include includes contain
    contains show shows showing shown image picture photo scene visible exactly correctly
    explicitly clearly presence any some""".split()  # noqa: SIM905
)
_LEFT_OF = re.compile(
    r"\b(?:to the |on the )?(?:left|right) of\b|\b(?:above|below|over|under|behind)\b"
    r"|\bin front of\b",
    re.IGNORECASE,
)
_DIRECTIONS = {"left", "right", "up", "down", "front", "back", "middle", "inside", "outside"}
_PLACES = {"first", "second", "third", "fourth", "fifth", "sixth", "last"}
_DIGITS = dict(enumerate("zero one two three four five six seven eight nine ten".split()))  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Said:
    """What a statement says, as words: whether it forbids, and its contents, signs apart.

    `signs` are its words of direction, number, colour and negation; `sides` its relations in space.
    """

    forbids: bool
    words: frozenset[str]
    signs: tuple[str, ...]
    sides: tuple[str, ...]

    @property
    def all(self) -> frozenset[str]:
        """Contents and signs together."""
        return self.words | set(self.signs)


def said_in(text: str) -> Said:
    """The contents of a statement in the form of a rubric."""
    form = _FORM.fullmatch(text)
    rest = form["rest"] if form else text
    found = tuple(_DIGITS.get(int(one), one) if one.isdecimal() else one for one in signs(rest))
    words = {_stem(word) for word in _WORD.findall(rest.casefold()) if word not in _EMPTY}
    sides = tuple(m[0].casefold() for m in _LEFT_OF.finditer(rest))
    return Said(
        bool(form and form["no"]),
        frozenset(words - {_stem(one) for one in signs(rest)}),
        tuple(sorted(found)),
        sides,
    )


def _stem(word: str) -> str:
    """A word without the ending of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def fault_of(text: str, *, max_words: int) -> str | None:
    """What is wrong with a statement by itself, as a reason, or None.

    >>> fault_of("The response must identify the cup as red.", max_words=40)
    >>> fault_of("The response must mention a cup and a plate.", max_words=40)
    'not_atomic'
    """
    form = _FORM.fullmatch(text)
    if form is None:
        return "other_form"
    if not SHORTEST <= len(form["rest"].split()) <= max_words:
        return "length"
    plain = _PAIR.sub(" ", _QUOTED.sub(" Q ", form["rest"]))
    several = _SEVERAL.search(plain.rstrip(" .!")) or (form["no"] and _EITHER.search(plain))
    return "not_atomic" if several else None


def clash(one: Said, other: Said) -> str | None:
    """How two statements about one picture cannot stand together, as a reason, or None.

    They are duplicates when they say the same in the same words, and contradict each other when one
    demands what the other forbids, or when both demand the same of another number, colour or side.
    """
    if one.words != other.words:
        return None
    if one.forbids != other.forbids:
        return "contradiction" if one.signs == other.signs else None
    if one.signs == other.signs and one.sides == other.sides:
        return "duplicate"
    differing = set(one.signs) ^ set(other.signs)
    if one.forbids or len(differing) != 2 or differing & _PLACES:
        return None
    is_same_place = not differing & _DIRECTIONS
    return "contradiction" if is_same_place or (one.sides and other.sides) else None


def entails(must: Said, easy: Said) -> bool:
    """Whether a description that meets a Must-Right statement meets the other one as well.

    A demand entails each demand for less, a ban each ban of something more special.
    """
    if must.forbids != easy.forbids:
        return False
    return must.all <= easy.all if must.forbids else easy.all <= must.all


def check(rows: Iterable[RubricRow], *, max_words: int) -> Made:
    """The statements of one picture that pass; the others are dropped, each with its reason.

    Must-Right ones go first. Of two that clash the later is dropped: should the earlier one be the
    wrong one, the golden caption fails it in the trial.
    """
    kept: list[tuple[RubricRow, Said]] = []
    gone: list[Rejected] = []
    for row in sorted(rows, key=lambda one: (one.kind != MUST_RIGHT, one.index)):
        said = said_in(row.text)
        reason, partner = fault_of(row.text, max_words=max_words), ""
        if reason is None:
            reason, partner = _against(row, said, kept)
        if reason is None:
            kept.append((row, said))
            continue
        detail = {"text": row.text} | ({"partner": partner} if partner else {})
        gone.append(Rejected(id=row.id, made_from=(row.image_id,), reason=reason, detail=detail))
    return Made(tuple(row for row, _ in kept), dropped=tuple(gone))


def _against(
    row: RubricRow, said: Said, kept: Sequence[tuple[RubricRow, Said]]
) -> tuple[str | None, str]:
    for other, theirs in kept:
        found = clash(theirs, said)
        if found is None and other.kind == MUST_RIGHT != row.kind and entails(theirs, said):
            found = "entailed"
        if found is not None:
            return found, other.id
    return None, ""


def gated(rows: Sequence[RubricRow]) -> Made:
    """Statements of pictures that have a Must-Right one; without a gate the others mean nothing."""
    with_gate = {row.image_id for row in rows if row.kind == MUST_RIGHT}
    gone = tuple(
        Rejected(id=row.id, made_from=(row.image_id,), reason="no_must_right")
        for row in rows
        if row.image_id not in with_gate
    )
    return Made(tuple(row for row in rows if row.image_id in with_gate), gone)
