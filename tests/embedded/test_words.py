"""English words as the embedded judge sees them."""

from __future__ import annotations

import pytest

from snellen.embedded.words import clauses, is_negated, sentences, stem, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("twenty-five", ("25",)),
        ("two hundred and six", ("200", "and", "6")),
        ("three hundred thousand", ("300000",)),
        ("a dozen eggs", ("a", "12", "eggs")),
        ("1,200 birds", ("1200", "birds")),
        ("at 8:30 p.m.", ("at", "20:30")),
        ("at 12 am", ("at", "0:00")),
        ("the cat’s 3.5 cm", ("the", "cat", "3.5", "cm")),
    ],
)
def test_numbers_and_times_become_digits(text: str, expected: tuple[str, ...]) -> None:
    """Number words, groups, thousands and clock times are written one way."""
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("running", "runs"),
        ("boxes", "box"),
        ("berries", "berry"),
        ("grey", "gray"),
        ("reddish", "red"),
        ("lower", "bottom"),
    ],
)
def test_forms_and_synonyms_share_a_stem(first: str, second: str) -> None:
    """Endings and words of one meaning do not matter."""
    assert stem(first) == stem(second)


@pytest.mark.parametrize(("first", "second"), [("left", "right"), ("pine", "pin"), ("fire", "fir")])
def test_different_words_keep_different_stems(first: str, second: str) -> None:
    """Stemming does not fold words of different meaning."""
    assert stem(first) != stem(second)


def test_sentences_end_at_stops_and_lines_and_not_within_numbers() -> None:
    """Markup is dropped, decimals stay whole."""
    text = "# Title\nIt is 3.5 cm long. **It** is red!\n1. First\n2. Second"
    assert sentences(text) == ("Title", "It is 3.5 cm long.", "It is red!", "First", "Second")


def test_a_simple_sentence_has_no_clauses() -> None:
    """Only a sentence of several parts is split."""
    assert clauses("A cat sits on a mat") == ()


def test_negations_are_noticed_in_short_forms() -> None:
    """An n't denies like a not."""
    assert is_negated("It isn't red")
    assert not is_negated("It is a knot")
