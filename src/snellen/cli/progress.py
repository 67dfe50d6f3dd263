"""Progress on stderr: a few live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from typing import TextIO

import click

from snellen.engine.counters import Counters, RoleCounters
from snellen.tables.screen import cut, legible

LIVE_EVERY_S = 0.25
FIRST_PLAIN_S = 2.0
PLAIN_EVERY_S = 10.0
# Rates are those of the last so many seconds.
WINDOW_S = 15.0
BAR_WIDTH = 30
CLEAR_BELOW = "\x1b[J"
TO_START, UP = "\r", "\x1b[{}A"


@dataclass(slots=True)
class Rates:
    """What was done by when in the last seconds."""

    samples: deque[tuple[float, float, dict[str, int]]] = field(default_factory=deque)

    def note(self, counters: Counters) -> None:
        """Takes a sample of a run."""
        at = time.monotonic()
        if not self.samples:
            self.samples.append((counters.started_at, 0.0, {}))
        done = {role: m.done for role, m in counters.roles.items()}
        self.samples.append((at, share_done(counters), done))
        while len(self.samples) > 2 and self.samples[0][0] < at - WINDOW_S:
            self.samples.popleft()

    def calls_per_s(self, role: str) -> float:
        """Finished calls of a role a second."""
        (_, _, old), (_, _, new) = self.samples[0], self.samples[-1]
        return (new.get(role, 0) - old.get(role, 0)) / self._span_s

    @property
    def share_per_s(self) -> float:
        """The share of the run that is done in a second."""
        return (self.samples[-1][1] - self.samples[0][1]) / self._span_s

    @property
    def _span_s(self) -> float:
        return max(self.samples[-1][0] - self.samples[0][0], 1e-9)


class Progress:
    """Shows the counters of a job under a label; `is_plain` where others are shown beside it."""

    def __init__(self, label: str, *, is_plain: bool = False) -> None:
        self.label, self.is_plain = legible(label), is_plain
        self.rates = Rates()

    @asynccontextmanager
    async def show(self, counters: Counters) -> AsyncIterator[None]:
        """Shows counters for as long as the context is open.

        It ends with a last plain line: the whole run's averages. Nobody may be looking any more
        (a closed terminal, `2>&1 | head`): the run is kept.
        """
        is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        live = is_terminal and os.name != "nt" and not self.is_plain
        task = asyncio.create_task(self._live(counters) if live else self._plain(counters))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.rates = Rates()
            with suppress(OSError):
                click.echo(self.line(counters, is_over=True), err=True)

    async def _plain(self, counters: Counters) -> None:
        await asyncio.sleep(FIRST_PLAIN_S)
        while True:
            click.echo(self.line(counters), err=True)
            await asyncio.sleep(PLAIN_EVERY_S)

    async def _live(self, counters: Counters) -> None:
        terminal = sys.stderr
        with redirect_stderr(ErasingStderr(terminal)):
            try:
                while True:
                    # Shows lines from the cursor on, as far as they fit; the cursor stays there.
                    lines = self.block(counters)
                    width, height = _size_of(terminal)
                    lines, room = lines[: max(height - 1, 1)], width - 1
                    short = [
                        line if len(cut(line, room)) == 1 else cut(line, room - 1)[0] + "…"
                        for line in lines
                    ]
                    back = TO_START + (UP.format(len(lines) - 1) if len(lines) > 1 else "")
                    terminal.write(CLEAR_BELOW + "\n".join(short) + back)
                    terminal.flush()
                    await asyncio.sleep(LIVE_EVERY_S)
            finally:
                terminal.write(CLEAR_BELOW)

    def line(self, counters: Counters, *, is_over: bool = False) -> str:
        """The state in one line: done, rates, in flight, retries, oldest call, tokens, cost.

        Where the run is over, nothing is forecast.
        """
        self.rates.note(counters)
        return " · ".join(
            [
                f"{self._name(counters)}: {self._items(counters)}",
                *(self._role(role, m) for role, m in _active(counters)),
                *self._state(counters, is_over=is_over),
            ]
        )

    def block(self, counters: Counters) -> list[str]:
        """The same as a few lines for a terminal."""
        self.rates.note(counters)
        full = round(BAR_WIDTH * share_done(counters))
        bar = "━" * full + "╌" * (BAR_WIDTH - full)
        return [
            f"{self._name(counters)} {bar} {self._items(counters)}",
            *(f"  {self._role(role, m)}" for role, m in _active(counters)),
            "  " + " · ".join(self._state(counters)),
        ]

    def _name(self, counters: Counters) -> str:
        return f"{self.label}, {legible(counters.stage)}" if counters.stage else self.label

    def _items(self, counters: Counters) -> str:
        items = f"{counters.flows_done:,}/{counters.n_items:,} items"
        return (
            f"{items}, {counters.probes_done:,}/{counters.probes:,} probes"
            if counters.probes
            else items
        )

    def _role(self, role: str, m: RoleCounters) -> str:
        text = f"{role} {m.done:,} calls, {_rate(self.rates.calls_per_s(role))}"
        extras = (
            (m.retries, "retries"),
            (m.failed, "failed"),
            (m.cached, "from cache"),
            (m.replayed, "from before"),
        )
        text += "".join(f", {n:,} {word}" for n, word in extras if n)
        tokens = m.prompt_tokens + m.completion_tokens
        return f"{text}, {tokens:,} tokens" if tokens else text

    def _state(self, counters: Counters, *, is_over: bool = False) -> Iterator[str]:
        oldest = counters.oldest
        waits = (
            f", oldest {oldest[0]:.0f} s ({legible(oldest[1])})"
            if oldest and oldest[0] >= 1
            else ""
        )
        yield f"{counters.in_flight} in flight{waits}"
        for name, (since, until) in counters.away.items():
            yield f"waiting for {legible(name)} since {_clock(since)}, until {_clock(until)}"
        cost = sum(m.cost_usd for m in counters.roles.values())
        if cost:
            forecast = f", about {self._forecast_usd(counters):.4g} in all"
            yield f"{cost:.4f} USD{'' if is_over else forecast}"
        left = 1.0 - share_done(counters)
        if left > 0 and self.rates.share_per_s > 0 and not is_over:
            yield f"about {_duration(left / self.rates.share_per_s)} left"

    def _forecast_usd(self, counters: Counters) -> float:
        """What the run will have cost: replies by items, judging by probes."""
        share, usd = share_done(counters), 0.0
        for role, m in counters.roles.items():
            replies = m.done + m.cached + m.replayed
            done = replies / counters.n_items if role == "model" and counters.n_items else share
            usd += m.cost_usd / min(done, 1.0) if done else m.cost_usd
        return usd


def share_done(counters: Counters) -> float:
    """How much of a run is done: by probes, or by items where nobody counts probes."""
    done, of = (
        (counters.probes_done, counters.probes)
        if counters.probes
        else (counters.flows_done, counters.n_items)
    )
    return min(done / of, 1.0) if of else 1.0


def _active(counters: Counters) -> list[tuple[str, RoleCounters]]:
    return [(role, m) for role, m in counters.roles.items() if m.tries or m.cached or m.replayed]


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _rate(per_s: float) -> str:
    return f"{per_s:.0f}/s" if per_s >= 10 or not per_s else f"{per_s:.1f}/s"


def _duration(seconds: float) -> str:
    """A rough time in words.

    >>> _duration(40), _duration(600), _duration(9000)
    ('40 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size_of(terminal: TextIO) -> tuple[int, int]:
    """Columns and lines of the terminal itself: stdout may lead elsewhere, and COLUMNS be old."""
    size = os.terminal_size((0, 0))
    with suppress(OSError):
        size = os.get_terminal_size(terminal.fileno())
    columns, lines = size if all(size) else shutil.get_terminal_size()
    return columns, lines


class ErasingStderr(io.TextIOBase):
    """Wraps stderr and erases the progress block before other output."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str, /) -> int:
        """Writes a text where the block stood; the block is drawn anew below it."""
        return self._terminal.write(CLEAR_BELOW + text)

    def flush(self) -> None:
        """Sends what was written."""
        self._terminal.flush()

    def isatty(self) -> bool:
        """It is one, as far as colours go."""
        return True
