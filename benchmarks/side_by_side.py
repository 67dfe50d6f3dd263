"""Two models on three benchmarks behind one address, in one command.

    python benchmarks/side_by_side.py      about a minute

A run alone is a chain of slow calls that leaves slots free: side by side all of them take hardly
longer than the longest alone. Exit code 1 where they take more than 10% longer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer

from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute_together

DELAY_S = 12.0
SIZES = ((10, 40), (8, 30), (6, 20))


def seconds(make: Callable[[], Sequence[RunRequest]]) -> float:
    """How long some runs take side by side, from the first call to the last table."""
    plans = [make_plan(one) for one in make()]
    started, before = time.monotonic(), time.process_time()
    asyncio.run(execute_together(plans))
    took = time.monotonic() - started
    print(f"{len(plans)} runs: {took:.2f} s, of which {time.process_time() - before:.2f} s CPU")
    return took


def main() -> None:
    """Prints the figures."""
    with measuring.workshop() as place, FastServer("B", delay_s=DELAY_S) as server:
        sources = [
            make_reading(place / f"data{k}", images=images, questions=questions)
            for k, (images, questions) in enumerate(SIZES)
        ]

        def requests(name: str, chosen: Sequence[Path]) -> list[RunRequest]:
            return [
                RunRequest(
                    str(source), place / name / model / source.name, model=model,
                    api_url=server.url, judge="mind", concurrency=256,
                )
                for source in chosen
                for model in ("eye", "lens")
            ]  # fmt: skip

        longest = seconds(lambda: requests("alone", sources[:1])[:1])
        together = seconds(lambda: requests("together", sources))
    print(f"the longest alone: {longest:.2f} s; all six side by side: {together:.2f} s")
    ratio = together / longest
    sys.exit(0 if measuring.verdict("ratio", ratio, 1.1, at_least=False) else 1)


if __name__ == "__main__":
    main()
