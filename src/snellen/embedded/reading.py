"""Answer a multiple-choice question from a caption by word evidence and sentence vectors.

Two linear scores: the first chooses among the options, each with its best segment of the caption;
the second says whether the caption states the chosen option at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.evidence import (
    Vectors,
    best_in,
    is_one_of_a_kind,
    likeness,
    page_of,
    terms_of,
)
from snellen.embedded.words import is_negated, stem
from snellen.records import ReadTask

Floats = NDArray[np.float64]
Weights = tuple[float, ...]

# Words that ask rather than name what is asked about.
_ASKING_WORDS = """color colour number count many much shape material type kind position located
    location side word text written say read object item thing visible wear hold
    doing action activity style pattern state condition main overall primary dominant made
    total exactly show display hue shade tint tone sort variety nature amount quantity tally
    figure area part spot place whereabouts stuff substance estimate"""
_ASKING = frozenset(stem(word) for word in _ASKING_WORDS.split())

# Fitted by benchmarks/fit_embedded.py, on no item of the frozen half of the material.
OPTION_WEIGHTS: Weights = (1.13, 3.74, 2.59, 2.01, 1.87)
STATED_WEIGHTS: Weights = (-3.36, 0.83, 0.16, -0.58, -0.65, -0.29, 0.62, -0.27, -0.32, 0.09)


@dataclass(frozen=True, slots=True)
class Reading:
    """The place of the chosen option, and whether the caption states it (`stated` above 0)."""

    choice: int
    stated: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each option: `pairs` (segments, options, features), `whole` (features)."""

    pairs: Floats
    whole: Floats


def texts_for(task: ReadTask) -> Iterable[str]:
    """Give all texts whose vectors `read` needs."""
    yield from page_of(task.caption).texts()
    yield task.question
    yield from subjects_of(task.question)
    for option in task.options:
        yield option
        yield statement_of(task.question, option)
        yield from terms_of(option)


def read(task: ReadTask, vectors: Vectors) -> Reading:
    """Choose the option that the caption supports best; the first where it says nothing at all."""
    return decide(weigh(task, vectors), OPTION_WEIGHTS, STATED_WEIGHTS)


def decide(evidence: Evidence, options: Sequence[float], stated: Sequence[float]) -> Reading:
    """Give the reading that two sets of weights lead to."""
    if not evidence.pairs.size:
        return Reading(0, -1.0)
    choice, features = stated_features(evidence, options)
    # Rounded, so that the last bits of a processor's arithmetic decide nothing.
    return Reading(choice, round(float(features @ np.array(stated)), 5))


def stated_features(evidence: Evidence, weights: Sequence[float]) -> tuple[int, Floats]:
    """The best option, and what tells whether it is stated: a constant, scores, evidence."""
    scores = np.round(evidence.pairs @ np.array(weights), 5)
    best = scores.max(axis=0)
    choice = int(best.argmax())
    margin = best[choice] - np.delete(best, choice).max(initial=best.min(initial=0.0))
    row = evidence.pairs[int(scores[:, choice].argmax()), choice]
    return choice, np.concatenate(([1.0, best[choice], margin], evidence.whole, row))


@lru_cache(maxsize=8192)
def subjects_of(question: str) -> tuple[str, ...]:
    """What a question is about, without the words that ask.

    >>> subjects_of("What color is the cat on the left?")
    ('cat', 'left')
    """
    return tuple(t for t in terms_of(question) if stem(t) not in _ASKING)


_COLOUR = r"(?:in |of )?(?:what|which) colou?r (?:is|are|does|do|has|have) (.+?)(?: have| has)?"
_TURNS = tuple(
    (re.compile(form, re.IGNORECASE | re.DOTALL), turned)
    for form, turned in (
        (_COLOUR, "{} is {option}"),
        (r"(?:about |roughly |in )?how many (.+)", "{option} {}"),
        (
            r"(?:what|which|how|where|who|when) (is|are) (.+?)(?: like| made of| doing)?",
            "{1} {0} {option}",
        ),
        (r"(?:what|which|where|how|who|when)(?: (?:kind|type|sort) of)? (.+)", "{} {option}"),
        (r"(.*)", "{} {option}"),
    )
)


@lru_cache(maxsize=32768)
def statement_of(question: str, option: str) -> str:
    """Turn a question and an option into a statement, roughly: the encoder forgives bad grammar.

    >>> statement_of("What color are the chairs?", "Dark green")
    'the chairs is dark green'
    >>> statement_of("How many birds fly above the roof?", "Three")
    'three birds fly above the roof'
    """
    asked, answer = question.strip().rstrip("?. "), option.strip().rstrip(".")
    if answer[1:2].islower() or len(answer) < 2:
        answer = answer[:1].lower() + answer[1:]
    found = ((form.fullmatch(asked), turned) for form, turned in _TURNS)
    return next((t.format(*m.groups(), option=answer) for m, t in found if m), answer)


def weigh(task: ReadTask, vectors: Vectors) -> Evidence:
    """The evidence for each option in each segment, and in the caption as a whole."""
    page = page_of(task.caption)
    if not page.segments or not task.options:
        return Evidence(np.zeros((0, 0, 0)), np.zeros(0))
    subjects = likeness(subjects_of(task.question), page.words, vectors)
    near = best_in(subjects, page.near)
    lowest = near.min(axis=0, initial=1.0)
    rows = np.stack([vectors[text] for text in page.segments])
    relevance = rows @ vectors[task.question]
    # The question's stems, and those that all options share, tell no option from another.
    sets = [{stem(t) for t in terms_of(option)} for option in task.options]
    known = set.intersection(*sets) | {stem(t) for t in terms_of(task.question)}
    is_kind = is_one_of_a_kind(task.options)
    pairs = []
    for option in task.options:
        terms = terms_of(option)
        own = tuple(t for t in terms if stem(t) not in known) or terms
        like = likeness(own, page.words, vectors)
        best = best_in(like, page.here if is_negated(option) else page.affirmed)
        soft, cover = _mean(best), _mean(best >= 1.0)
        said = rows @ vectors[statement_of(task.question, option)]
        features = (lowest, said, soft, soft * _mean(near), cover * relevance)
        pairs.append(np.stack(features, axis=1))
    named = float(subjects.max(axis=1, initial=0.0).min(initial=1.0))
    whole = (is_kind, is_kind * (1 - named))
    return Evidence(np.stack(pairs, axis=1).astype(np.float64), np.array(whole, np.float64))


def _mean(best: NDArray[np.floating] | NDArray[np.bool_]) -> NDArray[np.floating]:
    """Mean over terms by segment; 0 where there are no terms."""
    return best.mean(axis=0) if len(best) else np.zeros(best.shape[1])
