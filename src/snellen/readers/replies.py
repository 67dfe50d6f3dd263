"""Reads replies that exist already: `--replies FILE`, and caption files of CaptionQA."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from snellen.errors import DataError
from snellen.readers.rows import BOM, NOT_JSON, Row, broken, decode_row, is_json, read_rows


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """Replies by item id, in file order; `notices` say what was mended on the way."""

    replies: dict[str, str]
    notices: tuple[str, ...] = ()


class _ReplyRow(Struct):
    id: str | int
    reply: str | None


_decoder = msgspec.json.Decoder(_ReplyRow)


def load_replies(path: str | Path) -> dict[str, str]:
    """The replies of a file by item id, without the notices of `read_replies`."""
    return read_replies(path).replies


def read_replies(path: str | Path) -> ReplyFile:
    """The replies of a file: JSON `{id: text}`, or JSON-lines of `{id, reply}`.

    Ids are compared as texts. A null reply (a call that failed) is left out, and a last line that
    was cut off is dropped, both with a notice.

    Raises: DataError that names the row of a duplicate id, a missing field or anything else.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder, expected a file" if path.is_dir() else "the file does not exist"
        raise DataError(what, file=path)
    pairs = _first_object(path)
    # A file with one object may be one row, which has no other ids than `id`.
    if pairs is not None and not {"id", "reply"} <= dict(pairs).keys():
        replies: dict[str, str] = {}
        notices: list[str] = []
        seen: set[str] = set()
        for key, text in pairs:
            if key in seen:
                raise DataError(f"the id {key!r} stands twice", file=path)
            seen.add(key)
            if text is None:
                notices.append(f"{path.name}: the reply of {key!r} is null; it was left out")
            elif isinstance(text, str):
                replies[key] = text
            else:
                kind = "an object" if text is _INNER else type(text).__name__
                raise DataError(f"expected text, found {kind}", file=path, field=key)
        found = ReplyFile(replies, tuple(notices))
    else:
        found = _from_lines(path)
    if not found.replies:
        said = f": {found.notices[0]}" if found.notices else ""
        raise DataError(
            f"there is no reply in it{said}",
            file=path,
            hint="expected JSON {id: text}, or JSON-lines of {id, reply}",
        )
    return found


_INNER = object()


def _first_object(path: Path) -> list[tuple[str, object]] | None:
    """The pairs of a file that is one JSON object, doubles included; None when it is not one.

    Objects inside are `_INNER`.
    """
    data = path.read_bytes().removeprefix(BOM).strip()
    if not data:
        raise DataError("the file is empty", file=path, hint="expected JSON {id: text}")
    if not data.startswith(b"{"):
        return None
    levels: list[list[tuple[str, object]]] = []

    def pairs(entries: list[tuple[str, object]]) -> object:
        levels.append(entries)
        return _INNER

    try:
        msgspec.json.decode(data, type=dict[str, object])
        json.loads(data, object_pairs_hook=pairs)
    except NOT_JSON:
        if path.suffix == ".json" and b"\n{" not in data:
            raise broken(Row(path, 1, data)) from None
        return None
    # The outermost object is finished last.
    return levels[-1]


def _from_lines(path: Path) -> ReplyFile:
    replies: dict[str, str] = {}
    rows: dict[str, int] = {}
    notices: list[str] = []
    for row in read_rows(path):
        if not row.ended and not is_json(row):
            notices.append(f"{broken(row).message}; it was dropped")
            break
        record = decode_row(row, _decoder)
        name = str(record.id)
        before = rows.setdefault(name, row.number)
        if before != row.number:
            raise row.error(f"the id {name!r} is already in row {before}", field="id")
        if record.reply is None:
            notices.append(f"{path.name}, row {row.number}: the reply is null; it was left out")
        else:
            replies[name] = record.reply
    return ReplyFile(replies, tuple(notices))
