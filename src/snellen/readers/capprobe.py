"""Reads multiple-choice questions about captions: CapProbe, and folders of the same form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain
from pathlib import Path

import msgspec

from snellen.pictures.masks import mask_fault, shape_fault
from snellen.readers.policy import SLIP, RowPolicy
from snellen.readers.rows import Row
from snellen.records import Image, Item, Probe, Region
from snellen.schemas import (
    Fault,
    ImageRow,
    QuestionRow,
    RegionRow,
    image_faults,
    labels_of,
    letter_faults,
    question_faults,
    region_faults,
    twin_faults,
    was_read,
    whole_id,
)

DATA = Path(__file__).resolve().parents[1] / "data"
SMALL_SHARE, MEDIUM_SHARE = 0.02, 0.2


def taxonomy() -> Mapping[str, tuple[str, ...]]:
    """The 37 domains of CapProbe, each with its sub-domains (219 in all).

    >>> len(taxonomy()), sum(len(ones) for ones in taxonomy().values())
    (37, 219)

    Source: CapProbe, appendix C, table 5.
    """
    path = DATA / "capprobe_taxonomy.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class _Picture:
    """A row of `images`, its picture found and its text let go."""

    row: Row
    original_id: str | int
    images: tuple[Image, ...]
    groups: Mapping[str, tuple[str, ...]]


def read_reading(policy: RowPolicy) -> Iterator[Item]:
    """The items of a reading benchmark, in the order of `images`.

    An image without a question is a bad row: its caption would be paid for and never read.
    """
    pictures = _read_images(policy)
    # Questions may do without regions.
    rows = policy.records("regions", RegionRow, region_faults, advice=_region_advice)
    for row, record in rows if policy.has("regions") else ():
        policy.claim(row, "region_id", record.region_id)
        _check_image_id(policy, row, record.image_id, pictures)
        shown = pictures.get(str(record.image_id))
        size = policy.size_of(shown.images[0]) if shown and shown.images else None
        if size is not None and (fault := shape_fault(record.mask, size)):
            policy.advise(row.error(fault, field="mask"))
        if was_read(record.region_id) and (policy.fine or policy.collects):
            region = Region(
                region_id=str(record.region_id),
                image_id=str(record.image_id),
                bbox=tuple(record.bbox or ()),  # type: ignore[arg-type]
                nature=record.nature,
                mask=record.mask,
                metadata=record.metadata,
            )
            policy.regions.setdefault(region.region_id, region)
    probes = _read_questions(policy, pictures)
    for name, picture in pictures.items():
        if not probes[name]:
            if policy.knows_all(QuestionRow):
                message = f"no question asks about the image {name!r}"
                policy.note(picture.row.error(message, field="image_id"))
            continue
        categories = [probe.groups["category"] for probe in probes[name]]
        labels = [label for labels in picture.groups.values() for label in labels]
        if policy.wants((*labels, *categories)):
            policy.fine = True
            policy.look(picture.row, picture.images)
            if policy.fine:
                yield Item(
                    id=name,
                    images=picture.images,
                    probes=tuple(probes[name]),
                    groups=picture.groups,
                    original_id=picture.original_id,
                )


def _read_images(policy: RowPolicy) -> dict[str, _Picture]:
    domains = taxonomy()
    parts = sorted({part for parts in domains.values() for part in parts})
    found: dict[str, _Picture] = {}
    for row, record in policy.records("images", ImageRow, image_faults):
        policy.claim(row, "image_id", record.image_id)
        images = policy.find(row, record.image)
        groups = {"l1": labels_of(record.l1), "l2": labels_of(record.l2)}
        for field, known in (("l1", list(domains)), ("l2", parts)):
            for label in groups[field]:
                policy.check_label(row, field, label, known)
        if was_read(record.image_id) and (policy.fine or policy.collects):
            slim = replace(row, data=b"", cells=())
            picture = _Picture(slim, record.image_id, images, groups)
            found.setdefault(str(record.image_id), picture)
    if not found:
        policy.lose(ImageRow)
    return found


def _region_advice(row: RegionRow) -> Iterator[Fault]:
    # A real box covers more than a millionth of a picture.
    if was_read(row.bbox) and row.bbox and 0 < max(row.bbox) <= 1:
        hint = "multiply shares of the picture by 1000"
        yield Fault("bbox", f"expected edges from 0 to 1000, found shares of 1: {row.bbox}", hint)
    if fault := mask_fault(row.mask):
        yield Fault("mask", fault)


def _read_questions(
    policy: RowPolicy, pictures: Mapping[str, _Picture]
) -> Mapping[str, list[Probe]]:
    found: dict[str, list[Probe]] = defaultdict(list)
    for row, record in policy.records(
        "questions",
        QuestionRow,
        question_faults,
        advice=lambda row: chain(twin_faults(row), letter_faults(row)),
    ):
        policy.claim(row, "question_id", record.question_id)
        if not was_read(record.image_id):
            policy.lose(QuestionRow)
        _check_image_id(policy, row, record.image_id, pictures)
        groups = {"category": record.category}
        if record.generator:
            groups["generator"] = record.generator
        if record.region_id is not None and was_read(record.region_id):
            groups |= _region_groups(policy, row, record, pictures)
        if policy.fine or policy.collects:
            probe = Probe(
                id=str(record.question_id),
                question=record.question,
                answer=record.answer,
                options=tuple(record.options or ()),
                groups=groups,
            )
            found[str(record.image_id)].append(probe)
    return found


def _region_groups(
    policy: RowPolicy, row: Row, record: QuestionRow, pictures: Mapping[str, _Picture]
) -> dict[str, str]:
    """What a question's region says about it; notes a region that does not exist or fit."""
    asked, image = str(whole_id(record.region_id or "")), str(record.image_id)
    region = policy.regions.get(asked)
    if region is None:
        if policy.knows_all(RegionRow):
            hint = _one_of(asked, policy.regions, "region_id of a row of regions, or null")
            message = f"there is no region {record.region_id!r}"
            policy.note(row.error(message, field="region_id", hint=hint))
        if not policy.regions:
            policy.lose(RegionRow)  # a folder without regions is told once
        return {}
    if region.image_id != image:
        if {region.image_id, image} <= pictures.keys():
            message = (
                f"the region {asked!r} belongs to the image {region.image_id!r}, not {image!r}"
            )
            hint = "a question names a region of its own image, or null"
            policy.note(row.error(message, field="region_id", hint=hint))
        return {}
    if len(region.bbox) != 4:
        return {}
    return {
        "nature": region.nature,
        "region_id": region.region_id,
        "area": area_band(region.bbox),
    }


def _check_image_id(
    policy: RowPolicy, row: Row, value: str | int, pictures: Mapping[str, _Picture]
) -> None:
    if was_read(value) and str(value) not in pictures and policy.knows_all(ImageRow):
        hint = _one_of(str(value), pictures, "image_id of a row of images")
        policy.note(row.error(f"there is no image {value!r}", field="image_id", hint=hint))


def _one_of(value: str, known: Iterable[str], what: str) -> str:
    """The id that was probably meant, or what is expected."""
    near = get_close_matches(value, list(known), n=1, cutoff=SLIP)
    return f"did you mean `{near[0]}`?" if near else f"expected the {what}"


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
