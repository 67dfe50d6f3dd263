"""The response cache: a second run, in another folder, of 18,240 calls that are all in it.

    python benchmarks/cache.py             under a minute

Prints both runs' processor time, the time of a hit, and the size of the file.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.engine import CAPTION
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer

IMAGES, QUESTIONS = 240, 18_000


def main() -> None:
    """Prints the figures; exit code 1 where a call is made that the cache could have spared."""
    n_calls = IMAGES + QUESTIONS
    with measuring.workshop() as place:
        source = make_reading(place / "data", images=IMAGES, questions=QUESTIONS)
        with FastServer("B", rules={"image_url": CAPTION}, delay_s=0.005) as server:
            runs = {
                name: measuring.run(
                    measuring.snellen_run(str(source), server.url, place / name, *words)
                )
                for name, words in (
                    ("without", []),
                    ("filling", ["--cache"]),
                    ("filled", ["--cache"]),
                )
            }
            calls = server.stats()["calls"]
        size = sum(file.stat().st_size for file in (place / "cache").glob("replies.sqlite*"))
    for name, cost in runs.items():
        print(f"{name:8}: {cost.wall_s:.2f} s, CPU {cost.cpu_s:.2f} s")
    added = runs["filling"].cpu_s - runs["without"].cpu_s
    print(f"to keep a reply: {1e6 * added / n_calls:.0f} microseconds; file {size / 1e6:.1f} MB")
    print(f"a run of hits: {1e6 * runs['filled'].wall_s / n_calls:.0f} microseconds a call, in all")
    sys.exit(0 if measuring.verdict("calls", calls, 2 * n_calls, at_least=False) else 1)


if __name__ == "__main__":
    main()
