"""Reads direct questions: PerceptionBench, and folders of the same form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.readers.pictures import PictureFinder, first_broken
from snellen.readers.rows import Row, decode_row
from snellen.readers.selection import Intake, with_digest
from snellen.records import Image, Item, Probe
from snellen.schemas import DirectRow, answer_text, direct_faults, whole_id

_decoder = msgspec.json.Decoder(DirectRow)


def read_direct(rows: Iterable[Row], folder: Path, *, intake: Intake) -> tuple[Item, ...]:
    """The items of direct questions, each with one probe, clustered by picture and source."""
    finder = PictureFinder(folder)
    for row in rows:
        if intake.full:
            break
        try:
            _take(row, finder, intake=intake)
        except DataError as error:
            intake.reject(error)
    return clustered(intake.finish())


def _take(row: Row, finder: PictureFinder, *, intake: Intake) -> None:
    record = decode_row(row, _decoder)
    intake.require(row, direct_faults(record))
    intake.claim(row, "index", value=record.index)
    label = category_of(record)
    if intake.wants((label,), label):
        images = finder.find(row, record.image)
        if error := first_broken(row, images):
            raise error
        intake.add(direct_item(record, images), label)


def category_of(record: DirectRow) -> str:
    """The error category; a blank one is counted under `?`."""
    return (record.error_category or "").strip() or "?"


def direct_item(record: DirectRow, images: tuple[Image, ...]) -> Item:
    """The item of one row."""
    name = str(record.index)
    label = category_of(record)
    source = None if record.source_idx is None else whole_id(record.source_idx)
    item = Item(
        id=name,
        images=images,
        probes=(Probe(name, record.problem, answer_text(record.answer) or ""),),
        text=record.problem,
        hint=record.hint or "",
        cluster=name,
        groups={"error_category": (label,)},
        original_id=record.index,
        extra={"source_bmk": record.source_bmk, "source_idx": source},
    )
    return with_digest(item)


def clustered(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, those that share a picture or a source item in one cluster.

    A cluster is named after its first item. Items without a source index share no source.
    """
    parent = list(range(len(items)))
    first: dict[tuple[str, ...], int] = {}
    for at, item in enumerate(items):
        for mark in _marks(item):
            _join(parent, first.setdefault(mark, at), other=at)
    return tuple(
        replace(item, cluster=items[_root(parent, at)].id) for at, item in enumerate(items)
    )


def _marks(item: Item) -> list[tuple[str, ...]]:
    marks: list[tuple[str, ...]] = [("picture", image.digest) for image in item.images]
    source, index = item.extra.get("source_bmk"), item.extra.get("source_idx")
    if source and index is not None:
        marks.append(("source", str(source), str(index)))
    return marks


def _join(parent: list[int], one: int, *, other: int) -> None:
    a, b = _root(parent, one), _root(parent, other)
    parent[max(a, b)] = min(a, b)


def _root(parent: list[int], at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at
