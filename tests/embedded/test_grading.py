"""Grading of short answers by rule alone."""

from __future__ import annotations

import pytest

from snellen.embedded.grading import final_answer, grade, options_of
from snellen.records import GradeTask


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I see a cat. Final answer: **blue**", "**blue**"),
        (r"so \boxed{12}", "12"),
        ("blue", "blue"),
        ("The answer is:", "The answer is:"),
    ],
)
def test_the_final_answer_is_what_a_reply_commits_to(text: str, expected: str) -> None:
    """The last announced answer counts, else the whole reply."""
    assert final_answer(text) == expected


def test_options_are_read_in_their_usual_dress() -> None:
    """Dots, brackets, and boxes of numbers."""
    assert options_of("Which?\n(A) red\n(B) blue") == {"A": "red", "B": "blue"}
    assert options_of("Which? A [1, 2], B [3, 4]") == {"A": "[1, 2]", "B": "[3, 4]"}
    assert options_of("Is vitamin A. good?") == {}


@pytest.mark.parametrize(
    ("question", "reference", "answer", "right"),
    [
        ("Which is higher, A or B?", "A", "A is higher than B.", True),
        ("Is a collar visible?", "no", "I don't see any collar.", True),
        ("Is a collar visible?", "yes", "The cat isn't wearing a collar.", False),
        ("Which flower: dahlia or tulip?", "dahlia", "Not a tulip but a dahlia.", True),
        ("Which colour?", "red", "No, it is red.", True),
        ("The first or the second?", "the first", "Only in portrait 1.", True),
        ("How many together?", "5", "2 + 3 = 5", True),
        ("When?", "8 pm", "20:00", True),
        ("Where is the box?", "[100, 265]", "[100,265]", True),
        ("Order them.", "C, A, B", "A, C, B", False),
        ("Which line?", "the bottom one", "Bottom", True),
    ],
)
def test_rules_decide_alone(question: str, reference: str, answer: str, right: bool) -> None:
    """These need no vectors."""
    assert grade(GradeTask(question, reference, answer)).right is right


def test_other_words_without_a_rule_are_left_open() -> None:
    """What only meaning could decide is not decided here."""
    assert grade(GradeTask("Who is it?", "a physician", "a doctor on duty")).right in (None, True)
    assert grade(GradeTask("What is it?", "a kitten", "a young pet")).right is None
