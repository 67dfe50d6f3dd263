"""Frames and polarity of rubrics."""

from __future__ import annotations

import pytest

from snellen.embedded.statements import Claim, claim_of


@pytest.mark.parametrize(
    ("statement", "forms", "forbidden"),
    [
        ("The response must mention a cat.", ("a cat",), False),
        ("The response must NOT mention a dog.", ("a dog",), True),
        ("The response should avoid describing the car as red.", ("the car as red",), True),
        ("The caption doesn't mention a dog", ("a dog",), True),
        ("A helmet must be mentioned.", ("A helmet",), False),
        ("Steam must not be mentioned.", ("Steam",), True),
        ("No dog may be mentioned.", ("dog",), True),
        ("There must be no mention of snow.", ("snow",), True),
        ("It must be stated that the cup is full.", ("the cup is full",), False),
        ("The response must not omit the cat.", ("the cat",), False),
        ("The response must say that it is a cup, not a bowl.", ("it is a cup",), False),
        ("The response must say that the cup is not full.", ("the cup is not full",), False),
        ("The response must note that the fur is orange or ginger.",
         ("the fur is orange", "the fur is ginger"), False),
        ("Readers learn that the cat is big.", ("the cat is big",), False),
        ("The account is silent about gloves.", ("gloves",), True),
        ("The car is red.", ("The car is red",), False),
    ],
)  # fmt: skip
def test_a_statement_is_split_into_claim_and_polarity(
    statement: str, forms: tuple[str, ...], forbidden: bool
) -> None:
    """The frame is dropped, alternatives become forms, and what is forbidden is noticed."""
    assert claim_of(statement) == Claim(forms, forbidden)
