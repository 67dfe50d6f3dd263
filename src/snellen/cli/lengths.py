"""`snellen lengths`: what captions hold when they are cut short."""

from __future__ import annotations

import asyncio
from dataclasses import replace
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
from snellen.errors import INTERRUPTED
from snellen.runs.request import RunRequest

if TYPE_CHECKING:
    from snellen.runs.run import Plan


@click.command(
    "lengths",
    cls=GroupedCommand,
    epilog="Example: snellen lengths out/qwen --judge qwen3-32b "
    "--judge-url http://127.0.0.1:8000/v1 --out out/qwen-lengths",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@takes_request(*JUDGE, *DRIVING)
@click.option("--out", required=True, metavar="DIR", help="One run folder a share goes below it.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="How much of each caption is kept, in per cent. Repeatable (25, 50, 75, 100).",
)
@display_options
def command(
    request: RunRequest, *, run: str, out: str, shares: tuple[float, ...], display: Display
) -> int:
    """Judge the stored captions of RUN again, cut at sentence ends; the model is never called.

    Prints coverage and effective accuracy against caption length.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.runs.folder import load_run
    from snellen.runs.rejudge import rejudge_plan
    from snellen.studies.lengths import SHARES, shorten
    from snellen.tables.studies import length_table

    stored = load_run(run)
    made, code = [], 0
    for share in [s / 100 for s in shares] or SHARES:
        folder = Path(out) / f"{100 * share:g}"
        plan = rejudge_plan(shorten(stored, share), replace(request, out=folder))
        plan = replace(plan, settings=dict(plan.settings) | {"kept_share": share})
        code = max(code, _drive(plan, display))
        if code == INTERRUPTED:
            return code
        if not display.dry_run:
            made.append((share, load_run(folder)))
    if made:
        (print_json if display.as_json else print_table)(length_table(made))
    return code


def _drive(plan: Plan, display: Display) -> int:
    """Judges one length; its own table is printed only where something went wrong."""
    from snellen.cli.progress import Progress
    from snellen.cli.run import run_plan, show_finished
    from snellen.runs.run import execute

    if display.dry_run:
        return run_plan(plan, display)
    progress = None if display.quiet else Progress(plan.out.name + "%").show
    finished = asyncio.run(execute(plan, progress=progress))
    if finished.exit_code:
        show_finished(finished, as_json=False)
    return finished.exit_code
