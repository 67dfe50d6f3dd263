"""Calls on their way to endpoints: who is called, what waits for it, and in which lane."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snellen.engine.pacing import AdaptiveLimit, MinuteRate
from snellen.flows import Flow
from snellen.pictures import prepare
from snellen.records import Request
from snellen.settings import Endpoint

if TYPE_CHECKING:
    from snellen.endpoints.http import Caller


@dataclass(frozen=True, slots=True)
class Binding:
    """What a role means in this run: who is called, under which settings."""

    caller: Caller
    endpoint: Endpoint
    rules: prepare.PictureRules = field(default_factory=prepare.PictureRules)
    cacheable: bool = True
    shares_prefix: bool = True

    @property
    def params(self) -> Mapping[str, Any]:
        """The body fields that are sent."""
        return {**self.endpoint.soft_params, **self.endpoint.params}


@dataclass(slots=True)
class Node:
    """A flow under way: its place in its parent, and the answers that it waits for."""

    flow: Flow[Any]
    item: str
    repeat: int
    parent: Node | None = None
    slot: int = 0
    results: list[Any] = field(default_factory=list)
    pending: int = 0


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
class Lane:
    """The calls to one URL, whatever their role: limits belong to the address."""

    limit: AdaptiveLimit
    requests: MinuteRate
    tokens: MinuteRate
    is_metered: bool
    urgent: deque[Job] = field(default_factory=deque)
    normal: deque[Job] = field(default_factory=deque)
    held: dict[str, list[Job]] = field(default_factory=dict)
    in_flight: int = 0
    waking: bool = False

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


def lanes_of(bindings: Mapping[str, Binding]) -> dict[str, Lane]:
    lanes: dict[str, Lane] = {}
    for binding in bindings.values():
        end = binding.endpoint
        if end.url not in lanes:
            requests, tokens = (
                MinuteRate(end.requests_per_minute),
                MinuteRate(end.tokens_per_minute),
            )
            is_metered = requests.limited or tokens.limited
            lanes[end.url] = Lane(AdaptiveLimit(end.concurrency), requests, tokens, is_metered)
    return lanes
