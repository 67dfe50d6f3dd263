"""Drive work: the one way in which calls are made, for runs, judges and builders alike.

A `Job` says who answers, which flows are driven, and where their rows and calls go.
`drive` makes the calls; `forecast.forecast` counts them and sends nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snellen.endpoints.bind import Binding
from snellen.engine.cache import ResponseCache
from snellen.engine.counters import Counters
from snellen.engine.journal import Journal
from snellen.engine.preflight import look_ahead
from snellen.engine.queues import Gates
from snellen.engine.scheduler import DriveOptions, Scheduler
from snellen.engine.signals import interruptible
from snellen.errors import INTERRUPTED, EndpointError, SnellenError
from snellen.flows import Flow
from snellen.records import HOPELESS

Work = tuple[str, int, Flow[object]]
"""An item's id, its repeat, and its flow."""
Sink = Callable[[str, int, Any], None]
"""Takes an item's id, its repeat, and a row that a flow or a child flow has returned."""
Display = Callable[[Counters], AbstractAsyncContextManager[object]]
"""Shows counters for as long as the context is open."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Flows that are driven side by side.

    `stage` names the batch where a job has several. `n_items` and `n_probes` are the numbers to
    come, for whoever shows progress; 0 where nobody has counted.
    """

    work: Iterable[Work]
    stage: str = ""
    n_items: int = 0
    n_probes: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """Work to drive, with all that driving needs.

    `bindings` says who answers each role, any number of roles. `batches` are driven one after
    another; a batch is not looked at before the one ahead of it has ended, so that it may be made
    of that one's rows. `folder` is where `calls.jsonl` lies and what a second start resumes from;
    None keeps no journal. `sinks` maps the exact type of a row to whoever takes such rows; each
    entry of a list is a row of its own, and a row without a sink is let go. `preflight` asks new
    endpoints for their models before the first call. Jobs that share `gates` share the limits of
    each URL. `tell` takes notices while the job is under way; without it they come with the end.
    """

    bindings: Mapping[str, Binding]
    batches: Iterable[Batch]
    folder: Path | None = None
    sinks: Mapping[type, Sink] = field(default_factory=dict)
    cache: ResponseCache | None = None
    options: DriveOptions = field(default_factory=DriveOptions)
    progress: Display | None = None
    preflight: bool = True
    tell: Callable[[str], None] | None = None
    gates: Gates | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended.

    `error` is what stopped it, None where nothing did. `failures` maps role and kind of failure
    to how many calls failed for good in this way, and what the first of them was told.
    """

    completed: bool
    interrupted: bool
    error: SnellenError | None
    counters: Counters
    failures: Mapping[tuple[str, str], tuple[int, str]]
    notices: tuple[str, ...]

    def exit_code(self, *, has_results: bool) -> int:
        """0 done; 1 hopeless before any result; 3 stopped after some; 130 Ctrl-C."""
        if self.interrupted and not self.completed:
            return INTERRUPTED
        if self.error is None:
            return 0
        if not isinstance(self.error, EndpointError):
            return self.error.exit_code
        return 1 if self.error.kind in HOPELESS and not has_results else 3

    def check(self) -> None:
        """Goes on only where the job came to its end.

        Raises:
            SnellenError: what stopped the job; its exit code is 130 after Ctrl-C.
        """
        if self.error is not None:
            raise self.error
        if not self.completed:
            error = SnellenError("interrupted", hint="the same command goes on where it stopped")
            error.exit_code = INTERRUPTED
            raise error

    def failure_notices(self) -> tuple[str, ...]:
        """Why calls failed, in the server's words; what stopped the job is said elsewhere."""
        said_already = self.error.kind if isinstance(self.error, EndpointError) else ""
        return tuple(
            f"{count} {role} call{'s' * (count > 1)} failed ({kind}), the first with: {said}"
            for (role, kind), (count, said) in self.failures.items()
            if kind not in (said_already, "language")
        )


async def drive(
    job: Job, *, journal: Journal | None = None, counters: Counters | None = None
) -> Ended:
    """Drives a job to its end, or until Ctrl-C or something else stops it.

    `journal` is that of the job's folder, and `counters` those that a sink adds to, where the
    caller has made them already. The callers of all bindings are closed at the end.

    Raises:
        RunFolderError: the folder is in use, or cannot be written.
    """
    async with contextlib.AsyncExitStack() as stack:
        for binding in job.bindings.values():
            stack.push_async_callback(binding.caller.close)
        if journal is None and job.folder is not None:
            journal = stack.enter_context(Journal(job.folder))
        counters = Counters() if counters is None else counters
        told: list[str] = []
        scheduler = Scheduler(
            job.bindings,
            journal=journal,
            cache=job.cache,
            options=job.options,
            on_result=lambda item, repeat, row: deliver(job.sinks, item, repeat, row),
            counters=counters,
            tell=job.tell or told.append,
            gates=job.gates,
        )
        stack.enter_context(interruptible(scheduler.interrupt))
        notices = () if journal is None else journal.notices
        if job.preflight and (journal is None or not journal.n_stored):
            notices += await look_ahead(job.bindings, scheduler)

        def begun() -> Iterator[Iterable[Work]]:
            for batch in job.batches:
                counters.stage, counters.flows_done = batch.stage, 0
                counters.n_items = batch.n_items
                counters.probes, counters.probes_done = batch.n_probes, 0
                yield batch.work

        if job.progress is not None:
            await stack.enter_async_context(job.progress(counters))
        await scheduler.drive_batches(begun())
        if job.cache is not None:
            job.cache.flush()
            notices += job.cache.notices
    return Ended(
        scheduler.completed,
        scheduler.interrupted,
        scheduler.error,
        counters,
        scheduler.failures,
        notices + tuple(told),
    )


def deliver(sinks: Mapping[type, Sink], item: str, repeat: int, row: object) -> None:
    """Hands a row to its sink; a list, entry by entry."""
    if type(row) is list:
        for entry in row:
            deliver(sinks, item, repeat, entry)
    elif (sink := sinks.get(type(row))) is not None:
        sink(item, repeat, row)
