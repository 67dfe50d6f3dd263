"""Collects what is wrong with the rows of a benchmark, as much of each row as can be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from snellen.errors import DataError, ImageError
from snellen.readers.pictures import PictureFinder, broken_picture
from snellen.readers.rows import (
    NOT_JSON,
    NOT_UTF8,
    Row,
    array_hint,
    broken,
    field_hint,
    in_words,
    read_rows,
)
from snellen.readers.selection import OWN_ID, taken
from snellen.records import Image
from snellen.schemas import Fault, nearest, was_read

S = TypeVar("S", bound=Struct)


class Sized(Protocol):
    """Pixels that know how many they are: `size` is (width, height)."""

    @property
    def size(self) -> tuple[int, int]: ...


Look = Callable[[Image], Sized]
"""Decodes a picture, upright; raises ImageError for one that cannot be shown to a model."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `message` is a whole line that names file, row and field."""

    file: str
    row: int | None
    field: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return self.message


class Findings:
    """The problems found so far; a field that no schema knows is told once a file, not a row."""

    def __init__(self, look: Look | None, spool: Path) -> None:
        self.spool = spool
        self._look = look
        self._looked: dict[str, tuple[int, int] | None] = {}
        self._problems: list[Problem] = []
        self.sizes: dict[str, tuple[int, int]] = {}
        self._unknown: set[tuple[str, str]] = set()
        self._encoded: set[str] = set()
        self._ids: dict[tuple[str, str], Row] = {}
        self._lost: set[type[Struct]] = set()

    def note(self, error: DataError) -> None:
        self._problems.append(
            Problem(error.file, error.row, error.field, error.message, error.hint)
        )

    def note_broken(self, error: DataError) -> None:
        """Notes a row that is no JSON; a file in another encoding is told once."""
        if NOT_UTF8 in error.message:
            if error.file in self._encoded:
                return
            self._encoded.add(error.file)
        self.note(error)

    def note_unknown(self, row: Row, key: str, *, valid: Sequence[str]) -> None:
        if (row.file.name, key) not in self._unknown:
            self._unknown.add((row.file.name, key))
            self.note(row.error("no such field is known", field=key, hint=nearest(key, valid)))

    def lose(self, schema: type[Struct]) -> None:
        """Notes that not all rows of a kind could be read: what they name is not known."""
        self._lost.add(schema)

    def knows_all(self, schema: type[Struct]) -> bool:
        """Whether all rows of a kind were read, so that what is not among them does not exist."""
        return schema not in self._lost

    def claim(self, row: Row, field: str, *, value: Any) -> bool:
        """Takes an id; False, and noted, when it is taken or could not be read."""
        if not was_read(value):
            return False
        slim = replace(row, data=b"")
        before = self._ids.setdefault((field, str(value)), slim)
        if before is not slim:
            self.note(row.error(taken(before, value, field=field), field=field, hint=OWN_ID))
        return before is slim

    def look_at(
        self, finder: PictureFinder, row: Row, *, raw: Any, field: str = "image"
    ) -> list[tuple[int, int]]:
        """Notes pictures that are absent, and, where they can be decoded, broken ones.

        Returns width and height of those that were decoded.
        """
        if not was_read(raw):
            return []
        sizes = []
        for one in finder.look_over(row, raw, field=field):
            if isinstance(one, DataError):
                self.note(one)
            elif self._look is not None:
                if one.digest not in self._looked:
                    self._looked[one.digest] = self._decode(row, one, self._look, field=field)
                sizes.append(self._looked[one.digest])
        return [size for size in sizes if size is not None]

    def _decode(self, row: Row, image: Image, look: Look, *, field: str) -> tuple[int, int] | None:
        try:
            return look(image).size
        except ImageError as error:
            self.note(broken_picture(row, image, error, field=field))
            return None

    def all(self) -> list[Problem]:
        return self._problems


def records_of(
    files: Iterable[Path],
    schema: type[S],
    *,
    faults: Callable[[S], Iterator[Fault]],
    found: Findings,
) -> Iterator[tuple[Row, S]]:
    """Each row of the files that is an object, its unreadable fields unset, its faults noted."""
    id_field = schema.__struct_fields__[0]
    for path in files:
        try:
            for row in read_rows(path, spool=found.spool):
                record = _record(row, schema, found=found)
                if record is None or not was_read(getattr(record, id_field)):
                    found.lose(schema)
                if record is None:
                    continue
                for fault in faults(record):
                    found.note(row.error(fault.message, field=fault.field, hint=fault.hint))
                yield row, record
        except DataError as error:
            found.note(error)
            found.lose(schema)


def _record(row: Row, schema: type[S], *, found: Findings) -> S | None:
    try:
        raws = msgspec.json.decode(row.data, type=dict[str, Raw])
    except msgspec.ValidationError as error:
        hint = array_hint(row) or "one JSON object a line is expected"
        found.note(row.error(in_words(str(error))[1], hint=hint))
        return None
    except NOT_JSON:
        found.note_broken(broken(row))
        return None
    fields = {field.name: field for field in msgspec.structs.fields(schema)}
    for key in raws:
        if key not in fields:
            found.note_unknown(row, key, valid=list(fields))
    _check_twice(row, found)
    values = {}
    for name, field in fields.items():
        tell = partial(field_hint, row, name, schema=schema)
        values[name] = _value(row, field, raws=raws, found=found, tell=tell)
    return schema(**values)


def _value(
    row: Row,
    field: msgspec.structs.FieldInfo,
    *,
    raws: Mapping[str, Raw],
    found: Findings,
    tell: Callable[..., str],
) -> Any:
    raw = raws.get(field.name)
    if raw is None:
        if not field.required:
            return field.default
        found.note(row.error("the field is missing", field=field.name, hint=tell(is_missing=True)))
        return UNSET
    try:
        return msgspec.json.decode(raw, type=field.type)
    except msgspec.ValidationError as error:
        place, message = in_words(str(error))
        told = tell(is_missing=False)
        found.note(row.error(message, field=f"{field.name}{place}", hint=told))
    except NOT_JSON:
        found.note_broken(broken(row, field=field.name))
    return UNSET


def _check_twice(row: Row, found: Findings) -> None:
    """Notes keys that an object has twice, which JSON readers silently overwrite."""

    def pairs(entries: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in entries:
            if key in seen:
                found.note(row.error("the field stands twice in one object", field=key))
            seen.add(key)

    try:
        json.loads(row.data, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return
