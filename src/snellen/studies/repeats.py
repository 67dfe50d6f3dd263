"""Direct runs beyond their accuracy: asked again, and asked without the pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snellen.protocols.direct import Consistency, consistency
from snellen.runs.folder import Run
from snellen.runs.spec import Value
from snellen.tables.runs import summary_of
from snellen.tables.table import Table, number, with_interval

NO_IMAGE = "no-image"


@dataclass(frozen=True, slots=True)
class Unseen:
    """A run beside its control without pictures.

    `share` is the control's accuracy as a share of the run's: what of the score needs no looking;
    None where the run has no right answer. Both accuracies are strict, fractions of 1.
    """

    run: Run
    control: Run
    accuracy: float
    unseen: float
    share: float | None


def direct_tables(runs: Sequence[Run]) -> Iterator[Table]:
    """The tables of direct runs that asked several times, or stand beside their control."""
    steady = [(run, found) for run in runs if (found := consistency_of(run)) is not None]
    if steady:
        yield consistency_table(steady)
    pairs = find_unseen(runs)
    if pairs:
        yield unseen_table(pairs)


def consistency_of(run: Run) -> Consistency | None:
    """How steady the answers of a run with repeats are; None without repeats."""
    if "repeats" not in run.protocol.tables or run.spec.repeats < 2:
        return None
    return consistency(run.table(), run.spec.repeats)


def consistency_table(steady: Sequence[tuple[Run, Consistency]]) -> Table:
    """How often each question was answered right over the repeats."""
    rows = tuple(
        (
            run.name,
            str(found.repeats),
            str(found.n),
            *(
                f"{100 * share:.1f}"
                for share in (
                    found.mean_accuracy,
                    found.always,
                    found.sometimes,
                    found.never,
                    found.agreement,
                )
            ),
        )
        for run, found in steady
    )
    columns = (
        "Model", "Repeats", "Questions", "Mean accuracy %", "Always right %", "Sometimes %",
        "Never %", "Agreement %",
    )  # fmt: skip
    notes = (
        "questions that are scored in all repeats",
        "agreement: the chance that two repeats of one question are judged alike",
    )
    return Table("Asked again", columns, rows, notes)


def find_unseen(runs: Sequence[Run]) -> list[Unseen]:
    """Each run that stands beside the same model's control without pictures, on the same items."""
    controls = [run for run in runs if run.spec.options.get("control") == NO_IMAGE]
    return [
        _unseen(run, control)
        for run in runs
        for control in controls
        if not run.spec.options.get("control") and _same_question(run, control)
    ]


def _same_question(run: Run, control: Run) -> bool:
    a, b = run.spec, control.spec
    return run.name == control.name and a.items == b.items and a.repeats == b.repeats


def _unseen(run: Run, control: Run) -> Unseen:
    seen, unseen = (_accuracy(one).value or 0.0 for one in (run, control))
    return Unseen(run, control, seen, unseen, unseen / seen if seen else None)


def _accuracy(run: Run) -> Value:
    return summary_of(run).metrics["accuracy"]


def unseen_table(pairs: Sequence[Unseen]) -> Table:
    """How much of each score needs no looking."""
    rows = tuple(
        (
            pair.run.name,
            with_interval("accuracy", _accuracy(pair.run)),
            with_interval("accuracy", _accuracy(pair.control)),
            number("accuracy", pair.accuracy - pair.unseen),
            "-" if pair.share is None else f"{100 * pair.share:.1f}",
        )
        for pair in pairs
    )
    columns = (
        "Model", "With pictures %", "Without %", "Seen, points", "Of the score without looking %",
    )  # fmt: skip
    note = "snellen compare RUN CONTROL --across control gives the interval of the difference"
    return Table("Without the pictures", columns, rows, (note,))
