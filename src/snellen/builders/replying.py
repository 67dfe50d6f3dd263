"""The JSON in a builder's reply, with fences and thoughts around it taken off."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from snellen.errors import DataError
from snellen.replies import split_thinking

_FENCED = re.compile(r"\A```[A-Za-z0-9]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


def json_in(text: str) -> Any:
    """The one JSON value that a reply consists of.

    >>> json_in('<think>hm</think>```json\\n{"a": 1}\\n```')
    {'a': 1}

    Raises:
        DataError: the reply is empty, prose, cut off, or holds more than one value.
    """
    body = split_thinking(text)[1].strip()
    fenced = _FENCED.match(body)
    body = fenced[1].strip() if fenced else body
    if not body:
        raise DataError("it is empty")
    if body[0] not in "{[":
        raise DataError(f"it is not JSON: it begins with {body[:40]!r}")
    try:
        return msgspec.json.decode(body.encode(errors="surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"it is not one JSON value: {error}") from error
