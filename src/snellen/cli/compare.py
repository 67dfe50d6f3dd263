"""`snellen compare`: runs on the same items, in pairs."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snellen.comparisons.results import Comparison
    from snellen.tables.table import Table

WORSE, UNSETTLED = 4, 3


@click.command(
    "compare",
    epilog="Example: snellen compare runs/old runs/new --fail-if-worse overall_acc --margin 0.01",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A metric to compare; the protocol's main ones by default. Repeatable.",
)
@click.option(
    "--by", "dimensions", multiple=True, metavar="DIMENSION", help="Also by this dimension."
)
@click.option(
    "--flips",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Show up to N probes that flipped, each way, with both runs' replies.",
)
@click.option(
    "--across",
    multiple=True,
    metavar="WORD",
    help="What may differ, since it is the question: judge, prompt, control, hint or data. "
    "Repeatable.",
)
@click.option("--common", is_flag=True, help="Leave out items that not all runs have.")
@click.option(
    "--fail-if-worse",
    metavar="METRIC",
    help="Exit with 4 where the last run is significantly worse than the first.",
)
@click.option(
    "--fail-unless-as-good",
    metavar="METRIC",
    help="Exit with 4 unless the last run is shown to be no more than --margin worse.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="How much worse is allowed, in the metric's own unit: 0.01 is one point of a rate.",
)
@click.option("--level", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--resamples", type=click.IntRange(100), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(**words: Any) -> int:
    """Compare runs on the same items, in pairs: differences, p values, ranks, flipped probes.

    A folder of several runs stands for all of them. A difference is the later run minus the
    earlier one.
    """
    from snellen.comparisons.comparing import compare
    from snellen.runs.folder import find_runs, load_run
    from snellen.stats.bootstrap import Resampling

    # Rows by the hundred thousand are read and none is a part of a cycle.
    gc.set_threshold(50_000, 50, 100)
    metrics = list(words["metrics"])
    gated = [words[name] for name in ("fail_if_worse", "fail_unless_as_good") if words[name]]
    if gated:
        metrics = list(dict.fromkeys([*gated, *metrics]))
    comparison = compare(
        (load_run(folder) for folder in find_runs(words["runs"])),
        metrics=metrics or None,
        across=words["across"],
        common=words["common"],
        resampling=Resampling(words["resamples"], words["level"], words["seed"]),
    )
    if words["as_json"]:
        from snellen.cli.printing import print_json

        print_json(comparison)
    else:
        from snellen.cli.printing import print_table, screen_width
        from snellen.tables import comparison as tables
        from snellen.tables.samples import flip_blocks

        for line in tables.change_lines(comparison):
            click.echo(line)
        for table in _tables(comparison, words):
            print_table(table, markdown=words["markdown"])
        if words["flips"]:
            for line in flip_blocks(comparison, words["flips"], screen_width()):
                click.echo(line)
        for note in comparison.notes:
            if note.startswith("warning:"):
                click.echo(note, err=True)
    return _verdict(comparison, words)


def _tables(comparison: Comparison, words: dict[str, Any]) -> Iterable[Table]:
    from snellen.errors import UsageError
    from snellen.tables import comparison as tables

    available = dict.fromkeys(d for metric in comparison.metrics for d in metric.pairs[0].by)
    for dimension in words["dimensions"]:
        if dimension not in available:
            raise UsageError(
                f"these runs have no dimension `{dimension}`",
                hint=f"there are: {', '.join(available) or 'none'}",
            )
    yield from tables.tables_of(comparison)
    for dimension in words["dimensions"]:
        yield from tables.breakdown_tables(comparison, dimension)


def _verdict(comparison: Comparison, words: dict[str, Any]) -> int:
    """The exit code: 4 where a gate fails, 3 where its answer depends on unscored probes."""
    from snellen.comparisons.gates import Gate, gate_as_good, gate_worse
    from snellen.errors import UsageError

    first, last, margin = comparison.runs[0].name, comparison.runs[-1].name, words["margin"]
    code = 0
    if metric := words["fail_if_worse"]:
        found = gate_worse(comparison, metric, margin=margin)
        beyond = f" by more than {margin:g}" if margin else ""
        if found is Gate.FAILED:
            click.echo(f"{last} is significantly worse than {first} in {metric}{beyond}", err=True)
            code = WORSE
        elif found is Gate.UNSETTLED:
            pair = comparison.metric(metric).pair(first, last)
            click.echo(
                f"whether {last} is worse than {first} in {metric}{beyond} depends on "
                f"{pair.n_unscored} probes that are unscored in a run; resume that run first",
                err=True,
            )
            code = UNSETTLED
    if metric := words["fail_unless_as_good"]:
        if not margin:
            raise UsageError(
                "--fail-unless-as-good needs a margin",
                hint="give --margin 0.01 to allow one point of a rate",
            )
        if gate_as_good(comparison, metric, margin=margin) is Gate.PASSED:
            click.echo(
                f"{last} is shown to be no more than {margin:g} worse than {first} in {metric}",
                err=True,
            )
        else:
            click.echo(
                f"{last} is not shown to be within {margin:g} of {first} in {metric}", err=True
            )
            code = WORSE
    return code
