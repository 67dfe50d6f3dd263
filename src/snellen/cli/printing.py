"""Tables on the terminal."""

from __future__ import annotations

import sys
from typing import Any

import click

from snellen.tables import Table

PLAIN_WIDTH = 160


def print_table(table: Table) -> None:
    """Prints a table to stdout; in a pipe it is plain text of a fixed width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    tty = sys.stdout.isatty()
    console = Console(width=None if tty else PLAIN_WIDTH, soft_wrap=not tty, highlight=False)
    drawn = RichTable(
        title=Text(table.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD
    )
    for k, name in enumerate(table.columns):
        drawn.add_column(Text(name), justify="left" if k == 0 else "right", overflow="fold")
    for row in _stacked(table, console.width):
        drawn.add_row(*(Text(cell) for cell in row))
    console.print(drawn)
    for note in table.notes:
        console.print(Text(f"  {note}", style="dim"))


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
