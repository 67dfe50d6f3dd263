"""Published scores to stand beside one's own, each with the judge that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any

import msgspec

from snellen.errors import UsageError
from snellen.protocols import metric_named

FILE = "published_scores.json"
Scores = Mapping[str, Any]
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


@dataclass(frozen=True, slots=True)
class Published:
    """A model's published metrics: rates are fractions of 1, densities per mille."""

    model: str
    judge: str
    metrics: Mapping[str, float]


@cache
def _scores() -> Scores:
    data = (resources.files("snellen") / "data" / FILE).read_bytes()
    scores: Scores = msgspec.json.decode(data)
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
    rates = {n for n in METRICS[benchmark] if (metric := metric_named(n)) and metric.scale == 100}
    found = []
    for row in _scores()[benchmark]["models"]:
        renamed = {names.get(name, name): value for name, value in row.items()}
        metrics = {
            name: renamed[name] / 100 if name in rates else float(renamed[name])
            for name in METRICS[benchmark]
            if isinstance(renamed.get(name), int | float)
        }
        found.append(Published(row["model"], JUDGES[benchmark], metrics))
    return tuple(found)


def source_of(benchmark: str) -> str:
    """Where the published scores of a benchmark stand."""
    return str(_scores()[benchmark]["source"])


@dataclass(frozen=True, slots=True)
class Check:
    """A rule between printed numbers of one model: what it gives, and what the paper prints.

    Both are in the paper's unit. `allowed` is how far apart rounding may put them.
    """

    rule: str
    model: str
    printed: float
    computed: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether both are the same but for rounding."""
        return abs(self.printed - self.computed) <= self.allowed + 1e-9


def published_checks(benchmark: str) -> tuple[Check, ...]:
    """The consistency checks of a benchmark's published rows, rule by rule.

    >>> all(check.holds for check in published_checks("capprobe"))
    True

    Raises:
        UsageError: nothing is published about this benchmark.
    """
    published_models(benchmark)
    return tuple(CHECKS[benchmark](_scores()[benchmark]))


def _caption_checks(scores: Scores) -> Iterator[Check]:
    """Two identities of the formulas; a product of two rounded rates is off by up to 0.02."""
    for row in scores["models"]:
        product = row["effective_acc"] * row["coverage"] / 100
        yield Check(
            "overall = effective x coverage", row["model"], row["overall_acc"], product, 0.02
        )
    for row in scores["models"]:
        rest = 100 - row["coverage"]
        yield Check("uncertain = 100 - coverage", row["model"], row["uncertain_ratio"], rest, 0.01)


def _gate_checks(scores: Scores) -> Iterator[Check]:
    """The overall score from the domains, and the reliability gap from both kinds of statements.

    The score does not follow from the printed columns: it is up to 0.1 points above their mean,
    where two decimals allow 0.01.
    """
    yield from _overall_checks(scores, sizes="images_per_domain", allowed=0.01)
    n_must, n_easy = scores["n_must_right"], scores["n_easy_wrong"]
    for row in scores["models"]:
        printed = scores["reliability_gap_printed"].get(row["model"])
        if printed is not None:
            held = row["must_right_item"] * n_must + row["easy_wrong_item"] * n_easy
            gap = row["gate_pass"] - held / scores["n_rubrics"]
            yield Check("gap = gate pass - atomic", row["model"], printed, gap, 0.1)


def _overall_checks(scores: Scores, *, sizes: str, allowed: float) -> Iterator[Check]:
    known = scores[sizes]
    for row in scores["models"]:
        mean = sum(row[label] * n for label, n in known.items()) / sum(known.values())
        yield Check("overall = mean of the columns", row["model"], row["overall"], mean, allowed)


CHECKS: Mapping[str, Callable[[Scores], Iterator[Check]]] = {
    "capprobe": _caption_checks,
    # All are printed with one decimal.
    "perception_bench": partial(_overall_checks, sizes="subset_sizes", allowed=0.1),
    "perception_rubrics": _gate_checks,
}
