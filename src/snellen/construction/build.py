"""Builds a benchmark: drives the stages of a pipeline, and goes on where the last start ended."""

from __future__ import annotations

import contextlib
import platform
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from snellen.builders.steps import Made, Rejected, Unit
from snellen.construction import files
from snellen.construction.config import BuildConfig
from snellen.construction.files import BuildRecord, Finished, Session, StageRecord
from snellen.construction.places import Places
from snellen.construction.roles import Cast, Player, cast, check_prices
from snellen.construction.stages import Context, Pipeline, Stage
from snellen.engine.job import Batch, Display, Ended, Job, Work, drive
from snellen.engine.journal import CallRow, Journal, now
from snellen.engine.pacing import cost_usd
from snellen.engine.scheduler import DriveOptions
from snellen.errors import RunFolderError, SnellenError, UsageError
from snellen.keys import digest_of
from snellen.templates import bundled
from snellen.version import __version__

DEFAULT_MAX_UNSCORED = 0.05


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be built, from what, where, by whom, and how far.

    `players` maps roles to Python functions that play them instead of endpoints. `limit` takes the
    first so many inputs of the first stage. `max_unscored` is the share of calls without a usable
    reply above which the exit code is 3.
    """

    pipeline: Pipeline
    source: str
    out: Path
    config: BuildConfig = field(default_factory=BuildConfig)
    players: Mapping[str, Player | tuple[Player, ...]] = field(default_factory=dict)
    until: str = ""
    only: str = ""
    limit: int | None = None
    max_cost_usd: float | None = None
    concurrency: int | None = None
    max_unscored: float = DEFAULT_MAX_UNSCORED


@dataclass(frozen=True, slots=True)
class Built:
    """How a build ended: the funnel so far, and what people have to do before it goes on."""

    folder: Path
    funnel: tuple[StageRecord, ...]
    exit_code: int
    waits: str = ""
    error: SnellenError | None = None
    notices: tuple[str, ...] = ()


def cast_of(request: BuildRequest) -> Cast:
    """The models of a request's roles."""
    return cast(
        request.config,
        players=request.players,
        concurrency=request.concurrency,
        embedding_roles=request.pipeline.embedding_roles(request.config.options),
    )


def context_of(request: BuildRequest, cast_: Cast) -> Context:
    """What the stages of a request may see; rows of stages that were run are read."""
    context = Context(
        request.out,
        request.source,
        options=request.config.options,
        seats=cast_.seats,
        seed=request.config.seed,
        limit=request.limit,
    )
    for stage in request.pipeline.stages:
        rows = files.read_stage(request.out, request.pipeline, stage, source=request.source)
        if rows is not None:
            context.handed_on[stage.name] = rows
    return context


def chosen_stages(request: BuildRequest) -> tuple[Stage, ...]:
    """The stages that a request asks for.

    Raises:
        UsageError: there is no stage of that name, or both ways of choosing were used.
    """
    stages = request.pipeline.stages
    if request.only and request.until:
        raise UsageError("--only and --until exclude each other", hint="give one of them")
    if request.only:
        number = request.pipeline.number(request.only)
        return stages[number - 1 : number]
    return stages[: request.pipeline.number(request.until)] if request.until else stages


async def build(request: BuildRequest, *, progress: Display | None = None) -> Built:
    """Runs the stages that are asked for; what was done at an earlier start is not done again.

    Raises:
        UsageError: a role that a stage needs has no model; nothing has been called by then.
        RunFolderError: the folder is in use, cannot be written, or holds something else.
    """
    cast_ = cast_of(request)
    async with contextlib.AsyncExitStack() as stack:
        if request.max_cost_usd is not None:
            check_prices(cast_)
        if (request.out / "build.json").exists():
            kind = files.read_record(request.out).kind
            if kind != request.pipeline.kind:
                raise RunFolderError(
                    f"{request.out} holds a {kind} benchmark that is being built",
                    hint="choose another --out",
                )
        driver = _Driver(request, cast_)
        stack.callback(driver.close)
        try:
            journal = stack.enter_context(Journal(request.out))
        except OSError as error:
            raise RunFolderError(
                f"{request.out} cannot be written: {error.strerror}", hint="choose another --out"
            ) from error
        _write_record(request, cast_)
        job = Job(
            cast_.bindings,
            driver.batches(),
            sinks={Made: driver.take},
            options=DriveOptions(max_cost_usd=request.max_cost_usd, seed=request.config.seed),
            progress=progress,
            preflight=driver.asks_anybody,
        )
        return driver.built(await drive(job, journal=journal))


class _Driver:
    """Makes the batches of a build, one a stage, and writes what comes of them."""

    def __init__(self, request: BuildRequest, cast_: Cast) -> None:
        self.request, self.cast = request, cast_
        self.context = context_of(request, cast_)
        self.places = Places(request.out, request.source)
        self.spending = Spending(request.out, cast_)
        self.stages = chosen_stages(request)
        for stage in self.stages:
            for role in stage.roles(self.context):
                cast_.require(role, stage.name)
        self.waits = ""
        self.unanswered = self.asked = 0
        self._done: dict[str, Made] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._finished: Finished | None = None
        self._funnel = {row.stage: row for row in files.read_funnel(request.out)}
        self._rejected: dict[str, list[Rejected]] = {s.name: [] for s in request.pipeline.stages}
        for one in files.read_rejected(request.out):
            self._rejected.setdefault(one.stage, []).append(one)

    @property
    def asks_anybody(self) -> bool:
        """Whether a chosen stage needs a model."""
        return any(stage.roles(self.context) for stage in self.stages)

    def batches(self) -> Iterator[Batch]:
        """The work of each stage; a batch is driven to its end before the next is made."""
        for stage in self.stages:
            if self.waits:
                return
            started = time.monotonic()
            units = list(stage.units(self.context))
            if stage is self.request.pipeline.stages[0]:
                out = self.request.out
                record = files.read_record(out)
                digest = digest_of([[unit.id, files.plain(unit.basis)] for unit in units])
                if record.source_digest != digest:
                    record.source_digest = digest
                    files.write_json(out / "build.json", record)
            self._open(stage, units)
            n_items = len(units) - len(self._done) if stage.work is not None else 0
            yield Batch(self._work(stage, units), stage.name, n_items)
            if stage.work is not None and len(self._done) < len(units):
                return  # something stopped the calls
            self._settle(stage, units, seconds=time.monotonic() - started)

    def _open(self, stage: Stage, units: list[Unit]) -> None:
        """Looks up which units are done, and gives each its address."""
        self.close()
        self._done, self._keys = {}, {}
        if stage.work is None:
            return
        self._finished = Finished(self.request.out, stage, self.places)
        basis = stage_basis(stage, self.context, self.cast)
        for unit in units:
            key = unit_key(unit, basis)
            self._keys[f"{stage.name}/{unit.id}@{key[:12]}"] = (unit.id, key)
            known = self._finished.find(key)
            if known is not None:
                self._done[unit.id] = known

    def _work(self, stage: Stage, units: list[Unit]) -> Iterator[Work]:
        if stage.work is None:
            return
        todo = [
            (unit, address)
            for unit, address in zip(units, self._keys, strict=True)
            if unit.id not in self._done
        ]
        stage.prepare(self.context, [unit for unit, _ in todo])
        for unit, address in todo:
            yield address, 0, stage.work(self.context, unit.payload)

    def take(self, address: str, _repeat: int, result: Made) -> None:
        """Keeps what a unit's flow ended with; units whose call failed are asked again later."""
        unit_id, key = self._keys[address]
        self._done[unit_id] = result
        if not result.failure and self._finished is not None:
            self._finished.keep(unit_id, key, result)

    def _settle(self, stage: Stage, units: list[Unit], *, seconds: float) -> None:
        parts = [self._done[unit.id] for unit in units] if stage.work is not None else []
        made = stage.settle(self.context, parts)
        if stage.roles(self.context):
            self.asked += len(parts)
            self.unanswered += sum(
                one.reason == "unreadable" or one.reason.startswith("call_")
                for one in (*made.rejected, *made.dropped)
            )
        out, pipeline = self.request.out, self.request.pipeline
        rows = map(self.places.stored, made.rows)
        changed = files.write_lines(files.stage_file(out, pipeline, stage.name), rows)
        self.context.handed_on[stage.name] = made.rows
        if changed:
            self._forget_after(stage)
        self._rejected[stage.name] = [
            Rejected(
                stage=stage.name, id=one.id, made_from=one.made_from, reason=one.reason,
                detail=one.detail,
            )
            for one in (*made.rejected, *made.dropped)
        ]  # fmt: skip
        files.write_rejected(out, self._rejected)
        self._funnel[stage.name] = self._record(stage, made, seconds)
        files.write_json(out / "funnel.json", self.funnel())
        self.waits = stage.waits(self.context)

    def _record(self, stage: Stage, made: Made, seconds: float) -> StageRecord:
        kept = len(made.rows) if stage.is_filter else int(made.counts.get("kept_inputs", -1))
        counts = {k: v for k, v in made.counts.items() if k != "kept_inputs"}
        if kept < 0:
            kept = len({source for row in made.rows for source in row.made_from[:1]})
        spent = self.spending.of(stage.name)
        return StageRecord(
            stage.name,
            entered=kept + len(made.rejected),
            kept=kept,
            rejected=len(made.rejected),
            made=None if stage.is_filter else len(made.rows),
            dropped=len(made.dropped),
            reasons=dict(Counter(one.reason for one in (*made.rejected, *made.dropped))),
            calls=spent.calls,
            tokens=spent.tokens,
            cost_usd=None if spent.has_unknown else spent.cost_usd,
            seconds=round(seconds, 2),
            counts=counts,
        )

    def _forget_after(self, stage: Stage) -> None:
        """Takes away what later stages made of other rows; their units are kept."""
        pipeline = self.request.pipeline
        for later in pipeline.stages[pipeline.number(stage.name) :]:
            files.stage_file(self.request.out, pipeline, later.name).unlink(missing_ok=True)
            self.context.handed_on.pop(later.name, None)
            self._funnel.pop(later.name, None)
            self._rejected[later.name] = []

    def funnel(self) -> tuple[StageRecord, ...]:
        """The records of the stages that were run, in order."""
        names = [stage.name for stage in self.request.pipeline.stages]
        return tuple(self._funnel[name] for name in names if name in self._funnel)

    def close(self) -> None:
        """Closes the file of finished units."""
        if self._finished is not None:
            self._finished.close()
            self._finished = None

    def built(self, ended: Ended) -> Built:
        """How it all ended."""
        answered = sum(
            counters.done - counters.failed for counters in ended.counters.roles.values()
        )
        code = ended.exit_code(has_results=answered > 0)
        share = self.unanswered / self.asked if self.asked else 0.0
        if not code and ended.error is None and share > self.request.max_unscored:
            code = 3
        notices = ended.notices + ended.failure_notices()
        return Built(self.request.out, self.funnel(), code, self.waits, ended.error, notices)


def stage_basis(stage: Stage, context: Context, cast_: Cast) -> list[object]:
    """What would change the result of every unit of a stage, as plain data."""
    models = [cast_.identity(role) for role in stage.roles(context)]
    prompts = [bundled(name).sha256 for name in stage.prompts]
    return [stage.name, stage.version, models, prompts]


def unit_key(unit: Unit, basis: list[object]) -> str:
    """What a finished unit is known by."""
    return digest_of([basis, unit.id, files.plain(unit.basis)])


@dataclass(slots=True)
class Spent:
    """Calls, tokens and cost of a stage; `has_unknown` says that a price is not known."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    has_unknown: bool = False


class Spending:
    """What the calls of a journal cost by stage, over all starts; each row is read once."""

    def __init__(self, out: Path, cast_: Cast) -> None:
        self._path, self._cast = out / "calls.jsonl", cast_
        self._read = 0
        self._by_stage: dict[str, Spent] = {}
        self._decoder = msgspec.json.Decoder(CallRow)

    def of(self, stage: str) -> Spent:
        """What a stage has cost so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    if line.strip():
                        self._add(self._decoder.decode(line))
        return self._by_stage.get(stage, Spent())

    def _add(self, row: CallRow) -> None:
        if row.reply is None:
            return
        usage, binding = row.reply.usage, self._cast.bindings.get(row.role)
        cost = cost_usd(usage, binding.endpoint) if binding is not None else None
        spent = self._by_stage.setdefault(row.item.partition("/")[0], Spent())
        spent.calls += 1
        spent.tokens += (usage.prompt or 0) + (usage.completion or 0)
        spent.cost_usd += cost or 0.0
        spent.has_unknown |= cost is None


def _write_record(request: BuildRequest, cast_: Cast) -> None:
    path = request.out / "build.json"
    known = files.read_record(request.out) if path.exists() else None
    sections = {name: request.config.options.get(kind) or kind()
                for name, kind in request.pipeline.sections.items()}  # fmt: skip
    prompts = {name: bundled(name) for stage in request.pipeline.stages for name in stage.prompts}
    record = BuildRecord(
        kind=request.pipeline.kind,
        source=request.source,
        source_digest=known.source_digest if known else "",
        seed=request.config.seed,
        limit=request.limit,
        options={name: files.plain(value) for name, value in sections.items()},
        models={role: cast_.record(role) for role in cast_.seats},
        prompts={n: {"sha256": t.sha256, "text": t.text} for n, t in prompts.items()},
        sessions=known.sessions if known else [],
    )
    record.sessions.append(
        Session(now(), __version__, platform.python_version(), request.until, request.only)
    )
    files.write_json(path, record)
