"""The decisions of a review: kept in SQLite with their whole history, and as `decisions.jsonl`.

A decision is in the database before anybody is told that it was saved. `decisions.jsonl` has the
same rows, for people and other programs; rows that were appended there by hand are taken in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from snellen.builders.reviewing import Decision
from snellen.engine.journal import AppendFile, read_rows
from snellen.errors import RunFolderError

_encode = msgspec.json.Encoder(order="deterministic").encode


class Saved(msgspec.Struct, frozen=True):
    """A decision that was saved: its number, and decisions of others that the person had not seen.

    `unseen` is not empty where somebody else had decided on the same task in the meantime.
    """

    number: int
    unseen: tuple[Decision, ...] = ()


class Ledger:
    """The decisions below a folder; several processes may hold it open.

    Raises:
        RunFolderError: the folder cannot be written, or the file is no database.
    """

    def __init__(self, folder: Path) -> None:
        self._lines = folder / "review" / "decisions.jsonl"
        path = folder / "review" / "decisions.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            self._base.executescript(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "CREATE TABLE IF NOT EXISTS decisions ("
                "number INTEGER PRIMARY KEY AUTOINCREMENT, task TEXT NOT NULL, "
                "annotator TEXT NOT NULL, row BLOB NOT NULL UNIQUE);"
                "CREATE INDEX IF NOT EXISTS by_task ON decisions (task);"
            )
            self._match()
        except (OSError, sqlite3.Error) as error:
            raise RunFolderError(
                f"the decisions in {path} cannot be opened: {error}",
                hint="give rights there; a damaged file can be deleted, since decisions.jsonl "
                "holds the same rows",
            ) from error

    def save(self, decision: Decision, *, seen: int) -> Saved:
        """Saves a decision; `seen` is the number of the last one that the person knew of.

        When this returns, the decision outlives the process.

        Raises:
            RunFolderError: nothing could be written.
        """
        try:
            self._base.execute("BEGIN IMMEDIATE")
            later = self._base.execute(
                "SELECT row FROM decisions WHERE task = ? AND number > ? AND annotator != ? "
                "ORDER BY number",
                (decision.id, seen, decision.annotator),
            ).fetchall()
            number = self._insert(decision)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise RunFolderError(
                f"a decision could not be saved: {error}",
                hint="make room on the disk, and save again",
            ) from error
        self._append([decision])
        unseen = tuple(msgspec.json.decode(row, type=Decision) for (row,) in later)
        return Saved(number, unseen)

    def all(self) -> Iterator[Decision]:
        """Every decision, in the order in which they were saved."""
        for (row,) in self._base.execute("SELECT row FROM decisions ORDER BY number"):
            yield msgspec.json.decode(row, type=Decision)

    def last(self, task: str) -> int:
        """The number of the last decision on a task; 0 without one."""
        query = "SELECT COALESCE(MAX(number), 0) FROM decisions WHERE task = ?"
        return int(self._base.execute(query, (task,)).fetchone()[0])

    def size(self) -> int:
        """The number of the last decision of all; it changes with each."""
        return int(
            self._base.execute("SELECT COALESCE(MAX(number), 0) FROM decisions").fetchone()[0]
        )

    def close(self) -> None:
        """Closes the database."""
        self._base.close()

    def _match(self) -> None:
        """Lets file and database hold the same rows, whichever a killed process left behind."""
        stored = {bytes(row) for (row,) in self._base.execute("SELECT row FROM decisions")}
        written = list(read_rows(self._lines, Decision))
        known = {_encode(one) for one in written}
        self._base.execute("BEGIN IMMEDIATE")
        for one in written:
            if _encode(one) not in stored:
                self._insert(one)
        self._base.execute("COMMIT")
        self._append(one for one in list(self.all()) if _encode(one) not in known)

    def _insert(self, decision: Decision) -> int:
        cursor = self._base.execute(
            "INSERT OR IGNORE INTO decisions (task, annotator, row) VALUES (?, ?, ?)",
            (decision.id, decision.annotator, _encode(decision)),
        )
        return int(cursor.lastrowid or 0)

    def _append(self, decisions: Iterable[Decision]) -> None:
        rows = list(decisions)
        if not rows:
            return
        file = AppendFile(self._lines)
        try:
            for one in rows:
                file.append(one)
        finally:
            file.close()
