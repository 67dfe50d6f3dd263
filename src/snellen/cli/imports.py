"""`snellen import`: other tools' results as runs, or their models' outputs to judge here."""

from __future__ import annotations

import click

REPLY_FORMATS = ("perception_bench", "captionqa")
DECISION_FORMATS = ("label-studio", "argilla")
RUN_FORMATS = ("evalscope", "vlmevalkit", "lmms-eval", "inspect")


@click.command(
    "import",
    epilog="Example: snellen import lmms-eval logs/results --out runs/theirs",
)
@click.argument(
    "format_name",
    metavar="FORMAT",
    type=click.Choice(RUN_FORMATS + REPLY_FORMATS + DECISION_FORMATS),
)
@click.argument("path", type=click.Path(exists=True))
@click.option(
    "--out", required=True, metavar="DIR", help="The run folder, one for several runs, or a build."
)
@click.option(
    "--allow-outside",
    multiple=True,
    metavar="DIR",
    help="A folder beside the results whose pictures may be copied. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(
    format_name: str, path: str, *, out: str, allow_outside: tuple[str, ...], as_json: bool
) -> None:
    """Read the results of another tool at PATH, a file or a folder.

    evalscope, vlmevalkit, lmms-eval, inspect: a run for each model and benchmark, with the tool's
    own scores as verdicts. `show`, `compare` and `rejudge` work on it.

    perception_bench, captionqa: the model's outputs alone, as replies for `snellen run --replies`:
    the official PerceptionBench_MODEL.jsonl, whose judgements are left behind, or a caption file,
    JSON {id: caption}.

    label-studio, argilla: decisions of people on the review queue of the build folder DIR.
    """
    if format_name in DECISION_FORMATS:
        from pathlib import Path

        from snellen.construction.review_exchange import import_decisions

        n = import_decisions(format_name, Path(path), Path(out))
        click.echo(f"{n} decisions are new in {out}; `snellen review stats {out}` counts them")
        return
    if format_name in RUN_FORMATS:
        _import_runs(format_name, path, out, allow_outside, as_json=as_json)
    else:
        _import_replies(format_name, path, out, as_json=as_json)


def _import_runs(
    format_name: str, path: str, out: str, allowed: tuple[str, ...], *, as_json: bool
) -> None:
    from snellen.cli.printing import print_json
    from snellen.interchange.runs_from import import_runs

    done = import_runs(format_name, path, out, allowed=allowed)
    for one in done:
        for notice in one.notices:
            click.echo(f"notice: {one.folder}: {notice}", err=True)
    if as_json:
        print_json(done)
        return
    for one in done:
        click.echo(str(one.folder))
    click.echo(f"see them with: snellen show {out}", err=True)


def _import_replies(format_name: str, path: str, out: str, *, as_json: bool) -> None:
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
