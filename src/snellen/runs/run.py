"""One run from start to summary: bindings, folder, resume, projections, exit status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from snellen import tokens
from snellen.endpoints.bind import Binding
from snellen.endpoints.failures import one_line
from snellen.engine.counters import Counters
from snellen.engine.job import Batch, Display, Ended, Job, Sink, Work, drive
from snellen.engine.journal import AppendFile, Journal, now, read_rows
from snellen.engine.queues import Gates
from snellen.engine.renewal import unreadable_calls
from snellen.engine.scheduler import DriveOptions
from snellen.engine.signals import interruptible
from snellen.errors import RunFolderError, SnellenError
from snellen.files import open_own
from snellen.flows import Flow, Given, match_given, with_system
from snellen.pictures.prepare import PictureRules
from snellen.protocols import Options, protocol_of_options
from snellen.protocols.panels import Panel, ask_panel
from snellen.records import Benchmark, Item, ModelRecord, Outcome, Params, ReplyRow, Verdict, walk
from snellen.runs.controls import gather, swapped_options
from snellen.runs.folder import Run, read_spec, write_json
from snellen.runs.request import DEFAULT_MAX_UNSCORED
from snellen.runs.spec import PromptRecord, RunSpec, Session, ShardRecord, Summary
from snellen.runs.summary import summarise, summarise_part
from snellen.schemas import are_lettered
from snellen.templates import Template
from snellen.version import __version__

if TYPE_CHECKING:
    from snellen.engine.cache import ResponseCache
    from snellen.runs.judge_errors import JudgeCheck

T = TypeVar("T")

FLUSH_EVERY_S = 0.2
# Where workers that share a run keep their shards, below its folder.
PARTS = "parts"
# What may differ between two starts on one folder without changing a number.
# The purpose under which a role's system message stands among the prompts.
SYSTEM_PURPOSES = {"model": "reply_system", "judge": "verdict_system"}
FREE_FIELDS = frozenset({"sessions", "items", "data_digest", "schema", "judge_check"})

# Why a reply is blank, with what a user may change.
BLANK = {
    "truncated": "raise --max-tokens",
    "thought_only": "raise --max-tokens, or switch thinking off (--param)",
    "empty": "look at the endpoint: snellen endpoint URL --model NAME",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A run as it was asked for: what is evaluated, by whom, where to, and how it is driven.

    `replies_from` names the run whose replies are judged again, and `image_preparation` what its
    pictures went through; both are empty otherwise. `judge_check` is what is known of the judge;
    with a `panel` there are several, each with a binding of its own. `notices` are told at the end.
    `systems` are system messages of the user's, by role. `keep_unreadable` leaves verdicts that
    could not be read as they are, where a second start would ask for them again. `shard` says
    which part of a larger run this is; with `is_part` its summary has counts and no metrics, since
    it is united with others at once. `preflight` asks new endpoints for their models first.
    """

    benchmark: Benchmark
    options: Options
    model: ModelRecord
    judge: ModelRecord
    bindings: Mapping[str, Binding]
    out: Path
    seed: int = 0
    repeats: int = 1
    drive: DriveOptions = field(default_factory=DriveOptions)
    cache: ResponseCache | None = None
    max_unscored: float = DEFAULT_MAX_UNSCORED
    rules: PictureRules = field(default_factory=PictureRules)
    settings: Params = field(default_factory=dict)
    replies_from: str = ""
    image_preparation: str = ""
    judge_check: JudgeCheck | None = None
    panel: Panel | None = None
    allow_blank: bool = False
    keep_unreadable: bool = False
    notices: tuple[str, ...] = ()
    systems: Mapping[str, Template] = field(default_factory=dict)
    shard: ShardRecord | None = None
    is_part: bool = False
    preflight: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended: its folder and summary, an exit code, the error that stopped it, notices.

    `run` is what `load_run` would read from the folder.
    """

    folder: Path
    summary: Summary
    exit_code: int
    error: SnellenError | None = None
    notices: tuple[str, ...] = ()
    run: Run | None = None


class Projector:
    """Writes replies and verdicts as soon as flows give them; each row once, changes again."""

    def __init__(self, folder: Path) -> None:
        self.replies = {(r.id, r.repeat): r for r in _tolerant(folder / "replies.jsonl", ReplyRow)}
        self.verdicts = {
            (v.id, v.repeat, v.probe_id): v for v in _tolerant(folder / "verdicts.jsonl", Verdict)
        }
        self._reply_file = AppendFile(folder / "replies.jsonl")
        self._verdict_file = AppendFile(folder / "verdicts.jsonl")
        self.torn = self._reply_file.torn + self._verdict_file.torn
        self.counters = Counters()
        self._pool = ThreadPoolExecutor(1)
        self._tokenizer: Future[object] = self._pool.submit(tokens.load)
        self._waiting: list[ReplyRow] = []
        self._flush_is_planned = False

    @property
    def sinks(self) -> Mapping[type, Sink]:
        """Who takes which rows of flows and child flows."""
        return {ReplyRow: self._reply, Verdict: self._verdict, Outcome: self._outcome}

    def _outcome(self, item: str, repeat: int, outcome: Outcome) -> None:
        for verdict in outcome.verdicts:
            self._verdict(item, repeat, verdict)

    def _reply(self, _item: str, _repeat: int, row: ReplyRow) -> None:
        self._waiting.append(row)
        if self._tokenizer.done():
            self._write_waiting()

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        counts = tokens.count_tokens([row.reply or "" for row in waiting])
        for row, n in zip(waiting, counts, strict=True):
            counted = replace(row, tokens=n)
            key = (row.id, row.repeat)
            if self.replies.get(key) != counted:
                self.replies[key] = counted
                self._reply_file.append(counted)

    def _verdict(self, _item: str, _repeat: int, verdict: Verdict) -> None:
        key = (verdict.id, verdict.repeat, verdict.probe_id)
        known = self.verdicts.get(key)
        if known is verdict:  # a child flow gave it before
            return
        self.verdicts[key] = verdict
        self.counters.probes_done += 1
        if known != verdict:
            self._verdict_file.hold(verdict)
            self._flush_soon()

    def _flush_soon(self) -> None:
        """Verdicts are written a few times a second: the journal holds what they are made of."""
        if not self._flush_is_planned:
            self._flush_is_planned = True
            asyncio.get_running_loop().call_later(FLUSH_EVERY_S, self._flush)

    def _flush(self) -> None:
        self._flush_is_planned = False
        with contextlib.suppress(RunFolderError):  # what cannot be written now is raised on closing
            self._verdict_file.flush()

    def close(self) -> None:
        """Writes what waits for the tokenizer, and closes the files."""
        self._tokenizer.result()
        self._write_waiting()
        self._pool.shutdown()
        self._verdict_file.flush()
        self._reply_file.close()
        self._verdict_file.close()


def _tolerant(path: Path, kind: type[T]) -> list[T]:
    """The rows of a projection; where one is damaged, none, so that all are written anew."""
    try:
        return list(read_rows(path, kind))
    except SnellenError:
        path.unlink()
        return []


def spec_of(plan: Plan) -> RunSpec:
    """What stands in `run.json` for a plan."""
    bench = plan.benchmark
    prompts = {
        purpose: PromptRecord(template.name, template.sha256, template.text)
        for purpose, template in {
            **plan.options.prompts,
            **{SYSTEM_PURPOSES[role]: template for role, template in plan.systems.items()},
        }.items()
    }
    spec = RunSpec(
        benchmark=bench.name,
        protocol=bench.protocol,
        data_digest=bench.digest,
        items={item.id: item.digest for item in bench.items},
        model=plan.model,
        judge=plan.judge,
        prompts=prompts,
        options=dict(plan.settings),
        benchmark_version=bench.version,
        license=bench.license,
        source=bench.source,
        revision=bench.revision,
        image_preparation=plan.image_preparation or plan.rules.name,
        seed=plan.seed,
        repeats=plan.repeats,
        skipped_rows=bench.skipped,
        replies_from=plan.replies_from,
        shard=plan.shard,
        sessions=(Session(now(), __version__, platform.python_version()),),
    )
    if plan.judge_check is None:
        return spec
    from snellen.runs.sensitivity import attachment

    return replace(spec, judge_check=attachment(plan.judge_check, spec))


def open_folder(spec: RunSpec, folder: Path) -> tuple[RunSpec, tuple[str, ...]]:
    """The spec to go on with in a folder, and notices; a foreign folder is refused.

    Raises:
        RunFolderError: the folder belongs to another run, with the difference named.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / PARTS).exists():
        raise RunFolderError(
            f"{folder} holds shards of a run that has not come to its end",
            hint="go on with --engine ray, or unite them with `snellen merge "
            f"{folder / PARTS} --out DIR`",
        )
    if not (folder / "run.json").exists():
        return spec, ()
    stored = read_spec(folder)
    changed = [name for name, a, b in compared_fields(stored, spec) if a != b]
    if changed:
        _, was, now_ = next(f for f in compared_fields(stored, spec) if f[0] == changed[0])
        raise RunFolderError(
            f"{folder} holds a run with another {', '.join(changed)} "
            f"({first_change(changed[0], was, now_)})",
            hint="give the same settings to go on, or another --out to start anew",
        )
    for name, digest in stored.items.items():
        if name not in spec.items:
            raise RunFolderError(
                f"{folder} holds item {name}, which this command leaves out",
                hint="give the same data, --limit and --subset to go on, or another --out",
            )
        if spec.items[name] != digest:
            raise RunFolderError(
                f"item {name} has changed since the run in {folder} began",
                hint="restore the data, or give another --out",
            )
    notices = tuple(_harmless(stored, spec))
    check = stored.judge_check if spec.judge_check is None else spec.judge_check
    sessions = (*stored.sessions, *spec.sessions)
    return replace(spec, sessions=sessions, judge_check=check), notices


def compared_fields(stored: RunSpec, wanted: RunSpec) -> Iterator[tuple[str, object, object]]:
    """The name of each field that would change a number, and both runs' values as plain data."""
    for name in stored.__dataclass_fields__:
        if name in FREE_FIELDS:
            continue
        a, b = getattr(stored, name), getattr(wanted, name)
        if isinstance(a, ModelRecord):
            a, b = _placeless(a), _placeless(b)
        if name == "shard":
            a, b = str(a or "of the whole"), str(b or "of the whole")
        if name == "skipped_rows":
            a, b = tuple(a), tuple(b)
        if name == "prompts":
            a, b = _nameless(a), _nameless(b)
        yield name, _plain(a), _plain(b)


def _placeless(party: ModelRecord) -> ModelRecord:
    """A party without its addresses, which change no number."""
    return replace(party, url="", members=tuple(map(_placeless, party.members)))


def _nameless(prompts: Mapping[str, PromptRecord]) -> dict[str, dict[str, str]]:
    """Prompts without their names: a file that moved is the same prompt."""
    return {purpose: {"sha256": prompt.sha256} for purpose, prompt in prompts.items()}


def _plain(value: object) -> object:
    """A value as it comes back from a JSON file."""
    import msgspec

    return msgspec.to_builtins(value)


def first_change(name: str, was: object, now_: object) -> str:
    """The first thing inside two values that differs, by its place in them."""
    if isinstance(was, dict) and isinstance(now_, dict):
        for key in {**was, **now_}:
            if was.get(key) != now_.get(key):
                return first_change(f"{name}.{key}", was.get(key), now_.get(key))
    return f"{name} was {_short(was)}, now {_short(now_)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _harmless(stored: RunSpec, wanted: RunSpec) -> Iterator[str]:
    if len(wanted.items) > len(stored.items):
        more = len(wanted.items) - len(stored.items)
        yield f"{more} items are new since the run began"
    for role in ("model", "judge"):
        a, b = getattr(stored, role).url, getattr(wanted, role).url
        if a != b:
            yield f"the {role} is at {b} now, it was at {a}"
    last = stored.sessions[-1].snellen if stored.sessions else ""
    if last and last != wanted.sessions[0].snellen:
        yield f"begun with snellen {last}: replies are kept, verdicts are read anew"


async def execute_together(
    plans: Sequence[Plan],
    *,
    progress: Sequence[Display] | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[Finished]:
    """Runs plans side by side, in their order; runs at one URL share its limits.

    Raises:
        RunFolderError: as `execute` does, once all others have ended.
    """
    gates: Gates = {}
    runs = [
        execute(plan, progress=progress[k] if progress else None, tell=tell, gates=gates)
        for k, plan in enumerate(plans)
    ]
    ended = await asyncio.gather(*runs, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if isinstance(one, Finished)]


async def execute(
    plan: Plan,
    *,
    progress: Display | None = None,
    tell: Callable[[str], None] | None = None,
    gates: Gates | None = None,
) -> Finished:
    """Runs a plan to its end and writes the folder of the contract; on the same folder, resumes.

    `tell` takes notices while the run is under way; without it they come with the end. Runs that
    share `gates` share the limits of each URL.

    Raises:
        RunFolderError: the folder is in use, cannot be written, or holds another run.
    """
    async with contextlib.AsyncExitStack() as stack:
        if plan.cache is not None:
            stack.callback(plan.cache.close)
        about_data = () if plan.is_part else data_notices(plan.benchmark.items, plan.options.given)
        with _writing(plan.out):
            spec, notices = open_folder(spec_of(plan), plan.out)
            notices = plan.notices + notices
            journal = stack.enter_context(Journal(plan.out))
            write_json(plan.out / "run.json", spec)
            write_items(plan.benchmark.items, plan.out / "items.jsonl")
            projector = Projector(plan.out)
        notices += about_data
        if projector.torn:
            notices += (f"a half-written last row was dropped ({projector.torn} bytes)",)
        said = _renew_unreadable(plan, journal, projector)
        if said and tell is not None:
            tell(said)
        elif said:
            notices += (said,)
        job = replace(
            job_of(plan), sinks=projector.sinks, progress=progress, tell=tell, gates=gates
        )
        with interruptible(lambda: None):  # from here on a signal must not cost the summary
            try:
                ended = await drive(job, journal=journal, counters=projector.counters)
            finally:
                projector.close()
            with _writing(plan.out):
                return _finish(plan, spec, projector, ended, notices)


def job_of(plan: Plan) -> Job:
    """The calls of a plan as a job, without anybody who takes its rows."""
    return Job(
        plan.bindings, phases(plan), plan.out, cache=plan.cache, options=plan.drive,
        preflight=plan.preflight,
    )  # fmt: skip


def _renew_unreadable(plan: Plan, journal: Journal, projector: Projector) -> str:
    """Lets go of stored replies that could not be read; how many, and the first of them."""
    if plan.keep_unreadable or not journal.n_stored:
        return ""
    stored = {row.address: row for row in journal.stored()}
    places = {(row.item, row.repeat) for row in stored.values() if row.ask}
    places |= {(v.id, v.repeat) for v in projector.verdicts.values() if v.is_unreadable}
    found = unreadable_calls((w for w in work(plan) if w[:2] in places), stored) if places else None
    if found is None or not found.n_rows:
        return ""
    journal.renew(found.addresses)
    return (
        f"{found.n_rows} judgements could not be read and are asked for again "
        f"(--keep-unreadable leaves them); the first was: {one_line(found.first)!r}"
    )


def data_notices(items: Sequence[Item], given: Given | None) -> tuple[str, ...]:
    """What is to be known of items and replies: options with letters, replies to nothing.

    The judge sees two letters before an option that brings its own, and of shuffled options two
    unlike ones.

    Raises:
        DataError: there are replies, and not one of them is for any item.
    """
    notices = match_given(items, given)
    probes = [probe for item in items for probe in item.probes]
    n = sum(are_lettered(probe.options) for probe in probes)
    if not n:
        return notices
    return (
        *notices,
        f"the options of {n} of {len(probes)} questions begin with letters of their own, and the "
        "judge is shown letters before them: take theirs out of the data",
    )


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Says which folder it was that the system would not let be written."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"run folder {folder} cannot be written: {error.strerror or error}",
            hint="make room or give rights there, or choose another --out",
        ) from error


def write_items(items: Sequence[Item], path: Path) -> None:
    """Writes `items.jsonl` whole or not at all."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(open_own(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        for item in items:
            file.write(encode(item) + b"\n")
    part.replace(path)


def phases(plan: Plan) -> Iterator[Batch]:
    """The batches of a plan.

    There is one, unless captions are swapped: then all of them are needed before any is read.
    """
    items = plan.benchmark.items
    n_items = plan.repeats * len(items)
    n_probes = plan.repeats * sum(len(item.probes) for item in items)
    if not plan.options.is_swapped:
        yield Batch(work(plan), "", n_items, n_probes)
        return
    rows = plan.options.given
    if rows is None:
        gathered: dict[tuple[str, int], ReplyRow] = {}
        yield Batch(
            gather(items, plan.options, repeats=plan.repeats, into=gathered), "captions", n_items
        )
        rows = gathered
    options = swapped_options(plan.options, items, rows, seed=plan.seed)
    yield Batch(work(replace(plan, options=options)), "", n_items, n_probes)


def work(plan: Plan) -> Iterator[Work]:
    """The flows of a plan, in the order of the data, each item's repeats together."""
    for item, repeat in walk(plan.benchmark.items, plan.repeats):
        yield item.id, repeat, flow_of(plan, item, repeat)


def flow_of(plan: Plan, item: Item, repeat: int) -> Flow[Outcome]:
    """The flow of one item, before one judge or a panel."""
    ask = protocol_of_options(plan.options).flow
    texts = {role: template.text for role, template in plan.systems.items()}
    if plan.panel is None:
        return with_system(ask(item, plan.options, repeat), texts)
    make = partial(ask, item, plan.options, repeat)
    return with_system(ask_panel(make, plan.panel, asks_model=plan.options.asks_model), texts)


def _finish(
    plan: Plan,
    spec: RunSpec,
    projector: Projector,
    ended: Ended,
    notices: tuple[str, ...],
) -> Finished:
    run = Run(
        plan.out, spec, plan.benchmark.items, projector.replies, projector.verdicts, summary=None
    )
    complete = ended.error is None and ended.completed
    status = "complete" if complete else "incomplete"
    make_summary = summarise_part if plan.is_part else summarise
    summary = make_summary(run, status=status, counters=ended.counters)
    write_json(plan.out / "summary.json", summary)
    most = plan.max_unscored
    code = exit_code(summary, ended, max_unscored=most, allow_blank=plan.allow_blank)
    notices += ended.notices + ended.failure_notices()
    if unread := summary.counts.unscored_by_reason.get("judge_language", 0):
        notices += (
            f"{unread} probes are unscored, since the embedded judge reads English only: "
            "use a judge behind a URL (--judge NAME --judge-url URL)",
        )
    run = replace(run, summary=summary)
    return Finished(plan.out, summary, code, ended.error, notices, run)


def exit_code(
    summary: Summary, ended: Ended, *, max_unscored: float, allow_blank: bool = False
) -> int:
    """0 done; 1 hopeless before any verdict; 3 too much unscored or blank, or stopped later."""
    counts = summary.counts
    code = ended.exit_code(has_results=counts.scored > 0)
    if code or ended.error is not None or not counts.probes:
        return code
    blank = 0 if allow_blank else sum(blank_probes(summary).values())
    return 3 if max(counts.unscored, blank) / counts.probes > max_unscored else 0


def blank_probes(summary: Summary) -> dict[str, int]:
    """How many probes were scored on a blank reply, by the reason why it was blank."""
    found = summary.counts.scored_by_reason
    return {reason: found[reason] for reason in BLANK if found.get(reason)}
