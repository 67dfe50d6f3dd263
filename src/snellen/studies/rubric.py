"""What rubric runs say about the benchmark itself: length bias, coverage, consistency, the gap.

Source: PerceptionRubrics, section on meta-evaluation, figures 6, 8 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snellen.errors import UsageError
from snellen.judges.reliability import check_same_items
from snellen.keys import rng_for
from snellen.metrics import ProbeTable
from snellen.runs.folder import Run
from snellen.runs.naming import named_apart
from snellen.runs.summary import summary_of
from snellen.stats.agreement import (
    Slope,
    average_ranks,
    fisher_interval,
    pearson,
    pearson_p,
    r_squared,
    slope,
)

SHARES = (0.2, 0.4, 0.6, 0.8)
DRAWS = 10
FEWEST = 3


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How a model's score by image goes with the words of its replies: Pearson's r, p and n.

    Over the images whose score is known. `interval` is None for fewer than four.
    """

    model: str
    n: int
    r: float
    p: float
    interval: tuple[float, float] | None
    mean_words: float


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """What is left of scores and ranks when a share of both streams is kept, over some draws.

    `score_sd` and `rank_sd` are sample standard deviations by model over the draws, `bias` the
    mean score less the score over all rubrics; scores are fractions of 1.
    """

    share: float
    draws: int
    score_sd: Mapping[str, float]
    rank_sd: Mapping[str, float]
    bias: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Consistency:
    """How well Easy-Wrong accuracy follows from the gate pass rate over `n` models."""

    n: int
    r_squared: float


def length_bias(run: Run) -> LengthBias:
    """Whether a model is rewarded for length."""
    tally = run.tally()
    sums = {name: tally.counts[:, k] for k, name in enumerate(tally.columns)}
    words: dict[str, list[int]] = {}
    for item in run.items:
        for repeat in range(run.spec.repeats):
            row = run.replies.get((item.id, repeat))
            if row is not None and row.reply is not None:
                words.setdefault(item.cluster or item.id, []).append(len(row.reply.split()))
    known = [k for k, name in enumerate(tally.clusters) if sums["nS"][k] and name in words]
    x = [float(np.mean(words[tally.clusters[k]])) for k in known]
    y = [float(sums["Ss"][k] / sums["nS"][k]) for k in known]
    r, n = pearson(x, y)
    mean = float(np.mean(x)) if x else math.nan
    return LengthBias(run.name, n, r, pearson_p(r, n), fisher_interval(r, n), mean)


def rubric_coverage(
    runs: Sequence[Run], *, shares: Sequence[float] = SHARES, draws: int = DRAWS, seed: int = 0
) -> tuple[CoveragePoint, ...]:
    """How steady scores and ranks are when only a share of each image's rubrics is kept.

    Of each stream of an image the share is kept, rounded, one at least; all models are scored on
    the same draws.

    Raises:
        ComparisonError: the runs are not over the same items.
        UsageError: a run has skipped statements, so that nothing can be drawn from them.
    """
    for run in runs[1:]:
        check_same_items(runs[0], run)
    tables = [run.table() for run in runs]
    for run, table in zip(runs, tables, strict=True):
        if table.skipped.any():
            raise UsageError(
                f"{run.folder} was made with --gate-first, which skipped statements",
                hint="judge it again in full: snellen rejudge --no-gate-first",
            )
    # The statements of each image and kind, in an order that does not depend on the file's.
    streams: dict[Stream, list[str]] = {}
    for item in sorted(runs[0].items, key=lambda item: item.id):
        for probe in item.probes:
            streams.setdefault((item.id, probe.kind), []).append(probe.id)
    numbers = [_numbers(table, run, streams) for run, table in zip(runs, tables, strict=True)]
    full = np.array([_score(run, table) for run, table in zip(runs, tables, strict=True)])
    names = [run.name for run in named_apart(runs)]
    points = []
    for share in shares:
        drawn = np.empty((draws, len(runs)))
        for draw in range(draws):
            kept = _draw(streams, share, rng_for(seed, "coverage", str(share), str(draw)))
            for k, (run, table) in enumerate(zip(runs, tables, strict=True)):
                drawn[draw, k] = _score(run, table.where(kept[numbers[k]]))
        ranks = np.array([average_ranks(-row) for row in drawn])
        spreads = [*(a.std(axis=0, ddof=1) for a in (drawn, ranks)), drawn.mean(axis=0) - full]
        by_name = [dict(zip(names, map(float, values), strict=True)) for values in spreads]
        points.append(CoveragePoint(share, draws, *by_name))
    return tuple(points)


Stream = tuple[str, str]


def _numbers(
    table: ProbeTable, run: Run, streams: Mapping[Stream, Sequence[str]]
) -> NDArray[np.intp]:
    """The place of each row of a table among the statements of all streams."""
    places = [(item, probe) for (item, _), probes in streams.items() for probe in probes]
    at = {place: k for k, place in enumerate(places)}
    rows = [
        (item.id, probe.id)
        for item in run.items
        for _ in range(run.spec.repeats)
        for probe in item.probes
    ]
    return np.array([at[row] for row in rows], np.intp)


def _draw(
    streams: Mapping[Stream, Sequence[str]], share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which statements are kept."""
    kept = []
    for probes in streams.values():
        mask = np.zeros(len(probes), bool)
        mask[rng.permutation(len(probes))[: max(1, round(share * len(probes)))]] = True
        kept.append(mask)
    return np.concatenate(kept)


def _score(run: Run, table: ProbeTable) -> float:
    tally = run.protocol.tally(table, run.replies)
    return float(tally.metric("score").value(tally.sums()))


def consistency(points: Sequence[tuple[float, float]]) -> Consistency:
    """R squared of Easy-Wrong item accuracy (second) on gate pass (first) over models.

    >>> consistency([(0.2, 0.3), (0.4, 0.5), (0.6, 0.7)]).r_squared.__round__(6)
    1.0
    """
    return Consistency(len(points), r_squared([p[0] for p in points], [p[1] for p in points]))


def gap_slope(points: Sequence[tuple[float, float]]) -> Slope:
    """The line of the reliability gap (second) on ability, the score (first), over models."""
    return slope([p[0] for p in points], [p[1] for p in points])


def metric_points(runs: Sequence[Run], first: str, second: str) -> list[tuple[float, float]]:
    """Two metrics of each run that has both."""
    points = []
    for run in runs:
        metrics = summary_of(run).metrics
        values = [metrics[name].value for name in (first, second) if name in metrics]
        if len(values) == 2 and values[0] is not None and values[1] is not None:
            points.append((values[0], values[1]))
    return points


def coverage_of(runs: Sequence[Run]) -> tuple[CoveragePoint, ...]:
    """Rubric coverage of those runs that skipped no statement; empty where there is none.

    It needs two runs or more, all over the same items.
    """
    full = in_full(runs)
    if len(full) < 2 or any(run.spec.items != full[0].spec.items for run in full):
        return ()
    return rubric_coverage(full)


def in_full(runs: Sequence[Run]) -> list[Run]:
    """The runs that skipped no statement."""
    return [run for run in runs if not summary_of(run).counts.skipped]
