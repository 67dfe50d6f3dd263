"""`snellen judges`: how far judges that read the same replies agree."""

from __future__ import annotations

import click


@click.command("judges", epilog="Example: snellen judges out/qwen out/qwen-gpt-oss --json")
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--metric", default="", metavar="NAME", help="The score to compare; the headline.")
@click.option("--json", "as_json", is_flag=True, help="Print the study as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(runs: tuple[str, ...], *, metric: str, as_json: bool, markdown: bool) -> None:
    """Compare judges on the same replies: scores, order, agreement, kappa, abstention.

    RUNS are runs of one benchmark, each model's under two judges or more; `snellen rejudge` makes
    them. Runs whose items or replies differ are refused.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.judges import reliability
    from snellen.runs.folder import find_runs, load_run
    from snellen.tables import judges as tables

    study = reliability.study_judges([load_run(path) for path in find_runs(runs)], metric=metric)
    if as_json:
        print_json(study)
        return
    for make in (tables.scores_table, tables.pairs_table, tables.abstentions_table):
        print_table(make(study), markdown=markdown)
    click.echo(tables.study_sentence(study))
