"""Prints how often the 95% intervals hold the truth, and how often equals are called different.

    python benchmarks/coverage_table.py [--repeats 1000] [--resamples 2000]

Each row is a metric of a simulated captioner of known quality; the columns are studies of 346 and
of 40 images. Intervals should cover 93 to 97% and 92 to 98%, false alarms be 3.5 to 6.5%.
"""

from __future__ import annotations

import argparse

from snellen.stats.bootstrap import Resampling
from snellen.stats.simulation import SCENARIOS, coverage, false_alarms

SIZES = (346, 40)


def main() -> None:
    """Simulates every scenario at both sizes and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000, help="studies a row (default 1000)")
    parser.add_argument("--resamples", type=int, default=2000, help="a study (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resampling = Resampling(resamples=options.resamples, seed=options.seed)
    print("| scenario | metric | truth |", end="")
    print("".join(f" covers, {n} | false alarms, {n} |" for n in SIZES))
    print("|---|---|--:|" + "--:|--:|" * len(SIZES))
    for name, scenario in SCENARIOS.items():
        truth = scenario.truth()
        columns = []
        for n in SIZES:
            repeats = options.repeats
            columns.append(
                coverage(scenario, n, repeats=repeats, resampling=resampling, truth=truth)
            )
            columns.append(false_alarms(scenario, n, repeats=repeats, seed=options.seed + 1000))
        for i, metric in enumerate(scenario.metrics):
            figures = "".join(f" {100.0 * column[i]:.1f} |" for column in columns)
            print(f"| {name} | `{metric}` | {truth[i]:.4g} |{figures}", flush=True)


if __name__ == "__main__":
    main()
