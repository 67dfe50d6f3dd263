"""`snellen build`: builds a benchmark from pictures, or goes on building it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from snellen.errors import INTERRUPTED

if TYPE_CHECKING:
    from snellen.construction.build import BuildRequest, Built
    from snellen.construction.files import StageRecord
    from snellen.tables.table import Table

KINDS = {"capprobe": "Build questions about the regions of pictures."}


@click.group(
    "build", epilog="Example: snellen build capprobe pictures/ --config build.toml --out b"
)
def command() -> None:
    """Build a benchmark of your own; the same command goes on where the last one stopped."""


def _build_command(kind: str, help_: str) -> click.Command:
    """The command of one kind of benchmark; all kinds have the same options."""

    @click.command(
        kind,
        help=f"{help_}\n\nSOURCE is a folder of pictures, annotations (COCO, LVIS), a Parquet "
        "file, a list of URLs (.txt) or hub:OWNER/NAME; the word `stages` lists the stages. "
        "Without SOURCE, the one that --out was begun with is taken.",
        epilog=f"Example: snellen build {kind} pictures/ --config build.toml --out chart",
    )
    @click.argument("source", required=False, default="")
    @click.option("--out", metavar="DIR", help="The folder; the same one again goes on.")
    @click.option(
        "--config",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="build.toml: who plays which role, and every threshold.",
    )
    @click.option(
        "--settings",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Named models; ./snellen.toml by default.",
    )
    @click.option("--until", default="", metavar="STAGE", help="Stop after this stage.")
    @click.option("--only", default="", metavar="STAGE", help="Run this stage alone.")
    @click.option(
        "--limit", type=click.IntRange(1), metavar="N", help="The first N inputs of the source."
    )
    @click.option("--seed", type=int, help="Wins over the configuration's.")
    @click.option("--reviewed-only", is_flag=True, help="Leave undecided questions out.")
    @click.option(
        "--max-cost",
        type=click.FloatRange(0),
        metavar="USD",
        help="Stop before this is exceeded; needs prices in the configuration.",
    )
    @click.option(
        "--max-unscored",
        type=click.FloatRange(0, 1),
        default=0.05,
        show_default=True,
        help="Exit with 3 above this share of calls without a usable reply.",
    )
    @click.option(
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Calls in flight at each endpoint (64).",
    )
    @click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing.")
    @click.option("--json", "as_json", is_flag=True, help="Print the funnel as JSON.")
    @click.option("--quiet", is_flag=True, help="No progress on stderr.")
    def run(source: str, **words: Any) -> int:
        if source == "stages":
            return list_stages(kind, as_json=words["as_json"])
        request = request_of(kind, source, words)
        if words["dry_run"]:
            return print_forecast(request, as_json=words["as_json"])
        return run_build(request, words)  # fmt: skip

    return run


def list_stages(kind: str, *, as_json: bool) -> int:
    """Prints the stages of a kind, in their order."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.pipelines import PIPELINES
    from snellen.tables.table import Table

    pipeline = PIPELINES[kind]
    if as_json:
        print_json([stage.name for stage in pipeline.stages])
        return 0
    rows = tuple(
        (
            f"{number:02d} {stage.name}",
            "keeps some of its rows" if stage.is_filter else "makes rows",
        )
        for number, stage in enumerate(pipeline.stages, 1)
    )
    print_table(Table(f"{kind}: {pipeline.title}", ("Stage", "Does"), rows))
    return 0


def request_of(kind: str, source: str, words: dict[str, Any]) -> BuildRequest:
    """What the command's options ask for.

    Raises:
        UsageError: there is no --out, or nothing says what to build from.
    """
    from msgspec.structs import replace

    from snellen.builders.options import ReviewOptions
    from snellen.construction.build import BuildRequest
    from snellen.construction.config import BuildConfig, load_config
    from snellen.construction.files import read_record
    from snellen.construction.pipelines import PIPELINES
    from snellen.errors import UsageError
    from snellen.settings import load_settings

    if not words["out"]:
        raise UsageError("no folder to build in", hint="give --out DIR")
    out = Path(words["out"])
    if not source and not (out / "build.json").exists():
        raise UsageError("nothing to build from", hint="give a folder of pictures as SOURCE")
    config = load_config(
        words["config"], list(PIPELINES.values()), settings=load_settings(words["settings"])
    )
    options = dict(config.options)
    if words["reviewed_only"]:
        review = options.get(ReviewOptions, ReviewOptions())
        options[ReviewOptions] = replace(review, reviewed_only=True)
    seed = config.seed if words["seed"] is None else words["seed"]
    return BuildRequest(
        PIPELINES[kind],
        source or read_record(out).source,
        out,
        BuildConfig(seed, config.roles, options),
        until=words["until"],
        only=words["only"],
        limit=words["limit"],
        max_cost_usd=words["max_cost"],
        concurrency=words["concurrency"],
        max_unscored=words["max_unscored"],
    )


def run_build(request: BuildRequest, words: dict[str, Any]) -> int:
    """Drives a build as a command does: progress, the funnel, hints, and the exit code."""
    from snellen.cli.progress import Progress
    from snellen.cli.run import resume_command
    from snellen.construction.build import build

    progress = None if words["quiet"] else Progress(request.pipeline.kind, 0)
    try:
        built = asyncio.run(build(request, progress=progress))
    except KeyboardInterrupt:  # before the first call, or after the last
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    show_built(built, as_json=words["as_json"])
    if built.exit_code:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
    return built.exit_code


def show_built(built: Built, *, as_json: bool) -> None:
    """Prints the funnel to stdout, and notices and what to do next to stderr."""
    from snellen.cli.printing import legible, print_json, print_table

    for notice in built.notices:
        click.echo(f"notice: {legible(notice)}", err=True)
    if as_json:
        print_json(built.funnel)
    else:
        print_table(funnel_table(built.funnel))
    if built.error is not None:
        click.echo(f"error: {legible(built.error.message)}", err=True)
        if built.error.hint:
            click.echo(f"hint: {legible(built.error.hint)}", err=True)
    elif built.exit_code == 3:
        click.echo("error: more calls than --max-unscored allows gave no usable reply; "
                   "see rejected.jsonl", err=True)  # fmt: skip
    if built.waits:
        click.echo(f"waiting: {built.waits}", err=True)
    elif (built.folder / "benchmark").is_dir() and not built.exit_code:
        click.echo(f"benchmark: {built.folder / 'benchmark'}", err=True)


def funnel_table(funnel: tuple[StageRecord, ...]) -> Table:
    """The funnel as a table: what entered each stage, and what left it."""
    from snellen.tables.table import Table

    columns = ("Stage", "In", "Kept", "Rejected", "Made", "Dropped", "Calls", "Tokens", "Cost USD")
    rows = tuple(
        (
            row.stage,
            f"{row.entered:,}",
            f"{row.kept:,}",
            f"{row.rejected:,}",
            "-" if row.made is None else f"{row.made:,}",
            f"{row.dropped:,}",
            f"{row.calls:,}",
            f"{row.tokens:,}",
            "unknown" if row.cost_usd is None else f"{row.cost_usd:.2f}",
        )
        for row in funnel
    )
    notes = [
        f"{row.stage}: " + ", ".join(f"{n:,} {reason}" for reason, n in row.reasons.items())
        for row in funnel
        if row.reasons
    ]
    notes += [
        f"{row.stage}: " + ", ".join(f"{name} {n:,}" for name, n in row.counts.items())
        for row in funnel
        if row.counts
    ]
    return Table("Funnel", columns, rows, tuple(notes))


def print_forecast(request: BuildRequest, *, as_json: bool) -> int:
    """Prints what a build would call; the exit code is 0."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.forecast import forecast
    from snellen.tables.table import Table

    found = forecast(request)
    if as_json:
        print_json(found)
        return 0
    rows = tuple(
        (
            one.stage,
            one.role or "-",
            f"{'' if one.is_counted else 'about '}{one.inputs:,}",
            f"{one.done:,}",
            f"{one.calls:,}",
            f"{one.prompt_tokens:,}",
            f"{one.completion_tokens:,}",
            "unknown" if one.cost_usd is None else f"{one.cost_usd:.2f}",
        )
        for one in found
    )
    columns = ("Stage", "Role", "Inputs", "Done", "Calls", "Prompt tokens", "Completion tokens",
               "Cost USD")  # fmt: skip
    notes = ("pictures of 1,200 tokens, replies of usual length, no thinking, nothing asked again",)
    print_table(Table(f"{request.pipeline.kind}: dry run", columns, rows, notes))
    return 0


for _kind, _help in KINDS.items():
    command.add_command(_build_command(_kind, _help))
