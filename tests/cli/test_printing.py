"""Tables on the terminal: whole numbers, at every width."""

from __future__ import annotations

import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from select import select

import pytest

from snellen.cli.printing import print_table
from snellen.tables.screen import cells_of
from snellen.tables.table import Column, Format, Number, Share, Table, plain
from snellen.tables.writers import texts

NAMES = (
    Column("Model"),
    Column("Overall", Format("%", 1)),
    Column("Effective", Format("%", 1)),
    Column("Mean dens.", Format("‰", 2)),
    Column("Tokens/image", Format("tokens", 0)),
    Column("Scored"),
)
ROW = (
    "thorough",
    Number(0.744, (0.707, 0.78)),
    Number(0.86, (0.792, 0.908)),
    Number(3.09, (2.84, 3.27)),
    241.0,
    Share(199, 199),
)
TEXT = "a caption of many words that no terminal of sixty columns can hold in a single line"


def told(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of so many columns gets."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    monkeypatch.setenv("COLUMNS", str(width))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        print_table(table)
        stream.flush()
        text = "".join(pieces(ours))
    os.close(ours)
    return text.replace("\r", "")


def seen(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", told(table, width, monkeypatch))


def pieces(terminal: int) -> Iterator[str]:
    """What waits to be read at the end of a terminal, as long as there is something."""
    while select([terminal], [], [], 0.0)[0]:
        yield os.read(terminal, 65536).decode("utf-8")


@pytest.mark.parametrize("width", [50, 60, 80, 110, 160])
def test_no_number_and_no_name_of_a_column_is_cut(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit side by side comes in parts, each with the name of the row."""
    table = Table("A board", NAMES, (ROW,), ("a note",))
    text = seen(table, width, monkeypatch)
    parts = (part for cell in texts(table)[0] for part in cell.split(" ", 1))
    for whole in (*table.headings, *parts):
        assert whole in text
    assert all(len(line) <= width for line in text.splitlines())
    assert text.count("A board") == 1
    assert text.count("thorough") == text.count("Model")


def test_long_texts_are_folded_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of sentences takes several lines."""
    text = seen(Table("", plain("Item", "Said", "n"), (("a", TEXT, 3),)), 60, monkeypatch)
    words = re.sub(r"[\s─]+", " ", text)
    assert all(word in words for word in TEXT.split())
    assert max(map(len, text.splitlines())) <= 60


def test_wide_characters_stand_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An East Asian character takes two cells, a combining one none."""
    rows = (("猫と犬", 0.01), ("cafe\u0301", 0.22))
    columns = (Column("Model"), Column("Score", Format("%", 1)))
    lines = seen(Table("", columns, rows), 80, monkeypatch).splitlines()
    assert lines[-3:-1] == ["  猫と犬       1.0", "  cafe\u0301        22.0"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\tb", "a b"),
        ("two\r\nlines", "two lines"),
        ("over\rwritten", "over written"),
        ("\x1b[2Jcleared", r"\x1b[2Jcleared"),
        ("\x9b31mred", r"\x9b31mred"),
        ("bell\x07", r"bell\x07"),
        ("\u202eturned", r"\u202eturned"),
        ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab"),
    ],
)
def test_a_name_does_nothing_to_the_terminal(
    name: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control characters of names, titles and notes are shown, and their columns stand in line."""
    table = Table(name, plain(name, "n"), ((name, 1), ("another", 2)), (name,))
    title, _, head, _, row, other, _, note, *_ = seen(table, 80, monkeypatch).split("\n")
    assert (title, note) == (shown, f"  {shown}")
    assert head.split("   ")[0].strip() == row.split("   ")[0].strip() == shown
    assert cells_of(row) == cells_of(other)


def test_letters_of_a_hangul_syllable_take_two_cells_together() -> None:
    """As file names of some systems are written; a soft hyphen takes one."""
    assert cells_of("\u1112\u1161\u11ab") == cells_of("\ud55c") == 2
    assert cells_of("soft\xadhyphen") == 11


def test_full_width_letters_take_two_cells() -> None:
    """As Japanese keyboards write them."""
    assert cells_of("\uff21\uff11") == 4


def test_a_column_that_is_folded_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal, eight characters of it stand side by side."""
    text = seen(Table("", plain("Item", "Said"), (("a" * 30, "b" * 30),)), 20, monkeypatch)
    assert "a" * 8 in text
    assert "b" * 8 in text


def test_a_width_that_no_terminal_has_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS=1 does not print a letter a line."""
    text = seen(Table("A board of some words", NAMES, (ROW,), ("a note",)), 1, monkeypatch)
    assert "A board of some" in text
    assert "  a note" in text.splitlines()


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("NO_COLOR", "1")])
def test_a_terminal_that_wants_no_escapes_gets_none(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bold heads elsewhere, plain ones in an editor's shell."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    table = Table("A board", NAMES, (ROW,), ("a note",))
    assert "\x1b[1m" in told(table, 80, monkeypatch)
    monkeypatch.setenv(name, value)
    assert "\x1b" not in told(table, 80, monkeypatch)


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """No colours, no blanks at the ends of lines, and one line a note, however long."""
    print_table(Table("A board", NAMES, (ROW,), (f"{TEXT}, {TEXT}, {TEXT}",)))
    lines = capsys.readouterr().out.splitlines()
    assert "\x1b" not in "".join(lines)
    assert all(line == line.rstrip() for line in lines)
    assert f"  {TEXT}, {TEXT}, {TEXT}" in lines
