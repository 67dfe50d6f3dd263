"""Measures two things that the paper leaves to the eye: thresholds, and the recall of regions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from snellen.builders.dedup import Threshold, calibrate
from snellen.builders.rows import PictureRow, RegionRow
from snellen.construction import files
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.question_stages import encoder_of
from snellen.engine.journal import read_rows
from snellen.errors import DataError
from snellen.segment.annotations import Annotations
from snellen.segment.regions import box_of, recall


class _Text(msgspec.Struct):
    question: str
    options: list[str] = []


class _Pair(msgspec.Struct):
    a: _Text
    b: _Text
    same: bool


def calibrate_file(path: str | Path) -> tuple[Threshold, ...]:
    """What each threshold would do on the labelled pairs of a JSON-lines file.

    Raises:
        DataError: a row has another form, or all pairs have one label.
    """
    pairs = list(read_rows(Path(path), _Pair))
    texts = [[" ".join((one.question, *one.options)) for one in (p.a, p.b)] for p in pairs]
    vectors = encoder_of(os.getpid()).embed(text for both in texts for text in both)
    near = [float(np.dot(vectors[a], vectors[b])) for a, b in texts]
    return calibrate(near, [pair.same for pair in pairs])


@dataclass(frozen=True, slots=True)
class Recall:
    """How many true boxes were found: in all, and by class as (found, boxes).

    `pictures` have annotations, `without` have none.
    """

    found: int
    boxes: int
    pictures: int
    without: int
    by_class: Mapping[str, tuple[int, int]]


def recall_of(folder: str | Path, annotations: str | Path, *, least: float = 0.5) -> Recall:
    """The recall of the regions of a folder that is being built, against boxes of annotations.

    Raises:
        DataError: the regions have not been made, or no picture is in the annotations.
    """
    folder = Path(folder)
    select, segment = (CAPPROBE.stages[CAPPROBE.number(n) - 1] for n in ("select", "segment"))
    pictures: tuple[PictureRow, ...] = files.read_stage(folder, CAPPROBE, select) or ()
    regions: tuple[RegionRow, ...] | None = files.read_stage(folder, CAPPROBE, segment)
    if regions is None:
        raise DataError("no regions have been made yet", file=folder, hint="run --until segment")
    known = Annotations(Path(annotations), "boxes")
    n_found = n_boxes = n_pictures = 0
    by_class: dict[str, tuple[int, int]] = {}
    for picture in pictures:
        true = list(known.regions(picture.name, (picture.height, picture.width)))
        if not true:
            continue
        n_pictures += 1
        mine = [region.bbox for region in regions if region.image_id == picture.id]
        hit, n = recall([box_of(one.mask) for one in true], mine, least=least)
        n_found, n_boxes = n_found + hit, n_boxes + n
        for name in dict.fromkeys(one.guess for one in true):
            boxes = [box_of(one.mask) for one in true if one.guess == name]
            hit, n = recall(boxes, mine, least=least)
            before = by_class.get(name, (0, 0))
            by_class[name] = (before[0] + hit, before[1] + n)
    if not n_pictures:
        raise DataError("names none of the pictures", file=annotations,
                        hint="names are compared without their folders")  # fmt: skip
    without = len(pictures) - n_pictures
    return Recall(n_found, n_boxes, n_pictures, without, by_class)
