"""Tables on the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import click

from snellen.tables.table import Table

PLAIN_WIDTH = 160
# Longer cells than this are words, which may be folded; shorter ones are names and numbers.
LONGEST_WHOLE = 24
# What a column that is folded keeps at least, and what stands between two columns.
NARROWEST = 8
GAP = "   "
INDENT = "  "
# No line is folded more tightly, whatever COLUMNS says.
LEAST_WIDTH = 20
SOFT_HYPHEN = "\xad"
# The vowels and last consonants of Hangul syllables in letters.
_JOINED = re.compile(r"[\u1160-\u11ff\ud7b0-\ud7ff]")
_BREAKS = re.compile(r"\r\n|[\t\n\v\f\r\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def print_table(table: Table) -> None:
    """Prints a table to stdout, and an empty line; in a pipe it is plain text of a fixed width.

    What is too wide comes in several parts, each with the first column.
    """
    tty = sys.stdout.isatty()
    width = max(shutil.get_terminal_size().columns, LEAST_WIDTH) if tty else PLAIN_WIDTH
    table = _legible(table)
    if table.title:
        for line in _folded(table.title, width):
            click.echo(_styled(line, bold=True))
        click.echo()
    rows = [table.columns, *_stacked(table, width)]
    for number, part in enumerate(_parts(rows, width)):
        if number:
            click.echo()
        _print_part([tuple(row[k] for k in part) for row in rows], width)
    if table.notes:
        click.echo()
    for note in table.notes:
        for line in _folded(note, width - len(INDENT)) if tty else [note]:
            click.echo(_styled(INDENT + line, dim=True))
    click.echo()


def _styled(text: str, **style: bool) -> str:
    """A text in bold or dim, except where escapes would be shown or are not wanted."""
    plain = os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR")
    return text if plain else click.style(text, **style)


def _legible(table: Table) -> Table:
    columns, *rows = [tuple(map(legible, row)) for row in (table.columns, *table.rows)]
    notes = tuple(map(legible, table.notes))
    return Table(legible(table.title), columns, tuple(rows), notes, table.marks)


def legible(text: str) -> str:
    """A text of foreign origin as one line that a terminal shows and does not obey.

    White space becomes blanks, and other control characters are spelled out.

    >>> legible("two\\r\\nlines"), legible("\\x1b[2J")
    ('two lines', '\\\\x1b[2J')
    """
    if text.isprintable():
        return text
    text = _BREAKS.sub(" ", text)
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def _print_part(rows: Sequence[Sequence[str]], width: int) -> None:
    """Columns side by side; the first row is their head."""
    widths = _shared_out(rows, width - len(INDENT))
    for number, row in enumerate(rows):
        for line in _lines(row, widths):
            click.echo(_styled(line, bold=True) if not number else line)
        if not number:
            click.echo(INDENT + "─" * (sum(widths) + len(GAP) * (len(widths) - 1)))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row's lines: the first column stands left, the others right."""
    cells = [list(_folded(cell, width)) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        blanks = [" " * (width - cells_of(t)) for t, width in zip(texts, widths, strict=True)]
        first, *others = zip(texts, blanks, strict=True)
        yield (INDENT + GAP.join(["".join(first), *(b + t for t, b in others)])).rstrip()


def _shared_out(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column; the first one and long texts give way where they must."""
    widths = [_width(rows, k) for k in range(len(rows[0]))]
    may_fold = [k for k, needs in enumerate(widths) if k == 0 or needs > LONGEST_WHOLE]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0 and may_fold:
        widest = max(may_fold, key=lambda k: widths[k])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def _folded(text: str, width: int) -> Iterator[str]:
    """A text in lines of at most `width` cells, broken between words where that is possible."""
    for paragraph in text.split("\n"):
        line: str | None = None
        for word in paragraph.split(" "):
            longer = word if line is None else f"{line} {word}"
            if cells_of(longer) <= width:
                line = longer
                continue
            if line is not None:
                yield line
            *whole, line = cut(word, width)
            yield from whole
        yield line or ""


def cut(word: str, width: int) -> list[str]:
    """A word in pieces of at most `width` cells, at least one character each."""
    pieces = [""]
    for char in word:
        if pieces[-1] and cells_of(pieces[-1] + char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def cells_of(text: str) -> int:
    """The cells that a text takes on the screen: East Asian characters two, combining ones none.

    Of a Hangul syllable written as its letters, the first takes both cells.

    >>> cells_of("naïve"), cells_of("两只猫")
    (5, 6)
    """
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"} or _JOINED.match(char):
        return int(char == SOFT_HYPHEN)
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _parts(rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns that stand side by side in each part of a table, the first one in every part."""
    needs = [len(GAP) + _width(rows, k) for k in range(len(rows[0]))]
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
    return max(cells_of(line) for row in rows for line in row[k].split("\n"))


def _stacked(table: Table, width: int) -> list[tuple[str, ...]]:
    """The rows, with intervals below their numbers where one line would not hold them all."""
    rows = [table.columns, *table.rows]
    widest = sum(_width(rows, k) + len(GAP) for k in range(len(table.columns)))
    if widest <= width:
        return list(table.rows)
    return [tuple(cell.replace(" [", "\n[") for cell in row) for row in table.rows]


def print_json(value: Any) -> None:
    """Prints a value as JSON to stdout."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
