"""Sixteen shards of a run of the real size, united: time, memory, and the numbers of one run.

    python benchmarks/merge.py

One shard runs twice, and one is killed in mid-run and started again. Exits with 1 where the united
numbers are not those of one run, or the merge takes 3 s or more.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.kills import start
from benchmarks.synthetic import make_reading
from tests.worlds.engine_world import chats, numbers, serve

SHARDS = 16
SIZES = {"images": 346, "questions": 25_650}
LIMIT_S = 3.0


def main() -> None:
    """Prints the figures."""
    with measuring.workshop() as place, serve() as server:
        data = str(make_reading(place / "data", **SIZES))
        start(data, server.url, place / "whole", ("--concurrency", "64")).wait()
        for k in range(1, SHARDS + 1):
            words = ("--shard", f"{k}/{SHARDS}", "--concurrency", "64")
            out = place / "shards" / f"{k:02d}"
            if k == 5:
                made, process = len(chats(server)), start(data, server.url, out, words)
                while len(chats(server)) - made < 300:
                    time.sleep(0.01)
                process.kill()
                process.wait()
            start(data, server.url, out, words).wait()
        start(data, server.url, place / "shards" / "twice", ("--shard", f"3/{SHARDS}")).wait()
        line = ["-m", "snellen", "merge", str(place / "shards"), "--json", "--out"]
        cost = measuring.run(measuring.python(*line, place / "out"))
        same = json.dumps(numbers(place / "out")) == json.dumps(numbers(place / "whole"))
    print(
        f"{SHARDS + 1} folders of {SIZES['questions']:,} probes united in {cost.wall_s:.2f} s, "
        f"{cost.peak_mb:.0f} MB; numbers {'equal' if same else 'NOT equal'} those of one run"
    )
    holds = measuring.verdict("seconds of the merge", cost.wall_s, LIMIT_S, at_least=False)
    sys.exit(0 if holds and same else 1)


if __name__ == "__main__":
    main()
