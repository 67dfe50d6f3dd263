"""Reads multiple-choice questions about captions: CapProbe, and folders of the same form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.readers.pictures import PictureFinder, first_broken
from snellen.readers.rows import Row, decode_row, find_files, has_files, rows_of
from snellen.readers.selection import Intake, with_digest
from snellen.records import Image, Item, Probe, Region
from snellen.schemas import (
    ImageRow,
    QuestionRow,
    RegionRow,
    image_faults,
    labels_of,
    question_faults,
    region_faults,
    whole_id,
)

SMALL_SHARE, MEDIUM_SHARE = 0.02, 0.2

_images = msgspec.json.Decoder(ImageRow)
_regions = msgspec.json.Decoder(RegionRow)
_questions = msgspec.json.Decoder(QuestionRow)


@dataclass(frozen=True, slots=True)
class _Picture:
    """A row of `images`, its picture found and its text let go."""

    row: Row
    original_id: str | int
    images: tuple[Image, ...]
    groups: Mapping[str, tuple[str, ...]]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(label for labels in self.groups.values() for label in labels)


def read_reading(
    folder: Path, intake: Intake, *, spool: Path
) -> tuple[tuple[Item, ...], tuple[Region, ...]]:
    """The items of a reading benchmark, in the order of `images`, and the regions of these.

    An image without a question is a bad row: its caption would be paid for and never read.
    """
    pictures = _read_images(folder, intake, spool=spool)
    regions = _read_regions(folder, pictures, intake=intake, spool=spool)
    probes = _read_questions(folder, pictures, regions=regions, intake=intake, spool=spool)
    for name, picture in pictures.items():
        if intake.full:
            break
        try:
            _take(name, picture, probes=probes.get(name, []), intake=intake)
        except DataError as error:
            intake.reject(error)
    items = intake.finish()
    kept = {item.id for item in items}
    return items, tuple(one for one in regions.values() if one.image_id in kept)


def _take(name: str, picture: _Picture, *, probes: list[Probe], intake: Intake) -> None:
    if not probes:
        raise picture.row.error(f"no question asks about the image {name!r}", field="image_id")
    labels = picture.labels
    capability = labels[0] if labels else "?"
    if not intake.wants((*labels, *(probe.groups["category"] for probe in probes)), capability):
        return
    intake.tolerate(first_broken(picture.row, picture.images))
    item = Item(
        id=name,
        images=picture.images,
        probes=intake.wanted_probes(probes, labels, dimension="category"),
        cluster=name,
        groups=picture.groups,
        original_id=picture.original_id,
    )
    intake.add(with_digest(item), capability)


def _read_images(folder: Path, intake: Intake, *, spool: Path) -> dict[str, _Picture]:
    finder = PictureFinder(folder)
    found: dict[str, _Picture] = {}
    for row in rows_of(find_files(folder, "images"), spool=spool):
        try:
            record = decode_row(row, _images)
            intake.require(row, image_faults(record))
            intake.claim(row, "image_id", value=record.image_id)
            images = finder.find(row, record.image)
        except DataError as error:
            intake.reject(error)
            continue
        groups = {"l1": labels_of(record.l1), "l2": labels_of(record.l2)}
        found[str(record.image_id)] = _Picture(
            replace(row, data=b""), record.image_id, images, groups
        )
    return found


def _read_regions(
    folder: Path, pictures: Mapping[str, _Picture], *, intake: Intake, spool: Path
) -> dict[str, Region]:
    """The regions by id; none when the folder has no such file, since questions may do without."""
    found: dict[str, Region] = {}
    if not has_files(folder, "regions"):
        return found
    for row in rows_of(find_files(folder, "regions"), spool=spool):
        try:
            region = _region(row, pictures, intake=intake)
        except DataError as error:
            intake.reject(error)
            continue
        found[region.region_id] = region
    return found


def _region(row: Row, pictures: Mapping[str, _Picture], *, intake: Intake) -> Region:
    record = decode_row(row, _regions)
    intake.require(row, region_faults(record))
    intake.claim(row, "region_id", value=record.region_id)
    if str(record.image_id) not in pictures:
        raise row.error(f"there is no image {record.image_id!r}", field="image_id")
    ymin, xmin, ymax, xmax = record.bbox
    return Region(
        region_id=str(record.region_id),
        image_id=str(record.image_id),
        bbox=(ymin, xmin, ymax, xmax),
        nature=record.nature,
        mask=record.mask,
        metadata=record.metadata,
    )


def _read_questions(
    folder: Path,
    pictures: Mapping[str, _Picture],
    *,
    regions: Mapping[str, Region],
    intake: Intake,
    spool: Path,
) -> dict[str, list[Probe]]:
    found: dict[str, list[Probe]] = defaultdict(list)
    for row in rows_of(find_files(folder, "questions"), spool=spool):
        try:
            record = decode_row(row, _questions)
            intake.require(row, question_faults(record))
            intake.claim(row, "question_id", value=record.question_id)
            if str(record.image_id) not in pictures:
                raise row.error(f"there is no image {record.image_id!r}", field="image_id")
            probe = _probe(row, record, regions=regions)
        except DataError as error:
            intake.reject(error)
            continue
        found[str(record.image_id)].append(probe)
    return found


def _probe(row: Row, record: QuestionRow, *, regions: Mapping[str, Region]) -> Probe:
    groups = {"category": record.category}
    if record.generator:
        groups["generator"] = record.generator
    if record.region_id is not None:
        name = str(whole_id(record.region_id))
        groups |= _region_groups(row, record, region=regions.get(name))
    return Probe(
        id=str(record.question_id),
        question=record.question,
        answer=record.answer,
        options=tuple(record.options),
        groups=groups,
    )


def _region_groups(row: Row, record: QuestionRow, *, region: Region | None) -> dict[str, str]:
    if region is None:
        raise row.error(f"there is no region {record.region_id!r}", field="region_id")
    if region.image_id != str(record.image_id):
        raise row.error(
            f"the region {region.region_id!r} belongs to the image {region.image_id!r}, "
            f"not to {record.image_id!r}",
            field="region_id",
        )
    return {
        "nature": region.nature,
        "region_id": region.region_id,
        "area": area_band(region.bbox),
    }


@lru_cache(4096)
def area_band(bbox: tuple[float, float, float, float]) -> str:
    """How much of the picture a box covers: below 2%, up to 20%, or more.

    >>> area_band((0, 0, 100, 100)), area_band((0, 0, 500, 1000))
    ('small', 'large')
    """
    ymin, xmin, ymax, xmax = bbox
    share = (ymax - ymin) * (xmax - xmin) / 1e6
    bands = (("small", SMALL_SHARE), ("medium", MEDIUM_SHARE))
    return next((name for name, below in bands if share < below), "large")
