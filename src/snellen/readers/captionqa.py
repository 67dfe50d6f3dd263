"""Reads CaptionQA: pictures with many multiple-choice questions, options as stored.

Its protocol appends an option for "cannot be answered" and shuffles with one generator that runs
through all usable questions in data set order, so that order is fixed here, before any selection.
Source: CaptionQA, the official evaluation script.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from msgspec import Raw, Struct

from snellen.readers.policy import RowPolicy
from snellen.readers.rows import Row
from snellen.records import Image, Item, Probe
from snellen.schemas import ALPHABET, Id, labels_of, picture_count, was_read

ORDER_SEED = 0
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


@dataclass(slots=True)
class _Picture:
    """An image while its questions come in; `asked` counts those that cannot be used as well."""

    row: Row
    original_id: str | int
    images: tuple[Image, ...]
    named_in: str
    probes: list[Probe] = field(default_factory=list)
    asked: int = 0


def read_captionqa(policy: RowPolicy) -> Iterator[Item]:
    """The items of CaptionQA. A question that cannot be used is left out and noted."""
    pictures: dict[str, _Picture] = {}
    for row, record in policy.records("questions", CaptionQARow):
        name = str(record.id)
        is_flat = record.questions is None
        if not is_flat or name not in pictures:
            policy.claim(row, "id", record.id)
        if name not in pictures:
            is_single = was_read(record.images) and bytes(record.images) == b"null"
            named_in = "image" if is_single else "images"
            raw = record.image if is_single else record.images
            if was_read(raw) and not picture_count(raw):
                policy.note(row.error("expected one picture or more, found 0", field=named_in))
            images = policy.find(row, raw, named_in)
            picture = _Picture(replace(row, data=b"", cells=()), record.id, images, named_in)
            if policy.fine:
                pictures[name] = picture
        else:
            picture = pictures[name]
        questions = record.questions
        if is_flat and record.question is not None and record.choices is not None:
            flat = record.question, record.choices, record.answer, record.category
            readable = all(map(was_read, flat))
            questions = [QuestionOfImage(*flat)] if readable else []
        if not questions and policy.fine:
            message = "the field is missing" if is_flat else "the list of questions is empty"
            policy.note(row.error(message, field="questions"))
        _take_questions(policy, row, questions or [], picture)
    order = captionqa_order([probe for one in pictures.values() for probe in one.probes])
    for name, picture in pictures.items():
        domain = domain_of(name)
        categories = sorted({probe.groups["category"] for probe in picture.probes})
        if not picture.probes or not policy.wants((domain, *categories)):
            continue
        policy.fine = True
        policy.look(picture.row, picture.images, picture.named_in)
        probes = policy.wanted_probes(picture.probes, (domain,))
        if policy.fine:
            yield Item(
                id=name,
                images=picture.images,
                probes=probes,
                groups={"domain": (domain,)},
                original_id=picture.original_id,
                extra={"permutations": {probe.id: order[probe.id] for probe in probes}},
            )


def _take_questions(
    policy: RowPolicy, row: Row, questions: Sequence[QuestionOfImage], picture: _Picture
) -> None:
    """Adds the questions of a row to its image; a row with an empty choice is a bad one.

    Source: CaptionQA, the official evaluation script: at least two choices, one of them the answer.
    """
    for number, question in enumerate(questions, 1):
        choices = question.choices
        if not all(choice.strip() for choice in choices):
            message = f"question {number} has an empty choice"
            policy.note(row.error(message, field="questions"))
        if len(choices) >= len(ALPHABET):
            message = f"question {number} has {len(choices)} choices, expected at most 25"
            policy.note(row.error(message, field="questions"))
        if not policy.fine and not policy.collects:
            return
        probe_id = f"{picture.original_id}/{picture.asked}"
        picture.asked += 1
        answer, reason = (question.answer or "").strip(), ""
        if len(choices) < 2:
            reason = f"expected at least 2 choices, found {len(choices)}"
        elif answer not in choices:
            reason = f"the answer {question.answer!r} is none of the choices"
        if reason:
            message = f"question {probe_id} is not used: {reason}"
            policy.leave_out(row.error(message, field="questions"))
            continue
        labels = labels_of(question.category)
        picture.probes.append(
            Probe(
                id=probe_id,
                question=question.question,
                answer=ALPHABET[choices.index(answer)],
                options=tuple(choices),
                groups={"category": labels[0] if labels else "?", "choices": str(len(choices))},
            )
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
