"""What a caption says, prepared for judging."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from snellen.embedded.evidence import is_one_of_a_kind, likeness, page_of, terms_of

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
    cat = page.words.index("cat")
    assert page.near[1, cat]
    assert not page.here[1, cat]


def test_rivals_and_numbers_are_never_alike() -> None:
    """Other colours and other numbers have likeness 0, a word of one meaning 1."""
    assert like("red", "a blue car").max() == 0
    assert like("four", "five cars").max() == 0
    assert like("red", "a red car").max() == 1
    assert like("couch", "a sofa").max() == 1


def test_options_of_one_kind_are_recognised() -> None:
    """Colours and numbers are kinds; different things are not."""
    assert is_one_of_a_kind(("Red", "Dark blue", "Green", "Striped"))
    assert is_one_of_a_kind(("Two", "3", "Five"))
    assert not is_one_of_a_kind(("a saw", "a cup"))
