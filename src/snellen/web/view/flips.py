"""What differs between runs on the same probes: changed verdicts, and items worth a look."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from snellen.stats.agreement import mcnemar_p
from snellen.web.view.lists import PAGE, Address, page_of

_SCORED: Final = "('right', 'wrong', 'abstained')"
_BOTH: Final = f"p.outcome IN {_SCORED} AND q1.outcome IN {_SCORED}"
KINDS: Final[Mapping[str, str]] = {
    "to_wrong": f"{_BOTH} AND p.outcome = 'right' AND q1.outcome != 'right'",
    "to_right": f"{_BOTH} AND p.outcome != 'right' AND q1.outcome = 'right'",
    "other": f"{_BOTH} AND 'right' NOT IN (p.outcome, q1.outcome) AND p.verdict != q1.verdict",
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
    joined = _joined(connection, 2)
    sums = ", ".join(f"total({condition})" for condition in (*KINDS.values(), _BOTH))
    *found, n_both = map(int, connection.execute(f"SELECT {sums} {joined}").fetchone())
    counts = dict(zip(KINDS, found, strict=True))
    kind = address.first("kind")
    if kind not in KINDS:
        kind = next((name for name in KINDS if counts[name]), "to_wrong")
    number, pages = page_of(address, counts[kind])
    rows = connection.execute(
        "SELECT p.item, p.repeat, p.probe, p.line, p.answer, p.category, p.outcome AS first, "
        f"p.verdict AS said, q1.outcome AS second, q1.verdict AS says {joined} "
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
) -> tuple[str, str | None, str | None]:
    """An item, and those before and after it on which the runs differ; "" is the first of these.

    The runs but the first are attached as `other1` and so on.
    """
    different = " OR ".join(f"q{k}.outcome != p.outcome" for k in range(1, n_runs))
    rows = connection.execute(
        f"SELECT DISTINCT p.unit, p.item {_joined(connection, n_runs)} WHERE p.repeat = ? "
        f"AND ({different}) ORDER BY p.unit",
        (repeat,),
    ).fetchall()
    if not item:
        first = connection.execute("SELECT item FROM items ORDER BY n LIMIT 1").fetchone()
        item = rows[0]["item"] if rows else first["item"] if first else ""
    held = connection.execute(
        "SELECT n FROM items WHERE item = ? AND repeat = ?", (item, repeat)
    ).fetchone()
    here = -1 if held is None else held["n"]
    before = [row["item"] for row in rows if row["unit"] < here]
    after = [row["item"] for row in rows if row["unit"] > here]
    return item, before[-1] if before else None, after[0] if after else None


def _joined(connection: sqlite3.Connection, n_runs: int) -> str:
    """The probes `p` of a run with those of the others, `q1` and so on, that have the same key."""
    layout = "SELECT value FROM {}.meta WHERE name = 'layout'"
    own = connection.execute(layout.format("main")).fetchone()
    text = "FROM probes p"
    for k in range(1, n_runs):
        same = connection.execute(layout.format(f"other{k}")).fetchone()[0] == own[0]
        keys = ("n",) if same else ("item", "repeat", "probe")
        on = " AND ".join(f"q{k}.{key} = p.{key}" for key in keys)
        text += f" JOIN other{k}.probes q{k} ON {on}"
    return text
