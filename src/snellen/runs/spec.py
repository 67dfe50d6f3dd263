"""Say what a run measures and what came out: `run.json` and `summary.json` as types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snellen.records import ModelRecord, Params

SCHEMA = 1


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
class ShardRecord:
    """Which part of a run a folder holds: shard `number` (from 1) of `of`.

    `n_items` is the number of items of the whole run, `positions` where those of this shard stand
    among them, from 0.
    """

    number: int
    of: int
    n_items: int
    positions: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """`run.json`: everything that would change a number, and when the folder was worked on.

    `items` maps the ids used to content digests. `options` are the protocol's own settings.
    `replies_from` names the folder whose replies were judged again, where that is what it is.
    `shard` is the part of a run that a folder holds, None for a whole one.
    """

    benchmark: str
    protocol: str
    data_digest: str
    items: Mapping[str, str]
    model: ModelRecord
    judge: ModelRecord
    prompts: Mapping[str, PromptRecord]
    options: Params
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
    shard: ShardRecord | None = None
    judge_check: Params | None = None
    sessions: tuple[Session, ...] = ()
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Value:
    """A metric in its three readings. Rates are fractions of 1; None where there is no value.

    `n` is the denominator, `n_items` the items and `n_clusters` the clusters behind it. `ci95`
    belongs to `value`, `scored_ci95` to `scored` where that is another number; both are clustered
    by image. `fidelity` is "low" under a judge that must not
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
    scored_ci95: tuple[float, float] | None = None


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
    usage: Params
    group_counts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    extra: Params = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA
