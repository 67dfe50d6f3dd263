"""Tables and JSON on stdout."""

from __future__ import annotations

import os
import shutil
import sys

import click

from snellen.tables.table import Table
from snellen.tables.writers import to_markdown, to_text

PLAIN_WIDTH = 160
# No line is folded more tightly, whatever COLUMNS says.
LEAST_WIDTH = 20


def print_table(table: Table, *, markdown: bool = False) -> None:
    """Print a table to stdout, and an empty line.

    A terminal has its own width; a pipe has that of COLUMNS, or 160 cells and whole notes.
    """
    if markdown:
        click.echo(to_markdown(table))
        return
    fold_notes = sys.stdout.isatty() or _is_width_set()
    click.echo(to_text(table, screen_width(), style=_styled, fold_notes=fold_notes))


def screen_width() -> int:
    """The cells of a line on stdout."""
    known = sys.stdout.isatty() or _is_width_set()
    width = shutil.get_terminal_size().columns if known else PLAIN_WIDTH
    return max(width, LEAST_WIDTH)


def _is_width_set() -> bool:
    return os.environ.get("COLUMNS", "").isdigit()


def _styled(line: str, role: str) -> str:
    """A head in bold, a note dim, except where escapes would be shown or are not wanted."""
    if os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        return line
    return click.style(line, bold=role == "head" or None, dim=role == "note" or None)


def print_json(value: object) -> None:
    """Print a value as JSON to stdout."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
