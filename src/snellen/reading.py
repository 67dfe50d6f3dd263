"""Answers a multiple-choice question from a caption by word evidence and sentence vectors.

Two linear scores: one chooses among the options, each with its best segment of the caption; the
other says whether the caption states the chosen one at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.evidence import (
    Page,
    Vectors,
    best_in,
    is_one_of_a_kind,
    likeness,
    nearness,
    page_of,
    terms_of,
)
from snellen.records import ReadTask
from snellen.words import STOP_WORDS, is_negated, stem, tokens

Floats = NDArray[np.floating]

# Words that ask rather than name what is asked about.
_ASKING = frozenset(
    stem(w)
    for w in """color colour number count many much shape material type kind position located
    location side word text written say read object item thing visible wear hold
    doing action activity style pattern state condition main overall primary dominant made
    total exactly show display""".split()
)
_DETERMINERS = frozenset("the a an his her its their this that these those".split())

# Fitted with benchmarks/measure_embedded.py on the half of the material that is kept for tuning.
OPTION_WEIGHTS: tuple[float, ...] = (0.78, 0.94, 1.56, 1.19, 1.05, 1.0, 1.99, 1.37, 1.2, 1.22, 1.5, 0.48, 0.03, 0.81)
STATED_WEIGHTS: tuple[float, ...] = (-3.69, 0.73, 0.06, 0.09, 0.18, -0.49, -0.45, -0.42, 0.36, 0.49, -0.1, -0.04, -0.49, -0.18, 0.02, 0.05, -0.4, 0.5, 0.32, 0.26, -0.27, 0.07)


@dataclass(frozen=True, slots=True)
class Reading:
    """The place of the chosen option, and whether the caption states it (`stated` above 0)."""

    choice: int
    stated: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each option: `pairs` (segments, options, features), `whole` (features)."""

    pairs: NDArray[np.float64]
    whole: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Focus:
    """A question against a page: likeness of its subjects and of its head noun, by segment."""

    question: str
    page: Page
    vectors: Vectors
    rows: Floats
    here: Floats
    near: Floats
    head_here: Floats
    head_near: Floats


def texts_for(task: ReadTask) -> Iterable[str]:
    """All whose vectors `read` needs."""
    yield from page_of(task.caption).texts()
    yield task.question
    yield from subjects_of(task.question)
    for option in task.options:
        yield option
        yield f"{task.question} {option}"
        yield from terms_of(option)


def read(task: ReadTask, vectors: Vectors) -> Reading:
    """The option that the caption supports best; the first one where it says nothing at all."""
    evidence = weigh(task, vectors)
    return decide(evidence, OPTION_WEIGHTS, STATED_WEIGHTS)


def decide(evidence: Evidence, options: Sequence[float], stated: Sequence[float]) -> Reading:
    """The reading that two sets of weights give."""
    if not evidence.pairs.size:
        return Reading(0, -1.0)
    choice, features = stated_features(evidence, options)
    # Rounded, so that the last bits of a processor's arithmetic decide nothing.
    return Reading(choice, round(float(features @ np.array(stated)), 5))


def stated_features(
    evidence: Evidence, weights: Sequence[float]
) -> tuple[int, NDArray[np.float64]]:
    """The best option, and what tells whether it is stated: a constant, scores, evidence."""
    scores = np.round(evidence.pairs @ np.array(weights), 5)
    best = scores.max(axis=0)
    choice = int(best.argmax())
    others = np.delete(best, choice)
    margin = best[choice] - others.max(initial=best.min(initial=0.0))
    row = evidence.pairs[int(scores[:, choice].argmax()), choice]
    return choice, np.concatenate(([1.0, best[choice], margin], evidence.whole, row))


@lru_cache(maxsize=8192)
def subjects_of(question: str) -> tuple[str, ...]:
    """What a question is about, without the words that ask.

    >>> subjects_of("What color is the cat on the left?")
    ('cat', 'left')
    """
    return tuple(t for t in terms_of(question) if stem(t) not in _ASKING)


@lru_cache(maxsize=8192)
def head_of(question: str) -> tuple[str, ...]:
    """The noun that a question is about, where one follows its first article.

    >>> head_of("What color are the cat's eyes in the picture?")
    ('eyes',)
    """
    words = tokens(question)
    start = next((i for i, w in enumerate(words) if w in _DETERMINERS), len(words))
    found = ""
    for word in words[start + 1 :]:
        if word in STOP_WORDS:
            if found:
                break
        elif stem(word) not in _ASKING:
            found = word
    return (found,) if found else ()


def weigh(task: ReadTask, vectors: Vectors) -> Evidence:
    """The evidence for each option in each segment, and in the caption as a whole."""
    page = page_of(task.caption)
    if not page.segments or not task.options:
        return Evidence(np.zeros((0, 0, 0)), np.zeros(0))
    focus = _focus(task.question, page, vectors)
    pairs = np.stack([_support(option, focus) for option in task.options], axis=1)
    head, subjects = focus.head_near.max(), focus.near.max(axis=1, initial=0.0)
    is_kind = float(is_one_of_a_kind(task.options))
    lowest = subjects.min(initial=1.0)
    whole = [lowest, head, is_kind, is_kind * (1 - head), is_kind * (1 - lowest)]
    return Evidence(pairs, np.array(whole))


def _focus(question: str, page: Page, vectors: Vectors) -> _Focus:
    subjects = likeness(subjects_of(question), page.words, vectors)
    head = likeness(head_of(question), page.words, vectors)
    rows = np.stack([vectors[s.text] for s in page.segments])
    return _Focus(
        question,
        page,
        vectors,
        rows,
        here=_mean(best_in(subjects, page.here)),
        near=best_in(subjects, page.near),
        head_here=_mean(best_in(head, page.here)),
        head_near=_mean(best_in(head, page.near)),
    )


def _mean(best: Floats) -> Floats:
    """Mean over terms; 1 where there are none, as then nothing is missing."""
    return best.mean(axis=0) if len(best) else np.ones(best.shape[1], np.float32)


def _support(option: str, focus: _Focus) -> NDArray[np.float64]:
    """Features of an option, of shape (segments, features)."""
    cover, soft, own = _cover(option, focus)
    relevance = focus.rows @ focus.vectors[focus.question]
    together = focus.rows @ focus.vectors[f"{focus.question} {option}"]
    near = _mean(focus.near)
    subjects = frozenset(map(stem, subjects_of(focus.question)))
    head = frozenset(map(stem, head_of(focus.question)))
    segments = focus.page.segments if cover.any() else ()
    close = [nearness(s, own, subjects) for s in segments] or np.zeros(len(cover))
    close_head = [nearness(s, own, head) for s in segments] or np.zeros(len(cover))
    features = [
        together - relevance,
        relevance,
        cover,
        cover * focus.here,
        cover * near,
        cover * close,
        soft,
        soft * focus.here,
        soft * near,
        focus.rows @ focus.vectors[option],
        cover * relevance,
        cover * focus.head_here,
        cover * focus.head_near,
        cover * close_head,
    ]
    return np.stack(features, axis=1).astype(np.float64)


def _cover(option: str, focus: _Focus) -> tuple[Floats, Floats, frozenset[str]]:
    """By segment the share of an option's own words found exactly, the same softly, their stems."""
    asked = {stem(t) for t in terms_of(focus.question)}
    terms = terms_of(option)
    own = tuple(t for t in terms if stem(t) not in asked) or terms
    page = focus.page
    mask = page.here if is_negated(option) else page.affirmed
    best = best_in(likeness(own, page.words, focus.vectors), mask)
    if not own:
        return np.zeros(len(mask)), np.zeros(len(mask)), frozenset()
    return (best >= 1.0).mean(axis=0), best.mean(axis=0), frozenset(map(stem, own))
