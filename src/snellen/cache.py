"""The response cache: replies shared by runs and by processes, in one SQLite file.

Keys are `keys.request_key` with the endpoint's address on top: everything that shapes an answer.
Only replies are kept, never failures. A reply that the token limit cut is kept only when that limit
was sent, since only then is the limit in its key.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import msgspec

from snellen.errors import SettingsError
from snellen.keys import digest
from snellen.records import Reply

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID;
"""
_decoder = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()

BATCH = 512


def cache_key(url: str, request_key: str) -> str:
    """The key of a reply: where it was asked, and all that was asked."""
    return digest(f"{url}\n{request_key}")


class ResponseCache:
    """An open cache. Writes are batched; `flush` may run in another thread than `get` and `put`."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._reader = _connect(path)
            self._writer = _connect(path)
        except sqlite3.DatabaseError as error:
            raise SettingsError(
                f"cache {path} cannot be opened: {error}",
                hint="delete the file, or run with --no-cache",
            ) from error
        # A cache that was empty on opening is not searched: a miss costs 20 microseconds a call,
        # and what this run puts in, this run has in its journal.
        self._was_empty = self._reader.execute("SELECT 1 FROM replies LIMIT 1").fetchone() is None
        self._waiting: dict[str, Reply] = {}
        self._writing: dict[str, Reply] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Reply | None:
        """The stored reply, or None."""
        waiting = self._waiting.get(key) or self._writing.get(key)
        if waiting is not None or self._was_empty:
            return waiting
        row = self._reader.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else _decoder.decode(row[0])

    def put(self, key: str, reply: Reply) -> None:
        """Keeps a reply; it is on the disk after the next flush."""
        self._waiting[key] = reply

    @property
    def full(self) -> bool:
        """Whether a flush is due."""
        return len(self._waiting) >= BATCH

    def flush(self) -> None:
        """Writes what waits, in one transaction."""
        with self._lock:
            batch, self._waiting = self._waiting, {}
            self._writing = batch
            if batch:
                rows = [(key, _encoder.encode(reply)) for key, reply in batch.items()]
                with self._writer:
                    self._writer.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
            self._writing = {}

    def close(self) -> None:
        """Flushes and closes."""
        self.flush()
        self._reader.close()
        self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(_SCHEMA)
    return connection
