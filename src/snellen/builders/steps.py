"""What the stages of a builder hand on: rows, rejections, and the units of work between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from snellen.errors import DataError
from snellen.flows import REASKS, Flow, again
from snellen.records import CallFailure, Reply, Request

T = TypeVar("T")


class Row(msgspec.Struct, frozen=True, kw_only=True, rename={"made_from": "from"}):
    """A row of a stage: its stable id, and the ids of the rows that it was made from."""

    id: str
    made_from: tuple[str, ...] = ()


class Rejected(msgspec.Struct, frozen=True, kw_only=True, rename={"made_from": "from"}):
    """A row that a stage did not hand on: which, why, and what supports it.

    `stage` is filled in by the runner.
    """

    stage: str = ""
    id: str
    made_from: tuple[str, ...] = ()
    reason: str
    detail: Mapping[str, Any] = {}


class Made(msgspec.Struct, frozen=True):
    """What became of one unit of work, or of a whole stage.

    `rejected` are inputs of which nothing was made; `dropped` are candidates that were made and
    failed a check. `failure` is the kind of a failed call (`timeout` ...): such a unit is asked
    again at the next start. `counts` are figures for the report, such as `asked_again`.
    """

    rows: tuple[Any, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    dropped: tuple[Rejected, ...] = ()
    failure: str = ""
    counts: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of a stage's work: `basis` is plain data of all that would change its result."""

    id: str
    basis: Any
    payload: Any


def joined(parts: Iterable[Made]) -> Made:
    """Several results as one, in their order.

    >>> joined([Made(rows=("a",), counts={"seen": 1}), Made(rows=("b",), counts={"seen": 2})])
    Made(rows=('a', 'b'), rejected=(), dropped=(), failure='', counts={'seen': 3})
    """
    parts = list(parts)
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    return Made(
        tuple(row for part in parts for row in part.rows),
        tuple(one for part in parts for one in part.rejected),
        tuple(one for part in parts for one in part.dropped),
        counts=dict(counts),
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model said in the end: `value`, or why there is none.

    `reason` is empty with a value; else `call_KIND` for a failed call, or `unreadable` with the
    parser's complaint in `detail`. `asks` counts the calls.
    """

    value: Any = None
    reason: str = ""
    detail: str = ""
    raw: str = ""
    asks: int = 1

    @property
    def failure(self) -> str:
        """The kind of the failed call, empty where a reply came."""
        return self.reason.removeprefix("call_") if self.reason.startswith("call_") else ""


def ask_for(
    request: Request, parse: Callable[[Reply], Any], *, reasks: int = REASKS
) -> Flow[Answered]:
    """Asks until a reply can be parsed; each further ask ends with the parser's complaint.

    `parse` raises DataError for a reply that it cannot read.
    """
    complaint = ""
    for ask in range(reasks + 1):
        wanted = again(request, ask, complaint) if ask else request
        [answer] = yield [wanted]
        if isinstance(answer, CallFailure):
            return Answered(None, f"call_{answer.kind}", answer.message, "", ask + 1)
        try:
            if answer.finish_reason == "length":
                raise DataError("the reply was cut off by its token limit")
            return Answered(parse(answer), "", "", answer.text, ask + 1)
        except DataError as error:
            complaint = (
                f"Your last reply could not be used: {error.message}. "
                "Reply again, in exactly the form that is asked for, and with nothing else."
            )
            detail = error.message
    return Answered(None, "unreadable", detail, answer.text, reasks + 1)


def undone(answered: Answered, unit_id: str, *, made_from: tuple[str, ...] = ()) -> Made:
    """The result of a unit whose model gave no usable reply."""
    detail: dict[str, Any] = {"error": answered.detail}
    if answered.raw:
        detail["reply"] = answered.raw[:2000]
    gone = Rejected(id=unit_id, made_from=made_from, reason=answered.reason, detail=detail)
    return Made(rejected=(gone,), failure=answered.failure, counts=asked_again(answered))


def asked_again(answered: Answered) -> Mapping[str, int]:
    """How often a model was asked again, as counts of a result."""
    return {"asked_again": answered.asks - 1} if answered.asks > 1 else {}
