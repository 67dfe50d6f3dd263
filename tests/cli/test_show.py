"""`snellen show`: the breakdowns of runs that are shown together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worlds.benchmark_files import direct_folder, reading_folder

import snellen
from snellen.cli import cli
from snellen.errors import UsageError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reading run and a direct one in one folder."""
    folder = tmp_path_factory.mktemp("runs")
    for make, replies in ((reading_folder, {"a": "A table."}), (direct_folder, {"0": "two"})):
        name = make.__name__
        bench = make(folder / f"{name}-data")
        snellen.run(str(bench), judge="embedded", replies=replies, out=folder / "out" / name)
    return folder / "out"


def test_a_breakdown_is_printed_for_the_runs_that_have_it(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of several protocols have no dimension in common, and are shown together."""
    cli.main(["show", str(runs), "--by", "category"], standalone_mode=False)
    assert capsys.readouterr().out.count("by category\n") == 1


def test_a_breakdown_that_no_run_has_is_refused_before_anything_is_printed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the dimensions that there are."""
    with pytest.raises(UsageError, match="no breakdown by colour in any of the 2 runs") as caught:
        cli.main(["show", str(runs), "--by", "colour"], standalone_mode=False)
    assert "category" in caught.value.hint
    assert capsys.readouterr().out == ""
