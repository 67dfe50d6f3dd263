"""A run folder as data: what was measured and how, and everything that came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from snellen.errors import RunFolderError
from snellen.journal import read_rows
from snellen.protocols import PROTOCOLS, Protocol, protocol_of
from snellen.records import Item, ReplyRow, Verdict
from snellen.tallies import ProbeTable, Tally, probe_table

SCHEMA = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Party:
    """A model or a judge as it stands in `run.json`: never a key, never credentials in the URL.

    `members` are the judges of a panel, whose rule stands in `params`.
    """

    name: str
    url: str = ""
    model: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    license: str = ""
    released: str = ""
    revision: str = ""
    quantization: str = ""
    fidelity: str = ""
    members: tuple[Party, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """A prompt as it was used."""

    name: str
    sha256: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """One start of the program on this folder."""

    at: str
    snellen: str
    python: str


@dataclass(frozen=True, slots=True)
class RunSpec:
    """`run.json`: everything that would change a number, and when the folder was worked on.

    `items` maps the ids used to content digests. `options` are the protocol's own settings.
    `replies_from` names the folder whose replies were judged again, where that is what it is.
    """

    benchmark: str
    protocol: str
    data_digest: str
    items: Mapping[str, str]
    model: Party
    judge: Party
    prompts: Mapping[str, PromptRecord]
    options: Mapping[str, Any]
    benchmark_version: str = ""
    license: str = ""
    source: str = ""
    revision: str = ""
    image_preparation: str = ""
    tokenizer: str = "o200k_base"
    seed: int = 0
    repeats: int = 1
    skipped_rows: tuple[str, ...] = ()
    replies_from: str = ""
    judge_check: Mapping[str, Any] | None = None
    sessions: tuple[Session, ...] = ()
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Value:
    """A metric in its three readings. Rates are fractions of 1; None where there is no value.

    `n` is the denominator, `n_items` the items and `n_clusters` the clusters behind it. `ci95`
    belongs to `value` and is clustered by image. `fidelity` is "low" under a judge that must not
    be compared with published numbers. `few` warns of fewer than 20 clusters.
    """

    value: float | None
    scored: float | None
    upper: float | None
    ci95: tuple[float, float] | None
    n: float
    n_items: int
    lower: float | None = None
    left_out: int = 0
    few: bool = False
    fidelity: str = ""
    n_clusters: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there were of each; a probe is right, abstained, otherwise wrong, or unscored.

    `bad_rows` are rows of the data that `--on-bad-row skip` left out: they are no items.
    """

    items: int = 0
    probes: int = 0
    correct: int = 0
    uncertain: int = 0
    scored: int = 0
    unscored: int = 0
    skipped: int = 0
    bad_rows: int = 0
    unscored_by_reason: Mapping[str, int] = field(default_factory=dict)
    scored_by_reason: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """The metrics of one label of a breakdown, with its own counts."""

    metrics: Mapping[str, Value]
    n_probes: int
    n_scored: int
    n_items: int


@dataclass(frozen=True, slots=True)
class Summary:
    """`summary.json`. `by` maps dimension, label and metric name to a value."""

    benchmark: str
    protocol: str
    model: str
    judge: str
    status: str
    counts: Counts
    metrics: Mapping[str, Value]
    by: Mapping[str, Mapping[str, Mapping[str, Value]]]
    usage: Mapping[str, Any]
    group_counts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA


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

    def tally(self) -> Tally:
        """Counts by cluster, with the protocol's metrics."""
        return self.protocol.tally(self.table(), self.replies)


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
    summary_file = folder / "summary.json"
    summary = _read_json(summary_file, Summary) if summary_file.exists() else None
    return Run(folder, spec, items, replies, verdicts, summary)


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
    if spec.protocol not in PROTOCOLS:
        raise RunFolderError(
            f"{file} names an unknown protocol `{spec.protocol}`",
            hint="there are direct, reading and rubric; a newer snellen may know more",
        )
    return spec


def _read_json(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise RunFolderError(
            f"{file} cannot be read: {error}",
            hint="it was changed by hand or by another program; delete it and give the same "
            "command again, which writes it anew and repeats no call",
        ) from error


def write_json(file: Path, value: Any) -> None:
    """Writes a file whole or not at all."""
    data = msgspec.json.format(msgspec.json.encode(value), indent=1)
    part = file.with_name(file.name + ".part")
    part.write_bytes(data + b"\n")
    part.replace(file)


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
