"""A run folder as data: read, found, and written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from snellen.engine.journal import read_rows
from snellen.errors import MissingExtraError, RunFolderError
from snellen.files import open_regular, write_whole
from snellen.metrics import ProbeTable, Tally, probe_table
from snellen.protocols import PROTOCOLS, Protocol, protocol_of
from snellen.protocols.protocol import RunView
from snellen.records import Item, ReplyRow, Verdict
from snellen.runs.samples import Sample, samples_of
from snellen.runs.spec import SCHEMA, RunSpec, Summary
from snellen.templates import Template

T = TypeVar("T")

MOST_REPEATS = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A run folder, read. `replies` are by (id, repeat), `verdicts` by (id, repeat, probe)."""

    folder: Path
    spec: RunSpec
    items: tuple[Item, ...]
    replies: Mapping[tuple[str, int], ReplyRow]
    verdicts: Mapping[tuple[str, int, str], Verdict]
    summary: Summary | None

    def __repr__(self) -> str:
        """One line: in full, a notebook's cell would hold every item, reply and verdict."""
        spec, state = self.spec, "unfinished" if self.summary is None else self.summary.status
        return (
            f"<Run of {spec.model.name} on {spec.benchmark}, judged by {spec.judge.name}: "
            f"{len(self.items)} items, {len(self.verdicts)} verdicts, {state}, in {self.folder}>"
        )

    @property
    def protocol(self) -> Protocol:
        """The protocol it was made under."""
        return protocol_of(self.spec.protocol, self.spec.benchmark)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.spec.model.name

    def table(self) -> ProbeTable:
        """All probes in columns; a probe without a verdict is unscored."""
        return probe_table(self.items, self.verdicts, repeats=self.spec.repeats)

    def samples(self) -> Iterator[Sample]:
        """One row a sample and probe, in the order of the items."""
        return samples_of(self.items, self.replies, self.verdicts, repeats=self.spec.repeats)

    def to_pandas(self) -> Any:
        """The samples as a pandas DataFrame, one row a sample and probe.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("pandas", extra="pandas") from error
        names = [field.name for field in fields(Sample)]
        rows = ([getattr(sample, name) for name in names] for sample in self.samples())
        return pandas.DataFrame(rows, columns=names)

    def tally(self) -> Tally:
        """Counts by cluster, with the protocol's metrics."""
        return self.protocol.tally(self.table(), self.replies)

    def view(self, table: ProbeTable | None = None) -> RunView:
        """What the protocol may read of the run; `table` spares making it anew."""
        return RunView(
            options=self.spec.options,
            prompts={k: Template(p.name, p.text) for k, p in self.spec.prompts.items()},
            items=self.items,
            replies=self.replies,
            verdicts=self.verdicts,
            table=self.table() if table is None else table,
            repeats=self.spec.repeats,
        )


def load_run(path: str | Path) -> Run:
    """Reads a run folder.

    Raises:
        RunFolderError: it is no run folder, or was written by a newer version.
        DataError: one of its files was damaged.
    """
    folder = Path(path)
    spec = read_spec(folder)
    replies = {(r.id, r.repeat): r for r in read_rows(folder / "replies.jsonl", ReplyRow)}
    verdicts = {
        (v.id, v.repeat, v.probe_id): v for v in read_rows(folder / "verdicts.jsonl", Verdict)
    }
    items = tuple(i for i in read_rows(folder / "items.jsonl", Item) if i.id in spec.items)
    return Run(folder, spec, items, replies, verdicts, load_summary(folder))


def load_summary(folder: Path) -> Summary | None:
    """The `summary.json` of a folder; None where a run has not come to write one."""
    file = folder / "summary.json"
    return _read_json(file, Summary) if file.exists() else None


def read_spec(folder: Path) -> RunSpec:
    """The `run.json` of a folder."""
    file = folder / "run.json"
    if not file.exists():
        raise RunFolderError(
            f"{folder} is no run folder: it has no run.json",
            hint="give the --out of a `snellen run`; a folder of several runs has one each below",
        )
    spec = _read_json(file, RunSpec)
    if spec.schema > SCHEMA:
        raise RunFolderError(
            f"{file} has schema {spec.schema}, this version reads up to {SCHEMA}",
            hint="update snellen",
        )
    if not 1 <= spec.repeats <= MOST_REPEATS:
        raise RunFolderError(
            f"{file} has {spec.repeats} repeats of each item; a run has 1 to {MOST_REPEATS}",
            hint="the file was changed by hand or by another program; restore it",
        )
    known = [name for name, one in PROTOCOLS.items() if not one.on_disk]
    if spec.protocol not in known:
        raise RunFolderError(
            f"{file} names an unknown protocol `{spec.protocol}`",
            hint=f"there are: {', '.join(known)}; a newer snellen may know more",
        )
    return spec


def _read_json(file: Path, kind: type[T]) -> T:
    try:
        with open_regular(file) as stream:
            return msgspec.json.decode(stream.read(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise RunFolderError(
            f"{file} cannot be read: {error}",
            hint="it was changed by hand or by another program; delete it and give the same "
            "command again, which writes it anew and repeats no call",
        ) from error


def write_json(file: Path, value: object) -> None:
    """Writes a file whole or not at all."""
    write_whole(file, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def find_runs(paths: tuple[str | Path, ...]) -> list[Path]:
    """Run folders from paths: each path itself, or every run below it."""
    found: list[Path] = []
    for path in map(Path, paths):
        if (path / "run.json").exists():
            found.append(path)
            continue
        below = sorted(file.parent for file in path.rglob("run.json"))
        if not below:
            raise RunFolderError(
                f"{path} holds no run", hint="give the --out of a `snellen run`, or `snellen demo`"
            )
        found.extend(below)
    return found
