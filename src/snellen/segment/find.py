"""One way to the regions of a picture, whichever source is set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snellen.builders.options import SegmentOptions
from snellen.builders.rows import PictureRow
from snellen.errors import SettingsError
from snellen.pictures.prepare import open_upright
from snellen.segment.annotations import Annotations, LabelStudio
from snellen.segment.models import TwoModels
from snellen.segment.regions import Found
from snellen.segment.superpixels import superpixels
from snellen.segment.text import text_regions

Pixels = NDArray[np.uint8]
NEED_ANNOTATIONS = frozenset({"boxes", "coco", "lvis", "panoptic", "label_studio"})


def pixels_of(picture: PictureRow) -> Pixels:
    """The pixels of a picture, upright, (height, width, 3)."""
    return np.asarray(open_upright(picture.file.image(picture.name)))


@dataclass(slots=True)
class Segmenter:
    """Finds regions from one source; models see several pictures at once.

    `waiting` are the pictures that are still to be segmented, in order.
    """

    options: SegmentOptions
    waiting: dict[str, PictureRow] = field(default_factory=dict)
    _read: Annotations | LabelStudio | None = None
    _models: TwoModels | None = None
    _found: dict[str, list[Found]] = field(default_factory=dict)

    def basis(self, picture: PictureRow) -> object:
        """What would change the regions of a picture besides the options."""
        if self.options.source in NEED_ANNOTATIONS:
            return self._annotations().digest_basis(picture.name)
        return None

    def find(self, picture: PictureRow, pixels: Pixels) -> Iterable[Found]:
        """The regions of a picture, before any rule."""
        source = self.options.source
        if source == "superpixels":
            return superpixels(pixels, self.options.max_regions)
        if source == "text":
            return text_regions(pixels)
        if source == "yolo+sam3":
            return self._batched(picture)
        return list(self._annotations().regions(picture.name, pixels.shape[:2]))

    def _annotations(self) -> Annotations | LabelStudio:
        if self._read is None:
            if not self.options.annotations:
                raise SettingsError(
                    f"[segment]: source {self.options.source} needs annotations",
                    hint='set annotations = "PATH"',
                )
            path, kind = Path(self.options.annotations), self.options.source
            if kind == "label_studio":
                self._read = LabelStudio(path)
            else:
                self._read = Annotations(path, "masks" if kind in {"coco", "lvis"} else kind)
        return self._read

    def _batched(self, picture: PictureRow) -> list[Found]:
        if picture.id not in self._found:
            names = list(self.waiting)
            start = names.index(picture.id) if picture.id in self.waiting else 0
            chosen = [self.waiting[n] for n in names[start : start + self.options.batch]]
            self._models = self._models or TwoModels(self.options)
            regions = self._models.regions([pixels_of(one) for one in chosen])
            for one, found in zip(chosen, regions, strict=True):
                self._found[one.id] = found
                self.waiting.pop(one.id, None)
        return self._found.pop(picture.id)
