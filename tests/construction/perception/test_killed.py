"""Perception: killed in every stage and started again; no paid call twice, no row lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.server import Behaviour, Body, FakeServer
from tests.worlds.engine_world import ROOT, environment
from tests.worlds.perception_world import (
    ATTRIBUTORS,
    MODELS,
    SOLVERS,
    answer,
    results,
    small_pictures,
)

from snellen.construction.files import read_funnel, read_stage
from snellen.construction.perception.pipeline import PERCEPTION
from snellen.endpoints.http import chat_url
from snellen.keys import digest_of

STAGES = [stage.name for stage in PERCEPTION.stages]
IN_FLIGHT = 2


def configuration(url: str, pictures: Path) -> str:
    several = {"attributor": ATTRIBUTORS, "solver": SOLVERS}
    named = [(role, one.__name__) for role, many in several.items() for one in many]
    alone = ("arbiter", "inducer", "decomposer", "writer", "judge")
    tables = [f'[[roles.{role}]]\nmodel = "{name}"\nurl = "{url}"' for role, name in named]
    tables += [f'[roles.{role}]\nmodel = "{role}"\nurl = "{url}"' for role in alone]
    sections = '[induce]\ntaxonomy = "induced"\nleast = 1\nsimilarity = 0.85\n'
    edits = f'[write]\npictures = "{pictures}"\nquota = 1\nspare = 1.0\n'
    return "\n".join([*tables, sections, edits])


def command(source: Path, out: Path, config: Path) -> list[str]:
    line = [sys.executable, "-m", "snellen", "build", "perception", str(source), "--quiet"]
    return [*line, "--config", str(config), "--out", str(out), "--concurrency", str(IN_FLIGHT)]


def rows_of(out: Path) -> dict[str, list[str]]:
    found = {}
    for stage in PERCEPTION.stages:
        rows = read_stage(out, PERCEPTION, stage)
        assert rows is not None
        found[stage.name] = [row.id for row in rows]
    return found


def is_in(out: Path, stage: str) -> bool:
    """Whether a stage has begun: it has a finished unit or a call, or the one ahead has ended."""
    work = out / "work" / f"{stage}.jsonl"
    if work.exists() and work.stat().st_size:
        return True
    calls = out / "calls.jsonl"
    if calls.exists() and f'"{stage}/'.encode() in calls.read_bytes():
        return True
    number = PERCEPTION.number(stage)
    return (out / "stages" / f"{number - 1:02d}-{STAGES[number - 2]}.jsonl").exists()


def finish(line: list[str]) -> None:
    done = subprocess.run(
        line, env=environment(), check=False, capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


class Counting:
    """The scripted models behind one server, with how often each request was made."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, body: Body) -> str:
        self.asked[digest_of(body["messages"]) + body["model"]] += 1
        return answer(body)


Whole = tuple[Counting, Path, Path, dict[str, list[str]], dict[str, int]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A build that nobody kills: its source and configuration, its rows, and its calls."""
    folder = tmp_path_factory.mktemp("whole")
    source = results(folder / "in", "seer", names=("cat.jpg", "app.png"))
    spare = small_pictures(folder / "spare", "flower.jpg")
    config, counting = folder / "build.toml", Counting()
    with FakeServer(counting, Behaviour(models=tuple(MODELS), delay_s=0.02)) as server:
        config.write_text(configuration(chat_url(server.url), spare), encoding="utf-8")
        finish(command(source, folder / "out", config))
        yield counting, source, config, rows_of(folder / "out"), dict(counting.asked)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_build_that_is_killed_goes_on(whole: Whole, tmp_path: Path, stage: str) -> None:
    """`kill -9` in a stage, then the same command: the same rows as without, each call once.

    A call whose answer was on its way when the process died is the one that may be made again.
    """
    counting, source, config, rows, once = whole
    counting.asked.clear()
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(source, out, config), env=environment(), cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not is_in(out, stage):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finish(command(source, out, config))
    assert rows_of(out) == rows
    assert all(row.adds_up for row in read_funnel(out))
    assert all(len(ids) == len(set(ids)) for ids in rows_of(out).values())
    assert set(counting.asked) == set(once)
    assert sum(counting.asked.values()) - sum(once.values()) <= IN_FLIGHT
