"""The journal: every finished call of a run, one unbuffered write before anything uses its reply.

A row that was written survives `kill -9`. Everything else in a run folder can be rebuilt from it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from snellen.errors import DataError, RunFolderError
from snellen.files import open_own, open_regular
from snellen.records import Answer, CallFailure, Reply, Request, address

T = TypeVar("T")

SYNC_EVERY_S = 5.0

_encode = msgspec.json.Encoder().encode


class CallRow(msgspec.Struct, frozen=True):
    """One finished call: its address, its request key, and its reply or failure.

    No dataclass, since one is made for every call: a struct takes a tenth of the time.
    """

    item: str
    repeat: int
    purpose: str
    probe: str
    ask: int
    key: str
    role: str
    reply: Reply | None = None
    failure: CallFailure | None = None
    cached: bool = False
    tries: int = 1
    at: str = ""

    @property
    def address(self) -> str:
        """Where it stands in the run, as `keys.address` gives it."""
        return "\x1f".join((self.item, str(self.repeat), self.purpose, self.probe, str(self.ask)))

    @property
    def answer(self) -> Answer:
        """Its reply, or its failure."""
        answer = self.reply if self.reply is not None else self.failure
        assert answer is not None
        return answer


def now() -> str:
    """The time as RFC 3339 in UTC, to the millisecond."""
    seconds, fraction = divmod(time.time(), 1.0)
    return f"{_second(int(seconds))}.{int(fraction * 1000):03d}Z"


@lru_cache(2)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]


class AppendFile:
    """A JSON-lines file that is only ever appended to, a row a write; a torn tail is cut off.

    What could be rebuilt may be written in batches: `hold` keeps a row, `flush` writes all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = _cut_torn_tail(path)
        self._fd = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._synced_at = time.monotonic()
        self._held: list[bytes] = []

    def append(self, row: object) -> None:
        """Writes one row; when this returns, the row outlives the process.

        Raises:
            RunFolderError: the disk is full or broken; no part of the row is left behind.
        """
        self._write(_encode(row) + b"\n")

    def hold(self, row: object) -> None:
        """Keeps a row for the next flush."""
        self._held.append(_encode(row))

    def flush(self) -> None:
        """Writes what is held, in one piece.

        Raises:
            RunFolderError: as `append`.
        """
        if self._held:
            self._write(b"\n".join(self._held) + b"\n")
            self._held.clear()

    def _write(self, data: bytes) -> None:
        written = 0
        if not os.fstat(self._fd).st_nlink:
            raise RunFolderError(
                f"{self.path} was removed while it was being written",
                hint="the same command begins anew; leave the folder where it is meanwhile",
            )
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
            if time.monotonic() - self._synced_at > SYNC_EVERY_S:
                os.fsync(self._fd)
                self._synced_at = time.monotonic()
        except OSError as error:
            self._take_back(written, len(data))
            raise RunFolderError(
                f"{self.path} cannot be written: {error.strerror}",
                hint="make room on the disk; the same command then goes on from here",
            ) from error

    def _take_back(self, written: int, wanted: int) -> None:
        if 0 < written < wanted:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)

    def close(self) -> None:
        """Syncs to the disk and closes; what is held and not flushed is let go."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1


def _cut_torn_tail(path: Path) -> int:
    """Cuts what follows the last newline; how many bytes that were."""
    try:
        with os.fdopen(open_own(path, os.O_RDWR), "rb+") as file:
            size = end = file.seek(0, os.SEEK_END)
            keep = 0
            while end > 0 and not keep:
                start = max(0, end - 65536)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                keep, end = (start + found + 1 if found >= 0 else 0), start
            if keep < size:
                file.truncate(keep)
            return size - keep
    except FileNotFoundError:
        return 0


def _reading(path: Path) -> BufferedReader:
    """A file of rows, open for reading.

    Raises:
        DataError: it cannot be read, or is a pipe or a device.
    """
    try:
        return open_regular(path)
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", file=path, hint="give the folder of a run"
        ) from error


def read_rows(path: Path, kind: type[T]) -> Iterator[T]:
    """The rows of a JSON-lines file; a torn last line is left out.

    Raises:
        DataError: a line before the last is no valid row.
    """
    decoder = msgspec.json.Decoder(kind)
    if not path.exists():
        return
    with _reading(path) as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            if not line.strip():
                continue
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(
                    f"is no valid row: {error}",
                    file=path,
                    row=number,
                    hint="the file was changed by hand or by another program; restore it, or "
                    "start anew",
                ) from error
            yield row


def read_calls(path: Path, *, damaged: list[int] | None = None) -> dict[str, CallRow]:
    """The calls of a journal by address, of two rows the last; none where there is no file.

    Damaged rows are left out, and their line numbers added to `damaged`: a call is easily made
    again.
    """
    decoder, rows = msgspec.json.Decoder(CallRow), dict[str, CallRow]()
    if not path.exists():
        return rows
    with _reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                if damaged is not None and line.strip() and line.endswith(b"\n"):
                    damaged.append(number)
                continue
            rows[row.address] = row
    return rows


class FolderLock:
    """Holds a run folder against a second writer for as long as this process lives."""

    def __init__(self, folder: Path) -> None:
        self._fd = open_own(folder / ".lock", os.O_RDWR | os.O_CREAT)
        is_free = True
        try:
            import fcntl

            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # a system without flock: two writers are then the user's own care
            pass
        except OSError:
            is_free = False
        if not is_free:
            owner = os.read(self._fd, 32).decode(errors="replace").strip()
            os.close(self._fd)
            raise RunFolderError(
                f"run folder {folder} is in use by process {owner or 'unknown'}",
                hint="wait until it ends, or choose another --out",
            )
        os.ftruncate(self._fd, 0)
        os.write(self._fd, str(os.getpid()).encode())

    def release(self) -> None:
        """Lets the folder go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Journal:
    """The open journal of one run folder, held against a second writer.

    `torn` is the number of bytes of a half-written last row that were dropped on opening.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        path = folder / "calls.jsonl"
        self._file = AppendFile(path)
        self.torn = self._file.torn
        self.damaged: list[int] = []
        self._rows = read_calls(path, damaged=self.damaged)
        self.n_stored = len(self._rows)
        self._renewed: set[str] = set()

    @property
    def notices(self) -> tuple[str, ...]:
        """What was found wrong on opening."""
        said = []
        if self.torn:
            said.append(f"a half-written last row was dropped ({self.torn} bytes)")
        if self.damaged:
            said.append(
                f"calls.jsonl: {len(self.damaged)} damaged rows are left out, the first in line "
                f"{self.damaged[0]}; their calls are made again"
            )
        return tuple(said)

    def stored(self) -> Iterable[CallRow]:
        """The stored calls that have not been taken."""
        return self._rows.values()

    def take(self, address: str) -> CallRow | None:
        """The stored call at an address, given out once."""
        return self._rows.pop(address, None)

    def renew(self, addresses: Iterable[str]) -> None:
        """Lets stored calls go, so that they are made again, whatever a cache holds."""
        self._renewed.update(addresses)
        for place in self._renewed:
            self._rows.pop(place, None)

    def is_renewed(self, item: str, repeat: int, request: Request) -> bool:
        """Whether the call at this address is being made again."""
        return bool(self._renewed) and address(item, repeat, request) in self._renewed

    def append(self, row: CallRow) -> None:
        """Writes a finished call."""
        self._file.append(row)

    def store(
        self, request: Request, key: str, answer: Answer, *, place: tuple[str, int], tries: int
    ) -> None:
        """Writes a finished call of an item's repeat; no tries stand for a reply out of a cache."""
        self._file.append(
            CallRow(
                item=place[0],
                repeat=place[1],
                purpose=request.purpose,
                probe=request.probe,
                ask=request.ask,
                key=key,
                role=request.role,
                reply=answer if isinstance(answer, Reply) else None,
                failure=answer if isinstance(answer, CallFailure) else None,
                cached=not tries,
                tries=max(tries, 1),
                at=now(),
            )
        )

    def close(self) -> None:
        """Syncs, closes and releases the folder."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
