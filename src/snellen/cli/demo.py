"""`snellen demo`: three bundled captioners under all three protocols, offline."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from snellen.analysis.judgecheck import JudgeRow
    from snellen.results import Run


@click.command("demo", epilog="Example: snellen demo --out demo-out")
@click.option("--out", default="demo-out", show_default=True, metavar="DIR")
def command(out: str) -> int:
    """Evaluate three bundled captioners offline, and see what comes out.

    Real and drawn pictures, the embedded judge, no network, no key, no GPU. The captioners'
    replies were written by looking at the pictures: one thorough, one terse, one careless.
    """
    from snellen.cli.printing import print_table
    from snellen.cli.run import INTERRUPTED, resume_command
    from snellen.tables import leaderboard

    started = time.monotonic()
    click.echo("Three captioners describe 15 pictures and answer 55 questions about them.")
    click.echo("The embedded judge reads what they wrote: low fidelity, offline, deterministic.\n")
    code = 0
    folders: list[Path] = []
    for protocol in ("reading", "rubric", "direct"):
        runs, worst = evaluate(protocol, Path(out))
        code = max(code, worst)
        if code == INTERRUPTED:
            click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
            return code
        folders += [run.folder for run in runs]
        print_table(leaderboard(runs))
    print_fidelity(Path(out) / "fidelity.json")
    report = write_demo_report(folders, Path(out) / "report.html")
    say_next(out, report, time.monotonic() - started)
    return code


def evaluate(protocol: str, out: Path) -> tuple[list[Run], int]:
    """The three captioners' runs of one protocol, and the worst exit code."""
    from snellen.bundle import CAPTIONERS, bundled_replies
    from snellen.cli.run import INTERRUPTED
    from snellen.flows import given_rows
    from snellen.planning import RunRequest, make_plan
    from snellen.readers.replies import load_replies
    from snellen.results import load_run
    from snellen.runs import execute

    runs, worst = [], 0
    for captioner in CAPTIONERS:
        benchmark = f"mini-{protocol}"
        file = bundled_replies(captioner, benchmark)
        assert file is not None
        request = RunRequest(
            benchmark,
            out / protocol / captioner,
            model=captioner,
            judge="embedded",
            replies=given_rows(load_replies(file)),
            cache=False,
        )
        start_anew_if_outdated(request.out, benchmark)
        finished = asyncio.run(execute(make_plan(request)))
        runs.append(load_run(finished.folder))
        worst = max(worst, finished.exit_code)
        if worst == INTERRUPTED:
            break
    return runs, worst


def start_anew_if_outdated(folder: str | Path, benchmark: str) -> None:
    """Removes a demo run that another version of the judge or the benchmark has made."""
    import shutil

    from snellen.planning import embedded_judge
    from snellen.readers import load_benchmark
    from snellen.results import read_spec

    path = Path(folder)
    if not (path / "run.json").exists():
        return
    spec = read_spec(path)
    same_judge = spec.judge.model == embedded_judge().version
    same_data = spec.data_digest == load_benchmark(benchmark).digest
    if spec.benchmark == benchmark and not (same_judge and same_data):
        click.echo(f"notice: {path} is of another version and is made anew", err=True)
        shutil.rmtree(path)


def print_fidelity(file: Path) -> None:
    """Prints how good the embedded judge is, measured on labels of a perfect judge."""
    from snellen.cli.printing import print_table
    from snellen.tables import fidelity_table

    print_table(fidelity_table(measured_once(file)))


def measured_once(file: Path) -> list[JudgeRow]:
    """The embedded judge's measurement, kept in a file for as long as judge and material stay."""
    import msgspec

    from snellen.analysis.judgecheck import JudgeRow, measure
    from snellen.bundle import MINI
    from snellen.keys import digest
    from snellen.planning import embedded_judge
    from snellen.results import write_json

    judge = embedded_judge()
    material = sorted(MINI.rglob("*.jsonl"))
    version = digest(judge.version + "".join(digest(path.read_bytes()) for path in material))
    if file.exists():
        kept = msgspec.json.decode(file.read_bytes())
        if kept.get("version") == version:
            return msgspec.convert(kept["rows"], list[JudgeRow])
    rows = asyncio.run(measure(judge, MINI))
    write_json(file, {"schema": 1, "version": version, "rows": rows})
    return rows


def write_demo_report(folders: list[Path], path: Path) -> Path | None:
    """The report of the demo's runs; None where figures cannot be drawn."""
    from snellen.errors import MissingExtraError
    from snellen.report.page import write_report
    from snellen.results import load_run

    try:
        write_report([load_run(folder) for folder in folders], path)
    except MissingExtraError as error:
        click.echo(f"no report: {error.message} ({error.hint})", err=True)
        return None
    return path


def say_next(out: str, report: Path | None, seconds: float) -> None:
    """What lies where, and what to type next."""
    click.echo(f"Done in {seconds:.0f} s. The runs are in {out}/, one folder each.")
    if report is not None:
        click.echo(f"The report, with every failure and its picture: {report}")
    click.echo(
        "\nNext:\n"
        f"  snellen show {out}/reading/thorough --by category\n"
        f"  snellen compare {out}/reading/thorough {out}/reading/careless\n"
        "  snellen run mini --model NAME --api-url http://HOST:PORT/v1 \\\n"
        "      --judge NAME --judge-url http://HOST:PORT/v1 --out runs/mine"
    )
