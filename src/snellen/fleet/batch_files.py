"""The files of a batch run: what was sent, in which lines, and lines read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from snellen.endpoints.batch_lines import BatchFormat, Sent
from snellen.endpoints.bind import Binding
from snellen.engine.journal import CallRow, now
from snellen.errors import DataError, UsageError
from snellen.records import CallFailure, JsonObject, Request


class Sending(msgspec.Struct, frozen=True):
    """`batch/batch.json`: how a run is sent, and how far it is.

    `token` stands in the names of all calls. `price` is the share of the usual price that a batch
    costs. `pictures_url` is where pictures are fetched from; empty: they are sent along.
    """

    format: str
    token: str
    request: dict[str, object]
    price: float = 0.5
    pictures_url: str = ""
    round: int = 0
    is_done: bool = False


class SentCall(msgspec.Struct, frozen=True):
    """A row of `batch/sent.jsonl`: a call's name in the files, and its place in the run.

    `tries` counts how often it was sent so far.
    """

    name: str
    round: int
    file: str
    item: str
    repeat: int
    purpose: str
    probe: str
    ask: int
    key: str
    role: str
    tries: int = 1

    @property
    def address(self) -> str:
        """Its place, as the journal knows it."""
        return "\x1f".join((self.item, str(self.repeat), self.purpose, self.probe, str(self.ask)))


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that a flow waits for, with its role's binding and its key."""

    item: str
    repeat: int
    request: Request
    binding: Binding
    key: str

    def row(self, failure: CallFailure) -> CallRow:
        """The call with a failure that kept it from being sent, for the journal."""
        asked = self.request
        return CallRow(
            self.item, self.repeat, asked.purpose, asked.probe, asked.ask, self.key, asked.role,
            failure=failure, at=now(),
        )  # fmt: skip

    def sent(self, name: str, number: int, file: str, *, tries: int) -> SentCall:
        """The call as it stands in a file of a round."""
        asked = self.request
        return SentCall(
            name, number, file, self.item, self.repeat, asked.purpose, asked.probe, asked.ask,
            self.key, asked.role, tries,
        )  # fmt: skip


class RoundWriter:
    """Writes the calls of a round, a file for each role, split by the limits of the format."""

    def __init__(self, folder: Path, kind: BatchFormat) -> None:
        self.counts: dict[Path, int] = {}
        self.sent: list[SentCall] = []
        self._folder, self._format = folder, kind
        self._open: dict[str, tuple[Path, BinaryIO]] = {}
        self._bytes: Counter[Path] = Counter()

    def __enter__(self) -> RoundWriter:
        self._folder.mkdir(parents=True, exist_ok=True)
        for file in self._folder.glob("*.jsonl"):
            file.unlink()
        return self

    def __exit__(self, *_error: object) -> None:
        for _, stream in self._open.values():
            stream.close()
        if not self.counts:
            self._folder.rmdir()

    def add(self, name: str, call: OpenCall, pictures: Sequence[Sent]) -> str:
        """Writes a call, and gives the name of the file that it is in.

        Raises:
            UsageError: the call alone is larger than a file may be.
        """
        role, endpoint = call.request.role, call.binding.endpoint
        line = self._format.write(name, call.request, pictures, endpoint) + b"\n"
        most = self._format.most_bytes
        if len(line) > most:
            raise UsageError(
                f"a call of item {call.item} has {len(line) / 1e6:.0f} MB, more than the "
                f"{most / 1e6:.0f} MB of a file",
                hint="shrink pictures with --max-pixels, or give --pictures-url",
            )
        path, stream = self._open.get(role, (None, None))
        if path is None or stream is None or (
            self.counts[path] >= self._format.most_lines or self._bytes[path] + len(line) > most
        ):  # fmt: skip
            if stream is not None:
                stream.close()
            n = 1 + sum(file.name.startswith(f"{role}-") for file in self.counts)
            path = self._folder / f"{role}-{n:03d}.jsonl"
            stream = path.open("wb")
            self._open[role] = (path, stream)
        stream.write(line)
        self._bytes[path] += len(line)
        self.counts[path] = self.counts.get(path, 0) + 1
        return path.name


def json_lines(file: Path) -> Iterator[tuple[int, JsonObject | None]]:
    """The objects of a JSON-lines file with their numbers; None for a line that is none.

    Raises:
        DataError: there is no such file.
    """
    if not file.is_file():
        raise DataError("there is no such file", file=file)
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                yield number, decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                yield number, None
