"""`snellen plan`: from a benchmark, from a pilot, from two runs."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from tests.worlds.compared_runs import bundled, write_run

from snellen.cli import cli


def planned(*words: str) -> str:
    """What the command prints."""
    result = CliRunner().invoke(cli, ["plan", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_benchmark_is_planned_with_stated_assumptions() -> None:
    """Without a pilot the table says what is assumed, and the sentence what is needed."""
    said = planned("mini-reading", "--difference", "0.02", "--images", "346")
    assert "assumed: rate 0.7" in said
    assert "346" in said
    assert "a difference of 2 points needs " in said


def test_two_runs_are_a_pilot_of_their_difference(tmp_path: Path) -> None:
    """With two runs nothing is assumed; JSON holds pilot, reach and worth."""
    folders = [str(write_run(bundled(name), tmp_path / name)) for name in ("thorough", "careless")]
    assert "assumed" not in planned(*folders)
    found = json.loads(planned(*folders, "--json"))
    assert found["pilot"]["images"] == 15
    assert {row["images"] for row in found["reach"]} >= {15, 100}
    assert all(one["calls"] > 0 for one in found["worth"])


def test_what_cannot_be_planned_is_one_line(tmp_path: Path) -> None:
    """Assumptions beside a pilot, and a benchmark with a second run, are refused."""
    folder = str(write_run(bundled("terse"), tmp_path / "terse"))
    for words in ([folder, "--rate", "0.5"], ["mini-reading", folder]):
        result = CliRunner().invoke(cli, ["plan", *words])
        assert result.exit_code != 0
        assert "Traceback" not in result.output
