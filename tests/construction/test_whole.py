"""The demonstration: the bundled pictures, from a folder to an evaluation, offline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.worlds.engine_world import ROOT, environment

from snellen.runs.folder import load_run


@pytest.mark.slow
def test_the_bundled_pictures_become_a_benchmark_that_is_evaluated(tmp_path: Path) -> None:
    """Built, counted, found clean, and evaluated by the embedded judge: captions of what was seen.

    The captions say what the descriptions say, so that some questions can be answered from them.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.build_demo", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, timeout=600, cwd=ROOT, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nothing is wrong" in done.stdout + done.stderr
    run = load_run(tmp_path / "out" / "run")
    assert run.summary is not None
    counts = run.summary.counts
    assert counts.items == 15
    assert counts.scored == counts.probes >= 200
    accuracy = run.summary.metrics["overall_acc"].value
    assert accuracy is not None
    assert accuracy > 0.2
