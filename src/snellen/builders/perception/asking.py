"""Atomic questions: on a failure's pictures, about what was not seen, and new ones on others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.perception.attributing import shown
from snellen.builders.perception.options import PerceptionOptions
from snellen.builders.perception.rows import (
    DECOMPOSED,
    NEW,
    AtomicRow,
    AttributedRow,
    ErrorType,
    FailureRow,
    images_of,
)
from snellen.builders.rows import Shot
from snellen.builders.steps import Made, Rejected, asked_again, undone
from snellen.errors import DataError
from snellen.flows import Flow, ask_until
from snellen.records import IMAGE_MARK, Message, Reply, Request
from snellen.replies.fences import fence
from snellen.replies.typed import UnreadableError, json_reply
from snellen.schemas import nearest
from snellen.templates import bundled

DECOMPOSE, WRITE, REWORD = "build_decompose", "build_write", "build_reword"
LONGEST_PROBLEM = 1000
EDITABLE = ("problem", "answer", "hint", "error_category")
# A person's answer may be as long as people like.
LONGEST_ANSWER = 1000
_NUMBERS = re.compile(r"[\[(]\s*-?\d+(?:\.\d+)?\s*[,;]\s*-?\d")
_ALTERNATIVES = re.compile(r"\s(?:or|/)\s", re.I)


class Draft(msgspec.Struct, frozen=True):
    """A question as a model writes it."""

    problem: str
    answer: str | int | float
    error_category: str
    hint: str | None = None


class _Drafts(msgspec.Struct):
    questions: list[Draft]


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes questions: the role that it plays, its name, and what it has to keep to."""

    role: str
    name: str
    options: PerceptionOptions
    types: tuple[ErrorType, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the perceptual types."""
        return tuple(one.id for one in self.types if one.is_perceptual)


def fault_of(draft: Draft, *, n_pictures: int, labels: Sequence[str], max_words: int) -> str:
    """What is wrong with a question, in words for its writer; "" for one in the form.

    >>> draft = Draft("Where is the cup? Give [x, y].", "[3, 4]", "visual_localization_error")
    >>> fault_of(draft, n_pictures=1, labels=[draft.error_category], max_words=6)
    'the answer [3, 4] holds coordinates, and `hint` does not state their convention'
    """
    answer = str(draft.answer).strip()
    if not draft.problem.strip() or not answer:
        return "problem and answer must not be empty"
    if len(draft.problem) > LONGEST_PROBLEM:
        return f"the problem has {len(draft.problem)} characters; at most {LONGEST_PROBLEM}"
    if len(answer.split()) > max_words:
        return f"the answer {answer!r} has more than {max_words} words"
    if _ALTERNATIVES.search(answer):
        return f"the answer {answer!r} names alternatives; there must be one"
    for mark in IMAGE_MARK.finditer(draft.problem):
        if not 1 <= int(mark[1]) <= n_pictures:
            return f"{mark[0]} stands for no picture: there are {n_pictures}"
    if draft.error_category not in labels:
        return f"there is no type `{draft.error_category}`; {nearest(draft.error_category, labels)}"
    if _NUMBERS.search(answer) and not (draft.hint or "").strip():
        return f"the answer {answer} holds coordinates, and `hint` does not state their convention"
    return ""


def _drafts(reply: Reply, check: Callable[[Draft], str], *, least: int, most: int) -> list[Draft]:
    """The questions of a reply.

    Raises:
        UnreadableError: there are too few or too many, or one is not in the form.
    """
    found = json_reply(_Drafts)(reply).questions
    if not least <= len(found) <= most:
        raise UnreadableError(
            "not_as_asked", f"expected {least} to {most} questions, found {len(found)}"
        )
    for number, draft in enumerate(found, 1):
        if fault := check(draft):
            raise UnreadableError("not_as_asked", f"question {number}: {fault}")
    return found


def decompose(failure: FailureRow, row: AttributedRow, author: Author) -> Flow[Made]:
    """One to three questions on a failure's pictures that test the looking that failed."""
    least, most = author.options.questions
    definition = next(one.definition for one in author.types if one.id == row.type)
    task = bundled(DECOMPOSE).fill(
        description=fence(row.description, "mistake"),
        type=row.type,
        definition=definition,
        least=str(least),
        most=str(most),
        max_words=str(author.options.max_answer_words),
        labels=", ".join(author.labels),
    )
    request = Request(author.role, shown(failure, task), "decompose")
    asked = yield from ask_until(
        request,
        lambda reply: _drafts(reply, _check(author, len(failure.files)), least=least, most=most),
        reasks=author.options.reasks,
    )
    if asked.value is None:
        return undone(asked, failure.id, made_from=(failure.id,))
    rows = []
    gone: list[Rejected] = []
    seen: set[str] = set()
    for number, draft in enumerate(asked.value, 1):
        problem = with_marks(draft.problem, len(failure.files))
        name = f"{failure.id}.d{number}"
        if problem.casefold() in seen:
            gone.append(Rejected(id=name, made_from=(failure.id,), reason="duplicate",
                                 detail={"problem": problem}))  # fmt: skip
            continue
        seen.add(problem.casefold())
        rows.append(
            AtomicRow(
                id=name,
                made_from=(failure.id,),
                files=failure.files,
                problem=problem,
                answer=str(draft.answer).strip(),
                hint=(draft.hint or "").strip(),
                error_category=draft.error_category,
                origin=DECOMPOSED,
                source_bmk=failure.source_bmk,
                source_idx=failure.source_idx,
                writer=author.name,
            )
        )
    return Made(tuple(rows), dropped=tuple(gone), counts=asked_again(asked))


def write(files: tuple[Shot, ...], name: str, capability: ErrorType, author: Author) -> Flow[Made]:
    """One new question on pictures that tests a capability; none where they do not suit it."""
    text = bundled(WRITE).fill(
        capability=capability.id,
        definition=capability.definition,
        max_words=str(author.options.max_answer_words),
    )
    message = Message("user", (*images_of(files), text))
    own = Author(author.role, author.name, author.options, (capability,))
    asked = yield from ask_until(
        Request(author.role, (message,), "write"),
        lambda reply: _drafts(reply, _check(own, len(files)), least=0, most=1),
        reasks=author.options.reasks,
    )
    if asked.value is None:
        return undone(asked, name, made_from=tuple(file.digest[:16] for file in files))
    if not asked.value:
        gone = Rejected(id=name, made_from=(name,), reason="unsuited",
                        detail={"capability": capability.id})  # fmt: skip
        return Made(rejected=(gone,), counts=asked_again(asked))
    [draft] = asked.value
    row = AtomicRow(
        id=name,
        made_from=tuple(file.digest[:16] for file in files),
        files=files,
        problem=with_marks(draft.problem, len(files)),
        answer=str(draft.answer).strip(),
        hint=(draft.hint or "").strip(),
        error_category=draft.error_category,
        origin=NEW,
        writer=author.name,
    )
    return Made((row,), counts=asked_again(asked))


def _check(author: Author, n_pictures: int) -> Callable[[Draft], str]:
    labels, max_words = author.labels, author.options.max_answer_words
    return lambda draft: fault_of(draft, n_pictures=n_pictures, labels=labels, max_words=max_words)


def with_marks(problem: str, n_pictures: int) -> str:
    """A question with a mark for each picture; pictures that it does not name go ahead.

    >>> with_marks("Is <|image_2|> darker?", 2)
    '<|image_1|>Is <|image_2|> darker?'
    """
    named = {int(mark[1]) for mark in IMAGE_MARK.finditer(problem)}
    ahead = "".join(f"<|image_{n}|>" for n in range(1, n_pictures + 1) if n not in named)
    return ahead + problem.strip()


class Reworded(msgspec.Struct, frozen=True):
    """A question in other words."""

    problem: str


def reworded_in(reply: Reply, problem: str) -> str:
    """A question in other words, with the same pictures.

    Raises:
        UnreadableError: it has another form, other pictures, or the same words.
    """
    found = json_reply(Reworded)(reply).problem.strip()
    marks = [sorted(mark[1] for mark in IMAGE_MARK.finditer(text)) for text in (found, problem)]
    if marks[0] != marks[1]:
        raise UnreadableError("not_as_asked", "the marks of the pictures are not those of before")
    if " ".join(found.casefold().split()) == " ".join(problem.casefold().split()):
        raise UnreadableError("not_as_asked", "the words are the same")
    return found


def edited_question(row: AtomicRow, after: Mapping[str, object]) -> AtomicRow:
    """A question with an edit's fields in place of its own.

    Raises:
        DataError: the edit names another field, or leaves a question that cannot be.
    """
    if unknown := sorted(set(after) - set(EDITABLE)):
        raise DataError(f"the edit of {row.id} changes `{unknown[0]}`",
                        hint=f"editable: {', '.join(EDITABLE)}")  # fmt: skip
    changed = msgspec.structs.replace(row, **{name: str(after[name]).strip() for name in after})
    draft = Draft(changed.problem, changed.answer, changed.error_category, changed.hint)
    fault = fault_of(
        draft,
        n_pictures=len(row.files),
        labels=[changed.error_category] if changed.error_category else [],
        max_words=LONGEST_ANSWER,
    )
    if fault:
        raise DataError(f"the edit of {row.id} leaves no question: {fault}")
    return msgspec.structs.replace(changed, problem=with_marks(changed.problem, len(row.files)))
