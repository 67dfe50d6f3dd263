"""Find stored calls whose replies could not be read, so that a second start makes them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from snellen.engine.job import Work
from snellen.engine.journal import CallRow
from snellen.flows import Flow
from snellen.records import CallFailure, Request, address, is_unreadable

NOT_ASKED = CallFailure("stopped", "not asked yet")


@dataclass(slots=True)
class Unreadable:
    """Calls that led to rows which say that a reply could not be read.

    `addresses` are those of all asks; `n_rows` counts the flows that ended so, and `first` is the
    text of the first reply that could not be read.
    """

    addresses: set[str] = field(default_factory=set)
    n_rows: int = 0
    first: str = ""


def unreadable_calls(work: Iterable[Work], stored: Mapping[str, CallRow]) -> Unreadable:
    """Runs flows by hand on stored replies, and notes the calls of those that could not read them.

    A flow's own calls are noted, and not those of its child flows.
    """
    found = Unreadable()

    def run(flow: Flow[object], item: str, repeat: int) -> object:
        asked: list[str] = []
        sent: list[object] | None = None
        while True:
            try:
                wanted = flow.send(sent)
            except StopIteration as stop:
                if asked and is_unreadable(stop.value):
                    found.addresses.update(asked)
                    found.n_rows += 1
                    last = stored.get(asked[-1])
                    if not found.first and last is not None and last.reply is not None:
                        found.first = last.reply.text
                return stop.value
            sent = []
            for want in wanted:
                if isinstance(want, Request):
                    asked.append(address(item, repeat, want))
                    row = stored.get(asked[-1])
                    sent.append(NOT_ASKED if row is None else row.answer)
                else:
                    sent.append(run(want, item, repeat))

    for item, repeat, flow in work:
        run(flow, item, repeat)
    return found
