"""The judge `exact` in a run: by rule, without a model, for direct benchmarks alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worlds.benchmark_files import direct_folder, direct_row, reading_folder

import snellen
from snellen.errors import UsageError


def test_short_answers_are_judged_by_rule(tmp_path: Path) -> None:
    """Right, wrong, and a sentence that is left unscored; the summary says how it was judged."""
    rows = [direct_row(k, ["a.png"]) for k in range(3)]
    data = direct_folder(tmp_path / "data", rows)
    replies = {"0": "Answer: four", "1": "5", "2": "There are some cups on a table."}
    run = snellen.run(
        str(data), replies=replies, judge="exact", out=tmp_path / "run", max_unscored=1.0
    )
    assert [run.verdicts[str(k), 0, probe].verdict for k, probe in probes_of(run)] == [
        True, False, None,
    ]  # fmt: skip
    assert run.summary is not None
    assert any(note.startswith("judged by rule") for note in run.summary.notes)
    assert run.summary.counts.unscored_by_reason == {"judge_input_error": 1}


def probes_of(run: snellen.runs.folder.Run) -> list[tuple[int, str]]:
    return [(k, item.probes[0].id) for k, item in enumerate(run.items)]


def test_descriptions_are_refused_before_the_run(tmp_path: Path) -> None:
    """A reading benchmark has captions, which no rule can compare."""
    data = reading_folder(tmp_path / "data")
    with pytest.raises(UsageError, match="replies are descriptions"):
        snellen.run(str(data), replies={"a": "x"}, judge="exact", out=tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()
