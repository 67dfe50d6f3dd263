"""Published scores to stand beside one's own, each with the judge that it depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from snellen.errors import UsageError
from snellen.runs.folder import Run
from snellen.tables.runs import summary_of
from snellen.tables.table import Table, is_percent, number, title_of

FILE = "published_scores.json"
# What the papers' columns are called here, where they are called otherwise.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "capprobe": {},
    "perception_bench": {"overall": "accuracy"},
    "perception_rubrics": {
        "overall": "score",
        "must_right_item": "must_right_acc",
        "easy_wrong_item": "easy_wrong_acc",
        "gate_pass": "gate_pass",
        "easy_wrong_avg": "easy_wrong_avg",
    },
}
JUDGES: Mapping[str, str] = {
    "capprobe": "Qwen3-32B",
    "perception_bench": "gpt-oss-120b",
    "perception_rubrics": "gpt-oss-120b",
}
METRICS: Mapping[str, tuple[str, ...]] = {
    "capprobe": (
        "overall_acc", "effective_acc", "uncertain_ratio", "coverage", "tokens_per_image",
        "mean_density", "global_density", "density_cv",
    ),
    "perception_bench": ("accuracy",),
    "perception_rubrics": (
        "score", "gate_pass", "must_right_acc", "easy_wrong_acc", "easy_wrong_avg",
    ),
}  # fmt: skip
# Decimals of a printed per cent, as the papers print them.
DIGITS: Mapping[str, int] = {"capprobe": 2, "perception_bench": 1, "perception_rubrics": 2}
WARNING = (
    "scores depend on the judge, its settings and the parser: published rows are for orientation, "
    "and only rows under the same judge compare"
)


@dataclass(frozen=True, slots=True)
class Published:
    """A model's published metrics: rates are fractions of 1, densities per mille."""

    model: str
    judge: str
    metrics: Mapping[str, float]


@cache
def _scores() -> Mapping[str, Any]:
    data = (resources.files("snellen") / "data" / FILE).read_bytes()
    scores: Mapping[str, Any] = msgspec.json.decode(data)
    return scores


def published_models(benchmark: str) -> tuple[Published, ...]:
    """The published rows of a benchmark, in the order of its paper.

    >>> round(published_models("capprobe")[0].metrics["overall_acc"], 4)
    0.3441

    Raises:
        UsageError: there are none.
    """
    names = COLUMNS.get(benchmark)
    if names is None:
        raise UsageError(
            f"no published scores of {benchmark} are known here",
            hint=f"there are some of {', '.join(COLUMNS)}",
        )
    return tuple(
        Published(row["model"], JUDGES[benchmark], _metrics(row, benchmark))
        for row in _scores()[benchmark]["models"]
    )


def _metrics(row: Mapping[str, Any], benchmark: str) -> dict[str, float]:
    renamed = {COLUMNS[benchmark].get(name, name): value for name, value in row.items()}
    wanted = (name for name in METRICS[benchmark] if isinstance(renamed.get(name), int | float))
    return {
        name: renamed[name] / 100 if is_percent(name) else float(renamed[name]) for name in wanted
    }


def published_table(runs: Sequence[Run]) -> Table:
    """One's own runs of one benchmark among the published ones, the best headline first.

    Raises:
        UsageError: nothing is published about this benchmark.
    """
    benchmark = runs[0].spec.benchmark
    names = METRICS.get(benchmark, ())
    rows = [(row.model, row.judge, dict(row.metrics)) for row in published_models(benchmark)]
    for run in runs:
        found = summary_of(run).metrics
        own = {n: v for n in names if n in found and (v := found[n].value) is not None}
        rows.append((f"{run.name} (yours)", run.spec.judge.name, own))
    rows.sort(key=lambda row: -row[2].get(names[0], float("-inf")))
    return Table(
        f"{benchmark}: published rows and yours",
        ("Model", *(title_of(name) for name in names), "Judge"),
        tuple(
            (m, *(number(n, values.get(n), DIGITS[benchmark]) for n in names), judge)
            for m, judge, values in rows
        ),
        (WARNING, f"published: {_scores()[benchmark]['source']}"),
    )
