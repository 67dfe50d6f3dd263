"""Five writers of one table: values formatted in one place, foreign text made harmless."""

from __future__ import annotations

import csv
import io

import pytest

from snellen.tables.table import Column, Format, Label, Number, Share, Table, places, plain
from snellen.tables.writers import shown, to_csv, to_latex, to_markdown, to_text

RATE = Format("%", 1, 2)
TABLE = Table(
    "A board",
    (Column("Model"), Column("Overall", RATE, "overall_acc", 1), *plain("Tokens", "Scored")),
    (
        (Label("a"), Number(2 / 3, (0.6, 0.7)), 1234, Share(5, 6)),
        (Label("b", fidelity="low"), Number(0.5, None, bounds=(0.25, 0.75)), None, Share(3, 6)),
    ),
    ("a note",),
)


def rows_of(table: Table) -> list[list[str]]:
    """The table as a program reads its CSV."""
    return list(csv.reader(io.StringIO(to_csv(table))))


def test_csv_has_one_number_a_cell_at_full_precision() -> None:
    """Value, ends of the interval, range and counts have a column each; rates are fractions."""
    head, first, second = rows_of(TABLE)
    assert head == [
        "Model", "overall_acc_value", "overall_acc_ci_low", "overall_acc_ci_high",
        "overall_acc_lowest", "overall_acc_highest", "Tokens", "Scored_value", "Scored_count",
        "Scored_n",
    ]  # fmt: skip
    assert first == [
        "a", repr(2 / 3), "0.6", "0.7", "", "", "1234", repr(5 / 6), "5", "6",
    ]  # fmt: skip
    assert second == [
        "b (low fidelity)", "0.5", "", "", "0.25", "0.75", "", "0.5", "3", "6",
    ]  # fmt: skip


def test_rates_have_two_decimals_where_papers_print_two() -> None:
    """Markdown and LaTeX print the paper's decimals, the terminal and the page one."""
    assert "66.67 [60.00, 70.00]" in to_markdown(TABLE)
    assert "66.67 [60.00, 70.00]" in to_latex(TABLE)
    assert "66.7 [60.0, 70.0]" in to_text(TABLE, 100)
    assert shown(TABLE).rows[0][1].value == "66.7"


def test_an_unfinished_number_stands_with_its_range() -> None:
    """The value over scored probes has the lowest and the highest possible value behind it."""
    assert "50.0 (25.0 to 75.0)" in to_text(TABLE, 100)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"])
def test_a_text_is_no_formula_in_a_spreadsheet(sign: str) -> None:
    """A text that begins like a formula is quoted; a negative number is not."""
    table = Table("t", plain("Model", "x"), ((f"{sign}cmd()", -1.5),))
    [_, [name, number]] = rows_of(table)
    assert name.startswith("'")
    assert number == "-1.5"


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\u202egnp.exe", "\u200fright", "\x00", "\x9b31m", "\ufeffmark"]
)
def test_control_characters_are_visible_signs_in_every_format(hostile: str) -> None:
    """Names, titles and notes from elsewhere neither clear a screen nor turn a line around."""
    table = Table(hostile, plain(hostile, "x"), ((hostile, 1),), (hostile,))
    page = shown(table)
    on_page = [page.title, *page.notes, *(c.value for row in (page.heads, *page.rows) for c in row)]
    for written in (
        to_text(table, 80), to_markdown(table), to_latex(table), to_csv(table), *on_page,
    ):  # fmt: skip
        assert hostile[0] not in written


def test_places_are_told_by_values_and_not_by_their_text() -> None:
    """Two values that look alike when rounded have different places; equal ones share theirs."""
    column = Column("Overall", RATE, better=1)
    values = (0.6001, 0.6002, 0.6002, 0.1)
    table = Table("t", (Column("Model"), column), tuple((str(v), v) for v in values), marked=True)
    assert [row[1] for row in places(table)] == [2, 1, 1, 3]


def test_nothing_is_marked_where_no_direction_is_better() -> None:
    """Columns without a better direction, and tables without marks, have no places."""
    table = Table("t", plain("Model", "x"), (("a", 1), ("b", 2)), marked=True)
    assert places(table) == [[0, 0], [0, 0]]


def test_a_value_that_is_missing_is_a_dash_and_an_empty_cell() -> None:
    """Neither a nan nor a None is printed."""
    table = Table("t", plain("Model", "x"), (("a", float("nan")), ("b", None)))
    assert to_text(table, 80).count(" -\n") == 2
    assert [row[1] for row in rows_of(table)] == ["x", "", ""]
