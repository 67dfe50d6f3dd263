"""Verdicts as protocols make them: from a judgement, or where no judge is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from snellen.flows import Asked, failed_reason, said
from snellen.records import Item, Probe, ReplyRow, Verdict
from snellen.replies import Parsed


def unscored(item: Item, reason: str, *, repeat: int = 0) -> tuple[Verdict, ...]:
    """All probes of an item without a verdict, and why."""
    return tuple(
        Verdict(item.id, probe.id, None, None, "unscored", reason, repeat=repeat)
        for probe in item.probes
    )


def settle(
    item: Item, row: ReplyRow, blank: Callable[[Probe], str | bool | None]
) -> tuple[Verdict, ...] | None:
    """The verdicts on a reply that no judge has to read; None where a judge has to.

    A call that failed leaves all probes unscored. A blank reply is wrong; `blank` gives the
    verdict of each probe on it.
    """
    failed = failed_reason(row)
    if failed is not None:
        return unscored(item, failed, repeat=row.repeat)
    if row.status == "ok":
        return None
    return tuple(
        Verdict(item.id, p.id, blank(p), False, "scored", row.status, repeat=row.repeat)
        for p in item.probes
    )


def judged_verdict(
    item: Item,
    probe: Probe,
    judged: Asked[Parsed],
    value: str | bool | None,
    *,
    repeat: int,
    probabilities: Mapping[str, float] | None = None,
) -> Verdict:
    """A judgement as a verdict; `value` is None where the judge gave none.

    A letter is right where it is the answer's, a boolean where it is true.
    """
    parsed = said(judged)
    is_right = value if value is None or isinstance(value, bool) else value == probe.answer
    return Verdict(
        item.id,
        probe.id,
        value,
        is_right,
        "unscored" if value is None else "scored",
        judged.reason or ("recovered" if parsed.how == "recovered" else None),
        judged.raw,
        judged.usage,
        repeat=repeat,
        note=parsed.note,
        probabilities=probabilities,
    )
