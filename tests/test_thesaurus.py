"""The thesaurus of the embedded judge."""

from __future__ import annotations

import pytest

from snellen.embedded.thesaurus import kin_among, kinship, senses_of


@pytest.mark.parametrize(
    ("first", "second"), [("sofas", "couch"), ("edifice", "building"), ("scarlet", "red")]
)
def test_words_of_one_sense_are_nearest(first: str, second: str) -> None:
    """Synonyms, also in the plural, have the greatest kinship, in both directions."""
    assert kinship(first, second) == kinship(second, first) == 0.9


def test_a_more_general_word_is_near() -> None:
    """A sort of a thing is near the thing, less than a synonym and more than another sort."""
    assert 0.9 > kinship("azure", "blue") > kinship("dog", "cat")


def test_unknown_words_have_no_kin() -> None:
    """A code or a made-up word has no senses and no kinship."""
    assert senses_of("xq7") == ()
    assert kinship("xq7", "cat") == 0.0


def test_kin_are_found_among_many_words_by_place() -> None:
    """Only the words that are near are named, each by where it stands."""
    places = {place for place, _ in kin_among("headgear", ("table", "helmet", "seven", "hat"))}
    assert places == {1, 3}
