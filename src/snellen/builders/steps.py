"""What the stages of a builder hand on: rows, rejections, and the units of work between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from snellen.flows import Asked
from snellen.records import FailureKind

T = TypeVar("T")
LONGEST_REPLY = 2000


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
    detail: Mapping[str, object] = {}


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
    """One piece of a stage's work: `basis` is plain data: all that would change its result."""

    id: str
    basis: Sequence[object]
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


def is_failed(asked: Asked[T]) -> bool:
    """Whether the call itself failed, so that there is no reply at all."""
    return asked.value is None and asked.reply is None


def undone(asked: Asked[T], unit_id: str, *, made_from: tuple[str, ...] = ()) -> Made:
    """The result of a unit whose model gave no usable reply.

    The reason is `call_KIND` for a failed call, else `unreadable` with what was wrong last.
    """
    if is_failed(asked):
        kind = failure_kind(asked)
        detail = {"error": asked.raw}
        gone = Rejected(id=unit_id, made_from=made_from, reason=f"call_{kind}", detail=detail)
        return Made(rejected=(gone,), failure=kind)
    detail = {"error": asked.errors[-1], "reply": asked.raw[:LONGEST_REPLY]}
    gone = Rejected(id=unit_id, made_from=made_from, reason="unreadable", detail=detail)
    return Made(rejected=(gone,), counts=asked_again(asked))


def failure_kind(asked: Asked[T]) -> str:
    """The kind of a failed call, without the role before it."""
    reason = asked.reason or ""
    return next((kind for kind in get_args(FailureKind) if reason.endswith(f"_{kind}")), reason)


def asked_again(asked: Asked[T]) -> dict[str, int]:
    """How often a model was asked again, as counts of a result."""
    n = len(asked.errors) - (asked.value is None and asked.reply is not None)
    return {"asked_again": n} if n else {}
