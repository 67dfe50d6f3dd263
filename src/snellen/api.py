"""The commands as Python calls, with the same arguments, each with an async twin."""

from __future__ import annotations

import asyncio
import inspect
import logging
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack

from snellen.engine.signals import hand_on
from snellen.errors import INTERRUPTED, SnellenError, UsageError
from snellen.records import Benchmark, Params, Speaker
from snellen.runs.folder import Run, load_run
from snellen.runs.plan import make_plan
from snellen.runs.request import (
    Control,
    Replies,
    RunRequest,
    Source,
    arguments,
    in_python_words,
    refuse_unknown,
)
from snellen.runs.run import execute

if TYPE_CHECKING:
    from snellen.comparisons.results import Comparison

LOG = logging.getLogger("snellen")
Judging = Speaker | Sequence[Speaker]
F = TypeVar("F", bound=Callable[..., object])


class RunArguments(TypedDict, total=False):
    """The arguments that every call takes which makes a run; `RunRequest` describes each."""

    out: Source
    api_url: str
    api_key_env: str
    api_key: str
    temperature: float | None
    max_tokens: int | None
    top_p: float | None
    system: Source | None
    params: Params
    detail: Literal["low", "high", "auto"] | None
    max_pixels: int | None
    judge_url: str | Sequence[str]
    judge_key_env: str
    judge_key: str
    judge_temperature: float | None
    judge_max_tokens: int | None
    judge_top_p: float | None
    judge_params: Params
    judge_thinking: bool
    judge_prompt: Source | None
    judge_system: Source | None
    panel: Literal["majority", "unanimity"] | None
    min_valid: int | None
    judge_check: Source | None
    data: Source | None
    on_bad_row: Literal["stop", "skip"]
    allow_outside: str | Sequence[str]
    source: Literal["hub", "modelscope"]
    revision: str
    split: str
    limit: int | None
    limit_per_subset: int | None
    sample: int | None
    subset: str | Sequence[str]
    repeat: int
    seed: int
    caption_prompt: Source | None
    parser: Literal["snellen", "official"] | None
    hint: bool | None
    exact_match: bool | None
    control: Control | None
    questions_a_call: int | None
    decide: Literal["letter", "logprob"] | None
    logprobs: bool | None
    option_order: int | None
    one_rubric_a_call: bool | None
    gate_first: bool | None
    shard: str
    claims: Source
    engine: Literal["ray"] | None
    address: str
    workers: int | None
    config: Source | None
    concurrency: int | None
    max_cost: float | None
    max_unscored: float
    max_tries: int
    reasks: int | None
    allow_blank: bool
    keep_unreadable: bool
    patience: float
    cache: bool | None


def _with_signature(function: F) -> F:
    """Shows every argument with its type to `help`, to editors and to notebooks."""
    own = inspect.signature(function).parameters.values()
    named = [one for one in own if one.kind is not inspect.Parameter.VAR_KEYWORD]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=arguments()[name].default,
            annotation=annotation.__forward_arg__,
        )
        for name, annotation in RunArguments.__annotations__.items()
    ]
    signature = inspect.Signature([*named, *more], return_annotation="Run")
    function.__dict__["__signature__"] = signature
    return function


@_with_signature
def run(
    benchmark: Source | Benchmark,
    *,
    model: Speaker = "",
    judge: Judging = "",
    replies: Replies | None = None,
    **more: Unpack[RunArguments],
) -> Run:
    """Evaluates a model on a benchmark and gives the finished run.

    `benchmark` is a name, a folder, or a `Benchmark` made in memory.
    `model` and `judge` are names, or Python callables (sync or async) that take OpenAI-style
    messages and give a text; several judges in a list vote as a panel. `replies` exist already, as
    a mapping from id to text or a file. All arguments are those of `snellen run`. Without `out` the
    run goes to a new temporary folder. A stopped or partly unscored run is given too: its `summary`
    counts what could not be scored; only a run that was stopped by an error before any verdict
    raises. Notices, and what stopped a run, are told to the logger `snellen`, which writes to
    stderr unless you set it.

    >>> done = run("mini-direct", model=lambda messages: "two", judge="embedded", limit=2)
    >>> done.summary.counts.probes
    2

    Raises:
        SnellenError: what a command would have said in one line.
        KeyboardInterrupt: Ctrl-C; what was done by then is safe, and the same `out` goes on.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:  # Python starts no other loop inside the one of a notebook
        raise UsageError(
            "an event loop is running here, as it is in notebooks",
            hint="write `await snellen.run_async(...)`, or "
            "`await snellen.score_captions_async(...)`",
        )
    try:
        return asyncio.run(run_async(benchmark, model=model, judge=judge, replies=replies, **more))
    except asyncio.CancelledError as error:  # someone else's handler took the signal
        raise KeyboardInterrupt(*error.args) from error


@_with_signature
async def run_async(
    benchmark: Source | Benchmark,
    *,
    model: Speaker = "",
    judge: Judging = "",
    replies: Replies | None = None,
    **more: Unpack[RunArguments],
) -> Run:
    """The same as `run`, for callers that have an event loop.

    Ctrl-C reaches the caller's own handler when the run has ended in good order.
    """
    refuse_unknown(more)
    with _python_words():
        request = RunRequest(benchmark=benchmark, model=model, judge=judge, replies=replies, **more)
        if not request.out:
            out = Path(tempfile.mkdtemp(prefix="snellen-")) / "run"
            request = replace(request, out=out)
        if request.engine == "ray":
            from snellen.fleet.ray_engine import run_on_ray

            finished = await run_on_ray(request)
        else:
            finished = await execute(make_plan(request))
        if finished.exit_code == INTERRUPTED:
            await hand_on()
            raise asyncio.CancelledError(f"out={str(finished.folder)!r} goes on from here")
        if finished.error is not None and not finished.summary.counts.scored:
            raise finished.error
    for notice in finished.notices:
        LOG.warning("%s", in_python_words(notice))
    if finished.error is not None:
        hint = in_python_words(finished.error.hint)
        LOG.warning("%s; %s", in_python_words(finished.error.message), hint)
    return load_run(finished.folder)


@contextmanager
def _python_words() -> Iterator[None]:
    """Lets an error name arguments where it would name options of a command."""
    try:
        yield
    except SnellenError as error:
        error.message, error.hint = in_python_words(error.message), in_python_words(error.hint)
        error.args = tuple(in_python_words(str(one)) for one in error.args)
        raise


@_with_signature
def score_captions(
    captions: Replies,
    *,
    benchmark: Source | Benchmark,
    judge: Judging,
    model: str = "",
    **more: Unpack[RunArguments],
) -> Run:
    """Scores captions that exist already, by image id; no model is called.

    `model` is the name under which they are shown.

    >>> done = score_captions({"cat": "A tabby cat."}, benchmark="mini-reading", judge="embedded")
    >>> done.summary.metrics["coverage"].scored < 0.5
    True
    """
    return run(benchmark, model=model, judge=judge, replies=captions, **more)


@_with_signature
async def score_captions_async(
    captions: Replies,
    *,
    benchmark: Source | Benchmark,
    judge: Judging,
    model: str = "",
    **more: Unpack[RunArguments],
) -> Run:
    """The same as `score_captions`, for callers that have an event loop."""
    return await run_async(benchmark, model=model, judge=judge, replies=captions, **more)


def merge(folders: Sequence[str | Path], out: str | Path) -> Run:
    """Unites the run folders of shards into one run, in the new folder `out`.

    `folders` are run folders, folders that hold some, or addresses that fsspec knows. A call that
    is in two folders is taken once. What is missing, and which shards have not finished, is told
    to the logger `snellen`; the summary then has the status `incomplete`.

    Raises:
        RunFolderError: the folders are of different runs, hold another request at one address, or
            `out` is not empty.
    """
    from snellen.fleet.merge import merge as unite

    merged = unite(folders, out)
    for notice in merged.notices():
        LOG.warning("%s", notice)
    return merged.run


async def merge_async(folders: Sequence[str | Path], out: str | Path) -> Run:
    """The same as `merge`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(merge, folders, out)


def compare(
    runs: Iterable[Run | str | Path],
    *,
    metrics: Sequence[str] | str | None = None,
    across: Collection[str] | str = (),
    common: bool = False,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """Compares runs on the same items in pairs, the later minus the earlier one.

    `runs` are finished runs or their folders. `metrics` are names, or one; None: the main ones of
    the protocol. `across` names what may differ because it is the question: `judge`, `prompt`,
    `control`, `hint`, `data`. `common` leaves out items that not all runs have.

    >>> old = score_captions({"cat": "A cat."}, benchmark="mini-reading", judge="embedded")
    >>> new = score_captions({"cat": "A cat."}, benchmark="mini-reading", judge="embedded")
    >>> found = compare([old, new]).metric("overall_acc").pairs[0]
    >>> found.difference, found.p, found.settled
    (0.0, 1.0, False)

    Raises:
        ComparisonError: the runs differ in what makes their difference meaningless; it is named.
        UsageError: there are fewer than two runs, a name is unknown, or a number is out of range.
    """
    from snellen.comparisons.comparing import compare as compare_runs
    from snellen.stats.bootstrap import Resampling

    for name, number, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if not isinstance(number, Integral) or number < least:
            raise UsageError(
                f"`{name}` cannot be {number!r}", hint=f"give a whole number from {least} on"
            )
    if not 0.0 < level < 1.0:
        raise UsageError(
            f"`level` cannot be {level!r}", hint="give a share between 0 and 1, such as 0.95"
        )
    return compare_runs(
        _loaded(runs),
        metrics=[metrics] if isinstance(metrics, str) else metrics,
        across=[across] if isinstance(across, str) else across,
        common=common,
        resampling=Resampling(int(resamples), level, int(seed)),
    )


async def compare_async(
    runs: Iterable[Run | str | Path],
    *,
    metrics: Sequence[str] | str | None = None,
    across: Collection[str] | str = (),
    common: bool = False,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """The same as `compare`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(
        compare,
        runs,
        metrics=metrics,
        across=across,
        common=common,
        resamples=resamples,
        seed=seed,
        level=level,
    )


async def load_run_async(path: str | Path) -> Run:
    """The same as `load_run`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(load_run, path)


def _loaded(runs: Iterable[Run | str | Path]) -> Iterator[Run]:
    if isinstance(runs, str | Path | Run):
        raise UsageError("one run is no list of runs", hint="give [first, second]")
    for run_ in runs:
        if not isinstance(run_, str | Path | Run):
            raise UsageError(
                f"`runs` cannot hold {run_!r}", hint="give finished runs, or their folders"
            )
        yield run_ if isinstance(run_, Run) else load_run(run_)
