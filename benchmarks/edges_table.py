"""Simulate the edges of intervals and comparisons, and print the table of the docs.

Usage: python benchmarks/edges_table.py [--studies N]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.worlds.compared_runs import simulated

from snellen.comparisons.comparing import compare
from snellen.comparisons.gates import Gate, gate_worse
from snellen.metrics import Tally
from snellen.protocols.direct import ACCURACY, macro
from snellen.stats.bootstrap import Resampling
from snellen.stats.paired import compare_paired
from snellen.stats.simulation import Captioner, simulate_rivals

QUICK = Resampling(200)


def lossy(run, share, rng):
    """The run with a share of its verdicts lost."""
    lost = {key for key in run.verdicts if rng.random() < share}
    return replace(
        run,
        verdicts={
            key: replace(v, verdict=None, correct=None, status="unscored", reason="judge_timeout")
            if key in lost
            else v
            for key, v in run.verdicts.items()
        },
    )


def gate_alarms(n_images: int, share: float, studies: int) -> tuple[float, float]:
    """How often the gate fails, and stays undecided, for equals of which one lost verdicts."""
    failed = undecided = 0
    rng = np.random.default_rng(5)
    for seed in range(studies):
        rivals = simulate_rivals(n_images, [Captioner(), Captioner()], seed=seed)
        first, second = (simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals))
        runs = [first, lossy(second, share, rng)]
        found = compare(runs, metrics=["overall_acc"], resampling=QUICK)
        gate = gate_worse(found, "overall_acc")
        failed += gate is Gate.FAILED
        undecided += gate is Gate.UNSETTLED
    return failed / studies, undecided / studies


def near_equals(n: int, studies: int) -> float:
    """Coverage of the paired interval: accuracy 95%, a true difference of 2 points."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(studies):
        draw = rng.random(n)
        before = draw < 0.95
        after = np.where(before, rng.random(n) >= 0.03, rng.random(n) < 0.17)
        truth = 0.95 * 0.97 + 0.05 * 0.17 - 0.95
        tallies = [np.stack([np.ones(n), hits.astype(float)], axis=1) for hits in (before, after)]
        found = compare_paired(*tallies, lambda s: s[..., 1:] / s[..., :1])
        held += bool(found.low[0] <= truth <= found.high[0])
    return held / studies


def hard_category(n: int, studies: int) -> float:
    """Coverage of macro accuracy: one category at 0.3, nine at 1."""
    rng, held = np.random.default_rng(9), 0
    labels = [f"c{k}" for k in range(10)]
    rates = np.array([0.3] + [1.0] * 9)
    for _ in range(studies):
        category = rng.integers(0, 10, n)
        right = rng.random(n) < rates[category]
        columns = ["M", "C", "X"]
        counts = [np.ones(n), right.astype(float), np.zeros(n)]
        for k, label in enumerate(labels):
            here = (category == k).astype(float)
            columns += [f"M:{label}", f"C:{label}", f"X:{label}"]
            counts += [here, here * right, np.zeros(n)]
        names = tuple(f"i{k:05d}" for k in range(n))
        metrics = (ACCURACY, macro(labels))
        found = Tally(names, tuple(columns), np.stack(counts, axis=1), metrics).intervals(QUICK)
        held += bool(found.low[1] <= 0.93 <= found.high[1])
    return held / studies


def any_false_finding(n_images: int, n_runs: int, studies: int) -> float:
    """How often a default table of equals calls any difference settled."""
    found = 0
    for seed in range(studies):
        rivals = simulate_rivals(n_images, [Captioner()] * n_runs, seed=10_000 + seed)
        runs = [simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals)]
        comparison = compare(runs, resampling=QUICK)
        found += any(pair.settled for metric in comparison.metrics for pair in metric.pairs)
    return found / studies


def main() -> int:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=300)
    n = parser.parse_args().studies
    print("| case | wanted | found |")
    print("|---|---|--:|")
    for n_images in (40, 200, 664):
        for share in (0.0, 0.02, 0.05):
            few = max(50, n // (1 if n_images == 40 else 3))
            failed, undecided = gate_alarms(n_images, share, few)
            print(
                f"| gate of equals fails, {n_images} images, {share:.0%} of one run's verdicts "
                f"lost (undecided: {undecided:.0%}) | at most 5% | {failed:.1%} |",
                flush=True,
            )
    for items in (40, 200):
        held = near_equals(items, 10 * n)
        print(
            f"| paired interval holds 2 points between near equals, {items} items | from 93% | "
            f"{held:.1%} |",
            flush=True,
        )
    for items in (20, 40, 100):
        held = hard_category(items, 3 * n)
        wanted = "at least 92%" if items >= 40 else "-"
        print(
            f"| macro accuracy, one hard category of ten, {items} items | {wanted} | {held:.1%} |",
            flush=True,
        )
    for n_images, n_runs in ((15, 2), (40, 2), (40, 5)):
        found = any_false_finding(n_images, n_runs, n)
        print(
            f"| any false finding in the default table, {n_images} images, {n_runs} runs | "
            f"at most 6% | {found:.1%} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
