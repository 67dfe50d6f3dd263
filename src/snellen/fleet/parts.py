"""The parts of a shared run: folders of shards below the run's own, made and united again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from snellen.fleet.merge import merge
from snellen.fleet.worker import part_folder
from snellen.runs.folder import load_summary
from snellen.runs.run import PARTS
from snellen.runs.shards import Shard
from snellen.runs.spec import RunSpec, Summary

_OF = "of"


class _Row(msgspec.Struct):
    item: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The folders of the shards of a run that workers share; `of` is how many there are."""

    out: Path
    of: int

    @property
    def folder(self) -> Path:
        """The folder of all parts."""
        return self.out / PARTS

    @classmethod
    def open(cls, out: Path, of: int) -> Parts:
        """The parts of a run: those that are there, or as many as are wanted.

        What the run has in its own journal already goes into the journals of its parts.
        """
        noted = out / PARTS / _OF
        if noted.exists():
            return cls(out, int(noted.read_text()))
        made = out / f"{PARTS}.new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        if (out / "calls.jsonl").exists():
            for number, lines in _by_shard(out / "calls.jsonl", of):
                folder = part_folder(made, number, of)
                folder.mkdir(exist_ok=True)
                with (folder / "calls.jsonl").open("ab") as file:
                    file.writelines(lines)
        (made / _OF).write_text(str(of))
        made.replace(out / PARTS)
        return cls(out, of)

    def done(self) -> tuple[set[int], float]:
        """The shards that are complete, and what those have cost."""
        found, spent = set[int](), 0.0
        for number in range(1, self.of + 1):
            summary = load_summary(part_folder(self.folder, number, self.of))
            if summary is not None and summary.status == "complete" and not summary.counts.unscored:
                found.add(number)
                spent += float(summary.usage.get("cost_usd") or 0.0)
        return found, spent


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


def unite(parts: Parts) -> tuple[RunSpec, Summary] | None:
    """Unites the parts into the run's own folder; None where no part has begun.

    The specification comes without its items, of which there may be many.
    """
    begun = [folder for folder in sorted(parts.folder.iterdir()) if (folder / "run.json").exists()]
    if not begun:
        return None
    made = parts.out / "united"
    shutil.rmtree(made, ignore_errors=True)
    merged = merge(begun, made)
    for file in made.iterdir():
        file.replace(parts.out / file.name)
    made.rmdir()
    return replace(merged.run.spec, items={}), merged.summary
