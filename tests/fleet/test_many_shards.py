"""Sixteen workers as processes: one killed and started again, one twice, one missing."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from tests.worlds.engine_world import chats, command, environment, numbers, rows, serve, type_in
from tests.worlds.engine_world import small_benchmark as made

from snellen.fleet.merge import merge

SHARDS = 16


@pytest.mark.slow
def test_sixteen_workers_give_the_numbers_of_one(tmp_path: Path) -> None:
    data = made(tmp_path / "data", images=48, questions=900)
    shards = tmp_path / "shards"
    with serve(delay_s=0.005) as server:
        type_in(command(data, server.url, tmp_path / "whole", "--quiet"))
        for k in range(1, SHARDS + 1):
            line = command(
                data, server.url, shards / f"{k:02d}", "--quiet", "--shard", f"{k}/{SHARDS}"
            )
            if k == 5:
                before = len(chats(server))
                process = subprocess.Popen(line, env=environment(), stderr=subprocess.DEVNULL)
                while len(chats(server)) - before < 20:
                    time.sleep(0.002)
                process.kill()
                process.wait()
            assert type_in(line).returncode == 0
        again = command(data, server.url, shards / "3b", "--quiet", "--shard", f"3/{SHARDS}")
        assert type_in(again).returncode == 0
    merged = merge([shards], tmp_path / "out")
    assert merged.summary.status == "complete"
    assert merged.repeats == len(rows(shards / "03", "calls"))
    assert json.dumps(numbers(tmp_path / "out")) == json.dumps(numbers(tmp_path / "whole"))
    merged = merge([one for one in shards.iterdir() if one.name != "07"], tmp_path / "less")
    assert merged.missing == (f"7/{SHARDS}",)
    assert merged.n_missing == len(rows(shards / "07", "items"))
