"""What differs between runs on the same probes: changed verdicts, and items worth a look."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from snellen.stats.agreement import mcnemar_p
from snellen.web.view.lists import PAGE, Address, page_of

_SCORED: Final = "('right', 'wrong', 'abstained')"
_JOIN: Final = "FROM probes p JOIN other1.probes q USING (item, repeat, probe)"
_BOTH: Final = f"p.outcome IN {_SCORED} AND q.outcome IN {_SCORED}"
KINDS: Final[Mapping[str, str]] = {
    "to_wrong": f"{_BOTH} AND p.outcome = 'right' AND q.outcome != 'right'",
    "to_right": f"{_BOTH} AND p.outcome != 'right' AND q.outcome = 'right'",
    "other": f"{_BOTH} AND 'right' NOT IN (p.outcome, q.outcome) AND p.verdict != q.verdict",
    "unscored": f"NOT ({_BOTH})",
}


@dataclass(frozen=True, slots=True)
class Flipped:
    """Probes that two runs judge differently, a page of one kind; `p` is McNemar's exact value."""

    kind: str
    counts: Mapping[str, int]
    n_both: int
    n_same: int
    p: float
    rows: list[sqlite3.Row]
    total: int
    page: int
    pages: int


def flips_page(connection: sqlite3.Connection, address: Address) -> Flipped:
    """A page of flips; the second run is attached as `other1`."""
    counts = {
        kind: connection.execute(f"SELECT count(*) {_JOIN} WHERE {condition}").fetchone()[0]
        for kind, condition in KINDS.items()
    }
    n_both = connection.execute(f"SELECT count(*) {_JOIN} WHERE {_BOTH}").fetchone()[0]
    kind = address.first("kind")
    if kind not in KINDS:
        kind = next((name for name in KINDS if counts[name]), "to_wrong")
    number, pages = page_of(address, counts[kind])
    rows = connection.execute(
        "SELECT p.item, p.repeat, p.probe, p.line, p.answer, p.category, p.outcome AS first, "
        f"p.verdict AS said, q.outcome AS second, q.verdict AS says {_JOIN} "
        f"WHERE {KINDS[kind]} ORDER BY p.n LIMIT ? OFFSET ?",
        (PAGE, PAGE * (number - 1)),
    ).fetchall()
    n_same = n_both - counts["to_wrong"] - counts["to_right"]
    return Flipped(
        kind, counts, n_both, n_same, mcnemar_p(counts["to_right"], counts["to_wrong"]), rows,
        counts[kind], number, pages,
    )  # fmt: skip


def standing(
    connection: sqlite3.Connection, n_runs: int, item: str, repeat: int
) -> tuple[str | None, str | None]:
    """The items before and after one on which the runs differ; the first such one after none.

    The runs but the first are attached as `other1` and so on.
    """
    joins, different = "", []
    for k in range(1, n_runs):
        joins += f" JOIN other{k}.probes q{k} USING (item, repeat, probe)"
        different.append(f"q{k}.outcome != p.outcome")
    rows = connection.execute(
        f"SELECT DISTINCT p.unit, p.item FROM probes p{joins} WHERE p.repeat = ? "
        f"AND ({' OR '.join(different)}) ORDER BY p.unit",
        (repeat,),
    ).fetchall()
    held = connection.execute(
        "SELECT n FROM items WHERE item = ? AND repeat = ?", (item, repeat)
    ).fetchone()
    here = -1 if held is None else held[0]
    before = [row[1] for row in rows if row[0] < here]
    after = [row[1] for row in rows if row[0] > here]
    if held is None and not after:
        first = connection.execute("SELECT item FROM items ORDER BY n LIMIT 1").fetchone()
        return None, first and first[0]
    return before[-1] if before else None, after[0] if after else None
