"""The tables of a panel: how often each member voted with it, and where it was split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.tables.table import RATE, Column, Format, Label, Share, Table, plain
from snellen.tables.writers import written


def panel_tables(run: Run) -> list[Table]:
    """How a run's panel voted, by member and by the first dimension; none without a vote."""
    found: Mapping[str, Any] | None = summary_of(run).extra.get("panel")
    if not found or not found["members"]:
        return []
    split = _share(found["disagreement"])
    notes = (
        f"rule: {found['panel']}, at least {found['min_valid']} valid votes",
        f"split on {written(split, RATE)}% of the probes with two votes or more; "
        f"Fleiss' kappa {written(found['kappa'], Format(digits=2))}",
    )
    rows = tuple(
        (Label(name), int(m["valid"]), Share(m["with_panel"], m["decided"]).value)
        for name, m in found["members"].items()
    )
    columns = (*plain("Judge", "Valid votes"), Column("With the panel", RATE))
    fidelity = run.spec.judge.fidelity
    tables = [Table(f"{run.name}: the panel's votes", columns, rows, notes, fidelity=fidelity)]
    for dimension in run.protocol.dimensions[:1]:
        labels = found["by"].get(dimension, {})
        lines = tuple((label, _share(v), int(v["n"])) for label, v in labels.items())
        if lines:
            title = f"{run.name}: disagreement by {dimension}"
            columns = (Column(dimension), Column("Split", RATE), Column("Probes"))
            tables.append(Table(title, columns, lines, fidelity=fidelity))
    return tables


def _share(votes: Mapping[str, Any]) -> float | None:
    return Share(votes["split"], votes["n"]).value
