"""Calls on their way to endpoints: who is called, what waits for it, and in which lane."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snellen.endpoints.bind import Binding
from snellen.engine.pacing import AdaptiveLimit, MinuteRate
from snellen.flows import Flow
from snellen.records import Reply, Request


@dataclass(slots=True)
class Node:
    """A flow under way: its place in its parent, and the answers that it waits for.

    `judged` holds judgements, by cache key, that are kept once the flow could read them.
    """

    flow: Flow[Any]
    item: str
    repeat: int
    parent: Node | None = None
    slot: int = 0
    results: list[Any] = field(default_factory=list)
    pending: int = 0
    judged: dict[str, Reply] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Job:
    """A request on its way to an endpoint."""

    node: Node
    slot: int
    request: Request
    binding: Binding
    key: str
    tries: int = 0
    rate_limited: int = 0
    stale: int = 0
    reserved: float = 0.0
    n_bytes: int = 0
    leads: str = ""


@dataclass(slots=True, eq=False)
class Gate:
    """The limits of one URL, which runs side by side share; `pumps` start what waits for it."""

    limit: AdaptiveLimit
    requests: MinuteRate
    tokens: MinuteRate
    in_flight: int = 0
    pumps: deque[Callable[[], None]] = field(default_factory=deque)

    def pump_in_turn(self) -> None:
        """Let every run start what it can, each time another run first."""
        self.pumps.rotate(-1)
        for pump in tuple(self.pumps):
            pump()


Gates = dict[str, Gate]


@dataclass(slots=True, eq=False)
class Lane:
    """The calls of a run to one URL, whatever their role: limits belong to the address."""

    gate: Gate
    urgent: deque[Job] = field(default_factory=deque)
    normal: deque[Job] = field(default_factory=deque)
    held: dict[str, list[Job]] = field(default_factory=dict)
    waking: bool = False

    @property
    def is_metered(self) -> bool:
        """Whether the calls or tokens of a minute are limited."""
        return self.gate.requests.limited or self.gate.tokens.limited

    def push(self, job: Job) -> None:
        """Queues a call; judging goes before new replies, since it frees what waits."""
        (self.normal if job.request.role == "model" else self.urgent).append(job)

    def pop(self) -> Job | None:
        """The next call, or None."""
        if self.urgent:
            return self.urgent.popleft()
        return self.normal.popleft() if self.normal else None

    def push_front(self, jobs: Sequence[Job]) -> None:
        """Queues calls ahead of all others, in their order."""
        self.urgent.extendleft(reversed(jobs))


def lanes_of(bindings: Mapping[str, Binding], gates: Gates) -> dict[str, Lane]:
    """A lane for each URL, through the gate that stands there already or a new one."""
    lanes: dict[str, Lane] = {}
    for binding in bindings.values():
        end = binding.endpoint
        if end.url not in gates:
            gates[end.url] = Gate(
                AdaptiveLimit(end.concurrency),
                MinuteRate(end.requests_per_minute),
                MinuteRate(end.tokens_per_minute),
            )
        if end.url not in lanes:
            lanes[end.url] = Lane(gates[end.url])
    return lanes
