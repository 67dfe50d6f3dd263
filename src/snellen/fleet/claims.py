"""Claim shards one after another: workers of unlike speed share them without a coordinator."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.engine.journal import now
from snellen.errors import RunFolderError
from snellen.runs.shards import Shard
from snellen.sources.stores import Store, is_remote

_STARTED = now()


class Claim(msgspec.Struct, frozen=True):
    """Who works on a shard: the machine, its process, and since when."""

    machine: str
    process: int
    at: str

    @property
    def is_gone(self) -> bool:
        """Whether the process was of this machine and has ended."""
        if self.machine != socket.gethostname():
            return False
        if self.process == os.getpid():  # a container that was started anew counts from 1 again
            return self.at < _STARTED
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims on the shards of one run, at a place that all workers see.

    `out` is this worker's folder; each shard that it claims has a folder of its own there. Shards
    that are done are copied to the place where that is an object store.
    """

    place: str | Path
    out: Path
    of: int

    def folder(self, shard: Shard) -> Path:
        """Where this worker keeps a shard."""
        return self.out / _name(shard)

    def take(self) -> Iterator[Shard]:
        """Shards that nobody works on, each claimed before it is given.

        A shard whose worker was on this machine and lives no more is taken over.

        Raises:
            RunFolderError: the place belongs to another number of shards, or cannot be written.
        """
        store = Store(self.place)
        store.create("claims/of", str(self.of).encode())
        said = (store.read("claims/of") or b"").decode()
        if said != str(self.of):
            raise RunFolderError(
                f"{self.place} holds claims on {said} shards, not on {self.of}",
                hint=f"give --shard claim/{said}, or another --claims",
            )
        for number in range(1, self.of + 1):
            shard = Shard(number, self.of)
            generation, holder = self._holder(store, shard)
            if holder is not None and (self._is_done(store, shard) or not holder.is_gone):
                continue
            own = Claim(socket.gethostname(), os.getpid(), now())
            if store.create(_file(shard, generation), msgspec.json.encode(own)):
                yield shard

    def others(self) -> Iterator[tuple[Shard, Claim]]:
        """Shards that somebody has claimed and not finished."""
        store = Store(self.place)
        for number in range(1, self.of + 1):
            shard = Shard(number, self.of)
            _, holder = self._holder(store, shard)
            if holder is not None and not self._is_done(store, shard):
                yield shard, holder

    def finish(self, shard: Shard) -> None:
        """Marks a shard as done, and copies it to the place where that is an object store."""
        store = Store(self.place)
        if is_remote(self.place):
            store.upload(self.folder(shard), _name(shard))
        store.create(f"claims/{_name(shard)}.done", b"")

    @staticmethod
    def _holder(store: Store, shard: Shard) -> tuple[int, Claim | None]:
        """Who claimed a shard last, and the number of the claim that would follow."""
        generation, holder = 0, None
        while (data := store.read(_file(shard, generation))) is not None:
            # A claim that is just being written is somebody's.
            holder = msgspec.json.decode(data, type=Claim) if data else Claim("", 0, now())
            generation += 1
        return generation, holder

    @staticmethod
    def _is_done(store: Store, shard: Shard) -> bool:
        return store.read(f"claims/{_name(shard)}.done") is not None


def _file(shard: Shard, generation: int) -> str:
    return f"claims/{_name(shard)}.{generation}"


def _name(shard: Shard) -> str:
    return f"shard-{shard.number:0{len(str(shard.of))}d}-of-{shard.of}"
