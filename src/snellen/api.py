"""The commands as Python calls, in the same words, each with an async twin."""

from __future__ import annotations

import asyncio
import logging
import operator
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snellen.engine.signals import hand_on
from snellen.errors import INTERRUPTED, UsageError
from snellen.flows import Given, given_rows
from snellen.protocols import PROTOCOLS
from snellen.readers import LoadOptions
from snellen.runs.folder import Run, load_run
from snellen.runs.plan import RunRequest, make_plan
from snellen.runs.run import Finished, execute
from snellen.schemas import nearest

if TYPE_CHECKING:
    from snellen.comparisons.comparing import Comparison

LOG = logging.getLogger("snellen")
Speaker = str | Callable[..., Any]
Judging = Speaker | Sequence[Speaker]


def run(benchmark: str, *, model: Speaker = "", judge: Judging = "", **words: Any) -> Run:
    """Evaluates a model on a benchmark and gives the finished run.

    `model` and `judge` are names, or Python callables (sync or async) that take OpenAI-style
    messages and give a text; several judges in a list vote as a panel. Other words are those of
    `snellen run`: `api_url`, `judge_url`, `out`, `data`, `replies` (a mapping id to text),
    `limit`, `subsets`, `repeat`, `control` and so on. Without `out` the run goes to a new temporary
    folder. A stopped or partly unscored run is given too: its `summary` counts what could not be
    scored; only a run that was stopped by an error before any verdict raises. Why calls failed, and
    what stopped a run, is told to the logger `snellen`, which writes to stderr unless you set it.

    >>> done = run("mini-direct", model=lambda messages: "two", judge="embedded", limit=2)
    >>> done.summary.counts.probes
    2

    Raises:
        SnellenError: what a command would have said in one line.
        KeyboardInterrupt: Ctrl-C; what was done by then is safe, and the same `out` goes on.
    """
    _refuse_inside_loop()
    try:
        return asyncio.run(run_async(benchmark, model=model, judge=judge, **words))
    except asyncio.CancelledError as error:  # someone else's handler took the signal
        raise KeyboardInterrupt(*error.args) from error


async def run_async(
    benchmark: str, *, model: Speaker = "", judge: Judging = "", **words: Any
) -> Run:
    """The same as `run`, for callers that have an event loop.

    Ctrl-C reaches the caller's own handler when the run has ended in good order.
    """
    plan = make_plan(_request(benchmark, model=model, judge=judge, words=words))
    finished = await execute(plan)
    if finished.exit_code == INTERRUPTED:
        await hand_on()
        raise asyncio.CancelledError(f"out={str(finished.folder)!r} goes on from here")
    if finished.error is not None and not finished.summary.counts.scored:
        raise finished.error
    _tell(finished)
    return load_run(finished.folder)


def _refuse_inside_loop() -> None:
    """Notebooks have an event loop that is running, and Python starts no other inside it.

    Raises:
        UsageError: an event loop is running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        "an event loop is running here, as it is in notebooks",
        hint="write `await snellen.run_async(...)`, or `await snellen.score_captions_async(...)`",
    )


def _tell(finished: Finished) -> None:
    """Says what a command prints beside its tables."""
    for notice in finished.notices:
        LOG.warning("%s", notice)
    if finished.error is not None:
        LOG.warning("%s; %s", finished.error.message, finished.error.hint)


def score_captions(
    captions: Mapping[str, str], *, benchmark: str, judge: Judging, **words: Any
) -> Run:
    """Scores captions that exist already, by image id; no model is called.

    >>> done = score_captions({"cat": "A tabby cat."}, benchmark="mini-reading", judge="embedded")
    >>> done.summary.metrics["coverage"].scored < 0.5
    True
    """
    return run(benchmark, judge=judge, replies=captions, **words)


async def score_captions_async(
    captions: Mapping[str, str], *, benchmark: str, judge: Judging, **words: Any
) -> Run:
    """The same as `score_captions`, for callers that have an event loop."""
    return await run_async(benchmark, judge=judge, replies=captions, **words)


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
    from snellen.comparisons import comparing
    from snellen.stats.bootstrap import Resampling

    if not 0.0 < level < 1.0:
        raise _no_such("level", level, "a share between 0 and 1, such as 0.95")
    resampling = Resampling(
        _whole("resamples", resamples, least=1), level, _whole("seed", seed, least=0)
    )
    return comparing.compare(
        _loaded(runs),
        metrics=[metrics] if isinstance(metrics, str) else metrics,
        across=[across] if isinstance(across, str) else across,
        common=common,
        resampling=resampling,
    )


async def compare_async(runs: Iterable[Run | str | Path], **words: Any) -> Comparison:
    """The same as `compare`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(compare, runs, **words)


async def load_run_async(path: str | Path) -> Run:
    """The same as `load_run`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(load_run, path)


def _loaded(runs: Iterable[Run | str | Path]) -> Iterator[Run]:
    if isinstance(runs, str | Path | Run):
        raise UsageError("one run is no list of runs", hint="give [first, second]")
    for run_ in runs:
        if not isinstance(run_, str | Path | Run):
            raise _no_such("runs", run_, "finished runs, or their folders")
        yield run_ if isinstance(run_, Run) else load_run(run_)


LOAD_WORDS = frozenset(LoadOptions.__dataclass_fields__)
PLAN_WORDS = frozenset(RunRequest.__dataclass_fields__)


def _as_commands_spell_them(words: dict[str, Any]) -> dict[str, Any]:
    """The words with `subset` (one label or several) and `hint` "on" or "off" understood."""
    words = dict(words)
    labels = words.pop("subset", words.get("subsets"))
    if labels is not None:
        words["subsets"] = (labels,) if isinstance(labels, str) else tuple(labels)
    if words.get("hint") in ("on", "off"):
        words["hint"] = words["hint"] == "on"
    return words


# The least that whole numbers may be.
LEAST = {
    "seed": None,
    "option_seed": None,
    "limit": 1,
    "limit_per_subset": 1,
    "sample": 1,
    "repeat": 1,
    "concurrency": 1,
    "max_tries": 1,
    "reasks": 0,
    "max_pixels": 1,
    "min_valid": 1,
    "questions_a_call": 1,
}
CHOICES = {"on_bad_row": ("stop", "skip"), "source": ("hub", "modelscope"), "hint": (True, False)}


def _checked(words: dict[str, Any]) -> dict[str, Any]:
    """The words with the values that a command would take, whole numbers as Python's own.

    Raises:
        UsageError: a value is of another kind, or outside its range.
    """
    whole = {
        k: _whole(k, words[k], least=LEAST[k])
        for k in LEAST.keys() & words.keys()
        if words[k] is not None or k == "seed"
    }
    for name in CHOICES.keys() & words.keys():
        if words[name] not in CHOICES[name]:
            raise _no_such(name, words[name], " or ".join(map(repr, CHOICES[name])))
    for name in {"params", "judge_params"} & words.keys():
        if not isinstance(words[name], Mapping):
            raise _no_such(name, words[name], "a mapping from names to values")
    return {**words, **whole}


def _refuse_unknown(names: Collection[str], known: Collection[str]) -> None:
    """Names a word that neither a run nor any protocol has, with the nearest that there is.

    Raises:
        UsageError: there is one.
    """
    of_protocols = {name for one in PROTOCOLS.values() for name in one.options.__dataclass_fields__}
    valid = sorted({"subset", *known, *of_protocols} - {"benchmark", "load", "protocol", "given"})
    for name in names:
        if name not in of_protocols:
            raise UsageError(f"there is no word `{name}`", hint=nearest(name, valid))


def _whole(name: str, value: Any, *, least: int | None) -> int:
    wanted = "a whole number" if least is None else f"a whole number from {least} on"
    try:
        number = operator.index(value)
    except TypeError:
        raise _no_such(name, value, wanted) from None
    if least is not None and number < least:
        raise _no_such(name, value, wanted)
    return number


def _no_such(name: str, value: Any, wanted: str) -> UsageError:
    return UsageError(f"`{name}` cannot be {value!r}", hint=f"give {wanted}")


def _given(replies: Any) -> Given | None:
    """Replies as rows; None, where a call had failed, is left out as it is from a file.

    Raises:
        UsageError: they are no mapping, or one of them is no text.
    """
    if replies is None:
        return None
    if not isinstance(replies, Mapping):
        raise UsageError("`replies` must map ids to texts", hint="for a file, read it first")
    for name, text in replies.items():
        if text is None:
            LOG.warning("the reply of %r is None; it was left out", name)
        elif not isinstance(text, str):
            raise UsageError(
                f"the reply of {name!r} is of type {type(text).__name__}", hint="give text, or None"
            )
    return given_rows({str(k): str.__str__(v) for k, v in replies.items() if v is not None})


def _request(
    benchmark: str, *, model: Speaker, judge: Judging, words: dict[str, Any]
) -> RunRequest:
    if not isinstance(benchmark, str | Path):
        raise UsageError(
            f"the benchmark is of type {type(benchmark).__name__}", hint="give its name or folder"
        )
    words = _checked(_as_commands_spell_them(words))
    load = {k: v for k, v in words.items() if k in LOAD_WORDS - {"seed", "cache"}}
    plan = {k: v for k, v in words.items() if k in PLAN_WORDS}
    known = LOAD_WORDS | PLAN_WORDS
    protocol = {k: v for k, v in words.items() if k not in known}
    _refuse_unknown(protocol, known)
    given = _given(plan.pop("replies", None))
    out = plan.pop("out", None) or Path(tempfile.mkdtemp(prefix="snellen-")) / "run"
    plan["protocol"] = {**plan.get("protocol", {}), **protocol}
    return RunRequest(
        str(benchmark),
        out,
        model=model,
        judge=judge,
        load=LoadOptions(**load),
        replies=given,
        **{k: v for k, v in plan.items() if k not in {"benchmark", "model", "judge", "load"}},
    )
