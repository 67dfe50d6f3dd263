"""`snellen rejudge`: the stored replies of a run before another judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from snellen.cli.options import (
    driving_options,
    judge_options,
    judge_system_option,
    parse_params,
)

if TYPE_CHECKING:
    from snellen.runs.plan import RunRequest


@click.command(
    "rejudge",
    epilog="Example: snellen rejudge out/qwen --judge gpt-oss-120b "
    "--judge-url http://127.0.0.1:8001/v1 --out out/qwen-gpt-oss",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@judge_options
@judge_system_option
@click.option("--out", required=True, metavar="DIR", help="The new run folder; again resumes.")
@click.option(
    "--parser",
    type=click.Choice(["snellen", "official"]),
    default=None,
    help="How judge replies are read; as in the run by default.",
)
@click.option(
    "--exact-match/--no-exact-match",
    default=None,
    help="direct: spare the judge where the reply equals the reference.",
)
@click.option("--questions-a-call", type=click.IntRange(1), default=None, metavar="K")
@click.option("--decide", type=click.Choice(["letter", "logprob"]), default=None)
@click.option("--logprobs/--no-logprobs", default=None)
@click.option("--option-order", "option_seed", type=int, default=None, metavar="SEED")
@click.option("--one-rubric-a-call/--all-rubrics-a-call", "one_a_call", default=None)
@click.option("--gate-first/--no-gate-first", default=None)
@click.option(
    "--judge-check", metavar="FILE", help="Attach a `snellen judge-check` result to the run."
)
@driving_options
def command(run: str, **words: Any) -> int:
    """Judge the stored replies of RUN again; the model is never called.

    Items, replies and their failures, prompts and protocol options are those of RUN unless an
    option says otherwise. The data set is not needed.
    """
    from snellen.cli.run import run_plan
    from snellen.runs.folder import load_run
    from snellen.runs.rejudge import rejudge_plan

    stored = load_run(run)
    source = click.get_current_context().get_parameter_source("reasks")
    if source is not ParameterSource.COMMANDLINE:
        words["reasks"] = stored.spec.options.get("reasks", words["reasks"])
    return run_plan(rejudge_plan(stored, request_of(words)), words)


PROTOCOL_WORDS = (
    "parser", "exact_match", "questions_a_call", "decide", "logprobs", "option_seed",
    "one_a_call", "gate_first",
)  # fmt: skip
# Options of this command alone; others that make its request have to leave them open.
OWN_WORDS = (*PROTOCOL_WORDS, "judge_check", "judge_system")


def request_of(words: dict[str, Any]) -> RunRequest:
    """What the command's options ask for; what belongs to the model comes from the run."""
    from snellen.runs.plan import RunRequest

    return RunRequest(
        "",
        words["out"],
        judge_params=parse_params(words["judge_params"]),
        protocol={k: words[k] for k in PROTOCOL_WORDS if words[k] is not None},
        **{
            key: words[key]
            for key in (
                "judge", "judge_url", "judge_key", "judge_key_env", "judge_thinking",
                "judge_prompt", "judge_system", "panel", "min_valid", "judge_check",
                "config", "concurrency", "max_cost", "max_unscored", "max_tries",
                "reasks", "cache",
            )
        },
    )  # fmt: skip
