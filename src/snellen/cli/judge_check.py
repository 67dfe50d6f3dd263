"""`snellen judge-check`: measures a judge on material whose truth is known."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.cli.options import (
    DRIVING,
    JUDGE,
    Display,
    GroupedCommand,
    display_options,
    takes_request,
)
from snellen.runs.request import RunRequest

if TYPE_CHECKING:
    from snellen.judges.check_runs import CheckWish, Stopped
    from snellen.records import ProtocolName
    from snellen.runs.judge_errors import JudgeCheck


@click.command(
    "judge-check",
    cls=GroupedCommand,
    epilog="Example: snellen judge-check --judge qwen3-32b --judge-url http://127.0.0.1:8001/v1 "
    "--out checks/qwen3-32b",
)
@takes_request(*JUDGE, *DRIVING)
@click.option(
    "--from",
    "source",
    default="mini-reading",
    show_default=True,
    metavar="BENCHMARK",
    help="The reading benchmark from whose region metadata captions are written.",
)
@click.option(
    "--out", metavar="DIR", help="Where judge_check.json goes; again resumes. [checks/NAME]"
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=click.Choice(["reading", "rubric", "direct"]),
    help="Only this protocol. Repeatable.",
)
@click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(1),
    metavar="K",
    help="Ask K times, to measure agreement with itself (2; the embedded judge: 1).",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="N replies of each protocol.")
@display_options
def command(
    request: RunRequest,
    *,
    source: str,
    out: str | None,
    protocols: tuple[ProtocolName, ...],
    repeats: int | None,
    limit: int | None,
    display: Display,
) -> int:
    """Measure a judge on material whose truth is known, before its scores are believed.

    The material is the bundled captioners' replies with the labels of a perfect judge, and
    captions written from facts that are stated, left out, changed or negated at known rates. The
    judge gets the requests that a run would send.
    """
    from snellen.cli.dry import print_forecast
    from snellen.cli.printing import print_json, print_table
    from snellen.cli.progress import Progress
    from snellen.endpoints.bind import EMBEDDED
    from snellen.judges.check_runs import CHECKED, CheckWish, Stopped, check_judge, plans
    from snellen.tables.judges import check_sentence, check_tables

    judge = request.judge
    names = judge if isinstance(judge, str) else "+".join(map(str, judge))  # type: ignore[arg-type]
    wish = CheckWish(
        Path(out or f"checks/{names.replace('/', '_') or 'judge'}"),
        protocols=protocols or CHECKED,
        source=source,
        repeats=repeats or (1 if judge == EMBEDDED else 2),
        limit=limit,
        seed=request.seed,
    )
    if display.dry_run:
        for plan in plans(request, wish):
            print_forecast(plan, as_json=display.as_json)
        return 0
    progress = None if display.quiet else lambda name: Progress(name).show
    found = asyncio.run(check_judge(request, wish, progress=progress))
    if isinstance(found, Stopped):
        return _stopped(found)
    if display.as_json:
        print_json(found)
    else:
        for table in check_tables(found):
            print_table(table)
        click.echo(check_sentence(found))
    click.echo(f"written: {wish.out / 'judge_check.json'}", err=True)
    return _exit_code(found, wish, most=request.max_unscored)


def _exit_code(found: JudgeCheck, wish: CheckWish, *, most: float) -> int:
    """0, or 3 where a protocol has too large a share of unscored verdicts."""
    for name, one in found.protocols.items():
        unscored, n = sum(one.unscored_by_reason.values()), one.rates["accuracy"].n * wish.repeats
        if unscored > most * n:
            reasons = ", ".join(f"{reason} {k}" for reason, k in one.unscored_by_reason.items())
            click.echo(f"error: {name}: {unscored} of {n} verdicts unscored ({reasons})", err=True)
            return 3
    return 0


def _stopped(found: Stopped) -> int:
    from snellen.cli.run import resume_command

    error = found.finished.error
    if error is not None:
        click.echo(f"error: {error.message}", err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
    click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
    return found.finished.exit_code
