"""Prepare a caption for judging: segments, words, and how near these come to terms.

Pure: vectors come from outside, as a mapping from text to unit vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.words import (
    NEGATIONS,
    RIVALS,
    STOP_WORDS,
    clauses,
    denies,
    sentences,
    stem,
    tokens,
)

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]
Vectors = Mapping[str, Array]

_EMPTY = STOP_WORDS | NEGATIONS

# Words less alike than this (as cosine) count as unrelated: single words are rarely below 0.3.
_UNRELATED = 0.6


@dataclass(frozen=True, slots=True)
class Page:
    """A caption ready for questions.

    `segments` are its sentences and their clauses, `words` its different content words. `here`,
    `affirmed` and `near` are masks of the shape (segments, words): the word stands in the segment;
    it stands there, and not among the three words after a negation; it stands in the segment's
    sentence or in the sentence before.
    """

    segments: tuple[str, ...]
    words: tuple[str, ...]
    here: Mask
    affirmed: Mask
    near: Mask

    def texts(self) -> Iterable[str]:
        """Give all texts whose vectors are needed to judge this caption."""
        return (*self.segments, *self.words)


@lru_cache(maxsize=512)
def page_of(caption: str) -> Page:
    """Cut a caption into segments and words.

    >>> page = page_of("A cat sits. There is no dog.")
    >>> page.words, page.affirmed.tolist()
    (('cat', 'sits', 'dog'), [[True, True, False], [False, False, False]])
    """
    found: list[tuple[str, frozenset[str]]] = []
    before: frozenset[str] = frozenset()
    for sentence in sentences(caption):
        here = frozenset(tokens(sentence))
        found += [(text, before | here) for text in dict.fromkeys((sentence, *clauses(sentence)))]
        before = here
    said = [tokens(text) for text, _ in found]
    words = tuple(dict.fromkeys(word for row in said for word in row if word not in _EMPTY))
    place = {word: number for number, word in enumerate(words)}
    masks = np.zeros((3, len(found), len(words)), dtype=bool)
    for row, (_, near) in enumerate(found):
        for i, word in enumerate(said[row]):
            if word in place:
                masks[0, row, place[word]] = True
                masks[1, row, place[word]] |= not any(map(denies, said[row][max(0, i - 3) : i]))
        masks[2, row, [place[word] for word in near if word in place]] = True
    return Page(tuple(text for text, _ in found), words, *masks)


@lru_cache(maxsize=32768)
def terms_of(text: str) -> tuple[str, ...]:
    """Give the content words of a text, one for each stem, in order.

    >>> terms_of("What color is the cat on the left?")
    ('color', 'cat', 'left')
    """
    by_stem = {stem(t): t for t in reversed(tokens(text)) if t not in _EMPTY}
    return tuple(reversed(by_stem.values()))


def likeness(terms: Sequence[str], words: tuple[str, ...], vectors: Vectors) -> Array:
    """How alike terms and words are, from 0 (unrelated) to 1 (the same stem), of shape (t, w)."""
    if not terms or not words:
        return np.zeros((len(terms), len(words)), np.float32)
    cosines = np.stack([vectors[t] for t in terms]) @ np.stack([vectors[w] for w in words]).T
    ramp: Array = np.clip((cosines - _UNRELATED) / (1 - _UNRELATED), 0.0, 0.9)
    stems = [stem(word) for word in words]
    for row, term in enumerate(terms):
        own = stem(term)
        # Numbers, and words that exclude each other, are unlike whatever their vectors say.
        ramp[row] *= not term[0].isdigit()
        ramp[row, [s in _rivals_of(own) for s in stems]] = 0.0
        ramp[row, [s == own for s in stems]] = 1.0
    return ramp


@lru_cache(maxsize=8192)
def _rivals_of(word: str) -> frozenset[str]:
    """The stems that name another value of a kind that a stem is of: for red, all colours."""
    return frozenset().union(*(kind for kind in RIVALS if word in kind))


def best_in(like: Array, mask: Mask) -> Array:
    """For each term the likeness of its best word in each segment, of shape (t, segments)."""
    if not like.shape[1]:
        return np.zeros((like.shape[0], mask.shape[0]), np.float32)
    best: Array = np.where(mask[None], like[:, None, :], np.float32(0)).max(axis=2)
    return best


def is_one_of_a_kind(options: Sequence[str]) -> bool:
    """Whether most options are values of one kind: numbers, colours, directions, materials ...

    >>> is_one_of_a_kind(("Red", "Dark blue", "Two-tone")), is_one_of_a_kind(("a saw", "a cup"))
    (True, False)
    """
    stems = [{stem(t) for t in tokens(option)} for option in options]
    kinds = [sum(bool(s & kind) for s in stems) for kind in RIVALS]
    numbers = sum(any(t[0].isdigit() for t in s) for s in stems)
    return max(*kinds, numbers) * 2 > len(options)
