"""Unite the folders of shards into one run: journals by address, replies and verdicts by key."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from snellen.engine.journal import read_rows
from snellen.errors import RunFolderError, UsageError
from snellen.records import Item, ReplyRow, Verdict
from snellen.runs.folder import Run, find_runs, load_summary, read_spec, write_json
from snellen.runs.run import compared_fields, first_change, write_items
from snellen.runs.spec import RunSpec, ShardRecord, Summary
from snellen.runs.summary import summarise
from snellen.sources.stores import copied_here, is_remote

_encode = msgspec.json.Encoder().encode
Place = tuple[str, int]
"""An item's id and its repeat."""


class _Said(msgspec.Struct, frozen=True):
    text: str


class _Row(msgspec.Struct, frozen=True):
    """What of a call tells it from others: its address, its request, and what was answered."""

    item: str
    repeat: int
    purpose: str
    probe: str
    ask: int
    key: str
    reply: _Said | None = None

    @property
    def within(self) -> tuple[str, str, int]:
        """Its address within the item and repeat."""
        return self.purpose, self.probe, self.ask

    @property
    def text(self) -> str | None:
        return None if self.reply is None else self.reply.text


@dataclass(frozen=True, slots=True)
class Part:
    """A folder that is united with others: its name as it was given, and where it is read."""

    name: str
    folder: Path
    spec: RunSpec
    shard: ShardRecord
    summary: Summary | None

    @property
    def is_complete(self) -> bool:
        """Whether its worker came to the end."""
        return self.summary is not None and self.summary.status == "complete"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge came to.

    `repeats` counts calls that were in two folders, of which the first was kept; `left_out` calls
    of a second run of an item that follow another reply than the one kept. `missing` names absent
    shards, `unfinished` folders whose worker has not come to its end; `n_missing` counts items.
    """

    run: Run
    summary: Summary
    n_calls: int
    repeats: int = 0
    left_out: int = 0
    missing: tuple[str, ...] = ()
    n_missing: int = 0
    unfinished: tuple[str, ...] = ()

    def notices(self) -> Iterator[str]:
        """What is to be known beside the numbers."""
        if self.repeats:
            yield f"{self.repeats:,} calls were in more than one folder: the first was kept"
        if self.left_out:
            yield (
                f"{self.left_out:,} calls of a second run of their items were left out: they "
                "follow other replies than those kept"
            )
        if self.missing:
            yield f"missing: shards {', '.join(self.missing)}, {self.n_missing:,} items"
        if self.unfinished:
            yield f"not finished: {', '.join(self.unfinished)}"


def merge(folders: Sequence[str | Path], out: str | Path) -> Merged:
    """Unites run folders, or all below the folders given, into one run folder.

    Folders may be addresses that fsspec knows. What a call cost is the sum of all folders.

    Raises:
        RunFolderError: the folders are of different runs, hold another request at one address, or
            `out` holds something already.
        DataError: a file of a folder is damaged.
    """
    target = Path(out)
    if target.exists() and any(target.iterdir()):
        raise RunFolderError(f"{target} is not empty", hint="give another --out")
    with tempfile.TemporaryDirectory(prefix="snellen-merge-") as scratch:
        parts = _parts(folders, Path(scratch))
        _check_alike(parts)
        part_done = target.with_name(target.name + ".part")
        shutil.rmtree(part_done, ignore_errors=True)
        try:
            merged = _unite(parts, part_done)
            part_done.replace(target)
        finally:
            shutil.rmtree(part_done, ignore_errors=True)
    return replace(merged, run=replace(merged.run, folder=target))


def _parts(folders: Sequence[str | Path], scratch: Path) -> list[Part]:
    if not folders:
        raise UsageError("no folder to merge", hint="give the folders of all shards")
    found: dict[str, Path] = {}
    for number, place in enumerate(folders):
        if is_remote(place):
            found |= dict(copied_here(str(place), scratch / str(number)))
        else:
            found |= {str(folder): folder for folder in find_runs((place,))}
    if not found:
        raise RunFolderError(f"{folders[0]} holds no run", hint="give the folders of all shards")
    return [_part(name, folder) for name, folder in found.items()]


def _part(name: str, folder: Path) -> Part:
    spec = read_spec(folder)
    n = len(spec.items)
    return Part(
        name, folder, spec, spec.shard or ShardRecord(1, 1, n, tuple(range(n))),
        load_summary(folder),
    )  # fmt: skip


def _check_alike(parts: Sequence[Part]) -> None:
    """Refuses folders that are not of one run.

    Raises:
        RunFolderError: two folders differ, with the difference named.
    """
    first, *others = parts
    digests: dict[str, tuple[str, str]] = {}
    for other in others:
        differences = [
            first_change(name, a, b)
            for name, a, b in compared_fields(first.spec, other.spec)
            if a != b and name != "shard"
        ]
        if first.spec.data_digest != other.spec.data_digest:
            differences.append("the data, --limit or --subset")
        if (first.shard.of, first.shard.n_items) != (other.shard.of, other.shard.n_items):
            differences.append(
                f"{first.shard.of} shards of {first.shard.n_items} items and {other.shard.of} of "
                f"{other.shard.n_items}"
            )
        if differences:
            raise RunFolderError(
                f"{first.name} and {other.name} are of different runs: {'; '.join(differences)}",
                hint="merge the shards of one run, all started with the same settings",
            )
    for part in parts:
        for name, digest in part.spec.items.items():
            known, where = digests.setdefault(name, (digest, part.name))
            if known != digest:
                raise RunFolderError(f"item {name} is not the same in {where} and {part.name}")


def _unite(parts: Sequence[Part], out: Path) -> Merged:
    out.mkdir(parents=True)
    held = Counter(name for part in parts for name in part.spec.items)
    shared = {name for name, n in held.items() if n > 1}
    with (out / "calls.jsonl").open("wb") as journal:
        united = _Journals(journal, shared)
        for part in parts:
            united.add(part)
    items = _items_of(parts)
    spec = _spec_of(parts, items)
    replies, verdicts = _rows_of(parts, united)
    write_json(out / "run.json", spec)
    write_items(items, out / "items.jsonl")
    for name, rows in (("replies", replies.values()), ("verdicts", verdicts.values())):
        with (out / f"{name}.jsonl").open("wb") as file:
            file.writelines(_encode(row) + b"\n" for row in rows)
    run = Run(out, spec, items, replies, verdicts, None)
    merged = _ended(parts, run, united)
    write_json(out / "summary.json", merged.summary)
    return merged


def _ended(parts: Sequence[Part], run: Run, united: _Journals) -> Merged:
    """The summary of what was united, and what is missing."""
    n_missing = parts[0].shard.n_items - len(run.items)
    numbers = {part.shard.number for part in parts}
    missing = tuple(
        f"{number}/{parts[0].shard.of}"
        for number in range(1, parts[0].shard.of + 1)
        if n_missing and number not in numbers
    )
    done = {part.shard.number for part in parts if part.is_complete}
    unfinished = tuple(part.name for part in parts if part.shard.number not in done)
    is_whole = not n_missing and not unfinished
    summary = summarise(run, status="complete" if is_whole else "incomplete")
    notes = summary.notes
    if missing:
        notes += (f"shards {', '.join(missing)} are missing: {n_missing:,} items",)
    summary = replace(summary, usage=_usage_of(parts), notes=notes)
    return Merged(
        replace(run, summary=summary), summary, united.n_calls, united.repeats, united.left_out,
        missing, n_missing, unfinished,
    )  # fmt: skip


@dataclass(slots=True)
class _Journals:
    """Unites journals into one: rows of items in one folder as they stand, the others by address.

    `takers` says which folders' rows were taken for an item and repeat that several hold.
    """

    file: BinaryIO
    shared: set[str]
    n_calls: int = 0
    repeats: int = 0
    left_out: int = 0
    takers: dict[Place, list[str]] = field(default_factory=dict)
    _kept: dict[Place, dict[tuple[str, str, int], _Row]] = field(default_factory=dict)
    _names: dict[Place, str] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        """Adds the journal of a folder; a torn last row is left out."""
        path = part.folder / "calls.jsonl"
        if not path.exists():
            return
        decode = msgspec.json.Decoder(_Row).decode
        groups: dict[Place, dict[tuple[str, str, int], tuple[_Row, bytes]]] = {}
        is_alone = self.shared.isdisjoint(part.spec.items)
        with path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                if is_alone:
                    self._write(line)
                    continue
                try:
                    row = decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    continue  # as when a run goes on: such a call is made again
                if row.item in self.shared:
                    groups.setdefault((row.item, row.repeat), {})[row.within] = (row, line)
                else:
                    self._write(line)
        for place, rows in groups.items():
            self._add_item(place, rows, part)

    def _write(self, line: bytes) -> None:
        self.file.write(line)
        self.n_calls += 1

    def _add_item(
        self,
        place: Place,
        rows: Mapping[tuple[str, str, int], tuple[_Row, bytes]],
        part: Part,
    ) -> None:
        """Adds the calls of an item that several folders hold.

        Where a second run of the item got another reply, what follows from it is left out.
        """
        kept = self._kept.setdefault(place, {})
        first = self._names.setdefault(place, part.name)
        both = [(kept[where], row) for where, (row, _) in rows.items() if where in kept]
        answered = [(a, b) for a, b in both if a.key == b.key and a.reply and b.reply]
        self.repeats += len(both)
        if any(a.text != b.text for a, b in answered):
            self.left_out += sum(where not in kept for where in rows)
            return
        for known, row in both:
            if known.key != row.key:
                raise RunFolderError(
                    f"{first} and {part.name} hold different requests for item {row.item!r}, "
                    f"{row.purpose} {row.probe} (repeat {row.repeat}, ask {row.ask})",
                    hint="they are not of the same run: leave one of both folders out",
                )
        self.takers.setdefault(place, []).append(part.name)
        for where, (row, line) in rows.items():
            known_row = kept.get(where)
            if known_row is None or (known_row.reply is None and row.reply is not None):
                self.n_calls -= known_row is not None
                self._write(line)
                kept[where] = row


def _items_of(parts: Sequence[Part]) -> tuple[Item, ...]:
    """All items in the order of the whole run."""
    found: dict[int, Item] = {}
    for part in parts:
        places = dict(zip(part.spec.items, part.shard.positions, strict=True))
        for item in read_rows(part.folder / "items.jsonl", Item):
            found.setdefault(places[item.id], item)
    return tuple(found[place] for place in sorted(found))


def _spec_of(parts: Sequence[Part], items: Sequence[Item]) -> RunSpec:
    """`run.json` of the whole run, with the starts of all workers."""
    sessions = chain.from_iterable(part.spec.sessions for part in parts)
    checks = [part.spec.judge_check for part in parts if part.spec.judge_check is not None]
    return replace(
        parts[0].spec,
        items={item.id: item.digest for item in items},
        shard=None,
        sessions=tuple(sorted(sessions, key=lambda session: session.at)),
        judge_check=checks[0] if checks else None,
    )


def _rows_of(
    parts: Sequence[Part], united: _Journals
) -> tuple[dict[Place, ReplyRow], dict[tuple[str, int, str], Verdict]]:
    """Replies and verdicts; of a repeat the first, unless that one failed and the later did not."""
    replies: dict[Place, ReplyRow] = {}
    verdicts: dict[tuple[str, int, str], Verdict] = {}
    for part in parts:
        own_replies: dict[Place, ReplyRow] = {}
        own_verdicts: dict[tuple[str, int, str], Verdict] = {}
        for row in read_rows(part.folder / "replies.jsonl", ReplyRow):
            own_replies[row.id, row.repeat] = row
        for verdict in read_rows(part.folder / "verdicts.jsonl", Verdict):
            own_verdicts[verdict.id, verdict.repeat, verdict.probe_id] = verdict
        for place, row in own_replies.items():
            if _may_give(part, place, united) and (place not in replies or replies[place].failure):
                replies[place] = row
        for key, verdict in own_verdicts.items():
            if _may_give(part, key[:2], united) and (
                key not in verdicts or verdicts[key].status == "unscored" != verdict.status
            ):
                verdicts[key] = verdict
    return replies, verdicts


def _may_give(part: Part, place: Place, united: _Journals) -> bool:
    """Whether a folder's rows for an item and repeat go with the calls that were kept."""
    return place[0] not in united.shared or part.name in united.takers.get(place, (part.name,))


def _usage_of(parts: Sequence[Part]) -> dict[str, object]:
    """Tokens, calls and cost of all folders; unknown where a folder's is."""
    total: dict[str, dict[str, float | None]] = {}
    costs: list[float | None] = []
    for part in parts:
        usage = {} if part.summary is None else part.summary.usage
        costs.append(usage.get("cost_usd"))
        for role, counted in usage.items():
            if isinstance(counted, Mapping):
                kept = total.setdefault(role, {})
                for name, n in counted.items():
                    known = kept.get(name, 0)
                    kept[name] = None if n is None or known is None else known + n
    known_costs = [cost for cost in costs if cost is not None]
    whole = sum(known_costs) if len(known_costs) == len(parts) else None
    return {**total, "cost_usd": whole}
