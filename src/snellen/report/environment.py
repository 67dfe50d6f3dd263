"""The templates of pages: every value is escaped."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from snellen.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(*packages: str) -> Environment:
    """The templates of pages. All values are escaped but the assets of this package.

    Templates are looked for in `packages` in turn; without any, in those of the report.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("jinja2, which writes the pages,", "report") from error
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package) for package in packages or ("snellen.report",)]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # No browser shows a zero byte, and HTML forbids them.
        finalize=lambda value: value.replace("\0", "\ufffd") if isinstance(value, str) else value,
    )
    found.filters["source_hash"] = source_hash
    # `tojson` writes <, >, & and quotes so that no data can end its element.
    found.policies["json.dumps_function"] = lambda value, **_: msgspec.json.encode(value).decode()
    found.policies["json.dumps_kwargs"] = {}
    return found


def source_hash(source: str) -> str:
    """The name of a script or style in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
