"""A table as data, and how numbers are written in its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snellen.runs.spec import Value

TITLES: Mapping[str, str] = {
    "overall_acc": "Overall %",
    "effective_acc": "Effective %",
    "uncertain_ratio": "Uncertain %",
    "coverage": "Coverage %",
    "tokens_per_image": "Tokens/image",
    "mean_density": "Mean dens. ‰",
    "global_density": "Global dens. ‰",
    "density_cv": "Density CV",
    "score": "Score %",
    "gate_pass": "Gate pass %",
    "atomic_acc": "Atomic %",
    "must_right_acc": "Must-Right %",
    "easy_wrong_acc": "Easy-Wrong %",
    "easy_wrong_avg": "E-W avg (no gate) %",
    "reliability_gap": "Gap, points",
    "accuracy": "Accuracy %",
    "macro_accuracy": "Macro %",
    "cannot_answer_rate": "Cannot answer %",
}


PERCENT = frozenset(
    {
        "overall_acc", "effective_acc", "uncertain_ratio", "coverage", "score", "gate_pass",
        "atomic_acc", "must_right_acc", "easy_wrong_acc", "easy_wrong_avg", "reliability_gap",
        "accuracy", "macro_accuracy", "cannot_answer_rate",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the first column is text, the others are numbers written out.

    `marks` has the shape of `rows`, or is empty: 1, 2 and 3 are the best three of a column, else 0.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    marks: tuple[tuple[int, ...], ...] = ()


def number(name: str, value: float | None, digits: int = 1) -> str:
    """A metric's number as people read it: rates in per cent, `-` where there is none.

    >>> number("overall_acc", 0.6872)
    '68.7'
    >>> number("density_cv", 0.2724)
    '0.272'
    """
    if value is None:
        return "-"
    if name in PERCENT:
        return f"{100 * value:.{digits}f}"
    if name == "tokens_per_image":
        return f"{value:.0f}"
    return f"{value:.{3 if name == 'density_cv' else 2}f}"


def with_interval(name: str, value: Value | None) -> str:
    """A number with its interval behind it: `68.7 [66.0, 71.2]`."""
    if value is None or value.value is None:
        return "-"
    text = number(name, value.value)
    if value.ci95 is None:
        return text
    return f"{text} [{number(name, value.ci95[0])}, {number(name, value.ci95[1])}]"


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "item"), counted(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def title_of(name: str) -> str:
    """A metric's column title."""
    return TITLES.get(name, name)
