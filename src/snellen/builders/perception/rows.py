"""The rows of the perception pipeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from snellen.builders.rows import Shot
from snellen.builders.steps import Row
from snellen.records import Image

NEWLY_WRITTEN = "NA"
Origin = Literal["decomposed", "new"]
DECOMPOSED: Origin = "decomposed"
NEW: Origin = "new"
Stratum = Literal["easy", "medium", "hard"]
STRATA: tuple[Stratum, ...] = ("easy", "medium", "hard")


class FailureRow(Row, frozen=True, kw_only=True):
    """A question that a model answered wrongly, with all that is needed to see why.

    `question` has `<|image_N|>` where picture N of `files` stands. `source_idx` is the question's
    index in the benchmark `source_bmk`. `file` names the result file, `row` the row in it.
    """

    files: tuple[Shot, ...]
    question: str
    options: tuple[str, ...] = ()
    reference: str
    reply: str
    model: str
    source_bmk: str
    source_idx: str | int
    file: str = ""
    row: int = 0

    @property
    def images(self) -> tuple[Image, ...]:
        """The pictures as parts of a message."""
        return images_of(self.files)

    @property
    def cluster(self) -> str:
        """The question that was failed, whichever model failed."""
        return f"{self.source_bmk}/{self.source_idx}"


class ErrorType(Row, frozen=True, kw_only=True):
    """A type of error of a taxonomy; the id is its label.

    `is_perceptual` says whether looking alone would have avoided the error. `n` counts the
    descriptions that an induced type was made of, and `nearest` is the type of ours that it is
    most like.
    """

    definition: str
    is_perceptual: bool
    n: int = 0
    nearest: str = ""
    examples: tuple[str, ...] = ()


class Attribution(msgspec.Struct, frozen=True):
    """What one attributor found: the steps of a solution, and the earliest that went wrong.

    `earliest_wrong` counts the steps from 1.
    """

    attributor: str
    steps: tuple[str, ...]
    earliest_wrong: int
    description: str
    type: str


class AttributedRow(Row, frozen=True, kw_only=True):
    """A failure with the type of its earliest wrong step; the id is that of the failure.

    `decided_by` is `agreed`, `arbiter` or `people`.
    """

    type: str
    is_perceptual: bool
    source_bmk: str
    source_idx: str | int
    model: str
    attributions: tuple[Attribution, ...]
    decided_by: str

    @property
    def description(self) -> str:
        """The description of the first attributor that names the type, or else of the first."""
        named = [one for one in self.attributions if one.type == self.type]
        return (named or self.attributions)[0].description


class MixRow(Row, frozen=True, kw_only=True):
    """How often one model fails on one benchmark by each type."""

    source_bmk: str
    model: str
    failures: int
    types: dict[str, int]


class PanelAnswer(msgspec.Struct, frozen=True):
    """What one solver of the panel said in one way of asking, and whether that is right."""

    solver: str
    reply: str
    correct: bool | None


class PanelResult(msgspec.Struct, frozen=True):
    """What a panel made of one question: as it stands, reworded, and without the pictures."""

    answers: tuple[PanelAnswer, ...] = ()
    reworded: tuple[PanelAnswer, ...] = ()
    blind: tuple[PanelAnswer, ...] = ()
    paraphrase: str = ""


class AtomicRow(Row, frozen=True, kw_only=True):
    """A question that needs looking only, with its short answer.

    `writer` is the model that wrote it. `source_bmk` is "NA" and `source_idx` None for a question
    that comes from no failure. `stratum` is the difficulty by the panel, "" before.
    """

    files: tuple[Shot, ...]
    problem: str
    answer: str
    hint: str = ""
    error_category: str
    origin: Origin
    source_bmk: str = NEWLY_WRITTEN
    source_idx: str | int | None = None
    writer: str
    flags: tuple[str, ...] = ()
    stratum: str = ""
    panel: PanelResult | None = None

    @property
    def images(self) -> tuple[Image, ...]:
        """The pictures as parts of a message."""
        return images_of(self.files)


def images_of(files: tuple[Shot, ...]) -> tuple[Image, ...]:
    """Picture files as parts of a message, named by their numbers."""
    return tuple(file.image(f"picture {n}") for n, file in enumerate(files, 1))
