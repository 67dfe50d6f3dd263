"""HTML from data: the one place where text becomes markup.

`Html` is text that is safe to put into a page. Only `text` makes it from foreign strings, and the
type checker refuses a plain string where `Html` is wanted.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from typing import NewType

import msgspec

from snellen.tables.boards import LOW_SUFFIX
from snellen.tables.table import Table

Html = NewType("Html", str)

VOID = frozenset({"br", "hr", "img", "input", "meta", "wbr"})
_NUMBER = re.compile(r"-?\d[\d.,]*(?:[ /]|$)")
_SPLIT_CELL = re.compile(r"(-?\d[\d.,]*|-)((?: (?:\[[^\]]*\]|\d+/\d+))+)")
_REST = re.compile(r"\[[^\]]*\]|\d+/\d+")
# Characters that could end a script element or a JavaScript line, written so that they cannot.
_IN_JSON = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
PLACES = {1: "first", 2: "second", 3: "third"}


def text(value: object) -> Html:
    """A foreign value as text that shows as it is.

    >>> text("<b> & co")
    '&lt;b&gt; &amp; co'
    """
    return Html(html.escape(str(value).replace("\x00", "\ufffd"), quote=True))


def element(name: str, *children: Html, **attributes: str | bool | None) -> Html:
    """An element; attributes that are False or None are left out, a last `_` of a name goes.

    >>> element("p", text("1 < 2"), class_="note", hidden=False)
    '<p class="note">1 &lt; 2</p>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{''.join(children)}</{name}>")


def join(parts: Iterable[Html], between: str = "") -> Html:
    """Parts one after another; `between` is foreign text.

    >>> join([text("a"), text("b")], " & ")
    'a &amp; b'
    """
    return Html(text(between).join(parts))


def json_element(identifier: str, value: object) -> Html:
    """Data for scripts, in an element that no browser runs and that nothing in it can end."""
    written = msgspec.json.encode(value).decode().translate(_IN_JSON)
    return Html(f'<script type="application/json" id="{text(identifier)}">{written}</script>')


def source_hash(source: str) -> str:
    """What a content security policy calls this script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def data_uri(kind: str, data: bytes) -> str:
    """A file as an address that needs no network."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def scroll_box(inner: Html, label: str) -> Html:
    """A box that scrolls sideways on its own, by keyboard too."""
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=label)


def table_element(table: Table, *, low: frozenset[str] = frozenset(), label: str = "") -> Html:
    """A table with its notes; numbers of a row or column named in `low` carry a badge.

    A cell like `68.7 [66.0, 71.2] 24/25` shows its first number large and the rest small.
    """
    kinds = [_column_kind(table, k) for k in range(len(table.columns))]
    head = element(
        "tr",
        *(
            element("th", *_named(name, name in low), scope="col", class_=kind)
            for name, kind in zip(table.columns, kinds, strict=True)
        ),
    )
    marks = table.marks or ((0,) * len(table.columns),) * len(table.rows)
    body = [
        _row(row, places, table.columns, kinds=kinds, low=low)
        for row, places in zip(table.rows, marks, strict=True)
    ]
    drawn = element("table", element("thead", head), element("tbody", *body))
    notes = element("p", text("; ".join(table.notes)), class_="note") if table.notes else Html("")
    return join([scroll_box(drawn, label or table.title), notes])


def _column_kind(table: Table, column: int) -> str:
    """`number` where any cell of a column is one, else `words`."""
    return "number" if any(_is_number(row[column]) for row in table.rows) else "words"


def _is_number(cell: str) -> bool:
    return _NUMBER.match(cell) is not None


def _row(
    row: tuple[str, ...],
    places: tuple[int, ...],
    columns: tuple[str, ...],
    *,
    kinds: Sequence[str],
    low: frozenset[str],
) -> Html:
    first = row[0]
    cells = [element("th", *_named(first, first in low), scope="row")]
    for k, cell in enumerate(row[1:], 1):
        is_low = (first in low or columns[k] in low) and _is_number(cell)
        is_low = is_low and columns[k] not in COUNTS
        kind = " ".join(filter(None, [kinds[k], PLACES.get(places[k], "")]))
        cells.append(_cell(cell, kind, is_low=is_low))
    return element("tr", *cells)


def _cell(cell: str, kind: str, *, is_low: bool) -> Html:
    found = _SPLIT_CELL.fullmatch(cell)
    head, rest = (found[1], _REST.findall(found[2])) if found else (cell, [])
    if head == "-":
        head = "\u2013"
    elif _is_number(head):
        head = head.replace("-", "\u2212", 1)
    shown = element("span", text(head), class_="value")
    badge = element("abbr", text("low"), class_="low", title=LOW) if is_low else Html("")
    parts = [element("span", text(part.replace("-", "\u2212"))) for part in rest]
    small = element("small", join(parts, " ")) if parts else Html("")
    return element("td", shown, badge, small, class_=kind)


COUNTS = frozenset({"Models", "Items", "Scored", "n"})
LOW = "low fidelity: the embedded judge read these replies; not comparable with published numbers"


def _named(name: str, is_low: bool) -> tuple[Html, ...]:
    """A name that may break after underscores; low fidelity is a badge instead of words."""
    shown = name.removesuffix(LOW_SUFFIX) if is_low else name
    broken = Html(text(shown).replace("_", f"_{element('wbr')}"))
    if not is_low:
        return (broken,)
    return broken, text(" "), element("span", text("low fidelity"), class_="badge low", title=LOW)
