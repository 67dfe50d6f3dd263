"""How far a run's numbers could move under the errors that a judge check measured.

Not a correction: the judge may err otherwise on these replies. Each draw takes a judge that the
check's counts allow, finds how common each truth must then be, gives every judged probe a truth
that fits its verdict, and computes the metrics anew. The range holds 95% of the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from snellen.keys import digest_of
from snellen.metrics import ProbeTable
from snellen.protocols import PROTOCOLS
from snellen.records import JsonObject, Params
from snellen.runs.folder import Run
from snellen.runs.judge_errors import JudgeCheck
from snellen.runs.spec import RunSpec

DRAWS = 100
TAILS = (0.025, 0.975)
VERDICT = "verdict"
# Verdicts that no judge gave.
WITHOUT_JUDGE = frozenset({"empty", "truncated", "thought_only", "exact_match"})

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Range:
    """A metric as it is, and the ends of where the measured errors could put it."""

    raw: float
    low: float
    high: float


def attachment(check: JudgeCheck, spec: RunSpec) -> JsonObject:
    """What stands in `run.json` of a check: its digest, the judge, the confusion of the protocol.

    `mismatch` names what the check was made with and the run was not; nothing may then be
    concluded from it.
    """
    found = check.protocols.get(spec.protocol)
    confusion = None if found is None else msgspec.to_builtins(found.confusion)
    return {
        "sha256": digest_of(msgspec.to_builtins(check)),
        "judge": check.judge.name,
        "model": check.judge.model,
        "at": check.at,
        "mismatch": list(_mismatch(check, spec)),
        "confusion": confusion and _counts(confusion),
        "confusions": {}
        if found is None
        else {k: _counts(msgspec.to_builtins(one)) for k, one in found.confusions.items()},
    }


def _counts(confusion: Params) -> JsonObject:
    return {name: value for name, value in confusion.items() if name != "shares"}


def _mismatch(check: JudgeCheck, spec: RunSpec) -> Iterator[str]:
    for name in ("name", "model"):
        checked, used = getattr(check.judge, name), getattr(spec.judge, name)
        if checked != used:
            yield f"it measured the judge {name} {checked or '-'}, the run has {used or '-'}"
    found = check.protocols.get(spec.protocol)
    if found is None:
        yield f"it has nothing on the {spec.protocol} protocol"
        return
    prompt = spec.prompts.get(VERDICT)
    if prompt is None or found.prompts.get(VERDICT) != prompt.sha256:
        yield "it was made with another judge prompt"


def judge_check_extra(run: Run, table: ProbeTable) -> JsonObject:
    """What the summary says of an attached check: the ranges, or why there are none.

    The range spans the value as judged, which no error at all would give, and what follows from
    each kind of material apart; a kind under whose error rates
    the run's verdicts could not have come about is named in `misfit` and left out.
    """
    attached = run.spec.judge_check
    if attached is None:
        return {}
    extra = {k: attached.get(k) for k in ("sha256", "judge", "model", "at", "mismatch")}
    if attached.get("mismatch"):
        return {"judge_check": extra}
    confusions = attached.get("confusions") or {"all": attached["confusion"]}
    made = {name: ranges_of(run, table, confusion) for name, confusion in confusions.items()}
    extra["misfit"] = [name for name, ranges in made.items() if ranges is None]
    known = [ranges for ranges in made.values() if ranges is not None]
    if known:
        # The lowest and highest end of each metric, the raw value (no error at all) among them.
        extra["ranges"] = {
            name: {"raw": first.raw, "low": min(ends), "high": max(ends)}
            for name, first in known[0].items()
            for alike in [[ranges[name] for ranges in known if name in ranges]]
            for ends in [[first.raw, *(one.low for one in alike), *(one.high for one in alike)]]
        }
    return {"judge_check": extra}


def judge_check_notes(extra: Params) -> list[str]:
    """Notices of a check that does not fit the run, in whole or in part."""
    found = extra.get("judge_check")
    if found is None:
        return []
    if found["mismatch"]:
        return [f"the attached judge check does not fit: {'; '.join(found['mismatch'])}"]
    return [
        f"the judge check's error rates ({name}) cannot hold here: the judge told too little apart "
        "there, or its verdicts on this run could not have come about"
        for name in found["misfit"]
    ]


def ranges_of(
    run: Run, table: ProbeTable, confusion: Params, *, draws: int = DRAWS
) -> dict[str, Range] | None:
    """The range of each metric under one confusion.

    None where the judge does not tell the truths apart, or where the run's verdicts could not
    have come about under such error rates, whatever the truth.
    `confusion` has `truths`, `said` and `counts`; unscored verdicts of the check are left out.
    """
    classes = PROTOCOLS[run.spec.protocol].classes
    said = confusion["said"]
    counts = np.array(confusion["counts"], float)[:, [said.index(name) for name in classes]]
    judged = _judged(run, table)
    if not judged.any() or (counts.sum(axis=1) == 0).any():
        return None
    rng = np.random.default_rng(run.spec.seed)
    tally = run.protocol.tally(table, run.replies)
    found: list[Floats] = []
    for _ in range(draws):
        chances = np.stack([rng.dirichlet(row + 0.5) for row in counts])
        drawn = _redrawn(table, judged, chances, rng=rng)
        if drawn is not None:
            again = run.protocol.tally(drawn, run.replies)
            found.append(again.statistic()(again.counts.sum(axis=0)))
    if len(found) < draws / 2:
        return None
    raw = tally.statistic()(tally.counts.sum(axis=0))
    columns = zip(tally.metrics, raw, np.stack(found).T, strict=True)
    return {
        metric.name: Range(float(value), *map(float, np.quantile(drawn, TAILS)))
        for metric, value, again in columns
        for drawn in [again[np.isfinite(again)]]
        if drawn.size
    }


def _judged(run: Run, table: ProbeTable) -> NDArray[np.bool_]:
    """Which probes a judge gave a verdict on, in the table's order."""
    items = {item.id: item for item in run.items}
    found = []
    for item_id, repeat in table.units:
        for probe in items[item_id].probes:
            verdict = run.verdicts.get((item_id, repeat, probe.id))
            scored = verdict is not None and verdict.status == "scored"
            found.append(scored and verdict is not None and verdict.reason not in WITHOUT_JUDGE)
    return np.array(found, bool)


def _redrawn(
    table: ProbeTable,
    judged: NDArray[np.bool_],
    chances: Floats,
    *,
    rng: np.random.Generator,
) -> ProbeTable | None:
    """The table with truths drawn behind the verdicts; None where the chances cannot be.

    `chances` (truths, said) are the judge's; how common truths are is found kind by kind, since
    a statement that must be right is more often so.
    """
    if abs(np.linalg.det(chances)) < 1e-3:
        return None
    three = len(chances) == 3
    correct, uncertain = table.correct.copy(), table.uncertain.copy()
    said = np.where(table.correct, 0, np.where(table.uncertain & three, 2, 1))
    for kind in np.unique(table.kind):
        rows = np.flatnonzero(judged & (table.kind == kind))
        if not rows.size:
            continue
        truth = _truths(said[rows], chances, rng)
        if truth is None:
            return None
        correct[rows] = truth == 0
        uncertain[rows] = truth == 2
    return replace(table, correct=correct, uncertain=uncertain)


def _truths(
    said: NDArray[np.intp], chances: Floats, rng: np.random.Generator
) -> NDArray[np.intp] | None:
    """A truth for each verdict, drawn from what the judge's chances say of it.

    None where no truth makes such verdicts likely: some share of them lies more than three
    standard errors and a point beside the nearest that the judge can give.
    """
    seen = np.bincount(said, minlength=len(chances)) / said.size
    common = np.clip(np.linalg.solve(chances.T, seen), 0.0, None)
    common /= common.sum()
    expected = common @ chances
    noise = 3.0 * np.sqrt(expected * (1.0 - expected) / said.size) + 0.01
    if (np.abs(seen - expected) > noise).any():
        return None
    joint = common[:, np.newaxis] * chances
    behind = joint / np.maximum(joint.sum(axis=0, keepdims=True), 1e-12)
    edges = np.cumsum(behind, axis=0)[:, said]
    drawn: NDArray[np.intp] = (rng.random(said.size) > edges).sum(axis=0)
    return np.minimum(drawn, len(chances) - 1)
