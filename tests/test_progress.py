"""Progress says what is done, how fast, who is waited for, and what it will have cost."""

from __future__ import annotations

import asyncio
import time

import pytest

from snellen.cli import progress as module
from snellen.cli.progress import Progress
from snellen.engine.meters import Meter, RoleMeter


def meter(**more: object) -> Meter:
    """A run of 10 items and 100 probes, a quarter done after 10 s."""
    roles = {
        "model": RoleMeter(tries=6, done=5, cost_usd=0.5, prompt_tokens=1000),
        "judge": RoleMeter(tries=30, done=25, retries=3, failed=1, cost_usd=0.25),
    }
    words = {
        "roles": roles, "flows_done": 2, "in_flight": 6, "started_at": time.monotonic() - 10,
        "probes": 100, "probes_done": 25,
    }  # fmt: skip
    return Meter(**{**words, **more})  # type: ignore[arg-type]


def test_one_line_holds_stages_rates_retries_cost_and_what_is_left() -> None:
    """Judging costs by probes, replies by items: 1 USD for 10 replies, 1 USD for 100 probes."""
    line = Progress("mini", 10).line(meter())
    for piece in (
        "mini: 2/10 items, 25/100 probes",
        "model 5 calls, 0.5/s, 1,000 tokens",
        "judge 25 calls, 2.5/s, 3 retries, 1 failed",
        "6 in flight",
        "0.7500 USD, about 2 in all",
        "about 30 s left",
    ):
        assert piece in line


def test_a_call_that_takes_long_is_named_with_its_age() -> None:
    """The oldest one, by its item."""
    pending = {1: (time.monotonic() - 90, "slow"), 2: (time.monotonic() - 5, "fast")}
    assert "oldest 90 s (slow)" in Progress("mini", 10).line(meter(pending=pending))
    assert "oldest" not in Progress("mini", 10).line(meter())


def test_rates_are_those_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fast an hour ago says nothing about now."""
    monkeypatch.setattr(module, "WINDOW_S", 0.02)
    shown, state = Progress("mini", 10), meter()
    shown.line(state)
    time.sleep(0.03)
    shown.line(state)
    time.sleep(0.03)
    assert "judge 25 calls, 0/s" in shown.line(state)


def test_a_run_that_has_not_begun_has_a_line_too() -> None:
    """Nothing is divided by nothing."""
    assert Progress("mini", 0).line(Meter(started_at=time.monotonic())).startswith("mini: 0/0")


def test_a_block_for_a_terminal_says_the_same() -> None:
    """A few lines, each cut where the terminal ends."""
    block = Progress("mini", 10).block(meter())
    assert block.no_wrap
    assert [line.split()[0] for line in block.plain.splitlines()] == ["mini", "model", "judge", "6"]


def test_where_there_is_no_terminal_plain_lines_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first soon, then now and then, and a last one at the end."""
    monkeypatch.setattr(module, "FIRST_PLAIN_S", 0.01)
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0.02)

    async def go() -> None:
        watch = Progress("mini", 10).watch(meter())
        await asyncio.sleep(0.08)
        await watch.stop()

    asyncio.run(go())
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) >= 3
    assert all(line.startswith("mini: 2/10") for line in told.err.splitlines())
