"""The review of a benchmark that is being built, as files and calls.

`review/queue.jsonl` holds what is to be decided, `review/decisions.jsonl` what was; the latter is
only ever appended to, and outlives every new start of the build.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from snellen.builders.options import ReviewOptions
from snellen.builders.perception.asking import EDITABLE, edited_question
from snellen.builders.perception.attributing import chosen_type
from snellen.builders.perception.rows import NEW, AtomicRow
from snellen.builders.reviewing import (
    ATOMIC_CRITERIA,
    ATTRIBUTION_CRITERIA,
    CAPTION_CRITERIA,
    PICTURE_CRITERIA,
    QUESTION_CRITERIA,
    RUBRIC_CRITERIA,
    Decision,
    Kind,
    Settled,
    Task,
    assign,
    deletes_only,
    edited,
    settle_tasks,
)
from snellen.builders.rows import QuestionRow
from snellen.builders.steps import Made, Rejected, Row
from snellen.construction.files import places_of, read_record, write_lines
from snellen.construction.ledger import Ledger
from snellen.construction.stages import Context
from snellen.engine.journal import now, read_rows
from snellen.errors import UsageError
from snellen.records import JsonObject

CRITERIA = {
    "picture": PICTURE_CRITERIA,
    "question": QUESTION_CRITERIA,
    "caption": CAPTION_CRITERIA,
    "rubric": RUBRIC_CRITERIA,
    "attribution": ATTRIBUTION_CRITERIA,
    "atomic": ATOMIC_CRITERIA,
}
R = TypeVar("R", bound=Row)


def read_queue(folder: Path, kind: Kind | None = None) -> list[Task]:
    """The tasks of a folder, of one kind or of all."""
    places = places_of(folder)
    rows = read_rows(folder / "review" / "queue.jsonl", Task)
    return [places.opened(task) for task in rows if kind is None or task.kind == kind]


def read_decisions(folder: Path) -> list[Decision]:
    """The decisions of a folder, in the order in which they were taken."""
    return list(read_rows(folder / "review" / "decisions.jsonl", Decision))


def put_up(
    folder: Path, kind: Kind, tasks: Sequence[Task], *, options: ReviewOptions, seed: int
) -> list[Settled]:
    """Puts tasks up for review, the annotators as before, and says what has been decided on them.

    Tasks of another kind stay in the queue.
    """
    before = read_queue(folder)
    own = assign(
        tasks, [t for t in before if t.kind == kind], options.annotators,
        overlap=options.overlap, seed=seed,
    )  # fmt: skip
    others = [task for task in before if task.kind != kind]
    places = places_of(folder)
    write_lines(folder / "review" / "queue.jsonl", map(places.stored, [*others, *own]))
    return settle_tasks(
        own,
        read_decisions(folder),
        adjudicator=options.adjudicator,
        share=options.adjudicate_accepts,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Reviewed(Generic[R]):
    """How rows of one kind are put up for review: the task of a row, and a row with an edit."""

    kind: Kind
    task: Callable[[R], Task]
    edit: Callable[[R, JsonObject], R]


def review_rows(context: Context, rows: Sequence[R], how: Reviewed[R]) -> Made:
    """The rows as the decisions leave them; undecided ones stay unless told otherwise."""
    options = context.of(ReviewOptions)
    tasks = [how.task(row) for row in rows]
    queued = [task for task in tasks if task.flags or not options.only_flagged]
    settled = put_up(context.folder, how.kind, queued, options=options, seed=context.seed)
    by_id = {one.task.id: one for one in settled}
    kept: list[R] = []
    gone: list[Rejected] = []
    n_edited = n_undecided = 0
    for row in rows:
        one = by_id.get(row.id)
        decision = one.deciding if one is not None else None
        if decision is not None and decision.decision == "delete":
            detail = {"reasons": list(decision.reasons), "annotator": decision.annotator}
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason="deleted_by_people",
                                 detail=detail))  # fmt: skip
            continue
        is_open = one is not None and (decision is None or one.needs_adjudicator)
        n_undecided += is_open
        if is_open and options.reviewed_only:
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason="undecided"))
            continue
        after = one.after if one is not None else {}
        n_edited += bool(after)
        kept.append(how.edit(row, after) if after else row)
    counts = {
        "queued": len(queued),
        "undecided": n_undecided,
        "edited": n_edited,
        "for_adjudicator": sum(one.needs_adjudicator for one in settled),
    }
    return Made(tuple(kept), tuple(gone), counts=counts)


def review_options(folder: Path) -> tuple[ReviewOptions, int]:
    """The `[review]` section and the seed that a folder is built with."""
    record = read_record(folder)
    return msgspec.convert(record.options.get("review", {}), ReviewOptions), record.seed


def state(folder: str | Path, kind: Kind | None = None) -> list[Settled]:
    """Every task of a folder with what has been decided on it."""
    folder = Path(folder)
    options, seed = review_options(folder)
    return settle_tasks(
        read_queue(folder, kind),
        read_decisions(folder),
        adjudicator=options.adjudicator,
        share=options.adjudicate_accepts,
        seed=seed,
    )


def pending(folder: str | Path, annotator: str) -> list[Settled]:
    """What somebody still has to decide: own tasks, or, for the adjudicator, what is due."""
    folder = Path(folder)
    options, _ = review_options(folder)
    if annotator == options.adjudicator:
        return [one for one in state(folder) if one.needs_adjudicator]
    return [
        one
        for one in state(folder)
        if annotator in (one.task.annotator, one.task.second) and one.of(annotator) is None
    ]


def checked(folder: Path, decision: Decision) -> Decision:
    """A decision that fits its task, with the digest of the text and the time filled in.

    Raises:
        UsageError: there is no such task, a reason is no criterion, or an edit changes nothing.
    """
    task = next((one for one in read_queue(folder) if one.id == decision.id), None)
    if task is None:
        raise UsageError(
            f"no task {decision.id!r} is in the queue of {folder}",
            hint="see review/queue.jsonl for the ids",
        )
    return fitting(task, decision)


def fitting(task: Task, decision: Decision) -> Decision:
    """A decision that fits a task, with the digest of the text and the time filled in.

    Raises:
        UsageError: a reason is no criterion, or an edit changes nothing.
        DataError: an edit of a question leaves none that can be, or one of a type names none.
    """
    criteria = CRITERIA[task.kind]
    for reason in decision.reasons:
        if reason not in criteria:
            raise UsageError(
                f"{reason!r} is no criterion of a {task.kind}", hint=f"use: {', '.join(criteria)}"
            )
    if (decision.decision == "edit") != bool(decision.after):
        raise UsageError(
            "an edit needs the changed fields, and no other decision has any",
            hint='give after = {"question": "..."} with decision "edit"',
        )
    text = str((decision.after or {}).get("caption", ""))
    if task.kind == "caption" and decision.after and not deletes_only(task.shown["caption"], text):
        raise UsageError(
            f"the edit of {task.id} adds or moves words",
            hint="people delete doubtful passages of a golden caption, and write nothing",
        )
    if task.kind == "question" and decision.after:
        row = {**task.shown, "id": task.id, "from": (), "image_id": task.image,
               "region_id": task.region, "generator": "", "index": 0}  # fmt: skip
        edited(msgspec.convert(row, QuestionRow), decision.after)
    if task.kind == "atomic" and decision.after:
        files = msgspec.to_builtins(task.pictures)
        row = {**{name: task.shown[name] for name in EDITABLE}, "id": task.id, "from": (),
               "files": files, "origin": NEW, "writer": ""}  # fmt: skip
        edited_question(msgspec.convert(row, AtomicRow), decision.after)
    if task.kind == "attribution" and decision.after:
        chosen_type(task.id, decision.after, task.shown["types"])
    return msgspec.structs.replace(
        decision, digest=decision.digest or task.digest, at=decision.at or now()
    )


def decide(folder: str | Path, decision: Decision) -> Decision:
    """Saves a decision; the text that it is about and the time are filled in.

    Raises:
        UsageError: there is no such task, a reason is no criterion, or an edit changes nothing.
    """
    folder = Path(folder)
    stamped = checked(folder, decision)
    ledger = Ledger(folder)
    try:
        ledger.save(stamped, seen=ledger.size())
    finally:
        ledger.close()
    return stamped
