"""Templates: nothing foreign becomes markup, and tables show their numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from tests.worlds.report_runs import HOSTILE

import snellen.report
from snellen.report.environment import environment, source_hash
from snellen.tables.table import Column, Format, Label, Number, Share, Table, plain
from snellen.tables.writers import shown

FOLDER = Path(snellen.report.__file__).parent


class Tags(HTMLParser):
    """The elements and the texts that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps the name of an element."""
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        """Keeps a text."""
        self.texts.append(data)


def html_of(source: str, **values: object) -> str:
    """A template from a string, filled with values."""
    return environment().from_string(source).render(**values)


def table_html(table: Table) -> str:
    """A table as the page draws it."""
    return html_of('{% from "table.html" import table %}{{ table(drawn) }}', drawn=shown(table))


def test_foreign_text_is_text_between_tags_and_in_attributes() -> None:
    """Scripts, quotes and zero bytes in foreign text end neither an element nor an attribute."""
    page = html_of(
        '<p title="{{ title }}">{{ words }}</p>', title='" onload="x' + HOSTILE, words=HOSTILE
    )
    seen = Tags(page)
    assert seen.names == ["p"]
    assert "".join(seen.texts) == HOSTILE
    assert "\x00" not in html_of("{{ words }}", words="a\x00b")


def test_hostile_text_in_every_field_of_a_table_is_text() -> None:
    """Titles, columns, names, remarks and notes of a table add no element and lose no character."""
    cell = Number(0.5, (0.1, 0.9), Share(1, 2), remark=HOSTILE)
    columns = (Column(HOSTILE), Column(HOSTILE, fidelity="low"), Column(HOSTILE))
    tame = Table("t", (Column("a"), Column("b", fidelity="low"), Column("c")), (("x", 0.5, "y"),))
    wild = Table(HOSTILE, columns, ((Label(HOSTILE, fidelity="low"), cell, HOSTILE),), (HOSTILE,))
    page = table_html(wild)
    assert set(Tags(page).names) <= {*Tags(table_html(tame)).names, "small"}
    assert "".join(Tags(page).texts).count(HOSTILE) == 7


def test_one_place_marks_text_as_safe() -> None:
    """No template turns the escaping off, and Python does so once, for the assets."""
    sources = {p: p.read_text(encoding="utf-8") for p in FOLDER.rglob("*") if p.is_file()}
    python = "".join(text for p, text in sources.items() if p.suffix == ".py")
    pages = "".join(text for p, text in sources.items() if p.suffix == ".html")
    assert python.count("Markup(") == 1
    assert not re.search(r"\|\s*safe|autoescape", pages)
    assert not re.search(r"<(div|p|td|tr|th|table|span|section|h\d|a)\b", python)


def test_data_cannot_end_its_element() -> None:
    """JSON keeps every character of foreign text without one that HTML acts on."""
    value = {"a": f"</script>{HOSTILE}<!--\u2028\u2029&amp;", "b": "图"}
    body = html_of("{{ value|tojson }}", value=value)
    assert not re.search("[<>&']", body)
    assert json.loads(body) == value


def test_source_hash_is_what_browsers_compute() -> None:
    """The hash of an empty script is the published SHA-256 of nothing, in base64."""
    assert source_hash("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="


def test_cells_split_into_value_interval_and_counts() -> None:
    """The value stands large; interval and scored of all probes stand small, unbroken."""
    cell = Number(-3.5, (-6.0, 1.2), Share(24, 25), Format(digits=1))
    page = table_html(Table("t", plain("Model", "X"), (("m", cell),)))
    assert '<span class="value">\u22123.5</span>' in page
    assert "<small><span>[\u22126.0, 1.2]</span> <span>24/25</span></small>" in page


def test_dates_and_words_stay_as_they_are() -> None:
    """A date is no number with minus signs, a missing value is a dash."""
    table = Table("t", plain("M", "When", "V"), (("m", "2026-11-30T01:02:03Z", None),))
    page = table_html(table)
    assert "2026-11-30T01:02:03Z" in page
    assert '<span class="value">\u2013</span>' in page


def test_marks_of_the_best_three_are_classes() -> None:
    """First, second and third are told by a class that the style sheet draws."""
    rows = (("a", 3), ("b", 2), ("c", 1), ("d", 0))
    table = Table("t", (Column("Model"), Column("X", better=1)), rows, marked=True)
    classes = re.findall(r'<td class="([^"]*)"', table_html(table))
    assert classes == ["number first", "number second", "number third"]


def test_low_fidelity_is_one_badge_a_table() -> None:
    """A table of low-fidelity numbers alone has one badge; a mixed one has a badge at each name."""
    low, high = Label("m", fidelity="low"), Label("n", fidelity="high")
    columns = plain("Model", "X")
    assert table_html(Table("t", columns, ((low, 0.5), (low, 0.4)))).count("badge low") == 1
    mixed = table_html(Table("t", columns, ((low, 0.5), (high, 0.4))))
    assert mixed.count("badge low") == 1
    assert 'row">m <span class="badge low"' in mixed
    whole = table_html(Table("t", columns, (("Overall %", 0.5),), fidelity="low"))
    assert whole.count("badge low") == 1
    assert "badge low" not in table_html(Table("t", columns, ((high, 0.5),)))


def test_names_may_break_after_underscores() -> None:
    """A long name of a row or column can be broken into lines where it has underscores."""
    page = table_html(Table("t", plain("a_b", "X"), (("c_d", 1),)))
    assert "a_<wbr>b" in page
    assert "c_<wbr>d" in page


def test_tables_scroll_by_keyboard() -> None:
    """The box around a table can be reached and has a name for screen readers."""
    page = table_html(Table("Scores & more", plain("Model"), (("m",),)))
    assert 'tabindex="0" role="group" aria-label="Scores &amp; more"' in page
