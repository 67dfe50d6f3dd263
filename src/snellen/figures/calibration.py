"""The reliability diagram of a judge: how often its letters are right, by how sure it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from snellen.figures.chart import Chart
from snellen.figures.style import (
    INK,
    PALE,
    SINGLE,
    SMALL,
    SOFT,
    new_figure,
    styled,
)
from snellen.protocols.caption_tally import committed_answers
from snellen.runs.folder import Run
from snellen.stats.agreement import Calibration, calibration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def calibration_of(runs: Sequence[Run]) -> Calibration | None:
    """The judge's calibration over all runs with stored probabilities; None without any."""
    answers = [answer for run in runs for answer in committed_answers(run.items, run.verdicts)]
    return calibration(*zip(*answers, strict=True)) if answers else None


def reliability(found: Calibration) -> Figure:
    """Accuracy against confidence in bins, and below how many answers each bin holds."""
    filled = [b for b in found.bins if b.n]
    with styled():
        figure = new_figure(SINGLE, 3.2)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        upper.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle="--", label="perfect")
        upper.plot(
            [100 * b.confidence for b in filled], [100 * b.accuracy for b in filled], marker="o",
            color=INK, label="judge",
        )  # fmt: skip
        for b in filled:
            upper.plot(
                [100 * b.confidence] * 2, [100 * b.confidence, 100 * b.accuracy],
                color=SOFT, linewidth=0.8, alpha=0.8,
            )  # fmt: skip
        n = sum(b.n for b in filled)
        # Above the axes: a judge's line may go anywhere inside.
        upper.text(
            1.0, 1.04, f"ECE {found.ece:.3f}, n = {n:,}", transform=upper.transAxes, ha="right",
            fontsize=SMALL,
        )  # fmt: skip
        upper.set(xlim=(0, 100), ylim=(0, 100), ylabel="Right, %")
        upper.grid(visible=True)
        upper.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2, columnspacing=1.0
        )
        width = 100 / len(found.bins)
        lower.bar(
            [100 * (b.low + b.high) / 2 for b in found.bins], [b.n for b in found.bins],
            width=width * 0.92, color=PALE, edgecolor=SOFT,
        )  # fmt: skip
        lower.set(xlabel="Confidence in the letter given, %", ylabel="Answers")
    return figure


def reliability_chart(runs: Sequence[Run]) -> Chart | None:
    """The judge's reliability over runs with stored probabilities; None without any."""
    found = calibration_of(runs)
    if found is None:
        return None
    caption = (
        "How often the letter that the judge gave is right, by the probability that it gave it; "
        "abstentions are left out. ECE is the expected calibration error."
    )
    return Chart("reliability", "Reliability of the judge", caption, reliability(found))
