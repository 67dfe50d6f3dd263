"""Ctrl-C and a request to end, while runs are under way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

NUMBERS = (signal.SIGINT, signal.SIGTERM)
_Step = Callable[[], None]
# Runs of this process that are under way at once, and what handled the signals before the first.
_under_way: list[tuple[asyncio.AbstractEventLoop, _Step]] = []
_before: dict[signal.Signals, signal._HANDLER] = {}
_caught: list[int] = []


@contextlib.contextmanager
def interruptible(step: _Step) -> Iterator[None]:
    """Takes a step in the running loop at every signal; only the main thread can catch any.

    What handled the signals before handles them again at the end of the last run: runs may be a
    part of another program, and a loop's own `remove_signal_handler` would leave the system's
    default in its place.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    entry = (asyncio.get_running_loop(), step)
    if not _under_way:
        _caught.clear()
        for number in NUMBERS:
            handler = signal.getsignal(number)
            if handler is not None:  # one that Python did not set could not be set again
                signal.signal(number, _interrupt)
                _before[number] = handler
    _under_way.append(entry)
    try:
        yield
    finally:
        _under_way.remove(entry)
        if not _under_way:
            while _before:
                signal.signal(*_before.popitem())


async def hand_on() -> None:
    """Gives the signal that ended runs to whatever handles it now that they have ended.

    Runs that were under way at once have all ended by then, so that none is broken off.
    """
    while _under_way:
        await asyncio.sleep(0.01)
    if _caught:
        number = _caught[0]
        _caught.clear()
        signal.raise_signal(number)


def _interrupt(number: int, _frame: object) -> None:
    _caught.append(number)
    interrupt_all()


def interrupt_all() -> None:
    """Ends all runs under way as Ctrl-C would: what is in flight has a moment to finish."""
    for loop, step in _under_way:
        loop.call_soon_threadsafe(step)
