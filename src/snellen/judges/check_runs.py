"""Puts a judge to the test: material of known truth through ordinary runs, then measured.

Each protocol is a run folder of its own below the check's, so that an interrupted check resumes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import snellen
from snellen.engine.job import Display
from snellen.engine.journal import now
from snellen.errors import DataError
from snellen.judges.check import (
    Answered,
    answered,
    confusion_of,
    part_of,
    position_of,
    rates_of,
    same_again,
    sources_of,
)
from snellen.judges.material import Material, material
from snellen.protocols import PROTOCOLS
from snellen.protocols.reading import ReadingOptions
from snellen.readers import LoadOptions, load_benchmark
from snellen.readers.mini import MINI
from snellen.records import JsonObject, ModelRecord, Params, ProtocolName, Region
from snellen.runs.folder import Run, load_run, write_json
from snellen.runs.judge_errors import Confusion, JudgeCheck, ProtocolCheck
from snellen.runs.plan import GivenReplies, plan_for
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, Plan, execute
from snellen.settings import cache_folder

CHECKED: tuple[ProtocolName, ...] = ("reading", "rubric", "direct")
BUNDLED_FACTS = "mini-reading"
FILE = "judge_check.json"
SHUFFLED = "-shuffled"


@dataclass(frozen=True, slots=True)
class CheckWish:
    """What a judge is checked on. `source` is the benchmark whose facts are used; `limit` bounds
    the items of each protocol; `seed` writes captions and shuffles options."""

    out: Path
    protocols: tuple[ProtocolName, ...] = CHECKED
    source: str = BUNDLED_FACTS
    repeats: int = 2
    limit: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """A check that did not come to its end: how its last run ended."""

    finished: Finished


async def check_judge(
    request: RunRequest, wish: CheckWish, *, progress: Callable[[str], Display] | None = None
) -> JudgeCheck | Stopped:
    """The measured errors of the judge that a request names; also written to `wish.out`.

    `progress` makes a progress display from a name; None shows nothing.

    Raises:
        DataError: the benchmark has no structured facts.
        UsageError, SettingsError: the judge cannot be bound.
    """
    regions = _regions(wish.source)
    checks: dict[str, ProtocolCheck] = {}
    judge, digests = ModelRecord(""), {"facts": wish.source}
    for protocol in wish.protocols:
        made = _material(protocol, wish, regions)
        digests[protocol] = made.benchmark.digest
        trial = await _try(request, wish, made, progress=progress)
        if isinstance(trial, Finished):
            return Stopped(trial)
        checks[protocol] = _measured(made, trial, wish)
        judge = replace(trial.plain.spec.judge, params={})
    found = JudgeCheck(judge, now(), snellen.__version__, wish.seed, digests, checks)
    write_json(wish.out / FILE, found)
    return found


def _regions(source: str) -> tuple[Region, ...]:
    regions = load_benchmark(source, None, options=LoadOptions(cache=str(cache_folder()))).regions
    known = tuple(region for region in regions if region.metadata)
    if not known:
        raise DataError(
            "has no regions with metadata, hence no facts to write captions from",
            file=source,
            hint="give a reading benchmark whose `regions` carry `metadata`, or leave --from out",
        )
    return known


@dataclass(frozen=True, slots=True)
class _Trial:
    """The finished runs of one protocol: options as stored, and (reading) shuffled."""

    plain: Run
    shuffled: Run | None
    seconds: float
    calls: int


async def _try(
    request: RunRequest,
    wish: CheckWish,
    made: Material,
    *,
    progress: Callable[[str], Display] | None,
) -> _Trial | Finished:
    protocol = made.benchmark.protocol
    runs: list[Run] = []
    seconds, calls = 0.0, 0
    for suffix in _variants(protocol):
        plan = _plan(request, wish, made, suffix=suffix)
        shown = progress and progress(f"{protocol}{suffix}")
        started = time.monotonic()
        finished = await execute(plan, progress=shown)
        seconds += time.monotonic() - started
        calls += _calls(finished.summary.usage)
        if finished.exit_code or finished.error is not None:
            return finished
        runs.append(load_run(finished.folder))
    return _Trial(runs[0], runs[1] if len(runs) > 1 else None, seconds, calls)


def _variants(protocol: str) -> tuple[str, ...]:
    """The runs of a protocol: questions with options are asked with these shuffled, too."""
    options = PROTOCOLS[protocol].options
    return ("", SHUFFLED) if "option_seed" in options.__dataclass_fields__ else ("",)


def _plan(request: RunRequest, wish: CheckWish, made: Material, *, suffix: str) -> Plan:
    wanted = replace(
        request,
        benchmark=made.benchmark.name,
        model="known-replies",
        out=wish.out / (made.benchmark.protocol + suffix),
        repeat=1 if suffix else wish.repeats,
        seed=wish.seed,
        option_order=_order_seed(wish) if suffix else None,
        max_unscored=1.0,
    )
    return plan_for(wanted, made.benchmark, given=GivenReplies("", made.replies))


def plans(request: RunRequest, wish: CheckWish) -> Iterator[Plan]:
    """The runs that a check consists of."""
    regions = _regions(wish.source)
    for protocol in wish.protocols:
        made = _material(protocol, wish, regions)
        for suffix in _variants(protocol):
            yield _plan(request, wish, made, suffix=suffix)


def _material(protocol: ProtocolName, wish: CheckWish, regions: Sequence[Region]) -> Material:
    return material(str(MINI), protocol, regions=regions, seed=wish.seed, limit=wish.limit)


def _order_seed(wish: CheckWish) -> int:
    return wish.seed + 1


def _calls(usage: Params) -> int:
    return sum(
        int(entry.get("done", 0))
        for role, entry in usage.items()
        if role.startswith("judge") and entry
    )


def _measured(made: Material, trial: _Trial, wish: CheckWish) -> ProtocolCheck:
    protocol, run = made.benchmark.protocol, trial.plain
    found = answered(made, run.verdicts)
    # What confusions are made of: no negated facts, and nothing that the judge was tuned on.
    judge = run.spec.judge
    keep = found.treatment != "negated"
    if judge.fidelity == "low":
        keep = keep & (found.source != "dev")
    untuned = part_of(found, keep) if keep.any() else found
    position = None
    if trial.shuffled is not None:
        options = ReadingOptions(option_seed=_order_seed(wish))
        position = position_of(made, run.verdicts, trial.shuffled.verdicts, options=options)
    summary = run.summary
    return ProtocolCheck(
        protocol=protocol,
        prompts={purpose: prompt.sha256 for purpose, prompt in run.spec.prompts.items()},
        n_items=len(made.benchmark.items),
        n_pictures=len({item.cluster for item in made.benchmark.items}),
        rates=rates_of(found, protocol),
        sources=sources_of(found, protocol),
        confusion=confusion_of(untuned, protocol),
        confusions=_confusions(untuned, protocol),
        unscored_by_reason={} if summary is None else dict(summary.counts.unscored_by_reason),
        same_again=same_again(made, run.verdicts, repeats=wish.repeats),
        position=position,
        calls=trial.calls,
        seconds=trial.seconds,
        params=dict(run.spec.judge.params),
        usage=_usage(trial),
    )


def _confusions(found: Answered, protocol: ProtocolName) -> dict[str, Confusion]:
    """The confusion on each kind of material, where all truths occur in it."""
    facts = found.source == "facts"
    parts = {"labelled": part_of(found, ~facts), "facts": part_of(found, facts)}
    made = {name: confusion_of(part, protocol) for name, part in parts.items() if len(part.exact)}
    return {name: one for name, one in made.items() if all(sum(row) for row in one.counts)}


def _usage(trial: _Trial) -> JsonObject:
    """Usage of the judge, the shuffled run's beside the plain one's."""
    runs = {"plain": trial.plain, "shuffled": trial.shuffled}
    return {
        name: {k: v for k, v in run.summary.usage.items() if k != "model"}
        for name, run in runs.items()
        if run is not None and run.summary is not None
    }
