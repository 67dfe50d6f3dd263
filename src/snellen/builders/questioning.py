"""Writing questions about regions: the generator's flow, and the checks by code.

Source: CapProbe, section 3.4 and figure 7.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.describing import plain_text
from snellen.builders.options import QuestionOptions
from snellen.builders.rows import DescribedRow, PictureRow, QuestionRow, RegionRow
from snellen.builders.steps import Made, Rejected, asked_again, undone
from snellen.flows import Asked, Flow, ask_until
from snellen.keys import rng_for
from snellen.records import JsonObject, Message, Reply, Request
from snellen.replies import UnreadableError, json_reply
from snellen.schemas import CATEGORIES, LETTERS
from snellen.templates import bundled

PROMPT = "build_question"


class Candidate(msgspec.Struct):
    """A question as a generator writes it."""

    category: str
    question: str
    options: list[str]
    correct_answer: str


@dataclass(frozen=True, slots=True)
class Written:
    """The questions of one reply; `broken` are entries of another form, with their complaint."""

    candidates: tuple[tuple[int, Candidate], ...]
    broken: tuple[tuple[int, str], ...] = ()
    object_id: str = ""


class _Sheet(msgspec.Struct):
    """The object that is asked for; a bare list of its questions is taken too."""

    qas: list[object]
    object_id: str | int = ""


# A union is no class to the type checker; msgspec decodes it all the same.
_parse: Callable[[Reply], _Sheet | list[object]] = json_reply(_Sheet | list[object])  # type: ignore[arg-type]


def questions_in(reply: Reply) -> Written:
    """The questions that a generator's reply holds; an entry of another form is kept apart.

    Raises:
        UnreadableError: the reply is no JSON of the form asked for, or holds no question.
    """
    found = _parse(reply)
    entries = found.qas if isinstance(found, _Sheet) else found
    if not entries:
        raise UnreadableError("no_question", 'the list "qas" is empty')
    candidates, broken = [], []
    for number, entry in enumerate(entries, 1):
        try:
            candidates.append((number, msgspec.convert(entry, Candidate)))
        except msgspec.ValidationError as error:
            broken.append((number, str(error)))
    if not candidates:
        raise UnreadableError("no_question", f"no question is as asked for: {broken[0][1]}")
    object_id = str(found.object_id) if isinstance(found, _Sheet) else ""
    return Written(tuple(candidates), tuple(broken), object_id)


@dataclass(frozen=True, slots=True)
class Subject:
    """What questions are written about: a region with its picture and its metadata."""

    picture: PictureRow
    region: RegionRow
    described: DescribedRow


def write_questions(
    subject: Subject, *, role: str, generator: str, options: QuestionOptions, seed: int
) -> Flow[Made]:
    """One generator's questions about one region, checked, with right letters spread evenly."""
    unit = f"{subject.region.id}.{generator}"
    text = bundled(PROMPT).fill(
        metadata=plain_text(subject.described.metadata),
        object_id=subject.region.id,
        wanted=str(options.wanted),
        categories="\n".join(f"{letter}. {name}" for letter, name in zip("ABCDEFGHIJ", CATEGORIES,
                                                                         strict=True)),
    )  # fmt: skip
    parts = (subject.picture.file.image(subject.picture.name),
             subject.region.view.image(subject.region.id), text)  # fmt: skip
    request = Request(role, (Message("user", parts),), "question")
    asked = yield from ask_until(request, questions_in, reasks=options.reasks)
    if asked.value is None:
        return undone(asked, unit, made_from=(subject.region.id,))
    return checked(asked.value, subject, generator=generator, seed=seed, asked=asked)


def checked(
    written: Written,
    subject: Subject,
    *,
    generator: str,
    seed: int,
    asked: Asked[Written] | None = None,
) -> Made:
    """The candidates that pass every check as rows, and the others with their reasons."""
    region, unit = subject.region, f"{subject.region.id}.{generator}"
    rows: list[QuestionRow] = []
    dropped = [
        Rejected(id=f"{unit}.{n:02d}", made_from=(region.id,), reason="malformed",
                 detail={"error": error})
        for n, error in written.broken
    ]  # fmt: skip
    seen: dict[str, str] = {}
    for number, raw in written.candidates:
        name = f"{unit}.{number:02d}"
        one = tidied(raw)
        fault = next(faults(one, subject.described.metadata), "")
        text = _folded(one.question)
        if not fault and text in seen:
            fault = "repeated"
        if fault:
            detail = {"question": one.question, "options": one.options,
                      "answer": one.correct_answer, "category": one.category}  # fmt: skip
            dropped.append(Rejected(id=name, made_from=(region.id,), reason=fault, detail=detail))
            continue
        seen[text] = name
        rows.append(
            QuestionRow(
                id=name,
                made_from=(region.id,),
                image_id=region.image_id,
                region_id=region.id,
                category=one.category,
                question=one.question,
                options=tuple(one.options),  # type: ignore[arg-type]
                answer=one.correct_answer,
                generator=generator,
                index=number,
            )
        )
    counts = {} if asked is None else asked_again(asked)
    if written.object_id not in ("", region.id):
        counts["other_object_id"] = 1
    counts |= {f"category: {name}": n for name, n in Counter(r.category for r in rows).items()}
    counts["kept_inputs"] = 1
    return Made(tuple(spread_letters(rows, unit, seed=seed)), dropped=tuple(dropped), counts=counts)


def spread_letters(rows: Sequence[QuestionRow], unit: str, *, seed: int) -> Iterator[QuestionRow]:
    """The same questions with the options in a seeded order, right letters as even as can be."""
    rng = rng_for(seed, unit, "letters")
    places: list[int] = []
    while len(places) < len(rows):
        places += rng.permutation(len(LETTERS)).tolist()
    for row, place in zip(rows, places, strict=False):
        others = [option for k, option in enumerate(row.options) if LETTERS[k] != row.answer]
        order = rng.permutation(len(others))
        options = [others[k] for k in order]
        options.insert(place, row.right)
        yield msgspec.structs.replace(row, options=tuple(options), answer=LETTERS[place])


_LETTERED = re.compile(r"\s*\(?([A-D])[.):]\s+(?=\S)")
_CATEGORY = re.compile(r"\s*\(?[A-J][.):]\s*(?=\S)")
_CATEGORIES = {name.casefold(): name for name in CATEGORIES}


def tidied(raw: Candidate) -> Candidate:
    """A candidate without letters before its options and its category.

    >>> tidied(Candidate("A. recognition", " What? ", ["A. one", "B. two"], "b."))
    Candidate(category='Recognition', question='What?', options=['one', 'two'], correct_answer='B')
    """
    options = [option.strip() for option in raw.options]
    found = [_LETTERED.match(option) for option in options]
    if all(m is not None and m[1] == LETTERS[k] for k, m in enumerate(found[:4])) and options:
        options = [_LETTERED.sub("", option, count=1) for option in options]
    category = _CATEGORY.sub("", raw.category, count=1).strip()
    answer = raw.correct_answer.strip().strip("().:").upper()
    return Candidate(
        _CATEGORIES.get(category.casefold(), category), raw.question.strip(), options, answer
    )


_JARGON = re.compile(
    r"\b(?:mask(?:ed)?[- ](?:image|region|area|part|segment|object)|masks?\b(?= (?:shows|covers))"
    r"|highlighted (?:region|area|part|segment)|target (?:region|area|object|segment)"
    r"|identified target|the target|bounding box|this (?:region|segment)|segmented|segmentation"
    r"|meta ?(?:info|data))\b",
    re.IGNORECASE,
)
_COMBINED = re.compile(
    r"\b(?:(?:both|either|neither)\s+(?:option\s+)?\(?[a-d]\)?\s+(?:and|or|nor)\s+(?:option\s+)?"
    r"\(?[a-d]\)?(?![a-z])|(?:all|none|any|some) of the (?:above|other options|options|others)"
    r"|[a-d] (?:and|or|&) [a-d] (?:only|are correct))",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:left|right|cent(?:re|er|ral)|middle|mid-?ground|foreground|background|upper|lower|top|"
    r"bottom|corner|edge|behind|beside|between|beneath|below|above|under|underneath|near|nearest|"
    r"next to|adjacent|opposite|front|rear|back of|facing|across|against|inside|within|around|"
    r"alongside|closest|surround\w*|at the|on the|in the|along the|over the)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_GENERIC = frozenset(
    ("object", "item", "thing", "animal", "person", "man", "woman", "people", "dog", "cat", "car",
     "vehicle", "building", "area", "element", "subject", "figure")
)  # fmt: skip
_SMALL = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "have", "in", "is",
     "it", "its", "of", "on", "or", "that", "the", "this", "to", "was", "were", "what", "which",
     "with", "how", "many", "who", "where", "does", "do")
)  # fmt: skip


def faults(one: Candidate, metadata: JsonObject) -> Iterator[str]:
    """Every reason for which a candidate cannot be used, the plainest first."""
    if not one.question:
        yield "empty"
    if len(one.options) != len(LETTERS):
        yield "options_not_four"
        return
    folded = [_folded(option) for option in one.options]
    if not all(folded):
        yield "empty_option"
    if one.correct_answer not in tuple(LETTERS):
        yield "answer_no_letter"
        return
    right = LETTERS.index(one.correct_answer)
    if folded.count(folded[right]) > 1:
        yield "two_right_options"
    if len(set(folded)) < len(folded):
        yield "options_alike"
    if one.category not in CATEGORIES:
        yield "unknown_category"
    if any(_JARGON.search(text) for text in (one.question, *one.options)):
        yield "jargon"
    if any(_COMBINED.search(option) for option in one.options):
        yield "combined_options"
    if not is_located(one.question, metadata):
        yield "bare_reference" if is_bare(one.question, metadata) else "no_location"
    if true_distractors(one, metadata):
        yield "true_distractor"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .")


def words(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, folded."""
    return frozenset(w for w in _WORD.findall(text.casefold()) if w not in _SMALL)


def is_located(question: str, metadata: JsonObject) -> bool:
    """Whether a question says which part of the picture it is about.

    A question does so by a word of place, or by two words of the key feature or the position
    beside the kind of thing that it names.
    """
    if _PLACE.search(question):
        return True
    appearance = metadata["detailed_appearance"]
    kinds = words(" ".join(_kinds(metadata))) | _GENERIC
    telling = words(appearance["key_identifying_feature"]) | words(
        metadata["spatial_and_localization"]["global_position"]
    )
    return len(words(question) & (telling - kinds)) >= 2


def _kinds(metadata: JsonObject) -> tuple[str, str]:
    identity = metadata["identity_and_taxonomy"]
    return identity["broad_category"], identity["specific_type"]


def is_bare(question: str, metadata: JsonObject) -> bool:
    """Whether a question names a kind of thing with `the` and nothing that tells it from others."""
    kinds = words(" ".join(_kinds(metadata))) | _GENERIC
    named = re.findall(r"\bthe\s+([^\W_]+)", question.casefold())
    return any(name.removesuffix("s") in kinds or name in kinds for name in named)


# Which fields of the metadata have one true value for the questions of a category.
_ONE_VALUE = {
    "Recognition": (("identity_and_taxonomy", "specific_type"),),
    "Scene Perception": (
        ("global_scene_context", "lighting_and_weather"),
        ("global_scene_context", "time_of_day"),
        ("global_scene_context", "overall_atmosphere"),
    ),
    "Current State": (("dynamics_and_interactions", "motion_or_physical_state"),),
    "Spatial Relationship & Position": (("spatial_and_localization", "global_position"),),
}


def true_distractors(one: Candidate, metadata: JsonObject) -> tuple[str, ...]:
    """Wrong options that the metadata makes as true as the right one.

    A distractor is true when it is the one value of a field that the category asks for, or when it
    stands in the same list as the right option (colours, materials, printed texts) and the question
    names no part of the region.
    """
    right = _folded(one.options[LETTERS.index(one.correct_answer)])
    wrong = [o for o in one.options if _folded(o) != right]
    true = {
        _folded(metadata[module][field] or "") for module, field in _ONE_VALUE.get(one.category, ())
    }
    if right in true:
        true = set()
    appearance = metadata["detailed_appearance"]
    parts = [part["element_name"] for part in appearance["sub_components_or_elements"] or ()]
    if not any(words(part) & words(one.question) for part in parts):
        lists = (
            appearance["overall_color_palette"] or (),
            appearance["materials_and_textures"] or (),
            [text["content"] for text in appearance["text_and_markings"] or ()],
        )
        for values in lists:
            folded = {_folded(value) for value in values}
            if right in folded:
                true |= folded
    return tuple(o for o in wrong if _folded(o) in true - {""})


def generators_for(region_id: str, seats: Sequence[str], *, split: bool, seed: int) -> list[str]:
    """Who writes about a region: all, or the one that a seeded order gives it."""
    if not split:
        return list(seats)
    return [seats[int(rng_for(seed, region_id, "generator").integers(len(seats)))]]
