"""Drives flows: the only place where calls are made, tried again, stored and stopped.

A flow's request is looked for in the journal, then in the cache, then it goes to the wire. Every
endpoint's slots are filled the moment they are free. Nothing is delivered to a flow before it
stands in the journal.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snellen import media
from snellen.cache import ResponseCache, cache_key
from snellen.errors import EndpointError, ImageError, RunFolderError, SnellenError
from snellen.flows import Flow
from snellen.journal import CallRow, Journal, now
from snellen.keys import address, request_key
from snellen.pacing import (
    AdaptiveLimit,
    Budget,
    MinuteRate,
    RetryPolicy,
    backoff_s,
    cost_usd,
    estimate_tokens,
    worst_cost_usd,
)
from snellen.records import HOPELESS, RETRYABLE, Answer, CallFailure, Image, Reply, Request
from snellen.settings import Endpoint

if TYPE_CHECKING:
    from snellen.client import Caller

LEAD_S = 0.03
INTERRUPT_GRACE_S = 1.0
FLUSH_EVERY_S = 0.25
MAX_PREPARED_BYTES = 192 * 2**20
# Failures that say something about one item and nothing about the endpoint.
ITEM_FAILURES = frozenset({"input_error", "context_length", "content_filter"})
MAYBE_CHARGED = frozenset({"timeout", "bad_reply", "connection"})


@dataclass(frozen=True, slots=True)
class Binding:
    """What a role means in this run: who is called, under which settings."""

    caller: Caller
    endpoint: Endpoint
    rules: media.PictureRules = field(default_factory=media.PictureRules)
    cacheable: bool = True
    shares_prefix: bool = True

    @property
    def params(self) -> Mapping[str, Any]:
        """The body fields that are sent."""
        return {**self.endpoint.soft_params, **self.endpoint.params}


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """How a run is driven. `max_live` bounds the flows that are under way at once."""

    retry: RetryPolicy = RetryPolicy()
    max_cost_usd: float | None = None
    max_live: int | None = None
    give_up_after: int = 8
    seed: int = 0


@dataclass(slots=True)
class RoleMeter:
    """What has happened to one role's calls so far."""

    done: int = 0
    failed: int = 0
    replayed: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    unknown_usage: int = 0
    cost_usd: float = 0.0
    unknown_cost: int = 0

    def count(self, reply: Reply, cost: float | None) -> None:
        """Adds a reply that was paid for."""
        usage = reply.usage
        if usage.prompt is None and usage.completion is None:
            self.unknown_usage += 1
        self.prompt_tokens += usage.prompt or 0
        self.completion_tokens += usage.completion or 0
        self.reasoning_tokens += usage.reasoning or 0
        self.cached_tokens += usage.cached or 0
        self.unknown_cost += cost is None
        self.cost_usd += cost or 0.0


@dataclass(slots=True)
class Meter:
    """The state of a run for whoever shows its progress."""

    roles: dict[str, RoleMeter] = field(default_factory=dict)
    flows_done: int = 0
    in_flight: int = 0
    queued: int = 0
    started_at: float = 0.0
    pending: dict[int, tuple[float, str]] = field(default_factory=dict)

    @property
    def oldest(self) -> tuple[float, str] | None:
        """The age in seconds and the item of the oldest call in flight."""
        if not self.pending:
            return None
        started, item = min(self.pending.values())
        return time.monotonic() - started, item


@dataclass(slots=True)
class _Node:
    """A flow under way: its place in its parent, and the answers that it waits for."""

    flow: Flow[Any]
    item: str
    repeat: int
    parent: _Node | None = None
    slot: int = 0
    results: list[Any] = field(default_factory=list)
    pending: int = 0


@dataclass(slots=True, eq=False)
class _Job:
    """A request on its way to an endpoint."""

    node: _Node
    slot: int
    request: Request
    binding: Binding
    key: str
    tries: int = 0
    rate_limited: int = 0
    reserved: float = 0.0
    n_bytes: int = 0
    leads: str = ""


@dataclass(slots=True, eq=False)
class _Lane:
    """The calls to one URL, whatever their role: limits belong to the address."""

    limit: AdaptiveLimit
    requests: MinuteRate
    tokens: MinuteRate
    urgent: deque[_Job] = field(default_factory=deque)
    normal: deque[_Job] = field(default_factory=deque)
    held: dict[str, list[_Job]] = field(default_factory=dict)
    in_flight: int = 0
    waking: bool = False

    def push(self, job: _Job) -> None:
        """Queues a call; judging goes before new replies, since it frees what waits."""
        (self.normal if job.request.role == "model" else self.urgent).append(job)

    def pop(self) -> _Job | None:
        """The next call, or None."""
        if self.urgent:
            return self.urgent.popleft()
        return self.normal.popleft() if self.normal else None

    def push_front(self, jobs: Sequence[_Job]) -> None:
        """Queues calls ahead of all others, in their order."""
        self.urgent.extendleft(reversed(jobs))


OnResult = Callable[[str, int, Any], None]
Work = tuple[str, int, Flow[Any]]


class Scheduler:
    """Runs flows against endpoints. One scheduler drives one run, once."""

    def __init__(
        self,
        bindings: Mapping[str, Binding],
        *,
        journal: Journal | None = None,
        cache: ResponseCache | None = None,
        options: DriveOptions | None = None,
        on_result: OnResult | None = None,
    ) -> None:
        self.meter = Meter(roles={role: RoleMeter() for role in bindings})
        self.error: SnellenError | None = None
        self.interrupted = False
        self._bindings = bindings
        self._journal, self._cache = journal, cache
        self._options = options or DriveOptions()
        self._on_result = on_result
        self._budget = Budget(self._options.max_cost_usd)
        self._rng = random.Random(self._options.seed)
        self._lanes = _lanes(bindings)
        self._alike: dict[str, tuple[str, int] | None] = dict.fromkeys(bindings, ("", 0))
        self._tasks: set[asyncio.Task[None]] = set()
        self._live = 0
        self._prepared_bytes = 0
        self._stopping = False

    async def drive(self, work: Iterable[Work]) -> None:
        """Drives all flows to their end, or until something stops the run.

        A stop is not raised: `error` and `interrupted` say what it was, and every call that was
        in flight has been stored by then.
        """
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._idle = asyncio.Event()
        self.meter.started_at = time.monotonic()
        flusher = asyncio.create_task(self._flush_regularly())
        try:
            await self._feed(iter(work))
            while self._live and not (self._stopping and not self.meter.in_flight):
                self._idle.clear()
                await self._idle.wait()
        finally:
            flusher.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(flusher, *self._tasks, return_exceptions=True)

    def interrupt(self) -> None:
        """Starts nothing more; what is in flight has a second to finish."""
        self.interrupted = True
        self._stop()
        self._loop.call_later(INTERRUPT_GRACE_S, self._cancel_all)

    @property
    def max_live(self) -> int:
        """How many flows may be under way: twice what the busiest endpoint takes."""
        ceiling = max(lane.limit.ceiling for lane in self._lanes.values())
        return self._options.max_live or max(16, 2 * ceiling)

    async def _feed(self, work: Iterator[Work]) -> None:
        for item, repeat, flow in work:
            if self._stopping:
                return
            self._live += 1
            self._advance(_Node(flow, item, repeat), None)
            await asyncio.sleep(0)
            while self._live >= self.max_live and not self._stopping:
                self._room.clear()
                await self._room.wait()

    def _advance(self, node: _Node, answers: list[Any] | None) -> None:
        """Sends a flow its answers and starts what it wants next."""
        try:
            wanted = node.flow.send(answers)
        except StopIteration as stop:
            self._complete(node, stop.value)
            return
        node.results = [None] * len(wanted)
        node.pending = len(wanted)
        for slot, want in enumerate(wanted):
            if isinstance(want, Request):
                self._submit(node, slot, want)
            else:
                self._advance(_Node(want, node.item, node.repeat, node, slot), None)
        if not wanted:
            self._advance(node, [])

    def _complete(self, node: _Node, result: Any) -> None:
        if self._on_result is not None:
            self._on_result(node.item, node.repeat, result)
        if node.parent is not None:
            self._deliver(node.parent, node.slot, result)
            return
        self._live -= 1
        self.meter.flows_done += 1
        self._room.set()
        if not self._live:
            self._idle.set()

    def _deliver(self, node: _Node, slot: int, result: Any) -> None:
        node.results[slot] = result
        node.pending -= 1
        if not node.pending:
            self._advance(node, node.results)

    def _submit(self, node: _Node, slot: int, request: Request) -> None:
        """Answers a request from the journal or the cache, or queues it."""
        binding = self._bindings[request.role]
        pictures = _images(request)
        params = {**binding.params, **request.params} if request.params else binding.params
        key = request_key(
            request,
            model=binding.endpoint.model,
            params=params,
            repeat=node.repeat,
            prep=binding.rules.name if pictures else "",
        )
        if self._replay(node, slot, request, key) or self._from_cache(node, slot, request, key):
            return
        if not self._stopping:
            size = sum((i.end - i.start) if i.end is not None else 2**19 for i in pictures)
            self._queue(_Job(node, slot, request, binding, key, n_bytes=size))

    def _replay(self, node: _Node, slot: int, request: Request, key: str) -> bool:
        if self._journal is None:
            return False
        row = self._journal.take(address(node.item, node.repeat, request))
        if row is None or row.reply is None:
            return False
        if row.key != key:
            self._stop(_changed(row))
            return True
        meter = self.meter.roles[request.role]
        meter.replayed += 1
        if not row.cached:
            meter.count(row.reply, self._cost(request.role, row.reply))
        self._alike[request.role] = None
        self._deliver(node, slot, row.reply)
        return True

    def _from_cache(self, node: _Node, slot: int, request: Request, key: str) -> bool:
        binding = self._bindings[request.role]
        if self._cache is None or not binding.cacheable:
            return False
        reply = self._cache.get(cache_key(binding.endpoint.url, key))
        if reply is None:
            return False
        self.meter.roles[request.role].cached += 1
        self._store(_row(node, request, key, reply, cached=True))
        self._deliver(node, slot, reply)
        return True

    def _queue(self, job: _Job) -> None:
        lane = self._lanes[job.binding.endpoint.url]
        lead = job.request.lead if job.binding.shares_prefix else ""
        if lead and lead in lane.held:
            lane.held[lead].append(job)
            return
        if lead:
            job.leads = lead
            lane.held[lead] = []
        lane.push(job)
        self._pump(lane)

    def _release(self, lane: _Lane, lead: str) -> None:
        """Lets those go that waited for the first call with their prefix."""
        followers = lane.held.pop(lead, None)
        if followers:
            lane.push_front(followers)
            self._pump(lane)

    def _pump(self, lane: _Lane) -> None:
        """Fills the free slots of a lane."""
        while not self._stopping and lane.in_flight < lane.limit.limit:
            if self._must_wait(lane):
                return
            job = lane.pop()
            if job is None:
                return
            if not self._may_start(job):
                (lane.normal if job.request.role == "model" else lane.urgent).appendleft(job)
                return
            self._start(lane, job)

    def _must_wait(self, lane: _Lane) -> bool:
        at = time.monotonic()
        wait = max(lane.requests.wait_s(at), lane.tokens.wait_s(at))
        if wait > 0 and not lane.waking:
            lane.waking = True
            self._loop.call_later(wait, self._wake, lane)
        return wait > 0

    def _wake(self, lane: _Lane) -> None:
        lane.waking = False
        self._pump(lane)

    def _may_start(self, job: _Job) -> bool:
        if self._prepared_bytes and self._prepared_bytes + job.n_bytes > MAX_PREPARED_BYTES:
            return False
        if self._budget.max_usd is None:
            return True
        endpoint = job.binding.endpoint
        worst = worst_cost_usd(job.request, endpoint, {**job.binding.params, **job.request.params})
        if self._budget.reserve(worst):
            job.reserved = worst
            return True
        if not self.meter.in_flight:
            self._stop(_out_of_money(self._budget))
        return False

    def _start(self, lane: _Lane, job: _Job) -> None:
        at = time.monotonic()
        lane.requests.take(at)
        if lane.tokens.limited:
            lane.tokens.take(at, estimate_tokens(job.request))
        lane.in_flight += 1
        self.meter.in_flight += 1
        self.meter.pending[id(job)] = (at, job.node.item)
        self._prepared_bytes += job.n_bytes
        job.tries += 1
        if job.leads:
            self._loop.call_later(LEAD_S, self._release, lane, job.leads)
        task = self._loop.create_task(self._perform(lane, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _perform(self, lane: _Lane, job: _Job) -> None:
        """One try of one call, and what follows from it."""
        answer: Answer | None = None
        try:
            answer = await self._call(job)
        finally:
            lane.in_flight -= 1
            self.meter.in_flight -= 1
            self._prepared_bytes -= job.n_bytes
            del self.meter.pending[id(job)]
            if answer is not None:
                self._settle(lane, job, answer)
            self._pump_all()
            if self._stopping:
                self._idle.set()

    async def _call(self, job: _Job) -> Answer | None:
        try:
            pictures = await _prepare(job.request, job.binding.rules)
            return await job.binding.caller.call(job.request, pictures)
        except ImageError as error:
            return CallFailure("input_error", error.message)
        except SnellenError as error:
            self._stop(error)
            return None
        except Exception as error:  # noqa: BLE001 - a user's callable may raise anything
            return CallFailure("bad_reply", f"{type(error).__name__}: {error}"[:300])

    def _settle(self, lane: _Lane, job: _Job, answer: Answer) -> None:
        """Stores an answer and hands it on, or plans another try."""
        if job.leads:
            self._release(lane, job.leads)
            job.leads = ""
        self._settle_money(job, answer)
        if isinstance(answer, CallFailure):
            if answer.kind == "rate_limit":
                job.rate_limited += 1
                lane.limit.slow_down(time.monotonic())
            if self._retry(lane, job, answer):
                return
        else:
            lane.limit.speed_up()
        self._finish(job, answer)

    def _settle_money(self, job: _Job, answer: Answer) -> None:
        role = job.request.role
        if isinstance(answer, Reply):
            cost = self._cost(role, answer)
            self.meter.roles[role].count(answer, cost)
            self._budget.settle(job.reserved, cost)
        else:
            charged = answer.kind in MAYBE_CHARGED
            self._budget.settle(job.reserved, None if charged else 0.0)
        job.reserved = 0.0

    def _cost(self, role: str, reply: Reply) -> float | None:
        return cost_usd(reply.usage, self._bindings[role].endpoint)

    def _retry(self, lane: _Lane, job: _Job, failure: CallFailure) -> bool:
        policy = self._options.retry
        if failure.kind not in RETRYABLE or self._stopping:
            return False
        if not policy.allows(failure, tries=job.tries, rate_limited=job.rate_limited):
            return False
        self.meter.roles[job.request.role].retries += 1
        wait = backoff_s(failure, tries=job.tries, rng=self._rng)
        self._loop.call_later(wait, self._requeue, lane, job)
        return True

    def _requeue(self, lane: _Lane, job: _Job) -> None:
        if not self._stopping:
            lane.push(job)
            self._pump(lane)

    def _finish(self, job: _Job, answer: Answer) -> None:
        request = job.request
        meter = self.meter.roles[request.role]
        meter.done += 1
        self._store(_row(job.node, request, job.key, answer, tries=job.tries))
        if isinstance(answer, Reply):
            self._alike[request.role] = None
            if self._cache is not None and job.binding.cacheable and _may_be_cached(job, answer):
                self._cache.put(cache_key(job.binding.endpoint.url, job.key), answer)
        else:
            meter.failed += 1
            self._note_failure(request.role, job.binding.endpoint, answer)
        self._deliver(job.node, job.slot, answer)

    def _store(self, row: CallRow) -> None:
        if self._journal is not None:
            self._journal.append(row)

    def _note_failure(self, role: str, endpoint: Endpoint, failure: CallFailure) -> None:
        """Stops the run when an endpoint is hopeless."""
        if failure.kind in HOPELESS:
            self._stop(_hopeless(endpoint, failure))
        seen = self._alike[role]
        if seen is None or failure.kind in ITEM_FAILURES or self._stopping:
            return
        count = seen[1] + 1 if seen[0] in {"", failure.kind} else 1
        self._alike[role] = (failure.kind, count)
        if count >= self._options.give_up_after:
            self._stop(_all_alike(endpoint, failure, count))

    def _stop(self, error: SnellenError | None = None) -> None:
        """Starts nothing more; the first error is kept."""
        self._stopping = True
        if error is not None and self.error is None:
            self.error = error
        self._room.set()
        self._idle.set()

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _pump_all(self) -> None:
        for lane in self._lanes.values():
            self._pump(lane)

    async def _flush_regularly(self) -> None:
        while self._cache is not None:
            await asyncio.sleep(FLUSH_EVERY_S)
            await asyncio.to_thread(self._cache.flush)


def _lanes(bindings: Mapping[str, Binding]) -> dict[str, _Lane]:
    lanes: dict[str, _Lane] = {}
    for binding in bindings.values():
        end = binding.endpoint
        if end.url not in lanes:
            lanes[end.url] = _Lane(
                AdaptiveLimit(end.concurrency),
                MinuteRate(end.requests_per_minute),
                MinuteRate(end.tokens_per_minute),
            )
    return lanes


def _images(request: Request) -> Sequence[Image]:
    if len(request.messages) == 1 and len(request.messages[0].parts) == 1:
        part = request.messages[0].parts[0]
        return (part,) if isinstance(part, Image) else ()
    return [p for m in request.messages for p in m.parts if isinstance(p, Image)]


async def _prepare(request: Request, rules: media.PictureRules) -> list[media.Picture]:
    """The request's pictures, ready to be sent; mending goes to a thread."""
    pictures: list[media.Picture] = []
    for image in _images(request):
        picture = media.prepare_fast(image, rules)
        if picture is None:
            picture = await asyncio.to_thread(media.prepare, image, rules)
        pictures.append(picture)
    return pictures


def _row(
    node: _Node,
    request: Request,
    key: str,
    answer: Answer,
    *,
    cached: bool = False,
    tries: int = 1,
) -> CallRow:
    return CallRow(
        item=node.item,
        repeat=node.repeat,
        purpose=request.purpose,
        probe=request.probe,
        ask=request.ask,
        key=key,
        role=request.role,
        reply=answer if isinstance(answer, Reply) else None,
        failure=answer if isinstance(answer, CallFailure) else None,
        cached=cached,
        tries=tries,
        at=now(),
    )


def _may_be_cached(job: _Job, reply: Reply) -> bool:
    """A reply that a limit cut is kept only when that limit was sent, hence is in the key."""
    if reply.finish_reason != "length":
        return True
    params = {**job.binding.params, **job.request.params}
    return bool(params.get("max_tokens") or params.get("max_completion_tokens"))


def _changed(row: CallRow) -> RunFolderError:
    probe = f", probe {row.probe}" if row.probe else ""
    return RunFolderError(
        f"the stored {row.purpose} call of item {row.item}{probe} was made with another request",
        hint="inputs have changed since this run began; use another --out",
    )


def _hopeless(endpoint: Endpoint, failure: CallFailure) -> EndpointError:
    hints = {
        "auth": "check the key: --api-key-env or --judge-key-env names the variable that holds it",
        "quota": "the account has no credit left; the run goes on from here when it has",
        "unknown_model": "check the name; `snellen endpoint URL` lists the models that are there",
    }
    return EndpointError(
        f"{endpoint.name} at {endpoint.url}: {failure.message}",
        kind=failure.kind,
        hint=hints[failure.kind],
    )


def _all_alike(endpoint: Endpoint, failure: CallFailure, count: int) -> EndpointError:
    return EndpointError(
        f"the first {count} calls to {endpoint.name} at {endpoint.url} all failed alike "
        f"({failure.kind}): {failure.message}",
        kind=failure.kind,
        hint="`snellen endpoint URL --model NAME` says what the endpoint can do",
    )


def _out_of_money(budget: Budget) -> SnellenError:
    error = SnellenError(
        f"the next call could exceed --max-cost {budget.max_usd} USD "
        f"({budget.spent_usd:.4f} USD spent)",
        hint="start the same command with a higher --max-cost to go on from here",
    )
    error.exit_code = 3
    return error
