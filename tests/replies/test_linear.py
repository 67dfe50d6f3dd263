"""No text makes a parser or a fence stand still: the time grows with the length alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from snellen.replies import (
    fence,
    fence_caption,
    normalize_escape,
    official_letter_captionqa,
    official_verdict,
    parse_assessment,
    parse_letter,
    parse_letters,
    parse_statement,
    parse_verdict,
    soften_turns,
    split_thinking,
)

READERS: dict[str, Callable[[str], object]] = {
    "verdict": parse_verdict,
    "statement": parse_statement,
    "letter": lambda text: parse_letter(text, ("red", "two dogs", "no light")),
    "letters": lambda text: parse_letters(text, 5),
    "assessment": lambda text: parse_assessment(text, 5, 5),
    "thoughts": split_thinking,
    "official verdict": official_verdict,
    "official letter": lambda text: official_letter_captionqa(text, 4),
    "escapes": normalize_escape,
    "fence": fence,
    "fenced caption": fence_caption,
    "turns": soften_turns,
}
PIECES = (
    "[", "[ ", "<", "< ", "<\u200b", "<c", "<result>", "</result>", "<GroupA>",
    "<Assessment><GroupA>", "Group A:\n", "&lt;", "<think>", "</think>", "<think></think>",
    "<reasoning>", "<|channel>thought", "<|channel|>analysis<|message|>", "analysis", "</s>", "{",
    '{"a":', '"', "'", '\\"', "/*", "*", "```\n", "\n", " ", "\t \n", "“", "(", "A, ", "B\n",
    "1. B\n", "Answer: ", "Answer:\n", "True\n", "my final ", "the answer is B. ", "\\boxed{",
    "[[", "[judge] ", "[reason] [judge]", "=", "\\", "> ", "maybe ", "\ufdfa",
)  # fmt: skip


def seconds(read: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    read(text)
    return time.process_time() - started


def grows_faster(read: Callable[[str], object], make: Callable[[int], str], n: int) -> bool:
    """Whether sixteen times the text takes more than a hundred times the work, thrice."""
    return all(
        seconds(read, make(16 * n)) > 100 * max(seconds(read, make(n)), 0.002) for _ in range(3)
    )


def texts(piece: str, around: tuple[str, str]) -> Callable[[int], str]:
    def make(n: int) -> str:
        return around[0] + (piece * (n // len(piece) + 1))[:n] + around[1]

    return make


AROUND = (("", ""), ("[judge] True ", " x"))


@pytest.mark.parametrize("name", [n for n in READERS if n not in ("statement", "letters")])
def test_ten_thousand_characters_of_one_piece(name: str) -> None:
    """Work grows in proportion, not with the square, for each of fifty patterns."""
    slow = [p for p in PIECES if grows_faster(READERS[name], texts(p, AROUND[1]), 625)]
    assert slow == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_million_characters_of_one_piece(name: str) -> None:
    """The same up to a million characters, of which parsers read what they state."""
    slow = [p for p in PIECES if grows_faster(READERS[name], texts(p, AROUND[0]), 62_500)]
    assert slow == []
