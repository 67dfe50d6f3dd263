"""What the workers of one run share: shards to do, limits, money, and how far all of them are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from snellen.engine.counters import Counters
from snellen.engine.stop_reasons import OutOfMoneyError
from snellen.errors import SnellenError

# The budget is handed out in so many pieces a worker, so that none waits while another has much.
PIECES = 8
MOST_NOTICES = 50


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told when it reports: its shares of all limits, and whether to stop.

    `share` is of calls in flight, by all workers that there will be; `rate_share` of calls and
    tokens a minute, by those that are there: a worker that is just starting uses none.
    """

    share: float
    rate_share: float
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class ShardEnd:
    """How a worker's shard ended. `spent_usd` is what its calls have cost over all starts."""

    number: int
    is_complete: bool
    spent_usd: float = 0.0
    error: SnellenError | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """How far all workers are together."""

    counters: Counters
    n_done: int
    n_workers: int
    notices: tuple[str, ...]
    error: SnellenError | None


@dataclass(slots=True)
class Board:
    """The state that all workers of a run share. It does no I/O, and knows nothing of Ray.

    `waiting` are the shards that nobody does. Limits belong to the run, so that each worker has an
    equal share of them. Money is granted by shard: `granted` never exceeds
    `max_usd`, and what a shard did not need comes back when it ends.
    """

    waiting: deque[int]
    workers: set[str]
    max_usd: float | None = None
    spent_usd: float = 0.0
    n_items: int = 0
    n_probes: int = 0
    n_done: int = 0
    stopped: bool = False
    error: SnellenError | None = None
    notices: dict[str, None] = field(default_factory=dict)
    _held: dict[str, set[int]] = field(default_factory=dict)
    _granted: dict[int, float] = field(default_factory=dict)
    _reports: dict[str, Counters] = field(default_factory=dict)
    _before: Counters = field(default_factory=Counters)

    def next(self, worker: str) -> int | None:
        """A shard for a worker; None where none is left, or all are to stop."""
        if self.stopped or not self.waiting:
            return None
        number = self.waiting.popleft()
        self._held.setdefault(worker, set()).add(number)
        return number

    def grant(self, number: int, spent_usd: float) -> float | None:
        """How much a shard may cost in all, more than it has spent; None: there is no more.

        Infinite without a budget.
        """
        if self.max_usd is None:
            return float("inf")
        granted = self._granted.get(number, 0.0)
        free = self.max_usd - self.spent_usd - sum(self._granted.values())
        piece = self.max_usd / (PIECES * max(len(self.workers), 1))
        more = min(free, max(spent_usd - granted, 0.0) + piece)
        if more <= 1e-12:
            return None
        self._granted[number] = granted + more
        return granted + more

    def report(self, worker: str, counters: Counters) -> Orders:
        """Takes a worker's counters since it began, and says what it is to do."""
        self._reports[worker] = counters
        return Orders(1.0 / max(len(self.workers), 1), 1.0 / len(self._reports), self.stopped)

    def end(self, worker: str, end: ShardEnd) -> None:
        """Takes note of a shard that has ended; an error stops all workers.

        Where money ends, they begin nothing more and end what their money is enough for.
        """
        self._held.get(worker, set()).discard(end.number)
        self._granted.pop(end.number, None)
        self.spent_usd += end.spent_usd
        self.n_done += end.is_complete
        if len(self.notices) < MOST_NOTICES:
            self.notices |= dict.fromkeys(end.notices)
        if isinstance(end.error, OutOfMoneyError):
            self.error = self.error or end.error
            self.waiting.clear()
        elif end.error is not None:
            self.stop(end.error)

    def leave(self, worker: str) -> None:
        """Takes leave of a worker that found no more shards: its share of limits is free."""
        self.workers.discard(worker)
        self._keep(worker)

    def lose(self, worker: str, successor: str) -> None:
        """Gives back the shards of a worker that died; another takes its place."""
        self.waiting.extendleft(sorted(self._held.pop(worker, ()), reverse=True))
        self.workers.discard(worker)
        self.workers.add(successor)
        # What it counted is counted again from its journals; only lost tries are not.
        self._reports.pop(worker, None)

    def stop(self, error: SnellenError | None = None) -> None:
        """Tells all workers to stop, at their next report."""
        self.error, self.stopped = self.error or error, True

    def state(self) -> State:
        """How far all workers are together."""
        total = Counters()
        total.add(self._before)
        for counters in self._reports.values():
            total.add(counters)
        total.n_items, total.probes = self.n_items, self.n_probes
        return State(total, self.n_done, len(self.workers), tuple(self.notices), self.error)

    def _keep(self, worker: str) -> None:
        done = self._reports.pop(worker, None)
        if done is not None:
            done.in_flight, done.away = 0, {}
            self._before.add(done)
