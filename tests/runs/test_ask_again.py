"""A second start asks again for judgements that could not be read."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.server import Body, FakeServer
from tests.worlds.engine_world import (
    answer,
    chats,
    command,
    evaluate,
    numbers,
    serve,
    small_benchmark,
    type_in,
)

from snellen.runs.plan import RunRequest, make_plan
from snellen.runs.run import execute

PROSE = "I would rather look at it again before I say anything about that."


class Judge:
    """A judge that writes prose about every third question until it is mended."""

    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, body: Body) -> Any:
        said = answer(body)
        return PROSE if self.is_broken and said in ("A", "D") else said


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def server(judge: Judge) -> Iterator[FakeServer]:
    with serve(judge) as server:
        yield server


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    return small_benchmark(tmp_path / "benchmark", images=3, questions=6)


def test_what_was_unreadable_is_asked_again_and_the_rest_is_not(
    judge: Judge, server: FakeServer, benchmark: Path, tmp_path: Path
) -> None:
    """The numbers are those of a judge that was whole from the start."""
    first = evaluate(benchmark, server.url, tmp_path / "run", cache=False)
    unreadable = first.summary.counts.unscored
    assert unreadable
    assert all(k.startswith("unreadable_") for k in first.summary.counts.unscored_by_reason)
    judge.is_broken = False
    made = len(server.requests)
    second = evaluate(benchmark, server.url, tmp_path / "run", cache=False)
    assert second.summary.counts.unscored == 0
    assert len(server.requests) - made == unreadable
    [said] = [n for n in second.notices if "could not be read" in n]
    assert said.startswith(f"{unreadable} judgements")
    assert PROSE in said
    evaluate(benchmark, server.url, tmp_path / "whole", cache=False)
    assert numbers(tmp_path / "run") == numbers(tmp_path / "whole")


def test_what_was_unreadable_can_be_left(
    judge: Judge, server: FakeServer, benchmark: Path, tmp_path: Path
) -> None:
    """Nothing is asked, and nothing is told."""
    first = evaluate(benchmark, server.url, tmp_path / "run", cache=False)
    judge.is_broken, made = False, len(server.requests)
    words = {"model": "eye", "api_url": server.url, "judge": "mind", "judge_url": server.url}
    request = RunRequest(str(benchmark), tmp_path / "run", cache=False, **words)
    second = asyncio.run(execute(replace(make_plan(request), keep_unreadable=True)))
    assert second.summary.counts.unscored == first.summary.counts.unscored
    assert (len(server.requests), second.notices) == (made, first.notices)


def test_no_cache_gives_back_what_was_unreadable(
    judge: Judge, server: FakeServer, benchmark: Path, tmp_path: Path
) -> None:
    """It is kept for no other run, and for the same one neither."""
    evaluate(benchmark, server.url, tmp_path / "run", cache=True)
    judge.is_broken = False
    for name in ("run", "other"):
        done = evaluate(benchmark, server.url, tmp_path / name, cache=True)
        assert done.summary.counts.unscored == 0


@pytest.mark.slow
def test_the_printed_command_mends_the_run(
    judge: Judge, server: FakeServer, benchmark: Path, tmp_path: Path
) -> None:
    """After the judge was mended: exit code 0, and the model is not called again."""
    done = type_in(command(benchmark, server.url, tmp_path / "run", "--no-cache"))
    assert done.returncode == 3
    printed = re.search(r"resume with: (.*)", done.stderr)
    assert printed is not None
    judge.is_broken, captions = False, len(chats(server, "model"))
    line = [sys.executable, "-m", *shlex.split(printed[1])]
    again = type_in(line)
    assert (again.returncode, len(chats(server, "model"))) == (0, captions)
    assert "could not be read and are asked for again" in again.stderr
    assert PROSE in again.stderr
