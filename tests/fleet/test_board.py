"""The board of a shared run: shards, shares of limits, money, and workers that die."""

from __future__ import annotations

from collections import deque

import pytest

from snellen.engine.counters import Counters, RoleCounters
from snellen.errors import SnellenError
from snellen.fleet.board import Board, ShardEnd


def board(n: int = 4, workers: str = "ab", **more: float) -> Board:
    return Board(deque(range(1, n + 1)), set(workers), **more)  # type: ignore[arg-type]


class TestShards:
    def test_each_is_given_once_and_a_lost_workers_come_back_first(self) -> None:
        shared = board()
        assert [shared.next(name) for name in "abab"] == [1, 2, 3, 4]
        shared.end("a", ShardEnd(1, is_complete=True))
        shared.lose("a", "c")
        assert [shared.next(name) for name in "bcb"] == [3, None, None]
        assert shared.state().n_workers == 2

    def test_an_error_stops_all_and_the_first_is_kept(self) -> None:
        shared = board()
        first = SnellenError("the key is wrong")
        shared.end("a", ShardEnd(1, is_complete=False, error=first))
        shared.stop(SnellenError("another"))
        assert shared.next("b") is None
        assert shared.report("b", Counters()).is_stopped
        assert shared.state().error is first


class TestLimits:
    def test_the_workers_that_are_there_share_them(self) -> None:
        shared = board(workers="abc")
        orders = shared.report("a", Counters())
        assert (orders.share, orders.rate_share) == (pytest.approx(1 / 3), 1.0)
        orders = shared.report("b", Counters())
        assert (orders.share, orders.rate_share) == (pytest.approx(1 / 3), 0.5)
        shared.leave("b")
        orders = shared.report("a", Counters())
        assert (orders.share, orders.rate_share) == (0.5, 1.0)
        shared.lose("a", "d")
        orders = shared.report("d", Counters())
        assert (orders.share, orders.rate_share) == (0.5, 1.0)

    def test_no_more_money_is_granted_than_there_is(self) -> None:
        """What a shard did not need is there for others, and what it spent is not."""
        shared = board(max_usd=1.0, spent_usd=0.2)
        granted = {number: shared.grant(number, 0.0) for number in (1, 2)}
        assert None not in granted.values()
        spent, n = 0.0, 0
        while (more := shared.grant(1, spent)) is not None:
            assert more > spent
            spent, n = more, n + 1
        assert n > 3
        assert spent + (granted[2] or 0.0) <= 0.8 + 1e-9
        shared.end("a", ShardEnd(1, is_complete=False, spent_usd=0.1))
        assert shared.grant(3, 0.0) is not None

    def test_without_a_budget_there_is_no_end(self) -> None:
        assert board().grant(1, 5.0) == float("inf")


def test_what_workers_report_is_added_up() -> None:
    """Of those that are there and those that have left; of a lost one its successor counts."""
    shared = board(workers="abc", n_items=9, n_probes=90)
    for name in "abc":
        counters = Counters(roles={"model": RoleCounters(done=2)}, probes_done=3, in_flight=1)
        shared.report(name, counters)
    shared.leave("b")
    shared.lose("c", "d")
    total = shared.state().counters
    assert (total.roles["model"].done, total.probes_done, total.in_flight) == (4, 6, 1)
    assert (total.n_items, total.probes) == (9, 90)
