"""`snellen demo`: three bundled captioners under all three protocols, offline."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.errors import INTERRUPTED

if TYPE_CHECKING:
    from snellen.judges.labelled import JudgeRow
    from snellen.runs.folder import Run

PROTOCOLS = ("reading", "rubric", "direct")
_OPENING = """\
Three captioners describe 15 pictures and answer 55 questions about them.
The embedded judge reads what they wrote: low fidelity, offline, deterministic.
"""


@click.command("demo", epilog="Example: snellen demo --out demo-out")
@click.option("--out", default="demo-out", show_default=True, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print summaries and judge rates as JSON.")
def command(out: str, *, as_json: bool) -> int:
    """Evaluate three bundled captioners offline, and see what comes out.

    Real and drawn pictures, the embedded judge, no network, no key, no GPU. The captioners'
    replies were written by looking at the pictures: one thorough, one terse, one careless.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.cli.run import resume_command
    from snellen.tables.judges import fidelity_table
    from snellen.tables.runs import leaderboard

    started = time.monotonic()
    click.echo(_OPENING, err=as_json)
    code = 0
    shown: list[Run] = []
    for protocol in PROTOCOLS:
        runs, worst = evaluate(protocol, Path(out))
        code = max(code, worst)
        if code == INTERRUPTED:
            click.echo(f"resume with: {resume_command(sys.argv)}", err=True)
            return code
        shown += runs
        if not as_json:
            print_table(leaderboard(runs))
    fidelity = measured_once(Path(out) / "fidelity.json")
    if as_json:
        print_json({"runs": [run.summary for run in shown], "embedded_judge": fidelity})
    else:
        print_table(fidelity_table(fidelity))
    report = write_demo_report(shown, Path(out) / "report.html")
    click.echo(next_steps(out, report, time.monotonic() - started), err=as_json)
    return code


def evaluate(protocol: str, out: Path) -> tuple[list[Run], int]:
    """The three captioners' runs of one protocol, and the worst exit code."""
    from snellen.readers.mini import CAPTIONERS, bundled_replies
    from snellen.runs.folder import load_run
    from snellen.runs.plan import make_plan
    from snellen.runs.request import RunRequest
    from snellen.runs.run import execute

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
            replies=file,
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

    from snellen.endpoints.bind import embedded_judge
    from snellen.readers import load_benchmark
    from snellen.runs.folder import read_spec

    path = Path(folder)
    if not (path / "run.json").exists():
        return
    spec = read_spec(path)
    same_judge = spec.judge.model == embedded_judge().version
    same_data = spec.data_digest == load_benchmark(benchmark).digest
    if spec.benchmark == benchmark and not (same_judge and same_data):
        click.echo(f"notice: {path} is of another version and is made anew", err=True)
        shutil.rmtree(path)


def measured_once(file: Path) -> list[JudgeRow]:
    """The embedded judge's measurement, kept in a file for as long as judge and material stay."""
    import msgspec

    from snellen.endpoints.bind import embedded_judge
    from snellen.judges.labelled import JudgeRow, measure
    from snellen.keys import digest
    from snellen.readers.mini import MINI
    from snellen.runs.folder import write_json

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


def write_demo_report(runs: list[Run], path: Path) -> Path | None:
    """The report of the demo's runs; None where figures cannot be drawn."""
    from snellen.errors import MissingExtraError
    from snellen.report.page import write_report

    try:
        write_report(runs, path)
    except MissingExtraError as error:
        click.echo(f"no report: {error.message} ({error.hint})", err=True)
        return None
    return path


def next_steps(out: str, report: Path | None, seconds: float) -> str:
    """What lies where, and what to type next."""
    # The command as it was typed: within `make` the environment is not on the path.
    command = sys.argv[0] if Path(sys.argv[0]).name == "snellen" else "snellen"
    if "/" in command and (found := shutil.which("snellen")) and Path(found).samefile(command):
        command = "snellen"
    command = shlex.quote(command)
    page = f"The report, with every failure and its picture: {report}\n" if report else ""
    return (
        f"Done in {seconds:.0f} s. The runs are in {out}/, one folder each.\n{page}"
        "\nNext:\n"
        f"  {command} show {out}/reading/thorough --by category\n"
        f"  {command} compare {out}/reading/thorough {out}/reading/careless\n"
        f"  {command} run mini --model NAME --api-url http://HOST:PORT/v1 \\\n"
        "      --judge NAME --judge-url http://HOST:PORT/v1 --out runs/mine"
    )
