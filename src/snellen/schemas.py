"""The rows of the three protocols as types, and what can be wrong with a well-typed row.

One list of faults serves both loading, which stops at the first, and checking, which names all.
A field that a check could not read is `UNSET` and is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct

from snellen.records import JsonObject

CATEGORIES = (
    "Recognition",
    "Attributes",
    "OCR/Text",
    "Scene Perception",
    "Count",
    "Current State",
    "Dynamic Object",
    "Action",
    "Camera Features",
    "Spatial Relationship & Position",
)
ERROR_CATEGORIES = (
    "visual_relation_error",
    "visual_counting_error",
    "visual_attribute_error",
    "depth_3d_perception_error",
    "visual_localization_error",
    "visual_comparison_error",
    "fine_grained_recognition_error",
    "context_integration_error",
    "ocr_error",
    "hallucination",
)
DOMAINS = (
    "Digital UI/UX",
    "Structured Data",
    "Creative/Cultural",
    "Document/OCR",
    "Natural Scene",
    "Logic/Puzzle",
    "STEM/Expert",
)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = ALPHABET[:4]
NATURES = ("thing", "stuff")

# What a field is, in the words of hints.
Id = Annotated[str | int, Meta(description="an id, text or a whole number")]
_Picture = Annotated[Raw, Meta(description="a path, a data URI or a {bytes, path} object")]
_Statements = Meta(description="a list of statements, which may be empty")


class ImageRow(Struct):
    """A row of `images` in a reading benchmark."""

    image_id: Id
    image: _Picture
    l1: list[str] | str | None = None
    l2: list[str] | str | None = None


class RegionRow(Struct):
    """A row of `regions`: `bbox` is [ymin, xmin, ymax, xmax] in 0-1000 of the upright image."""

    region_id: Id
    image_id: Id
    bbox: Annotated[
        list[float],
        Meta(description="[ymin, xmin, ymax, xmax] in thousandths of the upright picture"),
    ]
    nature: Annotated[str, Meta(description="`thing` or `stuff`")]
    mask: object = None
    metadata: object = None


class QuestionRow(Struct):
    """A row of `questions` in a reading benchmark."""

    question_id: Id
    image_id: Id
    category: Annotated[str, Meta(description="one of the ten categories")]
    question: Annotated[str, Meta(description="a text")]
    options: Annotated[list[str], Meta(description="a list of four texts, without their letters")]
    answer: Annotated[str, Meta(description="one letter A to D, of the right option")]
    region_id: Id | float | None = None
    generator: str | None = None


class DirectRow(Struct):
    """A row of `questions` in a direct benchmark. Source: PerceptionBench, the data set."""

    index: Id
    problem: Annotated[str, Meta(description="a text, with <|image_N|> where a picture stands")]
    answer: Annotated[
        str | int | float | JsonObject | None,
        Meta(description="a text, a number, or {answer: text}"),
    ]
    image: Raw = Raw(b"null")
    hint: str | None = None
    error_category: str | None = None
    source_bmk: str | None = None
    source_idx: Id | float | None = None


class RubricText(Struct):
    """A rubric that says who proposed it and which jurors kept it."""

    text: str
    proposer: str | None = None
    jurors: list[str] | str | None = None


class RubricRow(Struct):
    """A row of `rubrics`. Source: PerceptionRubrics, the data set."""

    id: Id
    image: _Picture
    must_right: Annotated[list[str | RubricText], _Statements]
    easy_wrong: Annotated[list[str | RubricText], _Statements]
    category: str | None = None
    golden_caption: str | None = None


class Fault(NamedTuple):
    """One thing that is wrong with one field of a row."""

    field: str
    message: str
    hint: str = ""


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint that names the nearest of the valid names, or all of them.

    >>> nearest("Cuont", ["Count", "Action"])
    'did you mean `Count`?'
    """
    near = get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"valid: {', '.join(names)}"


def was_read(value: object) -> bool:
    """Whether a check could read the field; loading always can."""
    return value is not UNSET


def question_faults(row: QuestionRow) -> Iterator[Fault]:
    """What is wrong with a multiple-choice question."""
    yield from _blank("question_id", row.question_id)
    yield from _blank("question", row.question)
    if was_read(row.category) and row.category not in CATEGORIES:
        hint = nearest(row.category, CATEGORIES)
        yield Fault("category", f"{row.category!r} is none of the ten categories", hint)
    if was_read(row.options):
        yield from option_faults(row.options)
    if was_read(row.answer) and (row.answer not in LETTERS or len(row.answer) != 1):
        hint = "write the letter of the right option, not its text"
        yield Fault("answer", f"expected one letter A to D, found {row.answer!r}", hint)


def option_faults(options: list[str]) -> Iterator[Fault]:
    """What is wrong with the options of a question."""
    if len(options) != len(LETTERS):
        hint = "E, which abstains, is not among them: the judge's prompt adds it"
        yield Fault("options", f"expected 4 options, found {len(options)}", hint)
    for number, option in enumerate(options, 1):
        if not option.strip():
            yield Fault(
                "options", f"option {number} is empty", "write all four, or leave the row out"
            )


def twin_faults(row: QuestionRow) -> Iterator[Fault]:
    """Options that say the same, which a check names and loading lets pass.

    Upper and lower case differ: a question about a sign may turn on it.
    """
    if not was_read(row.options):
        return
    first: dict[str, str] = {}
    for letter, option in zip(ALPHABET, row.options, strict=False):
        twin = first.setdefault(" ".join(option.split()), letter)
        if twin != letter and option.strip():
            right = row.answer in (twin, letter)
            what = "the right answer is also another option" if right else "two options are equal"
            both = f"{twin} and {letter} are both {option.strip()!r}"
            yield Fault("options", f"{what}: {both}", "no two options may say the same")


def letter_faults(row: QuestionRow) -> Iterator[Fault]:
    """Options that begin with their letters, which a judge would see twice."""
    if was_read(row.options) and are_lettered(row.options):
        yield Fault("options", "the options begin with letters", "A to D are put before them")


_LETTERED = tuple(re.compile(rf"\s*\(?{letter}[).:]\s*\S") for letter in LETTERS)


def are_lettered(options: Sequence[str]) -> bool:
    """Whether four options begin with their own letters.

    >>> are_lettered(["A. red", "B. blue", "C. green", "D. grey"])
    True
    """
    return len(options) == len(LETTERS) and all(
        own.match(option) for own, option in zip(_LETTERED, options, strict=True)
    )


def region_faults(row: RegionRow) -> Iterator[Fault]:
    """What is wrong with a region."""
    yield from _blank("region_id", row.region_id)
    if was_read(row.nature) and row.nature not in NATURES:
        yield Fault("nature", f"expected `thing` or `stuff`, found {row.nature!r}")
    if not was_read(row.bbox):
        return
    if len(row.bbox) != 4:
        hint = "edges are in thousandths of the upright picture"
        found = f"found {len(row.bbox)} numbers"
        yield Fault("bbox", f"expected [ymin, xmin, ymax, xmax], {found}", hint)
        return
    ymin, xmin, ymax, xmax = row.bbox
    if not all(0 <= edge <= 1000 for edge in row.bbox):
        hint = "edges are in thousandths of the upright picture's height and width, not in pixels"
        yield Fault("bbox", f"expected edges from 0 to 1000, found {row.bbox}", hint)
    if ymin >= ymax or xmin >= xmax:
        hint = "the order is [ymin, xmin, ymax, xmax]"
        yield Fault("bbox", f"the box is inverted or empty: {row.bbox}", hint)


def image_faults(row: ImageRow) -> Iterator[Fault]:
    """What is wrong with a row of `images`, its picture aside."""
    yield from _blank("image_id", row.image_id)
    if was_read(row.image) and picture_count(row.image) != 1:
        yield Fault("image", f"expected one picture, found {picture_count(row.image)}")


_PLACE_MARK = re.compile(r"<\|image_\d+\|>")


def direct_faults(row: DirectRow) -> Iterator[Fault]:
    """What is wrong with a direct question.

    Marks beyond the pictures, and pictures without marks, are legal: the former stay text, the
    latter go to the end. Source: PerceptionBench, the official message builder.
    """
    yield from _blank("index", row.index)
    yield from _blank("problem", row.problem)
    if was_read(row.answer) and answer_text(row.answer) is None:
        yield Fault("answer", "there is no answer", "expected a text, a number, or {answer: text}")
    if not was_read(row.problem) or not was_read(row.image):
        return
    marks = row.problem.count("<image>")
    # Counting pictures reads all of them once more, so it is done only where it matters.
    if marks and marks != (pictures := picture_count(row.image)):
        hint = "number the marks: <|image_1|>, <|image_2|>"
        yield Fault("problem", f"{_count(marks, 'mark')}, {_count(pictures, 'image')}", hint)
    small = memoryview(row.image).nbytes < 64
    if small and not picture_count(row.image) and _PLACE_MARK.search(row.problem):
        yield Fault("image", "the problem has image marks, but there is no image")


def rubric_faults(row: RubricRow) -> Iterator[Fault]:
    """What is wrong with a row of rubrics."""
    yield from _blank("id", row.id)
    if was_read(row.image) and picture_count(row.image) != 1:
        yield Fault("image", f"expected one picture, found {picture_count(row.image)}")
    for field in ("must_right", "easy_wrong"):
        rubrics = getattr(row, field)
        if not was_read(rubrics):
            continue
        for number, rubric in enumerate(rubrics, 1):
            if not rubric_text(rubric).strip():
                yield Fault(field, f"rubric {number} is empty")
    if was_read(row.must_right) and not row.must_right and not row.easy_wrong:
        yield Fault("must_right", "there is no rubric", "give at least one statement of a kind")


def rubric_text(rubric: str | RubricText) -> str:
    """The statement of a rubric, whichever way it is written."""
    return rubric if isinstance(rubric, str) else rubric.text


def picture_count(raw: Raw) -> int:
    """How many pictures a field names."""
    view = memoryview(raw)
    if view.nbytes == 0 or bytes(view[:4]) == b"null":
        return 0
    return len(msgspec.json.decode(raw, type=list[Raw])) if bytes(view[:1]) == b"[" else 1


def whole_id(value: Id | float) -> Id:
    """An id as it was before a table with gaps in its column made its whole numbers real ones.

    >>> whole_id(7.0), whole_id("7.0")
    (7, '7.0')
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() else str(value)
    return value


def answer_text(value: object) -> str | None:
    """The reference answer as text: a text, a number, `{"answer": ...}` or that as JSON text.

    >>> answer_text(4), answer_text({"answer": "left"}), answer_text('{"answer": 2}')
    ('4', 'left', '2')
    """
    if isinstance(value, dict):
        return answer_text(value.get("answer"))
    if isinstance(value, str):
        return (
            _unwrapped(value)
            if value.lstrip().startswith("{")
            else value
            if value.strip()
            else None
        )
    return None if value is None else str(value)


def _unwrapped(text: str) -> str:
    try:
        found = msgspec.json.decode(text, type=JsonObject)
    except msgspec.DecodeError:
        return text
    inner = answer_text(found.get("answer"))
    return text if inner is None else inner


def labels_of(value: list[str] | str | None) -> tuple[str, ...]:
    """One label or a list of them as a tuple, blank ones left out."""
    if not value:
        return ()
    many = [value] if isinstance(value, str) else value
    return tuple(one for one in many if one.strip())


def _blank(field: str, value: object) -> Iterator[Fault]:
    if isinstance(value, str) and not value.strip():
        yield Fault(field, "the text is empty", "write it, or leave the row out")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
