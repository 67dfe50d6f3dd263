"""Small calls: the engine against a bare aiohttp client, as whole processes.

    python benchmarks/engine.py            both cases, about two minutes
    python benchmarks/engine.py --case small --rounds 3

`small`: 18,000 judge calls on 240 captions, 64 in flight, replies after 20 ms.
`wide`: 22,500 judge calls on 300 captions, 1,000 in flight, replies after 200 ms.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer

CAPTION = (
    "A red double-decker bus stands at a stop in front of a brick building. " * 12
    + "Two people wait under a glass roof; a third one, in a yellow coat, reads the timetable. " * 6
)
# What a judge call's body holds beside the caption.
PROMPT_BYTES = 885


@dataclass(frozen=True, slots=True)
class Case:
    """A load, and the limits that issue 3 sets for it."""

    images: int
    questions: int
    in_flight: int
    delay_s: float
    least_rate: float
    most_cpu: float


CASES = {
    "small": Case(240, 18_000, 64, 0.02, 0.75, 2.0),
    "wide": Case(300, 22_500, 1000, 0.2, 0.7, 2.5),
}


def main() -> None:
    """Prints the figures of the cases asked for; exit code 1 where a limit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--rounds", type=int, default=3)
    words = parser.parse_args()
    names = list(CASES) if words.case == "all" else [words.case]
    holds = [measure(name, CASES[name], words.rounds) for name in names]
    sys.exit(0 if all(holds) else 1)


def measure(name: str, case: Case, rounds: int) -> bool:
    """Runs floor and engine in turn and compares the medians."""
    n_calls = case.images + case.questions
    rates, cpus = [], []
    with measuring.workshop() as place:
        source = make_reading(place / "data", images=case.images, questions=case.questions)
        for k in range(rounds):
            measuring.use_cache(place / f"cache{k}")
            with FastServer("B", rules={"image_url": CAPTION}, delay_s=case.delay_s) as server:
                size = len(CAPTION) + PROMPT_BYTES
                floor = measuring.run(
                    measuring.floor(server.url, case.in_flight, f"{n_calls}x{size}")
                )
                line = measuring.snellen_run(
                    str(source), server.url, place / f"run{k}", "--concurrency", case.in_flight,
                )  # fmt: skip
                ours = measuring.run(line)
            rate, cpu = measuring.compare(name, ours, floor, n_calls)
            rates.append(rate)
            cpus.append(cpu)
    rate, cpu = statistics.median(rates), statistics.median(cpus)
    ok = measuring.verdict("rate ratio", rate, case.least_rate, at_least=True)
    return measuring.verdict("CPU ratio", cpu, case.most_cpu, at_least=False) and ok


if __name__ == "__main__":
    main()
