"""`snellen export`: runs in the formats of other tools."""

from __future__ import annotations

import click

FORMATS = (
    "perception_bench", "captionqa", "replies", "evalscope", "lmms-eval", "inspect",
    "every-eval-ever", "model-card", "label-studio", "argilla",
)  # fmt: skip


@click.command("export", epilog="Example: snellen export perception_bench out/qwen --out results")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--out", required=True, metavar="PATH", help="A folder, or the file where the format has one."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(format_name: str, run: str, *, out: str, as_json: bool) -> None:
    """Write RUN in the format of another tool.

    perception_bench: the official PerceptionBench_MODEL.jsonl and _scores.json. captionqa: a
    caption file, JSON {id: caption}. replies: JSON {id: text} of any run, for --replies.

    evalscope: a report. lmms-eval: results and samples. inspect: a log, the file PATH, which
    `inspect view` opens. every-eval-ever: results and samples of that schema. model-card: a YAML
    block with the results for the card of a model, the file PATH.

    label-studio, argilla: the review queue of a build folder, given in place of RUN, as tasks for
    people who review there; `snellen import` takes their decisions.
    """
    from pathlib import Path

    from snellen.cli.printing import print_json
    from snellen.construction.review_exchange import write_argilla, write_label_studio
    from snellen.interchange.files import export_run
    from snellen.runs.folder import load_run

    queues = {"label-studio": write_label_studio, "argilla": write_argilla}
    if format_name in queues:
        done = queues[format_name](Path(run), Path(out))
    else:
        done = export_run(format_name, load_run(run), out)
    for notice in done.notices:
        click.echo(f"notice: {notice}", err=True)
    if as_json:
        print_json({"files": [str(f) for f in done.files], "n": done.n, "notices": done.notices})
        return
    for file in done.files:
        click.echo(str(file))
