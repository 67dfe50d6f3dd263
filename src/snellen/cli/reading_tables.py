"""The tables that `snellen show` has beyond numbers: controls, repeats, published rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    for name in runs[0].protocol.tables:
        if name in TABLES and wanted.get(name, True):
            yield from TABLES[name](runs, own)
    if wanted["provider"]:
        yield providers.provider_table(own or naming.named_apart(runs))
    if wanted["published"]:
        yield published.published_table(own or naming.named_apart(runs))


def _controls(runs: Sequence[Run], own: Sequence[Run]) -> Iterator[Table]:
    from snellen.studies import controls

    del own
    for case in controls.find_controlled(runs):
        yield controls.controls_table(case)
        flagged = controls.leaks_table(case)
        if flagged.rows:
            yield flagged


def _neutrality(runs: Sequence[Run], own: Sequence[Run]) -> Iterator[Table]:
    from snellen.studies import neutrality

    del runs
    if len(own) > 1 and all(run.spec.items == own[0].spec.items for run in own):
        neutral = neutrality.neutrality_table(own)
        if neutral is not None:
            yield neutral


def _diagnosis(runs: Sequence[Run], own: Sequence[Run]) -> Iterator[Table]:
    from snellen.studies import diagnosis

    del runs
    if own:
        yield from diagnosis.diagnose(own)


def _repeats(runs: Sequence[Run], own: Sequence[Run]) -> Iterator[Table]:
    from snellen.studies import repeats

    del own
    yield from repeats.direct_tables(runs)


# Tables of runs of one benchmark and judge, and of those without controls, by the names that
# protocols have for them.
TABLES: Mapping[str, Callable[[Sequence[Run], Sequence[Run]], Iterator[Table]]] = {
    "controls": _controls,
    "neutrality": _neutrality,
    "diagnose": _diagnosis,
    "repeats": _repeats,
}
