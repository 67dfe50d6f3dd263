"""Claims: each shard goes to one worker, and what a dead one left is taken over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.engine_world import numbers, serve, small_benchmark
from tests.worlds.shard_world import run_part

from snellen.cli import cli
from snellen.errors import RunFolderError
from snellen.fleet.claims import Claims
from snellen.runs.shards import Shard


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder, or an object store."""
    if request.param == "folder":
        yield str(tmp_path / "shared")
        return
    fsspec = pytest.importorskip("fsspec")
    yield "memory://claimed/run"
    fsspec.filesystem("memory").rm("/claimed", recursive=True)


def test_no_shard_is_given_twice(place: str, tmp_path: Path) -> None:
    """Two workers in turn, then nothing is left; each sees what the other has not finished."""
    a, b = (Claims(place, tmp_path / name, 4).take() for name in "ab")
    given = [str(next(worker)) for worker in (a, b, a, b)]
    assert sorted(given) == ["1/4", "2/4", "3/4", "4/4"]
    assert (list(a), list(b)) == ([], [])
    claims = Claims(place, tmp_path, 4)
    claims.finish(Shard(1, 4))
    assert [str(shard) for shard, _ in claims.others()] == ["2/4", "3/4", "4/4"]


def test_a_dead_workers_shard_is_taken_over(tmp_path: Path) -> None:
    """What it finished stays done."""
    said = (
        "from snellen.fleet.claims import Claims; import os; from pathlib import Path\n"
        f"claims = Claims({str(tmp_path)!r}, Path({str(tmp_path)!r}), 3)\n"
        "taken = claims.take(); claims.finish(next(taken)); next(taken); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", said], check=False)
    assert [str(shard) for shard in Claims(tmp_path, tmp_path, 3).take()] == ["2/3", "3/3"]


def test_another_number_of_shards_is_refused(tmp_path: Path) -> None:
    next(Claims(tmp_path, tmp_path, 4).take())
    with pytest.raises(RunFolderError, match="claims on 4 shards, not on 8"):
        next(Claims(tmp_path, tmp_path, 8).take())


def test_a_worker_takes_shards_until_none_is_left(tmp_path: Path) -> None:
    """The command, and the numbers of one run once all is merged."""
    benchmark = small_benchmark(tmp_path / "data", images=6, questions=12)
    with serve() as server:
        words = ["run", str(benchmark), "--api-url", server.url, "--judge", "mind", "--quiet"]
        words += ["--model", "eye", "--judge-url", server.url, "--out"]
        done = CliRunner().invoke(
            cli, [*words, str(tmp_path / "all"), "--shard", "claim/3"], standalone_mode=False
        )
        assert done.return_value == 0, done.output
        whole = CliRunner().invoke(cli, [*words, str(tmp_path / "whole")], standalone_mode=False)
        assert whole.return_value == 0
    assert f"snellen merge {tmp_path / 'all'}" in done.output
    united = CliRunner().invoke(
        cli, ["merge", str(tmp_path / "all"), "--out", str(tmp_path / "out")],
        standalone_mode=False,
    )  # fmt: skip
    assert united.return_value == 0, united.output
    assert numbers(tmp_path / "out") == numbers(tmp_path / "whole")


def test_an_empty_shard_is_no_error(tmp_path: Path) -> None:
    """There may be more shards than items; the merge misses none."""
    benchmark = small_benchmark(tmp_path / "data", images=2, questions=4)
    words = ["run", str(benchmark), "--judge", "embedded", "--quiet", "--out"]
    for k in range(1, 6):
        given = tmp_path / "given.json"
        given.write_text('{"s0000": "A bus.", "s0001": "A tree."}', encoding="utf-8")
        line = [*words, str(tmp_path / f"p/{k}"), "--shard", f"{k}/5", "--replies", str(given)]
        assert CliRunner().invoke(cli, line, standalone_mode=False).return_value == 0
    merged = CliRunner().invoke(
        cli, ["merge", str(tmp_path / "p"), "--out", str(tmp_path / "out")], standalone_mode=False
    )
    assert "missing" not in merged.output
    assert merged.return_value == 0, merged.output
    run_part(benchmark, tmp_path / "whole", judge="embedded", replies=str(given), model="given")
    assert numbers(tmp_path / "whole") == numbers(tmp_path / "out")
