"""Reads rubrics: PerceptionRubrics, and folders of the same form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.readers.pictures import PictureFinder, first_broken
from snellen.readers.rows import Row, decode_row
from snellen.readers.selection import Intake, with_digest
from snellen.records import Image, Item, Probe
from snellen.schemas import RubricRow, RubricText, labels_of, rubric_faults, rubric_text

_decoder = msgspec.json.Decoder(RubricRow)


def read_rubrics(rows: Iterable[Row], folder: Path, *, intake: Intake) -> tuple[Item, ...]:
    """The items of a rubric benchmark: one picture each, its probes Must-Right, then Easy-Wrong."""
    finder = PictureFinder(folder)
    for row in rows:
        if intake.full:
            break
        try:
            _take(row, finder, intake=intake)
        except DataError as error:
            intake.reject(error)
    return intake.finish()


def _take(row: Row, finder: PictureFinder, *, intake: Intake) -> None:
    record = decode_row(row, _decoder)
    intake.require(row, rubric_faults(record))
    intake.claim(row, "id", value=record.id)
    label = domain_of(record)
    if intake.wants((label,), label):
        images = finder.find(row, record.image)
        intake.tolerate(first_broken(row, images))
        intake.add(rubric_item(record, images), label)


def domain_of(record: RubricRow) -> str:
    """The domain of a row; a blank one is counted under `?`."""
    return (record.category or "").strip() or "?"


def rubric_item(record: RubricRow, images: tuple[Image, ...]) -> Item:
    """The item of one row."""
    probes = (
        *_probes("must_right", record.must_right),
        *_probes("easy_wrong", record.easy_wrong),
    )
    item = Item(
        id=str(record.id),
        images=images,
        probes=probes,
        reference=record.golden_caption or "",
        cluster=str(record.id),
        groups={"category": (domain_of(record),)},
        original_id=record.id,
    )
    return with_digest(item)


def _probes(kind: str, rubrics: list[str | RubricText]) -> list[Probe]:
    return [
        Probe(f"{kind}/{at}", rubric_text(rubric), "true", kind=kind, groups=_origin(rubric))
        for at, rubric in enumerate(rubrics)
    ]


def _origin(rubric: str | RubricText) -> dict[str, str]:
    if isinstance(rubric, str):
        return {}
    found = {"proposer": rubric.proposer or "", "jurors": ", ".join(labels_of(rubric.jurors))}
    return {name: value for name, value in found.items() if value}
