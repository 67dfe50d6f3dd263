"""The command where its output is closed, full or no longer read, and where it is interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.benchmark_files import reading_folder

import snellen
from snellen.cli import cli
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, Plan, execute

RUN = [
    sys.executable, "-m", "snellen", "run", "mini-direct", "--replies", "terse", "--limit", "2",
    "--judge", "embedded", "--out",
]  # fmt: skip


@pytest.mark.slow
def test_closed_streams_cost_nothing(tmp_path: Path) -> None:
    """The run ends well, and no file of it takes the number of a closed stream."""
    out = tmp_path / "run"
    done = subprocess.run(
        ["bash", "-c", '"$@" <&- >&- 2>&-', "bash", *RUN, str(out)],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert json.loads((out / "summary.json").read_text("utf-8"))["status"] == "complete"
    rows = (out / "calls.jsonl").read_text("utf-8").splitlines()
    assert all(isinstance(json.loads(row), dict) for row in rows)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("words", [["data", "list"], ["--help"]])
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    """What the output goes to has no room left."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "snellen", *words],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "error: the output: No space left on device\n"


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    """As in `snellen data list | head -0`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "snellen", "data", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate()
    assert (process.returncode, told) == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_during_the_start_says_how_to_go_on(name: str, tmp_path: Path) -> None:
    """While the benchmark is still being read."""
    line = ["snellen", "run", "mini-direct", "--replies", "terse", "--judge", "embedded"]
    code = (
        "import signal, sys, snellen.runs.plan as plan\n"
        f"plan.load_benchmark = lambda *a, **k: signal.raise_signal(signal.{name})\n"
        f"sys.argv = {[*line, '--out', str(tmp_path / 'run')]!r}\n"
        "from snellen.__main__ import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.strip() == f"resume with: {' '.join(line)} --out {tmp_path / 'run'}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["demo", "lengths", "run"])
def test_an_interrupt_ends_a_command_of_several_runs(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C starts no run that has not begun, and the way to go on is told once."""
    done: list[Path] = []

    async def interrupted(plan: Plan, **_more: object) -> Finished:
        done.append(plan.out)
        return replace(await execute(plan), exit_code=130)

    out = str(tmp_path / "out")
    replies = {"a": "A table. Two cups.", "b": "A shelf. Two cups."}
    if command == "lengths":
        snellen.run(
            str(reading_folder(tmp_path / "bench")),
            judge="embedded",
            replies=replies,
            out=tmp_path / "run",
        )
    words = {
        "demo": ["demo", "--out", out],
        "lengths": ["lengths", str(tmp_path / "run"), "--judge", "embedded", "--out", out],
        "run": ["run", "mini", "--replies", "terse", "--judge", "embedded", "--out", out],
    }[command]
    monkeypatch.setattr("snellen.runs.run.execute", interrupted)
    monkeypatch.setattr("snellen.runs.plan.make_plan", limited)
    assert cli.main(words, standalone_mode=False) == 130
    assert len(done) == (3 if command == "run" else 1)  # those of `run` begin side by side
    assert capsys.readouterr().err.count("resume with: ") == 1


def limited(request: RunRequest) -> Plan:
    """A plan of the first item only."""
    return make_plan(replace(request, limit=1))
