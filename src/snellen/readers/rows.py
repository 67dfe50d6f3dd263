"""Rows of JSON-lines, JSON and Parquet files, one at a time, each knowing its file and number.

A row stays JSON text until a schema decodes it, so that pictures inside it are found by offset
and never held. Errors name file and row, say what was found and what was expected.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar, cast, get_type_hints

import msgspec
from msgspec import Struct

from snellen.errors import DataError
from snellen.files import is_inside
from snellen.pictures import headers, parquet

S = TypeVar("S", bound=Struct)

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
CARD = "benchmark.json"
SUFFIXES = (".jsonl", ".parquet", ".json", ".ndjson")
_BETWEEN = frozenset(b" \t\r\n,")
# Longer strings than this are pictures written as text, not paths (the usual limit of a path).
LONGEST_PATH = 4096
# How PNG, JPEG, GIF, WebP and TIFF begin in base64.
_BASE64_HEADS = (b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR", b"SUkqA", b"TU0AK")
_SHARD = re.compile(r"-(\d+)-of-(\d+)\.parquet$")
# What decoders raise on a text that is no JSON; too deep a nesting is an error of its own.
NOT_UTF8 = "is not UTF-8"
NOT_JSON = (msgspec.DecodeError, RecursionError)

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FOUND = {**_WORDS, "null": "nothing (null)", "bool": "a boolean"}
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`(?: - at `\$([^`]*)`)?")
_MISSING = re.compile(r"missing required field `([^`]+)`(?: - at `\$([^`]*)`)?")


@dataclass(frozen=True, slots=True)
class Row:
    """One row as JSON text. `number` counts from 1: lines of a text file, else rows.

    `start` is the offset of `data` in the file, None where the text was made from a Parquet row;
    its pictures are `cells`, and numbers of these stand in their places.
    `ended` is False for a last line without its line end.
    """

    file: Path
    number: int
    data: bytes
    start: int | None = 0
    ended: bool = True
    cells: tuple[parquet.Cell, ...] = ()

    def error(self, message: str, *, field: str = "", hint: str = "") -> DataError:
        """The error that says something about this row."""
        return DataError(message, file=self.file.name, row=self.number, field=field, hint=hint)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, by its suffix.

    Raises: DataError for a missing, empty or unknown file.
    """
    if not path.is_file():
        raise DataError("the file does not exist", file=path)
    if path.stat().st_size == 0:
        raise DataError("the file is empty", file=path, hint="one JSON object a line is expected")
    readers = {".jsonl": _read_lines, ".ndjson": _read_lines, ".json": _read_json}
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix not in readers:
        raise DataError(
            f"files of type {path.suffix or 'nothing'} are not read",
            file=path,
            hint="expected .jsonl, .json or .parquet",
        )
    with path.open("rb") as stream:
        if stream.read(2) in UTF_16:
            raise DataError("is UTF-16, expected UTF-8", file=path, hint="save it as UTF-8")
    rows = readers[path.suffix](path)
    first = next(rows, None)
    if first is None:
        raise DataError("the file has no rows", file=path)
    return chain((first,), rows)


def _read_lines(path: Path) -> Iterator[Row]:
    with path.open("rb", buffering=1 << 20) as stream:
        yield from _lines_from(path, stream)


def _lines_from(path: Path, stream: BinaryIO) -> Iterator[Row]:
    start = 0
    for number, line in enumerate(stream, 1):
        skip = len(BOM) if number == 1 and line.startswith(BOM) else 0
        data = line[skip:]
        # The line end stays: JSON does not mind it, and cutting it off would copy the row.
        if data and not data.isspace():
            yield Row(path, number, data, start + skip, line.endswith(b"\n"))
        start += len(line)


def _read_json(path: Path) -> Iterator[Row]:
    """The elements of a JSON array, or of JSON-lines in a file named .json."""
    with path.open("rb") as stream:
        # Not closed by hand: the elements are views of the map and keep it open.
        text = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        if not text[:4096].removeprefix(BOM).lstrip().startswith(b"["):
            # The lines of one object over several lines are no JSON alone.
            if text[: text.find(b"\n") + 1].strip().endswith(b"{"):
                with suppress(*NOT_JSON):
                    keys = msgspec.json.decode(
                        text[:].removeprefix(BOM), type=dict[str, msgspec.Raw]
                    )
                    raise DataError(
                        f"is one JSON object ({', '.join(list(keys)[:5])}), expected an array of "
                        "rows or one object a line",
                        file=path,
                        hint="if the rows stand below a key of it, save that list alone",
                    )
            yield from _lines_from(path, stream)
            return
        begin = text.find(b"[")
        array = memoryview(text)[begin:]
        try:
            found = msgspec.json.decode(array, type=list[msgspec.Raw])
        except NOT_JSON as error:
            raise DataError(_malformed(bytes(array)), file=path) from error
        # An element begins where the one before ends, behind white space and a comma.
        at = 1
        for number, raw in enumerate(found, 1):
            while array[at] in _BETWEEN:
                at += 1
            yield Row(path, number, bytes(raw), begin + at)
            at += memoryview(raw).nbytes


def _read_parquet(path: Path) -> Iterator[Row]:
    try:
        if not parquet.n_rows(path) and not _SHARD.search(path.name):
            raise DataError("the file has no rows", file=path)
        for number, value in enumerate(parquet.rows(path), 1):
            cells: list[parquet.Cell] = []
            row = {
                key: _numbered(one, cells) if key in parquet.PICTURE_FIELDS else _readable(one)
                for key, one in value.items()
            }
            yield Row(path, number, msgspec.json.encode(row), None, cells=tuple(cells))
    except DataError as error:
        if error.hint or "no Parquet file" not in error.message:
            raise
        with path.open("rb") as stream:
            error.hint = headers.describe_foreign(stream.read(512))[1]
        raise


def _numbered(value: object, cells: list[parquet.Cell]) -> object:
    """The value of a picture field with a number, from 0 on, in place of each picture.

    A path stays, and so does a number of the file's own: it names no picture.
    """
    if isinstance(value, list):
        return [_numbered(one, cells) for one in value]
    if isinstance(value, dict):
        found = parquet.cells_of(value)
        if not value.get("bytes") or not found:
            return {"path": _readable(value.get("path"))}
    else:
        found = parquet.cells_of(value)
        if not found or (found[0].is_text and not embeds_picture(found[0].data)):
            return _readable(value)
    cells += found[:1]
    return len(cells) - 1


def embeds_picture(text: bytes | msgspec.Raw) -> bool:
    """Whether a JSON string is a picture written as text; else it is the path of one.

    >>> embeds_picture(b'"data:image/png;base64,iVBORw0KGgo="'), embeds_picture(b'"a.png"')
    (True, False)
    """
    view = memoryview(text)
    head = bytes(view[1:80]).replace(b"\\/", b"/").lstrip()
    if head[:5].lower() == b"data:" or view.nbytes > LONGEST_PATH:
        return True
    return view.nbytes > 64 and b"." not in head and head.startswith(_BASE64_HEADS)


def _readable(value: object) -> object:
    """A value without bytes, which JSON does not know: they are text that was not marked as such.

    Other bytes become an object, which no field of ours takes.
    """
    if isinstance(value, dict):
        return {key: _readable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(one) for one in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"n_bytes": len(value)}


def decode_row(row: Row, decoder: msgspec.json.Decoder[S]) -> S:
    """The row as the decoder's type.

    Raises: DataError that names the row, the field, what was found and what was expected.
    """
    try:
        return decoder.decode(row.data)
    except msgspec.ValidationError as error:
        if not is_json(row):
            raise broken(row) from error
        field, message = in_words(str(error))
        schema = cast("type[Struct]", decoder.type)
        hint = field_hint(row, field, schema=schema, is_missing="missing" in message)
        raise row.error(message, field=field, hint=hint or array_hint(row)) from error
    except NOT_JSON as error:
        raise broken(row) from error


def is_json(row: Row) -> bool:
    """Whether a row is JSON at all, which is only found out at its end."""
    try:
        msgspec.json.decode(row.data)
    except NOT_JSON:
        return False
    return True


def broken(row: Row, *, field: str = "") -> DataError:
    """What is wrong with a row that is no JSON."""
    if row.number == 1:
        what, hint = headers.describe_foreign(row.data[:512])
        if what != "no picture" and not row.data.lstrip().startswith(b"{"):
            return row.error(f"is {what}, where one JSON object a line is expected", hint=hint)
    message = _malformed(row.data)
    if not row.ended and _is_cut(row.data):
        message = "the last line is cut off (no line end, and no complete JSON object)"
    hint = "expected one JSON object a line" if "Extra data" in message else array_hint(row)
    if NOT_UTF8 in message:
        hint = "save the file as UTF-8; other rows may be like this one"
    return row.error(message, field=field, hint=hint)


def array_hint(row: Row) -> str:
    """What to do about a JSON array in a file of lines, else nothing."""
    if row.file.suffix == ".json" or row.number != 1 or not row.data.lstrip().startswith(b"["):
        return ""
    return "one JSON object a line is expected; a file with one array is named .json"


def _is_cut(data: bytes) -> bool:
    """Whether a text stops being JSON at its very end, within a word of it."""
    try:
        json.loads(text := data.decode("utf-8", "replace").strip())
    except json.JSONDecodeError as error:
        if not text.startswith("{") or error.msg == "Extra data":
            return False
        if error.msg.startswith("Unterminated"):
            return True
        return not text.endswith("}") and len(text) - error.pos < len("\\uXXXX")
    except (ValueError, RecursionError):
        return False
    return False


def _malformed(data: bytes) -> str:
    def refuse(name: str) -> None:
        raise _ConstantError(name)

    try:
        found = json.loads(data.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        return f"{NOT_UTF8}: byte 0x{data[error.start]:02x} at column {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg.removesuffix(' at')} at column {error.pos + 1}"
    except _ConstantError as error:
        return f"{error} is not a JSON number"
    except ValueError:  # Python's own limit
        return "holds a whole number of thousands of digits"
    except RecursionError:
        return "is not a row: nested too deeply"
    # A text that was cut by code units may end in half a surrogate pair.
    for key, value in found.items() if isinstance(found, dict) else [("", found)]:
        try:
            json.dumps([key, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            return f"`{key}` holds {half}, half a character: the text was cut in the middle of it"
    return "is not valid JSON"


class _ConstantError(ValueError):
    """NaN or Infinity, which JSON does not have."""


def in_words(message: str) -> tuple[str, str]:
    """The field and the plain words of a validation message of msgspec.

    >>> in_words("Expected `str`, got `int` - at `$.answer`")
    ('answer', 'expected text, found a whole number')
    """
    if found := _MISSING.search(message):
        place = (found[2] or "").strip(".")
        return f"{place}.{found[1]}" if place else found[1], "the field is missing"
    if found := _EXPECTED.search(message):
        expected = " or ".join(_WORDS.get(one, one) for one in found[1].split(" | "))
        got = _FOUND.get(found[2], found[2])
        return (found[3] or "").strip("."), f"expected {expected}, found {got}"
    return "", message


def field_hint(row: Row, field: str, *, schema: type[Struct], is_missing: bool) -> str:
    """What a field of a schema is; for a missing one, rather the key that is a slip of the pen."""
    from difflib import get_close_matches

    hint = get_type_hints(schema, include_extras=True).get(field)
    metas = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, msgspec.Meta)]
    told = f"`{field}` is {metas[0].description}" if metas and metas[0].description else ""
    if not is_missing:
        return told
    valid = {one.name for one in msgspec.structs.fields(schema)}
    keys = msgspec.json.decode(row.data, type=dict[str, msgspec.Raw]).keys()
    near = get_close_matches(field, keys - valid, n=1)
    if near:
        return f"did you mean it by `{near[0]}`?"
    return told or f"the row has: {', '.join(keys)}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows of a benchmark are: a file, or a folder.

    A folder may be one of ours (a card and files of fixed names), a copy of the published one,
    whose file is called `published`, or hold a single file of rows. `is_folder` means that the
    benchmark is always a folder, of several files. `allowed` are folders outside it that may be
    read.
    """

    path: Path
    published: str = ""
    is_folder: bool = False
    allowed: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that the files of the benchmark lie in."""
        return self.path if self.is_folder or self.path.is_dir() else self.path.parent

    def may_read(self, path: Path) -> bool:
        """Whether a file lies in the folder, or in one that is allowed, all links followed.

        A snapshot of a hub's cache is made of links to the `blobs` beside it.
        """
        folders = [self.folder, *self.allowed]
        cache = self.folder.resolve().parents
        if len(cache) > 1 and cache[0].name == "snapshots":
            folders += [one for one in (cache[1] / "blobs",) if not one.is_symlink()]
        return is_inside(path, folders)

    def has(self, stem: str) -> bool:
        """Whether the source holds a file of that name."""
        return _has_files(self.path, stem)

    def files(self, stem: str, *, split: str = "") -> tuple[Path, ...]:
        """The files with the rows called `stem`, or of a split of the published data set.

        Raises: DataError when there is none, no telling which, or one leads out of the folder.
        """
        path = self.path
        if path.is_file() and not self.is_folder:
            return (path,)
        if not path.exists():
            raise DataError("there is no such file or folder", file=path)
        found = self._found(stem, split)
        for one in found:
            if not self.may_read(one):
                raise DataError(
                    f"{one.name} leads to {one.resolve()}, out of the folder",
                    file=path,
                    hint=f"--allow-outside {one.resolve().parent} lets it be read",
                )
        return found

    def _found(self, stem: str, split: str) -> tuple[Path, ...]:
        path = self.path
        if self.is_folder or (path / CARD).is_file():
            return find_files(path, stem)
        names = [name for name in (split or self.published, stem) if name]
        for folder in (path, path / "data"):
            for name in names:
                if _has_files(folder, name):
                    return find_files(folder, name)
        single = [one for one in sorted(path.iterdir()) if one.suffix in SUFFIXES]
        if len(single) == 1:
            return (single[0],)
        raise DataError(
            f"holds {len(single)} files with rows, and none called {' or '.join(names)}",
            file=path,
            hint="name the file itself with --data",
        )


def _has_files(folder: Path, stem: str) -> bool:
    """Whether the folder holds a file of that name, in one of the formats, or its shards."""
    whole = any((folder / f"{stem}{suffix}").is_file() for suffix in SUFFIXES)
    return whole or any(folder.glob(f"{stem}-*-of-*.parquet"))


def find_files(folder: Path, stem: str) -> tuple[Path, ...]:
    """The file of that name in the folder, or its shards (`stem-00000-of-00002.parquet`).

    Raises: DataError when there is none, or when two formats stand side by side.
    """
    whole = [folder / f"{stem}{suffix}" for suffix in SUFFIXES]
    found = [path for path in whole if path.is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise DataError(f"holds both {names}", file=folder, hint="keep one of them")
    found = found or sorted(folder.glob(f"{stem}-*-of-*.parquet"))
    for path in found:
        # A missing shard would be missing rows.
        match = _SHARD.search(path.name)
        for number in range(int(match[2]) if match else 0):
            assert match is not None
            part = f"{stem}-{number:0{len(match[1])}}-of-{match[2]}.parquet"
            if folder / part not in found:
                raise DataError(
                    f"lacks {part}, a part of the file like {path.name}",
                    file=folder,
                    hint="fetch it, or name one part alone with --data",
                )
    if not found:
        others = sorted(path.name for path in folder.glob(f"{stem}.*"))
        there = f", and there is {others[0]}" if others else ""
        raise DataError(
            f"has no `{stem}` file",
            file=folder,
            hint=f"expected {stem}.jsonl or {stem}.parquet{there}",
        )
    return tuple(found)
