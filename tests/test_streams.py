"""The command where its output is closed, full or no longer read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = [
    sys.executable, "-m", "snellen", "run", "mini-direct", "--replies", "terse", "--limit", "2",
    "--judge", "embedded", "--no-cache", "--out",
]  # fmt: skip


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_costs_nothing(closed: str, tmp_path: Path) -> None:
    """The run ends well, and no file of it takes the number of the closed stream."""
    out = tmp_path / "run"
    done = subprocess.run(
        ["bash", "-c", f'"$@" {closed}', "bash", *RUN, str(out)],
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
