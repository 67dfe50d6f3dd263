"""`snellen samples`: one row a sample and probe, as a file."""

from __future__ import annotations

import click


@click.command("samples", epilog="Example: snellen samples out/qwen --out samples.csv")
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="Where the rows go; .csv, .jsonl or .parquet at its end says the format.",
)
@click.option(
    "--items",
    type=click.Choice(["all", "failed", "unscored"]),
    default="all",
    show_default=True,
    help="Which samples: failed ones were scored and are not right.",
)
def command(run: str, *, out: str, items: str) -> None:
    """Write one row a sample and probe: question, reference, reply, verdict, reason, tokens.

    CSV has control characters spelled out, and an apostrophe before a text that a spreadsheet
    would run as a formula; JSON-lines and Parquet hold texts as they are.
    """
    from snellen.runs.folder import load_run
    from snellen.tables.samples import chosen, write_samples
    from snellen.tables.table import counted

    n = write_samples(chosen(load_run(run).samples(), items), out)
    click.echo(f"written: {out} ({counted(n, 'row')})", err=True)
