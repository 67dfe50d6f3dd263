"""What a caption says, prepared for judging."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from snellen.embedded.evidence import is_one_of_a_kind, likeness, nearness, page_of, terms_of

# All vectors at right angles to each other would be as good: words alone decide here.
NOWHERE = defaultdict(lambda: np.zeros(4, np.float32))


def like(terms: str, caption: str) -> np.ndarray:
    return likeness(terms_of(terms), page_of(caption).words, NOWHERE)


def test_a_page_marks_what_is_denied() -> None:
    """A word after a negation stands there, and is not affirmed."""
    page = page_of("There is no dog near the bench.")
    dog = page.words.index("dog")
    assert page.here[0, dog]
    assert not page.affirmed[0, dog]
    assert page.affirmed[0, page.words.index("bench")]


def test_a_sentence_knows_the_one_before_it() -> None:
    """What "it" may mean is near."""
    page = page_of("A cat sits. It is black.")
    assert "cat" in page.segments[1].near
    assert "cat" not in page.segments[1].around


def test_rivals_and_numbers_are_never_alike() -> None:
    """Other colours and other numbers have likeness 0, the same word 1, a synonym something."""
    assert like("red", "a blue car").max() == 0
    assert like("four", "five cars").max() == 0
    assert like("red", "a red car").max() == 1
    assert 0 < like("edifice", "a tall building").max() < 1


def test_a_value_is_nearest_to_its_own_noun() -> None:
    """In "red car, blue door" red is nearer to the car than to the door."""
    caption = "a red car beside a door of blue wood"
    page, red = page_of(caption), like("red", caption)
    assert nearness(page, red, like("car", caption)) > nearness(page, red, like("door", caption))


def test_what_is_counted_follows_its_number() -> None:
    """With `only_after` a noun before the number does not count."""
    caption = "birds above three cats"
    page, three = page_of(caption), like("three", caption)
    assert nearness(page, three, like("cats", caption), only_after=True) > 0
    assert nearness(page, three, like("birds", caption), only_after=True) == 0


def test_options_of_one_kind_are_recognised() -> None:
    """Colours and numbers are kinds; different things are not."""
    assert is_one_of_a_kind(("Red", "Dark blue", "Green", "Striped"))
    assert is_one_of_a_kind(("Two", "3", "Five"))
    assert not is_one_of_a_kind(("a saw", "a cup"))
