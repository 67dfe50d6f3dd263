"""The commands as Python calls, in the same words, each with an async twin."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snellen.errors import UsageError
from snellen.flows import given_rows
from snellen.planning import RunRequest, make_plan
from snellen.readers import LoadOptions
from snellen.results import Run, load_run
from snellen.runs import execute

if TYPE_CHECKING:
    from snellen.analysis.comparing import Comparison

Speaker = str | Callable[..., Any]
Judging = Speaker | Sequence[Speaker]


def run(benchmark: str, *, model: Speaker = "", judge: Judging = "", **words: Any) -> Run:
    """Evaluates a model on a benchmark and gives the finished run.

    `model` and `judge` are names, or Python callables (sync or async) that take OpenAI-style
    messages and give a text; several judges in a list vote as a panel. Other words are those of
    `snellen run`: `api_url`, `judge_url`, `out`, `data`, `replies` (a mapping id to text),
    `limit`, `subsets`, `repeat`, `control` and so on. Without `out` the run goes to a new temporary
    folder. A stopped or partly unscored run is given too: its `summary` counts what could not be
    scored; only a run that was stopped by an error before any verdict raises.

    >>> done = run("mini-direct", model=lambda messages: "two", judge="embedded", limit=2)
    >>> done.summary.counts.probes
    2

    Raises:
        SnellenError: what a command would have said in one line.
    """
    return asyncio.run(run_async(benchmark, model=model, judge=judge, **words))


async def run_async(
    benchmark: str, *, model: Speaker = "", judge: Judging = "", **words: Any
) -> Run:
    """The same as `run`, for callers that have an event loop."""
    plan = make_plan(_request(benchmark, model=model, judge=judge, words=words))
    finished = await execute(plan)
    if finished.error is not None and not finished.summary.counts.scored:
        raise finished.error
    return load_run(finished.folder)


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
    metrics: Sequence[str] | None = None,
    across: Collection[str] = (),
    common: bool = False,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """Compares runs on the same items in pairs, the later minus the earlier one.

    `runs` are finished runs or their folders. `metrics` are names; None: the main ones of the
    protocol. `across` names what may differ because it is the question: `judge`, `prompt`,
    `control`, `hint`, `data`. `common` leaves out items that not all runs have.

    >>> old = score_captions({"cat": "A cat."}, benchmark="mini-reading", judge="embedded")
    >>> new = score_captions({"cat": "A cat."}, benchmark="mini-reading", judge="embedded")
    >>> found = compare([old, new]).metric("overall_acc").pairs[0]
    >>> found.difference, found.p, found.settled
    (0.0, 1.0, False)

    Raises:
        ComparisonError: the runs differ in what makes their difference meaningless; it is named.
        UsageError: there are fewer than two runs, or a name is unknown.
    """
    from snellen.analysis import comparing
    from snellen.stats.bootstrap import Resampling

    return comparing.compare(
        _loaded(runs),
        metrics=metrics,
        across=across,
        common=common,
        resampling=Resampling(resamples, level, seed),
    )


async def compare_async(runs: Iterable[Run | str | Path], **words: Any) -> Comparison:
    """The same as `compare`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(compare, runs, **words)


async def load_run_async(path: str | Path) -> Run:
    """The same as `load_run`, in a thread, for callers that have an event loop."""
    return await asyncio.to_thread(load_run, path)


def _loaded(runs: Iterable[Run | str | Path]) -> Iterator[Run]:
    for run_ in runs:
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


def _request(
    benchmark: str, *, model: Speaker, judge: Judging, words: dict[str, Any]
) -> RunRequest:
    words = _as_commands_spell_them(words)
    load = {k: v for k, v in words.items() if k in LOAD_WORDS - {"seed", "cache"}}
    plan = {k: v for k, v in words.items() if k in PLAN_WORDS}
    known = LOAD_WORDS | PLAN_WORDS
    protocol = {k: v for k, v in words.items() if k not in known}
    replies = plan.pop("replies", None)
    if replies is not None and not isinstance(replies, Mapping):
        raise UsageError("`replies` must map ids to texts", hint="for a file, read it first")
    given = None if replies is None else given_rows({str(k): v for k, v in replies.items()})
    out = plan.pop("out", None) or Path(tempfile.mkdtemp(prefix="snellen-")) / "run"
    plan["protocol"] = {**plan.get("protocol", {}), **protocol}
    return RunRequest(
        benchmark,
        out,
        model=model,
        judge=judge,
        load=LoadOptions(**load),
        replies=given,
        **{k: v for k, v in plan.items() if k not in {"benchmark", "model", "judge", "load"}},
    )
