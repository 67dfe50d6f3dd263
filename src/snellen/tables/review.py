"""The tables of a review: rates of decisions, agreement, hours."""

from __future__ import annotations

from collections.abc import Iterator

from snellen.construction.review_counts import ReviewCounts
from snellen.tables.table import RATE, Cell, Column, Format, Label, Number, Share, Table, known

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
             *(Share(part, one.n - one.open).value for part in (one.accept, one.edit, one.delete)),
             one.open)
            for one in labels
        )  # fmt: skip
        note = "shares of what was decided"
        yield Table(f"Decisions by {name}", columns, rows, (note,))
    plain = Format(digits=3)
    columns = (Column("Annotators"), Column("Tasks"), Column("Agree", RATE), Column("Kappa", plain))
    agreed: list[tuple[Cell, ...]] = [
        (Label(" and ".join(pair.names)), pair.agreement.n,
         Number(pair.agreement.raw, pair.agreement.raw_interval),
         Number(known(pair.agreement.kappa), pair.agreement.kappa_interval))
        for pair in found.pairs
    ]  # fmt: skip
    alpha = Number(known(found.alpha.value), found.alpha.interval)
    agreed.append((Label("all: Krippendorff's alpha"), found.alpha.n, Number(None), alpha))
    note = "on tasks that several annotators decided on ([review] overlap); intervals by picture"
    yield Table("Agreement", columns, tuple(agreed), (note,))
