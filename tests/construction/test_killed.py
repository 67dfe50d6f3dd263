"""Killed in every stage and started again: no paid call twice, no row lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.server import Behaviour, Body, FakeServer
from tests.worlds.capprobe_world import MODELS, answer, paint
from tests.worlds.engine_world import ROOT, environment

from snellen.construction.capprobe import CAPPROBE
from snellen.construction.files import read_funnel, read_stage
from snellen.endpoints.http import chat_url
from snellen.keys import digest_of

STAGES = [stage.name for stage in CAPPROBE.stages]
CONFIG = """
seed = 1
[roles.matcher]
model = "matcher"
url = "{url}"
[roles.describer]
model = "describer"
url = "{url}"
[[roles.questioner]]
model = "alpha"
url = "{url}"
[[roles.questioner]]
model = "beta"
url = "{url}"
[roles.checker]
model = "checker"
url = "{url}"
[segment]
max_regions = 2
[verify]
enabled = true
blind_draws = 1
blind_hits = 1
"""


def command(source: Path, out: Path, config: Path) -> list[str]:
    line = [sys.executable, "-m", "snellen", "build", "capprobe", str(source), "--quiet"]
    return [*line, "--config", str(config), "--out", str(out), "--concurrency", "2"]


def rows_of(out: Path) -> dict[str, list[str]]:
    found = {}
    for stage in CAPPROBE.stages:
        rows = read_stage(out, CAPPROBE, stage)
        assert rows is not None
        found[stage.name] = [row.id for row in rows]
    return found


def is_in(out: Path, stage: str) -> bool:
    """Whether a stage has begun: it has a finished unit, or the one ahead has ended."""
    work = out / "work" / f"{stage}.jsonl"
    if work.exists() and work.stat().st_size:
        return True
    number = CAPPROBE.number(stage)
    ahead = out / "stages" / f"{number - 1:02d}-{STAGES[number - 2]}.jsonl"
    return ahead.exists()


@dataclass(frozen=True)
class Whole:
    """A build that nobody killed, and the server that still answers."""

    source: Path
    config: Path
    rows: dict[str, list[str]]
    n_calls: int
    asked: Counter[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    folder = tmp_path_factory.mktemp("whole")
    source = paint(folder / "in", 1, 2)
    config = folder / "build.toml"
    asked: Counter[str] = Counter()

    def slowly(body: Body) -> str:
        asked[digest_of(body["messages"]) + body["model"]] += 1
        return answer(body)

    with FakeServer(slowly, Behaviour(models=tuple(MODELS), delay_s=0.02)) as server:
        config.write_text(CONFIG.format(url=chat_url(server.url)), encoding="utf-8")
        done = subprocess.run(
            command(source, folder / "out", config), env=environment(), check=False,
            capture_output=True, text=True, timeout=300, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield Whole(source, config, rows_of(folder / "out"), sum(asked.values()), asked)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_build_that_is_killed_goes_on(tmp_path: Path, whole: Whole, stage: str) -> None:
    """`kill -9` in a stage, then the same command: the same rows as without, each call once.

    A call whose answer was on its way when the process died is the one that may be made again.
    """
    whole.asked.clear()
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(whole.source, out, whole.config), env=environment(), cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not is_in(out, stage):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    again = subprocess.run(
        command(whole.source, out, whole.config), env=environment(), check=False,
        capture_output=True, text=True, timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert rows_of(out) == whole.rows
    assert all(row.adds_up for row in read_funnel(out))
    assert all(len(ids) == len(set(ids)) for ids in rows_of(out).values())
    in_flight = 2 * len(MODELS)
    assert whole.n_calls <= sum(whole.asked.values()) <= whole.n_calls + in_flight
