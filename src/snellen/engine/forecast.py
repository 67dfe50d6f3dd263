"""Forecast a job: what it would still call, how many tokens, what cost. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from snellen.engine.job import Job, Sink, deliver
from snellen.engine.journal import read_calls
from snellen.engine.pacing import cost_usd
from snellen.flows import run_by_hand
from snellen.records import Answer, Image, Reply, Request, Usage, address

ASSUMED_PICTURE_TOKENS = 1200
CHARACTERS_A_TOKEN = 4


@dataclass(slots=True)
class RoleForecast:
    """What one role would be asked for; `stored` are calls that the journal answers.

    `cost_usd` is None where a price is unknown.
    """

    calls: int = 0
    stored: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, other: RoleForecast) -> None:
        """Adds another forecast to this one."""
        self.calls += other.calls
        self.stored += other.stored
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        unknown = self.cost_usd is None or other.cost_usd is None
        self.cost_usd = None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecasts of a job by stage, then by role."""

    stages: dict[str, dict[str, RoleForecast]] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, RoleForecast]:
        """The forecasts by role, all stages together."""
        found: dict[str, RoleForecast] = {}
        for stage in self.stages.values():
            for role, one in stage.items():
                found.setdefault(role, RoleForecast()).add(one)
        return found


def forecast(
    job: Job, assume: Callable[[Request], Reply], *, sinks: Mapping[type, Sink] | None = None
) -> Forecast:
    """Runs all flows by hand and counts the calls whose replies are not in the journal yet.

    `assume` gives the reply that a request is taken to get; the completion tokens of its usage
    count, and without any its length does. The job's own sinks, which may write, get nothing:
    `sinks` take the rows that later batches are made of.
    """
    journal = {} if job.folder is None else read_calls(job.folder / "calls.jsonl")
    found = Forecast()
    for batch in job.batches:
        roles = found.stages.setdefault(
            batch.stage, {role: RoleForecast() for role in job.bindings}
        )
        for item, repeat, flow in batch.work:

            def answer(request: Request, item: str = item, repeat: int = repeat) -> Answer:
                entry = roles[request.role]  # noqa: B023 - used before the next batch begins
                row = journal.get(address(item, repeat, request))
                if row is not None and row.reply is not None:
                    entry.stored += 1
                    return row.reply
                reply = assume(request)
                entry.add(_cost_of(request, reply, job))
                return reply

            def take(row: object, item: str = item, repeat: int = repeat) -> None:
                deliver(sinks or {}, item, repeat, row)

            run_by_hand(flow, answer, on_result=take)
    return found


def _cost_of(request: Request, reply: Reply, job: Job) -> RoleForecast:
    prompt, completion = prompt_tokens(request), reply.usage.completion
    if completion is None:
        completion = len(reply.text) // CHARACTERS_A_TOKEN
    usage = Usage(prompt, completion)
    cost = cost_usd(usage, job.bindings[request.role].endpoint)
    return RoleForecast(1, 0, prompt, completion, cost)


def prompt_tokens(request: Request) -> int:
    """A rough count of a request's prompt tokens.

    >>> from snellen.records import Message
    >>> prompt_tokens(Request("model", (Message("user", ("a text of 24 characters.",)),), "reply"))
    6
    """
    return sum(
        ASSUMED_PICTURE_TOKENS if isinstance(part, Image) else len(part) // CHARACTERS_A_TOKEN
        for message in request.messages
        for part in message.parts
    )
