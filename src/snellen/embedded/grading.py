"""Grade a short answer against a reference by rule: no model, no prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from snellen.embedded.quantities import Quantity, is_same_quantity, quantities
from snellen.embedded.words import (
    ORDINALS,
    RIVALS,
    STOP_WORDS,
    denies,
    is_negated,
    stem,
    tokens,
)
from snellen.records import GradeTask

_YES = frozenset({"yes", "true", "yeah", "yep", "correct"})
_NO = frozenset({"no", "false", "nope", "incorrect"})
_FINAL = re.compile(
    r"(?:final answer|correct answer|correct option|the answer|my answer|\banswer)"
    r"\s?(?:is|would be|should be|:|=)+\s?:?\s?(?:option\s)?"
    r"|therefore,?|thus,?|in conclusion,?|hence,?|(?<=[.;,]\s)so,?\s|\b(?:that|which) makes\b",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
# "The left one" holds no number.
_PRONOUN = re.compile(r"\b(the (?:\w+ ){1,2}?)ones?\b", re.IGNORECASE)
# "A. text", "(A) text", "A: text", and "A (3, 4)" where the text is in brackets.
_MARK = re.compile(r"(?:^|(?<=[\s(\[]))\(?([A-J])(?:[.):]\)?(?=\s?\S)|(?=\s?[\[(]-?\d))")
_LETTER = re.compile(r"(?:option |choice )?([A-J])(?:$|[.):*]+ ?|(?= (?:is|are|has|was) ))")
_LETTER_LOOSE = re.compile(r"(?<![\w'])[B-J](?![\w'])")
_ASKS_FOR_ORDER = re.compile(
    r"\b(?:order|sequence|left to right|right to left|top to bottom|bottom to top|coordinates?"
    r"|respectively|ranked?|sort(?:ed)?|first to last|clockwise)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_SPLIT = re.compile(r" ?(?:,(?!\d{3}(?!\d))|;|->|\u2192|>) ?(?:and )?| (?:and|&) ")
_SUM = re.compile(r"(?:total(?: of| is)?|altogether|in all|equals|makes|=)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer is right, and why; `right` is None where the rules do not decide."""

    right: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Case:
    question: str
    reference: str
    answer: str
    options: dict[str, str]


def grade(task: GradeTask) -> Grade:
    """Grade an answer: the first rule that fits the reference decides.

    >>> grade(GradeTask("How long is it?", "1.5 m", "The answer is 150 cm.")).right
    True
    >>> grade(GradeTask("What colour is it?", "red", "It is not red.")).right
    False
    """
    answer, reference, question = (
        _PRONOUN.sub(r"\1", " ".join(text.split()))
        for text in (final_answer(task.answer), task.reference, task.question)
    )
    case = _Case(question, reference, answer, options_of(task.question))
    if not any(c.isalnum() for c in answer):
        return Grade(False, "the answer holds no words")
    if any(words_of(reference)) and "".join(words_of(reference)) == "".join(words_of(answer)):
        return Grade(True, "the answer equals the reference")
    found = (rule(case) for rule in (_by_letter, _by_polarity, _by_list, _by_number))
    return next((result for result in found if result is not None), None) or _by_words(case)


def final_answer(text: str) -> str:
    """What a reply commits to: a box, or what follows its last answer phrase, or all of it.

    >>> final_answer("The car is near. So the answer is: blue.")
    'blue.'
    """
    boxes = _BOXED.findall(text)
    if boxes:
        return str(boxes[-1]).strip()
    ends = [match.end() for match in _FINAL.finditer(text)]
    rest = text[ends[-1] :].strip().split("\n\n")[0] if ends else ""
    return (rest if any(c.isalnum() for c in rest) else text).strip()


def options_of(question: str) -> dict[str, str]:
    """The lettered options that a question lists; empty unless they begin with A and B.

    >>> options_of("Which? A. red car B. blue car")
    {'A': 'red car', 'B': 'blue car'}
    """
    marks = list(_MARK.finditer(question))
    ends = [*(mark.start() for mark in marks[1:]), len(question)]
    found = {
        mark[1]: question[mark.end() : end].strip().split("\n")[0].strip(" ,;")
        for mark, end in zip(marks, ends, strict=False)
    }
    return found if {"A", "B"} <= found.keys() else {}


def words_of(text: str) -> tuple[str, ...]:
    """A text's words without articles, numbers in digits: what makes two answers equal."""
    found = tokens(text)
    # Before another single letter, and alone, A is a letter and no article.
    letters = {
        i for i, t in enumerate(found) if t == "a" and len("".join(found[i + 1 : i + 2])) < 2
    }
    return tuple(t for i, t in enumerate(found) if i in letters or t not in ("a", "an", "the"))


def _by_letter(case: _Case) -> Grade | None:
    reference, answer = (text.strip(" (*.):") for text in (case.reference, case.answer))
    same = [k for k, v in case.options.items() if words_of(v) == words_of(reference)]
    leads = _LETTER.match(reference)
    if leads:
        wanted = leads[1]
    elif len(same) == 1 or (len(reference) == 1 and case.options):
        wanted = same[0] if same else reference.upper()
    else:
        return None
    starts = _LETTER.match(answer if len(answer) > 1 else answer.upper())
    loose = set(_LETTER_LOOSE.findall(answer))
    found = starts[1] if starts else loose.pop() if len(loose) == 1 else None
    if found:
        return Grade(found == wanted, f"option {found} was chosen, the reference is {wanted}")
    text = case.options.get(wanted) or (reference[leads.end() :] if leads else "")
    if not text.strip(" (*.):") or _LETTER.match(text.strip(" (*.):")):
        return Grade(False, f"no option letter in the answer, the reference is {wanted}")
    return grade(GradeTask("", text, answer))


def _by_polarity(case: _Case) -> Grade | None:
    reference, said = words_of(case.reference), tokens(case.answer)
    if len(reference) != 1 or reference[0] not in _YES | _NO:
        return None
    marks = {t in _YES for t in said if t in (_YES | _NO) - {"correct", "no"}}
    about = {stem(t) for t in said} & {stem(t) for t in tokens(case.question)} - STOP_WORDS
    found: bool | None = None
    if said[0] in _YES | _NO:
        found = said[0] in _YES
    elif len(marks) == 1:
        found = marks.pop()
    elif about:
        found = not is_negated(case.answer)
    said_so = {True: "yes", False: "no", None: "neither yes nor no"}[found]
    return Grade(found is (reference[0] in _YES), f"the answer says {said_so}")


def _by_list(case: _Case) -> Grade | None:
    wanted, found = _entries(case.reference), _entries(case.answer)
    if len(wanted) < 2:
        return None
    is_bracketed = case.reference[0] in "([{" or ">" in case.reference
    in_order = is_bracketed or bool(_ASKS_FOR_ORDER.search(case.question))
    numbers = quantities(", ".join(wanted))
    if len(numbers) == len(wanted) and all(len(tokens(entry)) <= 2 for entry in wanted):
        said = quantities(
            ", ".join(_entries((_BRACKETS.findall(case.answer) or [case.answer])[-1]))
        )
        if not in_order:
            numbers, said = (tuple(sorted(q, key=lambda n: n.value)) for q in (numbers, said))
        same = len(said) == len(numbers) and all(map(is_same_quantity, numbers, said))
        return Grade(same, "the numbers agree" if same else "the numbers differ")
    words, place = words_of(case.answer), 0
    for entry in wanted:
        at = _find(words_of(entry), words, place) if in_order else 0
        if at < 0 or not _holds(entry, case.answer):
            return Grade(False, f"the answer lacks {entry}, or has it in another place")
        place = at + len(words_of(entry))
    extra = len(found) > len(wanted) and all(len(entry.split()) <= 4 for entry in found)
    return Grade(not extra, "the answer holds more" if extra else "the answer holds each part")


def _entries(text: str) -> list[str]:
    """The entries of a list; within brackets each comma parts two of them."""
    text = _BRACKETS.sub(lambda match: re.sub(r",(?=\S)", ", ", match[0]), text)
    parts = (part.strip(" ()[]{}.\"'") for part in _SPLIT.split(text))
    return [part for part in parts if any(c.isalnum() for c in part)]


def _by_number(case: _Case) -> Grade | None:
    """One number, or place such as the first, that the answer commits to."""
    wanted, words = quantities(case.reference), words_of(case.reference)
    places = [ORDINALS[word] for word in words if word in ORDINALS]
    if len(places) == len(words) == 1:
        wanted = (Quantity(float(places[0])),)
    if len(wanted) != 1 or len(words) > 4 or re.search(r"[A-Za-z]\d|\d[A-Z:]", case.reference):
        return None
    if not wanted[0].dimension and {stem(t) for t in words} & frozenset().union(*RIVALS):
        return None
    said = {ORDINALS[word] for word in tokens(case.answer) if word in ORDINALS}
    found = _committed(case, wanted[0])
    if len(said) == 1 and (places or found is None):
        found = Quantity(float(said.pop()))
    if found is None:
        return None if places else Grade(False, "the answer holds no number, or several")
    same = is_same_quantity(wanted[0], found)
    return Grade(same, f"the number {found.value:g} {'agrees' if same else 'does not agree'}")


def _committed(case: _Case, wanted: Quantity) -> Quantity | None:
    """The number of an answer that stands alone, before the thing asked for, or as the sum."""
    found = quantities(case.answer)
    if not found:
        return Quantity(0.0) if {"no", "none"} & set(tokens(case.answer)) else None
    asked = {stem(t) for t in tokens(case.question)} - STOP_WORDS
    sums = _SUM.split(case.answer)[1:]
    for some in (
        found,
        [q for q in found if q.word and stem(q.word) in asked],
        quantities(sums[-1])[:1] if sums else (),
        [q for q in found if q.dimension and q.dimension == wanted.dimension],
    ):
        if len({(q.value, q.dimension) for q in some}) == 1:
            return some[0]
    return None


def _by_words(case: _Case) -> Grade:
    answer = _BRACKETS.sub(" ", case.answer)
    rival = _rival(case, answer)
    if _holds(case.reference, answer):
        return Grade(not rival, f"the answer also says {rival}" if rival else "holds the reference")
    if rival or is_negated(case.answer) != is_negated(case.reference):
        return Grade(False, "the answer says something else of the same kind, or denies")
    wanted, said, asked = (
        {stem(t) for t in words_of(text) if t not in STOP_WORDS}
        for text in (case.reference, case.answer, case.question)
    )
    if wanted and (wanted <= said or (wanted - asked and wanted - asked <= said)):
        return Grade(True, "the answer holds what the question left open")
    if said - asked and said - asked <= wanted and wanted - said <= asked:
        return Grade(True, "the answer holds what the question left open")
    if not wanted or not said or any(c.isdigit() for c in case.reference):
        return Grade(False, "other words than the reference")
    return Grade(None, "the words agree in part" if wanted & said else "the words differ")


def _rival(case: _Case, answer: str) -> str | None:
    """A word of the answer that competes with one of the reference, such as another colour."""
    wanted, said, asked = (
        {stem(t) for t in tokens(text)} for text in (case.reference, answer, case.question)
    )
    for kind in RIVALS:
        others = (said & kind) - wanted - (asked if wanted & said & kind else set())
        if wanted & kind and others and len(words_of(answer)) <= 12:
            return min(others)
    return None


def _holds(part: str, whole: str) -> bool:
    """Whether a text holds another word for word, without a negation right before it."""
    raw = words_of(whole)
    sought, said = tuple(map(stem, words_of(part))), tuple(map(stem, raw))
    place = _find(sought, said, 0)
    while place >= 0:
        if is_negated(part) or not _is_denied(raw, place):
            return True
        place = _find(sought, said, place + 1)
    return False


def _is_denied(words: tuple[str, ...], place: int) -> bool:
    """Whether one of the three words before a place denies it; "but" ends what is denied."""
    for distance, word in enumerate(reversed(words[max(0, place - 3) : place]), start=1):
        if word in ("but", "rather", "instead", "so", "because", "since"):
            return False
        # "No, it is red" denies nothing of what follows.
        if denies(word) and not (word == "no" and (distance > 2 or distance == place)):
            return True
    return False


def _find(sought: tuple[str, ...], said: tuple[str, ...], start: int) -> int:
    """Where words stand in a row among others from a place on, or -1."""
    places = range(start, len(said) - len(sought) + 1) if sought else ()
    return next((i for i in places if said[i : i + len(sought)] == sought), -1)
