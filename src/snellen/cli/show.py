"""`snellen show`: the numbers of runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from snellen.runs.folder import Run
    from snellen.tables.table import Table


@click.command(
    "show",
    epilog="Example: snellen show out/reading --by category",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--by", "dimensions", multiple=True, help="Also break down by this dimension.")
@click.option(
    "--studies",
    is_flag=True,
    help="rubric: also shut gates, length bias, rubric coverage, consistency, gap and judges, as "
    "far as the runs allow.",
)
@click.option(
    "--figures",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="With --studies: draw rubric coverage, as PNG, SVG and PDF.",
)
@click.option("--diagnose", is_flag=True, help="Response patterns, silence, doubtful questions.")
@click.option("--provider", is_flag=True, help="Latency, tokens, cost, failures and refusals.")
@click.option("--published", is_flag=True, help="Published rows beside your own.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this. Repeatable.")
@click.option(
    "--items",
    type=click.Choice(["failed", "unscored", "all"]),
    help="Page through samples instead: question, reference, reply, verdict, the judge's words.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summaries as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(
    runs: tuple[str, ...],
    dimensions: tuple[str, ...],
    *,
    studies: bool,
    figures: str | None,
    metrics: tuple[str, ...],
    items: str | None,
    as_json: bool,
    markdown: bool,
    **wanted: bool,
) -> None:
    """Print metrics with intervals, breakdowns, counts of unscored probes, and cost.

    Runs of several benchmarks or judges begin with an overview. A run given together with its
    controls (--control blind, --control swapped) gets a table of both, and several models one by
    the generators of the questions.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.runs.folder import find_runs, load_run
    from snellen.runs.summary import summary_of
    from snellen.tables.runs import overview

    loaded = [load_run(path) for path in find_runs(runs)]
    # Once: the summary of a run that has not ended is computed anew each time.
    loaded = [replace(run, summary=summary_of(run)) for run in loaded]
    _require(loaded, dimensions, metrics)
    if items is not None:
        _page_through(loaded, items)
        return
    if as_json:
        print_json([run.summary for run in loaded])
        return

    def key(run: Run) -> tuple[str, str]:
        return run.spec.benchmark, run.spec.judge.name

    groups = [list(group) for _, group in groupby(sorted(loaded, key=key), key=key)]
    tables = [overview(loaded)] if len(groups) > 1 else []
    for same in groups:
        tables += _group_tables(same, dimensions, metrics, wanted=wanted)
        if studies and "rubric-studies" in same[0].protocol.tables:
            tables += _rubric_studies(same, figures)
    tables += _judge_studies(loaded) if studies else []
    for table in tables:
        print_table(table, markdown=markdown)


def _page_through(runs: Sequence[Run], items: str) -> None:
    """Show the chosen samples of each run in the terminal's pager, or all in a pipe."""
    from snellen.cli.printing import screen_width
    from snellen.tables.samples import chosen, sample_block
    from snellen.tables.screen import legible

    def lines() -> Iterator[str]:
        width = screen_width()
        for run in runs:
            yield f"{legible(run.name)} on {legible(run.spec.benchmark)}\n\n"
            for sample in chosen(run.samples(), items):
                yield from (line + "\n" for line in sample_block(sample, width))

    click.echo_via_pager(lines())


def _group_tables(
    runs: Sequence[Run],
    dimensions: Sequence[str],
    metrics: Sequence[str],
    *,
    wanted: Mapping[str, bool],
) -> Iterator[Table]:
    """The tables of runs of one benchmark and judge."""
    from snellen.comparisons.comparable import NamedSpec, unlike
    from snellen.judges.audit import attached_audit
    from snellen.runs.naming import named_apart
    from snellen.runs.summary import summary_of
    from snellen.tables import runs as tables
    from snellen.tables.judges import agreement_table, sensitivity_table
    from snellen.tables.panel import panel_tables
    from snellen.tables.studies import extra_tables

    shown = named_apart(runs)
    if len(shown) == 1:
        yield tables.run_table(shown[0], metrics=metrics)
    else:
        board = tables.leaderboard(shown, metrics=metrics)
        # A control is marked as one; it is meant to differ.
        specs = [
            NamedSpec(tables.label_of(run), run.spec)
            for run in tables.ranked(shown)
            if not run.spec.options.get("control")
        ]
        yield replace(board, notes=(*board.notes, *unlike(specs))) if specs else board
    for run in shown:
        for dimension in dimensions:
            if dimension in summary_of(run).by:
                yield tables.breakdown(run, dimension, metrics=metrics)
    for run in shown:
        yield from panel_tables(run)
        sensitivity = sensitivity_table(run)
        yield from [] if sensitivity is None else [sensitivity]
        agreement = attached_audit(run)
        yield from [agreement_table(run, agreement)] if agreement else []
    yield tables.counts_table(shown)
    yield from extra_tables(runs, wanted)


def _rubric_studies(runs: Sequence[Run], figures: str | None) -> list[Table]:
    """The studies that rubric runs of one judge allow; their figure goes to `figures`."""
    from snellen.studies.rubric import coverage_of
    from snellen.tables.rubric import study_tables

    points = coverage_of(runs) if figures is not None else ()
    if figures is not None and points:
        from snellen.figures.selection import write_charts
        from snellen.figures.study_charts import coverage_chart

        is_low = any(run.spec.judge.fidelity == "low" for run in runs)
        for file in write_charts([coverage_chart(points, is_low=is_low)], Path(figures)):
            click.echo(f"figure: {file}", err=True)
    return study_tables(runs)


def _judge_studies(runs: Sequence[Run]) -> list[Table]:
    """Judge stability, for each benchmark where several judges read the same models' replies."""
    from snellen.errors import ComparisonError
    from snellen.judges import reliability
    from snellen.tables.judges import pairs_table, scores_table

    found: list[Table] = []
    for name in dict.fromkeys(run.spec.benchmark for run in runs):
        same = [run for run in runs if run.spec.benchmark == name]
        if not reliability.can_compare(same):
            continue
        try:
            study = reliability.study_judges(same)
        except ComparisonError as error:
            click.echo(f"notice: judges cannot be compared: {error.message}", err=True)
            continue
        found += [scores_table(study), pairs_table(study)]
    return found


def _require(runs: Sequence[Run], dimensions: Sequence[str], metrics: Sequence[str]) -> None:
    """Raises UsageError for a dimension or a metric that none of the runs has."""
    from snellen.errors import UsageError
    from snellen.runs.summary import summary_of

    summaries = [summary_of(run) for run in runs]
    where = str(runs[0].folder) if len(runs) == 1 else f"any of the {len(runs)} runs"
    for noun, names, available in (
        ("breakdown by", dimensions, dict.fromkeys(d for s in summaries for d in s.by)),
        ("metric", metrics, dict.fromkeys(m for s in summaries for m in s.metrics)),
    ):
        for name in names:
            if name not in available:
                raise UsageError(
                    f"no {noun} {name} in {where}",
                    hint=f"there are: {', '.join(available) or 'none'}",
                )
