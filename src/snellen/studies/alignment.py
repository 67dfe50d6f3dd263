"""Whether a benchmark orders models as people do: correlations with outside ratings."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from snellen.comparisons.comparable import NamedSpec, unlike
from snellen.errors import DataError, UsageError
from snellen.judges.reliability import check_same_items
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.stats.agreement import (
    Kind,
    fisher_interval,
    kendall_tau_b,
    pearson,
    permutation_p,
    spearman,
)
from snellen.stats.distributions import normal_quantile
from snellen.studies.overlap import MEASURES, Pairs

MODEL_NAMES = ("model", "name", "id")
RATING_NAMES = ("rating", "elo", "score", "arena")
SCALAR = "scalar_judge"
FEWEST = 3
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation, its 95% interval and its two-sided permutation p value.

    `interval` is None where there is none: too few models, or a correlation of exactly 1, at which
    the transformation that it rests on has no end. NaN where nothing varies.
    """

    value: float
    interval: tuple[float, float] | None
    p: float


@dataclass(frozen=True, slots=True)
class AlignedMetric:
    """One metric against the ratings, over the `n` models that have both."""

    metric: str
    n: int
    pearson: Correlation
    spearman: Correlation
    kendall: Correlation


@dataclass(frozen=True, slots=True)
class Alignment:
    """All metrics of some runs against outside ratings. `scores` maps metric and model."""

    benchmark: str
    ratings: Scores
    scores: Mapping[str, Scores]
    rows: tuple[AlignedMetric, ...]
    notes: tuple[str, ...] = ()


def correlate(x: Sequence[float], y: Sequence[float], kind: Kind = "pearson") -> Correlation:
    """A correlation with its interval and its permutation p value, exact for up to 8 pairs.

    Intervals are Fisher's, with the variances of Bonett and Wright for Spearman's and of Fieller
    for Kendall's coefficient.

    >>> found = correlate([60.81, 51.77, 45.65, 41.88, 12.59], [1283, 1264, 1237, 1190, 1162])
    >>> round(found.value, 3), [round(end, 2) for end in found.interval]
    (0.916, [0.17, 0.99])
    """
    measure = {"pearson": pearson, "spearman": spearman, "kendall": kendall_tau_b}[kind]
    value, n = measure(x, y)
    interval = None
    if abs(value) < 1.0 and kind == "pearson":
        interval = fisher_interval(value, n)
    elif abs(value) < 1.0 and n >= (4 if kind == "spearman" else 5):
        variance = (1.0 + value**2 / 2.0) / (n - 3) if kind == "spearman" else 0.437 / (n - 4)
        half = normal_quantile(0.975) * math.sqrt(variance)
        interval = math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)
    return Correlation(value, interval, permutation_p(x, y, kind=kind))


def align_scores(metric: str, scores: Scores, ratings: Scores) -> AlignedMetric:
    """One metric's scores by model against the ratings of the same models.

    Raises:
        UsageError: fewer than three models have both.
    """
    models = [m for m in scores if m in ratings and not math.isnan(scores[m])]
    if len(models) < FEWEST:
        raise UsageError(
            f"{len(models)} models have both {metric} and a rating, {FEWEST} are needed",
            hint="names are compared without case; check the names in the ratings file",
        )
    x, y = [scores[m] for m in models], [ratings[m] for m in models]
    return AlignedMetric(
        metric,
        len(models),
        correlate(x, y, "pearson"),
        correlate(x, y, "spearman"),
        correlate(x, y, "kendall"),
    )


def align_runs(
    runs: Sequence[Run],
    external: Scores,
    *,
    metrics: Sequence[str] = (),
    more: Mapping[str, Scores] | None = None,
) -> Alignment:
    """Every metric of one benchmark's runs, and `more` scores by model, against ratings.

    `metrics` chooses some; a metric that does not vary or that too few models have is left out.

    Raises:
        UsageError: runs that do not belong together, or fewer than three rated models.
    """
    check_runs(runs)
    matched = match_names([run.name for run in runs], external)
    summaries = {run.name: summary_of(run).metrics for run in runs}
    scores: dict[str, Scores] = {
        name: {
            run: math.nan if name not in own or (value := own[name].value) is None else value
            for run, own in summaries.items()
        }
        for name in summaries[runs[0].name]
    }
    scores |= more or {}
    for name in metrics:
        if name not in scores:
            raise UsageError(f"no metric {name}", hint=f"there are: {', '.join(scores)}")
    chosen = list(metrics or scores)
    headline = runs[0].protocol.headline
    if len(matched) < FEWEST:
        unmatched = "; ".join(_unmatched(runs, external, matched))
        hint = f"names must be equal but for case: {unmatched}" if unmatched else "give more runs"
        raise UsageError(
            f"{len(matched)} of the runs' models have a rating, {FEWEST} are needed",
            hint=hint,
        )
    align_scores(headline, scores[headline], matched)
    rows = []
    for name in chosen:
        known = sum(not math.isnan(v) for m, v in scores[name].items() if m in matched)
        if known >= FEWEST:
            rows.append(align_scores(name, scores[name], matched))
    return Alignment(
        runs[0].spec.benchmark,
        matched,
        {name: scores[name] for name in chosen},
        tuple(rows),
        tuple(_notes(runs, external, matched)),
    )


def check_runs(runs: Sequence[Run]) -> None:
    """Refuses runs whose scores are not on one scale, and two runs of one model.

    Raises:
        UsageError: several benchmarks or judges, or one model twice.
        ComparisonError: the runs are not over the same items.
    """
    benchmarks = dict.fromkeys(run.spec.benchmark for run in runs)
    if len(benchmarks) > 1:
        raise UsageError(
            f"runs of several benchmarks: {', '.join(benchmarks)}", hint="give runs of one"
        )
    judges = dict.fromkeys(run.spec.judge.name for run in runs)
    if len(judges) > 1:
        raise UsageError(
            f"runs under several judges: {', '.join(judges)}",
            hint="give runs of one; `snellen judges` compares judges",
        )
    seen: dict[str, Run] = {}
    for run in runs:
        check_same_items(runs[0], run)
        other = seen.get(run.name)
        if other is not None:
            raise UsageError(
                f"{other.folder} and {run.folder} are both of {run.name}",
                hint="give one run a model",
            )
        seen[run.name] = run


def match_names(models: Iterable[str], external: Scores) -> dict[str, float]:
    """The ratings by the runs' model names, which are compared without case."""
    folded = {name.casefold().strip(): value for name, value in external.items()}
    return {m: folded[m.casefold()] for m in models if m.casefold() in folded}


def _unmatched(runs: Sequence[Run], external: Scores, matched: Scores) -> Iterable[str]:
    lone = [run.name for run in runs if run.name not in matched]
    if lone:
        yield f"without a rating, left out: {', '.join(lone)}"
    used = {m.casefold() for m in matched}
    unused = [name for name in external if name.casefold().strip() not in used]
    if unused:
        yield f"rated, but without a run: {', '.join(unused)}"


def _notes(runs: Sequence[Run], external: Scores, matched: Scores) -> Iterable[str]:
    yield from _unmatched(runs, external, matched)
    yield from unlike([NamedSpec(run.name, run.spec) for run in runs if run.name in matched])
    if len(set(matched.values())) == 1:
        yield "all ratings are equal: nothing can go with them"
    if any(run.spec.judge.fidelity == "low" for run in runs):
        yield "low fidelity: the embedded judge's scores are not evidence about people's ratings"


def read_ratings(path: str | Path) -> dict[str, float]:
    """Ratings by model: a CSV with or without a heading, JSON `{name: rating}`, or JSON rows.

    Raises:
        DataError: the file cannot be read, names a model twice, or has a rating that is no number.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", file=file, hint="give a UTF-8 file") from error
    rows = _json_rows(text, file) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text, file)
    ratings: dict[str, float] = {}
    seen: set[str] = set()
    for number, (name, value) in enumerate(rows, 1):
        if name.casefold().strip() in seen:
            raise DataError(
                f"model {name!r} stands twice", file=file, row=number, hint="give each model once"
            )
        seen.add(name.casefold().strip())
        try:
            rating = math.nan if isinstance(value, bool) else float(str(value))
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise DataError(f"the rating {value!r} is no number", file=file, row=number, hint=_HINT)
        ratings[name] = rating
    return ratings


def _json_rows(text: str, file: Path) -> list[tuple[str, object]]:
    try:
        # Pairs, since of two equal keys a dictionary would keep the last without a word.
        found = json.loads(text, object_pairs_hook=list)
    except ValueError as error:
        raise DataError(f"is no JSON: {error}", file=file, hint=_HINT) from error
    if text.lstrip().startswith("{"):
        return list(found)
    rows: list[tuple[str, object]] = []
    for number, row in enumerate(found, 1):
        is_object = isinstance(row, list) and all(isinstance(pair, tuple) for pair in row)
        fields = {str(k).casefold(): v for k, v in row} if is_object else {}
        name, rating = (
            next((fields[name] for name in names if name in fields), None)
            for names in (MODEL_NAMES, RATING_NAMES)
        )
        if name is None or rating is None:
            raise DataError("lacks a model or a rating", file=file, row=number, hint=_HINT)
        rows.append((str(name), rating))
    return rows


_HINT = "rows look like {model, rating}, a table like `model,rating`"


def _csv_rows(text: str, file: Path) -> list[tuple[str, object]]:
    first = text.lstrip().split("\n", 1)[0]
    mark = max(",;\t", key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    rows = [[cell.strip() for cell in row] for row in lines if any(row)]
    if not rows:
        raise DataError("the file is empty", file=file, hint=_HINT)
    head = [cell.casefold() for cell in rows[0]]
    model = next((head.index(name) for name in MODEL_NAMES if name in head), None)
    rating = next((head.index(name) for name in RATING_NAMES if name in head), None)
    if model is not None and rating is not None:
        rows = rows[1:]
    else:
        model, rating = 0, 1
    for number, row in enumerate(rows, 1):
        if len(row) <= max(model, rating):
            raise DataError(f"has {len(row)} columns", file=file, row=number, hint=_HINT)
    return [(row[model], row[rating]) for row in rows]


def overlap_scores(
    runs: Sequence[Run], measures: Sequence[str] = tuple(MEASURES)
) -> dict[str, Scores]:
    """Overlap and similarity of replies with golden captions, by measure and model.

    A blank reply counts as an empty text; a failed one, and an item without a golden caption, is
    left out.

    Raises:
        MissingExtraError: a measure's library is not installed.
    """
    pairs = {run.name: golden_pairs(run) for run in runs}
    return {
        name: {m: MEASURES[name](found) if found else math.nan for m, found in pairs.items()}
        for name in measures
    }


def golden_pairs(run: Run) -> Pairs:
    """Replies and golden captions of a run, in the order of the items."""
    return [
        (row.reply or "", item.reference)
        for item in run.items
        for repeat in range(run.spec.repeats)
        if item.reference
        and (row := run.replies.get((item.id, repeat))) is not None
        and not row.failure
    ]
