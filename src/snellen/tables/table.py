"""A table as data: columns that know their unit, and cells that hold values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from snellen.metrics import UNIT_SUFFIXES, Unit
from snellen.protocols import metric_named
from snellen.runs.spec import Value

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Format:
    """How a number is written.

    `unit` is that of a metric: `%` and `points` (a difference of rates) are fractions of 1 and are
    written times 100. `digits` are the decimals, None for as few as the number needs; `printed`
    those in Markdown and LaTeX, None for the same. An int is written whole. A number below `least`
    is written as such: `<0.001`.
    """

    unit: Unit = ""
    digits: int | None = None
    printed: int | None = None
    signed: bool = False
    least: float = 0.0


COUNT: Final = Format()
RATE: Final = Format("%", 1)
POINTS: Final = Format("points", 1)
P_VALUE: Final = Format(digits=3, least=0.001)
# Papers print rates with two decimals, but for those of PerceptionBench.
PRINTED: Final[Mapping[str, int]] = {"%": 2, "points": 2}
ABSTENTION: Final = frozenset({"uncertain_ratio", "cannot_answer_rate"})
ONE_DECIMAL: Final = frozenset({"accuracy", "macro_accuracy"})


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many, such as scored probes of all probes."""

    part: float
    whole: float
    remark: str = ""

    @property
    def value(self) -> float | None:
        """The part as a fraction of 1; None of nothing."""
        return self.part / self.whole if self.whole else None


@dataclass(frozen=True, slots=True)
class Number:
    """A value with its 95% interval and the counts behind it; None where there is no value.

    `bounds` are the lowest and highest value that unscored probes leave open. `format` is the
    cell's own where rows, not columns, are metrics.
    """

    value: float | None
    interval: Ends | None = None
    share: Share | None = None
    format: Format | None = None
    remark: str = ""
    bounds: Ends | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A name; `key` is the name that programs read, `fidelity` that of the judge of its numbers."""

    text: str
    key: str = ""
    fidelity: str = ""


Cell = Number | Share | Label | float | int | str | None
Rows = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `title` is without the unit; `name` is the name that programs read, if another.

    `better` is +1 or -1 where the higher or the lower number is better, else 0. `fidelity` is that
    of the judge behind the column's numbers.
    """

    title: str
    format: Format = COUNT
    name: str = ""
    better: int = 0
    fidelity: str = ""

    @property
    def heading(self) -> str:
        """The title with the unit: `Overall %`."""
        return self.title + UNIT_SUFFIXES.get(self.format.unit, "")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the first column names the rows, the others hold values.

    `marked` says that the best three of each column are marked. `fidelity` is that of the judge
    behind all numbers of the table.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Rows
    notes: tuple[str, ...] = ()
    marked: bool = False
    fidelity: str = ""

    @property
    def headings(self) -> tuple[str, ...]:
        """The titles of the columns with their units."""
        return tuple(column.heading for column in self.columns)

    def column(self, heading: str) -> tuple[Cell, ...]:
        """The cells of the column with that heading."""
        at = self.headings.index(heading)
        return tuple(row[at] for row in self.rows)


def plain(*titles: str) -> tuple[Column, ...]:
    """Columns of texts and counts."""
    return tuple(map(Column, titles))


def known(value: float | None) -> float | None:
    """A number, None where it is NaN."""
    return None if value is None or math.isnan(value) else value


def places(table: Table) -> list[list[int]]:
    """The place of each cell among the best three of its column, else 0.

    Equal values share a place. No more places are given than there are other rows to be better
    than, so that two rows have one mark a column.

    Source: CapProbe, table 3.
    """
    found = [[0] * len(table.columns) for _ in table.rows]
    for k, column in enumerate(table.columns if table.marked else ()):
        values = [number_in(row[k]) for row in table.rows]
        best = sorted({v for v in values if v is not None}, reverse=column.better > 0)[:3]
        for row, value in zip(found, values, strict=True):
            if column.better and value in best[: len(values) - 1]:
                row[k] = best.index(value) + 1
    return found


def number_in(cell: Cell) -> float | None:
    """The number that a cell holds; None where it holds none."""
    value = cell.value if isinstance(cell, Number | Share) else cell
    return known(value) if isinstance(value, int | float) else None


def measured(
    value: Value | None, form: Format | None = None, *, share: Share | None = None
) -> Number:
    """A metric's headline as a cell: the strict value with its interval.

    Where unscored probes leave the value open: the value over scored probes, with its bounds.
    """
    if value is None:
        return Number(None, share=share, format=form)
    readings = [r for r in (value.value, value.scored, value.lower, value.upper) if r is not None]
    if not readings or min(readings) == max(readings):
        return Number(value.value, value.ci95, share, form)
    ends = [r for r in (value.value, value.lower, value.upper) if r is not None]
    # A metric without an upper reading has no range.
    bounds = (min(ends), max(ends)) if value.upper is not None else None
    return Number(value.scored, value.scored_ci95, share, form, bounds=bounds)


def with_range(metrics: Mapping[str, Value]) -> dict[str, Value]:
    """The metrics, those of abstention with the reading in which unscored probes abstain.

    Coverage has the reading in which they are not answered; both add up to 1.
    """
    coverage = metrics.get("coverage")
    if coverage is None or coverage.lower is None:
        return dict(metrics)
    most = 1.0 - coverage.lower
    return {
        name: replace(value, lower=most) if name in ABSTENTION else value
        for name, value in metrics.items()
    }


def title_of(name: str) -> str:
    """A metric's title without its unit; the name of a metric that no protocol has."""
    metric = metric_named(name)
    return name if metric is None else metric.title


def format_of(name: str) -> Format:
    """How a metric's number is written; a metric that no protocol has with three decimals."""
    metric = metric_named(name)
    if metric is None:
        return Format(digits=3)
    return Format(
        metric.unit, metric.digits, None if name in ONE_DECIMAL else PRINTED.get(metric.unit)
    )


def metric_column(name: str) -> Column:
    """The column of a metric."""
    metric = metric_named(name)
    return Column(title_of(name), format_of(name), name, 0 if metric is None else metric.better)


def metric_label(name: str) -> Label:
    """A metric's title with its unit, as the name of a row."""
    return Label(metric_column(name).heading, name)


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "item"), counted(1200, "item")
    ('1 item', '1,200 items')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
