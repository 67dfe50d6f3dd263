"""The commands as Python calls, in the same words, each with an async twin."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from snellen.errors import UsageError
from snellen.flows import given_rows
from snellen.planning import RunRequest, make_plan
from snellen.readers import LoadOptions
from snellen.results import Run, load_run
from snellen.runs import execute

Speaker = str | Callable[..., Any]


def run(benchmark: str, *, model: Speaker = "", judge: Speaker = "", **words: Any) -> Run:
    """Evaluates a model on a benchmark and gives the finished run.

    `model` and `judge` are names, or Python callables (sync or async) that take OpenAI-style
    messages and give a text. Other words are those of `snellen run`: `api_url`, `judge_url`,
    `out`, `data`, `replies` (a mapping id to text), `limit`, `subsets`, `repeat`, `control` and
    so on. Without `out` the run goes to a new temporary folder. A stopped or partly unscored run
    is given too: its `summary` counts what could not be scored; only a run that was stopped by an
    error before any verdict raises.

    >>> done = run("mini-direct", model=lambda messages: "two", judge="embedded", limit=2)
    >>> done.summary.counts.probes
    2

    Raises:
        SnellenError: what a command would have said in one line.
    """
    return asyncio.run(run_async(benchmark, model=model, judge=judge, **words))


async def run_async(
    benchmark: str, *, model: Speaker = "", judge: Speaker = "", **words: Any
) -> Run:
    """The same as `run`, for callers that have an event loop."""
    plan = make_plan(_request(benchmark, model=model, judge=judge, words=words))
    finished = await execute(plan)
    if finished.error is not None and not finished.summary.counts.scored:
        raise finished.error
    return load_run(finished.folder)


def score_captions(
    captions: Mapping[str, str], *, benchmark: str, judge: Speaker, **words: Any
) -> Run:
    """Scores captions that exist already, by image id; no model is called.

    >>> done = score_captions({"cat": "A tabby cat."}, benchmark="mini-reading", judge="embedded")
    >>> done.summary.metrics["coverage"].value < 0.5
    True
    """
    return run(benchmark, judge=judge, replies=captions, **words)


async def score_captions_async(
    captions: Mapping[str, str], *, benchmark: str, judge: Speaker, **words: Any
) -> Run:
    """The same as `score_captions`, for callers that have an event loop."""
    return await run_async(benchmark, judge=judge, replies=captions, **words)


LOAD_WORDS = frozenset(LoadOptions.__dataclass_fields__)
PLAN_WORDS = frozenset(RunRequest.__dataclass_fields__)


def _request(
    benchmark: str, *, model: Speaker, judge: Speaker, words: dict[str, Any]
) -> RunRequest:
    load = {k: v for k, v in words.items() if k in LOAD_WORDS - {"seed", "cache"}}
    if "subsets" in load:
        load["subsets"] = tuple(load["subsets"])
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
