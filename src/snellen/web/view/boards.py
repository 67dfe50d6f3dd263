"""The leaderboards of the start page: tables with links, sorted and cut as the address says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.tables.boards import main_table
from snellen.tables.runs import ranked, told, unfinished
from snellen.tables.table import Column, Table, counted, number_in
from snellen.tables.writers import MARKED, ShownCell, ShownTable, shown
from snellen.web.view.library import Board, Entry, Library
from snellen.web.view.lists import Address


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: its cell, the address that sorts by it, and how it sorts now."""

    cell: ShownCell
    href: str
    order: str | None


@dataclass(frozen=True, slots=True)
class Line:
    """A run in a leaderboard."""

    entry: Entry
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True, slots=True)
class ShownBoard:
    """A section of the start page. `columns` are all columns, with whether they are shown."""

    anchor: str
    title: str
    protocol: str
    about: str
    lead: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    columns: tuple[tuple[str, str, bool], ...]
    is_low: bool
    is_live: bool


def shown_board(library: Library, board: Board, address: Address) -> ShownBoard:
    """A leaderboard for the start page."""
    section = board.section
    runs = ranked(section.runs)
    table = main_table(section.runs, intervals=True)
    drawn = shown(table)
    named = [_name(column) for column in table.columns]
    wanted = set(address.all("cols")) & set(named)
    # The first column names the runs, and the last says how much is scored.
    kept = [
        k
        for k, name in enumerate(named)
        if not wanted or name in wanted or k in {0, len(named) - 1}
    ]
    heads = tuple(_head(drawn, table, section.anchor, k, address) for k in kept)
    lines = [
        Line(library.entries[board.key_of(run)], tuple(cells[k] for k in kept))
        for run, cells in zip(runs, drawn.rows, strict=True)
    ]
    summaries = [(run.name, summary_of(run)) for run in section.runs]
    counts = [summary.counts for _, summary in summaries]
    return ShownBoard(
        anchor=section.anchor,
        title=section.title,
        protocol=runs[0].spec.protocol,
        about=runs[0].protocol.about,
        lead=f"{counted(max(c.items for c in counts), 'item')}, "
        f"{counted(max(c.probes for c in counts), 'probe')}; judge {runs[0].spec.judge.name}",
        heads=heads,
        lines=tuple(_sorted(lines, runs, table, section.anchor, address)),
        notes=(*drawn.notes[:1], MARKED),
        warnings=tuple(dict.fromkeys([*told(summaries), *unfinished(summaries)])),
        columns=tuple(
            (name, column.heading, not wanted or name in wanted)
            for name, column in zip(named[1:-1], table.columns[1:-1], strict=True)
        ),
        is_low=drawn.is_low,
        is_live=any(line.entry.is_live for line in lines),
    )


def _name(column: Column) -> str:
    return column.name or column.title


def _head(drawn: ShownTable, table: Table, anchor: str, k: int, address: Address) -> Head:
    column = table.columns[k]
    name = f"{anchor}.{_name(column)}"
    href = address.sorted_by(name, falls=column.better >= 0 and k > 0)
    return Head(drawn.heads[k], href, address.order_of(name))


def _sorted(
    lines: Sequence[Line], runs: Sequence[Run], table: Table, anchor: str, address: Address
) -> list[Line]:
    """The lines as the address sorts them; runs without a number come last."""
    place, _, name = address.first("sort").partition(".")
    named = [_name(column) for column in table.columns]
    if place != anchor or name not in named:
        return list(lines)
    k = named.index(name)
    falls = address.first("down") == "1"
    rows = list(zip(lines, runs, table.rows, strict=True))
    if k == 0:
        rows.sort(key=lambda row: row[1].name.casefold(), reverse=falls)
        return [line for line, _, _ in rows]
    numbers = {id(line): number_in(cells[k]) for line, _, cells in rows}

    def key(row: tuple[Line, object, object]) -> tuple[bool, float]:
        number = numbers[id(row[0])]
        return number is None, 0.0 if number is None else -number if falls else number

    return [row[0] for row in sorted(rows, key=key)]
