"""What discarding divided pictures does to a benchmark, measured.

The pictures on which authors cannot agree are not a random part of all: the paper admits that
dropping them may take away the dense ones. Source: PerceptionRubrics, limitations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import msgspec
import numpy as np

from snellen.builders.rubrics.rows import ScoredRow

BANDS: Mapping[str, range] = {"low": range(1, 4), "medium": range(4, 8), "high": range(8, 11)}


class Group(msgspec.Struct, frozen=True):
    """Some of the pictures that were reviewed: all, and those that were discarded."""

    pictures: int
    discarded: int

    @property
    def share(self) -> float:
        """The share that was discarded."""
        return self.discarded / self.pictures if self.pictures else 0.0


class DiscardReport(msgspec.Struct, frozen=True):
    """Who was discarded, by domain and by complexity, and how the rest differs from the whole.

    Differences are kept minus all. `mix_distance` is half the sum of the differences between the
    domains' shares, 0 to 1: the share of pictures that would have to change their domain.
    `chance` is how often a random discard of as many pictures moves the mean complexity as far.
    """

    whole: Group
    domains: dict[str, Group]
    complexity: dict[str, Group]
    complexity_difference: float | None
    informativeness_difference: float | None
    mix_distance: float | None
    chance: float | None


def discard_report(
    pictures: Sequence[ScoredRow], discarded: Set[str], *, seed: int = 0
) -> DiscardReport:
    """Compares the kept pictures of a review with all of them."""
    kept = [one for one in pictures if one.id not in discarded]
    names = sorted({one.domain for one in pictures})
    mix = None
    if kept:
        mix = sum(abs(_share(kept, name) - _share(pictures, name)) for name in names) / 2
    return DiscardReport(
        _group(pictures, discarded),
        {name: _group([p for p in pictures if p.domain == name], discarded) for name in names},
        {
            band: _group([p for p in pictures if p.complexity in scores], discarded)
            for band, scores in BANDS.items()
        },
        _difference([p.complexity for p in kept], [p.complexity for p in pictures]),
        _difference([p.informativeness for p in kept], [p.informativeness for p in pictures]),
        None if mix is None else round(mix, 4),
        _chance(pictures, kept, seed=seed),
    )


def _group(pictures: Sequence[ScoredRow], discarded: Set[str]) -> Group:
    return Group(len(pictures), sum(one.id in discarded for one in pictures))


def _share(pictures: Sequence[ScoredRow], domain: str) -> float:
    return sum(one.domain == domain for one in pictures) / len(pictures)


def _difference(kept: Sequence[int], everything: Sequence[int]) -> float | None:
    if not kept:
        return None
    return round(sum(kept) / len(kept) - sum(everything) / len(everything), 4)


def _chance(
    pictures: Sequence[ScoredRow], kept: Sequence[ScoredRow], *, seed: int, draws: int = 2000
) -> float | None:
    """The two-sided p value of a permutation test of the mean complexity of what is kept."""
    if not kept or len(kept) == len(pictures):
        return None
    scores = np.array([one.complexity for one in pictures], dtype=float)
    observed = abs(np.mean([one.complexity for one in kept]) - scores.mean())
    rng = np.random.default_rng(seed)
    drawn = rng.permuted(np.tile(scores, (draws, 1)), axis=1)[:, : len(kept)].mean(axis=1)
    hits = int((np.abs(drawn - scores.mean()) >= observed - 1e-12).sum())
    return round((hits + 1) / (draws + 1), 4)
