"""The runs that are shown: found, kept fresh, and opened through their indexes."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from snellen.errors import RunFolderError, SnellenError
from snellen.keys import digest
from snellen.report.sections import Section, sections_of
from snellen.runs.folder import Run, find_runs, read_spec
from snellen.runs.spec import Summary
from snellen.settings import Settings
from snellen.web.view import index
from snellen.web.view.work import Worker

LOOK_EVERY_S = 3.0
"""How often folders are searched for new runs."""
LIVE_S = 30.0
"""A run without an end whose files changed within this time is under way."""
PATIENCE_S = 1.0
"""How long a page waits for the regions of its picture."""


@dataclass(slots=True)
class Entry:
    """One run: `key` stands in addresses, `index` is the file of its index.

    `run` has no items, replies or verdicts: those are in the index and in the files. `trouble` is
    why the run cannot be shown, or not anew.
    """

    key: str
    folder: Path
    index: Path
    run: Run | None = None
    trouble: str = ""
    is_live: bool = False
    is_fresh: bool = False
    stamp: str = ""
    building: Future[None] | None = None
    built_at: float = 0.0
    took_s: float = 0.0
    read: int = 0

    @property
    def is_indexed(self) -> bool:
        """Whether lists of it can be shown, be they the latest or not."""
        return bool(self.stamp)

    @property
    def shown(self) -> Run:
        """The run.

        Raises: RunFolderError where it cannot be read.
        """
        if self.run is None:
            raise RunFolderError(self.trouble or f"{self.folder} has no summary yet")
        return self.run


@dataclass(frozen=True, slots=True)
class Board:
    """Runs that belong side by side, by key, in the order of their names' looks."""

    section: Section
    keys: Mapping[Path, str]

    def key_of(self, run: Run) -> str:
        """The key of one of its runs."""
        return self.keys[run.folder]


@dataclass(slots=True)
class Library:
    """All runs below some paths. `sources` are benchmarks whose regions and pictures are shown.

    The index of a run that goes on is renewed `renewal_s` seconds after the last, and
    `renewal_factor` times as long after as that took.
    `cache` holds indexes of runs whose folders cannot be written, `scratch` what is made anew for
    each server.
    """

    paths: tuple[Path, ...]
    worker: Worker
    cache: Path
    scratch: Path
    sources: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    entries: dict[str, Entry] = field(default_factory=dict)
    looked_at: float = float("-inf")
    renewal_s: float = 1.0
    renewal_factor: float = 4.0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _boards: tuple[tuple[object, ...], tuple[Board, ...]] = ((), ())
    _tasks: dict[Path, Future[None]] = field(default_factory=dict)

    def look(self) -> list[Entry]:
        """All runs, with a new look at the disk where the last is some seconds old."""
        with self._lock:
            now = time.monotonic()
            if now - self.looked_at >= LOOK_EVERY_S:
                self.looked_at = now
                for folder in self._folders():
                    if all(entry.folder != folder for entry in self.entries.values()):
                        self._add(folder)
            stale = [entry for entry in self.entries.values() if self._freshen(entry)]
            self._index(stale)
            return list(self.entries.values())

    def entry(self, key: str) -> Entry:
        """A run by its key, as it is on the disk now.

        Raises: RunFolderError where there is none.
        """
        found = self.entries.get(key)
        if found is None:
            self.look()
            found = self.entries.get(key)
        if found is None:
            raise RunFolderError(
                f"there is no run `{key}` here", hint="open the start page for those that there are"
            )
        with self._lock:
            if self._freshen(found):
                self._index([found])
        return found

    def boards(self) -> tuple[Board, ...]:
        """The runs that can be shown, sorted into those that belong side by side."""
        self.look()
        return self._arranged()

    def _arranged(self) -> tuple[Board, ...]:
        """The same as far as they are known, without a look at the disk."""
        entries = [entry for entry in self.entries.values() if entry.run is not None]
        state = tuple((e.key, e.stamp, e.read) for e in entries)
        with self._lock:
            if self._boards[0] != state:
                runs = [entry.shown for entry in entries]
                sections = sections_of(runs, with_charts=False) if runs else ()
                keys = {entry.folder: entry.key for entry in entries}
                self._boards = (state, tuple(Board(section, keys) for section in sections))
            return self._boards[1]

    def board_of(self, entry: Entry) -> Board:
        """The runs that belong beside a run."""
        for board in self._arranged():
            if entry.folder in {run.folder for run in board.section.runs}:
                return board
        raise RunFolderError(entry.trouble or f"{entry.folder} has no summary yet")

    @contextmanager
    def opened(
        self, entry: Entry, *others: Entry, hard: bool = False
    ) -> Iterator[sqlite3.Connection]:
        """A run's index; other runs' are attached as `other1`, `other2`, difficulty as `hard`.

        Raises: RunFolderError where an index is not there yet or is broken.
        """
        for one in (entry, *others):
            if not one.is_indexed:
                raise RunFolderError(
                    one.trouble or "the index of this run is being built",
                    hint="reload the page in a few seconds",
                )
        path = self.difficulty_of(entry) if hard else None
        try:
            with closing(index.open_index(entry.index)) as connection:
                for number, other in enumerate(others, 1):
                    attach(connection, other.index, f"other{number}")
                if path is not None:
                    attach(connection, path, "hard")
                yield connection
        except sqlite3.DatabaseError as error:
            entry.stamp = ""
            with suppress(OSError):
                entry.index.unlink()
            raise RunFolderError(
                f"the index {entry.index} cannot be read: {error}",
                hint="reload the page: the index is built anew",
            ) from error

    def difficulty_of(self, entry: Entry) -> Path | None:
        """The file that says how many runs have each probe right; None until it is there."""
        board = self.board_of(entry)
        entries = [self.entries[board.key_of(run)] for run in board.section.runs]
        if not all(one.is_indexed for one in entries):
            # Their indexes may be there by now.
            self.look()
        if not all(one.is_indexed for one in entries):
            return None
        stem = f"difficulty-{digest(' '.join(sorted(one.key for one in entries)))[:12]}"
        state = digest("\n".join(one.stamp for one in entries))[:24]
        out = self.scratch / f"{stem}-{state}.sqlite"
        self.once(out, "difficulty", [str(out), *(str(one.index) for one in entries)])
        older = [path for path in self.scratch.glob(f"{stem}-*.sqlite") if path != out]
        if not out.exists():
            # That of a moment ago, while runs go on.
            return older[0] if older else None
        for path in older:
            path.unlink(missing_ok=True)
        return out

    def regions_of(self, run: Run, item: str) -> list[index.StoredRegion]:
        """The regions of an item's picture, as far as its benchmark is at hand."""
        for source in (*self.sources, *_bundled(run)):
            out = self._regions_file(source)
            if not out.exists() and out in self._tasks:
                # Small ones are there in a moment; a page does not wait for large ones.
                with suppress(TimeoutError):
                    self._tasks[out].exception(timeout=PATIENCE_S)
            if index.meta_of(out, "benchmark") != run.spec.benchmark:
                continue
            with closing(index.open_index(out)) as connection:
                rows = connection.execute("SELECT body FROM regions WHERE item = ?", (item,))
                return [msgspec.json.decode(row[0], type=index.StoredRegion) for row in rows]
        return []

    def prepare(self) -> None:
        """Begin what the first pages need."""
        for source in self.sources:
            self._regions_file(source)
        for entry in self.look():
            if entry.run is not None:
                for source in _bundled(entry.run):
                    self._regions_file(source)

    def _regions_file(self, source: str) -> Path:
        """The file of a benchmark's regions, which is made unless it is there."""
        out = self.scratch / f"regions-{digest(source + _age(source))[:24]}.sqlite"
        self.once(out, "regions", [source, str(out)])
        return out

    def stamp(self, entry: Entry) -> str:
        """What a run's files are like now."""
        return index.stamp_of(entry.folder)

    def once(self, out: Path, task: str, words: Sequence[str]) -> str:
        """Begin a task that makes a file, unless it is there or under way; why it failed, or ""."""
        with self._lock:
            if out.exists():
                return ""
            if out not in self._tasks:
                self._tasks[out] = self.worker.do(task, words)
            done = self._tasks[out]
            error = done.exception() if done.done() and not done.cancelled() else None
            return "" if error is None else str(error)

    def may_read(self, path: str) -> bool:
        """Whether a picture's file lies in a folder that was given, or comes with Snellen."""
        from snellen.files import is_inside
        from snellen.readers.mini import MINI
        from snellen.settings import cache_folder

        own = (MINI, cache_folder())
        named = (Path(source) for source in self.sources if Path(source).exists())
        folders = (one if one.is_dir() else one.parent for one in (*self.paths, *named))
        return is_inside(Path(path), (*own, *folders))

    def _folders(self) -> list[Path]:
        found: list[Path] = []
        for path in self.paths:
            # A folder without a run is shown empty: the run may be about to begin.
            with suppress(RunFolderError):
                found += find_runs((path,))
        return list(dict.fromkeys(found))

    def _add(self, folder: Path) -> None:
        base = next((p for p in self.paths if folder.is_relative_to(p)), folder)
        name = str(folder.relative_to(base)) if folder != base else folder.resolve().name
        key = stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
        number = 1
        while key in self.entries:
            number += 1
            key = f"{stem}-{number}"
        self.entries[key] = Entry(key, folder, self._index_path(folder))

    def _index_path(self, folder: Path) -> Path:
        """Beside the run, or in the cache where the folder cannot be written."""
        if os.access(folder, os.W_OK):
            return folder / index.NAME
        return self.cache / f"run-{digest(str(folder.resolve()))[:24]}.sqlite"

    def _freshen(self, entry: Entry) -> bool:
        """Read what has changed of a run; whether its index must be built."""
        if entry.building is not None and entry.building.done():
            error = entry.building.exception()
            entry.trouble = "" if error is None else str(error)
            entry.took_s = time.monotonic() - entry.built_at
            entry.building = None
            entry.stamp = ""
        stamp = index.stamp_of(entry.folder)
        if not entry.stamp:
            entry.stamp = index.meta_of(entry.index, "stamp") or ""
            self._read(entry)
        entry.is_fresh = entry.stamp == stamp
        entry.is_live = _is_live(entry.folder)
        if entry.is_fresh or entry.building is not None:
            return False
        waited = time.monotonic() - entry.built_at
        return not entry.built_at or waited >= self.renewal_s + self.renewal_factor * entry.took_s

    def _read(self, entry: Entry) -> None:
        """The run's specification and summary: of a run under way, that of its index."""
        try:
            spec = read_spec(entry.folder)
            text = index.meta_of(entry.index, "summary")
            file = entry.folder / index.SUMMARY
            if text is None and file.is_file():
                text = file.read_text(encoding="utf-8")
            summary = None if text is None else msgspec.json.decode(text, type=Summary)
        except (SnellenError, OSError, ValueError) as error:
            entry.run, entry.trouble = None, str(error)
            return
        # Without a summary there is nothing to sort the run by, and its index brings one.
        run = None if summary is None else Run(entry.folder, spec, (), {}, {}, summary)
        entry.run = run
        entry.read += 1

    def _index(self, stale: Sequence[Entry]) -> None:
        """Begin to index runs: all at once in as few processes as work at the same time."""
        if not stale:
            return
        from snellen.web.view.work import AT_ONCE

        for number in range(AT_ONCE):
            part = stale[number::AT_ONCE]
            if part:
                words = [str(w) for entry in part for w in (entry.folder, entry.index)]
                started = time.monotonic()
                done = self.worker.do("index", words)
                for entry in part:
                    entry.building, entry.built_at = done, started


def _bundled(run: Run) -> tuple[str, ...]:
    """The name of a run's benchmark where that comes with Snellen."""
    from snellen.readers.catalog import KNOWN

    known = KNOWN.get(run.spec.benchmark)
    return (run.spec.benchmark,) if known is not None and known.folder else ()


def attach(connection: sqlite3.Connection, path: Path, name: str) -> None:
    """Attach another index for reading, under a name of the program's own."""
    connection.execute(f"ATTACH ? AS {name}", (f"{path.absolute().as_uri()}?mode=ro",))


def _is_live(folder: Path) -> bool:
    """Whether a run without an end has been written to just now."""
    newest = 0.0
    for name in index.FILES:
        with suppress(OSError):
            newest = max(newest, (folder / name).stat().st_mtime)
    try:
        ended = (folder / index.SUMMARY).stat().st_mtime
    except OSError:
        ended = 0.0
    return newest > ended and time.time() - newest < LIVE_S


def _age(source: str) -> str:
    """When a benchmark's files were last changed; empty for one that has a name."""
    path = Path(source)
    files = path.glob("*.*") if path.is_dir() else [path]
    return " ".join(str(f.stat().st_mtime_ns) for f in sorted(files) if f.is_file())
