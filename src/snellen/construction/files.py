"""The files of a construction folder: rows of stages, finished units, rejections, the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from snellen.builders.steps import Made, Rejected, Row
from snellen.construction.places import Places
from snellen.construction.stages import Pipeline, Stage
from snellen.engine.journal import AppendFile, read_rows
from snellen.errors import RunFolderError
from snellen.files import write_whole
from snellen.records import JsonObject

R = TypeVar("R", bound=Row)
SCHEMA = 1

_encode = msgspec.json.Encoder().encode


class StageRecord(msgspec.Struct):
    """What happened to one stage: a row of `funnel.json`.

    `entered` (written `in`) counts its input rows, and is `kept` + `rejected`. For a stage that
    makes rows, `made` are those that it hands on, and `dropped` the candidates that failed a
    check. `reasons` counts both kinds of rejections. `counts` are further figures.
    """

    stage: str
    entered: int = msgspec.field(name="in")
    kept: int
    rejected: int
    made: int | None = None
    dropped: int = 0
    reasons: dict[str, int] = {}
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    counts: dict[str, int] = {}

    @property
    def adds_up(self) -> bool:
        """Whether every input row, and every rejection, is accounted for."""
        reasons = sum(self.reasons.values())
        return self.entered == self.kept + self.rejected and reasons == self.rejected + self.dropped


class Session(msgspec.Struct):
    """One start on a folder."""

    at: str
    snellen: str
    python: str
    until: str = ""
    only: str = ""


class BuildRecord(msgspec.Struct):
    """`build.json`: everything that would change the benchmark that is built.

    `source_digest` covers the ids and bases of the first stage's units. `models` maps a role to
    name, address and parameters of each model that plays it; `prompts` a prompt to hash and text.
    """

    kind: str
    source: str
    source_digest: str = ""
    seed: int = 0
    limit: int | None = None
    options: JsonObject = {}
    models: dict[str, list[JsonObject]] = {}
    prompts: dict[str, dict[str, str]] = {}
    sessions: list[Session] = []
    schema: int = SCHEMA


def stage_file(folder: Path, pipeline: Pipeline, stage: str) -> Path:
    """Where a stage's rows are."""
    return folder / "stages" / f"{pipeline.number(stage):02d}-{stage}.jsonl"


def read_stage(
    folder: Path, pipeline: Pipeline, stage: Stage, *, source: str = ""
) -> tuple[Any, ...] | None:
    """The rows that a stage handed on; None if it has not been run.

    `source` is where the pictures are now; without it, where `build.json` says.
    """
    path = stage_file(folder, pipeline, stage.name)
    if not path.exists():
        return None
    places = places_of(folder, source)
    return tuple(places.opened(row) for row in read_rows(path, stage.makes))


def places_of(folder: Path, source: str = "") -> Places:
    """Where the pictures of a folder are; without a source, where `build.json` says."""
    if not source and (folder / "build.json").exists():
        source = read_record(folder).source
    return Places(folder, source)


def write_lines(path: Path, rows: Iterable[object]) -> bool:
    """Writes a JSON-lines file whole or not at all; whether it differs from what was there."""
    data = b"".join(_encode(row) + b"\n" for row in rows)
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)
    return True


def write_json(path: Path, value: object) -> None:
    """Writes a JSON file whole or not at all."""
    write_whole(path, msgspec.json.format(_encode(value), indent=1) + b"\n")


def read_record(folder: Path) -> BuildRecord:
    """The `build.json` of a folder.

    Raises:
        RunFolderError: there is none, or it cannot be read.
    """
    path = folder / "build.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=BuildRecord)
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} holds nothing that is being built: there is no build.json",
            hint="give the --out of a `snellen build`",
        ) from error
    except msgspec.MsgspecError as error:
        raise RunFolderError(
            f"{path} cannot be read: {error}",
            hint="delete it and give the same command again: no call is repeated",
        ) from error


def read_funnel(folder: Path) -> list[StageRecord]:
    """The rows of `funnel.json`, in the order of the stages; none if there is no such file."""
    path = folder / "funnel.json"
    if not path.exists():
        return []
    return msgspec.json.decode(path.read_bytes(), type=list[StageRecord])


def read_rejected(folder: Path) -> list[Rejected]:
    """The rows of `rejected.jsonl`."""
    return list(read_rows(folder / "rejected.jsonl", Rejected))


class _Done(msgspec.Struct):
    """A finished unit as it is kept: its key, and what became of it."""

    unit: str
    key: str
    rows: list[msgspec.Raw] = []
    rejected: list[Rejected] = []
    dropped: list[Rejected] = []
    counts: dict[str, int] = {}


class Finished:
    """The finished units of one stage, each written once and read back at the next start.

    A unit is known by its key, the digest of all that would change its result; the last of two
    rows with one key wins. A torn last row is cut off.
    """

    def __init__(self, folder: Path, stage: Stage, places: Places) -> None:
        self._places = places
        path = folder / "work" / f"{stage.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = AppendFile(path)
        self._decoder = msgspec.json.Decoder(stage.part or stage.makes)
        self._rows = {row.key: row for row in read_rows(path, _Done)}

    def find(self, key: str) -> Made | None:
        """What became of a unit, or None."""
        row = self._rows.get(key)
        if row is None:
            return None
        rows = tuple(self._places.opened(self._decoder.decode(raw)) for raw in row.rows)
        return Made(rows, tuple(row.rejected), tuple(row.dropped), counts=row.counts)

    def keep(self, unit_id: str, key: str, made: Made) -> None:
        """Writes a finished unit; when this returns, it outlives the process."""
        rows = [msgspec.Raw(_encode(self._places.stored(row))) for row in made.rows]
        self._file.append(
            _Done(unit_id, key, rows, [*made.rejected], [*made.dropped], dict(made.counts))
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def finished_keys(folder: Path, stage: Stage) -> frozenset[str]:
    """The keys of a stage's finished units; nothing is opened for writing."""
    return frozenset(row.key for row in read_rows(folder / "work" / f"{stage.name}.jsonl", _Done))


def plain(value: object) -> object:
    """A value as it stands in a JSON file."""
    return msgspec.to_builtins(value)


def write_rejected(folder: Path, rejected: Mapping[str, Iterable[Rejected]]) -> None:
    """Writes `rejected.jsonl` from the rejections of each stage, in the order of the stages."""
    write_lines(folder / "rejected.jsonl", (one for rows in rejected.values() for one in rows))
