"""The trial of new statements, before people see them: on the golden caption, and on the pool.

The calls are those of an evaluation, by the same flow and the same prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from snellen.builders.rubrics.checks import gated
from snellen.builders.rubrics.rows import Audit, RubricRow
from snellen.builders.steps import Made, Rejected
from snellen.flows import Flow, given_rows
from snellen.protocols.rubric import RubricOptions, audit_item
from snellen.records import Item, Probe, Request

T = TypeVar("T")
FAILS_GOLDEN = "fails_golden_caption"


def played_by(flow: Flow[T], roles: Mapping[str, str]) -> Flow[T]:
    """A flow whose requests go to other roles, those of its children too."""
    sent: Any = None
    while True:
        try:
            wanted = flow.send(sent)
        except StopIteration as stop:
            result: T = stop.value
            return result
        sent = yield [
            replace(one, role=roles.get(one.role, one.role))
            if isinstance(one, Request)
            else played_by(one, roles)
            for one in wanted
        ]


def audit(
    caption: str, rows: Sequence[RubricRow], *, unit: str, source: str, role: str
) -> Flow[Made]:
    """The judge's verdicts on one caption of one picture; `source` is empty for the golden one."""
    item = Item(
        id=unit,
        images=(),
        probes=tuple(Probe(row.id, row.text, "true", kind=row.kind) for row in rows),
    )
    options = RubricOptions(given=given_rows({unit: caption}))
    outcome = yield from played_by(audit_item(item, options), {"judge": role})
    reasons = [one.reason or "" for one in outcome.verdicts if one.status == "unscored"]
    failed = next((one for one in reasons if one.startswith("judge_")), "")
    found = Audit(
        id=unit,
        made_from=tuple(row.id for row in rows),
        image_id=rows[0].image_id,
        source=source,
        verdicts={one.probe_id: one.correct for one in outcome.verdicts},
        reason="call_" + failed.removeprefix("judge_") if failed else "",
    )
    return Made((found,), failure=failed.removeprefix("judge_"))


def settle_trial(rows: Sequence[RubricRow], audits: Sequence[Audit]) -> Made:
    """Statements that hold on their golden caption, with what the pool makes of them.

    Those that all of the pool pass, or all fail, are flagged: they tell no model from another.
    """
    golden = {one.image_id: one for one in audits if not one.source}
    kept, gone = [], []
    for row in rows:
        found = golden.get(row.image_id)
        verdict = found.verdicts.get(row.id) if found is not None else None
        if verdict:
            kept.append(row)
            continue
        reason = found.reason if found is not None else ""
        reason = FAILS_GOLDEN if verdict is False else reason or "unreadable"
        gone.append(
            Rejected(
                id=row.id,
                made_from=(row.image_id,),
                reason=reason,
                detail={"kind": row.kind, "text": row.text, "proposer": row.proposer},
            )
        )
    left = gated(kept)
    done = measured(left.rows, [one for one in audits if one.source])
    return Made(done, (*gone, *left.rejected), counts=_counts(done))


def measured(rows: Sequence[RubricRow], audits: Sequence[Audit]) -> tuple[RubricRow, ...]:
    """Statements with difficulty, discrimination and flags, by the verdicts on the pool."""
    by_model: dict[str, dict[str, bool]] = {}
    wanted = {row.id for row in rows}
    for one in audits:
        known = {k: v for k, v in one.verdicts.items() if v is not None and k in wanted}
        by_model.setdefault(one.source, {}).update(known)
    sums = {model: (sum(own.values()), len(own)) for model, own in by_model.items()}
    found = []
    for row in rows:
        own = {model: known[row.id] for model, known in by_model.items() if row.id in known}
        flags = [] if not own else ["all_pass"] if all(own.values()) else []
        flags += ["all_fail"] if own and not any(own.values()) else []
        flags += ["no_evidence"] if row.kind == "easy_wrong" and row.error_rate is None else []
        rest = {
            model: (sums[model][0] - passed) / (sums[model][1] - 1)
            for model, passed in own.items()
            if sums[model][1] > 1
        }
        found.append(
            msgspec.structs.replace(
                row,
                failed_by=tuple(model for model, passed in own.items() if not passed),
                difficulty=1 - sum(own.values()) / len(own) if own else None,
                discrimination=correlation([(own[m], rate) for m, rate in rest.items()]),
                flags=tuple(flags),
            )
        )
    return tuple(found)


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's correlation of pairs; None for fewer than three, or where one side is constant.

    >>> correlation([(0, 0.1), (0, 0.2), (1, 0.9)])
    0.9934
    """
    if len(pairs) < 3:
        return None
    x, y = np.asarray(pairs, dtype=float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return round(float(np.corrcoef(x, y)[0, 1]), 4)


def _counts(rows: Sequence[RubricRow]) -> dict[str, int]:
    """Flags, and how many claims of the proposer the judge confirms."""
    counts = {
        f"flag: {flag}": sum(flag in row.flags for row in rows)
        for flag in ("all_pass", "all_fail", "no_evidence")
    }
    claimed = [(model, row) for row in rows for model in row.wrong_in]
    counts["claimed errors"] = len(claimed)
    counts["claimed errors confirmed"] = sum(model in row.failed_by for model, row in claimed)
    return {name: n for name, n in counts.items() if n}
