"""`snellen build`: builds a benchmark from pictures, or goes on building it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from snellen.errors import INTERRUPTED

if TYPE_CHECKING:
    from snellen.builders.counts import DataCounts
    from snellen.builders.rubrics.counts import RubricCounts
    from snellen.builders.rubrics.curating import DomainThreshold
    from snellen.builders.rubrics.discards import DiscardReport
    from snellen.builders.taxonomy import Coverage
    from snellen.construction.build import BuildRequest, Built
    from snellen.construction.files import StageRecord
    from snellen.figures.chart import Chart
    from snellen.tables.table import Cell, Table

KINDS = {
    "capprobe": "Build questions about the regions of pictures.",
    "rubrics": "Build statements that descriptions of pictures have to meet.",
    "perception": "Build questions about what models do not see, from their failures.",
}
PICTURES = (
    "SOURCE is a folder of pictures, annotations (COCO, LVIS), a Parquet file, a list of URLs "
    "(.txt) or hub:OWNER/NAME"
)
SOURCES = {
    "perception": "SOURCE is a result file, or a folder of them: of EvalScope, VLMEvalKit, "
    "lmms-eval, Inspect, or runs of ours"
}


@click.group(
    "build", epilog="Example: snellen build capprobe pictures/ --config build.toml --out b"
)
def command() -> None:
    """Build a benchmark of your own; the same command goes on where the last one stopped."""


def _build_command(kind: str, help_: str) -> click.Command:
    """The command of one kind of benchmark; all kinds have the same options."""

    @click.command(
        kind,
        help=f"{help_}\n\n{SOURCES.get(kind, PICTURES)}; the word `stages` lists the stages. "
        "Without SOURCE, the one that --out was begun with is taken.",
        epilog=f"Example: snellen build {kind} {'results' if kind in SOURCES else 'pictures'}/ "
        "--config build.toml --out chart",
    )
    @click.argument("source", required=False, default="")
    @click.option("--out", metavar="DIR", help="The folder; the same one again goes on.")
    @click.option(
        "--config",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="build.toml: who plays which role, and every threshold.",
    )
    @click.option(
        "--settings",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Named models; ./snellen.toml by default.",
    )
    @click.option("--until", default="", metavar="STAGE", help="Stop after this stage.")
    @click.option("--only", default="", metavar="STAGE", help="Run this stage alone.")
    @click.option(
        "--limit", type=click.IntRange(1), metavar="N", help="The first N inputs of the source."
    )
    @click.option("--seed", type=int, help="Wins over the configuration's.")
    @click.option("--reviewed-only", is_flag=True, help="Leave undecided questions out.")
    @click.option(
        "--max-cost",
        type=click.FloatRange(0),
        metavar="USD",
        help="Stop before this is exceeded; needs prices in the configuration.",
    )
    @click.option(
        "--max-unscored",
        type=click.FloatRange(0, 1),
        default=0.05,
        show_default=True,
        help="Exit with 3 above this share of calls without a usable reply.",
    )
    @click.option(
        "--concurrency",
        type=click.IntRange(1),
        metavar="N",
        help="Calls in flight at each endpoint (64).",
    )
    @click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing.")
    @click.option("--json", "as_json", is_flag=True, help="Print the funnel as JSON.")
    @click.option("--quiet", is_flag=True, help="No progress on stderr.")
    def run(source: str, **words: Any) -> int:
        if source == "stages":
            return list_stages(kind, as_json=words["as_json"])
        request = request_of(kind, source, words)
        if words["dry_run"]:
            return print_forecast(request, as_json=words["as_json"])
        return run_build(request, words)  # fmt: skip

    if kind == "rubrics":
        choices = click.Choice(("after-rewrite", "first-round"))
        help_ = "Whether the first comparison may end the peer review; wins over [golden]."
        click.option("--unanimity", type=choices, help=help_)(run)
    return run


def list_stages(kind: str, *, as_json: bool) -> int:
    """Prints the stages of a kind, in their order."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.pipelines import PIPELINES
    from snellen.tables.table import Table, plain

    pipeline = PIPELINES[kind]
    if as_json:
        print_json([stage.name for stage in pipeline.stages])
        return 0
    rows = tuple(
        (
            f"{number:02d} {stage.name}",
            "keeps some of its rows" if stage.is_filter else "makes rows",
        )
        for number, stage in enumerate(pipeline.stages, 1)
    )
    print_table(Table(f"{kind}: {pipeline.title}", plain("Stage", "Does"), rows))
    return 0


def request_of(kind: str, source: str, words: dict[str, Any]) -> BuildRequest:
    """What the command's options ask for.

    Raises:
        UsageError: there is no --out, or nothing says what to build from.
    """
    from msgspec.structs import replace

    from snellen.builders.options import ReviewOptions
    from snellen.builders.rubrics.options import GoldenOptions
    from snellen.construction.build import BuildRequest
    from snellen.construction.config import BuildConfig, load_config
    from snellen.construction.files import read_record
    from snellen.construction.pipelines import PIPELINES
    from snellen.errors import UsageError
    from snellen.settings import load_settings

    if not words["out"]:
        raise UsageError("no folder to build in", hint="give --out DIR")
    out = Path(words["out"])
    if not source and not (out / "build.json").exists():
        raise UsageError("nothing to build from", hint=SOURCES.get(kind, PICTURES))
    config = load_config(
        words["config"], list(PIPELINES.values()), settings=load_settings(words["settings"])
    )
    options = dict(config.options)
    if words["reviewed_only"]:
        review = options.get(ReviewOptions, ReviewOptions())
        options[ReviewOptions] = replace(review, reviewed_only=True)
    if words.get("unanimity"):
        golden = options.get(GoldenOptions, GoldenOptions())
        try:
            options[GoldenOptions] = replace(golden, unanimity=words["unanimity"])
        except ValueError as error:
            raise UsageError(str(error), hint="see [golden] rounds in the configuration") from error
    seed = config.seed if words["seed"] is None else words["seed"]
    return BuildRequest(
        PIPELINES[kind],
        source or read_record(out).source,
        out,
        BuildConfig(seed, config.roles, options),
        until=words["until"],
        only=words["only"],
        limit=words["limit"],
        max_cost_usd=words["max_cost"],
        concurrency=words["concurrency"],
        max_unscored=words["max_unscored"],
    )


def run_build(request: BuildRequest, words: dict[str, Any]) -> int:
    """Drives a build as a command does: progress, the funnel, hints, and the exit code."""
    from snellen.cli.progress import Progress
    from snellen.cli.run import resume_command
    from snellen.construction.build import build

    progress = None if words["quiet"] else Progress(request.pipeline.kind).show
    try:
        built = asyncio.run(build(request, progress=progress))
    except KeyboardInterrupt:  # before the first call, or after the last
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
        return INTERRUPTED
    show_built(built, as_json=words["as_json"])
    if built.exit_code:
        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
    return built.exit_code


def show_built(built: Built, *, as_json: bool) -> None:
    """Prints the funnel to stdout, and notices and what to do next to stderr."""
    from snellen.cli.printing import print_json, print_table
    from snellen.tables.screen import legible

    for notice in built.notices:
        click.echo(f"notice: {legible(notice)}", err=True)
    if as_json:
        print_json(built.funnel)
    else:
        print_table(funnel_table(built.funnel))
    if built.error is not None:
        click.echo(f"error: {legible(built.error.message)}", err=True)
        if built.error.hint:
            click.echo(f"hint: {legible(built.error.hint)}", err=True)
    elif built.exit_code == 3:
        click.echo("error: more calls than --max-unscored allows gave no usable reply; "
                   "see rejected.jsonl", err=True)  # fmt: skip
    if built.waits:
        click.echo(f"waiting: {built.waits}", err=True)
    elif (built.folder / "benchmark").is_dir() and not built.exit_code:
        click.echo(f"benchmark: {built.folder / 'benchmark'}", err=True)


def funnel_table(funnel: tuple[StageRecord, ...]) -> Table:
    """The funnel as a table: what entered each stage, and what left it."""
    from snellen.tables.table import Column, Format, Table, plain

    titles = ("Stage", "In", "Kept", "Rejected", "Made", "Dropped", "Calls", "Tokens")
    columns = (*plain(*titles), Column("Cost USD", Format(digits=2)))
    rows = tuple(
        (
            row.stage,
            row.entered,
            row.kept,
            row.rejected,
            row.made,
            row.dropped,
            row.calls,
            row.tokens,
            "unknown" if row.cost_usd is None else row.cost_usd,
        )
        for row in funnel
    )
    notes = [
        f"{row.stage}: " + ", ".join(f"{n:,} {reason}" for reason, n in row.reasons.items())
        for row in funnel
        if row.reasons
    ]
    notes += [
        f"{row.stage}: " + ", ".join(f"{name} {n:,}" for name, n in row.counts.items())
        for row in funnel
        if row.counts
    ]
    return Table("Funnel", columns, rows, tuple(notes))


def print_forecast(request: BuildRequest, *, as_json: bool) -> int:
    """Prints what a build would call; the exit code is 0."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.forecast import forecast
    from snellen.tables.table import Column, Format, Number, Table, plain

    found = forecast(request)
    if as_json:
        print_json(found)
        return 0
    rows = tuple(
        (
            one.stage,
            one.role or None,
            Number(one.inputs, remark="" if one.is_counted else "estimated"),
            one.done,
            one.calls,
            one.prompt_tokens,
            one.completion_tokens,
            "unknown" if one.cost_usd is None else one.cost_usd,
        )
        for one in found
    )
    titles = (
        "Stage", "Role", "Inputs", "Done", "Calls", "Prompt tokens", "Completion tokens",
    )  # fmt: skip
    columns = (*plain(*titles), Column("Cost USD", Format(digits=2)))
    notes = ("pictures of 1,200 tokens, replies of usual length, no thinking, nothing asked again",)
    print_table(Table(f"{request.pipeline.kind}: dry run", columns, rows, notes))
    return 0


@command.command("statistics", epilog="Example: snellen build statistics chart --figures figures")
@click.argument("folder", type=click.Path(exists=True, file_okay=False), metavar="DIR")
@click.option(
    "--figures", metavar="OUT", help="Draw domains, categories, capabilities and the map of errors."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def statistics(folder: str, figures: str | None, *, as_json: bool) -> int:
    """Print what the papers print about their data: DIR is being built, or is a benchmark."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.files import read_funnel
    from snellen.construction.perception.statistics import holds_perception
    from snellen.construction.rubrics.statistics import holds_rubrics
    from snellen.construction.statistics import data_counts, label_coverage

    if holds_rubrics(folder):
        return rubric_statistics(folder, figures, as_json=as_json)
    if holds_perception(folder):
        return perception_statistics(folder, figures, as_json=as_json)
    counts, stage = data_counts(folder)
    labels = label_coverage(folder)
    if as_json:
        thin = [] if labels is None else labels[0].thin(labels[1])
        empty = [] if labels is None else labels[0].empty_pairs
        print_json({"counts": counts, "thin_domains": thin, "empty_subdomains": empty})
    else:
        for table in statistics_tables(counts, stage):
            print_table(table)
        if labels is not None:
            print_table(thin_table(*labels))
        funnel = tuple(read_funnel(Path(folder)))
        if funnel:
            print_table(funnel_table(funnel))
    if figures is not None:
        draw_figures(counts, Path(figures))
    return 0


def perception_statistics(folder: str, figures: str | None, *, as_json: bool) -> int:
    """Prints the counts of questions, the agreement of attributors, and the map of errors."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.files import read_funnel
    from snellen.construction.perception.statistics import agreement_of, map_of, perception_counts
    from snellen.construction.pipelines import PIPELINES
    from snellen.figures.data import capability_bars
    from snellen.figures.errors import likeness_chart, mix_chart
    from snellen.tables.perception import agreement_table, map_tables, perception_tables

    counts, stage = perception_counts(folder, PIPELINES["perception"])
    agreed, found = agreement_of(folder), map_of(folder)
    if figures is not None:
        drawn = () if found is None else (likeness_chart(found), mix_chart(found))
        save_charts((capability_bars(counts), *drawn), Path(figures))
    if as_json:
        print_json({"counts": counts, "agreement": agreed, "map": found})
        return 0
    tables = list(perception_tables(counts, stage))
    tables += [agreement_table(agreed)] if agreed is not None else []
    tables += map_tables(found) if found is not None else []
    funnel = tuple(read_funnel(Path(folder)))
    for table in (*tables, *([funnel_table(funnel)] if funnel else [])):
        print_table(table)
    return 0


def rubric_statistics(folder: str, figures: str | None, *, as_json: bool) -> int:
    """Prints the counts of statements, captions and domains, and what was discarded."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.files import read_funnel
    from snellen.construction.pipelines import PIPELINES
    from snellen.construction.rubrics.statistics import discards_of, rubric_counts, thresholds_of
    from snellen.figures.data import rubric_bars

    counts, stage = rubric_counts(folder, PIPELINES["rubrics"])
    thresholds, discards = thresholds_of(folder), discards_of(folder)
    if figures is not None:
        save_charts((rubric_bars(counts),), Path(figures))
    if as_json:
        print_json({"counts": counts, "thresholds": thresholds, "discards": discards})
        return 0
    for table in rubric_tables(counts, stage):
        print_table(table)
    if thresholds:
        print_table(threshold_table(thresholds))
    if discards is not None:
        print_table(discard_table(discards))
    if funnel := tuple(read_funnel(Path(folder))):
        print_table(funnel_table(funnel))
    return 0


def rubric_tables(counts: RubricCounts, stage: str) -> tuple[Table, Table]:
    """What the paper prints of its rubrics: sizes, and images a domain."""
    from snellen.tables.table import RATE, Column, Table, plain

    def ratio(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    def span(pair: tuple[int, int]) -> str:
        return f"{pair[0]} to {pair[1]}"

    sizes = (
        ("Images", f"{counts.images:,}"),
        ("Rubrics", f"{counts.rubrics:,}"),
        ("Rubrics an image", ratio(counts.an_image(counts.rubrics))),
        ("Must-Right an image", ratio(counts.an_image(counts.must_right))),
        ("Must-Right from, to", span(counts.must_right_range)),
        ("Easy-Wrong an image", ratio(counts.an_image(counts.easy_wrong))),
        ("Easy-Wrong from, to", span(counts.easy_wrong_range)),
        ("Words a golden caption", ratio(counts.words_mean)),
        ("Median, most", f"{ratio(counts.words_median)}, {counts.words_most:,}"),
    )
    domains = tuple((name, n, counts.an_image(n)) for name, n in counts.domains.items())
    return (
        Table(f"After {stage}", plain("Count", "Value"), sizes),
        Table(
            "Images by domain",
            (Column("Domain"), Column("Images"), Column("Share", RATE)),
            domains,
        ),
    )


def threshold_table(thresholds: Sequence[DomainThreshold]) -> Table:
    """The threshold of each domain, and how many pictures each other one would keep."""
    from snellen.tables.table import Table, plain

    shown = range(8, 20, 2)
    columns = plain("Domain", "Pictures", "Threshold", "Kept", *(f"At {n}" for n in shown))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.domain, one.pictures, one.threshold, one.kept, *(one.would_keep[n] for n in shown))
        for one in thresholds
    )
    return Table("Thresholds of complexity + informativeness", columns, rows)


def discard_table(report: DiscardReport) -> Table:
    """The pictures on which authors were divided, and how the others differ from all."""
    from snellen.tables.table import RATE, Column, Table

    groups = {
        "all": report.whole,
        **report.domains,
        **{f"{band} complexity": group for band, group in report.complexity.items()},
    }
    rows = tuple(
        (name, group.pictures, group.discarded, group.share) for name, group in groups.items()
    )
    figures = (
        ("complexity, kept minus all", report.complexity_difference),
        ("informativeness, kept minus all", report.informativeness_difference),
        ("share of pictures that would have to change domain", report.mix_distance),
        ("p of a random discard", report.chance),
    )
    notes = tuple(f"{name}: {value:.3f}" for name, value in figures if value is not None)
    columns = (Column("Pictures"), Column("In"), Column("Discarded"), Column("Share", RATE))
    return Table("Discarded for want of unanimity", columns, rows, notes)


def statistics_tables(counts: DataCounts, stage: str) -> tuple[Table, ...]:
    """The counts, the shares of the categories, and the row for a table of benchmarks."""
    from snellen.tables.table import RATE, Column, Format, Table, plain

    ratio = Format(digits=1)
    n_subs = sum(len(subs) for subs in counts.subdomains.values())
    sizes = (
        ("Images", counts.images),
        ("Regions", counts.regions),
        ("Questions", counts.questions),
        ("Regions an image", counts.regions_an_image),
        ("Questions an image", counts.questions_an_image),
        ("Questions a region", counts.questions_a_region),
        ("Domains", len(counts.domains)),
        ("Sub-domains", n_subs),
    )
    categories = tuple(
        (name, n, n / counts.questions if counts.questions else None)
        for name, n in sorted(counts.categories.items(), key=lambda pair: -pair[1])
    )
    row = (
        "this benchmark", counts.images, f"{len(counts.domains)} L1, {n_subs} L2",
        counts.questions_an_image, "yes", "yes",
    )  # fmt: skip
    columns = (
        *plain("Benchmark", "Images", "Domains"),
        Column("Probes/image", ratio),
        *plain("Regions", "Omissions told apart"),
    )
    return (
        Table(f"After {stage}", (Column("Count"), Column("Value", ratio)), sizes),
        Table(
            "Questions by category",
            (*plain("Category", "Questions"), Column("Share", RATE)),
            categories,
        ),
        Table("As a row among benchmarks", columns, (row,)),
    )


def thin_table(labels: Coverage, least: int) -> Table:
    """The domains with few pictures or none, and which of their sub-domains are empty."""
    from snellen.tables.table import Table, plain

    empty: dict[str, list[str]] = {}
    for domain, sub in labels.empty_pairs:
        empty.setdefault(domain, []).append(sub)
    rows = tuple((name, n, len(empty.get(name, ()))) for name, n in labels.thin(least))
    notes = tuple(
        f"{name}: none of {', '.join(subs)}"
        for name, subs in empty.items()
        if labels.l1[name] >= least
    )
    title = f"Domains with fewer than {least} pictures"
    return Table(title, plain("Domain", "Pictures", "Empty sub-domains"), rows, notes)


def draw_figures(counts: DataCounts, out: Path) -> None:
    """Draws the figures of a benchmark of regions."""
    from snellen.figures.data import category_bars, domain_rings

    save_charts((domain_rings(counts), category_bars(counts)), out)


def save_charts(charts: Sequence[Chart | None], out: Path) -> None:
    """Writes charts as SVG and PNG, and says where."""
    from snellen.figures.style import save

    out.mkdir(parents=True, exist_ok=True)
    for chart in charts:
        if chart is None:
            continue
        for kind in ("svg", "png"):
            path = out / f"{chart.name}.{kind}"
            path.write_bytes(save(chart.figure, kind))
            click.echo(f"figure: {path}", err=True)


@command.command("dedup-calibrate", epilog="Example: snellen build dedup-calibrate pairs.jsonl")
@click.argument("pairs", type=click.Path(exists=True, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def dedup_calibrate(pairs: str, *, as_json: bool) -> int:
    """Choose a threshold of deduplication on labelled pairs, with the embedded encoder.

    PAIRS has a row {"a": {"question", "options"}, "b": {...}, "same": true or false} a pair.
    """
    from snellen.builders.dedup import best
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.calibration import calibrate_file
    from snellen.tables.table import RATE, Column, Format, Number, Table

    found = calibrate_file(pairs)
    if as_json:
        print_json({"best": best(found), "thresholds": found})
        return 0
    chosen = best(found)
    rows = tuple(
        (
            Number(one.value, remark="*" if one == chosen else ""),
            one.precision,
            one.recall,
            one.f1,
        )
        for one in found
    )
    rates = (Column(title, RATE) for title in ("Precision", "Recall", "F1"))
    columns = (Column("Above", Format(digits=2)), *rates)
    print_table(Table("Thresholds (* best F1)", columns, rows))
    return 0


@command.command("regions-recall", epilog="Example: snellen build regions-recall chart boxes.json")
@click.argument("folder", type=click.Path(exists=True, file_okay=False), metavar="DIR")
@click.argument("annotations", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="The intersection over union that counts as found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def regions_recall(folder: str, annotations: str, least: float, *, as_json: bool) -> int:
    """Measure how many true boxes (COCO or LVIS annotations) the regions of DIR have found."""
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.calibration import recall_of
    from snellen.tables.table import RATE, Column, Table, plain

    found = recall_of(folder, annotations, least=least)
    if as_json:
        print_json(found)
        return 0
    rows = tuple((name, hit, n, hit / n) for name, (hit, n) in found.by_class.items())
    recall = found.found / found.boxes if found.boxes else None
    whole = ("all", found.found, found.boxes, recall)
    notes = (f"{found.pictures} pictures; {found.without} more are not in the annotations",)
    title = f"Boxes found at an intersection over union of {least:g}"
    columns = (*plain("Class", "Found", "Boxes"), Column("Recall", RATE))
    print_table(Table(title, columns, (whole, *rows), notes))
    return 0


for _kind, _help in KINDS.items():
    command.add_command(_build_command(_kind, _help))
