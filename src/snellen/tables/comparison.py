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
from snellen.stats.agreement import mcnemar_p
from snellen.tables.table import Table, counted, number, title_of

_UNITS = {"%": "points", "points": "points", "‰": "per mille", "tokens": "tokens"}
# Words for a positive and a negative difference, by which direction is better.
_WORDS = {1: ("better", "worse"), -1: ("worse", "better"), 0: ("higher", "lower")}


def in_words(metric: MetricComparison, pair: PairDifference) -> str:
    """What a difference says: how much, how sure, and what such runs can show if it says nothing.

    The difference is the second run minus the first; its interval and p value hold for all metrics
    and pairs of the comparison together.
    """
    if pair.difference is None:
        return "cannot be told: a run has no value"
    unit = _UNITS.get(metric.unit, "")
    amount = f"{_signed(metric.name, pair.difference)} {unit}".strip()
    said = f"{amount}{_bracket(metric.name, pair.together)}"
    certainty = _certainty(pair)
    if pair.difference == 0.0:
        return f"no difference{_bracket(metric.name, pair.together)}{certainty}"
    word = _WORDS[metric.better][0 if pair.difference > 0 else 1]
    if pair.settled:
        return f"{said}: {pair.second} is {word}{certainty}{_on_scored(metric.name, pair)}"
    if pair.rests_on_unscored:
        return (
            f"{said}: not settled{certainty}, since the difference rests on "
            f"{counted(pair.n_unscored, 'unscored probe')}{_on_scored(metric.name, pair)}"
        )
    return f"{said}: not settled{certainty}{_detectable(metric.name, pair, unit)}"


def _on_scored(name: str, pair: PairDifference) -> str:
    """The difference over probes scored in both runs, where there are other ones."""
    other = pair.on_scored
    if not pair.n_unscored or other is None or other.difference is None:
        return ""
    ends = _bracket(name, other.interval)
    return f"; over probes scored in both {_signed(name, other.difference)}{ends}"


def _detectable(name: str, pair: PairDifference, unit: str) -> str:
    if pair.detectable is None:
        return ""
    least = f"{number(name, pair.detectable)} {unit}".strip()
    return f"; these images show a difference of {least} in 8 of 10 tries"


def _certainty(pair: PairDifference) -> str:
    p = pair.p_adjusted
    if p is None:
        return ", no p value for a single image"
    return f", {p_text(p)}"


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
            in_words(metric, metric.pairs[0]),
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
        *_together_note(comparison),
        *comparison.notes,
    )


def _together_note(comparison: Comparison) -> tuple[str, ...]:
    n = sum(len(metric.pairs) for metric in comparison.metrics)
    if n < 2:
        return ()
    return (f"intervals and p values of differences hold for all {n} of them together",)


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
            _rank_set(standing),
        )
        for standing in ordered
    )
    level = f"{100 * comparison.level:g}%"
    columns = ("Run", title_of(metric.name), "First, % of resamples", f"Ranks, {level}")
    notes = _notes(comparison) if metric is comparison.metrics[0] else ()
    return Table(f"Standing in {metric.name}", columns, rows, notes)


def _rank_set(standing: Standing) -> str:
    """The ranks that the simultaneous intervals of the differences leave open."""
    if standing.rank_set is None:
        return "-"
    best, worst = standing.rank_set
    return str(best) if best == worst else f"{best}-{worst}"


def _pairs(metric: MetricComparison) -> Table:
    rows = tuple(
        (f"{pair.second} against {pair.first}", in_words(metric, pair)) for pair in metric.pairs
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
            p_text(mcnemar_p(len(flip.to_right), len(flip.to_wrong))),
        )
        for flip in flips
    )
    columns = (
        "Pair", "Wrong to right", "Right to wrong", "Scored in both",
        "Unscored in either", "McNemar",
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
