"""Frames and polarity of rubrics."""

from __future__ import annotations

import pytest

from snellen.embedded.statements import Claim, claim_of


@pytest.mark.parametrize(
    ("statement", "text", "forbidden"),
    [
        ("The response must mention a cat.", "cat", False),
        ("The response must NOT mention a dog.", "dog", True),
        ("The response should avoid describing the car as red.", "car as red", True),
        ("The caption doesn't mention a dog", "dog", True),
        ("A helmet must be mentioned.", "helmet", False),
        ("Steam must not be mentioned.", "Steam", True),
        ("No dog may be mentioned.", "dog", True),
        ("There must be no mention of snow.", "snow", True),
        ("It must be stated that the cup is full.", "the cup is full", False),
        ("The response must not omit the cat.", "cat", False),
        ("The response must say that the cup is not full.", "the cup is not full", False),
        ("Readers learn that the cat is big.", "the cat is big", False),
        ("The account is silent about gloves.", "gloves", True),
        ("The car is red.", "car is red", False),
    ],
)
def test_a_statement_is_split_into_claim_and_polarity(
    statement: str, text: str, forbidden: bool
) -> None:
    """The frame is dropped, and what is forbidden is noticed."""
    assert claim_of(statement) == Claim(text, forbidden)
