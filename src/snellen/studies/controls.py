"""What the controls of a caption benchmark say: what can be had without the picture's caption.

`blind` forces an answer without any caption: what the question alone gives away. `swapped` reads
another picture's caption and may abstain: what is right there above blind leaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from snellen.errors import ComparisonError
from snellen.metrics import Array, Tally
from snellen.runs.folder import Run
from snellen.stats.paired import compare_paired

Question = tuple[str, str]
METRICS = ("overall_acc", "effective_acc", "coverage")


@dataclass(frozen=True, slots=True)
class Controlled:
    """A run with its controls: blind runs (one or more option orders) and swapped ones."""

    real: Run
    blind: tuple[Run, ...]
    swapped: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Leak:
    """How a question fares without its caption; shares of the control runs that got it right.

    None where there is no such control. `is_guessable`: right under blind in more than half of the
    option orders; `is_leaking`: a committed right answer in more than half of the swapped runs.
    """

    item: str
    probe: str
    blind: float | None
    swapped: float | None

    @property
    def is_guessable(self) -> bool:
        """Whether the question alone gives its answer away."""
        return self.blind is not None and self.blind > 0.5

    @property
    def is_leaking(self) -> bool:
        """Whether captions of other pictures answer it."""
        return self.swapped is not None and self.swapped > 0.5


def control_of(run: Run) -> str:
    """`blind`, `swapped`, or an empty text for a run that is no control."""
    return str(run.spec.options.get("control") or "")


def find_controlled(runs: Sequence[Run]) -> list[Controlled]:
    """Each run that has controls beside it: same data and judge, and for swapped the same model."""
    found = []
    for real in runs:
        if control_of(real) or "controls" not in real.protocol.tables:
            continue
        near = [
            run
            for run in runs
            if run.spec.benchmark == real.spec.benchmark
            and run.spec.items == real.spec.items
            and run.spec.judge.name == real.spec.judge.name
        ]
        blind = tuple(run for run in near if control_of(run) == "blind")
        swapped = tuple(
            run for run in near if control_of(run) == "swapped" and run.name == real.name
        )
        if blind or swapped:
            found.append(Controlled(real, blind, swapped))
    return found


def leaks(case: Controlled) -> dict[Question, Leak]:
    """How each question fares under the controls, by (item, probe)."""
    blind, swapped = _shares_right(case.blind), _shares_right(case.swapped)
    return {
        (item.id, probe.id): Leak(
            item.id,
            probe.id,
            blind.get((item.id, probe.id)),
            swapped.get((item.id, probe.id)),
        )
        for item in case.real.items
        for probe in item.probes
    }


def _shares_right(runs: Iterable[Run]) -> dict[Question, float]:
    """The share of right answers of each question over runs and repeats, unscored left out."""
    seen: dict[Question, list[bool]] = {}
    for run in runs:
        for verdict in run.verdicts.values():
            if verdict.status == "scored":
                right = seen.setdefault((verdict.id, verdict.probe_id), [])
                right.append(verdict.correct is True)
    return {question: sum(right) / len(right) for question, right in seen.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of overall accuracies, a fraction of 1; `interval` None for a single picture."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ControlRow:
    """The metrics of METRICS under one kind of caption; NaN where a metric has no value.

    `below` is the accuracy with the model's own caption minus that of this row, None for its own.
    """

    caption: str
    values: tuple[float, ...]
    n_questions: int
    below: Difference | None = None


def control_rows(case: Controlled) -> list[ControlRow]:
    """The real score beside its controls, and the rest of the score on questions without a leak.

    Raises:
        ComparisonError: the runs are not about the same pictures.
    """
    real = case.real
    own = pooled([real])
    rows = [_row("its own caption", own)]
    for caption, runs in (("blind: none, no E", case.blind), ("swapped: another's", case.swapped)):
        if runs:
            control = pooled(runs)
            rows.append(replace(_row(caption, control), below=difference(control, own)))
    flagged = {q for q, leak in leaks(case).items() if leak.is_guessable or leak.is_leaking}
    keys = [(i.id, p.id) for i in real.items for _ in range(real.spec.repeats) for p in i.probes]
    part = real.table().where(np.array([key not in flagged for key in keys], bool))
    clean = _row("its own, no-leak questions", real.protocol.tally(part, real.replies))
    return [*rows, replace(clean, n_questions=len(set(keys) - flagged))]


def _row(caption: str, tally: Tally) -> ControlRow:
    values = tally.statistic(METRICS)(tally.counts.sum(axis=0))
    return ControlRow(caption, tuple(map(float, values)), int(tally.sums()["M"]))


def pooled(runs: Sequence[Run]) -> Tally:
    """The mean tally of runs on the same pictures.

    Raises:
        ComparisonError: the runs are about different pictures.
    """
    tallies = [run.tally() for run in runs]
    first = tallies[0]
    if any(tally.clusters != first.clusters for tally in tallies):
        raise ComparisonError(
            "the control runs are about different pictures",
            hint="use the same --limit and --subset for all of them",
        )
    counts: Array = np.mean([tally.counts for tally in tallies], axis=0)
    return Tally(first.clusters, first.columns, counts, first.metrics)


def difference(low: Tally, high: Tally) -> Difference:
    """The overall accuracy of `high` minus that of `low`, paired by picture.

    Raises:
        ComparisonError: the tallies are about different pictures.
    """
    if low.clusters != high.clusters:
        raise ComparisonError(
            "a control run is about other pictures than the run that it belongs to",
            hint="use the same --limit and --subset for both",
        )
    found = compare_paired(low.counts, high.counts, high.statistic(("overall_acc",)))
    ends = (float(found.low[0]), float(found.high[0]))
    return Difference(float(found.difference[0]), None if math.isnan(ends[0]) else ends)


def flagged_by_chance(sizes: Sequence[int], orders: int) -> float:
    """How many questions of these numbers of options a guesser has right in most orders."""
    most = range(orders // 2 + 1, orders + 1)
    return sum(
        math.comb(orders, hits) * (1 / k) ** hits * (1 - 1 / k) ** (orders - hits)
        for k in sizes
        for hits in most
    )
