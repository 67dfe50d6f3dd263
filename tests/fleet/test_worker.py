"""Workers of a shared run in one process: the same numbers, limits, money, and going on."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.engine_world import (
    JUDGE,
    MODEL,
    chats,
    evaluate,
    numbers,
    rows,
    serve,
    small_benchmark,
)

from snellen.engine.stop_reasons import OutOfMoneyError
from snellen.errors import RunFolderError
from snellen.fleet.board import Board
from snellen.fleet.parts import Parts, divide, unite
from snellen.fleet.worker import Worker
from snellen.runs.request import RunRequest


class Near:
    """A board in this process, reached as one elsewhere is."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def __getattr__(self, name: str) -> Any:
        async def call(*words: Any) -> Any:
            await asyncio.sleep(0)
            return getattr(self.board, name)(*words)

        return call


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pictures, forty questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=8, questions=40)


def share(
    benchmark: Path, url: str, out: Path, *, workers: int = 2, max_usd: float | None = None,
    **more: Any,
) -> Board:  # fmt: skip
    """Workers of one process share a run; the parts are left."""
    request = RunRequest(
        str(benchmark), out, model=MODEL, api_url=url, judge=JUDGE, judge_url=url, **more
    )
    parts = divide(request, workers)
    names = [f"w{k}" for k in range(workers)]
    board = Board(
        deque(parts.waiting), set(names), max_usd, parts.spent_usd, parts.n_items, parts.n_probes,
        parts.n_done,
    )  # fmt: skip

    async def all_of_them() -> None:
        near: Any = Near(board)
        await asyncio.gather(
            *(Worker(n, near, request, parts.folder, parts.of).work() for n in names)
        )

    asyncio.run(all_of_them())
    return board


def board_size(tmp_path: Path) -> int:
    """How many shards hold items."""
    return sum(1 for _ in (tmp_path / "run" / "parts").glob("*/asked.json"))


def test_shared_is_the_same_as_alone(benchmark: Path, tmp_path: Path) -> None:
    """No call is made twice, and the folder is that of a run."""
    with serve() as server:
        evaluate(benchmark, server.url, tmp_path / "alone")
        alone = len(chats(server))
        board = share(benchmark, server.url, tmp_path / "run", workers=3)
        assert len(chats(server)) == 2 * alone
    united = unite(Parts(tmp_path / "run", 0))
    assert united is not None
    assert united[1].status == "complete"
    assert numbers(tmp_path / "run") == numbers(tmp_path / "alone")
    assert board.state().n_done == board_size(tmp_path)
    counted = board.state().counters
    assert counted.roles["judge"].done == counted.probes_done == 40


def test_what_a_run_has_is_not_asked_again(benchmark: Path, tmp_path: Path) -> None:
    """Its journal goes into those of the parts; another start goes on where this one ended."""
    with serve() as server:
        evaluate(benchmark, server.url, tmp_path / "run", limit=5)
        before = len(chats(server))
        share(benchmark, server.url, tmp_path / "run")
        assert len(chats(server)) == 48
        assert before > 20
        again = share(benchmark, server.url, tmp_path / "run")
        assert len(chats(server)) == 48
        assert again.state().n_done == board_size(tmp_path)
        with pytest.raises(RunFolderError, match="holds shards of a run"):
            evaluate(benchmark, server.url, tmp_path / "run")


def test_money_is_that_of_all_workers_and_goes_on(benchmark: Path, tmp_path: Path) -> None:
    """Shards wait for no money that another holds; what was spent counts at the next start."""
    prices = tmp_path / "snellen.toml"
    table = "[models.{}]\nprice_in_usd = 0.0\nprice_out_usd = 1e6\n[models.{}.params]\n"
    texts = [table.format(n, n) + f"max_tokens = {k}\n" for n, k in ((MODEL, 12), (JUDGE, 1))]
    prices.write_text("".join(texts), encoding="utf-8")
    words: dict[str, Any] = {"config": str(prices)}
    with serve() as server:
        board = share(benchmark, server.url, tmp_path / "run", max_usd=60.0, max_cost=60.0, **words)
        assert isinstance(board.error, OutOfMoneyError)
        assert 30.0 < board.spent_usd <= 60.0
        share(benchmark, server.url, tmp_path / "run", max_usd=900.0, max_cost=900.0, **words)
        assert len(chats(server)) == 48
    found = unite(Parts(tmp_path / "run", 0))
    assert found is not None
    assert found[1].status == "complete"
    assert found[1].usage["cost_usd"] == pytest.approx(
        sum(r["reply"]["usage"]["completion"] for r in rows(tmp_path / "run", "calls"))
    )


def test_a_hopeless_endpoint_stops_all(benchmark: Path, tmp_path: Path) -> None:
    with serve(key="another") as server:
        board = share(benchmark, server.url, tmp_path / "run")
        assert len(chats(server)) == 0
    assert board.error is not None
    assert "key" in board.error.message
    assert board.state().n_done == 0
