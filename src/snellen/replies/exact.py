"""Short answers compared with a reference without a judge: letters, numbers and words.

Only an answer that is bare or announced is compared; of another reply nothing is concluded.
"""

from __future__ import annotations

import math
import re

from snellen.replies import vocabulary as words
from snellen.replies.answers import Kind, announcement, read_answer
from snellen.replies.text import Parsed, open_reply, recovered, undress, unread

# An answer in words has at most so many; a longer text is a sentence, and is not compared.
MOST_WORDS = 5
# How far apart two numbers with a fraction may be, as a share of the reference.
TOLERANCE = 0.01

_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\]]?(?:[.):]\s{0,3}\S.{0,200})?", re.S)
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})?(?:\.\d{1,15})?")
_UNIT = re.compile(r"\s{0,3}(%|percent|°|[$€£])\Z|\A\s{0,3}[$€£]")
# Words that make a clause of a few words, or take an answer back.
_CLAUSE = re.compile(
    r"\b(?:is|are|was|were|am|be|it's|i|it|there|they|this|that|or|not|no|maybe|perhaps|likely)\b",
    re.I,
)
_ARTICLE = re.compile(r"\b(?:a|an|the)\s")
_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
_NAMED = announcement(words.CHOICE_NAMES, words.CHOOSING)


def exact_verdict(reply: str, reference: str) -> Parsed:
    """Whether the answer of a reply is that of the reference; unreadable where there is none.

    A reference that is one letter is compared with the letter of an option (`(B)`, `B. red`). A
    number is equal when it is the same number: a whole number exactly, one with a fraction within
    one per cent; thousands separators, a per cent sign, a currency sign and the English words up
    to twenty are understood. Answers of at most five words are equal but for case, articles, white
    space and punctuation at the ends.

    >>> exact_verdict("The answer is (B).", "B").value
    True
    >>> exact_verdict("Answer: 1,250", "1250").value, exact_verdict("three", "4").value
    (True, False)
    >>> exact_verdict("**The flag**", "the flag").value
    True
    >>> exact_verdict("I see a flag, and behind it a shuttle that is further to the left.", "flag")
    Parsed(value=None, how='', reason='no_short_answer', note='')
    """
    cleaned = open_reply(reply, None)
    if isinstance(cleaned, Parsed):
        return cleaned
    if plain(cleaned) == plain(reference):
        return recovered(True)
    kind = Kind(_bare, _field, _NAMED, lone=lambda line: False, reads_sentences=True)
    found = read_answer(cleaned, kind)
    if not isinstance(found.value, str):
        return unread("no_short_answer")
    same = is_same(found.value, reference)
    return unread("no_short_answer") if same is None else recovered(same)


def is_same(answer: str, reference: str) -> bool | None:
    """Whether two short answers are the same letter, number or words.

    None where they cannot be compared: a letter or number is wanted, and the answer is none.
    """
    wanted = _LETTER.fullmatch(reference.strip())
    if wanted is not None and len(reference.strip(" ()[].:")) == 1:
        given = _LETTER.fullmatch(answer.strip())
        return None if given is None else given[1].upper() == wanted[1].upper()
    value, true = number_of(answer), number_of(reference)
    if true is not None:
        is_whole = true == math.floor(true)
        tolerance = 0.0 if is_whole else TOLERANCE
        return None if value is None else math.isclose(value, true, rel_tol=tolerance)
    return plain(answer) == plain(reference)


def number_of(text: str) -> float | None:
    """The number that a short answer is, None where the answer is no number.

    >>> number_of("$1,250.50"), number_of("Twelve"), number_of("12 cups")
    (1250.5, 12.0, None)
    """
    short = _UNIT.sub("", plain(text)).strip()
    if short in _SMALL:
        return float(_SMALL.index(short))
    if not any(letter.isdigit() for letter in short) or not _NUMBER.fullmatch(short):
        return None
    return float(short.replace(",", "").replace("−", "-"))


def plain(text: str) -> str:
    """A short answer without case, emphasis, articles, and punctuation at the ends."""
    folded = " ".join(undress(text).casefold().split()).strip(" .,;:!?。，")
    return _ARTICLE.sub("", folded + " ").strip()


def _bare(text: str) -> Parsed | None:
    short = undress(text).strip()
    if _LETTER.fullmatch(short) or number_of(short) is not None:
        return recovered(short)
    # More words, or a second clause, are a sentence.
    n = len(plain(short).split())
    clauses = re.search(r"[.!?;,\n]\s*\S", short) or (n > 1 and _CLAUSE.search(short))
    is_sentence = n > MOST_WORDS or clauses
    return None if not short or is_sentence or _NAMED.search(short) else recovered(short)


def _field(value: object) -> Parsed | None:
    if not isinstance(value, dict):
        return None
    for name in ("answer", "final_answer", "choice"):
        if isinstance(value.get(name), str | int | float):
            return recovered(str(value[name]))
    return None
