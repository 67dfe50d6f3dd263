"""What a review page needs of a build folder: tasks, decisions, pictures and regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from snellen.builders.reviewing import Decision, Settled, Task, settle_tasks
from snellen.builders.rows import RegionRow, Shot
from snellen.construction.ledger import Ledger, Saved
from snellen.construction.review import fitting, read_queue, review_options
from snellen.engine.journal import read_rows
from snellen.errors import UsageError
from snellen.records import Image


@dataclass(frozen=True, slots=True)
class Place:
    """Where a person stands: the task to decide next, None where nothing is left."""

    task: Settled | None
    done: int
    given: int


class Desk:
    """One review, as every person of it sees it.

    Raises:
        RunFolderError: the folder holds no build.
        UsageError: nothing is up for review.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options, self.seed = review_options(folder)
        self.ledger = Ledger(folder)
        self._stamp = -1
        self._settled: dict[str, Settled] = {}
        if not self.tasks:
            raise UsageError(
                f"nothing in {folder} is up for review",
                hint="run the build up to its stage `review` first: snellen build ... --until "
                "review",
            )

    @cached_property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks by id, in the order of the queue."""
        return {task.id: task for task in read_queue(self.folder)}

    @cached_property
    def by_image(self) -> Mapping[str, Sequence[Task]]:
        """The tasks about each picture."""
        found: dict[str, list[Task]] = {}
        for task in self.tasks.values():
            found.setdefault(task.image or task.id, []).append(task)
        return found

    @cached_property
    def regions(self) -> Mapping[str, RegionRow]:
        """The regions of all pictures by id; none where the build has no such stage."""
        files = sorted((self.folder / "stages").glob("*-segment.jsonl"))
        return {row.id: row for file in files for row in read_rows(file, RegionRow)}

    @property
    def people(self) -> tuple[str, ...]:
        """The annotators, then the adjudicator."""
        return (*self.options.annotators, self.options.adjudicator)

    def settled(self) -> Mapping[str, Settled]:
        """Every task with what has been decided on it."""
        stamp = self.ledger.size()
        if stamp != self._stamp:
            found = settle_tasks(
                list(self.tasks.values()),
                self.ledger.all(),
                adjudicator=self.options.adjudicator,
                share=self.options.adjudicate_accepts,
                seed=self.seed,
            )
            self._settled, self._stamp = {one.task.id: one for one in found}, stamp
        return self._settled

    def of(self, person: str) -> list[Settled]:
        """The tasks of a person: those given, or, for the adjudicator, what is due or was."""
        if person == self.options.adjudicator:
            every = self.settled().values()
            return [one for one in every if one.needs_adjudicator or one.final is not None]
        return [
            one
            for one in self.settled().values()
            if person in (one.task.annotator, one.task.second)
        ]

    def place(self, person: str, after: str = "") -> Place:
        """The next open task of a person behind the task `after`, or the first open one."""
        mine = self.of(person)
        open_ = [one for one in mine if self.is_open(one, person)]
        places = {one.task.id: k for k, one in enumerate(mine)}
        here = places.get(after, -1)
        later = [one for one in open_ if places[one.task.id] > here]
        return Place(next(iter(later or open_), None), len(mine) - len(open_), len(mine))

    def is_open(self, settled: Settled, person: str) -> bool:
        """Whether a person has still to decide on a task."""
        if person == self.options.adjudicator:
            return settled.needs_adjudicator
        return settled.of(person) is None

    def save(self, decision: Decision, *, seen: int) -> Saved:
        """Saves a decision on a task.

        Raises:
            UsageError, DataError: the decision does not fit its task.
            RunFolderError: it could not be saved.
        """
        task = self.tasks.get(decision.id)
        if task is None:
            raise UsageError(f"no task {decision.id!r} is up for review", hint="go to the start")
        if decision.annotator not in self.people:
            raise UsageError(
                f"{decision.annotator!r} takes no part in this review",
                hint="name annotators in [review] of build.toml: " + ", ".join(self.people),
            )
        return self.ledger.save(fitting(task, decision), seen=seen)

    def last_of(self, person: str) -> Decision | None:
        """The last decision of a person that still stands."""
        standing: dict[str, Decision] = {}
        for one in self.ledger.all():
            if one.annotator == person:
                standing.pop(one.id, None)
                if one.decision != "undo" and one.id in self.tasks:
                    standing[one.id] = one
        return next(reversed(standing.values()), None) if standing else None

    def image(self, task: Task, number: int) -> Image | None:
        """A picture of a task."""
        if not 0 <= number < len(task.pictures):
            return None
        shot: Shot = task.pictures[number]
        path = Path(shot.path)
        return Image(
            task.image, shot.digest, str(path if path.is_absolute() else self.folder / path)
        )

    def close(self) -> None:
        """Closes the database."""
        self.ledger.close()
