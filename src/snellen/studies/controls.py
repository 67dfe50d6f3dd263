"""What the controls of a caption benchmark say: what can be had without the picture's caption.

`blind` forces an answer without any caption: what the question alone gives away. `swapped` reads
another picture's caption and may abstain: what is right there above blind leaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snellen.errors import ComparisonError
from snellen.metrics import Array, Tally
from snellen.runs.folder import Run
from snellen.stats import bootstrap as stats
from snellen.tables.table import Table, number

Question = tuple[str, str]
METRICS = ("overall_acc", "effective_acc", "coverage")
MOST_LISTED = 30
FEW_ORDERS = 4


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
        near = [run for run in runs if _is_near(run, real)]
        blind = tuple(run for run in near if control_of(run) == "blind")
        swapped = tuple(
            run for run in near if control_of(run) == "swapped" and run.name == real.name
        )
        if blind or swapped:
            found.append(Controlled(real, blind, swapped))
    return found


def _is_near(run: Run, real: Run) -> bool:
    same = run.spec.benchmark == real.spec.benchmark and run.spec.items == real.spec.items
    return same and run.spec.judge.name == real.spec.judge.name


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


def controls_table(case: Controlled) -> Table:
    """The real score beside its controls, and what is left of it on questions without a leak.

    Raises:
        ComparisonError: the runs are not about the same pictures.
    """
    found = leaks(case)
    rows = [_row("its own caption", [case.real], case.real)]
    if case.blind:
        rows.append(_row("blind: none, no E", case.blind, case.real))
    if case.swapped:
        rows.append(_row("swapped: another's", case.swapped, case.real))
    clean = {q for q, leak in found.items() if not (leak.is_guessable or leak.is_leaking)}
    rows.append(_clean_row(case.real, clean))
    columns = ("Caption", "Overall %", "Effective %", "Coverage %", "Own minus this", "Questions")
    title = f"Controls of {case.real.name} on {case.real.spec.benchmark}"
    return Table(title, columns, tuple(rows), _notes(case, found))


def _row(label: str, runs: Sequence[Run], real: Run) -> tuple[str, ...]:
    pooled = _pooled(runs)
    values = pooled.statistic(METRICS)(pooled.counts.sum(axis=0))
    shown = tuple(_shown(name, value) for name, value in zip(METRICS, values, strict=True))
    mine = [real] == list(runs)
    n = str(int(pooled.sums()["M"]))
    return (label, *shown, "-" if mine else _difference(pooled, _pooled([real])), n)


def _shown(name: str, value: float) -> str:
    return number(name, None if np.isnan(value) else float(value))


def _pooled(runs: Sequence[Run]) -> Tally:
    """The mean tally of runs on the same pictures."""
    tallies = [run.tally() for run in runs]
    first = tallies[0]
    if any(tally.clusters != first.clusters for tally in tallies):
        raise ComparisonError(
            "the control runs are about different pictures",
            hint="use the same --limit and --subset for all of them",
        )
    counts: Array = np.mean([tally.counts for tally in tallies], axis=0)
    return Tally(first.clusters, first.columns, counts, first.metrics)


def _difference(low: Tally, high: Tally) -> str:
    """The overall accuracy of `high` less that of `low`, in points, with its interval."""
    if low.clusters != high.clusters:
        raise ComparisonError(
            "a control run is about other pictures than the run that it belongs to",
            hint="use the same --limit and --subset for both",
        )
    found = stats.compare_paired(low.counts, high.counts, high.statistic(("overall_acc",)))
    text = f"{100 * found.difference[0]:+.1f}"
    if np.isnan(found.low[0]):
        return text
    return f"{text} [{100 * found.low[0]:.1f}, {100 * found.high[0]:.1f}]"


def _clean_row(real: Run, clean: set[Question]) -> tuple[str, ...]:
    table = real.table()
    keys = [(i.id, p.id) for i in real.items for _ in range(real.spec.repeats) for p in i.probes]
    part = table.where(np.array([key in clean for key in keys], bool))
    tally = real.protocol.tally(part, real.replies)
    values = tally.statistic(METRICS)(tally.counts.sum(axis=0))
    shown = tuple(_shown(name, value) for name, value in zip(METRICS, values, strict=True))
    return ("its own, no-leak questions", *shown, "-", str(len(clean)))


def _notes(case: Controlled, found: Mapping[Question, Leak]) -> tuple[str, ...]:
    n = len(found)
    sizes = [len(p.options) for item in case.real.items for p in item.probes]
    notes = [
        f"a blind guess is right {100 * float(np.mean([1 / k for k in sizes])):.1f}% of the time"
    ]
    if case.blind:
        orders, hits = len(case.blind), sum(leak.is_guessable for leak in found.values())
        notes.append(
            f"guessable: {hits} of {n} questions, right blind in most of {orders} orders "
            f"(guessing alone would flag {_flagged_by_chance(sizes, orders):.0f})"
        )
        if orders < FEW_ORDERS:
            notes.append(
                "one blind order flags lucky guesses: repeat it with several --option-order"
            )
    if case.swapped:
        hits = sum(leak.is_leaking for leak in found.values())
        notes.append(f"leaking: {hits} of {n} questions are answered right from other captions")
    if case.blind and case.swapped:
        above = _difference(_pooled(case.blind), _pooled(case.swapped))
        notes.append(f"swapped above blind: {above} points of overall accuracy; above 0 leaks")
    return tuple(notes)


def _flagged_by_chance(sizes: Sequence[int], orders: int) -> float:
    """How many questions of these numbers of options a guesser has right in most orders."""
    most = range(orders // 2 + 1, orders + 1)
    return sum(
        math.comb(orders, hits) * (1 / k) ** hits * (1 - 1 / k) ** (orders - hits)
        for k in sizes
        for hits in most
    )


def leaks_table(case: Controlled) -> Table:
    """The flagged questions, the most often right without their caption first."""
    questions = {(i.id, p.id): p for i in case.real.items for p in i.probes}
    flagged = [leak for leak in leaks(case).values() if leak.is_guessable or leak.is_leaking]
    flagged.sort(key=lambda leak: -((leak.blind or 0.0) + (leak.swapped or 0.0)))
    rows = tuple(
        (
            leak.probe,
            questions[leak.item, leak.probe].question,
            _share(leak.blind),
            _share(leak.swapped),
            " ".join(_flags(leak)),
        )
        for leak in flagged[:MOST_LISTED]
    )
    rest = len(flagged) - len(rows)
    notes = (f"and {rest} more",) if rest > 0 else ()
    columns = ("Question id", "Question", "Right blind", "Right swapped", "Flags")
    return Table(f"Flagged questions of {case.real.spec.benchmark}", columns, rows, notes)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f}%"


def _flags(leak: Leak) -> list[str]:
    flags = {"guessable": leak.is_guessable, "leaking": leak.is_leaking}
    return [name for name, is_so in flags.items() if is_so]
