"""Calls on their way to endpoints: who is called, what waits for it, and in which lane."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from snellen.endpoints.bind import Binding
from snellen.engine.pacing import AdaptiveLimit, MinuteRate
from snellen.engine.patience import Presence
from snellen.flows import Flow
from snellen.pictures import prepare
from snellen.records import Image, Params, Reply, Request, request_key

ASSUMED_FILE_BYTES = 2**19


@dataclass(slots=True)
class Node:
    """A flow under way: its place in its parent, and the answers that it waits for.

    `to_cache` are replies that are kept for other runs once the flow has been able to read them.
    """

    flow: Flow[object]
    item: str
    repeat: int
    parent: Node | None = None
    slot: int = 0
    results: list[object] = field(default_factory=list)
    pending: int = 0
    to_cache: list[tuple[str, Reply]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Call:
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
    presence: Presence
    name: str = ""
    may_probe: bool = False
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
    urgent: deque[Call] = field(default_factory=deque)
    normal: deque[Call] = field(default_factory=deque)
    held: dict[str, list[Call]] = field(default_factory=dict)
    waking: bool = False

    @property
    def is_metered(self) -> bool:
        """Whether the calls or tokens of a minute are limited."""
        return self.gate.requests.limited or self.gate.tokens.limited

    def push(self, call: Call) -> None:
        """Queues a call; judging goes before new replies, since it frees what waits."""
        (self.normal if call.request.role == "model" else self.urgent).append(call)

    def pop(self) -> Call | None:
        """The next call, or None."""
        if self.urgent:
            return self.urgent.popleft()
        return self.normal.popleft() if self.normal else None

    def push_front(self, calls: Sequence[Call]) -> None:
        """Queues calls ahead of all others, in their order."""
        self.urgent.extendleft(reversed(calls))


def lanes_of(
    bindings: Mapping[str, Binding], gates: Gates, *, patience_s: float
) -> dict[str, Lane]:
    """A lane for each URL, through the gate that stands there already or a new one."""
    lanes: dict[str, Lane] = {}
    for binding in bindings.values():
        end = binding.endpoint
        if end.url not in gates:
            gates[end.url] = Gate(
                AdaptiveLimit(end.concurrency),
                MinuteRate(end.requests_per_minute),
                MinuteRate(end.tokens_per_minute),
                Presence(patience_s),
                f"{end.name} at {end.url}",
            )
        if end.url not in lanes:
            lanes[end.url] = Lane(gates[end.url])
    return lanes


def images_of(request: Request) -> Sequence[Image]:
    """The pictures of a request, in the order of its messages."""
    if len(request.messages) == 1 and len(request.messages[0].parts) == 1:
        part = request.messages[0].parts[0]
        return (part,) if isinstance(part, Image) else ()
    return [p for m in request.messages for p in m.parts if isinstance(p, Image)]


def key_of(request: Request, binding: Binding, *, params: Params, repeat: int) -> str:
    """The key of a call: of all that shapes its answer, save the endpoint's address."""
    return request_key(
        request,
        model=binding.endpoint.model,
        params={**params, **request.params} if request.params else params,
        repeat=repeat,
        prep=binding.rules.name if images_of(request) else "",
    )


def weight(images: Sequence[Image]) -> int:
    """About how many bytes the pictures take while they are being sent; 0 only for none."""
    return sum(ASSUMED_FILE_BYTES if i.end is None else max(1, i.end - i.start) for i in images)


async def read_pictures(request: Request, rules: prepare.PictureRules) -> list[prepare.Picture]:
    """The request's pictures, ready to be sent; mending goes to a thread.

    Raises:
        ImageError: one of them cannot be sent.
    """
    pictures: list[prepare.Picture] = []
    for image in images_of(request):
        picture = prepare.prepare_fast(image, rules)
        if picture is None:
            picture = await asyncio.to_thread(prepare.prepare, image, rules)
        pictures.append(picture)
    return pictures
