"""Random SIGKILLs over the three protocols: what is lost, doubled and asked twice.

    python benchmarks/kills.py --kills 500

Each run is killed after a random number of calls and started again, until it ends by itself. Its
journal may only grow, no call may stand in it twice, calls are repeated at most as often as they
were in flight, and the summary is that of a run that nothing has disturbed. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from tests.worlds.engine_world import MODEL, answer, chats, numbers, serve

from snellen.testing import FakeServer

IN_FLIGHT = 8
LINES = {
    "mini-reading": (),
    "mini-rubric": ("--one-rubric-a-call",),
    "mini-direct": (),
}


@dataclass(slots=True)
class Found:
    """What was counted over all runs."""

    kills: int = 0
    runs: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    unequal: int = 0


def say(body: dict) -> str:
    """A caption, a letter or a truth value: always the same for the same request."""
    if body["model"] == MODEL:
        return "A red bus number 7 stands under a tall tree near the wall."
    text = json.dumps(body["messages"])
    if "Assistant" in text or "[judge]" in text.lower():
        return f"[judge] {answer(body) in 'AB'}"
    return str(answer(body) in "ABC").lower() if "true" in text.lower() else answer(body)


def start(benchmark: str, url: str, out: Path, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    line = measuring.snellen_run(
        benchmark, url, out, "--concurrency", IN_FLIGHT, "--max-unscored", 1, *words
    )
    path = f"{measuring.ROOT / 'src'}{os.pathsep}{measuring.ROOT}"
    env = {**os.environ, "PYTHONPATH": path, "SNELLEN_CACHE": f"{out}-cache"}
    return subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed_run(
    benchmark: str, place: Path, server: FakeServer, rng: random.Random, found: Found
) -> None:
    """One run that is killed until it ends by itself."""
    out, journal = place / f"run-{found.runs}", place / f"run-{found.runs}" / "calls.jsonl"
    asked_before, kills, kept = len(chats(server)), 0, b""
    while True:
        made = len(chats(server))
        process, n = start(benchmark, server.url, out, LINES[benchmark]), rng.randint(1, 60)
        while process.poll() is None and len(chats(server)) - made < n:
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            break
        kills += 1
        now_kept = journal.read_bytes() if journal.exists() else b""
        found.lost += not now_kept.startswith(kept)
        kept = now_kept[: now_kept.rfind(b"\n") + 1]
    found.lost += not journal.read_bytes().startswith(kept)
    rows = [json.loads(line) for line in journal.read_bytes().splitlines()]
    places = Counter(
        tuple(row[k] for k in ("item", "repeat", "purpose", "probe", "ask")) for row in rows
    )
    found.doubled += sum(n > 1 for n in places.values())
    repeated = len(chats(server)) - asked_before - len(places)
    found.repeated += repeated
    if repeated > kills * IN_FLIGHT:
        print(f"{benchmark}: {repeated} calls repeated after {kills} kills")
        found.unequal += 1
    found.kills += kills
    found.runs += 1


def main() -> None:
    """Prints the counts; exit code 1 where one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, found = random.Random(options.seed), Found()
    with measuring.workshop() as place, serve(say, delay_s=0.01, jitter_s=0.02) as server:
        whole = {}
        for benchmark, words in LINES.items():
            start(benchmark, server.url, place / benchmark, words).wait()
            whole[benchmark] = numbers(place / benchmark)
        while found.kills < options.kills:
            benchmark = list(LINES)[found.runs % len(LINES)]
            out = place / f"run-{found.runs}"
            killed_run(benchmark, place, server, rng, found)
            found.unequal += numbers(out) != whole[benchmark]
    print(
        f"{found.kills} kills in {found.runs} runs: {found.lost} rows lost, {found.doubled} "
        f"doubled, {found.repeated} calls repeated (at most {found.kills * IN_FLIGHT} in flight), "
        f"{found.unequal} runs unequal"
    )
    sys.exit(1 if found.lost or found.doubled or found.unequal else 0)


if __name__ == "__main__":
    main()
