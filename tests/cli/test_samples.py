"""Single samples: `snellen samples`, `show --items`, `compare --flips`, and overviews."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyarrow import parquet
from tests.worlds.compared_runs import bundled, write_run
from tests.worlds.report_runs import reading_run

from snellen.cli import cli
from snellen.records import ModelRecord
from snellen.runs.folder import Run, load_run

NEEDED = {
    "id", "probe_id", "question", "reference", "reply", "verdict", "correct", "status", "reason",
}  # fmt: skip


def call(*words: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of four pictures with six questions each, the last of which is unscored."""
    return write_it(reading_run(tmp_path / "world"), tmp_path / "run")


def write_it(run: Run, folder: Path) -> Run:
    """The run in a folder of its own, as `run` writes it."""
    return load_run(write_run(run, folder))


def test_all_formats_hold_the_same_rows(run: Run, tmp_path: Path) -> None:
    """CSV, JSON-lines and Parquet have one row a sample and probe, with the columns promised."""
    files = [tmp_path / f"samples.{ending}" for ending in ("csv", "jsonl", "parquet")]
    for file in files:
        call("samples", run.folder, "--out", file)
    with files[0].open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines))
    rows = [json.loads(line) for line in files[1].read_text(encoding="utf-8").splitlines()]
    columns = parquet.read_table(files[2]).to_pylist()
    assert len(table) == len(rows) == len(columns) == 24
    assert set(table[0]) == set(rows[0]) == set(columns[0]) >= NEEDED
    for shown, row, column in zip(table, rows, columns, strict=True):
        assert shown["probe_id"] == row["probe_id"] == column["probe_id"]
        assert shown["verdict"] == (row["verdict"] or "")
        assert row["correct"] == column["correct"]
    last = rows[-1]
    assert (last["status"], last["reason"], last["verdict"]) == (
        "unscored", "unreadable_hedged", None,
    )  # fmt: skip


def test_a_data_frame_has_the_same_columns(run: Run) -> None:
    """`Run.to_pandas` gives one row a sample and probe."""
    pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert len(frame) == 24
    assert set(frame.columns) >= NEEDED
    assert frame["correct"].sum() == sum(s.correct is True for s in run.samples())


def test_some_samples_can_be_chosen(run: Run, tmp_path: Path) -> None:
    """`--items failed` leaves out what is right or has no verdict."""
    file = tmp_path / "failed.jsonl"
    call("samples", run.folder, "--out", file, "--items", "failed")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows
    assert {row["correct"] for row in rows} == {False}


def test_an_unknown_format_is_refused_with_those_that_there_are(run: Run, tmp_path: Path) -> None:
    """Before anything is written."""
    done = CliRunner().invoke(cli, ["samples", str(run.folder), "--out", str(tmp_path / "a.xls")])
    assert done.exit_code != 0
    assert "`.xls`" in str(done.exception)
    assert not (tmp_path / "a.xls").exists()


def test_no_reply_is_a_formula_or_moves_a_cursor_in_csv(tmp_path: Path) -> None:
    """A caption that begins with an equals sign is quoted, escapes are spelled out."""
    hostile = reading_run(tmp_path / "world", caption="=HYPERLINK(1)\x1b[2J\nline")
    file = tmp_path / "samples.csv"
    call("samples", write_it(hostile, tmp_path / "run").folder, "--out", file)
    with file.open(encoding="utf-8", newline="") as lines:
        replies = {row["reply"] for row in csv.DictReader(lines)}
    assert replies == {"'=HYPERLINK(1)\\x1b[2J\nline"}


def test_show_pages_through_samples(run: Run) -> None:
    """Each block has question, reference, reply, verdict and the judge's words."""
    out = call("show", run.folder, "--items", "unscored")
    assert out.count("question") == 1
    for text in ("What is thing 5?", "A. one", "reference  A", "unreadable_hedged", "A or B"):
        assert text in out
    assert call("show", run.folder, "--items", "all").count("  question") == 24


def test_flips_are_shown_with_both_replies(tmp_path: Path) -> None:
    """Behind a flip stand the question once and both runs' replies and verdicts."""
    names = ("thorough", "careless")
    folders = [write_run(bundled(name), tmp_path / name) for name in names]
    out = call("compare", *folders, "--flips", 1)
    blocks = out.partition("Flips, careless against thorough")[2]
    assert blocks.count("right to wrong") == blocks.count("wrong to right") == 1
    assert blocks.count("  question") == 2
    assert blocks.count("  thorough:") == blocks.count("  careless:") == 2
    assert blocks.count("  reply") == 4


def test_a_run_shows_its_numbers_once(run: Run) -> None:
    """One run is one table of metrics; `--metric` leaves out the others."""
    out = call("show", run.folder)
    assert out.count("Overall %") == 1
    assert "23 of 24 probes scored" in out
    few = call("show", run.folder, "--metric", "coverage")
    assert "Coverage %" in few
    assert "Overall %" not in few
    wrong = CliRunner().invoke(cli, ["show", str(run.folder), "--metric", "beauty"])
    assert "no metric beauty" in str(wrong.exception)


def test_runs_of_several_judges_begin_with_an_overview(tmp_path: Path) -> None:
    """A list of runs shows for each where it is, its judge, its status and its headline."""
    one = reading_run(tmp_path / "world")
    other = replace(one, spec=replace(one.spec, judge=ModelRecord("other")))
    folders = [write_it(r, tmp_path / n).folder for r, n in ((one, "a"), (other, "b"))]
    out = call("show", *folders)
    assert out.startswith("Runs\n")
    overview = "".join(out.partition("bench-reading: judge")[0].split())
    assert all(str(folder) in overview or folder.name in overview for folder in folders)
    assert overview.count("incomplete") == 2


def test_a_pipe_is_as_wide_as_columns_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS folds tables and notes in a pipe too."""
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, call("show", run.folder).splitlines())) <= 60
