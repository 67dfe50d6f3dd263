"""The registry of protocols: what a new one touches, and what all of them have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds import toy_protocol

import snellen
from snellen.cli import cli
from snellen.protocols import PROTOCOLS, metric_named
from snellen.protocols.protocol import Protocol
from snellen.runs.plan import plan_for
from snellen.runs.request import RunRequest
from snellen.runs.run import execute
from snellen.tables.runs import breakdown, leaderboard
from snellen.tables.writers import to_markdown


def test_a_new_protocol_is_a_file_and_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A toy protocol with a registry row runs to a summary, tables, a breakdown and `show`."""
    monkeypatch.setitem(PROTOCOLS, "toy", toy_protocol.PROTOCOL)  # type: ignore[arg-type]
    replies = {"red": "Red", "blue": "green", "white": "white"}
    request = RunRequest("colours", tmp_path / "run", replies=replies, judge="embedded")
    finished = asyncio.run(execute(plan_for(request, toy_protocol.toy_benchmark())))
    assert (finished.exit_code, finished.error) == (0, None)
    assert finished.summary.metrics["named"].value == pytest.approx(2 / 3)
    assert "3 colours" in finished.summary.notes
    run = snellen.load_run(tmp_path / "run")
    assert "| 66.67" in to_markdown(leaderboard([run]))
    assert "50.0" in to_markdown(breakdown(run, "shade"))
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run"), "--by", "shade"])
    assert shown.exit_code == 0, shown.output
    assert "Named %" in shown.output


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_every_protocol_is_whole(protocol: Protocol) -> None:
    """The headline is a main metric, and prompts, titles and breakdowns are there."""
    main = [metric.name for metric in protocol.metrics if metric.is_main]
    assert main[0] == protocol.headline
    assert all(metric.title and metric.definition for metric in protocol.metrics)
    assert all(metric.formula and metric.example for metric in protocol.metrics)
    assert "verdict" in protocol.options().prompts
    assert set(protocol.partial) <= set(protocol.dimensions)
    assert protocol.on_disk in {"", *PROTOCOLS}


def test_a_metric_is_found_by_name() -> None:
    """A metric of any protocol is found; another name gives None."""
    found = metric_named("reliability_gap")
    assert found is not None
    assert found.heading == "Gap, points"
    assert metric_named("no_such_metric") is None


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_recorded_options_make_options_again(protocol: Protocol) -> None:
    """What is no option of the protocol, such as `replies`, is left out."""
    options = protocol.options_from({"reasks": 5, "replies": "given", "kept_share": 0.5})
    assert isinstance(options, protocol.options)
    assert options.reasks == 5
