"""`snellen plan`: what n images can show, and what a run costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from snellen.studies.planning import Pilot

RATES = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(
    "plan",
    epilog="Example: snellen plan mini-reading --difference 0.02",
)
@click.argument("source", metavar="BENCHMARK_OR_RUN")
@click.argument("other", metavar="[RUN]", required=False, type=click.Path(exists=True))
@click.option("--data", metavar="PATH", help="Where the benchmark's files are.")
@click.option("--metric", default="", metavar="NAME", help="A rate; the headline by default.")
@click.option(
    "--difference",
    type=click.FloatRange(0, 1, min_open=True),
    help="A wanted difference as a fraction of 1: how many images show it?",
)
@click.option(
    "--images", multiple=True, type=click.IntRange(2), help="A number of images. Repeatable."
)
@click.option("--power", type=RATES, default=0.8, show_default=True, help="The chance to show it.")
@click.option("--level", type=RATES, default=0.95, show_default=True, help="The confidence level.")
@click.option("--rate", type=RATES, help="Without a pilot: the rate to expect; 0.7.")
@click.option("--icc", type=RATES, help="Without a pilot: correlation within an image; 0.1.")
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1, max_open=True),
    help="Without a second run: correlation of two runs over images; 0.5.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(
    source: str,
    other: str | None,
    *,
    data: str | None,
    metric: str,
    difference: float | None,
    images: tuple[int, ...],
    power: float,
    level: float,
    rate: float | None,
    icc: float | None,
    correlation: float | None,
    as_json: bool,
    markdown: bool,
) -> None:
    """Say what a number of images can show, and how many images a difference needs.

    A run is a pilot: its questions an image, its rate and how much questions of one image go
    together are taken from it, and from a second run how much pairing gains. A benchmark alone
    leaves these to be assumed, and says so.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.errors import UsageError
    from snellen.studies.planning import in_a_sentence, plan
    from snellen.tables.planning import plan_tables

    is_run = (Path(source) / "run.json").exists()
    if is_run and (rate is not None or icc is not None):
        raise UsageError(
            "a pilot run has its own rate and correlation", hint="leave --rate and --icc out"
        )
    if other is not None and not is_run:
        raise UsageError(f"{source} is no run folder", hint="give two runs, or one benchmark")
    pilot = (
        _pilot(source, other, metric, correlation)
        if is_run
        else _assumed(source, data, rate, icc, correlation)
    )
    found = plan(pilot, difference=difference, images=images, power=power, level=level)
    if as_json:
        print_json(found)
        return
    for table in plan_tables(found):
        print_table(table, markdown=markdown)
    click.echo(in_a_sentence(found))


def _pilot(source: str, other: str | None, metric: str, correlation: float | None) -> Pilot:
    from snellen.runs.folder import load_run
    from snellen.studies.planning import pilot_of

    second = None if other is None else load_run(other)
    return pilot_of(load_run(source), second, metric=metric, correlation=correlation)


def _assumed(
    source: str, data: str | None, rate: float | None, icc: float | None, correlation: float | None
) -> Pilot:
    from snellen.readers import load_benchmark
    from snellen.studies import planning

    return planning.assumed_pilot(
        load_benchmark(source, data),
        rate=planning.ASSUMED_RATE if rate is None else rate,
        icc=planning.ASSUMED_ICC if icc is None else icc,
        correlation=planning.ASSUMED_CORRELATION if correlation is None else correlation,
    )
