"""Tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from snellen.tables import Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

PLAIN_WIDTH = 160
# Longer cells than this are words, which may be folded; shorter ones are names and numbers.
LONGEST_WHOLE = 24


def print_table(table: Table) -> None:
    """Prints a table to stdout; in a pipe it is plain text of a fixed width.

    What is too wide comes in several parts, each with the first column.
    """
    from rich.console import Console
    from rich.text import Text

    tty = sys.stdout.isatty()
    console = Console(width=None if tty else PLAIN_WIDTH, soft_wrap=not tty, highlight=False)
    rows = _stacked(table, console.width)
    for number, part in enumerate(_parts([table.columns, *rows], console.width)):
        chosen = [tuple(row[k] for k in part) for row in (table.columns, *rows)]
        console.print(_drawn(chosen, "" if number else table.title))
    for note in table.notes:
        console.print(Text(f"  {note}", style="dim"))


def _drawn(rows: Sequence[Sequence[str]], title: str) -> RichTable:
    """A table whose first row is its head; only its first column and long texts may be folded."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for k, name in enumerate(rows[0]):
        whole = k > 0 and _width(rows, k) <= LONGEST_WHOLE
        drawn.add_column(
            Text(name), justify="right" if k else "left", no_wrap=whole, overflow="fold"
        )
    for row in rows[1:]:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _parts(rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns that stand side by side in each part of a table, the first one in every part."""
    needs = [3 + _width(rows, k) for k in range(len(rows[0]))]
    needs = [needs[0], *(min(need, 2 * LONGEST_WHOLE) for need in needs[1:])]
    first = min(needs[0], max(LONGEST_WHOLE, width - sum(needs[1:])))
    parts, used = [[0]], first
    for k, need in enumerate(needs[1:], 1):
        if used + need > width and len(parts[-1]) > 1:
            parts.append([0])
            used = first
        parts[-1].append(k)
        used += need
    return parts


def _width(rows: Sequence[Sequence[str]], k: int) -> int:
    """The cells on the screen that the longest line of a column takes."""
    from rich.cells import cell_len

    return max(cell_len(line) for row in rows for line in row[k].split("\n"))


def _stacked(table: Table, width: int) -> list[tuple[str, ...]]:
    """The rows, with intervals below their numbers where one line would not hold them all."""
    rows = [table.columns, *table.rows]
    widest = sum(max(len(row[k]) for row in rows) + 3 for k in range(len(table.columns)))
    if widest <= width:
        return list(table.rows)
    return [tuple(cell.replace(" [", "\n[") for cell in row) for row in table.rows]


def print_json(value: Any) -> None:
    """Prints a value as JSON to stdout."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
