"""Run folders that a stranger may have made: refused in one line, no other file touched."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.compared_runs import bundled, write_run
from tests.worlds.report_runs import picture

from snellen.engine.journal import AppendFile, FolderLock, read_calls
from snellen.errors import DataError, ImageError, RunFolderError
from snellen.pictures.prepare import open_upright
from snellen.runs.folder import load_run, write_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a bundled run."""
    return write_run(bundled("terse"), tmp_path / "run")


def test_a_picture_that_is_another_file_is_not_shown(tmp_path: Path) -> None:
    """A row may name any file of this machine: its digest says that the run saw another."""
    image = picture(tmp_path)
    assert open_upright(image).size
    other = replace(picture(tmp_path, "blue", "blue"), digest=image.digest)
    with pytest.raises(ImageError, match="another picture than the recorded one"):
        open_upright(other)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "items.jsonl", "verdicts.jsonl"])
def test_a_pipe_is_refused_and_not_waited_for(folder: Path, name: str) -> None:
    """Opening a pipe that nobody writes to would never end."""
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises((RunFolderError, DataError), match="cannot be read"):
        load_run(folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "verdicts.jsonl"])
def test_deeply_nested_json_is_refused(folder: Path, name: str) -> None:
    """A thousand levels are no run, and no traceback."""
    (folder / name).write_text("[" * 5000 + "]" * 5000 + "\n", encoding="utf-8")
    with pytest.raises((RunFolderError, DataError)):
        load_run(folder)


def test_a_summary_without_metrics_is_refused(folder: Path) -> None:
    """The line names the file and the field."""
    file = folder / "summary.json"
    said = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    said.pop("metrics", None)
    file.write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"summary\.json cannot be read"):
        load_run(folder)


def test_a_million_repeats_are_refused(folder: Path) -> None:
    """They would be a million rows an item."""
    spec = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    write_json(folder / "run.json", spec | {"repeats": 10**6})
    with pytest.raises(RunFolderError, match="1000000 repeats"):
        load_run(folder)


def test_links_do_not_lead_writes_elsewhere(tmp_path: Path) -> None:
    """The file that a link in the folder names stays as it is."""
    theirs = tmp_path / "theirs"
    theirs.write_text("precious\n", encoding="utf-8")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json.part", ".lock", "calls.jsonl"):
        (folder / name).symlink_to(theirs)
    write_json(folder / "run.json", {"a": 1})
    with pytest.raises(RunFolderError, match=r"\.lock is a link"):
        FolderLock(folder)
    with pytest.raises(RunFolderError, match=r"calls\.jsonl is a link"):
        AppendFile(folder / "calls.jsonl")
    assert theirs.read_text(encoding="utf-8") == "precious\n"
    assert read_calls(tmp_path / "none.jsonl") == {}
