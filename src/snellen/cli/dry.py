"""`--dry-run`: what a run would still call, how many tokens, what cost. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from snellen.engine.forecast import (
    ASSUMED_PICTURE_TOKENS,
    CHARACTERS_A_TOKEN,
    RoleForecast,
    forecast,
)
from snellen.engine.job import Batch
from snellen.protocols import protocol_of_options
from snellen.records import Reply, Request, Usage
from snellen.runs.run import job_of, work

if TYPE_CHECKING:
    from snellen.runs.run import Plan
    from snellen.tables.table import Table

# What a reply is taken to be where none exists yet.
ASSUMED_CAPTION_WORDS = 330
ASSUMED_CAPTION = "word " * ASSUMED_CAPTION_WORDS


ASSUMPTIONS = (
    f"captions of {ASSUMED_CAPTION_WORDS} words where none exists yet, pictures of "
    f"{ASSUMED_PICTURE_TOKENS} tokens, {CHARACTERS_A_TOKEN} characters a token, no thinking",
    "the response cache is not looked at: what it holds costs nothing",
)


def estimate(plan: Plan) -> dict[str, RoleForecast]:
    """What a plan would ask each role for."""
    assumed = protocol_of_options(plan.options).forecast

    def assume(request: Request) -> Reply:
        if request.role == "model":
            return Reply(ASSUMED_CAPTION, usage=Usage(None, assumed.model_tokens))
        usage = Usage(None, assumed.judge_tokens(request))
        return replace(assumed.judge_reply(request), usage=usage)

    job = replace(job_of(plan), batches=[Batch(work(plan))])
    return forecast(job, assume).roles


def print_forecast(plan: Plan, *, as_json: bool) -> int:
    """Prints the forecast of a plan; the exit code is 0."""
    from snellen.cli.printing import print_json, print_table

    found = estimate(plan)
    if as_json:
        print_json({"roles": found, "assumptions": ASSUMPTIONS})
    else:
        print_table(forecast_table(plan, found, "dry run"))
    return 0


def forecast_table(
    plan: Plan, found: Mapping[str, RoleForecast], what: str, *, price: float = 1.0
) -> Table:
    """A forecast by role, at a share of the usual price."""
    from snellen.tables.table import Column, Format, Label, Table, plain

    rows = tuple(
        (
            Label(f"{role}: {plan.bindings[role].endpoint.name}"),
            f.calls,
            f.stored,
            f.prompt_tokens,
            f.completion_tokens,
            "unknown" if f.cost_usd is None else f.cost_usd * price,
        )
        for role, f in found.items()
    )
    titles = ("Role", "Calls to make", "Stored", "Prompt tokens", "Completion tokens")
    columns = (*plain(*titles), Column("Cost USD", Format(digits=2)))
    title = f"{plan.benchmark.name}: {plan.benchmark.protocol} protocol, {what}"
    return Table(title, columns, rows, ASSUMPTIONS)
