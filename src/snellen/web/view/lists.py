"""What an address asks of a list, and the SQL that answers it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode

from snellen.web.view.index import OUTCOMES, shortened

PAGE: Final = 50
FAILURES: Final = ("wrong", "abstained", "unscored")
HARDNESS: Final[Mapping[str, str]] = {
    "none": "d.n_right = 0",
    "some": "d.n_right > 0 AND d.n_right < d.n_scored",
    "all": "d.n_right = d.n_scored AND d.n_scored > 0",
}
_SHARE = "CAST(d.n_right AS REAL) / NULLIF(d.n_scored, 0)"
PROBE_SORTS: Final[Mapping[str, str]] = {
    "order": "p.n",
    "verdict": "p.outcome",
    "item": "p.item",
    "category": "p.category",
    "region": "p.region",
    "difficulty": _SHARE,
    "tokens": "p.tokens",
    "seconds": "p.seconds",
}
ITEM_SORTS: Final[Mapping[str, str]] = {
    "order": "i.n",
    "item": "i.item",
    "right": "CAST(i.right AS REAL) / NULLIF(i.probes - i.skipped, 0)",
    "wrong": "i.wrong",
    "abstained": "i.abstained",
    "unscored": "i.unscored",
    "tokens": "i.tokens",
    "seconds": "i.seconds",
    "status": "i.status",
}
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Address:
    """A path with its query, from which the addresses of links are made."""

    path: str
    pairs: tuple[tuple[str, str], ...] = ()

    def first(self, name: str, default: str = "") -> str:
        """The first value of a name."""
        return next((value for key, value in self.pairs if key == name), default)

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a name that are not empty."""
        return tuple(value for key, value in self.pairs if key == name and value)

    def but(self, path: str = "", **changes: str | int | None) -> str:
        """The address with other values; None takes a name away. A new filter starts at page 1."""
        left_out = {*changes, "page"} if changes else set()
        pairs = [pair for pair in self.pairs if pair[0] not in left_out and pair[1]]
        pairs += [
            (name, shortened(str(value))) for name, value in changes.items() if value is not None
        ]
        return _joined(path or self.path, pairs)

    def toggled(self, name: str, value: str) -> str:
        """The address with a value added, or taken away where it is there."""
        pairs = [pair for pair in self.pairs if pair[0] != "page" and pair[1]]
        same = (name, value)
        pairs = [p for p in pairs if p != same] if same in pairs else [*pairs, same]
        return _joined(self.path, pairs)

    def sorted_by(self, column: str, *, falls: bool = False) -> str:
        """The address sorted by a column; the other way round where it is so already."""
        is_down = self.first("down") == "1"
        falls = not is_down if self.first("sort") == column else falls
        return self.but(sort=column, down="1" if falls else None)

    def order_of(self, column: str) -> str | None:
        """`ascending` or `descending` where the address sorts by a column."""
        if self.first("sort") != column:
            return None
        return "descending" if self.first("down") == "1" else "ascending"


def _joined(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    query = urlencode(list(pairs))
    return path + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of a list. `labels` holds labels by dimension; any of a dimension's is enough."""

    outcomes: tuple[str, ...] = ()
    reason: str = ""
    region: str = ""
    words: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hardness: str = ""

    @classmethod
    def of(cls, address: Address, dimensions: Iterable[str], *, hard: bool) -> Wanted:
        """What an address asks for; unknown words in it ask for nothing.

        `hard`: the difficulty over the runs is known.
        """
        found = address.all("verdict")
        outcomes = [name for name in OUTCOMES if name in found]
        if "failed" in found:
            outcomes += [name for name in FAILURES if name not in outcomes]
        hardness = address.first("right_in")
        return cls(
            outcomes=tuple(outcomes),
            reason=address.first("reason"),
            region=address.first("region"),
            words=tuple(address.first("q").casefold().split()[:8]),
            labels={name: address.all(name) for name in dimensions if address.all(name)},
            hardness=hardness if hard and hardness in HARDNESS else "",
        )

    def clauses(self, *, of_items: bool = False) -> tuple[str, list[str]]:
        """The condition on probes `p` (or on items `i`), and the values of its places."""
        conditions: list[str] = []
        values: list[str] = []
        if self.outcomes:
            places = ", ".join("?" * len(self.outcomes))
            conditions.append(f"p.outcome IN ({places})")
            values += self.outcomes
        for column, value in (("p.reason", self.reason), ("p.region", self.region)):
            if value:
                conditions.append(f"{column} = ?")
                values.append(value)
        for dimension, labels in self.labels.items():
            places = ", ".join("?" * len(labels))
            conditions.append(
                "p.n IN (SELECT c.n FROM carried c JOIN labels l USING (label_id) "
                f"WHERE l.dimension = ? AND l.label IN ({places}))"
            )
            values += [dimension, *labels]
        if self.hardness:
            conditions.append(HARDNESS[self.hardness])
        if of_items and conditions:
            join = "LEFT JOIN hard.difficulty d USING (item, probe)" if self.hardness else ""
            inner = " AND ".join(conditions)
            conditions = [f"i.n IN (SELECT p.unit FROM probes p {join} WHERE {inner})"]
        for word in self.words:
            conditions.append(f"instr({'i' if of_items else 'w'}.words, ?) > 0")
            values.append(word)
        return " AND ".join(conditions) or "1", values


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list. `counts` are those of each outcome under the other filters."""

    rows: list[sqlite3.Row]
    total: int
    page: int
    pages: int
    counts: Mapping[str, int] = field(default_factory=dict)


def probes_page(
    connection: sqlite3.Connection, wanted: Wanted, address: Address, *, hard: bool
) -> Listed:
    """A page of the probes of a run. `hard`: the difficulty is attached."""
    condition, values = wanted.clauses()
    joined = _joins(wanted)
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    # The counts beside the verdicts are those that another choice of verdict would give.
    other_condition, other_values = replace(wanted, outcomes=()).clauses()
    found = connection.execute(
        f"SELECT p.outcome, count(*) FROM probes p {joined} WHERE {other_condition} "
        "GROUP BY p.outcome",
        other_values,
    )
    counts |= dict(found.fetchall())
    total = sum(n for name, n in counts.items() if not wanted.outcomes or name in wanted.outcomes)
    number, pages = page_of(address, total)
    order = _order(address, PROBE_SORTS, "p.n", hard=hard)
    shown = "d.n_right, d.n_scored" if hard else "NULL AS n_right, NULL AS n_scored"
    difficulty = "LEFT JOIN hard.difficulty d USING (item, probe)" if hard else ""
    words = "JOIN words w ON w.n = p.n" if wanted.words else ""
    rows = connection.execute(
        f"SELECT p.*, {shown} FROM probes p {words} {difficulty} WHERE {condition} "
        f"ORDER BY {order} LIMIT ? OFFSET ?",
        [*values, PAGE, PAGE * (number - 1)],
    ).fetchall()
    return Listed(rows, total, number, pages, counts)


def items_page(connection: sqlite3.Connection, wanted: Wanted, address: Address) -> Listed:
    """A page of the items of a run: those that have a probe which is asked for."""
    condition, values = wanted.clauses(of_items=True)
    total = connection.execute(f"SELECT count(*) FROM items i WHERE {condition}", values).fetchone()
    number, pages = page_of(address, total[0])
    order = _order(address, ITEM_SORTS, "i.n", hard=True)
    rows = connection.execute(
        f"SELECT i.* FROM items i WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?",
        [*values, PAGE, PAGE * (number - 1)],
    ).fetchall()
    return Listed(rows, total[0], number, pages)


def neighbour(
    connection: sqlite3.Connection, wanted: Wanted, n: int, *, forward: bool
) -> sqlite3.Row | None:
    """The next probe, or the one before, that is asked for; failures where no verdict is named."""
    if not wanted.outcomes:
        wanted = replace(wanted, outcomes=FAILURES)
    condition, values = wanted.clauses()
    sign, order = (">", "ASC") if forward else ("<", "DESC")
    found: sqlite3.Row | None = connection.execute(
        f"SELECT p.item, p.repeat, p.probe FROM probes p {_joins(wanted)} "
        f"WHERE {condition} AND p.n {sign} ? ORDER BY p.n {order} LIMIT 1",
        [*values, n],
    ).fetchone()
    return found


def _joins(wanted: Wanted) -> str:
    joined = "JOIN words w ON w.n = p.n " if wanted.words else ""
    if wanted.hardness:
        joined += "LEFT JOIN hard.difficulty d USING (item, probe)"
    return joined


def _order(address: Address, sorts: Mapping[str, str], last: str, *, hard: bool) -> str:
    name = address.first("sort")
    column = sorts.get(name) if hard or name != "difficulty" else None
    if column is None:
        return last
    direction = "DESC" if address.first("down") == "1" else "ASC"
    return f"{column} IS NULL, {column} {direction}, {last}"


def page_of(address: Address, total: int) -> tuple[int, int]:
    """The page that is asked for, from 1, within those that there are; and how many there are."""
    pages = max(1, -(-total // PAGE))
    asked = address.first("page")
    number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 9 else 1
    return min(max(1, number), pages), pages


def facets(connection: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Each dimension with its labels and how many probes carry them."""
    found: dict[str, list[tuple[str, int]]] = {}
    rows = connection.execute("SELECT dimension, label, n_probes FROM labels ORDER BY label_id")
    for dimension, label, n in rows:
        found.setdefault(dimension, []).append((label, n))
    yield from found.items()


def reasons(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """The reasons of verdicts, the most frequent first."""
    rows = connection.execute(
        "SELECT reason, count(*) FROM probes WHERE reason != '' GROUP BY reason ORDER BY 2 DESC"
    )
    return [(row[0], row[1]) for row in rows]
