"""What a local Ray costs beside one process, with the same calls in flight and 20 ms a call.

    python benchmarks/ray_overhead.py

Ray's own start (a cluster, a board, three workers that do nothing) is measured apart and taken off.
Exits with 1 where the rest takes more than 25% longer than one process.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer
from tests.worlds.engine_world import numbers

WORKERS, IN_FLIGHT, DELAY_S, ROUNDS = 3, 24, 0.02, 3
MOST = 1.25
START = f"""
import ray
ray.init(address="local", num_cpus={WORKERS}, include_dashboard=False, log_to_driver=False)
class Board:
    def ask(self): return 1
board = ray.remote(Board).options(num_cpus=0).remote()
def work():
    import snellen.fleet.worker
tasks = [ray.remote(work).remote() for _ in range({WORKERS})]
ray.get([board.ask.remote(), *tasks])
ray.shutdown()
"""


def main() -> None:
    """Prints the figures."""
    walls: dict[str, list[float]] = {"start": [], "alone": [], "shared": []}
    same = True
    with measuring.workshop() as place:
        data = str(make_reading(place / "data", images=200, questions=10_000))
        words = ("--concurrency", IN_FLIGHT)
        ray = (*words, "--engine", "ray", "--workers", WORKERS)
        for k in range(ROUNDS):
            with FastServer("B", rules={"image_url": "A red bus."}, delay_s=DELAY_S) as server:
                walls["start"].append(measuring.run(measuring.python("-c", START)).wall_s)
                for name, more in (("alone", words), ("shared", ray)):
                    line = measuring.snellen_run(data, server.url, place / f"{name}{k}", *more)
                    walls[name].append(measuring.run(line).wall_s)
            a, b = (json.dumps(numbers(place / f"{name}{k}")) for name in ("alone", "shared"))
            same = same and a == b
    start, alone, shared = (statistics.median(walls[name]) for name in walls)
    print(
        f"10,200 calls of {1000 * DELAY_S:.0f} ms, {IN_FLIGHT} in flight: "
        f"one process {alone:.1f} s, {WORKERS} workers {shared:.1f} s, "
        f"of which Ray's start {start:.1f} s; "
        f"numbers {'equal' if same else 'NOT equal'}"
    )
    ratio = (shared - start) / alone
    holds = measuring.verdict("time without Ray's start, times", ratio, MOST, at_least=False)
    sys.exit(0 if holds and same else 1)


if __name__ == "__main__":
    main()
