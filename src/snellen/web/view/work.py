"""Work beside the server, in processes of their own: indexes and figures.

    python -m snellen.web.view.work TASK JSON

Such a process gives its memory back when it ends, and no page waits for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from snellen.errors import SnellenError

AT_ONCE = 2
FIRST_PAGE_S = 0.6
"""How long work waits after the start, so that the first page comes first."""
Words = Sequence[str]


class Worker(Protocol):
    """Does a task, now or later: the future has its error, or None."""

    def do(self, task: str, words: Words) -> Future[None]: ...

    def close(self) -> None: ...


def _index(words: Words) -> None:
    """Index runs: pairs of a run folder and the file of its index."""
    from snellen.web.view import index

    for folder, out in zip(words[::2], words[1::2], strict=True):
        index.build_index(Path(folder), Path(out))


def _difficulty(words: Words) -> None:
    from snellen.web.view import index

    out, *indexes = words
    index.build_difficulty(map(Path, indexes), Path(out))


def _regions(words: Words) -> None:
    from snellen.web.view import index

    source, out = words
    index.build_regions(source, Path(out))


def _figures(words: Words) -> None:
    from snellen.web.view.figures import draw

    title, out, sources, *folders = words
    draw(title, [Path(folder) for folder in folders], Path(out), json.loads(sources))


TASKS: Mapping[str, Callable[[Words], None]] = {
    "index": _index,
    "difficulty": _difficulty,
    "regions": _regions,
    "figures": _figures,
}


class Here:
    """Does each task at once in this process: for tests, and for what is small."""

    def do(self, task: str, words: Words) -> Future[None]:
        """Do the task and give its end."""
        done: Future[None] = Future()
        try:
            TASKS[task](words)
            done.set_result(None)
        except (SnellenError, OSError) as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        """Nothing is left to end."""


class Beside:
    """Does tasks in processes of their own, two at once."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="beside")
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._begins_at = time.monotonic() + FIRST_PAGE_S

    def do(self, task: str, words: Words) -> Future[None]:
        """Begin a task as soon as there is room."""
        return self._pool.submit(self._run, task, words)

    def _run(self, task: str, words: Words) -> None:
        time.sleep(max(0.0, self._begins_at - time.monotonic()))
        command = [sys.executable, "-m", "snellen.web.view.work", task, json.dumps(words)]
        with self._lock:
            if self._closed:
                return
            # In a session of its own, Ctrl-C reaches the server alone, which then ends this.
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
            self._running.add(child)
        _, said = child.communicate()
        with self._lock:
            self._running.discard(child)
        if child.returncode and not self._closed:
            lines = [line for line in said.splitlines() if line.strip()]
            raise SnellenError(lines[-1] if lines else f"{task} ended with {child.returncode}")

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._closed = True
            for child in self._running:
                child.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)


def main() -> int:
    """Do the task of the command line; an expected failure is a line on stderr."""
    # Pages come first.
    with suppress(AttributeError, OSError):
        os.nice(5)
    try:
        TASKS[sys.argv[1]](json.loads(sys.argv[2]))
    except (SnellenError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
