"""An index of one run in SQLite: what lists are filtered, sorted and searched by.

Texts stay in the files of the run; the index holds where their rows lie.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from snellen.keys import digest
from snellen.records import Item, Probe, ReplyRow, Verdict, abstains, walk
from snellen.runs.folder import Run, load_run
from snellen.runs.summary import summary_of

VERSION = 3
"""Raised with every change of what an index holds: older ones are then built anew."""
NAME = "view.sqlite"
FILES = ("run.json", "items.jsonl", "replies.jsonl", "verdicts.jsonl", "calls.jsonl")
SUMMARY = "summary.json"
Outcome = Literal["right", "wrong", "abstained", "unscored", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("right", "wrong", "abstained", "unscored", "skipped")
LONGEST_LINE = 400
"""Characters of a question that a list holds; longer ones stand in full on the item's page."""
LONGEST_NAME = 300
LONGEST_WORDS = 20_000
"""Characters of one probe, or one reply, that a search looks into."""

_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE stimuli(item TEXT PRIMARY KEY, start INTEGER, end INTEGER) WITHOUT ROWID;
CREATE TABLE items(n INTEGER PRIMARY KEY, item TEXT, repeat INTEGER, line TEXT, probes INTEGER,
    right INTEGER, wrong INTEGER, abstained INTEGER, unscored INTEGER, skipped INTEGER,
    tokens INTEGER, seconds REAL, status TEXT, labels TEXT, words TEXT,
    start INTEGER, end INTEGER);
CREATE TABLE probes(n INTEGER PRIMARY KEY, unit INTEGER, item TEXT, repeat INTEGER, probe TEXT,
    outcome TEXT, reason TEXT, verdict TEXT, answer TEXT, category TEXT, region TEXT,
    line TEXT, tokens INTEGER, seconds REAL, start INTEGER, end INTEGER);
CREATE TABLE words(n INTEGER PRIMARY KEY, words TEXT);
CREATE TABLE labels(label_id INTEGER PRIMARY KEY, dimension TEXT, label TEXT, n_probes INTEGER,
    UNIQUE(dimension, label));
CREATE TABLE carried(label_id INTEGER, n INTEGER, PRIMARY KEY(label_id, n)) WITHOUT ROWID;
"""
# Made after the rows, which is faster.
_INDEXES = """
CREATE UNIQUE INDEX items_key ON items(item, repeat);
CREATE UNIQUE INDEX probes_key ON probes(item, repeat, probe);
CREATE INDEX probes_unit ON probes(unit, n);
CREATE INDEX probes_outcome ON probes(outcome, n);
CREATE INDEX probes_reason ON probes(reason) WHERE reason != '';
"""


# A probe that the judge has not come to.
NO_VERDICT = Verdict("", "", None, None, "unscored", "not_run")


class _ItemKey(msgspec.Struct, frozen=True):
    id: str


class _ReplyKey(msgspec.Struct, frozen=True):
    id: str
    repeat: int = 0


class _VerdictKey(msgspec.Struct, frozen=True):
    id: str
    probe_id: str
    repeat: int = 0


class _Timed(msgspec.Struct, frozen=True):
    latency_s: float = 0.0


class _Call(msgspec.Struct, frozen=True):
    item: str
    repeat: int
    probe: str
    role: str
    reply: _Timed | None = None


Key = _ItemKey | _ReplyKey | _VerdictKey


def shortened(text: str) -> str:
    """A name that fits into an address: a long one is cut, and its hash tells it from others."""
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:60]}\u2026{digest(text.encode('utf-8', 'replace'))[:24]}"


def stamp_of(folder: Path) -> str:
    """What the files of a run are like now: another size or time is another stamp."""
    seen = [str(VERSION)]
    for name in (*FILES, SUMMARY):
        try:
            found = (folder / name).stat()
            seen.append(f"{name} {found.st_size} {found.st_mtime_ns}")
        except OSError:
            seen.append(f"{name} -")
    return digest("\n".join(seen))


def outcome_of(verdict: Verdict | None, probe: Probe) -> Outcome:
    """What became of a probe; one without a verdict is unscored."""
    if verdict is None or verdict.status == "unscored":
        return "unscored"
    if verdict.status == "skipped":
        return "skipped"
    if verdict.correct:
        return "right"
    return "abstained" if abstains(verdict, probe) else "wrong"


def build_index(folder: Path, out: Path) -> None:
    """Write the index of a run folder, whole or not at all.

    Raises:
        RunFolderError: it is no run folder.
        DataError: one of its files was damaged.
        OSError: the index cannot be written.
    """
    # Taken first: what is written meanwhile makes the index stale.
    stamp = stamp_of(folder)
    run = load_run(folder)
    with _replacing(out) as path, closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _TABLES)
        _write_rows(connection, run)
        connection.executescript(_INDEXES)
        summary = msgspec.json.encode(summary_of(run)).decode()
        keys = connection.execute("SELECT item, repeat, probe FROM probes ORDER BY n").fetchall()
        # Of indexes with one layout, a probe has the same number in each.
        layout = digest(msgspec.json.encode(keys))
        meta = [("stamp", stamp), ("summary", summary), ("layout", layout)]
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)
        connection.commit()


@contextmanager
def _replacing(out: Path) -> Iterator[str]:
    """The path of a new file that takes the place of `out` in the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    number, part = tempfile.mkstemp(prefix=out.name, suffix=".part", dir=out.parent)
    os.close(number)
    try:
        yield part
        os.replace(part, out)
    finally:
        Path(part).unlink(missing_ok=True)


def _write_rows(connection: sqlite3.Connection, run: Run) -> None:
    """Each reply with the counts of its probes, each probe, and the labels that it carries."""
    stimuli = _places(run.folder / "items.jsonl", _ItemKey)
    replies = _places(run.folder / "replies.jsonl", _ReplyKey)
    verdicts = _places(run.folder / "verdicts.jsonl", _VerdictKey)
    seconds = _seconds(run.folder / "calls.jsonl")
    labels = _Labels(run)
    units: list[tuple[object, ...]] = []
    probes: list[tuple[object, ...]] = []
    words: list[tuple[int, str]] = []
    for unit, (item, repeat) in enumerate(walk(run.items, run.spec.repeats)):
        outcomes: Counter[str] = Counter()
        whole_call = seconds.get((item.id, repeat, ""))
        for probe in item.probes:
            n, verdict = len(probes), run.verdicts.get((item.id, repeat, probe.id)) or NO_VERDICT
            outcome = outcome_of(verdict, probe)
            outcomes[outcome] += 1
            labels.add(n, item, probe)
            spent = (verdict.usage.prompt or 0) + (verdict.usage.completion or 0)
            probes.append(
                (
                    n, unit, item.id, repeat, probe.id, outcome, shortened(verdict.reason or ""),
                    "" if verdict.verdict is None else str(verdict.verdict)[:200],
                    probe.answer[:200], shortened(run.protocol.labels(item, probe)[0]),
                    shortened(probe.groups.get("region_id", "")),
                    (item.text or probe.question)[:LONGEST_LINE], spent or None,
                    seconds.get((item.id, repeat, probe.id), whole_call),
                    *verdicts.get(_VerdictKey(item.id, probe.id, repeat), (None, None)),
                )
            )  # fmt: skip
            words.append((n, _words(item, probe, verdict)))
        place = replies.get(_ReplyKey(item.id, repeat), (None, None))
        units.append((unit, *_unit(run, item, repeat, outcomes), *place))
    for table, rows in (
        ("stimuli", [(key.id, *place) for key, place in stimuli.items()]),
        ("items", units),
        ("probes", probes),
        ("words", words),
        ("labels", labels.rows()),
        ("carried", labels.carried()),
    ):
        if rows:
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)


def _unit(run: Run, item: Item, repeat: int, outcomes: Mapping[str, int]) -> tuple[object, ...]:
    """The row of one reply, between its number and its place in the file."""
    reply = run.replies.get((item.id, repeat)) or ReplyRow(item.id, None, status="not_run")
    labels = list(dict.fromkeys(label for group in item.groups.values() for label in group))
    words = "\n".join([item.id, item.text, *labels, reply.reply or ""])
    return (
        item.id, repeat, (item.text or reply.reply or "")[:LONGEST_LINE], len(item.probes),
        *(outcomes.get(name, 0) for name in OUTCOMES), reply.tokens, reply.latency_s, reply.status,
        ", ".join(labels)[:LONGEST_LINE], words[:LONGEST_WORDS].casefold(),
    )  # fmt: skip


def _words(item: Item, probe: Probe, verdict: Verdict) -> str:
    """What a search for a probe looks into."""
    parts = (
        item.id, probe.id, item.text or probe.question, *probe.options, probe.answer, verdict.raw,
        verdict.reason or "", *probe.groups.values(),
    )  # fmt: skip
    return "\n".join(parts)[:LONGEST_WORDS].casefold()


class _Labels:
    """Which probes carry which labels of the dimensions by which a run is broken down."""

    def __init__(self, run: Run) -> None:
        # As in breakdowns: a dimension that probes have is theirs, another one their items'.
        own = {name for item in run.items for probe in item.probes for name in probe.groups}
        self._of_probes = [name for name in run.protocol.dimensions if name in own]
        self._of_items = [name for name in run.protocol.dimensions if name not in own]
        self._order = {name: k for k, name in enumerate(run.protocol.dimensions)}
        self._found: dict[tuple[str, str], list[int]] = {}

    def add(self, n: int, item: Item, probe: Probe) -> None:
        """Keep the labels of a probe by its number."""
        for name in self._of_probes:
            if label := probe.groups.get(name, ""):
                self._found.setdefault((name, label), []).append(n)
        for name in self._of_items:
            for label in dict.fromkeys(item.groups.get(name, ())):
                self._found.setdefault((name, label), []).append(n)

    def _sorted(self) -> list[tuple[str, str]]:
        return sorted(self._found, key=lambda key: (self._order[key[0]], key[1]))

    def rows(self) -> list[tuple[int, str, str, int]]:
        """Each label with its number, dimension and count, in the order of the breakdowns."""
        return [
            (k, name, shortened(label), len(self._found[name, label]))
            for k, (name, label) in enumerate(self._sorted(), 1)
        ]

    def carried(self) -> list[tuple[int, int]]:
        """The number of each label with that of each probe that carries it."""
        return [(k, n) for k, key in enumerate(self._sorted(), 1) for n in self._found[key]]


def _places(file: Path, kind: type[Key]) -> dict[Key, tuple[int, int]]:
    """Where each key's row lies in a JSON-lines file, in bytes; of two rows the last counts."""
    decoder = msgspec.json.Decoder(kind)
    found: dict[Key, tuple[int, int]] = {}
    if not file.exists():
        return found
    start = 0
    with file.open("rb") as lines:
        for line in lines:
            end = start + len(line)
            if line.strip() and line.endswith(b"\n"):
                found[decoder.decode(line)] = (start, end)
            start = end
    return found


def _seconds(journal: Path) -> Mapping[tuple[str, int, str], float]:
    """The seconds that judge calls took, by item, repeat and probe.

    A call about several probes of an item stands under an empty probe.
    """
    decoder = msgspec.json.Decoder(_Call)
    found: dict[tuple[str, int, str], float] = defaultdict(float)
    if not journal.exists():
        return found
    with journal.open("rb") as lines:
        for line in lines:
            try:
                call = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if call.role == "judge" and call.reply is not None:
                found[call.item, call.repeat, call.probe] += call.reply.latency_s
                found[call.item, call.repeat, ""] += call.reply.latency_s
    return dict(found)


def build_difficulty(indexes: Iterable[Path], out: Path) -> None:
    """Write how many runs have each probe right, and how many have scored it.

    A probe that a run has judged several times counts once for each.
    """
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for index in indexes:
        with closing(open_index(index)) as connection:
            for item, probe, outcome in connection.execute(
                "SELECT item, probe, outcome FROM probes"
            ):
                count = counts[item, probe]
                count[0] += outcome == "right"
                count[1] += outcome not in {"unscored", "skipped"}
    with _replacing(out) as path, closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE difficulty(item TEXT, probe TEXT, n_right INTEGER, n_scored INTEGER, "
            "PRIMARY KEY(item, probe)) WITHOUT ROWID"
        )
        connection.executemany(
            "INSERT INTO difficulty VALUES (?, ?, ?, ?)",
            ((*key, *count) for key, count in counts.items()),
        )
        connection.commit()


class StoredRegion(msgspec.Struct, frozen=True):
    """A region as an index of regions holds it; `bbox` is (ymin, xmin, ymax, xmax) in 0-1000."""

    region: str
    bbox: tuple[float, float, float, float]
    nature: str
    title: str
    mask: msgspec.Raw


def build_regions(source: str, out: Path) -> None:
    """Write the regions of a benchmark, a folder or one that has a name, by picture."""
    from snellen.readers import load_benchmark

    benchmark = load_benchmark(source)
    with _replacing(out) as path, closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
            "CREATE TABLE regions(item TEXT, region TEXT, body BLOB, PRIMARY KEY(item, region));"
        )
        connection.execute("INSERT INTO meta VALUES ('benchmark', ?)", (benchmark.name,))
        connection.executemany(
            "INSERT OR REPLACE INTO regions VALUES (?, ?, ?)",
            (
                (
                    region.image_id,
                    shortened(region.region_id),
                    msgspec.json.encode(
                        StoredRegion(
                            shortened(region.region_id), region.bbox, region.nature,
                            _title(region.metadata),
                            msgspec.Raw(msgspec.json.encode(region.mask)),
                        )
                    ),
                )
                for region in benchmark.regions
            ),
        )  # fmt: skip
        connection.commit()


def _title(metadata: object) -> str:
    """What a region shows, in a few words; empty where its metadata do not say."""
    found = metadata.get("identity_and_taxonomy") if isinstance(metadata, dict) else None
    name = found.get("specific_type") if isinstance(found, dict) else None
    return name[:200] if isinstance(name, str) else ""


def open_index(path: Path) -> sqlite3.Connection:
    """An index, open for reading alone; whoever wrote it, nothing in it runs.

    Raises: sqlite3.Error where it is none.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    connection.row_factory = sqlite3.Row
    return connection


def meta_of(path: Path, name: str) -> str | None:
    """A remark of an index; None where there is no index, or none that can be read."""
    if not path.is_file():
        return None
    try:
        with closing(open_index(path)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None or not isinstance(row[0], str) else row[0]


def row_at(file: Path, place: tuple[int, int] | None) -> bytes | None:
    """The bytes of a row of a file of a run; None without a place."""
    if place is None or place[0] is None:
        return None
    with file.open("rb") as stream:
        stream.seek(place[0])
        return stream.read(place[1] - place[0])
