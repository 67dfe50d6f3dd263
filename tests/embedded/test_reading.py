"""Questions and options as the embedded reader sees them."""

from __future__ import annotations

import numpy as np
import pytest

from snellen.embedded.reading import (
    Evidence,
    decide,
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


def test_words_that_ask_are_no_subjects() -> None:
    """A question names what it is about; a question of asking words alone names nothing."""
    assert subjects_of("What color are the cat's eyes in the picture?") == ("cat", "eyes")
    assert subjects_of("What kind of material is it?") == ()


def test_no_evidence_is_not_stated() -> None:
    """A caption without segments states nothing, whatever the weights."""
    assert decide(Evidence(np.zeros((0, 0, 0)), np.zeros(0)), [], []).stated < 0
