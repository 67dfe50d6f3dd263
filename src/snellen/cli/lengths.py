"""`snellen lengths`: what captions hold when they are cut short."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from snellen.cli.options import driving_options, judge_options
from snellen.errors import INTERRUPTED

if TYPE_CHECKING:
    from snellen.runs.run import Plan


@click.command(
    "lengths",
    epilog="Example: snellen lengths out/qwen --judge qwen3-32b "
    "--judge-url http://127.0.0.1:8000/v1 --out out/qwen-lengths",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@judge_options
@click.option("--out", required=True, metavar="DIR", help="One run folder a share goes below it.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="How much of each caption is kept, in per cent. Repeatable (25, 50, 75, 100).",
)
@driving_options
def command(run: str, **words: Any) -> int:
    """Judge the stored captions of RUN again, cut at sentence ends; the model is never called.

    Prints coverage and effective accuracy against caption length.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.cli.rejudge import OWN_WORDS, request_of
    from snellen.runs.folder import load_run
    from snellen.runs.rejudge import rejudge_plan
    from snellen.studies.lengths import SHARES, length_table, shorten

    words |= dict.fromkeys(OWN_WORDS)
    stored = load_run(run)
    made, code = [], 0
    for share in [s / 100 for s in words["shares"]] or SHARES:
        out = Path(words["out"]) / f"{100 * share:g}"
        plan = rejudge_plan(shorten(stored, share), request_of(words | {"out": str(out)}))
        plan = replace(plan, settings=dict(plan.settings) | {"kept_share": share})
        code = max(code, _drive(plan, words))
        if code == INTERRUPTED:
            return code
        if not words["dry_run"]:
            made.append((share, load_run(out)))
    if made:
        table = length_table(made)
        (print_json if words["as_json"] else print_table)(table)
    return code


def _drive(plan: Plan, words: dict[str, Any]) -> int:
    """Judges one length; its own table is printed only where something went wrong."""
    from snellen.cli.progress import Progress
    from snellen.cli.run import run_plan, show_finished
    from snellen.runs.run import execute

    if words["dry_run"]:
        return run_plan(plan, words)
    progress = None if words["quiet"] else Progress(plan.out.name + "%").show
    finished = asyncio.run(execute(plan, progress=progress))
    if finished.exit_code:
        show_finished(finished, as_json=False)
    return finished.exit_code
