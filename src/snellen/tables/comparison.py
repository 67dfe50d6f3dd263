"""Comparisons in plain words and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snellen.comparisons.comparing import (
    Comparison,
    Effect,
    Flips,
    MetricComparison,
    PairDifference,
    Standing,
)
from snellen.tables.table import Table, counted, number, title_of

_MOST_IMAGES = 100_000

_UNITS = {"%": "points", "points": "points", "‰": "per mille", "tokens": "tokens"}
# Words for a positive and a negative difference, by which direction is better.
_WORDS = {1: ("better", "worse"), -1: ("worse", "better"), 0: ("higher", "lower")}


def in_words(metric: MetricComparison, pair: PairDifference, *, many: bool) -> str:
    """What a difference says: how much, how sure, and what would settle it if nothing does.

    `many` says that there are more pairs, so that p is the adjusted one.
    """
    if pair.difference is None:
        return "cannot be told: a run has no value"
    if pair.difference == 0.0:
        return "no difference" + _certainty(pair, many=many)
    sign = 1.0 if pair.difference > 0 else -1.0
    word = _WORDS[metric.better][0 if sign > 0 else 1]
    size = number(metric.name, abs(pair.difference))
    unit = _UNITS.get(metric.unit, "")
    amount = f"{size} {unit}".strip()
    ends = _bracket(metric.name, pair.interval, sign)
    certainty = _certainty(pair, many=many)
    if pair.settled:
        return f"{pair.second} is {amount} {word}{ends}{certainty}"
    needed = _needed(pair)
    return f"not settled: {pair.second} {amount} {word}{ends}{certainty}{needed}"


def _needed(pair: PairDifference) -> str:
    if pair.more_images is None:
        return ""
    images = "image" if pair.more_images == 1 else "images"
    return f"; {roughly(pair.more_images)} more {images} would be needed"


def roughly(n: int) -> str:
    """A number that is known to its order of magnitude only, with two digits at most.

    >>> roughly(7), roughly(3477), roughly(7458612)
    ('about 7', 'about 3,500', 'over 100,000')
    """
    if n > _MOST_IMAGES:
        return f"over {_MOST_IMAGES:,}"
    unit = 10 ** max(0, len(str(n)) - 2)
    return f"about {round(n / unit) * unit:,}"


def _certainty(pair: PairDifference, *, many: bool) -> str:
    p = pair.p_adjusted
    if p is None:
        return ", no p value for a single image"
    return f", {p_text(p)}{' after Holm' if many else ''}"


def p_text(p: float) -> str:
    """A p value as people read it.

    >>> p_text(0.00002), p_text(0.0213), p_text(1.0)
    ('p < 0.001', 'p = 0.021', 'p = 1')
    """
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}".rstrip("0").rstrip(".")


def _bracket(name: str, ends: tuple[float, float] | None, sign: float = 1.0) -> str:
    if ends is None:
        return ""
    low, high = sorted(sign * end for end in ends)
    return f" [{_signed(name, low)}, {_signed(name, high)}]"


def _signed(name: str, value: float) -> str:
    """A number without the minus that rounding leaves on zero."""
    text = number(name, value)
    return text.removeprefix("-") if float(text) == 0.0 else text


def tables_of(comparison: Comparison) -> Iterator[Table]:
    """All tables of a comparison: two runs by metric, or more runs by metric and pair; flips."""
    if len(comparison.runs) == 2:
        yield _two_runs(comparison)
    else:
        for metric in comparison.metrics:
            yield _ranking(comparison, metric)
            yield _pairs(metric)
    yield _flip_counts(comparison.flips)


def _two_runs(comparison: Comparison) -> Table:
    first, second = (run.name for run in comparison.runs)
    rows = tuple(
        (
            title_of(metric.name),
            *(_standing(metric.name, standing) for standing in metric.standings),
            in_words(metric, metric.pairs[0], many=False),
        )
        for metric in comparison.metrics
    )
    title = f"{second} against {first}"
    return Table(title, ("Metric", first, second, "Difference"), rows, _notes(comparison))


def _standing(name: str, standing: Standing) -> str:
    return number(name, standing.value) + _bracket(name, standing.interval)


def _notes(comparison: Comparison) -> tuple[str, ...]:
    level = f"{100 * comparison.level:g}%"
    return (
        f"{counted(comparison.n_items, 'item')} in {counted(comparison.n_clusters, 'cluster')}; "
        f"in brackets: {level} "
        "intervals; p values are paired by image",
        *comparison.notes,
    )


def _ranking(comparison: Comparison, metric: MetricComparison) -> Table:
    ordered = sorted(
        metric.standings,
        key=lambda s: (s.value is None, -(s.value or 0.0) * (metric.better or 1)),
    )
    rows = tuple(
        (
            standing.run,
            _standing(metric.name, standing),
            f"{100 * standing.ranks[0]:.0f}" if standing.ranks else "-",
            rank_range(standing.ranks, comparison.level),
        )
        for standing in ordered
    )
    level = f"{100 * comparison.level:g}%"
    columns = ("Run", title_of(metric.name), "First %", f"Ranks, {level}")
    notes = _notes(comparison) if metric is comparison.metrics[0] else ()
    return Table(f"Standing in {metric.name}", columns, rows, notes)


def rank_range(ranks: Sequence[float], level: float) -> str:
    """The ranks that are left when each tail is cut at half of 1 - level.

    >>> rank_range((0.9, 0.09, 0.01), 0.95), rank_range((1.0, 0.0), 0.95)
    ('1-2', '1')
    """
    if not ranks:
        return "-"
    tail = (1.0 - level) / 2.0
    sums = [sum(ranks[: k + 1]) for k in range(len(ranks))]
    low = next(k for k, total in enumerate(sums, 1) if total > tail)
    high = next(k for k, total in enumerate(sums, 1) if total >= 1.0 - tail - 1e-9)
    return str(low) if low == high else f"{low}-{high}"


def _pairs(metric: MetricComparison) -> Table:
    many = len(metric.pairs) > 1
    rows = tuple(
        (f"{pair.second} against {pair.first}", in_words(metric, pair, many=many))
        for pair in metric.pairs
    )
    return Table(f"Pairs in {metric.name}", ("Pair", "Difference"), rows)


def _flip_counts(flips: Sequence[Flips]) -> Table:
    rows = tuple(
        (
            f"{flip.second} against {flip.first}",
            str(len(flip.to_right)),
            str(len(flip.to_wrong)),
            str(flip.scored_in_both),
            f"{flip.unscored}/{flip.probes}",
        )
        for flip in flips
    )
    columns = (
        "Pair", "Wrong to right", "Right to wrong", "Scored in both", "Unscored in either",
    )  # fmt: skip
    return Table("Probes that flipped", columns, rows)


def flip_tables(comparison: Comparison, n: int) -> Iterator[Table]:
    """The first `n` flipped probes of each pair and direction, by id."""
    for flip in comparison.flips:
        rows = tuple(
            (key.id, key.probe_id, str(key.repeat), what)
            for keys, what in ((flip.to_wrong, "right to wrong"), (flip.to_right, "wrong to right"))
            for key in keys[:n]
        )
        title = f"Flips, {flip.second} against {flip.first}"
        yield Table(title, ("Item", "Probe", "Repeat", "Flip"), rows)


def breakdown_tables(comparison: Comparison, dimension: str) -> Iterator[Table]:
    """The differences of each pair for each label of a dimension."""
    for at, pair in enumerate(comparison.metrics[0].pairs):
        by_metric = [
            (metric.name, metric.pairs[at].by[dimension])
            for metric in comparison.metrics
            if dimension in metric.pairs[at].by
        ]
        rows = tuple(
            (
                label,
                *(_effect(name, effects.get(label)) for name, effects in by_metric),
                str(effect.n_clusters),
            )
            for label, effect in (by_metric[0][1] if by_metric else {}).items()
        )
        columns = (dimension, *(title_of(name) for name, _ in by_metric), "Images")
        title = f"{pair.second} minus {pair.first}, by {dimension}"
        note = "many categories are many tests: one in twenty intervals misses 0 by chance"
        yield Table(title, columns, rows, (note,))


def _effect(name: str, effect: Effect | None) -> str:
    if effect is None or effect.difference is None:
        return "-"
    return _signed(name, effect.difference) + _bracket(name, effect.interval)


def change_lines(comparison: Comparison) -> Iterator[str]:
    """What differs beside the model, a line each, and prompts line by line.

    Of a run and its control without pictures, also how much of the score needs no looking.
    """
    for change in comparison.changes:
        yield f"across {change.across}: {change.what}: {change.first} -> {change.second}"
        yield from (f"    {line}" for line in change.detail.splitlines())
        if len(comparison.runs) == 2 and "no-image" in (change.first, change.second):
            yield from _unseen_line(comparison, backwards=change.first == "no-image")


def _unseen_line(comparison: Comparison, *, backwards: bool) -> Iterator[str]:
    for metric in comparison.metrics:
        seen, unseen = (s.value for s in metric.standings[:: -1 if backwards else 1])
        if metric.name == "accuracy" and seen and unseen is not None:
            yield (
                f"without the pictures {number(metric.name, unseen)} of "
                f"{number(metric.name, seen)} points of accuracy are reached: "
                f"{100 * unseen / seen:.0f}% of the score needs no looking"
            )
