"""What a flow is: a generator that yields requests or child flows and never touches the world.

A flow yields a list of `Request`s, or a list of child flows, and is sent the list of answers or of
the children's results, in the same order. What it returns is its result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from snellen.records import Answer, Request

R = TypeVar("R")
Flow = Generator[Any, Any, R]


def run_by_hand(flow: Flow[R], answer: Callable[[Request], Answer]) -> R:
    """Drives a flow without any I/O: `answer` plays model and judge. For tests and for simulation.

    >>> from snellen.records import Message, Reply, Request
    >>> def hello():
    ...     [reply] = yield [Request("model", (Message("user", ("Hi",)),), "reply")]
    ...     return reply.text.upper()
    >>> run_by_hand(hello(), lambda request: Reply("hello"))
    'HELLO'
    """
    sent: Any = None
    while True:
        try:
            wanted: Sequence[Any] = flow.send(sent)
        except StopIteration as stop:
            result: R = stop.value
            return result
        sent = [answer(w) if isinstance(w, Request) else run_by_hand(w, answer) for w in wanted]
