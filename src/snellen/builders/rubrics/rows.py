"""The rows of the rubrics pipeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from snellen.builders.rows import PictureRow, Shot
from snellen.builders.steps import Row

RubricKind = Literal["must_right", "easy_wrong"]
MUST_RIGHT: RubricKind = "must_right"
EASY_WRONG: RubricKind = "easy_wrong"


class ScoredRow(PictureRow, frozen=True, kw_only=True):
    """A picture with its domain and its two scores, 1 to 10, each with the scorer's reasons."""

    domain: str
    complexity: int
    informativeness: int
    reasons: tuple[str, str] = ("", "")

    @property
    def total(self) -> int:
        """Both scores added, 2 to 20."""
        return self.complexity + self.informativeness


class Ballot(msgspec.Struct, frozen=True):
    """What one juror said in one round; candidates are numbered from 0 in the order of the pool.

    `slots` are the candidates in the order in which this juror saw them. `critiques` are in the
    order of the candidates, `ranking` has the best first.
    """

    juror: int
    slots: tuple[int, ...]
    critiques: tuple[str, ...]
    ranking: tuple[int, ...]
    rationale: str


class Round(msgspec.Struct, frozen=True):
    """One comparison: the candidates, in the order of their authors, and a ballot a juror."""

    candidates: tuple[str, ...]
    ballots: tuple[Ballot, ...]

    @property
    def firsts(self) -> tuple[int, ...]:
        """The candidate that each juror put first."""
        return tuple(ballot.ranking[0] for ballot in self.ballots)


class PeerReview(Row, frozen=True, kw_only=True):
    """The whole review of one picture; `agreed` is the last round's winner, None without one."""

    authors: tuple[str, ...]
    rounds: tuple[Round, ...]
    agreed: int | None = None


class GoldenRow(Row, frozen=True, kw_only=True):
    """A picture with its golden caption; `author` wrote that version, in round `round`."""

    name: str
    file: Shot
    domain: str
    complexity: int
    informativeness: int
    caption: str
    author: str
    authors: tuple[str, ...]
    round: int


class Prediction(Row, frozen=True, kw_only=True):
    """What one model of the pool says about a picture."""

    image_id: str
    model: str
    text: str


class PoolRow(Row, frozen=True, kw_only=True):
    """A picture with its predictions, in the order of the models."""

    predictions: tuple[Prediction, ...]


class RubricRow(Row, frozen=True, kw_only=True):
    """A statement, who proposed it, and what supports it.

    `wrong_in` names the models of the pool that err, as the proposer has it, out of `seen_by`;
    `error_rate` is their share, and None without evidence. After the trial, `difficulty` is the
    share of the pool that the judge finds to fail, and `discrimination` how passing goes with
    passing the other statements, -1 to 1; None where either is constant.
    """

    image_id: str
    kind: RubricKind
    text: str
    proposer: str
    index: int
    wrong_in: tuple[str, ...] = ()
    seen_by: int = 0
    error_rate: float | None = None
    is_severe: bool = False
    failed_by: tuple[str, ...] = ()
    difficulty: float | None = None
    discrimination: float | None = None
    flags: tuple[str, ...] = ()


class Audit(Row, frozen=True, kw_only=True):
    """The judge's verdicts on one caption: a statement's id, and whether it holds.

    `source` is the model, and empty for the golden caption; `reason` says why verdicts are absent.
    """

    image_id: str
    source: str
    verdicts: dict[str, bool | None]
    reason: str = ""
