"""`snellen merge`: the folders of shards as one run."""

from __future__ import annotations

import click

from snellen.runs.request import DEFAULT_MAX_UNSCORED


@click.command("merge", epilog="Example: snellen merge out/shards --out out/whole")
@click.argument("folders", nargs=-1, required=True)
@click.option("--out", required=True, metavar="DIR", help="The new run folder.")
@click.option(
    "--max-unscored",
    type=click.FloatRange(0, 1),
    default=DEFAULT_MAX_UNSCORED,
    show_default=True,
    metavar="SHARE",
    help="Exit with 3 above this share of unscored probes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(folders: tuple[str, ...], *, out: str, max_unscored: float, as_json: bool) -> int:
    """Unite the folders of shards into one run.

    FOLDERS are run folders, folders that hold some, or addresses that fsspec knows. A call that
    is in two folders is taken once; the same place with another request is refused. The exit code
    is 3 where shards are missing or not finished.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.fleet.merge import merge
    from snellen.tables.runs import counts_table, leaderboard
    from snellen.tables.screen import legible

    merged = merge(folders, out)
    counts = merged.summary.counts
    if as_json:
        print_json(merged.summary)
    else:
        print_table(leaderboard([merged.run]))
        if counts.unscored or counts.scored_by_reason:
            print_table(counts_table([merged.run]))
    for notice in merged.notices():
        click.echo(f"notice: {legible(notice)}", err=True)
    click.echo(f"run folder: {out} ({merged.n_calls:,} calls)", err=True)
    too_much = counts.probes and counts.unscored / counts.probes > max_unscored
    return 3 if too_much or merged.summary.status != "complete" else 0
