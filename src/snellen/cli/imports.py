"""`snellen import`: what other tools' models said, as replies to judge here."""

from __future__ import annotations

import click

FORMATS = ("perception_bench", "captionqa")


@click.command(
    "import",
    epilog="Example: snellen import perception_bench results/PerceptionBench_m.jsonl --out m",
)
@click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option("--out", required=True, metavar="DIR", help="The folder for replies.jsonl.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(format_name: str, path: str, *, out: str, as_json: bool) -> None:
    """Read the model outputs of another tool's file PATH as replies for `snellen run --replies`.

    perception_bench: the official PerceptionBench_MODEL.jsonl; its judgements are left behind.
    captionqa: a caption file, JSON {id: caption}.
    """
    from snellen.cli.printing import print_json
    from snellen.interchange.files import import_replies

    done = import_replies(format_name, path, out)
    if done.n_null:
        click.echo(
            f"notice: {done.n_null} of {done.n} replies are null: calls that failed, which will "
            "be unscored",
            err=True,
        )
    if as_json:
        print_json({"file": str(done.file), "n": done.n, "null": done.n_null, "model": done.model})
        return
    click.echo(str(done.file))
    named = f" --model {done.model}" if done.model else ""
    click.echo(
        f"judge them with: snellen run {format_name} --replies {done.file}{named} --judge NAME "
        "--judge-url URL --out DIR",
        err=True,
    )
