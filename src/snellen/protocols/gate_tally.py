"""What statements behind a gate add up to: metrics, and where the gate shut.

Source: PerceptionRubrics, formulas (1) and (2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from snellen.metrics import (
    Array,
    Metric,
    ProbeTable,
    Tally,
    column,
    group_masks,
    hit_rate,
    pool,
    quotient,
    ratio,
)
from snellen.protocols.protocol import Replies, RunView

MUST_RIGHT = "must_right"
EASY_WRONG = "easy_wrong"

# Columns by unit: probes, right and unscored ones of both groups (Mm Mc Mx, Em Ec Ex,
# P C X for all); n units; G gate, S score, A ungated Easy-Wrong rate: strict, over scored (with
# the number of units where it is known), and upper. A gate is known to be shut in n - Gu units.
COLUMNS = (
    "P", "C", "X", "Mm", "Mc", "Mx", "Em", "Ec", "Ex", "n",
    "G", "Gs", "nG", "Gu", "S", "Ss", "nS", "Su", "A", "As", "nA", "Au", "nE",
    "no_must", "no_easy",
)  # fmt: skip


SCORE = Metric(
    "score",
    quotient("S", "n"),
    quotient("Ss", "nS"),
    quotient("Su", "n"),
    column("n"),
    title="Score",
    is_main=True,
    definition="Mean over images of the gated score: zero where a Must-Right statement fails, "
    "else the share of Easy-Wrong statements that hold.",
    formula="mean over images of gate * (Easy-Wrong held / Easy-Wrong)",
    example="One image with a shut gate, one with an open gate and 3 of 4: 37.5 %.",
)
GATE = Metric(
    "gate_pass",
    quotient("G", "n"),
    quotient("Gs", "nG"),
    quotient("Gu", "n"),
    column("n"),
    title="Gate pass",
    is_main=True,
    definition="Share of the images whose Must-Right statements all hold.",
    formula="open gates / images",
    example="4 images, 3 open gates: 75.0 %.",
)
ATOMIC = replace(
    hit_rate("atomic_acc", "C", "P", "X", title="Atomic"),
    is_main=True,
    definition="Share of the statements that hold, each weighing the same.",
    formula="statements held / statements",
    example="20 statements, 18 held: 90.0 %.",
)
MUST_RIGHT_ACC = replace(
    hit_rate("must_right_acc", "Mc", "Mm", "Mx", title="Must-Right"),
    definition="Share of the Must-Right statements that hold.",
    formula="Must-Right held / Must-Right",
    example="10 statements, 9 held: 90.0 %.",
)
EASY_WRONG_ACC = replace(
    hit_rate("easy_wrong_acc", "Ec", "Em", "Ex", title="Easy-Wrong"),
    definition="Share of the Easy-Wrong statements that hold.",
    formula="Easy-Wrong held / Easy-Wrong",
    example="10 statements, 9 held: 90.0 %.",
)
EASY_AVG = Metric(
    "easy_wrong_avg",
    quotient("A", "nE"),
    quotient("As", "nA"),
    quotient("Au", "nE"),
    column("nE"),
    title="E-W avg (no gate)",
    definition="Mean over images of the share of Easy-Wrong statements that hold, whatever "
    "the gate.",
    formula="mean over images of Easy-Wrong held / Easy-Wrong",
    example="Images with 3 of 4 and 1 of 4: 50.0 %.",
)
GAP = Metric(
    "reliability_gap",
    lambda s: GATE.value(s) - ATOMIC.value(s),
    lambda s: ratio(s["Gs"], s["nG"]) - ratio(s["C"], s["P"] - s["X"]),
    None,
    column("n"),
    title="Gap",
    unit="points",
    parts=("gate_pass", "atomic_acc"),
    definition="How much stricter the gate is than single statements.",
    formula="gate_pass - atomic_acc",
    example="Gate pass 75.0 %, atomic 90.0 %: -15.0 points.",
)
METRICS: tuple[Metric, ...] = (
    SCORE,
    GATE,
    ATOMIC,
    MUST_RIGHT_ACC,
    EASY_WRONG_ACC,
    EASY_AVG,
    GAP,
)
# Those that need no gate.
STATEMENT_METRICS = ("atomic_acc", "must_right_acc", "easy_wrong_acc")
GATE_FIRST_METRICS: tuple[Metric, ...] = (SCORE, GATE, MUST_RIGHT_ACC)


def tally(table: ProbeTable, replies: Replies) -> Tally:
    """Counts by image; where statements were skipped, with the metrics that they leave."""
    del replies
    n = len(table.units)
    skipped = bool(table.skipped.any())
    by_unit = _group_counts(table, n) | _gate_columns(table, n)
    return table.by_cluster(COLUMNS, by_unit, GATE_FIRST_METRICS if skipped else METRICS)


def _group_counts(table: ProbeTable, n: int) -> dict[str, Array]:
    counts: dict[str, Array] = {}
    must, easy = table.kind == MUST_RIGHT, table.kind == EASY_WRONG
    for prefix, mask in (("M", must), ("E", easy)):
        part = table.where(mask & ~table.skipped)
        counts[f"{prefix}m"] = pool(part.unit, np.ones(part.n), n)
        counts[f"{prefix}c"] = pool(part.unit, part.correct, n)
        counts[f"{prefix}x"] = pool(part.unit, part.unscored, n)
    counts["P"] = counts["Mm"] + counts["Em"]
    counts["C"] = counts["Mc"] + counts["Ec"]
    counts["X"] = counts["Mx"] + counts["Ex"]
    return counts


def _gate_columns(table: ProbeTable, n: int) -> dict[str, Array]:
    """Gate and score of each unit: strict, known, and upper."""
    c = _group_counts(table, n)
    present = (pool(table.unit, np.ones(table.n), n) > 0).astype(float)
    shut = (c["Mm"] - c["Mc"] - c["Mx"] > 0).astype(float)
    gate = (c["Mc"] == c["Mm"]) * present
    upper = (1 - shut) * present
    known = np.maximum(shut, gate) * present
    easy = c["Em"] > 0
    asked_easy = pool(table.unit, table.kind == EASY_WRONG, n) > 0
    # Without Easy-Wrong statements the score is the gate itself.
    rate = np.where(easy, np.nan_to_num(ratio(c["Ec"], c["Em"])), 1.0)
    best = np.where(easy, np.nan_to_num(ratio(c["Ec"] + c["Ex"], c["Em"])), 1.0)
    clear = ((c["Ex"] == 0) | (shut > 0)) * known
    easy_known = (easy & (c["Ex"] == 0)).astype(float)
    return {
        "n": present,
        "G": gate, "Gs": gate * known, "nG": known, "Gu": upper,
        "S": gate * rate, "Ss": gate * rate * clear, "nS": clear, "Su": upper * best,
        "A": rate * easy, "As": rate * easy_known, "nA": easy_known, "Au": best * easy,
        "nE": easy * present,
        "no_must": (c["Mm"] == 0) * present, "no_easy": ~asked_easy * present,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShutGates:
    """The gates of one label: how many there are, are known to be shut, and cannot be told.

    `share` is shut over gates; `of_all` the label's share of all shut gates of the run. Both are
    None over zero.
    """

    gates: int
    shut: int
    unknown: int
    share: float | None
    of_all: float | None


def shut_gates(view: RunView, dimension: str) -> dict[str, ShutGates]:
    """The gates of each label of a dimension, a blank or failed reply's included."""
    counts: dict[str, tuple[int, int, int]] = {}
    for label, mask in group_masks(view.table, view.items, dimension).items():
        sums = tally(view.table.where(mask), view.replies).sums()
        gates, known = int(sums["n"]), int(sums["nG"])
        counts[label] = gates, gates - int(sums["Gu"]), gates - known
    total = sum(shut for _, shut, _ in counts.values())
    return {
        label: ShutGates(
            gates,
            shut,
            unknown,
            share=shut / gates if gates else None,
            of_all=shut / total if total else None,
        )
        for label, (gates, shut, unknown) in sorted(counts.items())
    }
