"""Runs on a local Ray with three workers: numbers, a worker that is killed, limits, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakes.server import FakeServer
from tests.worlds.engine_world import (
    JUDGE,
    MODEL,
    chats,
    command,
    environment,
    evaluate,
    numbers,
    rows,
    serve,
    small_benchmark,
    type_in,
)

from snellen.cli import cli
from snellen.errors import UsageError

pytestmark = pytest.mark.slow
WORKERS = 3
IN_FLIGHT = 24
RAY = ("--engine", "ray", "--workers", str(WORKERS), "--concurrency", str(IN_FLIGHT))


@pytest.fixture(scope="module", autouse=True)
def ray_is_there() -> None:
    pytest.importorskip("ray")


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pictures, 1,500 questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=60, questions=1500)


@pytest.fixture(scope="module")
def alone(benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run in one process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    with serve() as server:
        evaluate(benchmark, server.url, out)
    return out


def start(benchmark: Path, server: FakeServer, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(benchmark, server.url, out, *RAY), env=environment(), stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def workers_of(driver: int) -> Iterator[int]:
    """The processes of Ray in which shards are done: grandchildren of the driver."""
    for folder in Path("/proc").iterdir():
        try:
            if not folder.name.isdigit() or b"ray::_work" not in (folder / "cmdline").read_bytes():
                continue
            if driver in (_parent(_parent(int(folder.name))), _parent(int(folder.name))):
                yield int(folder.name)
        except (OSError, IndexError):
            continue


def _parent(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def wait_for(server: FakeServer, n_calls: int, process: subprocess.Popen[str]) -> None:
    while len(chats(server)) < n_calls:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_three_workers_give_the_numbers_of_one_process(
    benchmark: Path, alone: Path, tmp_path: Path
) -> None:
    """One display, no call twice, a folder like any other; on the same folder nothing is asked."""
    out = tmp_path / "run"
    with serve(delay_s=0.01) as server:
        done = type_in(command(benchmark, server.url, out, *RAY))
        assert done.returncode == 0, done.stderr
        assert len(chats(server)) == 1560
        assert server.peak <= IN_FLIGHT + WORKERS
        again = type_in(command(benchmark, server.url, out, *RAY))
        assert again.returncode == 0, again.stderr
        assert len(chats(server)) == 1560
    assert json.dumps(numbers(out)) == json.dumps(numbers(alone))
    assert not (out / "parts").exists()
    assert "1,500/1,500 probes" in done.stderr
    assert done.stderr.count("12 of 12 shards") == 1


def test_a_killed_worker_costs_what_it_had_in_flight(
    benchmark: Path, alone: Path, tmp_path: Path
) -> None:
    """`kill -9` on one of three: its shards go on from their journals on another."""
    out = tmp_path / "run"
    with serve(delay_s=0.05) as server:
        process = start(benchmark, server, out)
        wait_for(server, 500, process)
        victim = next(workers_of(process.pid))
        os.kill(victim, signal.SIGKILL)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        repeated = len(chats(server)) - len(rows(out, "calls"))
    assert "is lost; worker-4 goes on from its journals" in said
    assert 0 <= repeated <= IN_FLIGHT // WORKERS + 1
    assert len(rows(out, "calls")) == 1560
    assert json.dumps(numbers(out)) == json.dumps(numbers(alone))


def test_a_rate_holds_over_all_workers(benchmark: Path, tmp_path: Path) -> None:
    """100 requests a second, within a tenth, over the whole run."""
    settings = tmp_path / "snellen.toml"
    table = "[models.{}]\nrequests_per_minute = 6000\n"
    text = "".join(table.format(name) for name in (MODEL, JUDGE))
    settings.write_text(text, encoding="utf-8")
    with serve() as server:
        line = command(
            benchmark, server.url, tmp_path / "run", *RAY, "--config", str(settings), "--quiet"
        )
        done = type_in(line)
        assert done.returncode == 0, done.stderr
        began = sorted(s.started_s for s in server.requests if s.path.endswith("completions"))
    rate = (len(began) - 1) / (began[-1] - began[0])
    assert 90 <= rate <= 110
    # And in each five seconds of the middle.
    for k in range(300, len(began) - 600, 200):
        assert 90 <= 500 / (began[k + 500] - began[k]) <= 110


def test_ctrl_c_leaves_a_run_that_goes_on(benchmark: Path, alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(delay_s=0.05) as server:
        process = start(benchmark, server, out)
        wait_for(server, 400, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "resume with: snellen run" in said
        stored = {r["item"]: 0 for r in rows(out, "calls")}
        assert stored
        done = type_in(command(benchmark, server.url, out, *RAY))
        assert done.returncode == 0, done.stderr
        assert len(chats(server)) - 1560 <= IN_FLIGHT
    assert json.dumps(numbers(out)) == json.dumps(numbers(alone))


def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    line = ["run", "mini-reading", "--model", "a", "--judge", "b", "--api-url", "http://h/v1"]
    line += ["--engine", "ray", "--shard", "1/2", "--out", str(tmp_path / "run")]
    said = CliRunner().invoke(cli, line)
    assert isinstance(said.exception, UsageError)


def test_a_wrong_key_ends_all_workers_with_one_message(benchmark: Path, tmp_path: Path) -> None:
    with serve(key="another") as server:
        done = type_in(command(benchmark, server.url, tmp_path / "run", *RAY, "--quiet"))
        assert len(chats(server)) == 0
    assert done.returncode == 1
    assert "Incorrect API key" in done.stderr
    assert "Traceback" not in done.stderr
