"""A server that is away in mid-run comes back, and the run with it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.fakes.server import Behaviour, FakeServer
from tests.worlds.engine_world import (
    MODELS,
    answer,
    chats,
    command,
    environment,
    numbers,
    serve,
    small_benchmark,
    type_in,
)

AWAY_S = 4.0


@contextmanager
def outage(server: FakeServer, way: str) -> Iterator[FakeServer]:
    """The same address without a server, or with one that resets or refuses every call."""
    if way == "refused":
        server.__exit__(None, None, None)
        time.sleep(AWAY_S)
        port = urlsplit(server.url).port or 0
        with FakeServer(answer, Behaviour(models=MODELS, delay_s=0.02), port=port) as again:
            yield again
        return
    usual, server.behaviour = server.behaviour, Behaviour(models=MODELS, faults={way: 1.0})
    time.sleep(AWAY_S)
    server.behaviour = usual
    yield server


@pytest.mark.slow
@pytest.mark.parametrize("way", ["refused", "reset", "503"])
def test_a_run_outlives_its_server(way: str, tmp_path: Path) -> None:
    """It waits, says so, and ends as if nothing had been."""
    benchmark = small_benchmark(tmp_path / "benchmark", images=6, questions=240)
    server = serve(delay_s=0.02)
    server.__enter__()
    line = command(benchmark, server.url, tmp_path / "run", "--no-cache", "--concurrency", "4")
    running = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while len(chats(server)) < 80:
        time.sleep(0.01)
        assert running.poll() is None
    with outage(server, way):
        _, told = running.communicate(timeout=120)
    if way != "refused":
        server.__exit__(None, None, None)
    assert running.returncode == 0, told
    assert "the run waits for it until" in told
    assert "answers again after" in told
    with serve() as whole:
        line = command(benchmark, whole.url, tmp_path / "whole", "--no-cache")
        assert type_in(line).returncode == 0
    assert numbers(tmp_path / "run") == numbers(tmp_path / "whole")
