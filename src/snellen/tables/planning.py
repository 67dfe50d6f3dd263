"""The tables of a plan: what numbers of images show, and what more of something is worth."""

from __future__ import annotations

from collections.abc import Iterator

from snellen.studies.planning import Plan
from snellen.tables.table import POINTS, Column, Format, Table


def plan_tables(found: Plan) -> Iterator[Table]:
    """What numbers of images show, then what doubling one thing gains."""
    pilot = found.pilot
    columns = (
        Column("Images"),
        Column("Interval ±", POINTS),
        Column("Smallest difference shown", POINTS),
        Column("Tokens"),
        Column("USD", Format(digits=2)),
    )
    rows = tuple(
        (
            row.images,
            row.halfwidth,
            row.detectable,
            None if row.tokens is None else round(row.tokens),
            row.usd,
        )
        for row in found.reach
    )
    notes = (
        f"pilot: {pilot.source}; {pilot.metric} {100 * pilot.rate:.1f}%, "
        f"{pilot.probes:.1f} questions an image",
        f"design effect {pilot.design:.2f} (correlation within an image {pilot.icc:.3f}); "
        f"correlation of two runs over images {pilot.correlation:.2f}",
        f"a difference is shown in {100 * found.power:.0f} of 100 tries at "
        f"{100 * found.level:g}% confidence",
    )
    yield Table("What numbers of images show", columns, rows, notes)
    worth = tuple((one.change, one.error, one.calls, one.note or None) for one in found.worth)
    yield Table(
        "What more is worth",
        (
            Column("Change"),
            Column("Standard error, times", Format(digits=2)),
            Column("Calls, times", Format(digits=2)),
            Column("Note"),
        ),
        worth,
    )
