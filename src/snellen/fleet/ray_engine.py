"""Runs on Ray: workers on a cluster or on this machine share the items of one run.

Only this file knows Ray. Workers are tasks, the board is an actor, and the folder of the run lies
where the driver and all workers see it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from snellen.engine.counters import Counters
from snellen.engine.job import Display, Ended
from snellen.engine.journal import FolderLock
from snellen.engine.signals import interruptible
from snellen.errors import MissingExtraError, SnellenError, UsageError
from snellen.fleet.board import Board, Orders, ShardEnd, State
from snellen.fleet.parts import Parts, divide, unite
from snellen.fleet.requests import with_absolute_paths
from snellen.fleet.worker import Worker
from snellen.runs.folder import Run
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, exit_code

LOOK_EVERY_S = 0.25
# A worker that dies so often in a row, with nothing done in between, dies of the work itself.
MOST_LOST = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Remote:
    """The board behind an actor's handle, as a worker reaches it."""

    actor: Any

    def next(self, worker: str) -> Awaitable[int | None]:
        answer: Awaitable[int | None] = self.actor.next.remote(worker)
        return answer

    def grant(self, number: int, spent_usd: float) -> Awaitable[float | None]:
        answer: Awaitable[float | None] = self.actor.grant.remote(number, spent_usd)
        return answer

    def report(self, worker: str, counters: Counters) -> Awaitable[Orders]:
        answer: Awaitable[Orders] = self.actor.report.remote(worker, counters)
        return answer

    def end(self, worker: str, end: ShardEnd) -> Awaitable[None]:
        answer: Awaitable[None] = self.actor.end.remote(worker, end)
        return answer

    def leave(self, worker: str) -> Awaitable[None]:
        answer: Awaitable[None] = self.actor.leave.remote(worker)
        return answer


def _work(name: str, actor: Any, request: RunRequest, parts: Path, of: int) -> None:
    """One worker, in a process of Ray's."""
    asyncio.run(Worker(name, _Remote(actor), request, parts, of).work())


async def run_on_ray(
    request: RunRequest,
    *,
    progress: Callable[[str], Display] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Finished:
    """Runs a request on Ray, and unites what its workers have done into one run folder.

    Without an address, Ray is started on this machine and ended with the run. A worker that is
    lost is replaced, and its shards go on from their journals. After Ctrl-C or an error the folder
    keeps the parts, and the same command goes on.

    Raises:
        UsageError: the request cannot be shared.
        MissingExtraError: Ray is not installed.
        RunFolderError: the folder is in use.
    """
    if request.shard or request.control == "swapped":
        raise UsageError(
            "--engine ray goes neither with --shard nor with --control swapped",
            hint="leave one of them out",
        )
    ray = _started(request)
    out = Path(request.out).absolute()
    try:
        n_workers = request.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        out.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_Lock(out)):
            shared = replace(with_absolute_paths(request), engine=None, out=out)
            parts = await _elsewhere(ray, divide, shared, n_workers)
            driver = _Driver(ray, shared, parts, n_workers)
            with interruptible(driver.interrupt):
                display = None if progress is None else progress(str(request.benchmark))
                ended = await driver.drive(display, tell)
            return await _united(ray, parts, ended, request)
    finally:
        ray.shutdown()


class _Lock:
    """The folder, held against a second driver."""

    def __init__(self, out: Path) -> None:
        self._lock = FolderLock(out)

    def close(self) -> None:
        """Lets it go."""
        self._lock.release()


def _started(request: RunRequest) -> Any:
    """Ray, connected to a cluster or started on this machine."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", extra="ray") from error
    try:
        if request.address:
            ray.init(address=request.address, logging_level=logging.ERROR, log_to_driver=False)
        else:
            cpus = max(request.workers or 0, os.cpu_count() or 1)
            ray.init(
                address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False,
                logging_level=logging.ERROR,
            )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SnellenError(
            f"Ray cannot be reached: {str(error).splitlines()[0]}",
            hint="check --address; without it Ray is started on this machine",
        ) from error
    return ray


class _Driver:
    """Starts workers, replaces lost ones, and shows how far all are."""

    def __init__(self, ray: Any, request: RunRequest, parts: Parts, n_workers: int) -> None:
        self._ray, self._request, self._parts = ray, request, parts
        self._names = [f"worker-{k}" for k in range(1, min(n_workers, len(parts.waiting)) + 1)]
        self._board = ray.remote(Board).options(num_cpus=0).remote(
            deque(parts.waiting), set(self._names), request.max_cost, parts.spent_usd,
            parts.n_items, parts.n_probes, parts.n_done,
        )  # fmt: skip
        self._task = ray.remote(_work).options(num_cpus=1, max_retries=0)
        self._counters = Counters(started_at=time.monotonic())
        self.interrupted = False

    def interrupt(self) -> None:
        """Tells all workers to stop; what is in flight has a moment to finish."""
        self.interrupted = True
        self._board.stop.remote(None)

    async def drive(self, display: Display | None, tell: Callable[[str], None] | None) -> Ended:
        """Sees all workers to their end."""
        running = {self._start(name): name for name in self._names}
        n_lost, n_done, started = 0, 0, len(running)
        async with contextlib.AsyncExitStack() as stack:
            if display is not None:
                await stack.enter_async_context(display(self._counters))
            while running:
                ended, _ = await asyncio.to_thread(
                    self._ray.wait, list(running), timeout=LOOK_EVERY_S
                )
                state = await self._look()
                n_lost = 0 if state.n_done > n_done else n_lost
                n_done = state.n_done
                for task in ended:
                    name, error = running.pop(task), await self._error_of(task)
                    if error is None:
                        continue
                    if isinstance(error, SnellenError):
                        await self._board.stop.remote(error)
                        continue
                    n_lost, started = n_lost + 1, started + 1
                    if n_lost > MOST_LOST:
                        await self._board.stop.remote(
                            SnellenError(f"workers are lost again and again: {error}")
                        )
                        continue
                    successor = f"worker-{started}"
                    if tell is not None:
                        tell(f"{name} is lost; {successor} goes on from its journals")
                    await self._board.lose.remote(name, successor)
                    running[self._start(successor)] = successor
            state = await self._look()
        is_whole = state.n_done == self._parts.n_shards
        return Ended(
            is_whole,
            self.interrupted,
            state.error,
            self._counters,
            {},
            self._parts.notices + state.notices,
        )

    def _start(self, name: str) -> Any:
        return self._task.remote(
            name, self._board, self._request, self._parts.folder, self._parts.of
        )

    async def _error_of(self, task: Any) -> Exception | None:
        """What a worker ended with: an error of its own, or that of Ray which lost it."""
        errors = self._ray.exceptions
        try:
            await task
        except errors.RayTaskError as failed:
            cause = failed.cause
            if isinstance(cause, SnellenError):
                return cause
            raise
        except errors.RayError as lost:
            return _LostError(str(lost).splitlines()[0])
        return None

    async def _look(self) -> State:
        state: State = await self._board.state.remote()
        fresh, shown = state.counters, self._counters
        shown.roles, shown.n_items, shown.flows_done = (
            fresh.roles, fresh.n_items, fresh.flows_done,
        )  # fmt: skip
        shown.probes, shown.probes_done = fresh.probes, fresh.probes_done
        shown.in_flight, shown.away = fresh.in_flight, fresh.away
        shown.stage = f"{state.n_done} of {self._parts.n_shards} shards, {state.n_workers} workers"
        return state


class _LostError(Exception):
    """A worker that is gone, with what Ray says of it."""


async def _elsewhere(ray: Any, function: Callable[..., T], *words: object) -> T:
    """What a function gives, called in a process of Ray's: the driver stays small.

    Raises:
        SnellenError: what the function has raised.
    """
    try:
        # The process ends with the call, and its memory with it.
        task = ray.remote(max_calls=1, max_retries=0, num_cpus=0)(function)
        result: T = await task.remote(*words)
        return result
    except ray.exceptions.RayTaskError as failed:
        if isinstance(failed.cause, SnellenError):
            raise failed.cause from None
        raise


async def _united(ray: Any, parts: Parts, ended: Ended, request: RunRequest) -> Finished:
    """The run of all parts."""
    united = await _elsewhere(ray, unite, parts)
    if united is None:
        if ended.error is not None:
            raise ended.error
        raise SnellenError("interrupted before anything was done")
    spec, summary = united
    if ended.completed:
        shutil.rmtree(parts.folder, ignore_errors=True)
    notices = ended.notices
    if not ended.completed:
        notices += (f"the parts of the run stay in {parts.folder}: go on with --engine ray",)
    run = Run(parts.out, spec, (), {}, {}, summary)
    code = exit_code(summary, ended, max_unscored=request.max_unscored)
    return Finished(parts.out, summary, code, ended.error, notices, run)
