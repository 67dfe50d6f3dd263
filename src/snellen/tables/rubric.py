"""The tables of studies of rubric runs: shut gates, length bias, coverage, proposers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.studies.rubric import (
    FEWEST,
    CoveragePoint,
    consistency,
    coverage_of,
    gap_slope,
    in_full,
    length_bias,
    metric_points,
)
from snellen.tables.runs import named
from snellen.tables.table import (
    P_VALUE,
    POINTS,
    RATE,
    Cell,
    Column,
    Format,
    Number,
    Rows,
    Table,
    format_of,
    plain,
)

THREE = Format(digits=3)
WHOLE_PERCENT = replace(RATE, digits=0)


def study_tables(runs: Sequence[Run]) -> list[Table]:
    """The tables that rubric runs of one benchmark and one judge allow.

    A note names the runs that `--gate-first` keeps out of the studies of all statements.
    """
    full = in_full(runs)
    gates = gates_table(runs)
    short = [run.name for run in runs if summary_of(run).counts.skipped]
    if short:
        note = f"made with --gate-first, so in no study of all statements: {', '.join(short)}"
        gates = replace(gates, notes=(*gates.notes, note))
    tables = [gates, length_table(runs)]
    points = coverage_of(runs)
    if points:
        tables.append(coverage_table(points))
    if len(full) >= FEWEST:
        tables.append(models_table(full))
    if any("proposer" in summary_of(run).by for run in full):
        tables.append(proposers_table(full))
    fidelity = runs[0].spec.judge.fidelity
    return [replace(table, fidelity=fidelity) for table in tables]


def gates_table(runs: Sequence[Run]) -> Table:
    """The share of each domain's gates that are known to be shut, and its part of all of them."""
    shut = [(run, summary_of(run).extra["shut_gates"]["category"]) for run in runs]
    labels = sorted({label for _, by in shut for label in by})
    rows: list[tuple[Cell, ...]] = []
    for run, by in shut:
        found = [by.get(label) or {} for label in labels]
        rows.append((named(run), *(one.get(k) for one in found for k in ("share", "of_all"))))
    columns = (
        column
        for label in labels
        for column in (
            Column(label, WHOLE_PERCENT),
            Column("of all shut", WHOLE_PERCENT, f"{label} of all shut"),
        )
    )
    notes = ("of the domain's gates; then the domain's part of all shut gates of the model",)
    return Table("Shut gates by domain", (Column("Model"), *columns), tuple(rows), notes)


def length_table(runs: Sequence[Run]) -> Table:
    """The length bias of each model."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        found = length_bias(run)
        p = None if math.isnan(found.r) else found.p
        rows.append((named(run), found.mean_words, Number(found.r, found.interval), p, found.n))
    columns = (
        Column("Model"),
        Column("Words", Format(digits=0)),
        Column("r", THREE),
        Column("p", P_VALUE),
        Column("Images"),
    )
    notes = ("Pearson's r of score and words over the images whose score is known",)
    return Table("Length bias", columns, tuple(rows), notes)


def coverage_table(points: Sequence[CoveragePoint]) -> Table:
    """The spread of scores (points) and of ranks at each share of rubrics."""
    rows: list[tuple[Cell, ...]] = []
    for point in points:
        scores, ranks, bias = (
            list(by_model.values()) for by_model in (point.score_sd, point.rank_sd, point.bias)
        )
        mean_bias = math.fsum(bias) / len(bias)
        rows.append(
            (
                point.share,
                math.fsum(scores) / len(scores),
                max(scores),
                mean_bias,
                math.fsum(ranks) / len(ranks),
                max(ranks),
            )
        )
    points_2, two = replace(POINTS, digits=2), Format(digits=2)
    columns = (
        Column("Kept", WHOLE_PERCENT),
        Column("SD of score", points_2),
        Column("Largest SD of score", points_2),
        Column("Shift of score", replace(points_2, signed=True)),
        Column("SD of rank", two),
        Column("Largest SD of rank", two),
    )
    notes = (
        f"{points[0].draws} seeded draws; means and largest over the models",
        "fewer Must-Right statements shut fewer gates: the shift is part of the finding",
    )
    return Table("Rubric coverage", columns, tuple(rows), notes)


def models_table(runs: Sequence[Run]) -> Table:
    """What holds across models: consistency of the two streams, and how the gap closes."""
    same = consistency(metric_points(runs, "gate_pass", "easy_wrong_acc"))
    line = gap_slope(metric_points(runs, "score", "reliability_gap"))
    ends = None if math.isnan(line.low) else (line.low, line.high)
    rows: Rows = (
        ("R squared, Easy-Wrong on gate pass", same.r_squared, same.n),
        ("Slope, gap on score", Number(line.slope, ends), line.n),
    )
    notes = ("a slope above 0: the gap closes as models get better",)
    columns = (Column("Statistic"), Column("Value", THREE), Column("Models"))
    return Table("Across models", columns, rows, notes)


def proposers_table(runs: Sequence[Run]) -> Table:
    """Each model's atomic accuracy on the statements of each proposer.

    `*` marks statements by a model of the same family: a proposer that favours its own would show
    there.
    """
    by_model = [(run, summary_of(run).by.get("proposer", {})) for run in runs]
    proposers = sorted({name for _, by in by_model for name in by})
    form = format_of("atomic_acc")
    rows: list[tuple[Cell, ...]] = []
    for run, by in by_model:
        family = (run.spec.model.family or run.name).casefold()
        cells: list[Cell] = []
        for proposer in proposers:
            found = by.get(proposer, {}).get("atomic_acc")
            own = "*" if family in proposer.casefold() else ""
            known = found is not None and found.value is not None
            cells.append(Number(found.value, format=form, remark=own) if known and found else None)
        rows.append((named(run), *cells))
    notes = ("atomic accuracy in per cent; * proposer of the model's own family",)
    return Table("Statements by proposer", plain("Model", *proposers), tuple(rows), notes)
