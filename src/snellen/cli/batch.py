"""`snellen batch`: a run whose calls are sent as batch files, at the provider's batch price."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.cli.options import GroupedCommand, takes_request
from snellen.errors import UsageError
from snellen.runs.request import RunRequest, arguments

if TYPE_CHECKING:
    from snellen.fleet.batch import Answered, BatchRun, Step

FORMATS = ("openai", "anthropic", "gemini")


@click.group("batch")
def command() -> None:
    """Send the calls of a run as batch files.

    `write` writes the calls that can be made now, you have them answered, `read` takes the replies
    and writes the next calls: captions first, then judgements, then judgements asked again.
    """


@command.command(
    "write",
    cls=GroupedCommand,
    epilog="Example: snellen batch write mini-reading --model gpt-5-mini --judge gpt-5-mini "
    "--format openai --out out/gpt",
)
@click.argument("benchmark")
@takes_request(*(name for name in arguments() if name not in ("benchmark", "claims")))
@click.option(
    "--format", "form", type=click.Choice(FORMATS), required=True,
    help="Whose files: openai is also that of `vllm run-batch` and of gateways.",
)  # fmt: skip
@click.option(
    "--pictures-url", default="", metavar="URL",
    help="Name pictures below this address; they are written to OUT/batch/pictures, to be put "
    "there. Without it they stand in the files.",
)  # fmt: skip
@click.option(
    "--batch-price", type=click.FloatRange(0), default=0.5, show_default=True, metavar="SHARE",
    help="The share of the usual price that a batch costs.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print files and forecast as JSON.")
def write(
    request: RunRequest,
    *,
    benchmark: str,
    form: str,
    pictures_url: str,
    batch_price: float,
    as_json: bool,
) -> int:
    """Write the calls that a run can make now.

    BENCHMARK and the options are those of `snellen run`. The files lie in OUT/batch/round-1; OUT is
    a run folder, and `snellen run` with the same options can go on with it at any time.
    """
    from snellen.cli.dry import estimate
    from snellen.fleet.batch import BatchRun

    if not request.out:
        raise UsageError("no folder", hint="give --out DIR")
    run = BatchRun.begin(
        replace(request, benchmark=benchmark), form, price=batch_price, pictures_url=pictures_url
    )
    costs = [one.cost_usd for one in estimate(run.plan).values()]
    usual = None if None in costs else sum(cost for cost in costs if cost is not None)
    total = None if usual is None else usual * batch_price
    if request.max_cost is not None and total is not None and total > request.max_cost:
        raise UsageError(
            f"the run would cost about {total:.2f} USD at the batch price, more than --max-cost "
            f"{request.max_cost:g}",
            hint="raise --max-cost, or lower --limit",
        )
    return _show(run, asyncio.run(run.write()), as_json=as_json, forecast=True)


@command.command("read", epilog="Example: snellen batch read out/gpt batch_abc_output.jsonl")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False))
@click.option(
    "--ask-again", is_flag=True, help="Wait for no more files: ask for what has no answer again."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was read as JSON.")
def read(folder: str, files: tuple[str, ...], *, ask_again: bool, as_json: bool) -> int:
    """Take the provider's replies, and write the next calls.

    FILES are files of replies and of errors, in any order; lines may be in any order and come
    twice. A file of another run is refused. When nothing is left to ask, the run is finished and
    its numbers are printed.
    """
    from snellen.fleet.batch import BatchRun

    run = BatchRun.open(Path(folder))
    step = asyncio.run(run.read([Path(file) for file in files], ask_again=ask_again))
    return _show(run, step, as_json=as_json)


def _show(run: BatchRun, step: Step, *, as_json: bool, forecast: bool = False) -> int:
    """Prints what a step came to; the exit code is that of the run where it is finished."""
    from snellen.cli.dry import estimate, forecast_table
    from snellen.cli.printing import print_json, print_table
    from snellen.cli.run import show_finished

    _tell(step.answered, step.missing)
    roles = estimate(run.plan) if forecast else {}
    if as_json and step.finished is None:
        made = step.round
        print_json(
            {
                "round": None if made is None else made.number,
                "files": {} if made is None else {str(k): n for k, n in made.files.items()},
                "waits_for": step.waits_for,
                "replies": step.answered.replies,
                "failures": step.answered.failures,
                "repeats": step.answered.repeats,
                "damaged": step.answered.damaged,
                "missing": step.missing,
                "forecast": roles,
                "price": run.sending.price,
            }
        )
        return 0
    if step.finished is not None:
        show_finished(step.finished, as_json=as_json)
        return step.finished.exit_code
    if step.round is None:
        waits = ", ".join(step.waits_for)
        click.echo(f"waiting for the replies to {waits} ({step.missing:,} calls)")
        click.echo("hint: read them too, or ask again for what is lost with --ask-again", err=True)
        return 0
    if forecast:
        share = run.sending.price
        what = f"at {100 * share:g}% of the usual price"
        print_table(forecast_table(run.plan, roles, what, price=share))
    click.echo(f"round {step.round.number}: {step.round.n_calls:,} calls")
    for file, n in step.round.files.items():
        click.echo(f"  {file}: {n:,} calls, {file.stat().st_size / 1e6:,.1f} MB")
    if run.sending.pictures_url:
        place = run.folder / "batch" / "pictures"
        click.echo(f"put the files of {place} below {run.sending.pictures_url}", err=True)
    click.echo(f"then: snellen batch read {run.folder} REPLIES...", err=True)
    return 0


def _tell(answered: Answered, missing: int) -> None:
    """Says what was read, on stderr."""
    from snellen.tables.screen import legible

    if answered.replies or answered.failures or answered.repeats:
        failed = sum(answered.failures.values())
        click.echo(f"read: {answered.replies:,} replies, {failed:,} failures", err=True)
    if answered.failures:
        kinds = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(answered.failures.items()))
        said = legible(answered.first_failure)
        click.echo(f"notice: failed: {kinds}; the first with: {said}", err=True)
    if answered.repeats:
        click.echo(f"notice: {answered.repeats:,} answers came twice: one was kept", err=True)
    if answered.damaged:
        click.echo(f"notice: {answered.damaged:,} lines are no JSON and were left out", err=True)
    if missing:
        click.echo(f"notice: {missing:,} calls of the last round have no answer", err=True)
