"""A table as data, and how numbers are written in its cells."""

from __future__ import annotations

from dataclasses import dataclass

from snellen.protocols import metric_named
from snellen.runs.spec import Value


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


def number(name: str, value: float | None, digits: int | None = None) -> str:
    """A metric's number as people read it: rates in per cent, `-` where there is none.

    >>> number("overall_acc", 0.6872)
    '68.7'
    >>> number("density_cv", 0.2724)
    '0.272'
    """
    if value is None:
        return "-"
    metric = metric_named(name)
    if metric is None:
        return f"{value:.2f}"
    # A rate may be wanted with other digits than those of its metric.
    wanted = digits if digits is not None and metric.scale == 100 else metric.digits
    return f"{metric.scale * value:.{wanted}f}"


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
    """A metric's column title; a name that no protocol knows stands for itself."""
    metric = metric_named(name)
    return name if metric is None else metric.heading


def short_title(name: str) -> str:
    """A metric's title without its unit."""
    metric = metric_named(name)
    return name if metric is None else metric.title


def is_percent(name: str) -> bool:
    """Whether a metric is a fraction of 1 that is printed as per cent or points."""
    metric = metric_named(name)
    return metric is not None and metric.scale == 100
