"""`snellen run`: evaluates models, or replies that exist, on a benchmark."""

from __future__ import annotations

import asyncio
import gc
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.cli.evalscope import understand
from snellen.cli.options import Display, GroupedCommand, display_options, takes_request
from snellen.endpoints.failures import public_url, take_off_credentials
from snellen.engine.stop_reasons import OutOfMoneyError
from snellen.errors import INTERRUPTED, UsageError
from snellen.runs.request import RunRequest, arguments
from snellen.runs.shards import CLAIM, EmptyShardError

if TYPE_CHECKING:
    from snellen.runs.run import Finished, Plan

MINI = ("mini-reading", "mini-rubric", "mini-direct")
SECRETS = ("--api-key", "--judge-key")
# So many pictures that cannot be shown are named one by one.
MOST_TOLD = 10
# An option, where it stands in the same word, and a URL.
_URL_WORD = re.compile(r"(--[\w-]+=)?(https?://.*)", re.IGNORECASE)


@click.command(
    "run",
    cls=GroupedCommand,
    epilog="Example: snellen run mini-reading --model qwen3-vl-8b "
    "--api-url http://127.0.0.1:8000/v1 --judge qwen3-32b --out out/qwen",
)
@click.argument("benchmark", default="")
@click.option("--datasets", hidden=True, default="", help="The benchmark, as evalscope spells it.")
@click.option("--dataset-args", hidden=True, metavar="JSON", help="As evalscope spells it.")
@click.option("--generation-config", hidden=True, metavar="JSON", help="As evalscope spells it.")
@click.option("--eval-batch-size", hidden=True, type=click.IntRange(1), help="As evalscope's.")
@takes_request(
    *(name for name in arguments() if name != "benchmark"), several=("model", "caption_prompt")
)
@display_options
def command(
    request: RunRequest,
    *,
    benchmark: str,
    datasets: str,
    dataset_args: str | None,
    generation_config: str | None,
    eval_batch_size: int | None,
    model: tuple[str, ...],
    caption_prompt: tuple[str, ...],
    display: Display,
) -> int:
    """Evaluate a model on a benchmark.

    BENCHMARK is mini-reading, mini-rubric, mini-direct (or mini for all three), capprobe,
    perception_bench, perception_rubrics, captionqa, or a folder. With several models each gets
    OUT/NAME, with several caption prompts OUT/STEM. `snellen eval` is the same command.
    """
    from snellen.runs.plan import make_plan

    if not (benchmark or datasets):
        raise UsageError("no benchmark", hint="for example: snellen run mini-reading ...")
    if benchmark and datasets:
        raise UsageError(
            f"two benchmarks are named: {benchmark} and {datasets}",
            hint="one command evaluates one benchmark: leave --datasets out",
        )
    first = understand(
        replace(request, benchmark=benchmark or datasets),
        dataset_args=dataset_args,
        generation_config=generation_config,
        eval_batch_size=eval_batch_size,
    )
    wanted = list(requests_of(first, models=model, prompts=caption_prompt))
    if request.shard.startswith(CLAIM):
        return max(run_claimed(one, display) for one in wanted)
    if request.engine == "ray":
        return max(run_shared(one, display) for one in wanted)
    try:
        plans = [make_plan(one) for one in wanted]
    except EmptyShardError as empty:
        click.echo(f"notice: {empty.message}: nothing to do", err=True)
        return 0
    return run_plan(plans[0], display) if len(plans) == 1 else run_plans(plans, display)


def requests_of(
    request: RunRequest, *, models: tuple[str, ...], prompts: tuple[str, ...]
) -> Iterator[RunRequest]:
    """One request for each benchmark, model and caption prompt of a command."""
    name = str(request.benchmark)
    benchmarks = MINI if name == "mini" else (name,)
    for benchmark in benchmarks:
        for model in models or ("",):
            for prompt in prompts or (None,):
                out = Path(request.out or f"runs/{Path(name).name}")
                if len(models) > 1:
                    out /= model.replace("/", "_")
                if len(benchmarks) > 1:
                    out /= benchmark.removeprefix("mini-")
                if len(prompts) > 1 and prompt is not None:
                    out /= Path(prompt).stem
                yield replace(
                    request, benchmark=benchmark, model=model, caption_prompt=prompt, out=out
                )


def run_plan(plan: Plan, display: Display) -> int:
    """Drives a plan as a command does: progress, tables, hints, and the exit code."""
    from snellen.cli.progress import Progress
    from snellen.runs.run import execute

    _tell_broken(plan)
    if display.dry_run:
        from snellen.cli.dry import print_forecast

        return print_forecast(plan, as_json=display.as_json)
    _keep_out_of_collections()
    progress = None if display.quiet else Progress(plan.benchmark.name).show
    try:
        finished = asyncio.run(execute(plan, progress=progress, tell=tell))
    except KeyboardInterrupt:  # before the first call, or after the last
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    show_finished(finished, as_json=display.as_json)
    return finished.exit_code


def run_plans(plans: Sequence[Plan], display: Display) -> int:
    """Drives several plans side by side, and prints one table of them all."""
    from snellen.cli.printing import print_json, print_table
    from snellen.cli.progress import Progress
    from snellen.runs.folder import load_run
    from snellen.runs.run import execute_together
    from snellen.tables.runs import leaderboard, overview

    for plan in plans:
        _tell_broken(plan)
    if display.dry_run:
        from snellen.cli.dry import print_forecast

        return print_forecast(*plans, as_json=display.as_json)
    _keep_out_of_collections()
    progress = [Progress(name_of(plan), is_plain=True).show for plan in plans]
    try:
        ended = asyncio.run(execute_together(plans, progress=None if display.quiet else progress))
    except KeyboardInterrupt:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    for plan, finished in zip(plans, ended, strict=True):
        show_reasons(finished, name_of(plan))
    runs = [finished.run or load_run(finished.folder) for finished in ended]
    if display.as_json:
        print_json([finished.summary for finished in ended])
    else:
        same = len({(run.spec.benchmark, run.spec.judge.name) for run in runs}) == 1
        print_table(leaderboard(runs) if same else overview(runs))
    code = max(finished.exit_code for finished in ended)
    if code:
        is_spent = any(isinstance(finished.error, OutOfMoneyError) for finished in ended)
        again = with_more_money(sys.argv) if is_spent else sys.argv
        click.echo(f"resume with: {resume_command(again)}", err=True)
    else:
        for finished in ended:
            click.echo(f"run folder: {finished.folder}", err=True)
    return code


def run_shared(request: RunRequest, display: Display) -> int:
    """Drives a run on Ray, as `run_plan` drives one in this process."""
    from snellen.cli.progress import Progress
    from snellen.fleet.ray_engine import run_on_ray

    if display.dry_run:
        from snellen.cli.dry import print_forecast
        from snellen.runs.plan import make_plan

        return print_forecast(make_plan(request), as_json=display.as_json)
    progress = None if display.quiet else lambda label: Progress(label).show
    try:
        finished = asyncio.run(run_on_ray(request, progress=progress, tell=tell))
    except KeyboardInterrupt:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    show_finished(finished, as_json=display.as_json)
    return finished.exit_code


def run_claimed(request: RunRequest, display: Display) -> int:
    """Drives every shard that this worker can claim; the exit code is the worst of theirs."""
    from snellen.cli.printing import print_json
    from snellen.cli.progress import Progress
    from snellen.fleet.claims import Claims
    from snellen.runs.plan import load_asked, shard_plan
    from snellen.runs.run import execute
    from snellen.runs.shards import EmptyShardError, claimed_of

    claims = Claims(request.claims or request.out, Path(request.out), claimed_of(request.shard))
    benchmark, given = load_asked(request)
    done: list[Finished] = []
    code = 0
    for shard in claims.take():
        asked = replace(request, shard=str(shard), out=claims.folder(shard))
        try:
            plan = shard_plan(asked, benchmark, shard, given=given)
        except EmptyShardError:
            claims.finish(shard)
            continue
        label = f"{benchmark.name}, shard {shard}"
        progress = None if display.quiet else Progress(label).show
        try:
            finished = asyncio.run(execute(plan, progress=progress))
        except KeyboardInterrupt:
            code = INTERRUPTED
            break
        done.append(finished)
        show_reasons(finished, label)
        code = max(code, finished.exit_code)
        if finished.error is not None or finished.exit_code == INTERRUPTED:
            break
        claims.finish(shard)
    held = [f"{shard} ({one.machine}, process {one.process}, {one.at})" for shard, one in
            claims.others()]  # fmt: skip
    click.echo(f"{len(done)} shards of {claims.of} were this worker's", err=True)
    if display.as_json:
        print_json([finished.summary for finished in done])
    if held:
        click.echo(f"notice: claimed and not finished: {', '.join(held)}", err=True)
    if code:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
    else:
        click.echo(f"when all are done: snellen merge {claims.place} --out DIR", err=True)
    return code


def show_reasons(finished: Finished, label: str) -> None:
    """Prints a run's notices and errors to stderr, each with the label of the run."""
    from snellen.tables.screen import legible

    said = [("notice", notice) for notice in finished.notices]
    said += [("error", reason) for reason in _reasons(finished)]
    for kind, text in said:
        click.echo(f"{kind}: {label}: {legible(text)}", err=True)


def name_of(plan: Plan) -> str:
    """What tells a plan from those beside it: its model and its benchmark."""
    return f"{plan.model.name} on {plan.benchmark.name}"


def _reasons(finished: Finished) -> Iterator[str]:
    """Why a run did not end well, with what to do about it."""
    from snellen.runs.run import BLANK, blank_probes

    error = finished.error
    if error is not None:
        yield error.message + (f" (hint: {error.hint})" if error.hint else "")
    elif finished.exit_code == 3:
        counts = finished.summary.counts
        blank = blank_probes(finished.summary)
        if counts.unscored >= sum(blank.values()):
            yield (
                f"{counts.unscored} of {counts.probes} probes are unscored, more than "
                "--max-unscored allows"
            )
            return
        reasons = ", ".join(f"{reason} {n}" for reason, n in blank.items())
        worst = max(blank, key=lambda reason: blank[reason])
        yield (
            f"{sum(blank.values())} of {counts.probes} probes stand on blank replies ({reasons}), "
            f"more than --max-unscored allows (hint: {BLANK[worst]}; or --allow-blank)"
        )


def _keep_out_of_collections() -> None:
    """Leave what is loaded out of every garbage collection: a tenth of a large run's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def _tell_broken(plan: Plan) -> None:
    """Names the pictures that no model can be shown, before a call is made; a few of them."""
    from snellen.tables.screen import legible

    broken = plan.benchmark.broken if plan.options.given is None else ()
    for message in broken[:MOST_TOLD]:
        click.echo(f"notice: {legible(message)}; its probes will be unscored", err=True)
    if len(broken) > MOST_TOLD:
        click.echo(f"notice: and {len(broken) - MOST_TOLD} pictures more", err=True)
    if broken:
        click.echo("hint: --on-bad-row skip leaves such items out and counts them", err=True)


def tell(notice: str) -> None:
    """Prints a notice while a run is under way."""
    from snellen.tables.screen import legible

    click.echo(f"notice: {legible(notice)}", err=True)


def show_finished(finished: Finished, *, as_json: bool) -> None:
    """Prints a finished run: tables to stdout, notices and what to do next to stderr."""
    from snellen.cli.printing import print_json, print_table
    from snellen.runs.folder import load_run
    from snellen.tables.runs import counts_table, leaderboard
    from snellen.tables.screen import legible

    for notice in finished.notices:
        click.echo(f"notice: {legible(notice)}", err=True)
    if as_json:
        print_json(finished.summary)
    else:
        run = finished.run or load_run(finished.folder)
        print_table(leaderboard([run]))
        if finished.summary.counts.unscored or finished.summary.counts.scored_by_reason:
            print_table(counts_table([run]))
    error = finished.error
    again = with_more_money(sys.argv) if isinstance(error, OutOfMoneyError) else sys.argv
    if error is not None:
        click.echo(f"error: {legible(error.message)}", err=True)
        if error.hint and again == sys.argv:
            click.echo(f"hint: {legible(error.hint)}", err=True)
    elif finished.exit_code == 3:
        for reason in _reasons(finished):
            click.echo(f"error: {reason}", err=True)
    if finished.exit_code:
        click.echo(f"resume with: {resume_command(again)}", err=True)
    else:
        click.echo(f"run folder: {finished.folder}", err=True)


def with_more_money(argv: Sequence[str]) -> list[str]:
    """The command with twice its `--max-cost`, at least 1 USD: the same limit would stop it again.

    >>> with_more_money(["snellen", "run", "x", "--max-cost", "2.5"])
    ['snellen', 'run', 'x', '--max-cost', '5']
    """
    words = list(argv)
    for k, word in enumerate(words):
        name, equals, amount = word.partition("=")
        if name == "--max-cost" and equals:
            words[k] = f"{name}={max(1.0, 2 * float(amount)):g}"
        elif name == "--max-cost" and k + 1 < len(words):
            words[k + 1] = f"{max(1.0, 2 * float(words[k + 1])):g}"
    return words


def resume_command(argv: list[str]) -> str:
    """The command to type again; keys given on the command line or in a URL are left out.

    >>> resume_command(["snellen", "run", "--api-key", "secret", "x"])
    'snellen run --api-key ... x'
    >>> resume_command(["snellen", "run", "--api-url=http://me:secret@host/v1"])
    'snellen run --api-url=http://...@host/v1'
    """
    words = ["snellen", *argv[1:]]
    for k, word in enumerate(words):
        for secret in SECRETS:
            if word == secret and k + 1 < len(words):
                words[k + 1] = "..."
            elif word.startswith(secret + "="):
                words[k] = f"{secret}=..."
    return shlex.join(_safe_word(word) for word in words)


def _safe_word(word: str) -> str:
    """A word of a command in whose URL secrets are left out."""
    found = _URL_WORD.fullmatch(word)
    if found is None:
        return word
    url, credentials = take_off_credentials(found[2])
    shown = public_url(url).replace("=***", "=...")
    if credentials:
        shown = shown.replace("://", "://...@", 1)
    return (found[1] or "") + shown
