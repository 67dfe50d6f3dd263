"""Progress says what is done, how fast, who is waited for, and what it will have cost."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import Callable
from fcntl import ioctl
from select import select

import click
import pytest

from snellen.cli import progress as module
from snellen.cli.progress import Progress
from snellen.engine.counters import Counters, RoleCounters


def counters(**more: object) -> Counters:
    """A run of 10 items and 100 probes, a quarter done after 10 s."""
    roles = {
        "model": RoleCounters(tries=6, done=5, cost_usd=0.5, prompt_tokens=1000),
        "judge": RoleCounters(tries=30, done=25, retries=3, failed=1, cost_usd=0.25),
    }
    words = {
        "roles": roles, "n_items": 10, "flows_done": 2, "in_flight": 6,
        "started_at": time.monotonic() - 10, "probes": 100, "probes_done": 25,
    }  # fmt: skip
    return Counters(**{**words, **more})  # type: ignore[arg-type]


def test_one_line_holds_stages_rates_retries_cost_and_what_is_left() -> None:
    """Judging costs by probes, replies by items: 1 USD for 10 replies, 1 USD for 100 probes."""
    line = Progress("mini").line(counters())
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
    assert "oldest 90 s (slow)" in Progress("mini").line(counters(pending=pending))
    assert "oldest" not in Progress("mini").line(counters())


def test_rates_are_those_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fast an hour ago says nothing about now."""
    monkeypatch.setattr(module, "WINDOW_S", 0.02)
    shown, state = Progress("mini"), counters()
    shown.line(state)
    time.sleep(0.03)
    shown.line(state)
    time.sleep(0.03)
    assert "judge 25 calls, 0/s" in shown.line(state)


def test_a_run_that_has_not_begun_has_a_line_too() -> None:
    """Nothing is divided by nothing."""
    assert Progress("mini").line(Counters(started_at=time.monotonic())).startswith("mini: 0/0")


def test_a_stage_is_named() -> None:
    """Of a job with several, the one under way."""
    assert Progress("mini").line(counters(stage="captions")).startswith("mini, captions: 2/10")


def test_a_server_that_is_waited_for_is_named() -> None:
    """With since when and until when."""
    line = Progress("mini").line(counters(away={"eye at http://h/v1": (0.0, 600.0)}))
    assert re.search(r"waiting for eye at http://h/v1 since \d\d:\d0:00, until \d\d:\d0:00", line)


def test_a_run_that_is_over_forecasts_nothing() -> None:
    """Also where it was stopped half way."""
    line = Progress("mini").line(counters(), is_over=True)
    assert "about" not in line
    assert "0.7500 USD" in line


@pytest.mark.parametrize("live", [True, False])
def test_a_run_goes_on_when_nobody_can_be_told(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of stderr that has gone costs no run its summary."""

    tried: list[str] = []

    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            tried.append(text)
            raise BrokenPipeError(32, "Broken pipe")

        def isatty(self) -> bool:
            return live

    async def go() -> None:
        async with Progress("mini").show(counters()):
            await asyncio.sleep(0.02)

    monkeypatch.setattr(module, "FIRST_PLAIN_S", 0.0)
    monkeypatch.setattr(sys, "stderr", Gone())
    asyncio.run(go())
    assert any("mini" in str(text) for text in tried)


def test_a_name_of_many_lines_stays_on_one() -> None:
    """The label and the item that is waited for are written as one line."""
    pending = {1: (time.monotonic() - 90, "two\nlines")}
    block = Progress("two\nlines").block(counters(pending=pending))
    assert all(line.isprintable() for line in block)


def test_a_block_for_a_terminal_says_the_same() -> None:
    """A few lines: the items with a bar, then each role, then the state."""
    block = Progress("mini").block(counters())
    assert [line.split()[0] for line in block] == ["mini", "model", "judge", "6"]
    assert block[0].count("━") + block[0].count("╌") == module.BAR_WIDTH
    assert block[0].count("━") == round(module.BAR_WIDTH / 4)


@pytest.mark.parametrize("width", [20, 60, 200])
def test_a_terminal_shows_one_block_below_what_is_told(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is drawn: a notice stays above it, and at the end it is gone."""
    monkeypatch.setenv("COLUMNS", str(width))
    during, after = watched(monkeypatch, said="notice: look at this")
    assert during[0] == "notice: look at this"
    assert [line.split()[0] for line in during[1:]] == ["mini", "model", "judge", "6"]
    assert all(len(line) < width for line in during[1:])
    assert after[0] == "notice: look at this"
    assert len(after) == 2
    assert after[1].startswith("mini: 2/10 items")


def test_the_size_is_that_of_the_terminal_which_is_drawn_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not of stdout, which may lead into a file, nor what COLUMNS was before a change."""
    monkeypatch.setenv("COLUMNS", "120")
    during, _ = watched(monkeypatch, size=(24, 30))
    assert max(map(len, during)) == 29
    for lines, shown in ((3, ["mini", "model"]), (1, ["mini"])):
        during, after = watched(monkeypatch, size=(lines, 80))
        assert [line.split()[0] for line in during] == shown
        assert len(after) == 1


def watched(
    monkeypatch: pytest.MonkeyPatch, *, size: tuple[int, int] = (0, 0), said: str = ""
) -> list[list[str]]:
    """What a terminal of so many lines and columns shows during a run and after it."""
    monkeypatch.setattr(module, "LIVE_EVERY_S", 0.02)
    monkeypatch.setenv("TERM", "xterm")
    screens = []

    async def go(read: Callable[[], str]) -> None:
        async with Progress("mini").show(counters()):
            await asyncio.sleep(0.05)
            if said:
                click.echo(said, err=True)
            await asyncio.sleep(0.05)
            screens.append(screen(read()))
        screens.append(screen(read()))

    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    told: list[str] = []

    def read() -> str:
        while select([ours], [], [], 0.0)[0]:
            told.append(os.read(ours, 65536).decode())
        return "".join(told)

    with os.fdopen(theirs, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        asyncio.run(go(read))
        assert sys.stderr is stream
    os.close(ours)
    return screens


def screen(told: str) -> list[str]:
    """The lines that a terminal shows after what was written to it; long ones are not wrapped."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]+", told):
        if piece == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif piece.startswith("\x1b["):
            row = max(row - max(int(piece[2:-1]), 1), 0)
        elif piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        else:
            old = lines[row]
            lines[row] = old[:column] + piece + old[column + len(piece) :]
            column += len(piece)
    return [line for line in lines if line]


def test_where_there_is_no_terminal_plain_lines_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first soon, then now and then, and a last one at the end."""
    monkeypatch.setattr(module, "FIRST_PLAIN_S", 0.01)
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0.01)
    lines: list[str] = []

    async def go() -> None:
        async with Progress("mini").show(counters()):
            while len(lines) < 2:
                await asyncio.sleep(0.005)
                lines.extend(capsys.readouterr().err.splitlines())

    asyncio.run(asyncio.wait_for(go(), 30))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err
    assert all(line.startswith("mini: 2/10") for line in [*lines, *told.err.splitlines()])
