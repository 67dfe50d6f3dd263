"""Judge reliability: the same replies before several judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from snellen.errors import ComparisonError, UsageError
from snellen.metrics import ProbeTable, group_masks
from snellen.records import Verdict
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.stats.agreement import Agreement, cohen_kappa, kendall_tau_b

# Verdicts that were reached without asking the judge say nothing about it.
WITHOUT_JUDGE = frozenset({"empty", "truncated", "thought_only", "exact_match"})

Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Order:
    """How two judges place the same models: second less first, and Kendall's tau of the order.

    `mean_difference` is in the scores' unit. `tau` is NaN for fewer than two models. The order is
    the same where each pair of models stands alike: above, level or below under both judges.
    """

    n_models: int
    mean_difference: float
    tau: float
    same_order: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """Two judges on the same probes.

    `agreement` is over the probes to which both gave a verdict, clustered by image. A judge passes
    on a probe when its reply could not be read or used.
    """

    first: str
    second: str
    order: Order
    agreement: Agreement
    only_first_passes: int
    only_second_passes: int
    both_pass: int
    only_first_abstains: int = 0
    only_second_abstains: int = 0
    both_abstain: int = 0


@dataclass(frozen=True, slots=True)
class Abstention:
    """How often a judge answers that the caption does not say, and how often it is unreadable."""

    judge: str
    label: str
    n: int
    abstains: float
    passes: float


@dataclass(frozen=True, slots=True)
class JudgeStudy:
    """Several judges on the same replies. `scores` maps judge and model to the metric's value.

    `lower_is_better` says how the models are to be ranked by it.
    """

    benchmark: str
    metric: str
    models: tuple[str, ...]
    judges: tuple[str, ...]
    scores: Mapping[str, Scores]
    pairs: tuple[Pair, ...]
    abstentions: tuple[Abstention, ...]
    dimension: str = ""
    notes: tuple[str, ...] = ()
    lower_is_better: bool = False


def compare_orders(first: Scores, second: Scores) -> Order:
    """How two judges' scores of the same models differ, and whether the order is the same.

    >>> compare_orders({"a": 0.4, "b": 0.5}, {"a": 0.5, "b": 0.7}).same_order
    True
    """
    models = [m for m in first if m in second]
    a, b = (np.array([scores[m] for m in models], float) for scores in (first, second))
    known = ~(np.isnan(a) | np.isnan(b))
    a, b = a[known], b[known]
    difference = float((b - a).mean()) if a.size else math.nan
    tau = kendall_tau_b(a, b)[0] if a.size > 1 else math.nan
    above = [np.sign(scores[:, np.newaxis] - scores) for scores in (a, b)]
    same = bool((above[0] == above[1]).all())
    return Order(int(a.size), difference, tau, same)


def study_judges(runs: Sequence[Run], *, metric: str = "") -> JudgeStudy:
    """Scores, order, agreement and abstention of judges that read the same replies.

    `metric` is the protocol's headline by default.

    Raises:
        ComparisonError: items or replies differ, with the difference named.
        UsageError: fewer than two judges read the same model's replies.
    """
    # Probes are paired by their place, so all runs must have one order of items.
    runs = [replace(run, items=tuple(sorted(run.items, key=lambda i: i.id))) for run in runs]
    table = _by_judge_and_model(runs)
    check_same(runs)
    chosen = metric or runs[0].protocol.headline
    shared, notes = _shared_models(table)
    judges = tuple(table)
    scores = {
        judge: {model: _score(table[judge][model], chosen) for model in shared} for judge in judges
    }
    pairs = tuple(
        _pair(a, b, [(table[a][m], table[b][m]) for m in shared], scores)
        for a, b in combinations(judges, 2)
    )
    dimension, abstentions = _abstentions(table, shared)
    return JudgeStudy(
        runs[0].spec.benchmark,
        chosen,
        shared,
        judges,
        scores,
        pairs,
        abstentions,
        dimension,
        notes,
        lower_is_better=table[judges[0]][shared[0]].tally().metric(chosen).better < 0,
    )


def can_compare(runs: Sequence[Run]) -> bool:
    """Whether there are two judges or more that read a common model."""
    table = _by_judge_and_model(runs)
    return len(table) > 1 and bool(set.intersection(*(set(by) for by in table.values())))


def check_same(runs: Sequence[Run]) -> None:
    """Refuses runs that are not over the same items, or whose models said something else.

    Raises:
        ComparisonError: with the first difference.
    """
    first = runs[0]
    for run in runs[1:]:
        check_same_items(first, run)
    by_model: dict[str, Run] = {}
    for run in runs:
        other = by_model.setdefault(run.name, run)
        if other is not run:
            _same_replies(other, run)


def check_same_items(a: Run, b: Run) -> None:
    """Refuses two runs that are not over the same items of the same benchmark.

    Raises:
        ComparisonError: with the first difference.
    """
    if (a.spec.benchmark, a.spec.protocol) != (b.spec.benchmark, b.spec.protocol):
        raise ComparisonError(
            f"{a.folder} is of {a.spec.benchmark}, {b.folder} of {b.spec.benchmark}",
            hint="give runs of one benchmark",
        )
    for name in dict.fromkeys([*a.spec.items, *b.spec.items]):
        if a.spec.items.get(name) != b.spec.items.get(name):
            missing = next((r.folder for r in (a, b) if name not in r.spec.items), None)
            told = f"is missing from {missing}" if missing else "has other content"
            raise ComparisonError(
                f"item {name} {told}: {a.folder} and {b.folder} are not over the same items",
                hint="judge the same run again with `snellen rejudge`",
            )


def _same_replies(a: Run, b: Run) -> None:
    for key in dict.fromkeys([*a.replies, *b.replies]):
        one, other = a.replies.get(key), b.replies.get(key)
        if one is None or other is None:
            raise ComparisonError(
                f"item {key[0]} has no reply in {(a if one is None else b).folder} yet",
                hint="let that run finish first, then judge it again with `snellen rejudge`",
            )
        if (one.reply, one.status) != (other.reply, other.status):
            raise ComparisonError(
                f"the reply of {a.name} to item {key[0]} differs between {a.folder} and {b.folder}",
                hint="give runs of `snellen rejudge`, which keeps the replies",
            )


def _by_judge_and_model(runs: Sequence[Run]) -> dict[str, dict[str, Run]]:
    """The runs by judge and model; a judge that comes twice is told apart by its folders."""
    alike: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        alike.setdefault((run.spec.judge.name, run.name), []).append(run)
    table: dict[str, dict[str, Run]] = {}
    for run in runs:
        judge = run.spec.judge.name
        others = alike[judge, run.name]
        if len(others) > 1:
            judge += f" ({_own_part(run, others)})"
        table.setdefault(judge, {})[run.name] = run
    return table


def _own_part(run: Run, others: Sequence[Run]) -> str:
    """The last part of a run's folder in which all of some runs differ, else the whole folder.

    Of x/qwen and y/qwen it is x and y, so that x/kimi and y/kimi fall to the same two judges.
    """
    for depth in range(1, 1 + min(len(other.folder.parts) for other in others)):
        if len({other.folder.parts[-depth] for other in others}) == len(others):
            return run.folder.parts[-depth]
    return str(run.folder)


def _shared_models(
    table: Mapping[str, Mapping[str, Run]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    everyone = list(dict.fromkeys(m for by_model in table.values() for m in by_model))
    shared = tuple(m for m in everyone if all(m in by_model for by_model in table.values()))
    if len(table) < 2 or not shared:
        raise UsageError(
            f"found {len(table)} of the 2 judges that are needed, and {len(shared)} models whose "
            "replies all judges read",
            hint="give runs of the same replies under two judges or more: `snellen rejudge` "
            "makes them",
        )
    lone = [m for m in everyone if m not in shared]
    notes = (f"left out, since not all judges read them: {', '.join(lone)}",) if lone else ()
    return shared, notes


def _score(run: Run, metric: str) -> float:
    metrics = summary_of(run).metrics
    if metric not in metrics:
        raise UsageError(
            f"{run.folder} has no metric {metric}", hint=f"there are: {', '.join(metrics)}"
        )
    value = metrics[metric].value
    return math.nan if value is None else value


def _pair(
    first: str, second: str, runs: Sequence[tuple[Run, Run]], scores: Mapping[str, Scores]
) -> Pair:
    a: list[str] = []
    b: list[str] = []
    images: list[str] = []
    passes, abstains = [0, 0, 0], [0, 0, 0]
    for one, other in runs:
        tables = one.table(), other.table()
        asked = _asked(one, tables[0]) & _asked(other, tables[1])
        read = [~t.unscored & ~t.skipped for t in tables]
        both = asked & read[0] & read[1]
        kept = [t.where(both) for t in tables]
        a += [str(v) for v in kept[0].verdict]
        b += [str(v) for v in kept[1].verdict]
        images += [tables[0].clusters[c] for c in tables[0].unit_cluster[kept[0].unit]]
        _add(passes, asked & tables[0].unscored, asked & tables[1].unscored)
        _add(abstains, kept[0].uncertain, kept[1].uncertain)
    return Pair(
        first,
        second,
        compare_orders(scores[first], scores[second]),
        cohen_kappa(a, b, clusters=images),
        *passes,
        *abstains,
    )


def _add(counts: list[int], first: np.ndarray, second: np.ndarray) -> None:
    """Adds to the counts of things that only the first, only the second, and both do."""
    for k, mask in enumerate((first & ~second, second & ~first, first & second)):
        counts[k] += int(mask.sum())


def _asked(run: Run, table: ProbeTable) -> np.ndarray:
    """Which probes of a run's table the judge was asked about."""
    found = [
        run.verdicts.get((item.id, repeat, probe.id))
        for item in run.items
        for repeat in range(run.spec.repeats)
        for probe in item.probes
    ]
    return np.array([_was_asked(verdict) for verdict in found], bool) & ~table.skipped


def _was_asked(verdict: Verdict | None) -> bool:
    if verdict is None:
        return False
    reason = verdict.reason or ""
    return reason not in WITHOUT_JUDGE and not reason.startswith("model_")


def _abstentions(
    table: Mapping[str, Mapping[str, Run]], models: Sequence[str]
) -> tuple[str, tuple[Abstention, ...]]:
    """Each judge's abstentions over all probes, and by the protocol's first dimension."""
    some = next(iter(table.values()))[models[0]]
    dimension = some.protocol.dimensions[0]
    found = []
    for judge, by_model in table.items():
        counts: dict[str, list[int]] = {}
        for model in models:
            run = by_model[model]
            probes = run.table()
            asked = _asked(run, probes)
            masks = {"all": np.ones(probes.n, bool), **group_masks(probes, run.items, dimension)}
            for label, mask in masks.items():
                entry = counts.setdefault(label, [0, 0, 0])
                part = probes.where(mask & asked)
                entry[0] += part.n
                entry[1] += int(part.uncertain.sum())
                entry[2] += int(part.unscored.sum())
        found += [
            Abstention(judge, label, n, abstains / n, passes / n)
            for label, (n, abstains, passes) in counts.items()
            if n
        ]
    return dimension, tuple(found)
