"""Markup: nothing foreign becomes markup, and tables show their numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from tests.worlds.report_runs import HOSTILE

from snellen.report.markup import Html, element, json_element, source_hash, table_element, text
from snellen.tables.table import Column, Format, Label, Number, Share, Table, plain


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


def test_foreign_text_is_text_between_tags_and_in_attributes() -> None:
    """Scripts, quotes and zero bytes in foreign text end neither an element nor an attribute."""
    page = element("p", text(HOSTILE), title='" onload="x' + HOSTILE)
    seen = Tags(page)
    assert seen.names == ["p"]
    assert "".join(seen.texts) == HOSTILE
    assert "\x00" not in text("a\x00b")


def test_data_cannot_end_its_element() -> None:
    """JSON keeps every character of foreign text without one that HTML or JavaScript acts on."""
    value = {"a": f"</script>{HOSTILE}<!--\u2028\u2029&amp;"}
    page = json_element("d", value)
    body = page.removeprefix('<script type="application/json" id="d">').removesuffix("</script>")
    assert not re.search("[<>&\u2028\u2029]", body)
    assert json.loads(body) == value


def test_source_hash_is_what_browsers_compute() -> None:
    """The hash of an empty script is the published SHA-256 of nothing, in base64."""
    assert source_hash("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="


def test_cells_split_into_value_interval_and_counts() -> None:
    """The value stands large; interval and scored of all probes stand small, unbroken."""
    cell = Number(-3.5, (-6.0, 1.2), Share(24, 25), Format(digits=1))
    page = table_element(Table("t", plain("Model", "X"), (("m", cell),)))
    assert '<span class="value">\u22123.5</span>' in page
    assert "<small><span>[\u22126.0, 1.2]</span> <span>24/25</span></small>" in page


def test_dates_and_words_stay_as_they_are() -> None:
    """A date is no number with minus signs, a missing value is a dash."""
    table = Table("t", plain("M", "When", "V"), (("m", "2026-11-30T01:02:03Z", None),))
    page = table_element(table)
    assert "2026-11-30T01:02:03Z" in page
    assert '<span class="value">\u2013</span>' in page


def test_marks_of_the_best_three_are_classes() -> None:
    """First, second and third are told by a class that the style sheet draws."""
    rows = (("a", 3), ("b", 2), ("c", 1), ("d", 0))
    table = Table("t", (Column("Model"), Column("X", better=1)), rows, marked=True)
    classes = re.findall(r'<td class="([^"]*)"', table_element(table))
    assert classes == ["number first", "number second", "number third", "number"]


def test_low_fidelity_is_one_badge_a_table() -> None:
    """A table of low-fidelity numbers alone has one badge; a mixed one has a badge at each name."""
    low, high = Label("m", fidelity="low"), Label("n", fidelity="high")
    columns = plain("Model", "X")
    assert table_element(Table("t", columns, ((low, 0.5), (low, 0.4)))).count("badge low") == 1
    mixed = table_element(Table("t", columns, ((low, 0.5), (high, 0.4))))
    assert mixed.count("badge low") == 1
    assert 'row">m <span class="badge low"' in mixed
    whole = table_element(Table("t", columns, (("Overall %", 0.5),), fidelity="low"))
    assert whole.count("badge low") == 1
    assert "badge low" not in table_element(Table("t", columns, ((high, 0.5),)))


def test_tables_scroll_by_keyboard() -> None:
    """The box around a table can be reached and has a name for screen readers."""
    page = table_element(Table("Scores & more", plain("Model"), (("m",),)))
    assert 'tabindex="0" role="region" aria-label="Scores &amp; more"' in page


def test_false_attributes_are_left_out() -> None:
    """An attribute is written bare when True, and not at all when False or None."""
    assert element("details", Html("x"), open=True, hidden=False, id=None) == (
        "<details open>x</details>"
    )
