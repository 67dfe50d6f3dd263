"""A judge's measured errors as types, and the file that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.records import ModelRecord, Params, ProtocolName

SCHEMA = 1


RIGHT, WRONG, UNCERTAIN = "right", "wrong", "E"


@dataclass(frozen=True, slots=True)
class Rate:
    """`hits` of `n` tries; the 95% interval is clustered by picture, None where there is none."""

    hits: int
    n: int
    ci95: tuple[float, float] | None = None

    @property
    def value(self) -> float | None:
        """The share of hits; None without tries."""
        return self.hits / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Confusion:
    """What the judge said (columns: `said`) by what was true (rows: `truths`).

    reading: whether the caption says the benchmark's answer (`right`), another (`wrong`) or
    nothing (`E`). `shares` are of the row, with intervals; `counts` has the same shape.
    """

    truths: tuple[str, ...]
    said: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[Rate, ...], ...]


@dataclass(frozen=True, slots=True)
class Position:
    """How a judge chooses when the options are shuffled (reading).

    `chosen` counts the shown letters it said, `right` the shown letters that were right, over the
    questions that the caption answers. `p_value` is that of a chi-square test that its choices
    are spread as the right ones are: even over the places. `same_content`: questions that got
    the same option under both orders.
    """

    chosen: Mapping[str, int]
    right: Mapping[str, int]
    p_value: float | None
    same_content: Rate


@dataclass(frozen=True, slots=True)
class ProtocolCheck:
    """What was measured under one protocol.

    `prompts` maps purposes to hashes, `params` are what was sent to the judge. `rates`, and the
    same by half of the labelled material or `facts` (`sources`), have their names as keys.
    `same_again` is agreement with itself on repeats, None without them. `calls` were made in
    `seconds` in all; usage is as in a run's summary. `confusions` are those of `labelled` replies
    and of captions from `facts` alone; negated facts, rare in real captions, are in none.
    """

    protocol: ProtocolName
    prompts: Mapping[str, str]
    n_items: int
    n_pictures: int
    rates: Mapping[str, Rate]
    sources: Mapping[str, Mapping[str, Rate]]
    confusion: Confusion
    unscored_by_reason: Mapping[str, int]
    same_again: Rate | None
    position: Position | None
    calls: int
    seconds: float
    params: Params = field(default_factory=dict)
    usage: Params = field(default_factory=dict)
    confusions: Mapping[str, Confusion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """`judge_check.json`: a judge's measured errors under each protocol.

    `material` says where the facts came from, and the digest of all items by protocol.
    """

    judge: ModelRecord
    at: str
    snellen: str
    seed: int
    material: Mapping[str, str]
    protocols: Mapping[str, ProtocolCheck]
    schema: int = SCHEMA


def read_check(path: str | Path) -> JudgeCheck:
    """A `judge_check.json`, or the one in a folder.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    file = Path(path)
    file = file / "judge_check.json" if file.is_dir() else file
    hint = "give the judge_check.json that `snellen judge-check --out DIR` wrote"
    try:
        found = msgspec.json.decode(file.read_bytes(), type=JudgeCheck)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=file, hint=hint) from error
    except msgspec.MsgspecError as error:
        raise DataError(f"is no judge check: {error}", file=file, hint=hint) from error
    if found.schema > SCHEMA:
        raise DataError(f"has schema {found.schema}", file=file, hint="update snellen")
    return found
