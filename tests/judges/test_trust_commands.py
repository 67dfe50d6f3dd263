"""judge-check, run --judge-check, show, audit and panels, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.engine_world import serve

from snellen.cli import cli
from snellen.errors import SnellenError
from snellen.runs.folder import load_run

# Each of these judges with the embedded judge more than once.
pytestmark = pytest.mark.slow


def typed(*words: str | Path) -> Result:
    """The result of a command typed in; an expected failure is raised."""
    found = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    if found.exception is not None:
        raise found.exception
    return found


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small check of the embedded judge, and a run that it is attached to."""
    folder = tmp_path_factory.mktemp("trust")
    words = ("--limit", "6", "--protocol", "reading", "--quiet")
    found = typed("judge-check", "--judge", "embedded", *words, "--out", folder / "check")
    assert "reading: judge embedded on material of known truth" in found.output
    assert "labelled, frozen half" in found.output
    typed(
        "run", "mini-reading", "--replies", "thorough", "--judge", "embedded", "--quiet",
        "--judge-check", folder / "check" / "judge_check.json", "--out", folder / "run",
    )  # fmt: skip
    return folder


def test_a_check_is_attached_to_a_run_and_shown(checked: Path) -> None:
    """run.json names the check, summary.json what follows from it, and show prints it."""
    run = load_run(checked / "run")
    assert run.spec.judge_check is not None
    assert run.spec.judge_check["mismatch"] == []
    assert run.summary is not None
    told = run.summary.extra["judge_check"]
    assert told["sha256"] == run.spec.judge_check["sha256"]
    shown = typed("show", checked / "run").output
    assert ("sensitivity to the judge's errors" in shown) == ("ranges" in told)
    assert ("cannot hold here" in shown) == bool(told["misfit"])


def test_a_run_that_goes_on_keeps_its_check(checked: Path) -> None:
    """Started again without the option, the run still has the check; a new one takes its place."""
    words = ("run", "mini-reading", "--replies", "thorough", "--judge", "embedded", "--quiet")
    before = load_run(checked / "run").spec.judge_check
    typed(*words, "--out", checked / "run")
    assert load_run(checked / "run").spec.judge_check == before


def test_an_audit_is_drawn_filled_and_read(checked: Path, tmp_path: Path) -> None:
    """The sample goes to a file, people fill it, and the corrected score is printed."""
    file = tmp_path / "audit.jsonl"
    typed("audit", checked / "run", "--sample", "40", "--out", file)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 40
    filled = [json.dumps({**row, "truth": row["verdict"]}) for row in rows]
    file.write_text("\n".join(filled), encoding="utf-8")
    found = typed("audit", checked / "run", "--read", file)
    assert "40 audited of 199 scored verdicts" in found.output
    told = json.loads(typed("audit", checked / "run", "--read", file, "--json").stdout)
    assert told["scores"][0]["sensitivity"]["hits"] == told["scores"][0]["sensitivity"]["n"]


def test_an_audit_needs_to_know_what_is_wanted(checked: Path) -> None:
    """Neither a sample nor a file is misuse, and so are both."""
    with pytest.raises(SnellenError, match="an audit needs a sample"):
        typed("audit", checked / "run")
    with pytest.raises(SnellenError, match="exclude each other"):
        typed("audit", checked / "run", "--sample", "3", "--read", "x.jsonl")


def test_a_panel_is_typed_by_repeating_the_judge(checked: Path, tmp_path: Path) -> None:
    """Judges at one address vote; the run names them and show prints their votes."""
    with serve() as server:
        words = ("--judge", "eye", "--judge", "mind", "--judge-url", server.url)
        typed(
            "rejudge", checked / "run", *words, "--panel", "unanimity", "--min-valid", "2",
            "--quiet", "--out", tmp_path / "panel",
        )  # fmt: skip
    run = load_run(tmp_path / "panel")
    assert run.spec.judge.name == "eye+mind"
    assert run.spec.judge.params == {"panel": "unanimity", "min_valid": 2}
    shown = typed("show", tmp_path / "panel").output
    assert "the panel's votes" in shown
    assert "disagreement by category" in shown


def test_a_panel_is_checked_as_one_judge(tmp_path: Path) -> None:
    """The check names all members, and counts the calls of each."""
    with serve() as server:
        words = ("--judge", "eye", "--judge", "mind", "--judge-url", server.url)
        found = typed(
            "judge-check", *words, "--limit", "2", "--protocol", "reading", "--repeat", "1",
            "--json", "--quiet", "--out", tmp_path,
        )  # fmt: skip
    told = json.loads(found.stdout)
    assert [member["name"] for member in told["judge"]["members"]] == ["eye", "mind"]
    reading = told["protocols"]["reading"]
    assert reading["calls"] >= 4 * reading["rates"]["accuracy"]["n"]
