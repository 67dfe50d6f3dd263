"""Runs in the formats of other tools: the numbers that they hold are ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.report_runs import direct_run, reading_run, rubric_run, save_run

from snellen.cli import cli
from snellen.interchange.files import export_run
from snellen.interchange.runs_from import import_runs
from snellen.runs.folder import Run, load_run

MAKERS = {"direct": direct_run, "reading": reading_run, "rubric": rubric_run}


@pytest.fixture(params=MAKERS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return load_run(save_run(MAKERS[request.param](tmp_path, "alpha")))


def values(run: Run) -> dict[str, float]:
    assert run.summary is not None
    return {name: one.value for name, one in run.summary.metrics.items() if one.value is not None}


def test_evalscope(run: Run, tmp_path: Path) -> None:
    [file] = export_run("evalscope", run, tmp_path / "out").files
    report = json.loads(file.read_text())
    assert {one["name"]: one["score"] for one in report["metrics"]} == values(run)
    assert report["model_name"] == run.name


def test_lmms_eval(run: Run, tmp_path: Path) -> None:
    results, samples = export_run("lmms-eval", run, tmp_path / "out").files
    found = json.loads(results.read_text())["results"][run.spec.benchmark]
    assert {n: found[f"{n},none"] for n in values(run)} == values(run)
    assert len(samples.read_text().splitlines()) == len(run.items) * run.spec.repeats


def test_every_eval_ever(run: Run, tmp_path: Path) -> None:
    """The same run has the same files; intervals and unscored counts are in them."""
    first = export_run("every-eval-ever", run, tmp_path / "a").files
    second = export_run("every-eval-ever", run, tmp_path / "b").files
    assert [one.name for one in first] == [one.name for one in second]
    rows = json.loads(first[0].read_text())["evaluation_results"]
    scores = {one["evaluation_name"]: one["score_details"]["score"] for one in rows}
    assert scores == values(run)
    assert all("unscored" in one["score_details"]["details"] for one in rows)


def test_model_card(run: Run, tmp_path: Path) -> None:
    [file] = export_run("model-card", run, tmp_path / "card.md").files
    text = file.read_text()
    assert text.startswith("---\nmodel-index:\n")
    assert text.rstrip().endswith("---")
    assert text.count("- type:") == len(values(run))


def test_an_inspect_log_of_direct_questions_comes_back_as_it_was(tmp_path: Path) -> None:
    """Out and in again: the same accuracy."""
    run = load_run(save_run(direct_run(tmp_path, "alpha")))
    [log] = export_run("inspect", run, tmp_path / "log.json").files
    [again] = import_runs("inspect", log, tmp_path / "again")
    assert again.accuracy == pytest.approx(values(run)["accuracy"])
    assert again.model == run.name


def test_the_command_writes_each_format(run: Run, tmp_path: Path) -> None:
    for name in ("evalscope", "lmms-eval", "inspect", "every-eval-ever", "model-card"):
        done = CliRunner().invoke(
            cli, ["export", name, str(run.folder), "--out", str(tmp_path / name)]
        )
        assert done.exit_code == 0, done.output
        assert all(Path(line).exists() for line in done.stdout.splitlines())
