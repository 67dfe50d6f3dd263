"""Questions and options as the embedded reader sees them."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.embedded.reading import (
    Evidence,
    decide,
    head_of,
    is_nothing,
    statement_of,
    subjects_of,
)


@pytest.mark.parametrize(
    ("question", "option", "statement"),
    [
        ("What color is the car?", "Dark red", "the car is dark red"),
        ("How many birds fly above it?", "Three", "three birds fly above it"),
        ("Where is the helmet?", "On a table", "the helmet is on a table"),
        ("What does the sign say?", "STOP", "does the sign say STOP"),
    ],
)
def test_question_and_option_become_a_statement(question: str, option: str, statement: str) -> None:
    """The usual questions are turned around; capitals that mean something stay."""
    assert statement_of(question, option) == statement


def test_a_question_names_its_subjects_and_its_head() -> None:
    """Words that ask are no subjects; the head is the noun after the first article."""
    question = "What color are the cat's eyes in the picture?"
    assert subjects_of(question) == ("cat", "eyes")
    assert head_of(question) == ("eyes",)
    assert head_of("Why?") == ()


def test_none_and_zero_say_nothing() -> None:
    """An option that names a thing says something even if it denies another."""
    assert all(is_nothing(option) for option in ("None", "Nothing", "0", "None of them"))
    assert not any(is_nothing(option) for option in ("No hat", "Zebra", "10"))


def test_no_evidence_is_not_stated() -> None:
    """A caption without segments states nothing, whatever the weights."""
    assert decide(Evidence(np.zeros((0, 0, 0)), np.zeros(0)), [], []).stated < 0
