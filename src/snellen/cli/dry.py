"""`--dry-run`: what a run would still call, how many tokens, what cost. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    from snellen.tables.table import Cell, Column, Table

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


def print_forecast(*plans: Plan, as_json: bool) -> int:
    """Prints the forecast of each plan and the total of several; the exit code is 0."""
    from snellen.cli.printing import print_json, print_table

    found = [estimate(plan) for plan in plans]
    if as_json and len(plans) == 1:
        print_json({"roles": found[0], "assumptions": ASSUMPTIONS})
    elif as_json:
        each = [
            {"run": str(plan.out), "benchmark": plan.benchmark.name, "roles": roles}
            for plan, roles in zip(plans, found, strict=True)
        ]
        print_json({"runs": each, "total": total_of(found), "assumptions": ASSUMPTIONS})
    else:
        for plan, roles in zip(plans, found, strict=True):
            print_table(forecast_table(plan, roles, "dry run"))
        if len(plans) > 1:
            print_table(total_table(found))
    return 0


def total_of(forecasts: Sequence[Mapping[str, RoleForecast]]) -> RoleForecast:
    """All roles of all forecasts together; its cost is None where one price is unknown."""
    total = RoleForecast()
    for roles in forecasts:
        for role in roles.values():
            total.add(role)
    return total


def total_table(forecasts: Sequence[Mapping[str, RoleForecast]]) -> Table:
    """What several runs would call and cost together."""
    from snellen.tables.table import Table

    row = _cells("total", total_of(forecasts))
    return Table(f"All {len(forecasts)} runs, dry run", _columns(), (row,))


def forecast_table(
    plan: Plan, found: Mapping[str, RoleForecast], what: str, *, price: float = 1.0
) -> Table:
    """A forecast by role, at a share of the usual price."""
    from snellen.tables.table import Table

    rows = [
        _cells(f"{role}: {plan.bindings[role].endpoint.name}", one, price)
        for role, one in found.items()
    ]
    if len(rows) > 1:
        rows.append(_cells("total", total_of([found]), price))
    title = f"{plan.benchmark.name}: {plan.benchmark.protocol} protocol, {what}"
    return Table(title, _columns(), tuple(rows), ASSUMPTIONS)


def _cells(name: str, found: RoleForecast, price: float = 1.0) -> tuple[Cell, ...]:
    from snellen.tables.table import Label

    cost = "unknown" if found.cost_usd is None else found.cost_usd * price
    calls = (found.calls, found.stored, found.prompt_tokens, found.completion_tokens)
    return Label(name), *calls, cost


def _columns() -> tuple[Column, ...]:
    from snellen.tables.table import Column, Format, plain

    titles = ("Role", "Calls to make", "Stored", "Prompt tokens", "Completion tokens")
    return *plain(*titles), Column("Cost USD", Format(digits=2))
