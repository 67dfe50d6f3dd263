"""Verifies statements about a caption ("The response must mention X") by word evidence and vectors.

Such evidence is weak: swapped attributes and negations often fool it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.evidence import (
    Array,
    Page,
    Vectors,
    best_in,
    likeness,
    nearness,
    page_of,
    terms_of,
)
from snellen.embedded.grading import RIVALS
from snellen.embedded.words import is_negated, normalise, quoted, stem, tokens

_VERB = r"""(?:mention|stat|sa|describ|identif|not|specif|indicat|includ|recogni[sz]|report|claim|
    contain|refer|reference|read|giv|count|nam|transcrib|point|plac|list|conve|make|acknowledg|
    explain|locat|hallucinat|invent|assert|suggest|impl|call|observ|captur|cit|quot|depict|
    characteri[sz]|confirm|attribut|label|misidentif|misstat|mistak|us|add|introduc|position|show|
    has|hav|portra|express|detail|speak|talk|tell)
    (?:e|es|s|y|ys|ies|ied|ing|ying|d|ed|en|n|id|de|ring)?\b"""
_MODAL = r"""(?:(?:must|should|shall|needs?\sto|has\sto|have\sto|is\srequired\sto|may|might|can|
    is\sexpected\sto|ought\sto|does|do)(?=n't|\s))"""
_NO = r"(?P<no>(?:not|never|n't|avoids?|refrains?\sfrom|omits?)\b)"
_FRAME = re.compile(
    rf"""\s*(?:the|a|any|your)?\s*
    (?:response|caption|description|answer|reply|model|text|it)\s+
    {_MODAL}?\s*{_NO}?\s*(?:be\s+)?
    (?:(?:\w+ly|also|at\sleast|either|ever)\s+)*
    (?:{_VERB}(?:\s+(?:or|and)\s+{_VERB})?)?
    (?:\s+(?:out|to|of|about|(?:it\s+)?clear))?\s*
    (?:\w+ly\s+)?(?:(?:the\sfact\s)?that\b|:)?\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_MENTION = (
    r"(?:mention|talk|word|statement|claim|hint|trace|sign|reference)s?\s+(?:of|about|to|that)\s+"
)
_THERE = re.compile(
    rf"\s*(?:there\s+{_MODAL}\s+be\s+(?:(?P<no>no|not\sany)\s+|a\s+|some\s+)?|(?P<none>no)\s+)"
    rf"{_MENTION}",
    re.IGNORECASE | re.VERBOSE,
)
_PASSIVE = re.compile(
    rf"""(?P<none>no\s+)?(?P<subject>.+?)\s+{_MODAL}\s*{_NO}?\s*be\s+(?:\w+ly\s+)?
    {_VERB}(?P<rest>.*)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# Frames of no fixed grammar: "readers learn that", "the text is silent about", "X comes up".
_TELLER = r"""(?:the|a|an|any|its|your|one|it|readers?|we|someone)?\s*
    (?:\w+\s+)?(?:response|caption|description|answer|reply|model|text|account|passage|writer|author|
    wording|narrative|summary|report|output|candidate|readers?|viewers?|one|it|write-up|statement)"""
_DENIAL = r"""(?:not|never|n't|no|nothing|nowhere|nobody|none|without|silent|avoid\w*|refrain\w*|
    omit\w*|leaves?\s+out|steers?\s+clear|free\s+of|lacks?|wrong|forbidden|prohibited|absent)"""
_THAT = re.compile(
    rf"(?P<head>(?:{_TELLER}|there|nothing|nowhere|credit|mention)\b(?:\W+\w+){{0,9}}?)\s+"
    r"(?:that|whether)\s+(?P<rest>.+)",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ABOUT = re.compile(
    rf"(?P<head>(?:{_TELLER}|nothing|no|nowhere|there)\b(?:\s+\w+){{0,6}}?\s*"
    r"\b(?:speak|talk|silent|nothing|mention|word|said|hear|hint|refer|allud|comment)\w*)\s+"
    r"(?:of|about|on|to)\s+(?P<rest>.+)",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_TELLS = re.compile(
    rf"(?P<head>{_TELLER}\s+(?:\w+\s+)?(?:{_DENIAL}\s+)?\w+(?:\s+us)?)\s+(?P<rest>.+)",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_COMES_UP = re.compile(
    r"(?P<rest>.+?)\s+(?P<head>(?:comes?|crops?)\s+up|(?:is|are|gets?)\s+(?:not\s+|never\s+)?(?:all\s+)?"
    r"(?:brought\s+up|a\s+mention|mentioned|named|noted|stated|claimed|said)|goes\s+unmentioned)",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_DENIES = re.compile(rf"\b{_DENIAL}\b|n't\b", re.IGNORECASE | re.VERBOSE)
_STARTS_DENYING = re.compile(
    r"(?:no|nothing|nowhere|nobody|none|neither|never)\b\s*(?:is|are)?\s*", re.IGNORECASE
)
_NOT_LESS = re.compile(
    r"\b(?:not|never)\s+(?:(?:fail|forget)\s+to|omit|forget|overlook|leave\s+out)\s+", re.IGNORECASE
)
_INSTEAD = re.compile(
    r"(?:(?:,\s*|\()(?:and |but )?not\b(?! only)|,?\s*(?:rather than|instead of|as opposed to))"
    r"\s+[^,.;)]*\)?",
    re.IGNORECASE,
)

_OR = re.compile(r",?\s+or\s+", re.IGNORECASE)

# Words of a statement that name a sort of thing, which captions leave out.
_SORTS = frozenset(("word", "words", "name", "text", "number", "year", "title", "value", "part"))

# Fitted by benchmarks/fit_embedded.py, on no item of the frozen half of the material.
SUPPORT_WEIGHTS: tuple[float, ...] = (
    -3.2,
    -1.61,
    1.18,
    1.62,
    1.91,
    0.2,
    0.58,
    0.83,
    -0.26,
    -1.75,
    -2.62,
    0.88,
    -0.89,
    1.1,
    0.35,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a statement demands (`forbidden`: forbids) that the caption says.

    `forms` are the ways to say it, any of which will do.
    """

    forms: tuple[str, ...]
    forbidden: bool


@lru_cache(maxsize=8192)
def claim_of(statement: str) -> Claim:
    """A statement without its frame.

    >>> claim_of("The response must not mention that the cat is black.")
    Claim(forms=('the cat is black',), forbidden=True)
    """
    said, is_forbidden = _unframed(statement.strip(" ."))
    text = _INSTEAD.sub("", said).strip(" .") or said
    return Claim(_forms_of(_AT_LEAST.sub("", text).strip()), is_forbidden)


def _unframed(statement: str) -> tuple[str, bool]:
    """What a statement says of a caption's content, and whether it forbids that.

    >>> _unframed("Steam must not be mentioned"), _unframed("No talk of a pie chart")
    (('Steam', True), ('a pie chart', True))
    """
    statement = _NOT_LESS.sub("", statement)
    frame = _FRAME.match(statement) or _THERE.match(statement)
    if frame:
        is_forbidden = any(frame.groupdict().values())
        return statement[frame.end() :], is_forbidden
    passive = _PASSIVE.fullmatch(statement)
    if passive:
        return passive["subject"] + passive["rest"], bool(passive["no"] or passive["none"])
    return _loosely_unframed(statement)


def _loosely_unframed(statement: str) -> tuple[str, bool]:
    """The same for frames of no fixed grammar; what denies in a frame forbids.

    >>> _loosely_unframed("Readers learn that the cat is big")
    ('the cat is big', False)
    >>> _loosely_unframed("The account is silent about gloves")
    ('gloves', True)
    """
    for frame in (_COMES_UP, _THAT, _ABOUT, _TELLS):
        found = frame.fullmatch(statement)
        if found:
            rest = found["rest"]
            start = _STARTS_DENYING.match(rest) if frame in (_COMES_UP, _TELLS) else None
            denies = bool(_DENIES.search(found["head"])) or start is not None
            return rest[start.end() :] if start else rest, denies
    start = _STARTS_DENYING.match(statement)
    return (statement[start.end() :], True) if start else (statement, False)


_AT_LEAST = re.compile(r"\bat least (?:one|1)\b(?: of)?", re.IGNORECASE)


def _forms_of(text: str) -> tuple[str, ...]:
    """A claim once for each alternative that it names.

    >>> _forms_of("the fur is orange or light brown")
    ('the fur is orange', 'the fur is light brown')
    """
    parts = _OR.split(text)
    if len(parts) < 2 or quoted(text):
        return (text,)
    *listed, first = parts[0].split(", ")
    if len(listed) > 2 or any(len(entry.split()) > 3 for entry in listed[1:]):
        listed, first = [], parts[0]
    lead = (listed[0] if listed else first).split()
    others = [*listed[1:], *([first] if listed else []), *parts[1:]]
    forms = [" ".join(lead)]
    for other in others:
        words = other.split()
        forms.append(" ".join([*lead[: _shared(lead, words[0])], *words]))
    return tuple(forms)


_ARTICLES = ("a", "an", "the")
_PREPOSITIONS = ("in", "on", "at", "to", "towards", "toward", "into", "from", "near", "under", "by")


def _shared(lead: Sequence[str], start: str) -> int:
    """How many words of the first alternative a further one shares, from what that begins with."""
    for kind in (_ARTICLES, _PREPOSITIONS):
        places = [i for i, word in enumerate(lead) if word in kind]
        if start in kind and places:
            return places[-1]
    return max(0, len(lead) - 1)


def _terms(form: str) -> tuple[str, ...]:
    terms = terms_of(form)
    return tuple(t for t in terms if t not in _SORTS) or terms


def texts_for(caption: str, statements: Sequence[str]) -> Iterable[str]:
    """All whose vectors `verify` needs."""
    yield from page_of(caption).texts()
    for statement in statements:
        for form in claim_of(statement).forms:
            yield form
            yield from _terms(form)


def verify(caption: str, statement: str, vectors: Vectors) -> bool:
    """Whether a statement holds of a caption.

    A caption that is silent fails what is demanded and passes what is forbidden.
    """
    claim = claim_of(statement)
    scores = support_features(caption, claim, vectors) @ np.array(SUPPORT_WEIGHTS)
    # Rounded, so that the last bits of a processor's arithmetic decide nothing.
    return bool(round(float(scores.max()), 5) > 0) != claim.forbidden


def support_features(caption: str, claim: Claim, vectors: Vectors) -> NDArray[np.float64]:
    """What tells whether a caption says a claim, of shape (forms, features)."""
    rows = [_form_features(caption, form, vectors) for form in claim.forms]
    found = np.array(rows, np.float64)
    found[:, 1] = claim.forbidden
    return found


def _form_features(caption: str, form: str, vectors: Vectors) -> list[float]:
    page, terms = page_of(caption), _terms(form)
    if not page.segments or not terms:
        return [1.0] + [0.0] * (len(SUPPORT_WEIGHTS) - 1)
    denies = is_negated(form)
    like = likeness(terms, page.words, vectors)
    whole, near = best_in(like, page.here), best_in(like, page.near)
    here = whole if denies else best_in(like, page.affirmed)
    cosine = np.stack([vectors[s.text] for s in page.segments]) @ vectors[form]
    strength = np.round(cosine + here.mean(axis=0) + 0.5 * near.mean(axis=0), 5)
    best = int(strength.argmax())
    denied = float((whole[:, best] - best_in(like, page.affirmed)[:, best]).max())
    return [
        1.0,
        0.0,
        float(cosine[best]),
        float(cosine.max()),
        float(here[:, best].mean()),
        float(near[:, best].mean()),
        float(near[:, best].min()),
        float(like.max(axis=1, initial=0.0).min()),
        float((here[:, best] >= 1).mean()),
        _missing_numbers(terms, near[:, best], page.segments[best].words),
        _rivals(form, page, best),
        _quotes(form, caption),
        1.0 - denied if denies else denied,
        *_binding(terms, like, page, best),
    ]


def _binding(terms: Sequence[str], like: Array, page: Page, segment: int) -> tuple[float, float]:
    """Whether a claim's values (colours, numbers ...) stand near, and how near its other words.

    Both are 1 where the claim has no values.
    """
    is_value = np.array([t[0].isdigit() or any(stem(t) in k for k in RIVALS) for t in terms])
    if not is_value.any():
        return 1.0, 1.0
    found = best_in(like[is_value], page.near)[:, segment]
    if is_value.all():
        return float((found >= 1).mean()), 1.0
    close = nearness(page, like[is_value], like[~is_value])
    return float((found >= 1).mean()), float(close[segment])


def _missing_numbers(
    terms: Sequence[str], found: NDArray[np.float32], words: Sequence[str]
) -> float:
    """1 where a number of the claim is missing and another stands there, 0.5 where none does."""
    missing = any(f < 1 for t, f in zip(terms, found, strict=True) if t[0].isdigit())
    others = any(w[0].isdigit() for w in words)
    return (1.0 if others else 0.5) if missing else 0.0


def _rivals(claim: str, page: Page, segment: int) -> float:
    """1 where a segment has another colour, direction ... than the claim, and not the claim's."""
    wanted = {stem(t) for t in tokens(claim)}
    said = {stem(w) for w in page.segments[segment].around}
    return float(any(wanted & k and said & k and not wanted & k <= said for k in RIVALS))


def _quotes(claim: str, caption: str) -> float:
    """1 where all that a claim quotes stands in the caption, -1 where some is missing."""
    marks = quoted(claim)
    text = f" {' '.join(tokens(normalise(caption)))} "
    if not marks:
        return 0.0
    return 1.0 if all(f" {' '.join(tokens(m))} " in text for m in marks) else -1.0
