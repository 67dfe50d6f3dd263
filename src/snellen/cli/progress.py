"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

import click

from snellen.meters import Meter, RoleMeter

LIVE_EVERY_S = 0.2
PLAIN_EVERY_S = 10.0


class Progress:
    """Shows the meter of a run of `total` flows."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total = label, total

    def watch(self, meter: Meter) -> Watch:
        """Starts to show a meter; call inside the running loop."""
        return Watch(self, meter)

    def line(self, meter: Meter) -> str:
        """The state in one line: done, rate, in flight, retries, oldest call, tokens, cost."""
        parts = [f"{self.label}: {meter.flows_done}/{self.total} items"]
        elapsed = max(time.monotonic() - meter.started_at, 1e-9)
        for role, m in meter.roles.items():
            if m.done or m.cached or m.replayed:
                parts.append(_role(role, m, elapsed))
        parts.append(f"{meter.in_flight} in flight")
        oldest = meter.oldest
        if oldest is not None and oldest[0] > 5:
            parts.append(f"oldest {oldest[0]:.0f} s ({oldest[1]})")
        parts.extend(self._money(meter))
        return " · ".join(parts)

    def _money(self, meter: Meter) -> list[str]:
        cost = sum(m.cost_usd for m in meter.roles.values())
        if not cost:
            return []
        done = meter.flows_done
        forecast = f", about {cost * self.total / done:.2f} in all" if done else ""
        return [f"{cost:.4f} USD{forecast}"]


def _role(role: str, m: RoleMeter, elapsed: float) -> str:
    text = f"{role} {m.done} calls ({m.done / elapsed:.0f}/s)"
    extras = [
        (m.retries, "retries"),
        (m.failed, "failed"),
        (m.cached, "from cache"),
        (m.replayed, "from before"),
    ]
    text += "".join(f", {n} {word}" for n, word in extras if n)
    tokens = m.prompt_tokens + m.completion_tokens
    return f"{text}, {tokens:,} tokens" if tokens else text


class Watch:
    """A meter that is being shown."""

    def __init__(self, progress: Progress, meter: Meter) -> None:
        self._progress, self._meter = progress, meter
        self._live = sys.stderr.isatty()
        self._task = asyncio.create_task(self._loop())

    async def _loop(self) -> None:
        if not self._live:
            while True:
                await asyncio.sleep(PLAIN_EVERY_S)
                click.echo(self._progress.line(self._meter), err=True)
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
            while True:
                live.update(Text(self._progress.line(self._meter)), refresh=True)
                await asyncio.sleep(LIVE_EVERY_S)

    async def stop(self) -> None:
        """Ends the display with a last plain line."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        click.echo(self._progress.line(self._meter), err=True)


ProgressMaker = Callable[[str, int], Progress]
