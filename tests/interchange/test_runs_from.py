"""Results of other tools as runs: the same numbers as the tool prints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import snellen
from snellen.cli import cli
from snellen.errors import SnellenError
from snellen.interchange.runs_from import import_runs

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
# What the tools themselves printed for these files.
PRINTED = {
    ("evalscope", "evalscope"): 1 / 3,
    ("lmms-eval", "lmms_eval"): 0.5,
    ("vlmevalkit", "vlmevalkit"): 1 / 3,
    ("inspect", "inspect/colours.json"): 1 / 3,
    ("inspect", "inspect/colours.eval"): 1 / 3,
}


@pytest.mark.parametrize(("name", "place"), PRINTED)
def test_a_run_has_the_number_that_the_tool_printed(tmp_path: Path, name: str, place: str) -> None:
    [done] = import_runs(name, FOREIGN / place, tmp_path / "run")
    assert done.accuracy == pytest.approx(PRINTED[name, place], abs=1e-4)
    run = snellen.load_run(done.folder)
    assert run.summary is not None
    assert run.summary.metrics["accuracy"].value == done.accuracy
    assert len(run.items) == done.n
    for item in run.items:
        assert all(Path(image.path).is_relative_to(tmp_path) for image in item.images)


def test_an_imported_run_is_shown_compared_and_judged_again(tmp_path: Path) -> None:
    """All commands take it as one of ours."""
    a, b = tmp_path / "a", tmp_path / "b"
    for out in (a, b):
        done = CliRunner().invoke(
            cli, ["import", "lmms-eval", str(FOREIGN / "lmms_eval"), "--out", str(out)]
        )
        assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(cli, ["show", str(a), "--json"])
    assert json.loads(shown.output)[0]["metrics"]["accuracy"]["value"] == 0.5
    assert snellen.compare([a, b]).metric("accuracy").pairs[0].difference == 0.0
    again = CliRunner().invoke(
        cli, ["rejudge", str(a), "--judge", "exact", "--out", str(tmp_path / "again"), "--quiet"]
    )
    assert again.exit_code in (0, 3), again.output
    judged = snellen.load_run(tmp_path / "again")
    assert judged.spec.judge.name == "exact"
    assert len(judged.replies) == 2


def test_several_models_go_to_folders_of_their_own(tmp_path: Path) -> None:
    source = tmp_path / "results"
    shutil.copytree(FOREIGN / "lmms_eval", source)
    shutil.copytree(source / "seer-1", source / "seer-2")
    for file in (source / "seer-2").iterdir():
        file.write_text(file.read_text().replace("seer-1", "seer-2"))
    done = import_runs("lmms-eval", source, tmp_path / "out")
    models = {snellen.load_run(one.folder).spec.model.name for one in done}
    assert len(done) == len(models) == len({one.folder for one in done})


def test_a_sample_that_stands_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnellenError, match="stands twice"):
        import_runs("inspect", FOREIGN / "inspect", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_bad_row_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    source = tmp_path / "seer-1"
    shutil.copytree(FOREIGN / "lmms_eval" / "seer-1", source)
    file = next(source.glob("*samples*.jsonl"))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], '{"doc_id": [}']) + "\n")
    done = CliRunner().invoke(
        cli, ["import", "lmms-eval", str(source), "--out", str(tmp_path / "run")]
    )
    assert done.exit_code == 1
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_something_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "keep.txt").write_text("mine")
    with pytest.raises(SnellenError, match="not empty"):
        import_runs("lmms-eval", FOREIGN / "lmms_eval", tmp_path)
