"""Short answers compared without a judge: letters, numbers and words, and nothing guessed."""

from __future__ import annotations

import pytest

from snellen.replies.exact import exact_verdict

RIGHT = [
    ("B", "B"),
    ("b", "B"),
    ("B. red", "B"),
    ("The answer is (B).", "(B)"),
    ('{"answer": "C"}', "C"),
    ("<think>B?</think>C", "C"),
    ("Let me count: 1, 2, 3.\nFinal answer: 3", "3"),
    ("Answer: 1,250", "1250"),
    ("twelve", "12"),
    ("$12", "12"),
    ("50%", "50"),
    ("3.14", "3.1416"),
    ("\\boxed{7}", "7"),
    ("**The flag**.", "the flag"),
    ("The model of the space shuttle", "model of the space shuttle"),
]
WRONG = [("A", "B"), ("three", "4"), ("3.2", "3.1416"), ("11", "12"), ("left", "right")]
UNREAD = [
    ("", "B"),
    ("A cat", "A"),
    ("Answer: A or B", "A"),
    ("The answer is not B.", "B"),
    ("B, but it could be C.", "B"),
    ("There are four.", "4"),
    ("4 or 5", "4"),
    ("It is blue", "blue"),
    ("I see a flag, and behind it a shuttle that is further to the left.", "flag"),
]


@pytest.mark.parametrize(("reply", "reference"), RIGHT)
def test_the_same_answer_in_another_dress_is_right(reply: str, reference: str) -> None:
    """Case, articles, emphasis, separators, boxes, thoughts and announcements change nothing."""
    assert exact_verdict(reply, reference).value is True


@pytest.mark.parametrize(("reply", "reference"), WRONG)
def test_another_answer_of_the_same_kind_is_wrong(reply: str, reference: str) -> None:
    """Another letter, number or short text is another answer."""
    assert exact_verdict(reply, reference).value is False


@pytest.mark.parametrize(("reply", "reference"), UNREAD)
def test_nothing_is_concluded_from_prose(reply: str, reference: str) -> None:
    """Sentences, hedges and refusals have no verdict, neither right nor wrong."""
    assert exact_verdict(reply, reference).value is None
