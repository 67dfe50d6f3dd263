"""The response cache: replies shared by runs and by processes, in one SQLite file.

It is used where a user asks for it: the model behind a name may change, and a stale answer looks
like a result. Keys are `keys.request_key` with the endpoint's address and what the user declares of
the model on top: everything that shapes an answer. Only replies are kept, never failures and no
judgement that could not be read. A reply that the token limit cut is kept only when that limit was
sent, since only then is the limit in its key.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import lru_cache
from pathlib import Path

import msgspec

from snellen.errors import SettingsError
from snellen.keys import digest
from snellen.records import Params, Reply
from snellen.settings import Endpoint

# `at` is the time of the call in seconds since 1970.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, reply BLOB NOT NULL, at REAL NOT NULL)
WITHOUT ROWID;
"""
_ANY = "SELECT 1 FROM answers LIMIT 1"
_FIND = "SELECT reply, at FROM answers WHERE key = ?"
_PUT = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)"
_decoder = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()


def cache_key(endpoint: Endpoint, request_key: str) -> str:
    """The key of a reply: who was asked, as far as the user says, and all that was asked."""
    return _place(endpoint.url, endpoint.revision, endpoint.quantization) + request_key


def is_shareable(reply: Reply, params: Params) -> bool:
    """Whether a reply may be kept: one that a limit cut, only when the key holds that limit."""
    if reply.finish_reason != "length":
        return True
    return bool(params.get("max_tokens") or params.get("max_completion_tokens"))


@lru_cache(256)
def _place(url: str, revision: str, quantization: str) -> str:
    return digest("\x1f".join((url, revision, quantization)))[:16]


class ResponseCache:
    """An open cache. Writes are batched; `flush` may run in another thread than `get` and `put`.

    A cache that fails while a run goes on must not cost the run: from then on nothing is found
    or kept, and `trouble` says why. `found` counts the replies that came out of it, `oldest_at` is
    the time of the oldest of them.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = _connect(path)
            self._writer = _connect(path)
            # A cache that was empty on opening is not searched: a miss costs 20 microseconds a
            # call, and what this run puts in, this run has in its journal.
            self._was_empty = self._reader.execute(_ANY).fetchone() is None
        except (sqlite3.Error, OSError) as error:
            raise SettingsError(
                f"cache {path} cannot be opened: {error}",
                hint="delete the file, or leave --cache out",
            ) from error
        self.trouble = ""
        self.found, self.oldest_at = 0, time.time()
        self._closed = False
        self._path = path
        self._waiting: dict[str, Reply] = {}
        self._writing: dict[str, Reply] = {}
        self._swapping, self._flushing = threading.Lock(), threading.Lock()

    def get(self, key: str) -> Reply | None:
        """The stored reply, or None."""
        with self._swapping:
            waiting = self._waiting.get(key) or self._writing.get(key)
        if waiting is not None or self._was_empty or self.trouble:
            return waiting
        try:
            row = self._reader.execute(_FIND, (key,)).fetchone()
            reply = None if row is None else _decoder.decode(row[0])
        except msgspec.MsgspecError:
            return None
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        if row is not None:
            self.found += 1
            self.oldest_at = min(self.oldest_at, row[1])
        return reply

    @property
    def notices(self) -> tuple[str, ...]:
        """How many replies came out of the cache and how old they are, and what went wrong."""
        said = []
        if self.found:
            hours = (time.time() - self.oldest_at) / 3600
            age = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} hours"
            said.append(
                f"{self.found} replies came out of the cache, the oldest {age} old: they are "
                "those of the model that answered to this name then (leave --cache out to ask anew)"
            )
        return (*said, *([self.trouble] if self.trouble else []))

    def put(self, key: str, reply: Reply) -> None:
        """Keeps a reply; it is on the disk after the next flush."""
        with self._swapping:
            self._waiting[key] = reply

    def flush(self) -> None:
        """Writes what waits, in one transaction."""
        with self._flushing:
            with self._swapping:
                self._writing, self._waiting = self._waiting, {}
            if self._writing and not self.trouble:
                self._write(self._writing)
            self._writing = {}

    def _write(self, batch: dict[str, Reply]) -> None:
        at = time.time()
        rows = [(key, _encoder.encode(reply), at) for key, reply in batch.items()]
        try:
            with self._writer:
                self._writer.executemany(_PUT, rows)
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: sqlite3.Error) -> None:
        self.trouble = f"cache {self._path} failed ({error}): replies are no longer shared"

    def close(self) -> None:
        """Flushes and closes; closing twice is closing once."""
        if not self._closed:
            self._closed = True
            self.flush()
            self._reader.close()
            self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.executescript(_SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
