"""`snellen reward serve`: scores for training, over HTTP."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import click

from snellen.cli.options import DRIVING, JUDGE, GroupedCommand, takes_request
from snellen.cli.serving import serve_pages, takes_address
from snellen.errors import UsageError
from snellen.runs.request import RunRequest

if TYPE_CHECKING:
    from snellen.web.serving import Listening

LEFT_OUT = ("max_cost", "max_unscored", "allow_blank", "keep_unreadable")


@click.group("reward")
def command() -> None:
    """Score replies for the training of a model."""


@command.command(
    "serve",
    cls=GroupedCommand,
    epilog="Example: snellen reward serve capprobe --data DIR --judge NAME --judge-url URL "
    "--unscored 0 --port 8100",
)
@click.argument("benchmark", metavar="BENCHMARK")
@takes_request(
    "data", "subset", "allow_outside", *JUDGE, *(name for name in DRIVING if name not in LEFT_OUT)
)
@click.option("--metric", default="", metavar="NAME", help="The metric; the headline by default.")
@click.option("--unscored", type=float, help="The reward of a reply without a score.  [required]")
@click.option(
    "--length-weight",
    type=click.FloatRange(0),
    default=0.0,
    help="What 1,000 tokens of a reply cost.",
)
@click.option("--out", default=None, metavar="DIR", help="A folder for the journal of judgements.")
@takes_address
def serve_command(
    benchmark: str,
    *,
    request: RunRequest,
    metric: str,
    unscored: float | None,
    length_weight: float,
    out: str | None,
    where: Listening,
) -> None:
    """Answer rewards over HTTP, in the forms of OpenRLHF and slime.

    Every POST is answered, whatever its path. Labels are item ids. A reply that could not be
    scored gets the stated number, never a silent zero; a judge that is away gives status 503.
    """
    from dataclasses import replace

    from snellen.rewards import Scorer
    from snellen.rewards.serving import reward_app

    if unscored is None:
        raise UsageError(
            "no reward is stated for replies without a score", hint="give --unscored NUMBER, or 0"
        )
    given = {
        one.name: getattr(request, one.name)
        for one in fields(request)
        if one.name not in ("benchmark", "judge") and getattr(request, one.name) != one.default
    }
    scorer = Scorer(
        benchmark, request.judge, metric,
        unscored=unscored, length_weight=length_weight, out=out or "", **given,
    )  # fmt: skip
    try:
        serve_pages(lambda access: reward_app(scorer, access), replace(where, opens_browser=False))
    finally:
        scorer.close()
