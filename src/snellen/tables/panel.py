"""The tables of a panel: who voted with it, and where it was split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snellen.runs.folder import Run
from snellen.tables.runs import summary_of
from snellen.tables.table import Table


def panel_tables(run: Run) -> list[Table]:
    """How a run's panel voted, by member and by the first dimension; none without a vote."""
    found: Mapping[str, Any] | None = summary_of(run).extra.get("panel")
    if not found or not found["members"]:
        return []
    kappa = found["kappa"]
    notes = (
        f"rule: {found['panel']}, at least {found['min_valid']} valid votes",
        f"split on {_share(found['disagreement'])} of the probes with two votes or more; "
        f"Fleiss' kappa {'-' if kappa is None else f'{kappa:.2f}'}",
    )
    rows = tuple(
        (name, str(m["valid"]), _per_cent(m["with_panel"], m["decided"]))
        for name, m in found["members"].items()
    )
    columns = ("Judge", "Valid votes", "With the panel %")
    tables = [Table(f"{run.name}: the panel's votes", columns, rows, notes)]
    for dimension in run.protocol.dimensions[:1]:
        labels = found["by"].get(dimension, {})
        split = tuple((label, _share(v), str(v["n"])) for label, v in labels.items())
        if split:
            title = f"{run.name}: disagreement by {dimension}"
            tables.append(Table(title, (dimension, "Split", "Probes"), split))
    return tables


def _share(votes: Mapping[str, Any]) -> str:
    return _per_cent(votes["split"], votes["n"]) + "%" if votes["n"] else "-"


def _per_cent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"
