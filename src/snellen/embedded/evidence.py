"""What a caption says, prepared for judging: segments, words, and how near they come to terms.

Pure: vectors come from outside, as a mapping from text to unit vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.grading import RIVALS
from snellen.embedded.thesaurus import kin_among
from snellen.embedded.words import NEGATIONS, STOP_WORDS, clauses, sentences, stem, tokens

Array = NDArray[np.float32]
Vectors = Mapping[str, Array]

_EMPTY = STOP_WORDS | NEGATIONS

# Words less alike than this (as cosine) count as unrelated: single words are rarely below 0.3.
_UNRELATED = 0.6


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence of a caption, or a clause of one.

    `words` are its words in order, numbers in digits; `denied` are the places of the three words
    after a negation; `around` are the words of the whole sentence, `near` also those of the one
    before it.
    """

    text: str
    words: tuple[str, ...]
    denied: frozenset[int]
    around: frozenset[str]
    near: frozenset[str]


@dataclass(frozen=True, slots=True)
class Page:
    """A caption ready for questions.

    `words` are its different content words. `here`, `affirmed` and `near` are masks of the shape
    (segments, words): what stands in a segment, what stands there without being denied, and what
    stands in its sentence or the one before. `places` lists, by segment, where which word stands.
    """

    segments: tuple[Segment, ...]
    words: tuple[str, ...]
    here: NDArray[np.bool_]
    affirmed: NDArray[np.bool_]
    near: NDArray[np.bool_]
    places: tuple[tuple[tuple[int, int], ...], ...]

    def texts(self) -> Iterable[str]:
        """All whose vectors are needed to judge this caption."""
        return (*(s.text for s in self.segments), *self.words)


@lru_cache(maxsize=512)
def page_of(caption: str) -> Page:
    """A caption cut into segments and words.

    >>> page = page_of("A cat sits. There is no dog.")
    >>> page.words, page.affirmed.tolist()
    (('cat', 'sits', 'dog'), [[True, True, False], [False, False, False]])
    """
    found = tuple(_segments(caption))
    words = tuple(dict.fromkeys(w for s in found for w in s.words if w not in _EMPTY))
    place = {word: i for i, word in enumerate(words)}
    masks = np.zeros((3, len(found), len(words)), dtype=bool)
    for row, segment in enumerate(found):
        for i, word in enumerate(segment.words):
            if word in place:
                masks[0, row, place[word]] = True
                masks[1, row, place[word]] |= i not in segment.denied
        masks[2, row, [place[w] for w in segment.near if w in place]] = True
    places = (tuple((i, place[w]) for i, w in enumerate(s.words) if w in place) for s in found)
    return Page(found, words, masks[0], masks[1], masks[2], tuple(places))


def _segments(caption: str) -> Iterable[Segment]:
    before: frozenset[str] = frozenset()
    for sentence in sentences(caption):
        here = frozenset(tokens(sentence))
        for text in dict.fromkeys((sentence, *clauses(sentence))):
            words = tokens(text)
            yield Segment(text, words, _denied(words), here, before | here)
        before = here


def _denied(words: Sequence[str]) -> frozenset[int]:
    places = (i for i, word in enumerate(words) if word in NEGATIONS or word.endswith("n't"))
    return frozenset(p for i in places for p in range(i + 1, i + 4))


@lru_cache(maxsize=32768)
def terms_of(text: str) -> tuple[str, ...]:
    """The content words of a text, one for each meaning, in order.

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
    stems = [stem(w) for w in words]
    for row, term in enumerate(terms):
        own, rivals = stem(term), _rivals_of(stem(term))
        for place, like in kin_among(term, words):
            ramp[row, place] = max(ramp[row, place], like)
        # Numbers, and words that exclude each other, are unlike whatever their vectors say.
        ramp[row] *= not term[0].isdigit()
        ramp[row] *= np.array([s not in rivals for s in stems])
        ramp[row][[s == own for s in stems]] = 1.0
    return ramp


@lru_cache(maxsize=8192)
def _rivals_of(word: str) -> frozenset[str]:
    """The stems that name another value of a kind that a stem is of: for red, all colours."""
    return frozenset().union(*(kind for kind in RIVALS if word in kind))


def best_in(like: Array, mask: NDArray[np.bool_]) -> Array:
    """For each term the likeness of its best word in each segment, of shape (t, segments)."""
    if not like.shape[1]:
        return np.zeros((like.shape[0], mask.shape[0]), np.float32)
    best: Array = np.where(mask[None], like[:, None, :], np.float32(0)).max(axis=2)
    return best


def nearness(page: Page, terms: Array, subjects: Array, *, only_after: bool = False) -> Array:
    """How near a term comes to a subject, by segment: their likeness over the words between them.

    `terms` and `subjects` are likenesses of shape (n, words); a term must stand there exactly and
    undenied. With `only_after` the subject follows the term, as the thing counted does.
    """
    found = np.zeros(len(page.segments), np.float32)
    exact = terms.max(axis=0, initial=0.0) >= 1.0
    subject = subjects.max(axis=0, initial=0.0)
    for row, (segment, places) in enumerate(zip(page.segments, page.places, strict=True)):
        starts = [i for i, word in places if exact[word] and i not in segment.denied]
        if starts:
            ends = [(k, subject[word]) for k, word in places if subject[word] > 0]
            gaps = ((k - i, like) for i in starts for k, like in ends)
            close = (like / max(1, abs(g)) for g, like in gaps if g > 0 or not only_after)
            found[row] = max(close, default=0.0)
    return found


def is_one_of_a_kind(options: Sequence[str]) -> bool:
    """Whether most options are values of one kind: numbers, colours, directions, materials ...

    >>> is_one_of_a_kind(("Red", "Dark blue", "Two-tone")), is_one_of_a_kind(("a saw", "a cup"))
    (True, False)
    """
    stems = [{stem(t) for t in tokens(option)} for option in options]
    kinds = [sum(bool(s & kind) for s in stems) for kind in RIVALS]
    numbers = sum(any(t[0].isdigit() for t in s) for s in stems)
    return max(*kinds, numbers) * 2 > len(options)
