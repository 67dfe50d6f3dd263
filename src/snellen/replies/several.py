"""Several letters: the choices of a reader's reply to questions that were asked in one call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from snellen.replies.cleaning import Parsed, blank_reason, clean, json_places, undress, unread
from snellen.replies.letters import ANSWER_KEYS, UNCERTAIN, parse_letter

_NUMBERED = re.compile(r"^\s*(?:q(?:uestion)?\s*)?[(\[]?(\d{1,4})\s*[.):\]\-–=]+\s*(.+)$", re.I)


def parse_letters(
    text: str,
    n: int,
    *,
    options: Sequence[Sequence[str]] = (),
    uncertain: str | None = UNCERTAIN,
    finish_reason: str | None = None,
) -> tuple[Parsed, ...]:
    r"""The letters for `n` questions that were asked in one call, in their order.

    Numbered lines (from 1, or from 0), one line an answer, or a JSON list or object. With another
    count than `n` nothing is read. `options` are those of each question; without them, four of
    unknown text.

    >>> [p.value for p in parse_letters("1. B\n2. E", 2)]
    ['B', 'E']
    >>> parse_letters("B", 2)[0].reason
    'wrong_count'
    """
    cleaned = clean(text)
    if not cleaned:
        reason = blank_reason(text, reasoning=None, finish_reason=finish_reason)
        return (unread(reason or "no_verdict"),) * n
    answers = _numbered_json(cleaned) or _numbered_lines(cleaned)
    if finish_reason == "length" and len(answers) != n:
        return (unread("truncated"),) * n
    if sorted(answers) == list(range(n)):
        answers = {number + 1: said for number, said in answers.items()}
    if sorted(answers) != list(range(1, n + 1)):
        return (unread("wrong_count"),) * n
    each = options or [("\0a", "\0b", "\0c", "\0d")] * n
    return tuple(_read_said(answers[i + 1], each[i], uncertain) for i in range(n))


# Where the next answer begins in a line that holds them all: "1. B, 2. C".
_NEXT_NUMBER = re.compile(r"(?<![\s,;])[\s,;]+(?=(?:q\s*)?[(\[]?\d{1,4}\s*[.):\]])", re.I)


def _read_said(said: list[str], options: Sequence[str], uncertain: str | None) -> Parsed:
    read = [parse_letter(one, options, uncertain=uncertain) for one in said]
    if len({p.value for p in read}) > 1:
        return unread("conflict", " ".join(said))
    return read[0]


def _numbered_lines(text: str) -> dict[int, list[str]]:
    lines = [undress(line) for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        lines = _NEXT_NUMBER.split(lines[0])
    numbered = [m for m in map(_NUMBERED.match, lines) if m]
    answers: dict[int, list[str]] = {}
    if numbered:
        for match in numbered:
            answers.setdefault(int(match[1]), []).append(match[2])
        return answers
    pieces = re.split(r"\s*[,;]\s*|\s+", lines[0]) if len(lines) == 1 else lines
    return {i: [piece] for i, piece in enumerate(pieces, start=1)}


def _numbered_json(text: str) -> dict[int, list[str]]:
    answers: dict[int, list[str]] = {}
    for _, _, value in json_places(text):
        rows = value.items() if isinstance(value, dict) else enumerate(value, start=1)
        for key, row in rows:
            number, said = _row(key, row)
            if number is not None:
                answers.setdefault(number, []).append(said)
            elif isinstance(row, list):
                return {i: [str(v)] for i, v in enumerate(row, start=1)}
    return answers


def _row(key: Any, row: Any) -> tuple[int | None, str]:
    if isinstance(row, dict):
        names = {re.sub(r"[\W_]", "", k.lower()): v for k, v in row.items()}
        said = next((v for k, v in names.items() if k in ANSWER_KEYS), "")
        given = next((names[k] for k in ("number", "id", "question", "n") if k in names), key)
        key, row = given, said
    digits = re.fullmatch(r"\D*(\d{1,4})", str(key))
    return (int(digits[1]) if digits and not isinstance(row, list) else None), str(row)
