"""The questions that a benchmark of a given size has: balanced, mixed and stratified, by a draw."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from snellen.builders.perception.rows import DECOMPOSED, NEW, STRATA, AtomicRow
from snellen.keys import seed_for

K = TypeVar("K", bound=Hashable)


def even_shares(wanted: int, available: Mapping[K, int]) -> dict[K, int]:
    """Splits a number over groups as evenly as their sizes allow.

    What does not divide goes to the groups that are named first.

    >>> even_shares(10, {"a": 2, "b": 9, "c": 9}), even_shares(4, {"a": 1, "b": 1})
    ({'a': 2, 'b': 4, 'c': 4}, {'a': 1, 'b': 1})
    """
    found = dict.fromkeys(available, 0)
    left = min(wanted, sum(available.values()))
    while left:
        open_ = [name for name in available if found[name] < available[name]]
        each, more = divmod(left, len(open_))
        for k, name in enumerate(open_):
            found[name] = min(available[name], found[name] + each + (k < more))
        left = min(wanted, sum(available.values())) - sum(found.values())
    return found


def mixed(wanted: int, *, decomposed: int, new: int, new_share: float) -> tuple[int, int]:
    """How many of `wanted` questions are decomposed and how many new, as far as there are any.

    >>> mixed(10, decomposed=20, new=20, new_share=0.4)
    (6, 4)
    >>> mixed(10, decomposed=20, new=1, new_share=0.4)
    (9, 1)
    """
    some_new = min(new, round(wanted * new_share))
    of_old = min(decomposed, wanted - some_new)
    return of_old, min(new, wanted - of_old)


def drawn(
    rows: Sequence[AtomicRow], size: int, *, new_share: float, seed: int
) -> tuple[AtomicRow, ...]:
    """A sample of questions in their order; all of them where `size` is 0.

    It is balanced over capabilities, keeps the share of new questions in each, and in each of both
    kinds takes as many of every difficulty as there are. The same seed gives the same sample.
    """
    if not size:
        return tuple(rows)
    by_label: dict[str, list[AtomicRow]] = {}
    for row in rows:
        by_label.setdefault(row.error_category, []).append(row)
    labels = sorted(by_label, key=lambda name: seed_for(seed, name, "capability"))
    quotas = even_shares(size, {name: len(by_label[name]) for name in labels})
    taken: set[str] = set()
    for name, quota in quotas.items():
        own = {
            origin: [row for row in by_label[name] if row.origin == origin]
            for origin in (DECOMPOSED, NEW)
        }
        n_old, n_new = mixed(
            quota, decomposed=len(own[DECOMPOSED]), new=len(own[NEW]), new_share=new_share
        )
        for origin, n in ((DECOMPOSED, n_old), (NEW, n_new)):
            taken |= _stratified(own[origin], n, seed=seed)
    return tuple(row for row in rows if row.id in taken)


def _stratified(rows: Sequence[AtomicRow], n: int, *, seed: int) -> set[str]:
    """The ids of `n` questions, evenly over difficulties; hard ones get what does not divide."""
    names = (*reversed(STRATA), "")
    by_stratum = {name: [row for row in rows if row.stratum == name] for name in names}
    quotas = even_shares(n, {name: len(own) for name, own in by_stratum.items()})
    taken: set[str] = set()
    for name, own in by_stratum.items():
        ranked = sorted(own, key=lambda row: seed_for(seed, row.id, "draw"))
        taken |= {row.id for row in ranked[: quotas[name]]}
    return taken
