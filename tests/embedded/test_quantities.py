"""Numbers with units."""

from __future__ import annotations

import pytest

from snellen.embedded.quantities import is_same_quantity, quantities


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("1.5 km", "1500 m", True),
        ("1.5 km", "1.5 m", False),
        ("2 h", "120 min", True),
        ("25%", "25 percent", True),
        ("$5", "5 dollars", True),
        ("$5", "€5", False),
        ("3", "three", True),
        ("3 cm", "3", True),
        ("1/2", "0.5", True),
        ("-3", "3", False),
        ("6 ft", "1.83 m", True),
        ("20°", "20 °C", True),
        ("1,5", "1.5", True),
    ],
)
def test_quantities_are_compared_across_units(first: str, second: str, same: bool) -> None:
    """Units of one kind are converted, a missing unit is taken as meant, other kinds differ."""
    [a], [b] = quantities(first), quantities(second)
    assert is_same_quantity(a, b) is same


def test_all_numbers_of_a_text_are_found_in_order() -> None:
    """Digits and words alike, each with the word that follows."""
    found = quantities("Three cats, 2 dogs and one bird")
    assert [(q.value, q.word) for q in found] == [(3, "cats"), (2, "dogs"), (1, "bird")]
