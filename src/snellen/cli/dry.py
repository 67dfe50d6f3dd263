"""`--dry-run`: what a run would still call, how many tokens, what cost. Nothing is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from snellen.engine.forecast import (
    ASSUMED_PICTURE_TOKENS,
    CHARACTERS_A_TOKEN,
    RoleForecast,
    forecast,
)
from snellen.engine.job import Batch
from snellen.protocols import PROTOCOLS
from snellen.protocols.rubric import EASY_WRONG, MUST_RIGHT
from snellen.records import GradeTask, Reply, Request, RubricTask, Usage
from snellen.runs.run import job_of, work

if TYPE_CHECKING:
    from snellen.runs.run import Plan

# What a reply is taken to be where none exists yet.
ASSUMED_CAPTION_WORDS = 330
ASSUMED_CAPTION = "word " * ASSUMED_CAPTION_WORDS
COMPLETION_TOKENS = {
    ("model", "reading"): 440,
    ("model", "rubric"): 900,
    ("model", "direct"): 60,
    ("judge", "reading"): 2,
    ("judge", "rubric"): 130,
    ("judge", "direct"): 60,
}
LINE_TOKENS = 4  # "12. B" and its line end


ASSUMPTIONS = (
    f"captions of {ASSUMED_CAPTION_WORDS} words where none exists yet, pictures of "
    f"{ASSUMED_PICTURE_TOKENS} tokens, {CHARACTERS_A_TOKEN} characters a token, no thinking",
    "the response cache is not looked at: what it holds costs nothing",
)


def estimate(plan: Plan) -> dict[str, RoleForecast]:
    """What a plan would ask each role for."""
    protocol = plan.benchmark.protocol

    def assume(request: Request) -> Reply:
        usage = Usage(None, completion_tokens(request, protocol))
        return replace(assumed_reply(request), usage=usage)

    job = replace(job_of(plan), batches=[Batch(work(plan))])
    return forecast(job, assume).roles


def completion_tokens(request: Request, protocol: str) -> int:
    """How many tokens an answer usually has; one to several questions has a line for each."""
    if request.role == "model":
        return COMPLETION_TOKENS["model", protocol]
    several = protocol == "reading" and request.task is None
    return LINE_TOKENS * asked_at_once(request) if several else COMPLETION_TOKENS["judge", protocol]


def asked_at_once(request: Request) -> int:
    """How many questions a judge call of the reading protocol holds."""
    return int(request.probe.partition("+")[2] or 0) + 1


def assumed_reply(request: Request) -> Reply:
    """A reply of the right form, so that a flow goes its usual way."""
    if request.role == "model":
        return Reply(ASSUMED_CAPTION)
    task = request.task
    if isinstance(task, RubricTask):
        if not set(request.probe.split("+")) <= {MUST_RIGHT, EASY_WRONG}:
            return Reply("true")  # one statement a call
        sides = (("GroupA", task.must_right), ("GroupB", task.easy_wrong))
        groups = "".join(
            f"<{name}>{'<Result>true</Result>' * len(side)}</{name}>" for name, side in sides
        )
        return Reply(f"<Assessment>{groups}</Assessment>")
    if isinstance(task, GradeTask):
        return Reply("[reason] none [judge] True")
    if task is None:
        # Several questions in one call: one lettered line each.
        return Reply("\n".join(f"{k}. A" for k in range(1, asked_at_once(request) + 1)))
    return Reply("A")


def print_forecast(plan: Plan, *, as_json: bool) -> int:
    """Prints the forecast of a plan; the exit code is 0."""
    from snellen.cli.printing import print_json, print_table
    from snellen.tables.table import Table

    found = estimate(plan)
    if as_json:
        print_json({"roles": found, "assumptions": ASSUMPTIONS})
        return 0
    rows = tuple(
        (
            f"{role}: {plan.bindings[role].endpoint.name}",
            f"{f.calls:,}",
            f"{f.stored:,}",
            f"{f.prompt_tokens:,}",
            f"{f.completion_tokens:,}",
            "unknown" if f.cost_usd is None else f"{f.cost_usd:.2f}",
        )
        for role, f in found.items()
    )
    columns = ("Role", "Calls to make", "Stored", "Prompt tokens", "Completion tokens", "Cost USD")
    title = f"{plan.benchmark.name}: {PROTOCOLS[plan.benchmark.protocol].name} protocol, dry run"
    print_table(Table(title, columns, rows, ASSUMPTIONS))
    return 0
