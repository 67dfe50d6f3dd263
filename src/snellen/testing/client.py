"""A scripted client: answers without a server, for tests of flows, jobs and builders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from snellen.endpoints.failures import one_line
from snellen.endpoints.http import as_answer
from snellen.errors import UsageError
from snellen.records import Answer, CallFailure, Reply, Request

if TYPE_CHECKING:
    from snellen.pictures.prepare import Picture

Script = (
    Callable[[Request], str | Reply | CallFailure]
    | Mapping[str, str | Reply | CallFailure]
    | Sequence[str | Reply | CallFailure]
)


class ScriptedClient:
    """Answers from a script and keeps what it was asked: for tests and for the documentation.

    The script is a function of the request; or a mapping from a piece of the request's text to
    the answer, of which the first that fits wins; or a sequence that is used up in order.
    `seen` and `pictures` hold requests and pictures in the order of the calls, `peak` the most
    calls in flight at once.

    >>> from snellen.records import Message
    >>> client = ScriptedClient({"colour": "Red."})
    >>> request = Request("model", (Message("user", ("Which colour?",)),), "answer")
    >>> asyncio.run(client.call(request)).text
    'Red.'
    """

    def __init__(self, script: Script, *, delay_s: float = 0.0) -> None:
        self._script = script
        self._delay_s = delay_s
        self._in_flight = 0
        self.seen: list[Request] = []
        self.pictures: list[tuple[Picture, ...]] = []
        self.peak = 0

    async def call(self, request: Request, pictures: Sequence[Picture] = ()) -> Answer:
        """The script's answer. Raises: UsageError, if it has none."""
        number = len(self.seen)
        self.seen.append(request)
        self.pictures.append(tuple(pictures))
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            await asyncio.sleep(self._delay_s)
            return as_answer(self._look_up(request, number), latency_s=self._delay_s)
        finally:
            self._in_flight -= 1

    def _look_up(self, request: Request, number: int) -> str | Reply | CallFailure:
        script = self._script
        if callable(script):
            return script(request)
        if isinstance(script, Mapping):
            text = "\n".join(p for m in request.messages for p in m.parts if isinstance(p, str))
            for piece, answer in script.items():
                if piece in text:
                    return answer
            raise UsageError(f"the script has no answer to: {one_line(text)}")
        if number < len(script):
            return script[number]
        raise UsageError(f"the script has {len(script)} answers; this is call {number + 1}")

    async def close(self) -> None:
        """Nothing to close."""
