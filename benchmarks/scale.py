"""How a shared run grows: memory of driver and workers, bytes of the journal, time of the merge.

    python benchmarks/scale.py --items 10000 100000

Runs on a local Ray with workers whose model and judge are functions of this file, so that nothing
but the engine is measured. Prints what 1 M pictures with 75 questions each would take, and exits
with 1 where driver or worker grow by 30 MB or more between the first size and the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import picture

WORKERS = 2
MOST_MB = 30.0
PICTURES, PROBES = 1_000_000, 75


def describe(messages: list[dict]) -> str:
    """A caption of a usual length."""
    return "A red bus stands under a tall tree near a wall, and people wait beside it. " * 12


def judge(messages: list[dict]) -> str:
    """A letter."""
    return "B"


def make(folder: Path, n_items: int, n_questions: int) -> Path:
    """A reading benchmark of so many items, which share one small picture."""
    (folder / "images").mkdir(parents=True)
    card = {"name": "scale", "protocol": "reading", "version": "1", "license": "", "source": ""}
    (folder / "benchmark.json").write_text(json.dumps(card), encoding="utf-8")
    (folder / "images" / "a.jpg").write_bytes(picture(2, 0))

    def write(name: str, rows: Iterator[dict]) -> None:
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    names = [f"p{k:07d}" for k in range(n_items)]
    write(
        "images",
        ({"image_id": n, "image": "images/a.jpg", "l1": ["A"], "l2": ["B"]} for n in names),
    )
    write("regions", (
        {"region_id": f"{n}-r", "image_id": n, "bbox": [0, 0, 9, 9], "mask": None,
         "nature": "thing", "metadata": {}} for n in names
    ))  # fmt: skip
    write("questions", (
        {"question_id": f"{n}-q{k}", "image_id": n, "region_id": f"{n}-r", "category": "Count",
         "question": f"How many people wait beside the bus number {k} of the picture {n}?",
         "options": ["none", "two", "three", "many"], "answer": "B", "generator": "g"}
        for n in names for k in range(n_questions)
    ))  # fmt: skip
    return folder


class Watch(threading.Thread):
    """The peak memory in MB of Ray's processes on this machine, by what they do."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, float] = {}
        self.seen: dict[str, float] = {}

    def run(self) -> None:
        """Looks several times a second."""
        while True:
            for folder in Path("/proc").iterdir():
                if folder.name.isdigit():
                    self._look(folder)
            time.sleep(0.2)

    def _look(self, folder: Path) -> None:
        try:
            name = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            if not name.startswith("ray::") or name == "ray::IDLE":
                return
            status = (folder / "status").read_text(encoding="utf-8")
        except OSError:
            return
        kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
        self.peaks[name] = max(self.peaks.get(name, 0.0), *(int(k) / 1024 for k in kilobytes))
        now = time.monotonic()
        self.seen[f"{name} first"] = self.seen.get(f"{name} first", now)
        self.seen[f"{name} last"] = now


def run_one(data: Path, out: Path) -> None:
    """One run; prints its figures as JSON."""
    from benchmarks import scale

    from snellen.fleet.ray_engine import run_on_ray
    from snellen.runs.request import RunRequest

    watch = Watch()
    watch.start()
    request = RunRequest(
        str(data), out, model=scale.describe, judge=scale.judge, engine="ray", workers=WORKERS
    )
    started = time.monotonic()
    finished = asyncio.run(run_on_ray(request))
    assert finished.exit_code == 0, finished.error
    seconds = {
        name: watch.seen[f"{name} last"] - watch.seen[f"{name} first"] for name in watch.peaks
    }
    print(
        json.dumps(
            {
                "seconds": time.monotonic() - started,
                "driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "peaks_mb": watch.peaks,
                "task_seconds": seconds,
                "journal_bytes": (out / "calls.jsonl").stat().st_size,
                "probes": finished.summary.counts.probes,
            }
        )
    )


def main() -> None:
    """Prints the figures of all sizes, and what they say of the largest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--questions", type=int, default=2)
    parser.add_argument("--one", type=Path, nargs=2, metavar=("DATA", "OUT"))
    words = parser.parse_args()
    if words.one:
        run_one(*words.one)
        return
    found: dict[int, dict] = {}
    with measuring.workshop() as place:
        for n in words.items:
            data = make(place / f"data{n}", n, words.questions)
            line = measuring.python(__file__, "--one", data, place / f"run{n}")
            found[n] = json.loads(_output(line))
            print(f"{n:,} items: {json.dumps(found[n])}", flush=True)
    first, last = (found[n] for n in (words.items[0], words.items[-1]))
    holds = True
    for name, a, b in (
        ("driver", first["driver_mb"], last["driver_mb"]),
        ("worker", first["peaks_mb"]["ray::_work"], last["peaks_mb"]["ray::_work"]),
    ):
        print(f"{name}: {a:.0f} MB, {b:.0f} MB")
        holds &= measuring.verdict(f"MB that the {name} grows by", b - a, MOST_MB, at_least=False)
    n_probes = last["probes"] - first["probes"]
    for name in ("divide", "unite"):
        a, b = first["peaks_mb"][f"ray::{name}"], last["peaks_mb"][f"ray::{name}"]
        seconds = last["task_seconds"][f"ray::{name}"]
        print(
            f"{name}: {a:.0f} MB, {b:.0f} MB: {1024 * (b - a) / n_probes:.1f} KB a question; "
            f"{seconds:.1f} s, {1e6 * seconds / last['probes']:.0f} us a question"
        )
    calls = words.items[-1] + last["probes"]
    a_call = last["journal_bytes"] / calls
    whole = PICTURES * (1 + PROBES) * a_call
    print(f"journal: {a_call:.0f} bytes a call; {whole / 1e9:.0f} GB for 1 M x {PROBES}")
    sys.exit(0 if holds else 1)


def _output(line: list[str]) -> str:
    import os
    import subprocess

    env = {**os.environ, "PYTHONPATH": f"{measuring.ROOT / 'src'}{os.pathsep}{measuring.ROOT}"}
    done = subprocess.run(line, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main()
