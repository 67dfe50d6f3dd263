"""A stronger judge as the auditor: it judges the sampled verdicts of a run again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from snellen.judges.audit import AuditRow
from snellen.records import Item, Verdict
from snellen.runs.folder import Run, load_run
from snellen.runs.rejudge import rejudge_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute


async def fill_with_judge(
    run: Run, rows: Sequence[AuditRow], request: RunRequest
) -> list[AuditRow]:
    """The rows with the verdicts of the judge that `request` names as truth.

    Only rows without a truth are filled. A verdict that the judge does not give stays empty.

    Raises:
        SnellenError: the judge could not be asked.
    """
    wanted = {(row.id, row.probe_id) for row in rows if row.truth == ""}
    items = tuple(_asked(run, item, wanted) for item in run.items)
    part = replace(run, items=tuple(item for item in items if item.probes))
    with tempfile.TemporaryDirectory(prefix="snellen-audit-") as folder:
        plan = rejudge_plan(part, replace(request, out=Path(folder) / "audit", max_unscored=1.0))
        finished = await execute(plan)
        if finished.error is not None:
            raise finished.error
        verdicts = load_run(finished.folder).verdicts
    return [_filled(row, verdicts) for row in rows]


def _filled(row: AuditRow, verdicts: Mapping[tuple[str, int, str], Verdict]) -> AuditRow:
    verdict = verdicts.get((row.id, row.repeat, row.probe_id))
    if row.truth != "" or verdict is None or verdict.verdict is None:
        return row
    return replace(row, truth=verdict.verdict)


def _asked(run: Run, item: Item, wanted: set[tuple[str, str]]) -> Item:
    """The item with the probes to ask; statements that share a call are asked together."""
    probes = tuple(probe for probe in item.probes if (item.id, probe.id) in wanted)
    if probes and run.protocol.options_from(run.spec.options).shares_calls:
        return item
    return replace(item, probes=probes)
