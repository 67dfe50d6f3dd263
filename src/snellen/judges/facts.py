"""Captions written from structured facts, so that what they say is known to the last word.

The facts come from the metadata of a benchmark's regions. Each is kept, left out, changed or
negated at a known rate; questions, statements and short answers about it then have a known truth,
whoever judges them. The wording is plain on purpose: what is measured is the judge's reading.
Source: CapProbe (arXiv 2608.11074), figure 6, for the fields of the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from snellen.keys import rng_for
from snellen.records import Params, Region

Treatment = Literal["stated", "absent", "changed", "negated"]
TREATMENTS: tuple[Treatment, ...] = ("stated", "absent", "changed", "negated")
N_OPTIONS = 4
UNCERTAIN = "E"
SILENT_ANSWER = "I cannot tell that from the picture."
MOST_WORDS = 8


@dataclass(frozen=True, slots=True)
class Aspect:
    """How a kind of fact is asked about, said (in two ways) and denied.

    The marks are `{s}` for the thing, `{v}` for the value and `{part}` for what is counted.
    """

    name: str
    question: str
    says: tuple[str, str]
    denies: str


ASPECTS: Mapping[str, Aspect] = {
    aspect.name: aspect
    for aspect in (
        Aspect(
            "colour",
            "What is the main colour of the {s}?",
            ("The main colour of the {s} is {v}.", "The {s} is mostly {v}."),
            "The {s} is not {v}.",
        ),
        Aspect(
            "count",
            "How many {part} does the {s} have?",
            ("The {s} has {v} {part}.", "One can count {v} {part} on the {s}."),
            "The {s} does not have {v} {part}.",
        ),
        Aspect(
            "text",
            "What text does the {s} carry?",
            ('The {s} carries the text "{v}".', 'On the {s} one reads "{v}".'),
            'The {s} does not carry the text "{v}".',
        ),
        Aspect(
            "place",
            "In which part of the picture is the {s}?",
            (
                "The {s} is in this part of the picture: {v}.",
                "One finds the {s} here in the picture: {v}.",
            ),
            "The {s} is not in this part of the picture: {v}.",
        ),
        Aspect(
            "material",
            "Which material or surface does the {s} show?",
            (
                "The material or surface of the {s} is this: {v}.",
                "As to material or surface, the {s} shows {v}.",
            ),
            "The material or surface of the {s} is not this: {v}.",
        ),
        Aspect(
            "state",
            "In what state is the {s}?",
            ("The state of the {s} is this: {v}.", "The {s} is in this state: {v}."),
            "The state of the {s} is not this: {v}.",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about one thing, with three values that it does not have."""

    id: str
    image_id: str
    aspect: Aspect
    subject: str
    value: str
    others: tuple[str, ...]
    part: str = ""

    @property
    def question(self) -> str:
        """The question whose answer the fact is."""
        return self.aspect.question.format(s=self.subject, part=self.part)

    def say(self, value: str, form: int = 0) -> str:
        """A sentence that gives the fact a value."""
        return self.aspect.says[form].format(s=self.subject, v=value, part=self.part)

    def deny(self) -> str:
        """A sentence that takes the fact's value away and gives it no other."""
        return self.aspect.denies.format(s=self.subject, v=self.value, part=self.part)


@dataclass(frozen=True, slots=True)
class Shares:
    """How often facts are stated, left out, changed and negated; the rest of 1 is stated."""

    absent: float = 0.25
    changed: float = 0.2
    negated: float = 0.15

    @property
    def chances(self) -> tuple[float, ...]:
        """The chances of `TREATMENTS`, adding up to 1."""
        rest = 1.0 - self.absent - self.changed - self.negated
        return rest, self.absent, self.changed, self.negated


DEFAULT_SHARES = Shares()


@dataclass(frozen=True, slots=True)
class Told:
    """What a caption did with a fact, and how the fact is asked about.

    `options` hold the value and what it is not; `answer` is the letter of the value, `truth` the
    letter of what the caption says (E where it does not say). `reply` is a short answer of the
    same kind.
    """

    fact: Fact
    treatment: Treatment
    options: tuple[str, ...]
    answer: str
    truth: str
    reply: str

    @property
    def is_stated(self) -> bool:
        """Whether the caption says of the fact what is so."""
        return self.treatment == "stated"


@dataclass(frozen=True, slots=True)
class FactualCaption:
    """A caption of one picture, and what it did with each fact."""

    image_id: str
    text: str
    told: tuple[Told, ...]


def write_captions(
    regions: Sequence[Region], *, shares: Shares = DEFAULT_SHARES, seed: int = 0
) -> list[FactualCaption]:
    """A caption for each picture that has facts; the same again for the same seed.

    >>> region = Region("cup", "cat", (0, 0, 500, 500), "thing", metadata={
    ...     "identity_and_taxonomy": {"specific_type": "cup"},
    ...     "detailed_appearance": {"overall_color_palette": ["red"]}})
    >>> [caption] = write_captions([region], shares=Shares(0, 0, 0))
    >>> caption.text in {f"In the picture: cup. {s}" for s in
    ...     ("The main colour of the cup is red.", "The cup is mostly red.")}
    True
    """
    facts: dict[str, list[Fact]] = {}
    for fact in facts_of(regions, seed=seed):
        facts.setdefault(fact.image_id, []).append(fact)
    return [_write(image, found, shares=shares, seed=seed) for image, found in facts.items()]


def _write(image: str, facts: Sequence[Fact], *, shares: Shares, seed: int) -> FactualCaption:
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    sentences = [f"In the picture: {', '.join(subjects)}."]
    told = []
    for fact in facts:
        rng = rng_for(seed, image, fact.id, "treatment")
        treatment = TREATMENTS[int(rng.choice(len(TREATMENTS), p=shares.chances))]
        told.append(_ask(fact, treatment, rng))
        sentences += _sentences(fact, treatment, int(rng.integers(2)))
    return FactualCaption(image, " ".join(sentences), tuple(told))


def _sentences(fact: Fact, treatment: Treatment, form: int) -> list[str]:
    match treatment:
        case "stated":
            return [fact.say(fact.value, form)]
        case "changed":
            return [fact.say(fact.others[0], form)]
        case "negated":
            return [fact.deny()]
        case "absent":
            return []


def _ask(fact: Fact, treatment: Treatment, rng: np.random.Generator) -> Told:
    values = (fact.value, *fact.others)
    order = [int(k) for k in rng.permutation(len(values))]
    letters = {value: "ABCD"[order.index(k)] for k, value in enumerate(values)}
    said = {"stated": fact.value, "changed": fact.others[0]}.get(treatment)
    reply = {
        "stated": fact.value,
        "changed": fact.others[0],
        "negated": f"Not {fact.value}.",
        "absent": SILENT_ANSWER,
    }[treatment]
    return Told(
        fact,
        treatment,
        tuple(values[k] for k in order),
        answer=letters[fact.value],
        truth=UNCERTAIN if said is None else letters[said],
        reply=reply,
    )


def facts_of(regions: Sequence[Region], *, seed: int = 0) -> Iterator[Fact]:
    """The facts that regions' metadata give, each with three values that it does not have.

    Left out are facts whose value the thing's own name gives away, things that share their name
    with another of the picture, and facts to which the benchmark has not three other values.
    """
    known = list(_known_values(regions))
    pools: dict[str, list[str]] = {}
    for found in known:
        pools.setdefault(found.aspect, []).append(found.value)
    pools |= {"place": list(PLACES), "colour": list(COLOURS)}
    for found in known:
        rng = rng_for(seed, found.image_id, found.id, "others")
        others = _others(found, pools[found.aspect], rng)
        if len(others) == N_OPTIONS - 1:
            aspect = ASPECTS[found.aspect]
            yield Fact(
                found.id, found.image_id, aspect, found.subject, found.value, others, found.part
            )


COLOURS = (
    "red", "green", "blue", "yellow", "purple", "orange", "brown", "black", "white", "grey",
    "pink",
)  # fmt: skip
PLACES = (
    "upper left corner", "upper right corner", "lower left corner", "lower right corner",
    "middle", "left edge", "right edge", "top edge", "bottom edge",
)  # fmt: skip
# Words of which one stands for the other.
_SAME = {"top": "upper", "bottom": "lower", "centre": "middle", "center": "middle", "mid": "middle"}
_SMALL = frozenset(
    (
        "a", "an", "the", "of", "in", "on", "at", "to", "and", "or", "with", "its",
        "edge", "corner", "side", "half", "part",
    )
)  # fmt: skip
_NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip
MOST_COUNTED = 12


@dataclass(frozen=True, slots=True)
class _Known:
    """A value that a region's metadata give."""

    id: str
    image_id: str
    aspect: str
    subject: str
    value: str
    part: str = ""


def _known_values(regions: Sequence[Region]) -> Iterator[_Known]:
    named: set[tuple[str, str]] = set()
    for region in regions:
        data = region.metadata if isinstance(region.metadata, Mapping) else {}
        subject = _text(_section(data, "identity_and_taxonomy").get("specific_type"))
        subject = subject[:1].lower() + subject[1:] if subject[1:2].islower() else subject
        if not subject or (region.image_id, subject.casefold()) in named:
            continue
        named.add((region.image_id, subject.casefold()))
        for aspect, value, part in _values(data):
            is_usable = _words(value) and len(value.split()) <= MOST_WORDS
            if is_usable and not (
                any(word in subject.casefold() for word in _words(value))
                or bool(_words(value) & _words(subject))
            ):
                place = f"{region.region_id}/{aspect}"
                yield _Known(place, region.image_id, aspect, subject, value, part)


def _values(data: Params) -> Iterator[tuple[str, str, str]]:
    """The aspects of a region's metadata with their values, and what is counted."""
    look = _section(data, "detailed_appearance")
    yield "colour", _text(_first(look.get("overall_color_palette"))), ""
    yield "material", _text(_first(look.get("materials_and_textures"))), ""
    marking = _first(look.get("text_and_markings"))
    yield "text", _text(marking.get("content") if isinstance(marking, Mapping) else None), ""
    yield "place", _text(_section(data, "spatial_and_localization").get("global_position")), ""
    state = _section(data, "dynamics_and_interactions").get("motion_or_physical_state")
    yield "state", _text(state), ""
    for element in look.get("sub_components_or_elements") or ():
        name, n = element.get("element_name"), element.get("quantity")
        if _text(name) and isinstance(n, int) and 2 <= n <= MOST_COUNTED:
            yield "count", _NUMBERS[n], plural(_text(name))
            return


def _section(data: Params, name: str) -> Params:
    section = data.get(name)
    return section if isinstance(section, Mapping) else {}


def _first(values: object) -> object:
    return values[0] if isinstance(values, list) and values else None


def _text(value: object) -> str:
    return " ".join(value.split()).rstrip(".") if isinstance(value, str) else ""


def plural(noun: str) -> str:
    """The plural of an English noun, roughly; one that ends in s is left alone.

    >>> plural("check box"), plural("berry"), plural("white straps"), plural("loaf")
    ('check boxes', 'berries', 'white straps', 'loaves')
    """
    if noun.endswith(("x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("s"):
        return noun
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if re.search(r"(loa|lea|shel|hal|cal)f$", noun):
        return noun[:-1] + "ves"
    return noun + "s"


def _others(found: _Known, pool: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Up to three values that share no word of weight with the fact, its thing or each other."""
    if found.aspect == "count":
        n = _NUMBERS.index(found.value)
        near = [k for k in (n - 2, n - 1, n + 1, n + 2, n + 3) if k >= 1]
        return tuple(_NUMBERS[near[int(k)]] for k in rng.permutation(len(near))[: N_OPTIONS - 1])
    chosen: list[str] = []
    taken = _words(found.value) | _words(found.subject)
    candidates = sorted(set(pool))
    for k in rng.permutation(len(candidates)):
        words = _words(candidates[int(k)])
        if words and not words & taken:
            chosen.append(candidates[int(k)])
            # Places share words such as `left` among themselves, and are told apart all the same.
            taken |= frozenset() if found.aspect == "place" else words
        if len(chosen) == N_OPTIONS - 1:
            break
    return tuple(chosen)


def _words(text: str) -> frozenset[str]:
    words = (_SAME.get(w, w) for w in re.findall(r"[^\W_]+", text.casefold()))
    return frozenset(words) - _SMALL
