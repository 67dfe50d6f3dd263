"""HTML from data: the one place where text becomes markup.

`Html` is text that is safe to put into a page. Only `text` makes it from foreign strings, and the
type checker refuses a plain string where `Html` is wanted.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable
from typing import NewType

import msgspec

from snellen.tables.table import Table
from snellen.tables.writers import to_html

Html = NewType("Html", str)

VOID = frozenset({"br", "hr", "img", "input", "meta", "wbr"})
# Characters that could end a script element or a JavaScript line, written so that they cannot.
_IN_JSON = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


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


def table_element(table: Table, *, label: str = "") -> Html:
    """A table with its notes."""
    return Html(to_html(table, label=label))
