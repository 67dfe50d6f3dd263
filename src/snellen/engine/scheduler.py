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
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial

from snellen.endpoints.bind import Binding
from snellen.engine import pacing, queues, stop_reasons
from snellen.engine.cache import ResponseCache, cache_key, is_shareable
from snellen.engine.counters import Counters, RoleCounters
from snellen.engine.journal import Journal
from snellen.engine.pacing import Budget, DriveOptions
from snellen.engine.queues import Call, Gates, Lane, Node
from snellen.errors import ImageError, SnellenError
from snellen.flows import Flow
from snellen.pictures import prepare
from snellen.records import (
    HOPELESS,
    RETRYABLE,
    Answer,
    CallFailure,
    Params,
    Reply,
    Request,
    address,
    is_unreadable,
)

__all__ = ["DriveOptions", "Scheduler"]

LEAD_S = 0.03
# How long calls in flight may still take after Ctrl-C, and after an error that stops the run.
INTERRUPT_GRACE_S = 0.75
STOP_GRACE_S = 10.0
FLUSH_EVERY_S = 2.0
# A call that ends sooner has not let the event loop go round.
NO_WAIT_S = 0.0005
MAX_PREPARED_BYTES = 192 * 2**20
MAX_STALE = 10
MAYBE_CHARGED = frozenset({"timeout", "bad_reply", "connection"})
OnResult = Callable[[str, int, object], None]
Work = tuple[str, int, Flow[object]]


class Scheduler:
    """Runs flows against endpoints. One scheduler drives one run, once.

    Runs that share `gates` share the limits of each URL.
    """

    def __init__(
        self,
        bindings: Mapping[str, Binding],
        *,
        journal: Journal | None = None,
        cache: ResponseCache | None = None,
        options: DriveOptions | None = None,
        on_result: OnResult | None = None,
        counters: Counters | None = None,
        tell: Callable[[str], None] = lambda _: None,
        gates: Gates | None = None,
    ) -> None:
        self.counters = Counters() if counters is None else counters
        self.counters.roles = {role: RoleCounters() for role in bindings}
        self.error: SnellenError | None = None
        # How many calls of a role failed for good in each way, and what the first of them was told.
        self.failures: dict[tuple[str, str], tuple[int, str]] = {}
        self.interrupted = False
        self._bindings = bindings
        self._journal, self._cache = journal, cache
        self._options = options or DriveOptions()
        self._on_result = on_result
        self._budget = Budget(self._options.max_cost_usd)
        self._rng = random.Random(self._options.seed)
        gates = {} if gates is None else gates
        self._lanes = queues.lanes_of(bindings, gates, patience_s=self._options.patience_s)
        self._tell = tell
        self._params = {role: binding.params for role, binding in bindings.items()}
        self._streaks = {role: stop_reasons.Streak(role) for role in bindings}
        self._ready: deque[tuple[Node, list[object] | None]] = deque()
        self._turning = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._live = 0
        self._prepared_bytes = 0
        # Whether a call had to wait for money or memory that another call's end sets free.
        self._is_short = False
        self._stopping = False
        self._driving = False
        self._defect: BaseException | None = None
        self._room, self._idle = asyncio.Event(), asyncio.Event()
        self.halted = asyncio.Event()
        self.completed = False

    async def drive(self, work: Iterable[Work]) -> None:
        """Drives all flows to their end, or until something stops the run."""
        await self.drive_batches([work])

    async def drive_batches(self, batches: Iterable[Iterable[Work]]) -> None:
        """Drive batches of flows, one batch after another.

        A stop is not raised: `error` and `interrupted` say what it was, and every call that was
        in flight has been stored by then. A defect, in a flow or here, is raised.
        """
        self.counters.started_at = time.monotonic()
        self._count_money_spent()
        self._driving = True
        flusher = asyncio.create_task(self._flush_regularly())
        pumps = [(lane.gate.pumps, partial(self._pump, lane)) for lane in self._lanes.values()]
        for waiting, pump in pumps:
            waiting.append(pump)
        try:
            for work in () if self._stopping else batches:
                await self._drain(work)
                if self._stopping:  # a later batch may be made of rows that are missing
                    break
            self.completed = not self._stopping
        finally:
            self._stopping, self._driving = True, False
            for waiting, pump in pumps:
                waiting.remove(pump)
            flusher.cancel()
            self._cancel_all()
            await asyncio.gather(flusher, *self._tasks, return_exceptions=True)
            for waiting, _ in pumps:  # what this run held is free for those beside it
                for start_more in tuple(waiting):
                    start_more()
        if self._defect is not None:
            raise self._defect

    async def _drain(self, work: Iterable[Work]) -> None:
        await self._feed(iter(work))
        while self._live and not (self._stopping and not self.counters.in_flight):
            self._idle.clear()
            await self._idle.wait()

    def stop(self, error: SnellenError) -> None:
        """Ends the run for a reason; before `drive`, nothing is called at all."""
        self._stop(error, grace_s=STOP_GRACE_S)

    def interrupt(self) -> None:
        """Starts nothing more; what is in flight has a moment to finish, the second time none."""
        if self.interrupted:
            self._cancel_all()
            return
        self.interrupted = True
        self._stop(grace_s=INTERRUPT_GRACE_S)

    @property
    def max_live(self) -> int:
        """How many flows may be under way: twice what the busiest endpoint takes."""
        ceiling = max((lane.gate.limit.ceiling for lane in self._lanes.values()), default=1)
        return self._options.max_live or max(16, 2 * ceiling)

    async def _feed(self, work: Iterator[Work]) -> None:
        for item, repeat, flow in work:
            if self._stopping:
                return
            self._live += 1
            try:
                self._advance(Node(flow, item, repeat), None)
            except SnellenError as error:
                self._stop(error, grace_s=STOP_GRACE_S)
            await asyncio.sleep(0)
            while self._live >= self.max_live and not self._stopping:
                self._room.clear()
                await self._room.wait()

    def _advance(self, node: Node, answers: list[object] | None) -> None:
        """Sends a flow its answers; a queue keeps long replays off the stack."""
        self._ready.append((node, answers))
        if self._turning:
            return
        self._turning = True
        try:
            while self._ready:
                self._turn(*self._ready.popleft())
        finally:
            self._turning = False

    def _turn(self, node: Node, answers: list[object] | None) -> None:
        """One turn of a flow: it gets its answers and says what it wants next."""
        try:
            wanted = node.flow.send(answers)
        except StopIteration as stop:
            self._complete(node, stop.value)
            return
        if node.to_cache:
            self._share(node, is_read=not any(isinstance(w, Request) and w.ask for w in wanted))
        node.results = [None] * len(wanted)
        node.pending = len(wanted)
        for slot, want in enumerate(wanted):
            if isinstance(want, Request):
                self._submit(node, slot, want)
            else:
                self._advance(Node(want, node.item, node.repeat, node, slot), None)
        if not wanted:
            self._advance(node, [])

    def _share(self, node: Node, *, is_read: bool) -> None:
        """Keeps replies for other runs, unless the flow could not read them."""
        assert self._cache is not None
        for key, reply in node.to_cache if is_read else ():
            self._cache.put(key, reply)
        node.to_cache.clear()

    def _complete(self, node: Node, result: object) -> None:
        if node.to_cache:
            self._share(node, is_read=not is_unreadable(result))
        if self._on_result is not None:
            self._on_result(node.item, node.repeat, result)
        if node.parent is not None:
            self._deliver(node.parent, node.slot, result)
            return
        self._live -= 1
        self.counters.flows_done += 1
        self._room.set()
        if not self._live:
            self._idle.set()

    def _deliver(self, node: Node, slot: int, result: object) -> None:
        node.results[slot] = result
        node.pending -= 1
        if not node.pending:
            self._advance(node, node.results)

    def _submit(self, node: Node, slot: int, request: Request) -> None:
        """Answers a request from the journal or the cache, or queues it."""
        binding = self._bindings[request.role]
        params = self._params[request.role]
        key = queues.key_of(request, binding, params=params, repeat=node.repeat)
        if self._replay(node, slot, request, key) or self._from_cache(node, slot, request, key):
            return
        if not self._stopping:
            n_bytes = queues.weight(queues.images_of(request))
            self._queue(Call(node, slot, request, binding, key, n_bytes=n_bytes))

    def _params_of(self, request: Request) -> Params:
        params = self._params[request.role]
        return {**params, **request.params} if request.params else params

    def _replay(self, node: Node, slot: int, request: Request, key: str) -> bool:
        if self._journal is None:
            return False
        row = self._journal.take(address(node.item, node.repeat, request))
        if row is None or row.reply is None:
            return False
        if row.key != key:
            self._stop(stop_reasons.changed(row))
            return True
        counters = self.counters.roles[request.role]
        counters.replayed += 1
        if not row.cached:
            counters.count(row.reply.usage, self._cost(request.role, row.reply))
        self._streaks[request.role].broken()
        self._deliver(node, slot, row.reply)
        return True

    def _from_cache(self, node: Node, slot: int, request: Request, key: str) -> bool:
        binding = self._bindings[request.role]
        if self._cache is None or not binding.cacheable:
            return False
        if self._journal is not None and self._journal.is_renewed(node.item, node.repeat, request):
            return False
        reply = self._cache.get(cache_key(binding.endpoint, key))
        if reply is None:
            return False
        self.counters.roles[request.role].cached += 1
        self._store(node, request, key, reply, tries=0)
        self._deliver(node, slot, reply)
        return True

    def _queue(self, call: Call) -> None:
        lane = self._lanes[call.binding.endpoint.url]
        lead = call.request.lead if call.binding.shares_prefix else ""
        if lead and lead in lane.held:
            lane.held[lead].append(call)
            return
        if lead:
            call.leads = lead
            lane.held[lead] = []
        lane.push(call)
        self._pump(lane)

    def _release(self, lane: Lane, lead: str) -> None:
        """Lets those go that waited for the first call with their prefix."""
        followers = lane.held.pop(lead, None)
        if followers:
            lane.push_front(followers)
            self._pump(lane)

    def _pump(self, lane: Lane) -> None:
        """Fills the free slots of a lane."""
        while (call := self._take(lane)) is not None:
            self._spawn(self._work(lane, call))

    def _take(self, lane: Lane) -> Call | None:
        """The next call that may start now, with its slot, time and money taken."""
        if self._stopping or lane.gate.in_flight >= lane.gate.limit.limit:
            return None
        gate = lane.gate
        if gate.presence.is_away and (gate.in_flight or not gate.may_probe):
            return None
        if lane.is_metered and self._must_wait(lane):
            return None
        call = lane.pop()
        if call is None:
            return None
        if not self._may_start(call):
            (lane.normal if call.request.role == "model" else lane.urgent).appendleft(call)
            self._is_short = True
            return None
        self._occupy(lane, call)
        return call

    def _must_wait(self, lane: Lane) -> bool:
        at = time.monotonic()
        wait = max(lane.gate.requests.wait_s(at), lane.gate.tokens.wait_s(at))
        if wait > 0 and not lane.waking:
            lane.waking = True
            self._later(wait, self._wake, lane)
        return wait > 0

    def _wake(self, lane: Lane) -> None:
        lane.waking, lane.gate.may_probe = False, True
        self._pump(lane)

    def _may_start(self, call: Call) -> bool:
        prepared = self._prepared_bytes
        if prepared and call.n_bytes and prepared + call.n_bytes > MAX_PREPARED_BYTES:
            return False
        if self._budget.max_usd is None:
            return True
        endpoint = call.binding.endpoint
        worst = pacing.worst_cost_usd(call.request, endpoint, self._params_of(call.request))
        if self._budget.reserve(worst):
            call.reserved = worst
            return True
        if not self.counters.in_flight:
            self._stop(stop_reasons.out_of_money(self._budget))
        return False

    def _occupy(self, lane: Lane, call: Call) -> None:
        at = time.monotonic()
        if lane.is_metered:
            lane.gate.requests.take(at)
            lane.gate.tokens.take(at, pacing.estimate_tokens(call.request))
        lane.gate.may_probe = False
        lane.gate.in_flight += 1
        self.counters.in_flight += 1
        self.counters.pending[id(call)] = (at, call.node.item)
        self._prepared_bytes += call.n_bytes
        call.tries += 1
        self.counters.roles[call.request.role].tries += 1
        if call.leads:
            self._later(LEAD_S, self._release, lane, call.leads)

    def _leave(self, lane: Lane, call: Call) -> None:
        lane.gate.in_flight -= 1
        self.counters.in_flight -= 1
        self._prepared_bytes -= call.n_bytes
        del self.counters.pending[id(call)]

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _later(self, delay_s: float, step: Callable[..., None], *words: object) -> None:
        """Takes a step after a while, unless the drive has ended by then."""

        async def wait() -> None:
            await asyncio.sleep(delay_s)
            step(*words)

        self._spawn(wait())

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Lets no defect pass in silence: the flows that it struck would wait for ever."""
        self._tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            if isinstance(error, SnellenError):
                self._stop(error, grace_s=STOP_GRACE_S)
            elif error is not None:
                self._defect = self._defect or error
                self._stop(grace_s=0.0)
        if self._stopping:
            self._idle.set()

    async def _work(self, lane: Lane, first: Call) -> None:
        """One slot: makes a call and what follows from it, then the next, while there are any.

        A slot is free only when its flow has gone on, so that the calls that follow find it here:
        a task for each call would cost more than all else that is done for it.
        """
        call: Call | None = first
        while call is not None:
            started = time.monotonic()
            try:
                self._settle(lane, call, await self._answer(call))
            finally:
                self._leave(lane, call)
            if time.monotonic() - started < NO_WAIT_S:
                await asyncio.sleep(0)
            if self._is_short:
                self._is_short = False
                for other in self._lanes.values():
                    self._pump(other)
            if len(lane.gate.pumps) > 1:
                lane.gate.pump_in_turn()
            call = self._take(lane)
            self._pump(lane)

    async def _answer(self, call: Call) -> Answer:
        try:
            pictures: Sequence[prepare.Picture] = ()
            if call.n_bytes:
                pictures = await queues.read_pictures(call.request, call.binding.rules)
            return await call.binding.caller.call(call.request, pictures)
        except ImageError as error:
            return CallFailure("input_error", error.message)
        except SnellenError:
            raise
        except asyncio.CancelledError:
            if self._stopping:
                raise
            return CallFailure("bad_reply", "the call was cancelled from outside")
        except Exception as error:  # noqa: BLE001 - a user's callable may raise anything
            return CallFailure("bad_reply", f"{type(error).__name__}: {error}"[:300])

    def _settle(self, lane: Lane, call: Call, answer: Answer) -> None:
        """Stores an answer and hands it on, or plans another try."""
        if call.leads:
            self._release(lane, call.leads)
            call.leads = ""
        self._settle_money(call, answer)
        if isinstance(answer, CallFailure):
            if answer.kind == "rate_limit":
                call.rate_limited += 1
                lane.gate.limit.slow_down(time.monotonic())
            if self._wait_for_server(lane, call, answer) or self._retry(lane, call, answer):
                return
        else:
            lane.gate.limit.speed_up()
            is_back = lane.gate.presence.note_reply()
            if self.counters.away and (known := self.counters.away.pop(lane.gate.name, None)):
                self._tell(f"{lane.gate.name} answers again after {time.time() - known[0]:.0f} s")
            if is_back:
                lane.gate.pump_in_turn()
        self._finish(call, answer)

    def _wait_for_server(self, lane: Lane, call: Call, failure: CallFailure) -> bool:
        """Puts a call back where its server is away, and plans when to try the server again."""
        presence, name, at = lane.gate.presence, lane.gate.name, time.monotonic()
        if not presence.note_failure(failure, call=id(call), at_s=at):
            return False
        if presence.is_over(at):
            self._stop(stop_reasons.stayed_away(name, failure, presence), grace_s=STOP_GRACE_S)
        if self._stopping:
            return True  # neither tried again nor failed: the next start makes this call
        if name not in self.counters.away:
            since, until = (
                time.time() - at + when for when in (presence.since_s, presence.until_s)
            )
            self.counters.away[name] = (since, until)
            self._tell(stop_reasons.waits(name, failure, since_s=since, until_s=until))
        call.tries -= 1
        lane.push_front([call])
        if not lane.waking:
            lane.waking = True
            self._later(presence.next_wait_s(failure, at_s=at), self._wake, lane)
        return True

    def _settle_money(self, call: Call, answer: Answer) -> None:
        role = call.request.role
        if isinstance(answer, Reply):
            cost = self._cost(role, answer)
            self.counters.roles[role].count(answer.usage, cost)
            self._budget.settle(call.reserved, cost)
        else:
            charged = answer.kind in MAYBE_CHARGED and answer.was_sent
            self._budget.settle(call.reserved, None if charged else 0.0)
        call.reserved = 0.0

    def _cost(self, role: str, reply: Reply) -> float | None:
        return pacing.cost_usd(reply.usage, self._bindings[role].endpoint)

    def _retry(self, lane: Lane, call: Call, failure: CallFailure) -> bool:
        policy = self._options.retry
        if failure.kind not in RETRYABLE:
            return False
        # A server that closes a connection just as it is used again says nothing about the call.
        is_free = failure.is_stale and call.stale < MAX_STALE
        call.stale += is_free
        tries = call.tries - call.stale
        if not is_free and not policy.allows(failure, tries=tries, rate_limited=call.rate_limited):
            return False
        if self._stopping:
            return True  # neither tried again nor failed: the next start makes this call
        self.counters.roles[call.request.role].retries += 1
        wait = 0.0 if is_free else pacing.backoff_s(failure, tries=tries, rng=self._rng)
        self._later(wait, self._requeue, lane, call)
        return True

    def _requeue(self, lane: Lane, call: Call) -> None:
        if not self._stopping:
            lane.push(call)
            self._pump(lane)

    def _finish(self, call: Call, answer: Answer) -> None:
        request = call.request
        counters = self.counters.roles[request.role]
        counters.done += 1
        self._store(call.node, request, call.key, answer, tries=call.tries)
        if isinstance(answer, Reply):
            if answer.text.strip() or not stop_reasons.is_judge(request.role):
                self._streaks[request.role].broken()
            else:
                self._grow_streak(call, stop_reasons.empty_reply(answer))
            params = self._params_of(request)
            if self._cache is not None and call.binding.cacheable and is_shareable(answer, params):
                key = cache_key(call.binding.endpoint, call.key)
                call.node.to_cache.append((key, answer))
        else:
            counters.failed += 1
            self._note_failure(call, answer)
        self._deliver(call.node, call.slot, answer)

    def _store(
        self, node: Node, request: Request, key: str, answer: Answer, *, tries: int = 1
    ) -> None:
        """Writes a finished call; no tries stand for a reply out of the cache."""
        if self._journal is not None:
            self._journal.store(request, key, answer, place=(node.item, node.repeat), tries=tries)

    def _note_failure(self, call: Call, failure: CallFailure) -> None:
        """Counts a failure for good, and stops the run when an endpoint is hopeless."""
        place = (call.request.role, failure.kind)
        count, said = self.failures.get(place, (0, failure.message))
        self.failures[place] = (count + 1, said)
        if failure.kind in HOPELESS:
            error = stop_reasons.hopeless(call.binding.endpoint, failure)
            self._stop(error, grace_s=STOP_GRACE_S)
        self._grow_streak(call, failure)

    def _grow_streak(self, call: Call, failure: CallFailure) -> None:
        """Notes one more failure in a row, and stops the run where there seems to be no end."""
        if self._stopping:
            return
        endpoint = call.binding.endpoint
        streak = self._streaks[call.request.role]
        streak.grown(failure, call.node.item)
        ceiling = self._lanes[endpoint.url].gate.limit.ceiling
        if streak.is_hopeless(self._options.give_up_after, ceiling):
            self._stop(stop_reasons.all_alike(endpoint, failure, streak), grace_s=STOP_GRACE_S)

    def _stop(self, error: SnellenError | None = None, *, grace_s: float | None = None) -> None:
        """Starts nothing more; the first error is kept.

        What is in flight has `grace_s` to finish, and with None all the time that it needs.
        """
        if self.error is None:
            self.error = error
        self._stopping = True
        if grace_s is not None and self._driving:
            self._later(grace_s, self._cancel_all)
        self.halted.set()
        self._room.set()
        self._idle.set()

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _count_money_spent(self) -> None:
        """Counts what earlier starts on this folder have spent: the budget is the run's."""
        if self._budget.max_usd is None or self._journal is None:
            return
        for row in self._journal.stored():
            if row.reply is not None and not row.cached and row.role in self._bindings:
                self._budget.settle(0.0, self._cost(row.role, row.reply))

    async def _flush_regularly(self) -> None:
        while self._cache is not None:
            await asyncio.sleep(FLUSH_EVERY_S)
            await asyncio.to_thread(self._cache.flush)
