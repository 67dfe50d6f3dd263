"""`snellen run`: evaluates models, or replies that exist, on a benchmark."""

from __future__ import annotations

import asyncio
import gc
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from snellen.cli.options import (
    driving_options,
    judge_options,
    judge_system_option,
    parse_params,
)
from snellen.errors import INTERRUPTED

if TYPE_CHECKING:
    from snellen.runs.plan import RunRequest
    from snellen.runs.run import Finished, Plan

MINI = ("mini-reading", "mini-rubric", "mini-direct")
SECRETS = ("--api-key", "--judge-key")
# So many pictures that cannot be shown are named one by one.
MOST_TOLD = 10
# What stands between a URL's scheme and its host, and values of its query that may be keys.
_CREDENTIALS = re.compile(
    r"(https?://)[^/?#\s]*(?=@)|([?&][^=&\s]*(?:key|token|secret|sig|auth|passw)[^=&\s]*=)[^&#\s]+",
    re.IGNORECASE,
)


@click.command(
    "run",
    epilog="Example: snellen run mini-reading --model qwen3-vl-8b "
    "--api-url http://127.0.0.1:8000/v1 --judge qwen3-32b --out out/qwen",
)
@click.argument("benchmark", required=False, default="")
@click.option("--datasets", hidden=True, default="", help="The benchmark, as evalscope spells it.")
@click.option("--data", metavar="PATH", help="The benchmark's files; else they are fetched.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="The model's name. Repeatable: each gets OUT/NAME.",
)
@click.option("--api-url", default="", metavar="URL", help="Its endpoint, up to /v1.")
@click.option("--api-key-env", default="", metavar="VAR", help="The variable that holds its key.")
@click.option("--api-key", default="", metavar="KEY", help="Its key; never written.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=JSON",
    help="A body field that is sent to the model. Repeatable.",
)
@click.option("--replies", metavar="FILE", help="Replies that exist: JSON or JSON-lines.")
@judge_options
@judge_system_option
@click.option("--out", metavar="DIR", help="The run folder; the same one again resumes.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="The first N items over the whole (evalscope applies it to each subset: "
    "use --limit-per-subset for that).",
)
@click.option(
    "--limit-per-subset",
    type=click.IntRange(1),
    metavar="N",
    help="The first N items of each label: what evalscope calls --limit.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="N",
    help="N items drawn with the seed, in proportion to the capabilities.",
)
@click.option(
    "--subset",
    "subsets",
    multiple=True,
    metavar="LABEL",
    help="Only items with this label. Repeatable.",
)
@click.option(
    "--on-bad-row",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="Stop at a bad row of the data, or leave it out and count it.",
)
@click.option(
    "--source",
    type=click.Choice(["hub", "modelscope"]),
    default="hub",
    show_default=True,
    help="Where public data is fetched.",
)
@click.option("--revision", default="", help="The version of public data to fetch.")
@click.option(
    "--repeat", type=click.IntRange(1), default=1, metavar="K", help="Ask each item K times."
)
@click.option(
    "--caption-prompt",
    "describe_prompts",
    multiple=True,
    metavar="FILE",
    help="A caption prompt of your own. Repeatable: each gets OUT/STEM.",
)
@click.option(
    "--max-pixels", type=click.IntRange(1), metavar="N", help="Shrink pictures to at most N pixels."
)
@click.option(
    "--detail",
    type=click.Choice(["low", "high", "auto"]),
    help="The picture detail that the endpoint is asked for.",
)
@click.option(
    "--hint",
    type=click.Choice(["on", "off"]),
    default=None,
    help="direct: send an item's hint as system message (on).",
)
@click.option(
    "--parser",
    type=click.Choice(["snellen", "official"]),
    default=None,
    help="How judge replies are read (snellen).",
)
@click.option(
    "--exact-match",
    is_flag=True,
    help="direct: spare the judge where the reply equals the reference.",
)
@click.option(
    "--control",
    type=click.Choice(["no-image", "blind", "swapped"]),
    default=None,
    help="direct: no-image. reading: blind (empty caption, no E), swapped (captions of "
    "other pictures).",
)
@click.option(
    "--questions-a-call",
    type=click.IntRange(1),
    default=None,
    metavar="K",
    help="reading: K questions in one judge call, a deviation from the protocol.",
)
@click.option(
    "--decide",
    type=click.Choice(["letter", "logprob"]),
    default=None,
    help="reading: take the letter said, or the most probable one.",
)
@click.option("--logprobs", is_flag=True, help="reading: store the letters' probabilities.")
@click.option(
    "--option-order",
    "option_seed",
    type=int,
    default=None,
    metavar="SEED",
    help="reading: shuffle A-D for each question; as stored by default.",
)
@click.option("--one-rubric-a-call", "one_a_call", is_flag=True, help="rubric: for weak judges.")
@click.option(
    "--gate-first", is_flag=True, help="rubric: skip the Easy-Wrong group where the gate is shut."
)
@click.option(
    "--judge-check", metavar="FILE", help="Attach a `snellen judge-check` result to the run."
)
@driving_options
def command(**words: Any) -> int:
    """Evaluate a model on a benchmark.

    BENCHMARK is mini-reading, mini-rubric, mini-direct (or mini for all three), capprobe,
    perception_bench, perception_rubrics, captionqa, or a folder.
    """
    code = 0
    for request in requests_of(words):
        code = max(code, run_one(request, words))
        if code == INTERRUPTED:
            break
    return code


def requests_of(words: dict[str, Any]) -> Iterator[RunRequest]:
    """One request for each benchmark, model and caption prompt of a command."""
    from snellen.errors import UsageError

    name = words["benchmark"] or words["datasets"]
    if not name:
        raise UsageError("no benchmark", hint="for example: snellen run mini-reading ...")
    if words["benchmark"] and words["datasets"]:
        raise UsageError(
            f"two benchmarks are named: {words['benchmark']} and {words['datasets']}",
            hint="one command evaluates one benchmark: leave --datasets out",
        )
    if not words["out"]:
        words["out"] = f"runs/{Path(name).name}"
    benchmarks = MINI if name == "mini" else (name,)
    models = words["models"] or ("",)
    prompts = words["describe_prompts"] or (None,)
    for benchmark in benchmarks:
        for model in models:
            for prompt in prompts:
                out = Path(words["out"])
                if len(models) > 1:
                    out /= model.replace("/", "_")
                if len(benchmarks) > 1:
                    out /= benchmark.removeprefix("mini-")
                if len(prompts) > 1 and prompt is not None:
                    out /= Path(prompt).stem
                yield request_of(words, benchmark, model=model, prompt=prompt, out=out)


def request_of(
    words: dict[str, Any], benchmark: str, *, model: str, prompt: str | None, out: Path
) -> RunRequest:
    """The request of one run."""
    from snellen.readers import LoadOptions
    from snellen.runs.plan import RunRequest

    params = parse_params(words["params"])
    if words["detail"]:
        params["image_detail"] = words["detail"]
    name, replies = given_replies(words["replies"], benchmark)
    return RunRequest(
        benchmark=benchmark,
        out=out,
        model=model or name,
        replies=replies,
        params=params,
        judge_params=parse_params(words["judge_params"]),
        load=LoadOptions(
            limit=words["limit"],
            limit_per_subset=words["limit_per_subset"],
            subsets=words["subsets"],
            sample=words["sample"],
            on_bad_row=words["on_bad_row"],
            source=words["source"],
            revision=words["revision"],
        ),
        protocol=protocol_words(words),
        describe_prompt=prompt,
        **{
            key: words[key]
            for key in (
                "data", "api_url", "api_key", "api_key_env", "judge", "judge_url", "judge_key",
                "judge_key_env", "judge_thinking", "judge_prompt", "judge_system", "panel",
                "min_valid", "config", "seed", "repeat",
                "concurrency", "max_cost", "max_unscored", "max_tries", "reasks", "cache",
                "max_pixels", "judge_check",
            )
        },
    )  # fmt: skip


def protocol_words(words: dict[str, Any]) -> dict[str, Any]:
    """The options that belong to one protocol, where they were given."""
    chosen = {
        name: words[name]
        for name in (
            "parser", "control", "questions_a_call", "decide", "option_seed",
        )
        if words[name] is not None
    }  # fmt: skip
    chosen |= {
        name: True
        for name in ("exact_match", "logprobs", "one_a_call", "gate_first")
        if words[name]
    }
    if words["hint"] is not None:
        chosen["hint"] = words["hint"] == "on"
    return chosen


def given_replies(path: str | None, benchmark: str) -> tuple[str, Any]:
    """The name and the rows of replies that exist; a bundled captioner's name serves `mini`."""
    if path is None:
        return "", None
    from snellen.flows import given_rows
    from snellen.readers.mini import bundled_replies
    from snellen.readers.replies import read_replies

    source: Path | None = Path(path)
    if source is not None and not source.exists() and benchmark.startswith("mini-"):
        source = bundled_replies(Path(path).stem, benchmark) or source
    found = read_replies(str(source))
    for notice in found.notices:
        click.echo(f"notice: {notice}", err=True)
    return Path(path).stem, given_rows(found.replies)


def run_one(request: RunRequest, words: dict[str, Any]) -> int:
    """Makes one run, prints its table, and says how to go on where it stopped."""
    from snellen.runs.plan import make_plan

    return run_plan(make_plan(request), words)


def run_plan(plan: Plan, words: dict[str, Any]) -> int:
    """Drives a plan as a command does: progress, tables, hints, and the exit code."""
    from snellen.cli.progress import Progress
    from snellen.runs.run import execute

    _tell_broken(plan)
    if words["dry_run"]:
        from snellen.cli.dry import print_forecast

        return print_forecast(plan, as_json=words["as_json"])
    _calm_garbage_collection()
    progress = None if words["quiet"] else Progress(plan.benchmark.name).show
    try:
        finished = asyncio.run(execute(plan, progress=progress))
    except KeyboardInterrupt:  # before the first call, or after the last
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    show_finished(finished, as_json=words["as_json"])
    return finished.exit_code


def _tell_broken(plan: Plan) -> None:
    """Names the pictures that no model can be shown, before a call is made; a few of them."""
    from snellen.cli.printing import legible

    broken = plan.benchmark.broken if plan.options.given is None else ()
    for message in broken[:MOST_TOLD]:
        click.echo(f"notice: {legible(message)}; its probes will be unscored", err=True)
    if len(broken) > MOST_TOLD:
        click.echo(f"notice: and {len(broken) - MOST_TOLD} pictures more", err=True)
    if broken:
        click.echo("hint: --on-bad-row skip leaves such items out and counts them", err=True)


def _calm_garbage_collection() -> None:
    """Leaves the loaded benchmark out of every collection: a tenth of a large run's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def show_finished(finished: Finished, *, as_json: bool) -> None:
    """Prints a finished run: tables to stdout, notices and what to do next to stderr."""
    from snellen.cli.printing import legible, print_json, print_table
    from snellen.runs.folder import load_run
    from snellen.tables.runs import counts_table, leaderboard

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
    if error is not None:
        click.echo(f"error: {legible(error.message)}", err=True)
        if error.hint:
            click.echo(f"hint: {legible(error.hint)}", err=True)
    elif finished.exit_code == 3:
        counts = finished.summary.counts
        click.echo(
            f"error: {counts.unscored} of {counts.probes} probes are unscored, more than "
            "--max-unscored allows",
            err=True,
        )
    if finished.exit_code:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
    else:
        click.echo(f"run folder: {finished.folder}", err=True)


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
    safe = [_CREDENTIALS.sub(lambda m: f"{m[1] or m[2]}...", word) for word in words]
    return shlex.join(safe)
