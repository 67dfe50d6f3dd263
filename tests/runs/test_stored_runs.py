"""Run folders that an earlier version wrote, one a protocol: read, shown, compared, resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakes.server import Behaviour, FakeServer
from tests.worlds.engine_world import JUDGE, MODEL, MODELS, chats, evaluate, rows

import snellen
from snellen.cli import cli
from snellen.runs.spec import Value
from snellen.runs.summary import summarise

STORED = Path(__file__).parents[1] / "data" / "runs"
NAMES = ("reading", "captionqa", "rubric", "direct")


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_read_and_counted_as_it_was(name: str) -> None:
    """Numbers and counts that are computed from the stored verdicts are the stored ones."""
    run = snellen.load_run(STORED / name / "run")
    assert run.summary is not None
    assert run.protocol.name == name
    again = summarise(run, status="complete")
    assert again.counts == run.summary.counts
    assert numbers_of(again.metrics) == numbers_of(run.summary.metrics)
    for dimension, groups in run.summary.by.items():
        for label, metrics in groups.items():
            assert numbers_of(again.by[dimension][label]) == numbers_of(metrics)


def numbers_of(metrics: Mapping[str, Value]) -> dict[str, tuple[object, ...]]:
    """All readings of each metric; how intervals are made may change."""
    return {
        name: (value.value, value.scored, value.upper, value.lower, value.n, value.n_items)
        for name, value in metrics.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_shown(name: str) -> None:
    """`snellen show` prints the numbers of the stored summary."""
    result = CliRunner().invoke(cli, ["show", str(STORED / name / "run"), "--json"])
    assert result.exit_code == 0, result.output
    [shown] = json.loads(result.stdout)
    stored = json.loads((STORED / name / "run" / "summary.json").read_text(encoding="utf-8"))
    assert shown["metrics"].keys() == stored["metrics"].keys()
    for metric, value in stored["metrics"].items():
        assert shown["metrics"][metric].items() >= value.items()
    assert CliRunner().invoke(cli, ["show", str(STORED / name / "run")]).exit_code == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_compared(name: str) -> None:
    """A stored run and its double do not differ in any metric."""
    run = snellen.load_run(STORED / name / "run")
    found = snellen.compare([run, run], resamples=100)
    assert {pair.difference for metric in found.metrics for pair in metric.pairs} == {0.0}


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_resumed_without_a_call(name: str, tmp_path: Path) -> None:
    """The journal of the stored run answers every call, and the verdicts stay as they were."""
    out = tmp_path / "run"
    shutil.copytree(STORED / name / "run", out)
    before = rows(out, "verdicts")
    data = STORED / name / "data"
    benchmark, more = str(data), {}
    if name == "captionqa":
        benchmark, more = name, {"data": str(data / "rows.jsonl")}
    with FakeServer("no", Behaviour(models=MODELS)) as server:
        done = evaluate(benchmark, server.url, out, model=MODEL, judge=JUDGE, **more)
        assert (done.exit_code, done.error) == (0, None)
        assert chats(server) == []
    assert rows(out, "verdicts") == before
