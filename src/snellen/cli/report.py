"""`snellen report`: one HTML page about runs, with figures and tables as files if wanted."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "report",
    epilog="Example: snellen report out/reading out/rubric --out report.html --figures figures",
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The page; one file that needs no network.",
)
@click.option(
    "--figures",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also write every figure there, as PNG, SVG and PDF.",
)
@click.option(
    "--tables",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also write every table there, as Markdown, CSV and LaTeX.",
)
@click.option(
    "--gallery",
    type=click.IntRange(0),
    default=40,
    show_default=True,
    metavar="N",
    help="Failures shown of each run.",
)
@click.option("--no-pictures", is_flag=True, help="Leave the pictures of failures out.")
@click.option(
    "--data",
    type=click.Path(exists=True),
    metavar="PATH",
    help="The benchmark's folder, to frame the regions that questions are about.",
)
def command(
    runs: tuple[str, ...],
    *,
    out: str,
    figures: str | None,
    tables: str | None,
    gallery: int,
    no_pictures: bool,
    data: str | None,
) -> None:
    """Write one self-contained HTML page: tables, figures, failures with pictures."""
    from snellen.report.page import ReportOptions, bundled_regions, regions_of, write_report
    from snellen.runs.folder import find_runs, load_run

    loaded = [load_run(path) for path in find_runs(runs)]
    regions = regions_of(data) if data is not None else bundled_regions(loaded)
    written = write_report(
        loaded,
        Path(out),
        options=ReportOptions(gallery=gallery, pictures=not no_pictures, regions=regions),
        figures=None if figures is None else Path(figures),
        tables_to=None if tables is None else Path(tables),
    )
    click.echo(str(written[0]))
    if len(written) > 1:
        click.echo(f"and {len(written) - 1} files of figures and tables", err=True)
