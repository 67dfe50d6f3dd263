"""Bare XML in replies: one element, each wanted part once, and prose inside."""

from __future__ import annotations

import pytest

from snellen.builders.rubrics.tags import bare, whole_number
from snellen.records import Reply
from snellen.replies.typed import UnreadableError

GOOD = "<r><reasoning>a < b & c</reasoning><score>7</score></r>"


@pytest.mark.parametrize(
    "text", [GOOD, f"\n{GOOD}\n", f"```xml\n{GOOD}\n```", f"<think>Is <r> it?</think>\n{GOOD}"]
)
def test_fences_and_thoughts_are_taken_off(text: str) -> None:
    """The element is read with whatever letters its texts have."""
    assert whole_number(bare(Reply(text), "r"), "score", most=10) == 7


@pytest.mark.parametrize(
    "text", ["", "Seven.", f"Here: {GOOD}", f"{GOOD} Done.", GOOD + GOOD, GOOD[:-4]]
)
def test_anything_around_or_cut_off_is_refused(text: str) -> None:
    """Prose around it, two of it, or half of it is not the reply that was asked for."""
    with pytest.raises(UnreadableError):
        bare(Reply(text), "r")


@pytest.mark.parametrize("score", ["0", "11", "7.5", "7/10", "seven", "", "-3"])
def test_a_score_is_a_whole_number_in_its_range(score: str) -> None:
    """No other form of a number is guessed at."""
    with pytest.raises(UnreadableError):
        whole_number(f"<score>{score}</score>", "score", most=10)
