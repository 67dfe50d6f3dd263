"""Rows of JSON-lines, JSON and Parquet files, one at a time, each knowing its file and number.

A row stays JSON text until a schema decodes it, so that pictures inside it are found by offset
and never held. Errors name file and row, say what was found and what was expected.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from snellen.errors import DataError, MissingExtraError

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SUFFIXES = (".jsonl", ".parquet", ".json", ".ndjson")
PARQUET_BATCH = 16
_BETWEEN = frozenset(b" \t\r\n,")
# Longer strings than this are pictures written as text, not paths (the usual limit of a path).
LONGEST_PATH = 4096

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

    `start` is the offset of `data` in the file, None where the text was made from a Parquet row.
    `ended` is False for a last line without its line end.
    """

    file: Path
    number: int
    data: bytes
    start: int | None = 0
    ended: bool = True

    def error(self, message: str, *, field: str = "", hint: str = "") -> DataError:
        """The error that says something about this row."""
        return DataError(message, file=self.file.name, row=self.number, field=field, hint=hint)


def read_rows(path: Path, *, spool: Path) -> Iterator[Row]:
    """The rows of a file, by its suffix; pictures inside Parquet are written to `spool`.

    Raises: DataError for a missing, empty or unknown file.
    """
    if not path.is_file():
        raise DataError("the file does not exist", file=path)
    if path.stat().st_size == 0:
        raise DataError("the file is empty", file=path, hint="one JSON object a line is expected")
    readers = {".jsonl": _read_lines, ".ndjson": _read_lines, ".json": _read_json}
    if path.suffix == ".parquet":
        return _read_parquet(path, spool)
    if path.suffix not in readers:
        raise DataError(
            f"files of type {path.suffix or 'nothing'} are not read",
            file=path,
            hint="expected .jsonl, .json or .parquet",
        )
    with path.open("rb") as stream:
        if stream.read(2) in UTF_16:
            raise DataError("is UTF-16, expected UTF-8", file=path, hint="save it as UTF-8")
    return _some(path, readers[path.suffix](path))


def _some(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
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
            yield from _lines_from(path, stream)
            return
        begin = text.find(b"[")
        yield from _elements(path, memoryview(text)[begin:], begin=begin)


def _elements(path: Path, array: memoryview, *, begin: int) -> Iterator[Row]:
    try:
        found = msgspec.json.decode(array, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        raise DataError(_malformed(bytes(array)), file=path) from error
    for number, (raw, start) in enumerate(zip(found, _offsets(array, found), strict=True), 1):
        yield Row(path, number, bytes(raw), begin + start)


def _offsets(array: memoryview, found: list[msgspec.Raw]) -> list[int]:
    """Where each element begins, from the lengths and the white space and commas between."""
    starts, at = [], 1
    for raw in found:
        while array[at] in _BETWEEN:
            at += 1
        starts.append(at)
        at += memoryview(raw).nbytes
    return starts


def _read_parquet(path: Path, spool: Path) -> Iterator[Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow, which reads Parquet files,", "parquet") from error
    try:
        table = parquet.ParquetFile(path)
        number = 0
        for batch in table.iter_batches(batch_size=PARQUET_BATCH):
            for value in batch.to_pylist():
                number += 1
                yield Row(path, number, msgspec.json.encode(spooled(value, spool)), None)
    except pyarrow.ArrowException as error:
        raise DataError(f"is no Parquet file that can be read: {error}", file=path) from error


def spooled(value: Any, spool: Path) -> Any:
    """The value with each picture inside it written to a file of the spool folder.

    A picture becomes `{"spooled": file, "text": whether the file holds a JSON string}`.
    """
    if isinstance(value, dict):
        if isinstance(value.get("bytes"), bytes):
            return {"spooled": spool_bytes(value["bytes"], spool), "text": False}
        return {key: spooled(one, spool) for key, one in value.items()}
    if isinstance(value, list):
        return [spooled(one, spool) for one in value]
    if isinstance(value, bytes):
        return {"spooled": spool_bytes(value, spool), "text": False}
    if isinstance(value, str) and value.startswith("data:image"):
        return {"spooled": _store(msgspec.json.encode(value), spool, suffix=".uri"), "text": True}
    return value


def spool_bytes(data: bytes, spool: Path) -> str:
    """The path of a file of the spool folder that holds these bytes, written at most once."""
    return _store(data, spool, suffix=_suffix_of(data))


def _store(data: bytes, spool: Path, *, suffix: str) -> str:
    path = spool / (hashlib.sha256(data).hexdigest() + suffix)
    if not path.exists():
        spool.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.replace(path)
    return str(path)


def _suffix_of(data: bytes) -> str:
    heads = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"BM": ".bmp"}
    for head, suffix in heads.items():
        if data.startswith(head):
            return suffix
    return ".webp" if data[8:12] == b"WEBP" else ".img"


def decode_row(row: Row, decoder: msgspec.json.Decoder[T]) -> T:
    """The row as the decoder's type.

    Raises: DataError that names the row, the field, what was found and what was expected.
    """
    try:
        return decoder.decode(row.data)
    except msgspec.ValidationError as error:
        if not _is_json(row):
            raise row.error(*broken(row)) from error
        field, message = in_words(str(error))
        hint = _near_miss(row, field, schema=decoder.type) if "missing" in message else ""
        raise row.error(message, field=field, hint=hint) from error
    except msgspec.DecodeError as error:
        raise row.error(*broken(row)) from error


def _is_json(row: Row) -> bool:
    """Whether a row of the wrong shape is JSON at all, which is only found out at its end."""
    try:
        msgspec.json.decode(row.data)
    except msgspec.DecodeError:
        return False
    return True


def broken(row: Row) -> tuple[str]:
    """What is wrong with a row that is no JSON, as the one argument of an error."""
    message = _malformed(row.data)
    if not row.ended and "is not JSON" in message:
        message = "the last line is cut off (no line end, and no complete JSON object)"
    return (message,)


def _malformed(data: bytes) -> str:
    try:
        json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        return f"is not UTF-8: byte 0x{data[error.start]:02x} at column {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg.removesuffix(' at')} at column {error.pos + 1}"
    except _ConstantError as error:
        return f"{error} is not a JSON number"
    except RecursionError:
        return "is not a row: nested too deeply"
    return "is not valid JSON (a lone surrogate in a text, perhaps)"


class _ConstantError(ValueError):
    """NaN or Infinity, which JSON does not have."""


def _refuse_constant(name: str) -> None:
    raise _ConstantError(name)


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


def _near_miss(row: Row, field: str, *, schema: Any) -> str:
    """For a missing field, the key of the row that looks like a slip of the pen for it."""
    from difflib import get_close_matches

    valid = {one.name for one in msgspec.structs.fields(schema)}
    keys = msgspec.json.decode(row.data, type=dict[str, msgspec.Raw]).keys()
    near = get_close_matches(field, keys - valid, n=1)
    return f"did you mean it by `{near[0]}`?" if near else f"the row has: {', '.join(keys)}"


def rows_of(paths: Iterable[Path], *, spool: Path) -> Iterator[Row]:
    """The rows of several files, one file after the other."""
    for path in paths:
        yield from read_rows(path, spool=spool)


def has_files(folder: Path, stem: str) -> bool:
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
    if not found:
        raise DataError(
            f"has no `{stem}` file", file=folder, hint=f"expected {stem}.jsonl or {stem}.parquet"
        )
    return tuple(found)
