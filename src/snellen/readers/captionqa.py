"""Reads CaptionQA: pictures with many multiple-choice questions, options as stored.

Its protocol appends an option for "cannot be answered" and shuffles with one generator that runs
through all usable questions in data set order, so that order is fixed here, before any selection.
Source: CaptionQA, the official evaluation script.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from snellen.errors import DataError
from snellen.readers.pictures import PictureFinder, first_broken
from snellen.readers.rows import Row, decode_row
from snellen.readers.selection import Intake, with_digest
from snellen.records import Image, Item, Probe
from snellen.schemas import Id, labels_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ORDER_SEED = 0
NO_QUESTION = "the list of questions is empty"
NO_PICTURE = "expected one picture or more, found 0"
DOMAINS = ("natural", "document", "ecommerce", "embodiedai")
_PREFIX = re.compile(r"[A-Za-z]{3,}")
_AUXILIARIES = (
    "is are was were do does did have has had can could will would should shall may might must"
)
_YES_NO_STARTS = tuple(f"{word} " for word in _AUXILIARIES.split())


class QuestionOfImage(Struct):
    """One question; `answer` is the text of one of the choices."""

    question: str
    choices: list[str]
    answer: str | None = None
    category: list[str] | str | None = None


class CaptionQARow(Struct):
    """An image with its questions, or, flat, one question with its image."""

    id: Id
    images: Raw = Raw(b"null")
    image: Raw = Raw(b"null")
    questions: list[QuestionOfImage] | None = None
    question: str | None = None
    choices: list[str] | None = None
    answer: str | None = None
    category: list[str] | str | None = None


_decoder = msgspec.json.Decoder(CaptionQARow)


@dataclass(slots=True)
class _Picture:
    """An image while its questions come in; `asked` counts those that cannot be used as well."""

    row: Row
    original_id: str | int
    images: tuple[Image, ...]
    named_in: str
    probes: list[Probe] = field(default_factory=list)
    asked: int = 0


def read_captionqa(rows: Iterable[Row], folder: Path, *, intake: Intake) -> tuple[Item, ...]:
    """The items of CaptionQA. A question that cannot be used is listed in `intake.skipped`."""
    finder = PictureFinder(folder)
    pictures: dict[str, _Picture] = {}
    for row in rows:
        try:
            _collect(row, finder, intake=intake, pictures=pictures)
        except DataError as error:
            intake.reject(error)
    order = captionqa_order([probe for one in pictures.values() for probe in one.probes])
    for name, picture in pictures.items():
        if intake.full:
            break
        try:
            _take(name, picture, order=order, intake=intake)
        except DataError as error:
            intake.reject(error)
    return intake.finish()


def _collect(
    row: Row, finder: PictureFinder, *, intake: Intake, pictures: dict[str, _Picture]
) -> None:
    record = decode_row(row, _decoder)
    name = str(record.id)
    questions = _questions_of(row, record)
    if record.questions is not None or name not in pictures:
        intake.claim(row, "id", value=record.id)
    if name not in pictures:
        which = "image" if bytes(record.images) == b"null" else "images"
        images = finder.find(row, getattr(record, which), field=which)
        if not images:
            raise row.error(NO_PICTURE, field=which)
        pictures[name] = _Picture(replace(row, data=b""), record.id, images, which)
    picture = pictures[name]
    for number, question in enumerate(questions, 1):
        _check_choices(row, number, choices=question.choices)
        probe_id = f"{name}/{picture.asked}"
        picture.asked += 1
        reason = unusable(question)
        if reason:
            intake.skipped.append(str(row.error(f"question {probe_id} is not used: {reason}")))
        else:
            picture.probes.append(_probe(probe_id, question))


def _questions_of(row: Row, record: CaptionQARow) -> list[QuestionOfImage]:
    if record.questions is not None:
        if not record.questions:
            raise row.error(NO_QUESTION, field="questions")
        return record.questions
    if record.question is None or record.choices is None:
        raise row.error("the field is missing", field="questions")
    flat = QuestionOfImage(record.question, record.choices, record.answer, record.category)
    return [flat]


def _check_choices(row: Row, number: int, *, choices: Sequence[str]) -> None:
    if not all(choice.strip() for choice in choices):
        raise row.error(f"question {number} has an empty choice", field="questions")
    if len(choices) >= len(LETTERS):
        raise row.error(
            f"question {number} has {len(choices)} choices, expected at most 25", field="questions"
        )


def unusable(question: QuestionOfImage) -> str:
    """Why a question is left out, or an empty text.

    Source: CaptionQA, the official evaluation script: at least two choices, one of them the answer.
    """
    if len(question.choices) < 2:
        return f"expected at least 2 choices, found {len(question.choices)}"
    if (question.answer or "").strip() not in question.choices:
        return f"the answer {question.answer!r} is none of the choices"
    return ""


def _probe(probe_id: str, question: QuestionOfImage) -> Probe:
    answer = (question.answer or "").strip()
    labels = labels_of(question.category)
    return Probe(
        id=probe_id,
        question=question.question,
        answer=LETTERS[question.choices.index(answer)],
        options=tuple(question.choices),
        groups={
            "category": labels[0] if labels else "?",
            "choices": str(len(question.choices)),
        },
    )


def is_yes_no(question: str, choices: Sequence[str]) -> bool:
    """Whether a question gets no extra option for "cannot be answered".

    >>> is_yes_no("Is the door open?", ["open", "shut"]), is_yes_no("What is it?", ["a", "b"])
    (True, False)

    Source: CaptionQA, the official evaluation script: `yes` within a choice and `no` within one,
    or a question that starts with an auxiliary verb.
    """
    lowered = [choice.lower() for choice in choices]
    if any("yes" in one for one in lowered) and any("no" in one for one in lowered):
        return True
    return question.strip().lower().startswith(_YES_NO_STARTS)


def captionqa_order(probes: Iterable[Probe]) -> dict[str, list[int]]:
    """The shown order of the options of each probe, as indices of the stored options.

    The index `len(options)` is the appended "cannot be answered". One `random.Random(0)` runs
    through all usable questions in data set order; a part of the set must keep the orders of the
    whole, so pass all of them.
    """
    generator = random.Random(ORDER_SEED)
    orders: dict[str, list[int]] = {}
    for probe in probes:
        extra = 0 if is_yes_no(probe.question, probe.options) else 1
        order = list(range(len(probe.options) + extra))
        generator.shuffle(order)
        orders[probe.id] = order
    return orders


def domain_of(name: str) -> str:
    """The split that an image belongs to, by the letters that its id begins with; else `?`.

    >>> domain_of("nat_001"), domain_of("ecom_7"), domain_of("document-3"), domain_of("42")
    ('natural', 'ecommerce', 'document', '?')
    """
    prefix = _PREFIX.match(name)
    begins = prefix[0].lower() if prefix else "?"
    return next((one for one in DOMAINS if one.startswith(begins)), "?")


def _take(name: str, picture: _Picture, *, order: dict[str, list[int]], intake: Intake) -> None:
    domain = domain_of(name)
    categories = {probe.groups["category"] for probe in picture.probes}
    if not picture.probes or not intake.wants((domain, *sorted(categories)), domain):
        return
    intake.tolerate(first_broken(picture.row, picture.images, field=picture.named_in))
    probes = intake.wanted_probes(picture.probes, (domain,), dimension="category")
    permutations: dict[str, Any] = {probe.id: order[probe.id] for probe in probes}
    item = Item(
        id=name,
        images=picture.images,
        probes=probes,
        cluster=name,
        groups={"domain": (domain,)},
        original_id=picture.original_id,
        extra={"permutations": permutations},
    )
    intake.add(with_digest(item), domain)
