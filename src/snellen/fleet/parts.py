"""The parts of a shared run: folders of shards below the run's own, made and united again.

One process divides the items, so that no worker holds more than its shards; one unites the parts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from snellen.engine.journal import read_rows
from snellen.fleet.merge import merge
from snellen.records import Benchmark, Item, ReplyRow, walk
from snellen.runs.folder import load_summary, write_json
from snellen.runs.plan import GivenReplies, load_asked, plan_for
from snellen.runs.request import RunRequest
from snellen.runs.run import PARTS, Plan, data_notices, write_items
from snellen.runs.shards import Shard
from snellen.runs.spec import RunSpec, ShardRecord, Summary

# So many shards a worker at least, so that a slow one or a lost one holds up little.
SHARDS_A_WORKER = 4
# And no more items and questions a shard, so that a worker stays small.
MOST_ITEMS, MOST_PROBES = 500, 10_000

_encode = msgspec.json.Encoder().encode


class _Row(msgspec.Struct):
    item: str


class _Asked(msgspec.Struct):
    """`asked.json` of a part: the benchmark without its items, and which part this is."""

    benchmark: Benchmark
    shard: ShardRecord
    given_name: str
    has_given: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """The folders of the shards of a run: how many there are, those to do, and what all hold.

    `n_done` and `spent_usd` are of shards that were complete already.
    """

    out: Path
    of: int
    waiting: tuple[int, ...] = ()
    n_items: int = 0
    n_probes: int = 0
    n_done: int = 0
    spent_usd: float = 0.0
    notices: tuple[str, ...] = field(default=())

    @property
    def folder(self) -> Path:
        """The folder of all parts."""
        return self.out / PARTS

    @property
    def n_shards(self) -> int:
        """How many shards hold items."""
        return len(self.waiting) + self.n_done

    def part(self, number: int) -> Path:
        """The folder of one shard."""
        return part_folder(self.folder, number, self.of)


def part_folder(parts: Path, number: int, of: int) -> Path:
    """Where a shard of a shared run is kept."""
    return parts / f"{number:0{len(str(of))}d}-of-{of}"


def divide(request: RunRequest, n_workers: int) -> Parts:
    """Divides the items of a run among shards, and gives each a folder with all that it needs.

    What the run has in its own journal already goes into the journals of its parts. Parts that are
    there stay as many as they are.

    Raises:
        SnellenError: the benchmark or a setting is wrong.
    """
    benchmark, given = load_asked(request)
    n_items, out = len(benchmark.items), Path(request.out)
    n_probes = sum(len(item.probes) for item in benchmark.items)
    wanted = max(
        n_workers * SHARDS_A_WORKER,
        math.ceil(n_items / MOST_ITEMS),
        math.ceil(n_probes / MOST_PROBES),
    )
    of = _open(out, min(wanted, n_items))
    notices = given.notices + data_notices(benchmark.items, given.rows)
    held: dict[int, list[int]] = {}
    for place, item in enumerate(benchmark.items):
        held.setdefault(Shard.of_item(item.id, of).number, []).append(place)
    waiting, n_done, spent = [], 0, 0.0
    for number, places in sorted(held.items()):
        folder = part_folder(out / PARTS, number, of)
        record = ShardRecord(number, of, n_items, tuple(places))
        _write_part(folder, benchmark, record, given)
        summary = load_summary(folder)
        if _is_done(summary) and summary is not None:
            n_done += 1
            spent += float(summary.usage.get("cost_usd") or 0.0)
        else:
            waiting.append(number)
    return Parts(
        out, of, tuple(waiting), request.repeat * n_items, request.repeat * n_probes, n_done, spent,
        notices,
    )  # fmt: skip


def _is_done(summary: Summary | None) -> bool:
    return summary is not None and summary.status == "complete" and not summary.counts.unscored


def _open(out: Path, of: int) -> int:
    """Makes the folder of the parts, unless there is one; how many parts there are."""
    noted = out / PARTS / "of"
    if noted.exists():
        return int(noted.read_text())
    made = out / f"{PARTS}.new"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    if (out / "calls.jsonl").exists():
        for number, lines in _by_shard(out / "calls.jsonl", of):
            folder = part_folder(made, number, of)
            folder.mkdir(exist_ok=True)
            with (folder / "calls.jsonl").open("ab") as file:
                file.writelines(lines)
    (made / "of").write_text(str(of))
    made.replace(out / PARTS)
    return of


def _by_shard(journal: Path, of: int) -> Iterator[tuple[int, list[bytes]]]:
    """The rows of a journal by the shard of their item, some thousands at a time."""
    decode = msgspec.json.Decoder(_Row).decode
    held: dict[int, list[bytes]] = {}
    with journal.open("rb") as lines:
        for count, line in enumerate(lines, 1):
            try:
                item = decode(line).item
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            held.setdefault(Shard.of_item(item, of).number, []).append(line)
            if not count % 10_000:
                yield from held.items()
                held = {}
    yield from held.items()


def _write_part(
    folder: Path, benchmark: Benchmark, record: ShardRecord, given: GivenReplies
) -> None:
    """Writes what a worker needs of a part: its items, and the replies to them that exist."""
    items = [benchmark.items[place] for place in record.positions]
    folder.mkdir(parents=True, exist_ok=True)
    write_items(items, folder / "asked-items.jsonl")
    if given.rows is not None:
        places = walk(items, 1 + max((repeat for _, repeat in given.rows), default=0))
        rows = [given.rows.get((item.id, repeat)) for item, repeat in places]
        with (folder / "asked-replies.jsonl").open("wb") as file:
            file.writelines(_encode(row) + b"\n" for row in rows if row is not None)
    bare = replace(benchmark, items=(), regions=(), broken=())
    write_json(folder / "asked.json", _Asked(bare, record, given.name, given.rows is not None))


def part_plan(request: RunRequest, folder: Path) -> Plan:
    """The plan of a part that `divide` has made; its summary has counts and no metrics."""
    asked = msgspec.json.decode((folder / "asked.json").read_bytes(), type=_Asked)
    items = tuple(read_rows(folder / "asked-items.jsonl", Item))
    given = GivenReplies()
    if asked.has_given:
        rows = read_rows(folder / "asked-replies.jsonl", ReplyRow)
        given = GivenReplies(asked.given_name, {(row.id, row.repeat): row for row in rows})
    plan = plan_for(
        replace(request, out=folder), replace(asked.benchmark, items=items), given=given
    )
    return replace(plan, shard=asked.shard, is_part=True)


def unite(parts: Parts) -> tuple[RunSpec, Summary] | None:
    """Unites the parts into the run's own folder; None where no part has begun.

    The specification comes without its items, of which there may be many.
    """
    begun: Sequence[Path] = [
        folder for folder in sorted(parts.folder.iterdir()) if (folder / "run.json").exists()
    ]
    if not begun:
        return None
    made = parts.out / "united"
    shutil.rmtree(made, ignore_errors=True)
    merged = merge(begun, made)
    for file in made.iterdir():
        file.replace(parts.out / file.name)
    made.rmdir()
    return replace(merged.run.spec, items={}), merged.summary
