"""`snellen published`: the published numbers of a benchmark, and how well they agree."""

from __future__ import annotations

from dataclasses import asdict

import click


@click.command("published", epilog="Example: snellen published perception_bench")
@click.argument("benchmark")
@click.option("--json", "as_json", is_flag=True, help="Print rows and checks as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(benchmark: str, *, as_json: bool, markdown: bool) -> None:
    """Print the published scores of BENCHMARK and their consistency checks.

    The benchmarks are capprobe, perception_bench and perception_rubrics. Beside own runs the same
    rows stand in `snellen show RUN --published`.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.studies.published import published_checks, published_models
    from snellen.tables.studies import checks_table, published_table

    if as_json:
        checks = [asdict(one) | {"holds": one.holds} for one in published_checks(benchmark)]
        print_json({"models": published_models(benchmark), "checks": checks})
        return
    for table in (published_table(benchmark), checks_table(benchmark)):
        print_table(table, markdown=markdown)
