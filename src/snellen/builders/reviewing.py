"""The review by people: who sees what, what is seen twice, and what the decisions leave.

Source: CapProbe, sections 3.1 (pictures) and 3.7 (questions); PerceptionRubrics, appendix D (golden
captions: people delete, and do not write).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from snellen.builders.rows import QuestionRow, Shot
from snellen.errors import DataError
from snellen.keys import digest_of, seed_for
from snellen.records import JsonObject
from snellen.schemas import CATEGORIES, LETTERS

QUESTION_CRITERIA = ("factual_correctness", "clarity", "options", "redundancy")
PICTURE_CRITERIA = ("label_correct", "image_quality", "content_reasonable")
CAPTION_CRITERIA = ("doubtful", "wrong", "vague")
RUBRIC_CRITERIA = ("true_of_picture", "essential", "atomic", "clarity", "redundancy")
ATTRIBUTION_CRITERIA = ("earliest_step", "type")
ATOMIC_CRITERIA = ("reference", "looking_only", "needs_picture", "one_reading", "form")
Kind = Literal["picture", "question", "caption", "rubric", "attribution", "atomic"]
_WORD = re.compile(r"\w+")
Word = Literal["accept", "edit", "delete", "undo"]


class Task(msgspec.Struct, frozen=True):
    """Something to decide: a row of `queue.jsonl`.

    `digest` is that of `shown`, the text or labels under review: a decision on another text of the
    same id does not count. `flags` are doubts of earlier checks. `second` is a second annotator,
    where agreement is measured. `image` names the picture that the task is about, `pictures` are
    the files to show, `region` is the id of a region of the picture. `labels` are what decisions
    are counted by, such as category and generator.
    """

    id: str
    kind: Kind
    annotator: str
    digest: str
    shown: JsonObject
    flags: tuple[str, ...] = ()
    second: str = ""
    image: str = ""
    pictures: tuple[Shot, ...] = ()
    region: str = ""
    labels: dict[str, str] = {}


class Decision(msgspec.Struct, frozen=True):
    """A decision: a row of `decisions.jsonl`.

    `after` holds the fields that an edit changes. `digest` is that of the text that was seen;
    without it the decision counts for whatever text the id has. The word `undo` withdraws what the
    same person has decided before.
    """

    id: str
    annotator: str
    decision: Word
    reasons: tuple[str, ...] = ()
    after: JsonObject | None = None
    note: str = ""
    at: str = ""
    seconds: float | None = None
    digest: str = ""


def question_task(row: QuestionRow, file: Shot | None = None) -> Task:
    """The task of a question about a picture, of which `file` is the file."""
    shown = {"category": row.category, "question": row.question,
             "options": list(row.options), "answer": row.answer}  # fmt: skip
    return Task(
        row.id, "question", "", digest_of(shown), shown, row.flags,
        image=row.image_id, pictures=() if file is None else (file,), region=row.region_id,
        labels={"category": row.category, "generator": row.generator},
    )  # fmt: skip


def assign(
    tasks: Sequence[Task],
    before: Iterable[Task],
    annotators: Sequence[str],
    *,
    overlap: float = 0.0,
    seed: int = 0,
) -> list[Task]:
    """The tasks with an annotator each: as before where there was one, else evenly.

    Somebody who is no annotator any more hands the tasks on. A seeded share `overlap` of the tasks
    gets a second annotator, the next one in the list.
    """
    known = {task.id: task.annotator for task in before if task.annotator in annotators}
    load = Counter(dict.fromkeys(annotators, 0))
    load.update(known[task.id] for task in tasks if task.id in known)
    assigned = []
    for task in tasks:
        name = known.get(task.id)
        if name is None:
            name = min(annotators, key=lambda one: (load[one], annotators.index(one)))
            load[name] += 1
        is_shared = seed_for(seed, task.id, "overlap") / 2**64 < overlap and len(annotators) > 1
        place = (annotators.index(name) + 1) % len(annotators)
        second = annotators[place] if is_shared else ""
        assigned.append(msgspec.structs.replace(task, annotator=name, second=second))
    return assigned


def counting(task: Task, decisions: Iterable[Decision]) -> list[Decision]:
    """The decisions on the very text of a task, in their order."""
    return [d for d in decisions if d.id == task.id and d.digest in ("", task.digest)]


@dataclass(frozen=True, slots=True)
class Settled:
    """What has been decided on one task: by annotators, and by the adjudicator where asked.

    `by` holds the standing decision of each annotator, the earliest first. `needs_adjudicator`
    says whether the task is for the adjudicator to see, and has not been seen.
    """

    task: Task
    by: tuple[Decision, ...] = ()
    final: Decision | None = None
    needs_adjudicator: bool = False

    @property
    def first(self) -> Decision | None:
        """The annotators' decision: of several that differ the earliest."""
        return self.by[0] if self.by else None

    @property
    def deciding(self) -> Decision | None:
        """The decision that holds now: the adjudicator's is final."""
        return self.final or self.first

    @property
    def after(self) -> JsonObject:
        """The changed fields: those of an adjudicator's edit, else those of the annotator's."""
        decision = self.deciding
        if decision is None or decision.decision == "delete":
            return {}
        if decision.decision == "edit":
            return decision.after or {}
        return (self.first.after or {}) if self.first and self.first.decision == "edit" else {}

    def of(self, person: str) -> Decision | None:
        """The standing decision of one person."""
        every = (*self.by, *([] if self.final is None else [self.final]))
        return next((one for one in every if one.annotator == person), None)


def settle_tasks(
    tasks: Sequence[Task],
    decisions: Iterable[Decision],
    *,
    adjudicator: str,
    share: float,
    seed: int,
) -> list[Settled]:
    """What the decisions say of each task; of two by one person the later counts.

    The adjudicator sees all edits, all tasks on which annotators differ, and a seeded share of the
    accepted ones.
    """
    by_id: dict[str, list[Decision]] = {}
    for one in decisions:
        by_id.setdefault(one.id, []).append(one)
    settled = []
    for task in tasks:
        standing: dict[str, Decision] = {}
        for one in counting(task, by_id.get(task.id, ())):
            if one.decision == "undo":
                standing.pop(one.annotator, None)
            else:
                standing[one.annotator] = one
        final = standing.pop(adjudicator, None)
        mine = tuple(standing.values())
        drawn = seed_for(seed, task.id, "adjudicate") / 2**64 < share
        words = {one.decision for one in mine}
        is_due = "edit" in words or len(words) > 1 or (words == {"accept"} and drawn)
        settled.append(Settled(task, mine, final, is_due and final is None))
    return settled


def deletes_only(before: str, after: str) -> bool:
    """Whether a text is another one without some of its words; punctuation is free.

    >>> deletes_only("A cat, perhaps grey, sleeps.", "A cat sleeps.")
    True
    >>> deletes_only("A cat sleeps.", "A grey cat sleeps."), deletes_only("A cat.", " ")
    (False, False)
    """
    left = iter(_WORD.findall(before.casefold()))
    kept = _WORD.findall(after.casefold())
    return bool(kept) and all(word in left for word in kept)


def edited(row: QuestionRow, after: JsonObject) -> QuestionRow:
    """A question with an edit's fields in place of its own.

    Raises:
        DataError: the edit names another field, or leaves a question that cannot be.
    """
    fields = {"category", "question", "options", "answer"}
    if unknown := sorted(set(after) - fields):
        raise DataError(f"the edit of {row.id} changes `{unknown[0]}`",
                        hint=f"editable: {', '.join(sorted(fields))}")  # fmt: skip
    changed = msgspec.structs.replace(
        row, **{k: tuple(v) if k == "options" else v for k, v in after.items()}
    )
    options = [option.strip() for option in changed.options]
    if len(options) != len(LETTERS) or not all(options) or len(set(options)) < len(options):
        raise DataError(f"the edit of {row.id} does not leave four different options")
    if changed.answer not in tuple(LETTERS) or changed.category not in CATEGORIES:
        raise DataError(f"the edit of {row.id} has an answer or a category that cannot be")
    if not changed.question.strip():
        raise DataError(f"the edit of {row.id} leaves no question")
    return changed
