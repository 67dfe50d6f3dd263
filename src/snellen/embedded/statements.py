"""Verify statements about a caption ("The response must mention X") by word evidence and vectors.

Such evidence is weak: swapped attributes and negations often fool it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.evidence import Vectors, best_in, likeness, page_of, terms_of
from snellen.embedded.words import RIVALS, denies, is_negated, normalise, stem

# Words of a frame: who tells, what telling is called, and the small words between.
_FRAME_WORDS = """
    response caption description answer reply model text account passage writer author wording
    narrative summary report output candidate reader viewer statement one mention state say said
    describe identify note specify indicate include recognise recognize claim contain refer
    reference give count name place list convey make made made-up clear explain invent assert
    suggest imply call observe capture cite quote depict confirm attribute label introduce position
    show portray express detail speak talk tell told spell learn find named noted cited given bring
    brought comes come goes hint allude comment word trace sign fact credit point put read the a an
    any your its it us we there be is are been get got must should shall need needs has have to
    ought may might can could do does did will would at least either ever also out of about up that
    whether as for on all from
"""
_DENIALS = "avoid refrain omit fail forget overlook silent nothing nobody wrong free leave"
_DENYING = frozenset(stem(word) for word in _DENIALS.split())
_FRAME = frozenset(stem(word) for word in _FRAME_WORDS.split()) | _DENYING

# Fitted by benchmarks/fit_embedded.py, on no item of the frozen half of the material.
SUPPORT_WEIGHTS: tuple[float, ...] = (-3.91, -1.97, 2.59, 1.44, 1.31, 2.9)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a statement demands (`forbidden`: forbids) that the caption says."""

    text: str
    forbidden: bool


@lru_cache(maxsize=8192)
def claim_of(statement: str) -> Claim:
    """Cut the frame off both ends of a statement; an odd number of denials in the frame forbids.

    >>> claim_of("The response must not mention that the cat is black.")
    Claim(text='the cat is black', forbidden=True)
    >>> claim_of("Steam must be mentioned.")
    Claim(text='Steam', forbidden=False)
    """
    said = statement.strip(" .").split()
    words = [normalise(word).strip(",:;.\"'") for word in said]
    start, end = 0, len(words)
    while start < end and _is_frame(words[start]):
        start += 1
        if words[start - 1] == "that":
            break
    while end > start and "that" not in words[:start] and _is_frame(words[end - 1]):
        end -= 1
    frame = (*words[:start], *words[end:])
    forbidden = sum(denies(word) or stem(word) in _DENYING for word in frame) % 2 == 1
    return Claim(" ".join(said[start:end]) or statement, forbidden)


def _is_frame(word: str) -> bool:
    return denies(word) or stem(word) in _FRAME


def texts_for(caption: str, statements: Sequence[str]) -> Iterable[str]:
    """Give all texts whose vectors `verify` needs."""
    yield from page_of(caption).texts()
    for statement in statements:
        text = claim_of(statement).text
        yield text
        yield from terms_of(text)


def verify(caption: str, statement: str, vectors: Vectors) -> bool:
    """Whether a statement holds of a caption.

    A caption that is silent fails what is demanded and passes what is forbidden.
    """
    claim = claim_of(statement)
    score = support_features(caption, claim, vectors) @ np.array(SUPPORT_WEIGHTS)
    # Rounded, so that the last bits of a processor's arithmetic decide nothing.
    return bool(round(float(score), 5) > 0) != claim.forbidden


def support_features(caption: str, claim: Claim, vectors: Vectors) -> NDArray[np.float64]:
    """What tells whether a caption says a claim: a constant, the claim's kind, evidence."""
    page, terms = page_of(caption), terms_of(claim.text)
    if not page.segments or not terms:
        return np.array([1.0] + [0.0] * (len(SUPPORT_WEIGHTS) - 1))
    like = likeness(terms, page.words, vectors)
    near = best_in(like, page.near)
    here = best_in(like, page.here if is_negated(claim.text) else page.affirmed)
    cosine = np.stack([vectors[text] for text in page.segments]) @ vectors[claim.text]
    best = int(np.round(cosine + here.mean(axis=0) + 0.5 * near.mean(axis=0), 5).argmax())
    is_value = [t[0].isdigit() or any(stem(t) in kind for kind in RIVALS) for t in terms]
    values = (near[is_value, best] >= 1).mean() if any(is_value) else 1.0
    evidence = (
        cosine.max(),
        here[:, best].mean(),
        near[:, best].min(),
        values,
    )
    return np.array((1.0, claim.forbidden, *evidence), np.float64)
