"""Resume: a finished run of 25,650 probes on 346 captions, started again.

    python benchmarks/resume.py            under a minute

Prints how long the second start takes, and how many calls it makes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.engine import CAPTION
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer

MOST_S = 5.0


def main() -> None:
    """Prints the figures; exit code 1 where a limit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=346)
    parser.add_argument("--questions", type=int, default=25_650)
    words = parser.parse_args()
    with measuring.workshop() as place:
        source = make_reading(place / "data", images=words.images, questions=words.questions)
        with FastServer("B", rules={"image_url": CAPTION}, delay_s=0.005) as server:
            line = measuring.snellen_run(str(source), server.url, place / "run")
            first = measuring.run(line)
            asked = server.stats()["calls"]
            second = measuring.run(line)
            again = server.stats()["calls"] - asked
    print(f"first start: {asked:,} calls in {first.wall_s:.1f} s, CPU {first.cpu_s:.1f} s")
    print(f"second start: {again} calls in {second.wall_s:.2f} s, CPU {second.cpu_s:.2f} s")
    holds = [
        measuring.verdict("seconds", second.wall_s, MOST_S, at_least=False),
        measuring.verdict("calls", again, 0, at_least=False),
    ]
    sys.exit(0 if all(holds) else 1)


if __name__ == "__main__":
    main()
