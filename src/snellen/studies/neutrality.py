"""Whether a benchmark favours models of the families that wrote its questions.

The paper leaves open whether its generators favour their own families (appendix A); here the
interaction of model family and generator is estimated and tested.
Source of the question: CapProbe (arXiv 2608.11074), appendix A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snellen.errors import ComparisonError
from snellen.keys import rng_for
from snellen.metrics import Array, pool
from snellen.runs.folder import Run
from snellen.stats.distributions import t_quantile, t_two_sided

RELABELLINGS = 1_000
FEWEST_RELABELLINGS = 20


@dataclass(frozen=True, slots=True)
class Cells:
    """Right answers and questions by image, model and generator: (images, models, generators)."""

    right: Array
    asked: Array

    @property
    def accuracy(self) -> Array:
        """The pooled accuracy of each model on each generator's questions."""
        rates: Array = self.right.sum(axis=0) / self.asked.sum(axis=0)
        return rates


@dataclass(frozen=True, slots=True)
class Advantage:
    """How much better models do on their own family's questions, beyond both main effects.

    `difference` is a difference of differences of accuracies, with its interval and p value over
    images. `p_families` asks whether another assignment of families to models would do as well;
    None where there are too few assignments to tell.
    """

    difference: float
    low: float
    high: float
    p_images: float
    p_families: float | None
    n_images: int


def family_advantage(cells: Cells, own: NDArray[np.bool_], *, seed: int = 0) -> Advantage | None:
    """The interaction of model and generator along `own`, shape (models, generators).

    Accuracies are explained by model, generator and whether the generator is the model's own;
    None where the three cannot be told apart. Images are the clusters.

    >>> right = np.array([[[8.0, 5.0], [5.0, 7.0]]] * 4)
    >>> found = family_advantage(Cells(right, np.full((4, 2, 2), 10.0)), np.eye(2, dtype=bool))
    >>> round(found.difference, 3)
    0.25
    """
    weights = _contrast(own)
    if weights is None:
        return None
    rates = cells.accuracy
    difference = float((weights * rates).sum())
    residuals = cells.right - rates * cells.asked
    influence = (weights * residuals / cells.asked.sum(axis=0)).sum(axis=(1, 2))
    n = len(influence)
    error = math.sqrt(n / max(n - 1, 1) * float((influence**2).sum()))
    df = float(n - 1)
    known = n > 1 and error > 0
    half = t_quantile(0.95, df) * error if known else math.nan
    return Advantage(
        difference,
        difference - half,
        difference + half,
        t_two_sided(difference / error, df) if known else math.nan,
        _relabelled_p(rates, own, seed),
        n,
    )


def _contrast(own: NDArray[np.bool_]) -> Array | None:
    """Weights that turn accuracies into the coefficient of `own`; None where there is none."""
    indicator = own.astype(float)
    means = indicator.mean(axis=1, keepdims=True) + indicator.mean(axis=0, keepdims=True)
    residual: Array = indicator - means + indicator.mean()
    size = float((residual**2).sum())
    return residual / size if size > 1e-12 else None


def _relabelled_p(rates: Array, own: NDArray[np.bool_], seed: int) -> float | None:
    """How often models with shuffled families show as large an advantage; the real one counts."""
    kinds, counts = np.unique(own, axis=0, return_counts=True)
    logs = math.lgamma(len(own) + 1) - sum(math.lgamma(c + 1) for c in counts)
    if len(kinds) < 2 or math.exp(min(logs, 50.0)) < FEWEST_RELABELLINGS:
        return None
    rng = rng_for(seed, "families")
    real = abs(_advantage(rates, own))
    drawn = [abs(_advantage(rates, own[rng.permutation(len(own))])) for _ in range(RELABELLINGS)]
    return (1 + sum(value >= real - 1e-12 for value in drawn)) / (1 + len(drawn))


def _advantage(rates: Array, own: NDArray[np.bool_]) -> float:
    weights = _contrast(own)
    return 0.0 if weights is None else float((weights * rates).sum())


def generators_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """The generators of the questions that the runs were asked."""
    names = {p.groups.get("generator", "") for item in runs[0].items for p in item.probes}
    return tuple(sorted(names - {""}))


def is_own(family: str, generator: str) -> bool:
    """Whether a generator's name holds the family's.

    >>> is_own("Gemini", "gemini-3.1-pro"), is_own("Qwen", "gpt-5.5"), is_own("", "gpt-5.5")
    (True, False, False)
    """
    return bool(family.strip()) and family.strip().casefold() in generator.casefold()


def cells_of(runs: Sequence[Run], generators: Sequence[str]) -> Cells:
    """The counts of runs on the same items, by cluster, run and generator; unscored are wrong.

    Raises:
        ComparisonError: the runs are not about the same items.
    """
    if any(run.spec.items != runs[0].spec.items for run in runs):
        raise ComparisonError(
            "runs on different items cannot be laid side by side",
            hint="give runs of the same benchmark with the same --limit and --subset",
        )
    tables = [run.table() for run in runs]
    n = len(tables[0].clusters)
    right = np.zeros((n, len(runs), len(generators)))
    asked = np.zeros_like(right)
    for m, table in enumerate(tables):
        cluster = table.unit_cluster[table.unit]
        for g, name in enumerate(generators):
            mine = table.labels["generator"] == name
            right[:, m, g] = pool(cluster[mine], table.correct[mine], n)
            asked[:, m, g] = pool(cluster[mine], np.ones(int(mine.sum())), n)
    return Cells(right, asked)
