"""Prints how well and how fast the embedded judge does on the labelled material of `mini`.

python benchmarks/measure_embedded.py [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from snellen.analysis.judgecheck import JudgeRow, ask_bare, load_trials, measure
from snellen.embedded.judge import EmbeddedJudge

MINI = Path(__file__).parents[1] / "src" / "snellen" / "data" / "mini"
COLUMNS = "{:9} {:7} {:>5} {:>9} {:>9} {:>7} {:>7} {:>7}"


def main() -> None:
    """Loads, judges all once for the rates, and again with a cold memory for the speed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else MINI
    start = time.perf_counter()
    judge = EmbeddedJudge()
    print(f"version {judge.version}, fidelity {judge.fidelity}")
    print(f"load {time.perf_counter() - start:.2f} s")
    asyncio.run(_report(judge, folder))


async def _report(judge: EmbeddedJudge, folder: Path) -> None:
    trials = load_trials(folder)
    original = [trial for trial in trials if trial.half == "dev"]
    start = time.perf_counter()
    await asyncio.gather(*(judge.call(ask_bare(trial)) for trial in original))
    print(f"judging {len(original)} dev calls, cold: {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    rows = await measure(judge, folder)
    print(
        f"judging all {len(trials)} calls, half of them warm: {time.perf_counter() - start:.2f} s"
    )
    heads = ("protocol", "half", "n", "unscored", "accuracy", "stated", "absent", "fooled")
    print(COLUMNS.format(*heads))
    for row in rows:
        print(_line(row))
    await judge.close()


def _line(row: JudgeRow) -> str:
    rates = (
        row.accuracy,
        row.right_when_stated,
        row.uncertain_when_absent,
        row.fooled_when_changed,
    )
    shown = ("-" if rate is None else f"{rate:.3f}" for rate in rates)
    return COLUMNS.format(row.protocol, row.half, row.n, row.unscored, *shown)


if __name__ == "__main__":
    main()
