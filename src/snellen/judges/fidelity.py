"""The table of how often a judge is right on labelled material."""

from __future__ import annotations

from collections.abc import Sequence

from snellen.judges.labelled import JudgeRow
from snellen.tables.table import Table


def fidelity_table(rows: Sequence[JudgeRow]) -> Table:
    """How good a judge is on the bundled material of known truth, by protocol and half."""
    written = tuple(
        (
            f"{row.protocol}, {'frozen paraphrases' if row.half == 'frozen' else 'tuning half'}",
            str(row.n),
            _percent(row.accuracy),
            _percent(row.right_when_stated),
            _percent(row.uncertain_when_absent),
            _percent(row.fooled_when_changed),
        )
        for row in sorted(rows, key=lambda row: (row.half != "frozen", row.protocol))
    )
    columns = (
        "Material", "n", "Right %", "Right when stated %", "E when absent %", "Fooled %",
    )  # fmt: skip
    note = "the frozen half was reworded and set aside before any tuning: quote that one"
    return Table("The embedded judge against a perfect judge's labels", columns, written, (note,))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
