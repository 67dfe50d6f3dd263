"""512 replies in a batch, before a judge that takes 20 ms: the scorer against the engine.

    python benchmarks/rewards.py      about half a minute

The engine judges the same replies in an evaluation with the same number of calls at once. Exit
code 1 where the scorer makes less than 0.7 of the engine's calls a second.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import make_reading
from tests.fakes.fast_server import FastServer

from snellen.rewards import Scorer
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute

REPLIES, PICTURES, QUESTIONS, AT_ONCE = 512, 128, 1024, 64


def main() -> None:
    """Prints the figures."""
    with measuring.workshop() as place, FastServer("B", delay_s=0.02) as server:
        data = make_reading(place / "data", images=PICTURES, questions=QUESTIONS)
        scorer = Scorer(
            str(data), "mind", judge_url=server.url, concurrency=AT_ONCE, out=place / "journal"
        )
        names = [item.id for item in scorer.benchmark.items]
        group = REPLIES // len(names)
        replies = {
            (name, k): f"A red bus number {k} under a tree." for name in names for k in range(group)
        }
        started = time.monotonic()
        scores = asyncio.run(scorer.score(list(replies.values()), [name for name, _ in replies]))
        n_calls = sum(score.n for score in scores if score is not None)
        of_scorer = n_calls / (time.monotonic() - started)
        scorer.close()

        plan = make_plan(
            RunRequest(
                str(data),
                place / "run",
                judge="mind",
                judge_url=server.url,
                repeat=group,
                concurrency=AT_ONCE,
                replies=dict.fromkeys(names, "A red bus under a tree."),
            )
        )
        started = time.monotonic()
        done = asyncio.run(execute(plan))
        of_engine = done.summary.counts.probes / (time.monotonic() - started)
    print(f"scorer: {n_calls} calls, {of_scorer:.0f}/s; engine: {of_engine:.0f}/s")
    ratio = of_scorer / of_engine
    sys.exit(0 if measuring.verdict("ratio", ratio, 0.7, at_least=True) else 1)


if __name__ == "__main__":
    main()
