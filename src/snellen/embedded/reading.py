"""Answers a multiple-choice question from a caption by word evidence and sentence vectors.

Two linear scores: one chooses among the options, each with its best segment of the caption; the
other says whether the caption states the chosen one at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.evidence import (
    Page,
    Vectors,
    best_in,
    is_one_of_a_kind,
    likeness,
    nearness,
    page_of,
    terms_of,
)
from snellen.embedded.words import STOP_WORDS, is_negated, stem, tokens
from snellen.records import ReadTask

Floats = NDArray[np.floating]

# Words that ask rather than name what is asked about.
_ASKING_WORDS = """color colour number count many much shape material type kind position located
    location side word text written say read object item thing visible wear hold
    doing action activity style pattern state condition main overall primary dominant made
    total exactly show display hue shade tint tone sort variety nature amount quantity tally
    figure area part spot place whereabouts stuff substance estimate"""
_ASKING = frozenset(stem(word) for word in _ASKING_WORDS.split())
_DETERMINERS = frozenset(
    ("the", "a", "an", "his", "her", "its", "their", "this", "that", "these", "those")
)

# Fitted by benchmarks/fit_embedded.py, on no item of the frozen half of the material.
OPTION_WEIGHTS: tuple[float, ...] = (
    0.97,
    0.36,
    1.87,
    2.91,
    0.88,
    1.45,
    1.36,
    1.35,
    1.23,
    1.21,
    1.14,
    0.66,
)
STATED_WEIGHTS: tuple[float, ...] = (
    -3.97,
    0.79,
    0.19,
    0.16,
    0.23,
    -0.46,
    -0.62,
    -0.52,
    0.2,
    -0.18,
    0.18,
    0.5,
    0.07,
    -0.3,
    -0.21,
    0.07,
    -0.27,
    -0.0,
    0.0,
    -0.37,
)


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
    """A question against a page: likeness of its subjects and of its head noun to words.

    `relevance` to `denied` are by segment: the cosine with the question, the mean and the lowest
    likeness of the subjects nearby, and how far the head noun is denied. `known` are stems that
    tell no option from another.
    """

    question: str
    known: frozenset[str]
    page: Page
    vectors: Vectors
    subjects: Floats
    head: Floats
    relevance: Floats
    near: Floats
    lowest: Floats
    denied: Floats
    rows: Floats


def texts_for(task: ReadTask) -> Iterable[str]:
    """All whose vectors `read` needs."""
    yield from page_of(task.caption).texts()
    yield task.question
    yield from subjects_of(task.question)
    yield from head_of(task.question)
    for option in task.options:
        yield option
        yield statement_of(task.question, option)
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


_FORMS = (
    (
        r"(?:in |of )?(?:what|which) colou?r (?:is|are|does|do|has|have) (.+?)(?: have| has)?",
        "{} is",
    ),
    (r"(?:about |roughly |in )?how many (.+)", "{option} {}"),
    (r"(?:what|which|how|where|who|when) (is|are) (.+?)(?: like| made of| doing)?", "{1} {0}"),
    (r"(?:what|which|where|how|who|when)(?: (?:kind|type|sort) of)? (.+)", "{}"),
)
_TURNS = tuple((re.compile(form, re.IGNORECASE), turned) for form, turned in _FORMS)


@lru_cache(maxsize=32768)
def statement_of(question: str, option: str) -> str:
    """A question and an option as one statement, roughly: the encoder forgives bad grammar.

    >>> statement_of("What color are the chairs?", "Dark green")
    'the chairs is dark green'
    >>> statement_of("How many birds fly above the roof?", "Three")
    'three birds fly above the roof'
    """
    asked, answer = question.strip().rstrip("?. "), option.strip().rstrip(".")
    if answer[1:2].islower() or len(answer) < 2:
        answer = answer[:1].lower() + answer[1:]
    for form, turned in _TURNS:
        match = form.fullmatch(asked)
        if match:
            text = turned.format(*match.groups(), option=answer)
            return text if "{option}" in turned else f"{text} {answer}"
    return f"{asked} {answer}"


def weigh(task: ReadTask, vectors: Vectors) -> Evidence:
    """The evidence for each option in each segment, and in the caption as a whole."""
    page = page_of(task.caption)
    if not page.segments or not task.options:
        return Evidence(np.zeros((0, 0, 0)), np.zeros(0))
    focus = _focus(task, page, vectors)
    is_kind = is_one_of_a_kind(task.options)
    pairs = np.stack([_support(option, focus, is_kind) for option in task.options], axis=1)
    best = focus.subjects.max(axis=1, initial=0.0)
    head, lowest = focus.head.max(initial=0.0 if len(focus.head) else 1.0), best.min(initial=1.0)
    whole = [lowest, head, is_kind, is_kind * (1 - head), is_kind * (1 - lowest)]
    return Evidence(pairs, np.array(whole, np.float64))


def _focus(task: ReadTask, page: Page, vectors: Vectors) -> _Focus:
    subjects = likeness(subjects_of(task.question), page.words, vectors)
    head = likeness(head_of(task.question), page.words, vectors)
    rows = np.stack([vectors[s.text] for s in page.segments])
    near = best_in(subjects, page.near)
    return _Focus(
        question=task.question,
        known=_known(task),
        page=page,
        vectors=vectors,
        subjects=subjects,
        head=head,
        relevance=rows @ vectors[task.question],
        near=_mean(near),
        lowest=near.min(axis=0, initial=1.0),
        denied=best_in(head, page.here & ~page.affirmed).max(axis=0, initial=0.0),
        rows=rows,
    )


def _known(task: ReadTask) -> frozenset[str]:
    """Stems that tell no option from another: the question's, and those that all options share."""
    asked = {stem(t) for t in terms_of(task.question)}
    sets = [{stem(t) for t in terms_of(option)} for option in task.options]
    return frozenset(asked | set.intersection(*sets))


def _mean(best: Floats) -> Floats:
    """Mean over terms; 1 where there are none, as then nothing is missing."""
    return best.mean(axis=0) if len(best) else np.ones(best.shape[1], np.float32)


def _support(option: str, focus: _Focus, is_kind: bool) -> NDArray[np.float64]:
    """Features of an option, of shape (segments, features)."""
    like = _own_likeness(option, focus)
    cover, soft = _cover(option, like, focus)
    counts = is_kind and any(t[0].isdigit() for t in terms_of(option))
    close = nearness(focus.page, like, focus.subjects)
    close_head = nearness(focus.page, like, focus.head, only_after=counts)
    features = [
        focus.relevance,
        focus.lowest,
        focus.rows @ focus.vectors[option],
        focus.rows @ focus.vectors[statement_of(focus.question, option)],
        soft,
        soft * focus.near,
        cover,
        cover * focus.relevance,
        cover * close,
        cover * close_head,
        is_kind * cover * close_head,
        is_kind * cover * (1 - focus.lowest),
    ]
    return np.stack(features, axis=1).astype(np.float64)


def _own_likeness(option: str, focus: _Focus) -> Floats:
    """The likeness to the caption's words of the terms that set an option apart."""
    terms = terms_of(option)
    own = tuple(t for t in terms if stem(t) not in focus.known) or terms
    return likeness(own, focus.page.words, focus.vectors)


def _cover(option: str, like: Floats, focus: _Focus) -> tuple[Floats, Floats]:
    """By segment the share of an option's own terms that stand there, exactly and softly."""
    if is_nothing(option) or not len(like):
        denied = focus.denied * is_nothing(option)
        return denied, denied
    page = focus.page
    best = best_in(like, page.here if is_negated(option) else page.affirmed)
    return (best >= 1.0).mean(axis=0), best.mean(axis=0)


def is_nothing(option: str) -> bool:
    """Whether an option says that there is none of what is asked for.

    >>> is_nothing("None of them"), is_nothing("0"), is_nothing("No hat, a scarf")
    (True, True, False)
    """
    return option.strip() == "0" or (is_negated(option) and not terms_of(option))
