"""The map of errors: what fails where, and how alike benchmarks are in what they make fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from snellen.builders.perception.rows import AttributedRow, ErrorType, MixRow
from snellen.stats.mixes import mean_of_pairs, same_mix, similarities

# The published mean over the 42 source benchmarks. Source: PerceptionBench.
PUBLISHED_MEAN = 0.20
DRAWS = 499


class BenchmarkMix(msgspec.Struct, frozen=True):
    """One benchmark, or one model: its failures by type, and what it tests above all.

    `leading` are the perceptual types that make up half of its perceptual failures, the commonest
    first, each with its share of them.
    """

    name: str
    failures: int
    perceptual: int
    types: dict[str, int]
    leading: tuple[tuple[str, float], ...]


class Likeness(msgspec.Struct, frozen=True):
    """How alike the benchmarks are: the weighted Jaccard index of each pair, and its mean.

    A benchmark without a failure of these types has None. `same_mix` is the mean index if all had
    the same mix, with 95 of 100 draws between `low` and `high`; `p` is the share of such draws with
    an index as low.
    """

    benchmarks: tuple[str, ...]
    matrix: tuple[tuple[float | None, ...], ...]
    mean: float | None
    same_mix: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """The bounds of the mean index under the same mix."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class ErrorMap(msgspec.Struct, frozen=True):
    """`map.json`: distributions by benchmark and by model, and likenesses of benchmarks.

    `perceptual` compares benchmarks by perceptual types alone, `all_types` by all.
    """

    types: tuple[str, ...]
    perceptual_types: tuple[str, ...]
    benchmarks: tuple[BenchmarkMix, ...]
    models: tuple[BenchmarkMix, ...]
    perceptual: Likeness
    all_types: Likeness
    published_mean: float = PUBLISHED_MEAN


def mixes(rows: Sequence[AttributedRow]) -> tuple[MixRow, ...]:
    """A row for each benchmark and model, in the order of their names."""
    pairs = sorted({(row.source_bmk, row.model) for row in rows})
    found = []
    for bmk, model in pairs:
        own = [row for row in rows if (row.source_bmk, row.model) == (bmk, model)]
        types = dict(sorted(Counter(row.type for row in own).items()))
        found.append(
            MixRow(
                id=f"{bmk}/{model}",
                made_from=tuple(row.id for row in own),
                source_bmk=bmk,
                model=model,
                failures=len(own),
                types=types,
            )
        )
    return tuple(found)


def error_map(
    rows: Sequence[AttributedRow], types: Sequence[ErrorType], *, seed: int, draws: int = DRAWS
) -> ErrorMap:
    """What fails on which benchmark and with which model, and how alike the benchmarks are."""
    labels = tuple(one.id for one in types)
    perceptual = tuple(one.id for one in types if one.is_perceptual)
    return ErrorMap(
        labels,
        perceptual,
        _grouped(rows, [row.source_bmk for row in rows], perceptual),
        _grouped(rows, [row.model for row in rows], perceptual),
        _likeness(rows, perceptual, seed=seed, draws=draws),
        _likeness(rows, labels, seed=seed, draws=draws),
    )


def _grouped(
    rows: Sequence[AttributedRow], groups: Sequence[str], perceptual: Sequence[str]
) -> tuple[BenchmarkMix, ...]:
    found = []
    for name in sorted(set(groups)):
        own = [row.type for row, group in zip(rows, groups, strict=True) if group == name]
        counts = Counter(own)
        seen = {label: counts[label] for label in perceptual if counts[label]}
        found.append(
            BenchmarkMix(
                name, len(own), sum(seen.values()), dict(sorted(counts.items())), leading(seen)
            )
        )
    return tuple(found)


def leading(counts: dict[str, int]) -> tuple[tuple[str, float], ...]:
    """The commonest types that together make up half of the counts, with their shares.

    >>> leading({"ocr_error": 3, "hallucination": 2, "visual_counting_error": 1})
    (('ocr_error', 0.5),)
    """
    total, so_far = sum(counts.values()), 0
    found = []
    for label, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if 2 * so_far >= total:
            break
        found.append((label, n / total))
        so_far += n
    return tuple(found)


def _likeness(
    rows: Sequence[AttributedRow], labels: Sequence[str], *, seed: int, draws: int
) -> Likeness:
    """The likeness by some types; failures on one question change benchmarks together."""
    place = {label: k for k, label in enumerate(labels)}
    kept = [row for row in rows if row.type in place]
    names = tuple(sorted({row.source_bmk for row in rows}))
    questions = {(row.source_bmk, row.source_idx): None for row in kept}
    at = {question: k for k, question in enumerate(questions)}
    table = np.zeros((len(at), len(labels)))
    for row in kept:
        table[at[row.source_bmk, row.source_idx], place[row.type]] += 1
    owners = [bmk for bmk, _ in questions]
    sums = np.zeros((len(names), len(labels)))
    for owner, counts in zip(owners, table, strict=True):
        sums[names.index(owner)] += counts
    matrix = similarities(sums) if names else np.zeros((0, 0))
    chance = same_mix(table, owners, draws=draws, seed=seed)
    return Likeness(
        names,
        tuple(tuple(_numbers(row)) for row in matrix),
        next(_numbers([mean_of_pairs(matrix)])),
        *((chance.mean, chance.low, chance.high, chance.p) if chance else ()),
    )


def _numbers(values: Iterable[float]) -> Iterator[float | None]:
    for value in values:
        yield None if np.isnan(value) else float(value)
