"""A brief look at the endpoints before a run's first calls: a wrong key need not cost more."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from snellen.endpoints.bind import Binding
from snellen.endpoints.chat_format import is_listed
from snellen.endpoints.http import ChatClient
from snellen.engine import stop_reasons
from snellen.engine.scheduler import Scheduler
from snellen.records import CallFailure

LOOK_S = 3.0
# Keys may be limited to chatting; that they must not list models says nothing. Anthropic's list
# wants the key in another header than its chat.
_LIMITED = re.compile(r"permission|scope|x-api-key", re.IGNORECASE)


async def look_ahead(bindings: Mapping[str, Binding], scheduler: Scheduler) -> tuple[str, ...]:
    """Asks each endpoint once for its models. A refused key stops the run; the rest are notices.

    Whoever does not answer in 3 seconds, or lists no models, is not held to it: the calls will
    tell.
    """
    ends = [b for b in bindings.values() if isinstance(b.caller, ChatClient)]
    looking = asyncio.gather(*(_listed(b) for b in ends))
    halted = asyncio.ensure_future(scheduler.halted.wait())
    either: set[asyncio.Future[Any]] = {looking, halted}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    halted.cancel()
    if scheduler.halted.is_set():
        looking.cancel()
        return ()
    answers = looking.result()
    notices: dict[str, None] = {}
    for binding, answer in zip(ends, answers, strict=True):
        endpoint = binding.endpoint
        if isinstance(answer, CallFailure):
            if answer.status == 401 and not _LIMITED.search(answer.message):
                scheduler.stop(stop_reasons.hopeless(endpoint, answer))
        elif answer and not is_listed(endpoint.model, answer):
            shown = ", ".join(answer[:5]) + (", ..." if len(answer) > 5 else "")
            said = f"{endpoint.url} does not list `{endpoint.model}` among its models ({shown})"
            notices[said] = None
    return tuple(notices)


async def _listed(binding: Binding) -> tuple[str, ...] | CallFailure | None:
    assert isinstance(binding.caller, ChatClient)
    try:
        async with asyncio.timeout(LOOK_S):
            return await binding.caller.list_models()
    except TimeoutError:
        return None
