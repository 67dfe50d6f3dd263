"""Divide a run into shards: which items a shard holds, and how a worker learns its number."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from snellen.errors import UsageError
from snellen.keys import seed_for
from snellen.records import Benchmark
from snellen.runs.spec import ShardRecord

CLAIM = "claim"
_SHARD = re.compile(r"(\d+)/(\d+)")
_AUTO = re.compile(r"auto(?:/(\d+))?")
_CLAIM = re.compile(rf"{CLAIM}/(\d+)")


class EmptyShardError(UsageError):
    """A shard that holds no item: there are fewer items than shards, or nearly so."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard of several: `number` counts from 1 to `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, item_id: str) -> bool:
        """Whether an item belongs to this shard: by a hash of its id, the same on every machine.

        >>> [Shard(k, 3).holds("cat") for k in (1, 2, 3)]
        [False, False, True]
        """
        return self == Shard.of_item(item_id, self.of)

    @classmethod
    def of_item(cls, item_id: str, of: int) -> Shard:
        """The one of so many shards that holds an item."""
        return cls(seed_for(0, item_id) % of + 1, of)


def read_shard(text: str, environ: Mapping[str, str] | None = None) -> Shard:
    """The shard that `I/N`, `auto` or `auto/N` names.

    `auto` reads the variables of a Slurm array, of the tasks of a Slurm step, or of an indexed
    Kubernetes job. The last does not say how many there are: `auto/N` does, or the variable
    `JOB_COMPLETIONS`.

    >>> str(read_shard("3/16"))
    '3/16'
    >>> str(read_shard("auto/16", {"JOB_COMPLETION_INDEX": "0"}))
    '1/16'

    Raises:
        UsageError: the text names none, or no variable does.
    """
    auto = _AUTO.fullmatch(text)
    if auto is not None:
        return _from_environment(int(auto[1] or 0), os.environ if environ is None else environ)
    found = _SHARD.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(
            f"--shard cannot be {text!r}",
            hint="give I/N with I from 1 to N, such as 3/16, or auto",
        )
    return Shard(int(found[1]), int(found[2]))


def claimed_of(text: str) -> int:
    """How many shards there are to claim, by `claim/N`.

    Raises:
        UsageError: the text is of another form.
    """
    found = _CLAIM.fullmatch(text)
    if found is None or not int(found[1]):
        raise UsageError(f"--shard cannot be {text!r}", hint="give claim/N, such as claim/64")
    return int(found[1])


def _from_environment(of: int, environ: Mapping[str, str]) -> Shard:
    """The shard that a scheduler's variables name; an index from 0 or 1 on serves alike."""
    for index, count, least in (
        ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
        ("SLURM_PROCID", "SLURM_NTASKS", ""),
        ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", ""),
    ):
        if not environ.get(index, "").isdigit():
            continue
        n = of or int(environ.get(count) or 0)
        if not n:
            raise UsageError(
                f"{index} is {environ[index]}, and nothing says of how many shards",
                hint="give --shard auto/N",
            )
        step = int(environ.get("SLURM_ARRAY_TASK_STEP") or 1) if least else 1
        first = int(environ.get(least) or 0) if least else 0
        place = (int(environ[index]) - first) // step
        if not 0 <= place < n and least in environ:
            raise UsageError(
                f"{index} is {environ[index]}, which is none of {n} shards from {first} on",
                hint="give --shard I/N",
            )
        return Shard(place % n + 1, n)
    raise UsageError(
        "no variable says which shard this is",
        hint="--shard auto reads SLURM_ARRAY_TASK_ID, SLURM_PROCID or JOB_COMPLETION_INDEX; "
        "elsewhere give --shard I/N",
    )


def cut(benchmark: Benchmark, shard: Shard) -> tuple[Benchmark, ShardRecord]:
    """The items of one shard, and where each stands among all; the digest stays that of all.

    Raises:
        EmptyShardError: the shard holds no item.
    """
    held = [(k, item) for k, item in enumerate(benchmark.items) if shard.holds(item.id)]
    if not held:
        raise EmptyShardError(
            f"shard {shard} holds none of the {len(benchmark.items)} items",
            hint="there is nothing to do for this shard; with fewer shards each holds some",
        )
    ids = {item.id for _, item in held}
    part = replace(
        benchmark,
        items=tuple(item for _, item in held),
        regions=tuple(one for one in benchmark.regions if one.image_id in ids),
    )
    positions = tuple(k for k, _ in held)
    return part, ShardRecord(shard.number, shard.of, len(benchmark.items), positions)
