"""Run folders, read and written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.compared_runs import bundled, write_run

from snellen.errors import RunFolderError
from snellen.runs.folder import find_runs, load_run, write_json
from snellen.runs.spec import SCHEMA


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a bundled run."""
    return write_run(bundled("terse"), tmp_path / "runs" / "terse")


def test_a_folder_of_a_newer_version_is_refused(folder: Path) -> None:
    """Its numbers could mean something else."""
    spec = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    write_json(folder / "run.json", spec | {"schema": SCHEMA + 1})
    with pytest.raises(RunFolderError, match=f"has schema {SCHEMA + 1}") as caught:
        load_run(folder)
    assert caught.value.hint == "update snellen"


def test_items_that_are_not_of_the_run_are_left_out(folder: Path) -> None:
    """What counts are the items that `run.json` names."""
    run = load_run(folder)
    kept = dict(list(run.spec.items.items())[:2])
    write_json(folder / "run.json", replace(run.spec, items=kept))
    assert [item.id for item in load_run(folder).items] == list(kept)


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up half-way leaves the old file as it was."""
    file = tmp_path / "summary.json"
    write_json(file, {"n": 1})

    def full(part: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_json(file, {"n": 2})
    assert json.loads(file.read_text(encoding="utf-8")) == {"n": 1}


def test_runs_are_found_below_a_folder(folder: Path) -> None:
    """A path is a run, or holds some, in the order of their names."""
    other = write_run(bundled("careless"), folder.parent / "careless")
    assert find_runs((folder.parent,)) == [other, folder]
    assert find_runs((folder, other)) == [folder, other]
    with pytest.raises(RunFolderError, match="holds no run"):
        find_runs((folder.parent.parent / "none",))
