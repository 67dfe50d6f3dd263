"""A worker of a shared run: it takes shards from a board and drives each in a folder of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from snellen.endpoints.bind import Binding
from snellen.engine.counters import Counters
from snellen.engine.queues import Gates, lanes_of
from snellen.engine.signals import interrupt_all
from snellen.engine.stop_reasons import OutOfMoneyError
from snellen.errors import INTERRUPTED, SnellenError
from snellen.fleet.board import Orders, ShardEnd
from snellen.fleet.parts import part_folder, part_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, Plan, execute

# So many shards side by side: one begins while another waits for its last replies.
AT_ONCE = 2
REPORT_EVERY_S = 0.4
MORE_MONEY = "start the same command with a higher --max-cost to go on from here"
NO_ORDERS = Orders(1.0, 1.0, is_stopped=False)


class Shared(Protocol):
    """The board as a worker reaches it, wherever it is."""

    def next(self, worker: str) -> Awaitable[int | None]: ...
    def grant(self, number: int, spent_usd: float) -> Awaitable[float | None]: ...
    def report(self, worker: str, counters: Counters) -> Awaitable[Orders]: ...
    def end(self, worker: str, end: ShardEnd) -> Awaitable[None]: ...
    def leave(self, worker: str) -> Awaitable[None]: ...


@dataclass(slots=True)
class Worker:
    """One worker. `parts` is the folder of all shards, `of` how many there are."""

    name: str
    board: Shared
    request: RunRequest
    parts: Path
    of: int
    _gates: Gates = field(default_factory=dict)
    _bindings: dict[str, Binding] = field(default_factory=dict)
    _live: list[Counters] = field(default_factory=list)
    _before: Counters = field(default_factory=Counters)
    _orders: Orders = NO_ORDERS

    async def work(self) -> None:
        """Does shards until none is left.

        Raises:
            SnellenError: a setting is wrong.
        """
        self._take_orders(await self.board.report(self.name, Counters()))
        reporting = asyncio.create_task(self._report_regularly())
        try:
            hands = [self._work() for _ in range(AT_ONCE)]
            await asyncio.gather(*hands)
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
        await self.board.report(self.name, self._counted())
        await self.board.leave(self.name)

    async def _work(self) -> None:
        while not self._orders.is_stopped:
            number = await self.board.next(self.name)
            if number is None:
                return
            plan = part_plan(self.request, part_folder(self.parts, number, self.of))
            # One shard of a worker asks endpoints for their models: that is enough.
            plan = replace(plan, preflight=not self._before.roles)
            await self.board.end(self.name, await self._drive(plan, number))

    async def _drive(self, plan: Plan, number: int) -> ShardEnd:
        """Drives a shard to its end, with money as it is granted."""
        self._open_gates(plan)
        spent = 0.0
        error: SnellenError = OutOfMoneyError("nothing is left of --max-cost", hint=MORE_MONEY)
        while True:
            budget = await self.board.grant(number, spent)
            if budget is None:
                return ShardEnd(number, is_complete=False, spent_usd=spent, error=error)
            most = None if budget == float("inf") else budget
            drive = replace(plan.drive, max_cost_usd=most)
            finished = await execute(
                replace(plan, drive=drive), progress=self._watch, gates=self._gates
            )
            spent = float(finished.summary.usage.get("cost_usd") or 0.0)
            if not isinstance(finished.error, OutOfMoneyError) or self._orders.is_stopped:
                return _end_of(finished, number, spent)

    def _open_gates(self, plan: Plan) -> None:
        """The limits of each address, this worker's share of them, for all of its shards."""
        lanes_of(plan.bindings, self._gates, patience_s=plan.drive.patience_s)
        for binding in plan.bindings.values():
            if binding.endpoint.url not in self._bindings:
                self._bindings[binding.endpoint.url] = binding
                self._set_limits(binding)
                gate, at = self._gates[binding.endpoint.url], time.monotonic()
                if self._orders.rate_share < 1.0:  # others have spent this second's worth
                    gate.requests.empty(at)
                    gate.tokens.empty(at)

    def _set_limits(self, binding: Binding) -> None:
        end, gate, at = binding.endpoint, self._gates[binding.endpoint.url], time.monotonic()
        gate.limit.set_ceiling(max(1, round(end.concurrency * self._orders.share)))
        share = self._orders.rate_share
        if end.requests_per_minute is not None:
            gate.requests.set_rate(end.requests_per_minute * share, at)
        if end.tokens_per_minute is not None:
            gate.tokens.set_rate(end.tokens_per_minute * share, at)

    @asynccontextmanager
    async def _watch(self, counters: Counters) -> AsyncIterator[None]:
        """Counts a shard among those under way for as long as it is."""
        self._live.append(counters)
        try:
            yield
        finally:
            self._live.remove(counters)
            self._before.add(counters)

    def _counted(self) -> Counters:
        total = Counters()
        for counters in (self._before, *self._live):
            total.add(counters)
        return total

    async def _report_regularly(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self._take_orders(await self.board.report(self.name, self._counted()))

    def _take_orders(self, orders: Orders) -> None:
        before, self._orders = self._orders, orders
        if (before.share, before.rate_share) != (orders.share, orders.rate_share):
            for binding in self._bindings.values():
                self._set_limits(binding)
        if orders.is_stopped and not before.is_stopped:
            interrupt_all()


def _end_of(finished: Finished, number: int, spent: float) -> ShardEnd:
    is_complete = finished.summary.status == "complete"
    error = finished.error
    if error is None and not is_complete and finished.exit_code != INTERRUPTED:
        error = SnellenError(f"shard {number} has not come to its end")
    return ShardEnd(number, is_complete, spent, error, finished.notices)
