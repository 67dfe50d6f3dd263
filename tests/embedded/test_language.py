"""Which texts the embedded judge can read."""

from __future__ import annotations

import pytest

from snellen.embedded.language import foreign_language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "Paris",
        "São Paulo",
        "cat, dog, tree, house, blue sky, table, chairs, cups",
        "- Item: $4.50\n- Item: $3.25\n- Total: $7.75",
        "The sign above the entrance of the shop reads 出口 and 入口.",
        "x1, y1, x2, y2 = 10, 20, 30, 40",
    ],
)
def test_english_and_short_latin_text_is_read(text: str) -> None:
    """Names, lists, numbers and quoted signs are not foreign."""
    assert foreign_language(text) is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("左边是一辆红色的汽车 (red)", "Chinese"),
        ("左に赤い車があります", "Japanese"),
        ("빨간 자동차가 있다", "Korean"),
        ("Красная машина", "Cyrillic"),
        ("Κόκκινο αυτοκίνητο", "Greek"),
        ("سيارة حمراء", "Arabic"),
        ("Een rode auto staat op de straat en een man loopt voorbij", "Dutch"),
        ("Un'auto rossa è parcheggiata sulla strada e un uomo con il cane", "Italian"),
    ],
)
def test_other_languages_are_named(text: str, language: str) -> None:
    """A text mostly in another script, or full of another language's small words, is foreign."""
    assert foreign_language(text) == language
