"""Parquet files, read row group by row group: memory does not grow with the number of rows.

A picture inside such a file is known by its row and its digest, and is read again when it is sent.
Nothing is copied to another file.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from snellen.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

BATCH_ROWS = 8
"""Rows that are held at once while a file is read from its beginning to its end."""
KEPT_BYTES = 8 * 1024 * 1024
"""Pictures that were read last, in case that calls ask for them out of order or again."""
KEPT_FILES = 4
PICTURE_FIELDS = ("image", "images")


@dataclass(frozen=True, slots=True)
class Cell:
    """A picture inside a row: the bytes of a file, or a data URI as JSON text."""

    data: bytes
    is_text: bool

    @property
    def digest(self) -> str:
        """The SHA-256 of the data, in hex."""
        return hashlib.sha256(self.data).hexdigest()


def n_rows(path: Path) -> int:
    """The number of rows of a file. Raises: DataError when it is no Parquet file."""
    with _opened(path) as table:
        return int(table.metadata.num_rows)


def rows(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a file, in order, as Python values.

    Raises: DataError when the file cannot be read, MissingExtraError without pyarrow.
    """
    with _opened(path) as table:
        for batch in table.iter_batches(BATCH_ROWS, use_threads=False):
            yield from batch.to_pylist()


def picture(path: str | Path, row: int, digest: str) -> bytes:
    """The picture of that digest in a row, counted from 1: bytes, or a data URI as JSON text.

    Raises: DataError when the file has changed or cannot be read.
    """
    path = Path(path)
    with _lock:
        window = _windows.pop(path, None)
        stamp = path.stat().st_mtime_ns
        if window is None or window.stamp != stamp:
            window = _Window(path, stamp)
        _windows[path] = window
        while len(_windows) > KEPT_FILES:
            _windows.popitem(last=False)
        cells = window.cells(row)
    if len(cells) == 1:
        return cells[0].data
    for cell in cells:
        if cell.digest == digest:
            return cell.data
    hint = "the file has changed since it was loaded: start again"
    raise DataError("holds another picture", file=path.name, row=row, hint=hint)


def cells_of(value: object) -> list[Cell]:
    """The pictures inside the value of a picture field: bytes, texts, structs, lists of these."""
    if isinstance(value, bytes):
        return [Cell(value, is_text=False)]
    if isinstance(value, str):
        return [Cell(msgspec.json.encode(value), is_text=True)]
    if isinstance(value, dict):
        return cells_of(value.get("bytes"))
    if isinstance(value, list):
        return [cell for one in value for cell in cells_of(one)]
    return []


_lock = threading.Lock()
_windows: OrderedDict[Path, _Window] = OrderedDict()


class _Window:
    """The pictures of a file that were read last, and how far the file is read."""

    def __init__(self, path: Path, stamp: int) -> None:
        self.stamp = stamp
        self._path = path
        self._kept: OrderedDict[int, list[Cell]] = OrderedDict()
        self._n_bytes = 0
        self._next = -1
        self._batches: Iterator[RecordBatch] = iter(())
        with _opened(path) as table:
            groups = [table.metadata.row_group(k).num_rows for k in range(table.num_row_groups)]
        self._ends = [sum(groups[: k + 1]) for k in range(len(groups))]

    def cells(self, row: int) -> Sequence[Cell]:
        """The pictures of a row; rows are best asked for in their order."""
        if row not in self._kept:
            group = next((k for k, end in enumerate(self._ends) if row <= end), None)
            if group is None:
                return ()
            start = self._ends[group - 1] if group else 0
            if not start <= self._next < row:
                self._batches, self._next = _batches(self._path, group), start
            while self._next < row:
                self._read_batch()
        return self._kept[row]

    def _read_batch(self) -> None:
        """Reads some rows more, and lets those go that were read long ago."""
        batch = next(self._batches, None)
        if batch is None:
            raise DataError("has fewer rows than it says", file=self._path)
        columns = batch.to_pydict()
        for values in zip(*columns.values(), strict=True):
            self._next += 1
            cells = [cell for value in values for cell in cells_of(value)]
            self._kept[self._next] = cells
            self._n_bytes += sum(len(cell.data) for cell in cells)
        while self._n_bytes > KEPT_BYTES and len(self._kept) > BATCH_ROWS:
            _, cells = self._kept.popitem(last=False)
            self._n_bytes -= sum(len(cell.data) for cell in cells)


def _batches(path: Path, group: int) -> Iterator[RecordBatch]:
    """The picture columns of a row group and of those after it, some rows at a time."""
    with _opened(path) as table:
        columns = [name for name in PICTURE_FIELDS if name in table.schema_arrow.names]
        groups = range(group, table.num_row_groups)
        yield from table.iter_batches(
            BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False
        )


@contextmanager
def _opened(path: Path) -> Iterator[ParquetFile]:
    """A file, read through a small buffer: a row group may be as large as the whole.

    Raises: DataError when the file cannot be read, MissingExtraError without pyarrow.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow, which reads Parquet files,", "parquet") from error
    # A damaged page is an OSError to pyarrow, and a text that is not UTF-8 is found out late.
    failures = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
    try:
        with parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) as table:
            yield table
    except failures as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"is no Parquet file that can be read: {reason}", file=path) from error
