"""`snellen align`: whether runs order models as outside ratings do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from snellen.cli.options import JUDGE, GroupedCommand, takes_request
from snellen.errors import UsageError
from snellen.runs.request import RunRequest

if TYPE_CHECKING:
    from snellen.runs.folder import Run
    from snellen.studies.alignment import Alignment, Scores


@click.command(
    "align",
    cls=GroupedCommand,
    epilog="Example: snellen align out/qwen out/kimi out/glm --external elo.csv",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--external",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Ratings: CSV or JSON of model name and rating.",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this. Repeatable.")
@click.option(
    "--overlap/--no-overlap",
    default=True,
    help="Also BLEU, ROUGE-L, METEOR, CIDEr and embedding similarity, where there are golden "
    "captions (on).",
)
@click.option("--scalar", is_flag=True, help="Also a one-to-ten judge; needs --judge.")
@takes_request(*JUDGE, "config", "cache")
@click.option(
    "--figures",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also draw the metrics named by --metric, or the headline, as PNG, SVG and PDF.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the alignment as JSON.")
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
def command(
    request: RunRequest,
    *,
    runs: tuple[str, ...],
    external: str,
    metrics: tuple[str, ...],
    overlap: bool,
    scalar: bool,
    figures: str | None,
    as_json: bool,
    markdown: bool,
) -> None:
    """Correlate runs of several models with outside ratings, such as arena ratings.

    One run a model, three models or more. Every metric gets Pearson's, Spearman's and Kendall's
    coefficient with an interval and a permutation p value. With few models the intervals are wide:
    five models at r = 0.916 leave 0.17 to 0.99.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.runs.folder import find_runs, load_run
    from snellen.studies import alignment
    from snellen.tables.studies import alignment_scores_table, alignment_table

    if request.judge and not scalar:
        raise UsageError(
            "a judge is asked for one-to-ten ratings only",
            hint="add --scalar, or leave --judge out",
        )
    if request.judge_prompt:
        raise UsageError(
            "the one-to-ten judge has a prompt of its own", hint="leave --judge-prompt out"
        )
    loaded = [load_run(path) for path in find_runs(runs)]
    ratings = alignment.read_ratings(external)
    alignment.check_runs(loaded)
    more = overlap_scores(loaded, metrics) if overlap else {}
    if scalar:
        more[alignment.SCALAR] = asyncio.run(scalar_scores(loaded, request))
    found = alignment.align_runs(loaded, ratings, metrics=metrics, more=more)
    if figures:
        draw(found, metrics or (loaded[0].protocol.headline,), figures)
    if as_json:
        print_json(found)
        return
    for table in (alignment_table(found), alignment_scores_table(found)):
        print_table(table, markdown=markdown)


def draw(found: Alignment, metrics: Sequence[str], folder: str) -> None:
    """Writes a scatter of each metric against the ratings."""
    from pathlib import Path

    from snellen.figures.selection import write_charts
    from snellen.figures.study_charts import alignment_chart

    charts = [alignment_chart(found, name) for name in metrics]
    for file in write_charts(charts, Path(folder)):
        click.echo(f"figure: {file}", err=True)


def overlap_scores(runs: Sequence[Run], metrics: Sequence[str]) -> dict[str, Scores]:
    """Overlap with golden captions, where there are any; all measures, or those in `metrics`."""
    from snellen.errors import MissingExtraError
    from snellen.studies import alignment
    from snellen.studies.overlap import MEASURES

    found: dict[str, Scores] = {}
    if not all(alignment.golden_pairs(run) for run in runs):
        return found
    for name in MEASURES:
        if metrics and name not in metrics:
            continue
        try:
            found |= alignment.overlap_scores(runs, [name])
        except MissingExtraError as error:
            click.echo(f"notice: no {name}: {error.message}; {error.hint}", err=True)
    return found


async def scalar_scores(runs: Sequence[Run], request: RunRequest) -> dict[str, float]:
    """The mean rating of each run by the one-to-ten judge, NaN where it gave none."""
    from snellen.endpoints.bind import EMBEDDED
    from snellen.judges.scalar import rate_run
    from snellen.runs.plan import bind_judges, open_cache
    from snellen.runs.rejudge import stored_benchmark
    from snellen.settings import load_settings

    if request.judge in ("", EMBEDDED):
        raise UsageError(
            "the one-to-ten judge must be a language model",
            hint="give --judge NAME --judge-url URL with --scalar",
        )
    settings = load_settings(request.config)
    binding, *others = bind_judges(request, stored_benchmark(runs[0]), settings)
    if others:
        raise UsageError("one judge is needed here, not a panel", hint="give --judge once")
    cache = open_cache(request, settings)
    means: dict[str, float] = {}
    try:
        for run in runs:
            ratings = await rate_run(run, binding, cache=cache)
            means[run.name] = float("nan") if ratings.mean is None else ratings.mean
            if ratings.n_unscored:
                click.echo(f"notice: {run.name}: {ratings.n_unscored} replies unrated", err=True)
    finally:
        await binding.caller.close()
        if cache is not None:
            cache.close()
    return means
