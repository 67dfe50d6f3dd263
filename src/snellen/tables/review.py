"""The tables of a review: rates of decisions, agreement, hours."""

from __future__ import annotations

import math
from collections.abc import Iterator

from snellen.construction.review_counts import ReviewCounts
from snellen.tables.table import RATE, Cell, Column, Format, Label, Number, Table

TITLES = {"category": "Category", "generator": "Generator", "annotator": "Annotator"}


def review_tables(found: ReviewCounts) -> Iterator[Table]:
    """People first, then decisions by label, then agreement."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (Label(one.name), one.given, one.done, one.given - one.done, one.hours, one.median_s,
         one.done / one.hours if one.hours else None)
        for one in found.people
    )  # fmt: skip
    hours = Format(digits=1)
    columns: tuple[Column, ...] = (
        Column("Person"), Column("Given"), Column("Decided"), Column("Left"),
        Column("Hours", hours), Column("Median, s", hours), Column("An hour", Format(digits=0)),
    )  # fmt: skip
    notes = (
        f"{found.n} tasks, {found.undecided} undecided, {found.for_adjudicator} wait for the "
        f"adjudicator, {found.adjudicated} adjudicated; {found.hours:.1f} person-hours",
    )
    yield Table("People", columns, rows, notes)
    for name, labels in found.by.items():
        columns = (
            Column(TITLES.get(name, name.capitalize())), Column("Tasks"), Column("Accepted", RATE),
            Column("Edited", RATE), Column("Deleted", RATE), Column("Open"),
        )  # fmt: skip
        rows = tuple(
            (Label(one.label or "?"), one.n,
             *(_share(part, one.n - one.open) for part in (one.accept, one.edit, one.delete)),
             one.open)
            for one in labels
        )  # fmt: skip
        note = "shares of what was decided"
        yield Table(f"Decisions by {name}", columns, rows, (note,))
    yield _agreement(found)


def _agreement(found: ReviewCounts) -> Table:
    plain = Format(digits=3)
    columns = (Column("Annotators"), Column("Tasks"), Column("Agree", RATE), Column("Kappa", plain))
    rows: list[tuple[Label | int | Number, ...]] = [
        (Label(" and ".join(pair.names)), pair.agreement.n,
         Number(pair.agreement.raw, pair.agreement.raw_interval),
         Number(_known(pair.agreement.kappa), pair.agreement.kappa_interval))
        for pair in found.pairs
    ]  # fmt: skip
    rows.append(
        (Label("all: Krippendorff's alpha"), found.alpha.n, Number(None),
         Number(_known(found.alpha.value), found.alpha.interval))
    )  # fmt: skip
    note = "on tasks that several annotators decided on ([review] overlap); intervals by picture"
    return Table("Agreement", columns, tuple(rows), (note,))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
