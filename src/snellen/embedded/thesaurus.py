"""How near two English words are in meaning, from the common part of WordNet."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources

# Likeness by the steps from a word up to the more general one; three steps say next to nothing.
_BY_STEPS = (0.9, 0.75, 0.55)


@lru_cache(maxsize=65536)
def senses_of(word: str) -> tuple[int, ...]:
    """The common senses of a word, or of the word that it is a form of; empty if unknown.

    >>> bool(set(senses_of("sofas")) & set(senses_of("couch")))
    True
    """
    words, _ = _tables()
    for form in _forms(word):
        if form in words:
            return words[form]
    return ()


def kinship(first: str, second: str) -> float:
    """From 0 to 0.9: the same sense, or one of the words names a sort of the other.

    >>> kinship("azure", "blue") > kinship("azure", "furniture")
    True
    """
    return max((like for place, like in kin_among(first, (second,)) if place == 0), default=0.0)


def kin_among(word: str, others: tuple[str, ...]) -> Sequence[tuple[int, float]]:
    """Places among other words, with the likeness of what stands there; kin only."""
    own_index, up_index = _index(others)
    found = [(place, _BY_STEPS[n]) for s in senses_of(word) for place, n in up_index.get(s, ())]
    for sense, steps in _ups(word).items():
        found += [(place, _BY_STEPS[steps]) for place in own_index.get(sense, ())]
    return found


@lru_cache(maxsize=512)
def _index(
    words: tuple[str, ...],
) -> tuple[Mapping[int, list[int]], Mapping[int, list[tuple[int, int]]]]:
    """Where words stand that have a sense, or a sense below it with the steps up to it."""
    own: dict[int, list[int]] = {}
    ups: dict[int, list[tuple[int, int]]] = {}
    for place, word in enumerate(words):
        for sense in senses_of(word):
            own.setdefault(sense, []).append(place)
        for sense, steps in _ups(word).items():
            ups.setdefault(sense, []).append((place, steps))
    return own, ups


@lru_cache(maxsize=65536)
def _ups(word: str) -> Mapping[int, int]:
    """The senses of a word and those above them, with the steps up."""
    _, above = _tables()
    steps: dict[int, int] = {}
    level = list(senses_of(word))
    for n in range(len(_BY_STEPS)):
        for sense in level:
            steps.setdefault(sense, n)
        level = [up for sense in level for up in above.get(sense, ())]
    return steps


def _forms(word: str) -> Sequence[str]:
    """A word and what it may be a form of, most likely first."""
    forms = [word]
    for ending, rests in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            forms += [word[: -len(ending)] + rest for rest in rests]
    if word.endswith(("ing", "ed")):
        bare = word.removesuffix("ing").removesuffix("ed")
        if len(bare) > 3 and bare[-1] == bare[-2]:
            forms.append(bare[:-1])
    return forms


_ENDINGS = (
    ("ies", ("y",)),
    ("ves", ("f", "fe")),
    ("es", ("e", "")),
    ("s", ("",)),
    ("ing", ("", "e")),
    ("ied", ("y",)),
    ("ed", ("", "e")),
    ("ly", ("",)),
    ("ish", ("", "e")),
)


@cache
def _tables() -> tuple[Mapping[str, tuple[int, ...]], Mapping[int, tuple[int, ...]]]:
    """Senses by word, and the senses one step above a sense."""
    path = resources.files("snellen") / "data" / "embedded" / "thesaurus.txt.gz"
    text = gzip.decompress(path.read_bytes()).decode("ascii")
    words, above = (part.split("\n") for part in text.split("\n\n"))
    return (
        {w: tuple(int(s, 16) for s in rest) for w, *rest in map(str.split, words)},
        {int(s, 16): tuple(int(u, 16) for u in ups) for s, *ups in map(str.split, above)},
    )
