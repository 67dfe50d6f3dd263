"""From a run's verdicts to `summary.json`: metrics in three readings, breakdowns, counts, usage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, replace

import numpy as np

from snellen.endpoints.exact import VERSION as EXACT_VERSION
from snellen.engine.counters import Counters
from snellen.metrics import Array, Formula, ProbeTable, Tally, group_masks
from snellen.records import Item, JsonObject, Params, Verdict
from snellen.runs.folder import Run
from snellen.runs.spec import Counts, Summary, Value
from snellen.stats import bootstrap as stats

RESAMPLES = 10_000
BREAKDOWN_RESAMPLES = stats.LEAST_RESAMPLES


def summarise(run: Run, *, status: str, counters: Counters | None = None) -> Summary:
    """The summary of a run as it stands, from its verdicts alone; usage from the counters."""
    table = run.table()
    fidelity = run.spec.judge.fidelity
    tally = run.protocol.tally(table, run.replies)
    by, group_counts = _breakdowns(run, table, {metric.name for metric in tally.metrics})
    extra = run.protocol.extras(run.view(table))
    if run.spec.judge.members:
        from snellen.runs.votes import panel_extra

        extra |= panel_extra(run)
    if run.spec.judge_check is not None:
        from snellen.runs.sensitivity import judge_check_extra

        extra |= judge_check_extra(run, table)
    return Summary(
        benchmark=run.spec.benchmark,
        protocol=run.spec.protocol,
        model=run.spec.model.name,
        judge=run.spec.judge.name,
        status=status,
        counts=replace(count(run.items, run.verdicts, table), bad_rows=len(run.spec.skipped_rows)),
        metrics=values_of(
            tally, fidelity=fidelity, any_scored=_any_scored(table), n_items=_n_items(table)
        ),
        by=by,
        usage=usage_of(counters),
        group_counts=group_counts,
        extra=extra,
        notes=_notes(run, table, tally.n_clusters, extra),
    )


def summarise_part(run: Run, *, status: str, counters: Counters | None = None) -> Summary:
    """The counts of a part of a run, without metrics: those are of the whole."""
    return Summary(
        run.spec.benchmark, run.spec.protocol, run.spec.model.name, run.spec.judge.name, status,
        count(run.items, run.verdicts, run.table()), {}, {}, usage_of(counters),
    )  # fmt: skip


def summary_of(run: Run) -> Summary:
    """The run's summary, computed anew where the run ended before it was written."""
    return summarise(run, status="incomplete") if run.summary is None else run.summary


def values_of(
    tally: Tally,
    *,
    fidelity: str = "",
    any_scored: bool = True,
    n_items: int | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Value]:
    """Each metric of a tally in its three readings, with its interval.

    `n_items` is how many items the tally is of; None: each cluster is one.
    """
    n_items = tally.n_clusters if n_items is None else n_items
    # What nothing was scored of has no value, not the value zero.
    nothing = Value(
        None, None, None, None, 0.0, n_items, fidelity=fidelity, n_clusters=tally.n_clusters
    )
    if not any_scored:
        return dict.fromkeys((m.name for m in tally.metrics), nothing)
    sums = tally.sums()
    resampling = stats.Resampling(resamples)
    found = tally.intervals(resampling)
    scored = [_number(metric.scored, sums) for metric in tally.metrics]
    is_partial = any(
        one is not None and one != _number(metric.value, sums)
        for one, metric in zip(scored, tally.metrics, strict=True)
    )
    if is_partial:
        over = tuple(
            replace(metric, value=metric.scored or metric.value) for metric in tally.metrics
        )
        over_scored = replace(tally, metrics=over).intervals(resampling)
    values = {}
    for k, metric in enumerate(tally.metrics):
        values[metric.name] = Value(
            value=_number(metric.value, sums),
            scored=scored[k],
            upper=_number(metric.upper, sums),
            ci95=_ends(found, k),
            n=float(metric.n(sums)),
            n_items=n_items,
            lower=_number(metric.lower, sums),
            left_out=int(found.n_left_out[k]),
            few=bool(found.few[k]),
            fidelity=fidelity,
            n_clusters=tally.n_clusters,
            scored_ci95=_ends(over_scored, k) if is_partial else None,
        )
    return values


def _n_items(table: ProbeTable) -> int:
    """How many items have a probe that was not skipped."""
    units = np.unique(table.unit[~table.skipped])
    return len({table.units[unit][0] for unit in units})


def _number(formula: Formula | None, sums: Mapping[str, Array]) -> float | None:
    if formula is None:
        return None
    value = float(formula(sums))
    return value if math.isfinite(value) else None


def _ends(found: stats.Intervals, k: int) -> tuple[float, float] | None:
    low, high = float(found.low[k]), float(found.high[k])
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _any_scored(table: ProbeTable) -> bool:
    return bool((~table.unscored & ~table.skipped).any())


def count(
    items: Sequence[Item], verdicts: Mapping[tuple[str, int, str], Verdict], table: ProbeTable
) -> Counts:
    """The counts of a run, with reasons; a probe without a verdict is `not_run`."""
    scored = ~table.unscored & ~table.skipped
    unscored_by: Counter[str] = Counter()
    scored_by: Counter[str] = Counter()
    ids = {item.id: {p.id for p in item.probes} for item in items}
    for (item_id, _, probe_id), verdict in verdicts.items():
        if probe_id not in ids.get(item_id, ()):
            continue
        if verdict.status == "unscored":
            unscored_by[verdict.reason or "unknown"] += 1
        elif verdict.status == "scored" and verdict.reason:
            scored_by[verdict.reason] += 1
    missing = int(table.unscored.sum()) - sum(unscored_by.values())
    if missing > 0:
        unscored_by["not_run"] += missing
    return Counts(
        items=len(items),
        probes=table.n,
        correct=int(table.correct.sum()),
        uncertain=int(table.uncertain.sum()),
        scored=int(scored.sum()),
        unscored=int(table.unscored.sum()),
        skipped=int(table.skipped.sum()),
        unscored_by_reason=dict(sorted(unscored_by.items())),
        scored_by_reason=dict(sorted(scored_by.items())),
    )


def _breakdowns(
    run: Run, table: ProbeTable, names: Set[str]
) -> tuple[dict[str, dict[str, dict[str, Value]]], dict[str, dict[str, dict[str, int]]]]:
    by: dict[str, dict[str, dict[str, Value]]] = {}
    counts: dict[str, dict[str, dict[str, int]]] = {}
    # A label of which nothing was scored still counts against the strict value of the whole.
    any_scored = _any_scored(table)
    for dimension in run.protocol.dimensions:
        masks = group_masks(table, run.items, dimension)
        if not masks:
            continue
        by[dimension], counts[dimension] = {}, {}
        for label, mask in masks.items():
            part = table.where(mask)
            tally = run.protocol.tally(part, run.replies)
            # A part in which nothing was skipped could give more than the whole run.
            kept = run.protocol.metrics_by(dimension, names)
            metrics = tuple(metric for metric in tally.metrics if metric.name in kept)
            tally = replace(tally, metrics=metrics)
            by[dimension][label] = values_of(
                tally,
                fidelity=run.spec.judge.fidelity,
                any_scored=any_scored and not part.skipped.all(),
                n_items=_n_items(part),
                resamples=BREAKDOWN_RESAMPLES,
            )
            counts[dimension][label] = {
                "probes": part.n,
                "scored": int((~part.unscored & ~part.skipped).sum()),
                "skipped": int(part.skipped.sum()),
                "items": len({part.units[unit][0] for unit in np.unique(part.unit)}),
            }
    return by, counts


def usage_of(counters: Counters | None) -> JsonObject:
    """Tokens, calls and cost by role; an unknown cost is None, never 0."""
    usage: JsonObject = {"model": {}, "judge": {}}
    for role, counted in ({} if counters is None else counters.roles).items():
        usage[role] = {k: v for k, v in asdict(counted).items() if k != "unknown_cost"}
        usage[role]["cost_usd"] = None if counted.unknown_cost else counted.cost_usd
    costs = [entry.get("cost_usd") for entry in usage.values() if entry]
    known = bool(costs) and all(c is not None for c in costs)
    usage["cost_usd"] = sum(c for c in costs if c is not None) if known else None
    return usage


def _notes(run: Run, table: ProbeTable, n_clusters: int, extra: Params) -> tuple[str, ...]:
    notes = []
    spec = run.spec
    if spec.judge.fidelity == "low":
        notes.append(
            "low fidelity: the embedded judge read these replies; its numbers must not be "
            "compared with published ones"
        )
    if spec.judge.model == EXACT_VERSION:
        notes.append(
            "judged by rule: short answers were compared with the reference and no model judged; "
            "replies without a short answer are unscored"
        )
    if n_clusters < 2:
        notes.append("one image alone tells nothing about others: there are no intervals")
    elif n_clusters < stats.FEW_CLUSTERS:
        notes.append(f"few images: intervals over {n_clusters} images are rough")
    if spec.skipped_rows:
        notes.append(f"{len(spec.skipped_rows)} bad rows of the data were left out")
    if doubtful := sum(row.doubt for row in run.replies.values()):
        notes.append(
            f"{doubtful} replies end with a closing mark of thoughts and nothing behind it: their "
            "text was judged, though it may be thoughts"
        )
    if spec.options.get("kept_share") is not None:
        kept = 100 * float(spec.options["kept_share"])
        notes.append(f"captions cut to {kept:g}% of their length")
    notes += run.protocol.notes(run.view(table), extra)
    if "judge_check" in extra:
        from snellen.runs.sensitivity import judge_check_notes

        notes += judge_check_notes(extra)
    return tuple(notes)
