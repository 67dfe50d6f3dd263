"""`snellen rejudge`: the stored replies of a run before another judge."""

from __future__ import annotations

import click

from snellen.cli.options import (
    DRIVING,
    JUDGE,
    Display,
    GroupedCommand,
    display_options,
    takes_request,
)
from snellen.runs.request import RunRequest, arguments

# The options of a protocol but for those that change what the model is asked.
JUDGING = tuple(
    name
    for name, one in arguments().items()
    if one.about.protocols and name not in ("caption_prompt", "hint", "control")
)


@click.command(
    "rejudge",
    cls=GroupedCommand,
    epilog="Example: snellen rejudge out/qwen --judge gpt-oss-120b "
    "--judge-url http://127.0.0.1:8001/v1 --out out/qwen-gpt-oss",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@takes_request(*JUDGE, "judge_check", *JUDGING, *DRIVING)
@click.option("--out", required=True, metavar="DIR", help="The new run folder; again resumes.")
@display_options
def command(request: RunRequest, *, run: str, out: str, display: Display) -> int:
    """Judge the stored replies of RUN again; the model is never called.

    Items, replies and their failures, prompts and protocol options are those of RUN unless an
    option says otherwise. The data set is not needed.
    """
    from dataclasses import replace

    from snellen.cli.run import run_plan
    from snellen.runs.folder import load_run
    from snellen.runs.rejudge import rejudge_plan

    return run_plan(rejudge_plan(load_run(run), replace(request, out=out)), display)
