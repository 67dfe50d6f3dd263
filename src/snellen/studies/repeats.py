"""Direct runs beyond their accuracy: asked again, and asked without the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snellen.protocols.direct import Consistency, consistency
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of

NO_IMAGE = "no-image"


@dataclass(frozen=True, slots=True)
class Unseen:
    """A run beside its control without pictures.

    `share` is the control's accuracy as a share of the run's, the part of the score that needs no
    picture; None where the run has no right answer. Both accuracies are strict, fractions of 1.
    """

    run: Run
    control: Run
    accuracy: float
    unseen: float
    share: float | None


def consistency_of(run: Run) -> Consistency | None:
    """How steady the answers of a run with repeats are; None without repeats."""
    if "repeats" not in run.protocol.tables or run.spec.repeats < 2:
        return None
    return consistency(run.table(), run.spec.repeats)


def find_unseen(runs: Sequence[Run]) -> list[Unseen]:
    """Each run that stands beside the same model's control without pictures, on the same items."""
    controls = [run for run in runs if run.spec.options.get("control") == NO_IMAGE]
    found = []
    for run in runs:
        for control in [] if run.spec.options.get("control") else controls:
            a, b = run.spec, control.spec
            if run.name == control.name and a.items == b.items and a.repeats == b.repeats:
                seen, unseen = (
                    summary_of(one).metrics["accuracy"].value or 0.0 for one in (run, control)
                )
                share = unseen / seen if seen else None
                found.append(Unseen(run, control, seen, unseen, share))
    return found
