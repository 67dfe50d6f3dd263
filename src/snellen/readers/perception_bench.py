"""Reads direct questions: PerceptionBench, and folders of the same form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from snellen.readers.policy import RowPolicy
from snellen.records import Item, Probe
from snellen.schemas import ERROR_CATEGORIES, DirectRow, answer_text, direct_faults, whole_id


def read_direct(policy: RowPolicy) -> Iterator[Item]:
    """The items of direct questions, each with one probe; a blank category is `?`."""
    for row, record in policy.records("questions", DirectRow, direct_faults):
        policy.claim(row, "index", record.index)
        label = (record.error_category or "").strip() or "?"
        policy.check_label(row, "error_category", label, ERROR_CATEGORIES)
        if not policy.wants((label,)):
            continue
        images = policy.pictures(row, record.image)
        if policy.fine:
            name, at = str(record.index), record.source_idx
            source = {
                "source_bmk": record.source_bmk,
                "source_idx": None if at is None else whole_id(at),
            }
            yield Item(
                id=name,
                images=images,
                probes=(Probe(name, record.problem, answer_text(record.answer) or ""),),
                text=record.problem,
                hint=record.hint or "",
                groups={"error_category": (label,)},
                original_id=record.index,
                extra=source,
            )


def clustered(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, those that share a picture or a source item in one cluster.

    A cluster is named after its first item. Items without a source index share no source; items
    that name a cluster share that.
    """
    parent = list(range(len(items)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[tuple[str, ...], int] = {}
    for at, item in enumerate(items):
        marks: list[tuple[str, ...]] = [("picture", image.digest) for image in item.images]
        source, index = item.extra.get("source_bmk"), item.extra.get("source_idx")
        if source and index is not None:
            marks.append(("source", str(source), str(index)))
        if item.cluster:
            marks.append(("cluster", item.cluster))
        for mark in marks:
            one, other = root(first.setdefault(mark, at)), root(at)
            parent[max(one, other)] = min(one, other)
    return tuple(replace(item, cluster=items[root(at)].id) for at, item in enumerate(items))
