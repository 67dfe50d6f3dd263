"""`snellen export`: runs in the formats of other tools."""

from __future__ import annotations

import click

FORMATS = ("perception_bench", "captionqa", "replies")


@click.command("export", epilog="Example: snellen export perception_bench out/qwen --out results")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--out", required=True, metavar="PATH", help="A folder for perception_bench, else a file."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(format_name: str, run: str, *, out: str, as_json: bool) -> None:
    """Write RUN in the format of another tool.

    perception_bench: the official PerceptionBench_MODEL.jsonl and _scores.json. captionqa: a
    caption file, JSON {id: caption}. replies: JSON {id: text} of any run, for --replies.
    """
    from snellen.cli.printing import print_json
    from snellen.interchange.files import export_run
    from snellen.runs.folder import load_run

    done = export_run(format_name, load_run(run), out)
    for notice in done.notices:
        click.echo(f"notice: {notice}", err=True)
    if as_json:
        print_json({"files": [str(f) for f in done.files], "n": done.n, "notices": done.notices})
        return
    for file in done.files:
        click.echo(str(file))
