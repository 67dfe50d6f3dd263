"""`snellen data`: the known benchmarks, their statistics, and what is wrong with a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from snellen.readers.statistics import BenchmarkInfo


@click.group("data", epilog="Example: snellen data check my-benchmark/")
def command() -> None:
    """List, describe and check benchmarks."""


@command.command("list", epilog="Example: snellen data list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_benchmarks(*, as_json: bool) -> None:
    """List the known benchmarks."""
    from snellen.cli.printing import print_json, print_table
    from snellen.readers import known
    from snellen.tables.table import Table, plain

    entries = known()
    if as_json:
        print_json(entries)
        return
    rows = tuple(
        (
            e.name,
            e.protocol,
            e.items or None,
            e.license or None,
            _where(bool(e.folder), e.repository),
        )
        for e in entries
    )
    columns = plain("Name", "Protocol", "Items", "Licence", "Where")
    print_table(Table("Benchmarks", columns, rows))


def _where(is_bundled: bool, repository: str) -> str:
    if is_bundled:
        return "bundled"
    return f"fetched: {repository}" if repository else "not released; --data PATH"


@command.command("info", epilog="Example: snellen data info mini-reading")
@click.argument("benchmark")
@click.option("--data", metavar="PATH", help="The benchmark's files; else they are fetched.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def describe(benchmark: str, data: str | None, *, as_json: bool) -> None:
    """Print a benchmark's statistics and its licence; bad rows are left out and counted."""
    from snellen.cli.printing import print_json, print_table
    from snellen.readers import LoadOptions, load_benchmark
    from snellen.readers.statistics import info
    from snellen.settings import cache_folder
    from snellen.tables.benchmark import info_tables
    from snellen.tables.screen import legible

    options = LoadOptions(cache=str(cache_folder()), on_bad_row="skip")
    found = info(load_benchmark(benchmark, data, options=options))
    if as_json:
        print_json(found)
        return
    for line in _head(found):
        click.echo(legible(line))
    for table in info_tables(found):
        print_table(table)


def _head(found: BenchmarkInfo) -> list[str]:
    lines = [f"{found.name}: {found.protocol} protocol, {found.items} items, {found.probes} probes"]
    lines += [f"licence: {found.license or 'not stated'}"]
    if found.terms:
        lines.append(f"         {found.terms}")
    if found.source:
        lines.append(f"source: {found.source}")
    return [*lines, ""]


@command.command("check", epilog="Example: snellen data check my-benchmark/")
@click.argument("benchmark")
@click.option("--data", metavar="PATH", help="The benchmark's files.")
@click.option(
    "--allow-outside",
    multiple=True,
    metavar="DIR",
    help="A folder outside the benchmark's own whose files may be read. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def check(
    benchmark: str, data: str | None, *, allow_outside: tuple[str, ...], as_json: bool
) -> int:
    """Name every bad row of a benchmark: file, row, field, what was expected."""
    from snellen.cli.printing import print_json
    from snellen.readers import LoadOptions, check_benchmark
    from snellen.settings import cache_folder
    from snellen.tables.screen import legible

    options = LoadOptions(cache=str(cache_folder()), allow_outside=allow_outside)
    problems = check_benchmark(benchmark, data, options=options)
    if as_json:
        print_json(problems)
    else:
        for problem in problems:
            click.echo(legible(problem.message))
            if problem.hint:
                click.echo(f"  hint: {legible(problem.hint)}")
    if not problems:
        click.echo("nothing is wrong", err=True)
    return 1 if problems else 0
