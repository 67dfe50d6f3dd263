"""Measures `snellen view` on 13 runs of 25,650 probes: first view, index, pages, memory.

    python -m benchmarks.web [--runs 13] [--images 346] [--questions 25650] [--keep DIR]

The runs are written first, with journals, summaries and pictures, one simulated captioner each.
Then the command is started as a user starts it, and asked for its pages over HTTP. The goals: the
first view in under 1 s from the start of the command, the indexes of all runs in under 20 s, every
page in under 150 ms once they are there, and under 400 MB of memory in the server and in each
process beside it.
"""

from __future__ import annotations

import argparse
import http.client
import io
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import msgspec
from benchmarks.compare import write_runs

GOALS = {"first view": 1.0, "index": 20.0, "page": 0.150, "memory": 400.0}
TRIES = 7
PAGES = (
    "/",
    "/?sort=s1.coverage&down=1",
    "/runs/run05",
    "/runs/run05?verdict=wrong&category=Count",
    "/runs/run05?verdict=failed&sort=difficulty&down=1&page=40",
    "/runs/run05?right_in=none",
    "/runs/run05?q=object+number+7",
    "/runs/run05?l1=domain+3&generator=generator+1&sort=tokens",
    "/runs/run05?page=513",
    "/runs/run05/items",
    "/runs/run05/items?verdict=wrong&sort=right",
    "/runs/run05/numbers",
    "/runs/run05/item?id=image0100",
    "/runs/run05/item?id=image0100&verdict=wrong&category=Count",
    "/side?run=run00&run=run05&run=run08&run=run12",
    "/side?run=run00&run=run05&run=run08&run=run12&id=image0200",
    "/flips?run=run00&run=run12",
    "/flips?run=run00&run=run12&kind=to_right&page=9",
    "/picture?run=run05&id=image0100&number=0",
)


def write_all(folder: Path, words: SimpleNamespace) -> None:
    """Run folders as `snellen run` leaves them, with a picture for each item."""
    from PIL import Image as Pillow

    from snellen.engine.journal import CallRow
    from snellen.pictures.prepare import image_from_path
    from snellen.records import Item, Reply, Usage
    from snellen.runs.folder import load_run, write_json
    from snellen.runs.summary import summarise

    write_runs(folder, words)
    pictures = folder / "pictures"
    pictures.mkdir()
    noise = Pillow.frombytes("RGB", (300, 200), random.Random(0).randbytes(180_000))
    buffer = io.BytesIO()
    noise.resize((1200, 800)).save(buffer, "JPEG", quality=85)
    lines = []
    for line in (folder / "run00" / "items.jsonl").read_bytes().splitlines():
        item = msgspec.json.decode(line, type=Item)
        file = pictures / f"{item.id}.jpg"
        file.write_bytes(buffer.getvalue())
        lines.append(msgspec.json.encode(replace(item, images=(image_from_path(file),))) + b"\n")
    usage = Usage(900, 4)
    for run in sorted(folder.glob("run*")):
        (run / "items.jsonl").write_bytes(b"".join(lines))
        loaded = load_run(run)
        with (run / "calls.jsonl").open("wb") as journal:
            for (item_id, repeat, probe), verdict in loaded.verdicts.items():
                reply = Reply(verdict.raw, usage=usage, latency_s=0.4, model="judge")
                row = CallRow(item_id, repeat, "verdict", probe, 0, "k" * 64, "judge", reply)
                journal.write(msgspec.json.encode(row) + b"\n")
        write_json(run / "summary.json", summarise(loaded, status="complete"))


class Watch(threading.Thread):
    """Keeps the peak memory of a process and of those that it starts, in MB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.server, self.beside, self.together = pid, 0.0, 0.0, 0.0

    def run(self) -> None:
        """Look every 20 ms."""
        while True:
            own = _memory(self.pid)
            children = [_memory(pid) for pid in _children(self.pid)]
            self.server = max(self.server, own)
            self.beside = max(self.beside, *children, 0.0)
            self.together = max(self.together, own + sum(children))
            time.sleep(0.02)


def _memory(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS")), 0.0
    )


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text(encoding="utf-8").split())
        except OSError:
            continue
    return found


def get(address: str, path: str) -> tuple[float, int, bytes]:
    """The seconds, status and body of a page."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return time.perf_counter() - began, answer.status, body


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, str]]:
    """The process and the address of the command, started as a user starts it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "snellen", "view", str(folder), "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        yield child.pid, child.stdout.readline().strip().removeprefix("http://").rstrip("/")
    finally:
        child.terminate()
        child.wait()


def measure(folder: Path) -> bool:
    """Start the server, ask for its pages, print what they took; whether all goals are met."""
    began = time.perf_counter()
    with server(folder) as (pid, address):
        watch = Watch(pid)
        watch.start()
        print(f"address      {time.perf_counter() - began:7.2f} s   from the start of the command")
        _, status, _ = get(address, "/")
        first = time.perf_counter() - began
        assert status == 200
        while len(list(folder.glob("run*/view.sqlite"))) < len(list(folder.glob("run*/run.json"))):
            time.sleep(0.02)
        index = time.perf_counter() - began
        print(f"first view   {first:7.2f} s")
        print(f"all indexes  {index:7.2f} s   {size_of(folder):.0f} MB on the disk")
        # The difficulty over the runs is made once all indexes are there.
        while b"Difficulty" not in get(address, "/runs/run05")[2]:
            time.sleep(0.05)
        print(f"difficulty   {time.perf_counter() - began:7.2f} s   over all runs")
        worst = 0.0
        for path in PAGES:
            get(address, path)
            times, sizes = [], 0
            for _ in range(TRIES):
                seconds, status, body = get(address, path)
                assert status == 200, (path, status)
                times.append(seconds)
                sizes = len(body)
            worst = max(worst, median(times))
            ms = (1000 * median(times), 1000 * max(times))
            print(f"{ms[0]:6.0f} ms, at most {ms[1]:4.0f} {sizes / 1024:6.0f} kB   {path}")
        pages = watch.server
        drawn = time.perf_counter()
        while b"being drawn" in get(address, "/figures/s1")[2]:
            time.sleep(0.1)
        print(f"figures      {time.perf_counter() - drawn:7.2f} s")
        print(f"memory       {pages:7.0f} MB  the server")
        print(f"             {watch.beside:7.0f} MB  the largest process beside it")
        print(f"             {watch.together:7.0f} MB  all together")
    met = {
        "first view": first < GOALS["first view"],
        "index": index < GOALS["index"],
        "page": worst < GOALS["page"],
        "memory": max(watch.server, watch.beside) < GOALS["memory"],
    }
    for name, is_met in met.items():
        print(f"{name:<11} {'met' if is_met else 'MISSED'} (goal {GOALS[name]:g})")
    return all(met.values())


def size_of(folder: Path) -> float:
    """The megabytes of all indexes."""
    return sum(file.stat().st_size for file in folder.glob("run*/view.sqlite")) / 1e6


def main() -> int:
    """Write the runs, unless they are there, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=13)
    parser.add_argument("--images", type=int, default=346)
    parser.add_argument("--questions", type=int, default=25_650)
    parser.add_argument("--keep", type=Path, help="write the runs here, or take those from here")
    words = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # As after an installation, which compiles all files.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as place:
        folder = words.keep or Path(place) / "runs"
        if not folder.exists():
            folder.mkdir(parents=True)
            write_all(folder, words)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{place}/bytecode"
        subprocess.run([sys.executable, "-c", "import snellen.web.view.figures"], check=True)
        with server(folder) as (_, address):
            get(address, "/")
        for file in folder.glob("run*/view.sqlite"):
            file.unlink()
        return 0 if measure(folder) else 1


if __name__ == "__main__":
    sys.exit(main())
