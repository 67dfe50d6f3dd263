"""The tables that `snellen show` has beyond numbers: controls, repeats, published rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snellen.runs.folder import Run
    from snellen.tables.table import Table


def extra_tables(runs: Sequence[Run], wanted: Mapping[str, bool]) -> Iterator[Table]:
    """The tables of runs of one benchmark and judge beyond their numbers.

    Controls, repeats and generators are shown wherever the runs allow; `wanted` asks for
    `diagnose`, `provider` and `published`.
    """
    from snellen.runs import naming
    from snellen.studies import controls, providers, published

    own = naming.named_apart([run for run in runs if not controls.control_of(run)])
    if runs[0].spec.protocol == "reading":
        yield from _control_tables(runs)
        yield from _question_tables(own, diagnose=wanted["diagnose"])
    if runs[0].spec.protocol == "direct":
        from snellen.studies import repeats

        yield from repeats.direct_tables(runs)
    if wanted["provider"]:
        yield providers.provider_table(own or naming.named_apart(runs))
    if wanted["published"]:
        yield published.published_table(own or naming.named_apart(runs))


def _control_tables(runs: Sequence[Run]) -> Iterator[Table]:
    from snellen.studies import controls

    for case in controls.find_controlled(runs):
        yield controls.controls_table(case)
        flagged = controls.leaks_table(case)
        if flagged.rows:
            yield flagged


def _question_tables(runs: Sequence[Run], *, diagnose: bool) -> Iterator[Table]:
    from snellen.studies import diagnosis, neutrality

    alike = bool(runs) and all(run.spec.items == runs[0].spec.items for run in runs)
    if len(runs) > 1 and alike:
        neutral = neutrality.neutrality_table(runs)
        if neutral is not None:
            yield neutral
    if diagnose and runs:
        yield from diagnosis.diagnose(runs)
