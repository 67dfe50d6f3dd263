"""A run by batch files: rounds of calls are written, and replies are read, until it is complete.

A round holds all calls that the flows can make with the replies that are there: captions first,
then judgements, then judgements asked again. What has happened stands in the run's journal.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from snellen.endpoints.batch_lines import FORMATS, BatchFormat, LinkedPicture, Sent, picture_bytes
from snellen.endpoints.bind import EMBEDDED, Binding
from snellen.endpoints.exact import EXACT
from snellen.engine.journal import CallRow, Journal, now, read_calls, read_rows
from snellen.engine.pacing import RetryPolicy
from snellen.engine.queues import images_of, key_of
from snellen.engine.scheduler import DriveOptions
from snellen.errors import DataError, ImageError, RunFolderError, UsageError
from snellen.fleet.batch_files import OpenCall, RoundWriter, Sending, SentCall, json_lines
from snellen.fleet.requests import with_absolute_paths
from snellen.flows import Flow
from snellen.keys import digest
from snellen.pictures.prepare import Picture, prepare
from snellen.records import (
    HOPELESS,
    RETRYABLE,
    Answer,
    CallFailure,
    Reply,
    Request,
    address,
    request_key,
)
from snellen.runs.folder import write_json
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest, arguments
from snellen.runs.run import Finished, Plan, execute, open_folder, phases, spec_of, write_items
from snellen.settings import Endpoint, ModelSettings, load_settings

SECRETS = ("api_key", "judge_key")
# Judges inside this process.
INSIDE = (EMBEDDED, EXACT)
# No flow ends on such a failure before it was tried as often as a run tries: a later round may do.
_PASSING = RETRYABLE | HOPELESS | {"stopped"}

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Round:
    """What was written: the round's number, its files with the calls in each, and its calls."""

    number: int
    files: Mapping[Path, int]
    n_calls: int


@dataclass(slots=True)
class Answered:
    """What was read: replies, failures by kind, repeats, and lines that are no JSON."""

    replies: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    repeats: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a step: a round to send, a run that is complete, or files to wait for."""

    answered: Answered = field(default_factory=Answered)
    round: Round | None = None
    finished: Finished | None = None
    waits_for: tuple[str, ...] = ()
    missing: int = 0


class BatchRun:
    """A run folder whose calls are sent as batch files; the files lie in `batch/` below it."""

    def __init__(self, folder: Path, sending: Sending, plan: Plan) -> None:
        self.folder, self.sending, self.plan = folder, sending, plan
        self.format: BatchFormat = FORMATS[sending.format]

    @classmethod
    def begin(
        cls, request: RunRequest, format_name: str, *, price: float = 0.5, pictures_url: str = ""
    ) -> BatchRun:
        """A run that begins, or goes on, with a request.

        Raises:
            UsageError: the request has a Python function, or nobody to send calls to.
            RunFolderError: the folder holds another run.
        """
        request = _with_addresses(request, FORMATS[format_name])
        plan, folder = make_plan(request), Path(request.out)
        file = folder / "batch" / "batch.json"
        stored = _read_sending(file) if file.exists() else None
        if stored is not None and stored.format != format_name:
            raise RunFolderError(
                f"{folder} is sent in the format {stored.format}",
                hint=f"give --format {stored.format}, or another --out",
            )
        spec, _ = open_folder(spec_of(plan), folder)
        write_json(folder / "run.json", spec)
        write_items(plan.benchmark.items, folder / "items.jsonl")
        sending = Sending(
            format_name,
            secrets.token_hex(4) if stored is None else stored.token,
            _stored_request(request),
            price,
            pictures_url.rstrip("/"),
            0 if stored is None else stored.round,
        )
        return cls(folder, sending, plan)

    @classmethod
    def open(cls, folder: Path) -> BatchRun:
        """A run that `begin` has begun.

        Raises:
            RunFolderError: the folder holds none.
        """
        file = folder / "batch" / "batch.json"
        if not file.exists():
            raise RunFolderError(
                f"{folder} holds no run by batch files", hint="begin with `snellen batch write`"
            )
        sending = _read_sending(file)
        words: dict[str, Any] = sending.request
        return cls(folder, sending, make_plan(RunRequest(**words, out=folder)))

    async def write(self) -> Step:
        """Writes the calls that can be made now, or finishes the run where there are none."""
        return await self._go_on(Answered())

    async def read(self, files: Sequence[Path], *, ask_again: bool = False) -> Step:
        """Takes replies into the journal, and writes the next round or finishes the run.

        The next round waits until something of every file of this one was read; what has no answer
        then is asked again. With `ask_again` it waits for nothing.

        Raises:
            DataError: a line is of another run.
        """
        sent = {row.name: row for row in read_rows(self._sent_file, SentCall)}
        answered = Answered()
        found = [self._check_file(file, sent, answered) for file in files]
        with Journal(self.folder) as journal:
            stored = {row.address: row for row in journal.stored()}
            for lines in found:
                for call, answer in lines():
                    self._take(call, answer, stored, journal, answered)
        awaited = [row for row in sent.values() if row.round == self.sending.round]
        missing = [row for row in awaited if not _is_answered(row, stored)]
        heard = {row.file for row in awaited if _is_answered(row, stored)}
        waits_for = tuple(sorted({row.file for row in awaited} - heard))
        if waits_for and not ask_again:
            return Step(answered, waits_for=waits_for, missing=len(missing))
        step = await self._go_on(answered)
        return replace(step, missing=len(missing))

    @property
    def _sent_file(self) -> Path:
        return self.folder / "batch" / "sent.jsonl"

    async def _go_on(self, answered: Answered) -> Step:
        """The next round; where there is none, the run's summary, and rounds that follow from it.

        Judges inside this process are asked while the run is finished.
        """
        made = self._write_round()
        if made is not None:
            return Step(answered, round=made)
        failed = self._failed_for_good()
        finished = await execute(self._offline_plan(failed))
        with Journal(self.folder) as journal:  # the run has stored them anew, as tried once
            for _, row in failed.values():
                journal.append(row)
        made = self._write_round()
        if made is None:
            self.sending = msgspec.structs.replace(self.sending, is_done=True)
            self._keep_state()
        return Step(answered, round=made, finished=None if made else finished)

    # -- what can be asked

    def open_calls(self, stored: Mapping[str, CallRow]) -> Iterator[OpenCall]:
        """The calls of endpoints that wait for nothing but an answer, in the order of the items."""
        bindings = self.plan.bindings
        for batch in phases(self.plan):
            is_whole = True
            for item, repeat, flow in batch.work:
                for request in _walk(flow, self._answers(item, repeat, stored)):
                    is_whole = False
                    binding = bindings[request.role]
                    if binding.endpoint.url.startswith("http"):
                        key = key_of(request, binding, params=binding.params, repeat=repeat)
                        yield OpenCall(item, repeat, request, binding, key)
            if not is_whole:  # a later batch is made of rows that are missing
                return

    def _answers(
        self, item: str, repeat: int, stored: Mapping[str, CallRow]
    ) -> Callable[[Request], Answer | None]:
        def answer(request: Request) -> Answer | None:
            row = stored.get(address(item, repeat, request))
            return None if row is None or not self._is_final(row) else row.answer

        return answer

    def _is_final(self, row: CallRow) -> bool:
        """Whether a call is not made again: answered, refused for good, or tried often enough."""
        return (
            row.failure is None
            or row.failure.kind not in _PASSING
            or (row.tries >= self.plan.drive.retry.max_tries and row.failure.kind != "stopped")
        )

    def _failed_for_good(self) -> dict[str, tuple[CallFailure, CallRow]]:
        """By request what failed and is not asked again, with its row of the journal."""
        stored = read_calls(self.folder / "calls.jsonl")
        found: dict[str, tuple[CallFailure, CallRow]] = {}

        def noting(item: str, repeat: int) -> Callable[[Request], Answer | None]:
            answer = self._answers(item, repeat, stored)

            def note(request: Request) -> Answer | None:
                said = answer(request)
                if isinstance(said, CallFailure):
                    row = stored[address(item, repeat, request)]
                    found[request_key(request, model="", params={}, repeat=repeat)] = (said, row)
                return said

            return note

        for batch in phases(self.plan):
            for item, repeat, flow in batch.work:
                for _ in _walk(flow, noting(item, repeat)):
                    pass
        return found

    def _offline_plan(self, failed: Mapping[str, tuple[CallFailure, CallRow]]) -> Plan:
        """The plan before what was read: no endpoint is called, and prices are those of batches."""
        failures = {
            # The scheduler would stop the whole run for a key that one round refused.
            key: replace(failure, kind="bad_reply") if failure.kind in HOPELESS else failure
            for key, (failure, _) in failed.items()
        }
        bindings = {
            role: replace(
                binding,
                caller=_Read(failures, self.plan.repeats),
                endpoint=_at_share(binding, self.sending.price),
            )
            if binding.endpoint.url.startswith("http")
            else binding
            for role, binding in self.plan.bindings.items()
        }
        drive = DriveOptions(
            retry=RetryPolicy(max_tries=1), give_up_after=10**9, patience_s=0, seed=self.plan.seed
        )
        return replace(self.plan, bindings=bindings, drive=drive, cache=None, keep_unreadable=True)

    # -- files

    def _write_round(self) -> Round | None:
        """The files of the next round; None where no endpoint is asked anything.

        A round of which nothing was read is written again under its number.
        """
        sent = list(read_rows(self._sent_file, SentCall))
        with Journal(self.folder) as journal:
            stored = {row.address: row for row in journal.stored()}
            last = [row for row in sent if row.round == self.sending.round]
            is_anew = bool(last) and not any(_is_answered(row, stored) for row in last)
            number = self.sending.round if is_anew else self.sending.round + 1
            before = Counter(row.address for row in sent if row.round < number)
            writer = RoundWriter(self.folder / "batch" / f"round-{number}", self.format)
            with writer:
                for call in self.open_calls(stored):
                    place = address(call.item, call.repeat, call.request)
                    name = f"{self.sending.token}-{digest(place + call.key)[:40]}"
                    try:
                        pictures = [self._picture(call, k) for k in range(_n_pictures(call))]
                    except ImageError as error:
                        journal.append(call.row(CallFailure("input_error", error.message)))
                        continue
                    file = writer.add(name, call, pictures)
                    writer.sent.append(call.sent(name, number, file, tries=before[place] + 1))
        if not writer.counts:
            return None
        self.sending = msgspec.structs.replace(self.sending, round=number, is_done=False)
        part = self._sent_file.with_suffix(".part")
        with part.open("wb") as rows:
            kept = [row for row in sent if row.round < number]
            rows.writelines(_encode(row) + b"\n" for row in (*kept, *writer.sent))
        part.replace(self._sent_file)
        self._keep_state()
        return Round(number, writer.counts, len(writer.sent))

    def _picture(self, call: OpenCall, place: int) -> Sent:
        picture = prepare(images_of(call.request)[place], call.binding.rules)
        if not self.sending.pictures_url:
            return picture
        name = f"{picture.digest[:32]}.{picture.mime.rpartition('/')[2]}"
        file = self.folder / "batch" / "pictures" / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(picture_bytes(picture))
        return LinkedPicture(picture.mime, f"{self.sending.pictures_url}/{name}")

    def _keep_state(self) -> None:
        write_json(self.folder / "batch" / "batch.json", self.sending)

    def _check_file(
        self, file: Path, sent: Mapping[str, SentCall], answered: Answered
    ) -> Callable[[], Iterator[tuple[SentCall, Answer]]]:
        """Reads a file once to see that it is of this run; gives what reads it again.

        Raises:
            DataError: the file is missing, or a line is of another run.
        """
        for number, line in json_lines(file):
            if line is None:
                answered.damaged += 1
                continue
            name, _ = self.format.read(line)
            if name not in sent:
                raise DataError(
                    f"{name or 'the line'} is no call of the run in {self.folder}",
                    file=file,
                    row=number,
                    hint="give the provider's replies to this run's own files, and no others",
                )

        def lines() -> Iterator[tuple[SentCall, Answer]]:
            for _, line in json_lines(file):
                if line is not None:
                    name, answer = self.format.read(line)
                    yield sent[name], answer

        return lines

    def _take(
        self,
        call: SentCall,
        answer: Answer,
        stored: dict[str, CallRow],
        journal: Journal,
        answered: Answered,
    ) -> None:
        """Stores an answer, unless there is a reply already, or as good a failure."""
        known = stored.get(call.address)
        if known is not None and (
            known.reply is not None
            or (_tries(known) >= call.tries and isinstance(answer, CallFailure))
        ):
            answered.repeats += 1
            return
        if isinstance(answer, CallFailure):
            answered.failures[f"{call.role} {answer.kind}"] += 1
            answered.first_failure = answered.first_failure or answer.message
        else:
            answered.replies += 1
        row = CallRow(
            call.item, call.repeat, call.purpose, call.probe, call.ask, call.key, call.role,
            reply=answer if isinstance(answer, Reply) else None,
            failure=answer if isinstance(answer, CallFailure) else None,
            tries=call.tries, at=now(),
        )  # fmt: skip
        journal.append(row)
        stored[call.address] = row


class _Read:
    """Answers with the failures that were read; what was not asked yet has none."""

    def __init__(self, failures: Mapping[str, CallFailure], repeats: int) -> None:
        self._failures, self._repeats = failures, repeats

    async def call(self, request: Request, pictures: Sequence[Picture]) -> Answer:
        """The failure of a request."""
        for repeat in range(self._repeats):
            key = request_key(request, model="", params={}, repeat=repeat)
            if key in self._failures:
                return self._failures[key]
        return CallFailure("stopped", "not asked yet")

    async def close(self) -> None:
        """Has nothing to close."""


def _walk(
    flow: Flow[Any], answer: Callable[[Request], Answer | None]
) -> Generator[Request, None, tuple[bool, object]]:
    """Runs a flow as far as answers go, and gives the requests that have none.

    Returns whether the flow came to its end, and what it ended with.
    """
    sent: list[object] | None = None
    while True:
        try:
            wanted = flow.send(sent)
        except StopIteration as stop:
            return True, stop.value
        sent, is_whole = [], True
        for want in wanted:
            if isinstance(want, Request):
                said = answer(want)
                if said is None:
                    yield want
                is_whole &= said is not None
                sent.append(said)
            else:
                ended, value = yield from _walk(want, answer)
                is_whole &= ended
                sent.append(value)
        if not is_whole:
            flow.close()
            return False, None


def _is_answered(call: SentCall, stored: Mapping[str, CallRow]) -> bool:
    row = stored.get(call.address)
    return row is not None and (row.reply is not None or _tries(row) >= call.tries)


def _tries(row: CallRow) -> int:
    """How often a call was answered; what a run has not come to ask is no answer."""
    return 0 if row.failure is not None and row.failure.kind == "stopped" else row.tries


def _n_pictures(call: OpenCall) -> int:
    return len(images_of(call.request))


def _at_share(binding: Binding, share: float) -> Endpoint:
    """An endpoint at a share of its prices."""
    end = binding.endpoint
    usual = (end.price_in_usd, end.price_cached_in_usd, end.price_out_usd)
    paid, cached, out = (None if price is None else price * share for price in usual)
    return replace(end, price_in_usd=paid, price_cached_in_usd=cached, price_out_usd=out)


def _read_sending(file: Path) -> Sending:
    return msgspec.json.decode(file.read_bytes(), type=Sending)


def _stored_request(request: RunRequest) -> dict[str, object]:
    """The fields of a request that are not at their default, without keys, paths made absolute.

    Raises:
        UsageError: one of them is a Python function or object, which no file can hold.
    """
    request = with_absolute_paths(request)
    stored: dict[str, object] = {}
    for name, one in arguments().items():
        value = getattr(request, name)
        if value == one.default or name in (*SECRETS, "out"):
            continue
        for part in value if isinstance(value, tuple | list) else (value,):
            if callable(part) or not isinstance(part, str | Path | int | float | Mapping):
                raise UsageError(f"`{name}` cannot be {part!r} here", hint="give a name or a path")
        stored[name] = str(value) if isinstance(value, Path) else value
    return stored


def _with_addresses(request: RunRequest, kind: BatchFormat) -> RunRequest:
    """The request with the provider's address where none is named: nobody is called there."""
    named = load_settings(request.config).models
    if not request.api_url and request.replies is None and not _has_url(request.model, named):
        request = replace(request, api_url=kind.url)
    judges = request.judge if isinstance(request.judge, list | tuple) else (request.judge,)
    remote = [one for one in judges if one not in INSIDE and not _has_url(one, named)]
    if remote and not request.judge_url and not request.api_url:
        request = replace(request, judge_url=kind.url)
    return request


def _has_url(name: object, named: Mapping[str, ModelSettings]) -> bool:
    return isinstance(name, str) and name in named and bool(named[name].url)
