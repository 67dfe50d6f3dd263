"""What failures are made of: types of errors by benchmark, and how alike benchmarks are.

Source: PerceptionBench (the figure of pairwise likenesses of its source benchmarks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snellen.figures.chart import Chart
from snellen.figures.heat import Grid, draw_grid, narrow
from snellen.figures.style import plain, readable

if TYPE_CHECKING:
    from snellen.builders.perception.mapping import ErrorMap

MOST_ROWS = 45
# Names above more columns than these are turned.
MOST_UPRIGHT = 7


def likeness_chart(found: ErrorMap) -> Chart | None:
    """The weighted Jaccard index of each pair of benchmarks; None for fewer than two."""
    alike = found.perceptual
    known = [k for k, row in enumerate(alike.matrix) if row[k] is not None][:MOST_ROWS]
    if len(known) < 2 or alike.mean is None:
        return None
    names = [alike.benchmarks[k] for k in known]
    matrix = np.array(alike.matrix, dtype=float)
    cells = matrix[np.ix_(known, known)].tolist()
    grid = Grid(
        cells, [plain(name, 24) for name in names], [_above(name, len(names)) for name in names],
        "Weighted Jaccard", top=1.0, digits=2, turned=len(names) > MOST_UPRIGHT,
    )  # fmt: skip
    text = f"Perceptual errors of {len(names)} benchmarks; mean of all pairs {alike.mean:.2f}"
    if alike.same_mix is not None:
        text += f", {alike.same_mix:.2f} if all had the same mix"
    return Chart("likeness", "Likeness of benchmarks by their errors", text + ".", draw_grid(grid))


def mix_chart(found: ErrorMap) -> Chart | None:
    """The share of each perceptual type among the perceptual failures of each benchmark."""
    benchmarks = [one for one in found.benchmarks if one.perceptual][:MOST_ROWS]
    if not benchmarks:
        return None
    seen = {label for one in benchmarks for label in one.types}
    labels = [label for label in found.perceptual_types if label in seen]
    cells = [
        [100.0 * one.types.get(label, 0) / one.perceptual for label in labels] for one in benchmarks
    ]
    grid = Grid(
        cells,
        [f"{plain(one.name, 24)} (n = {one.perceptual})" for one in benchmarks],
        [_above(readable(label).removesuffix(" error"), len(labels)) for label in labels],
        "Share, %",
        turned=len(labels) > MOST_UPRIGHT,
    )
    text = f"{sum(one.perceptual for one in benchmarks):,} perceptual failures by type."
    is_thin = sum(one.perceptual < 10 for one in benchmarks) > len(benchmarks) / 2
    return Chart("error-mix", "What each benchmark tests", text, draw_grid(grid), is_thin)


def _above(name: str, n: int) -> str:
    """A name above one of `n` columns: in short lines, or in one where they are turned."""
    return narrow(name) if n <= MOST_UPRIGHT else plain(name, 24)
