"""The rows of the CapProbe pipeline."""

from __future__ import annotations

import msgspec

from snellen.builders.steps import Row
from snellen.records import Image, JsonObject


class Label(msgspec.Struct, frozen=True):
    """A domain and a sub-domain that a picture shows; the same sub-domain may stand under two."""

    l1: str
    l2: str
    confidence: float = 1.0


class Shot(msgspec.Struct, frozen=True):
    """A picture file: where it is, and the digest of its bytes."""

    path: str
    digest: str

    def image(self, name: str) -> Image:
        """The picture as a part of a message."""
        return Image(name, self.digest, self.path)


class PictureRow(Row, frozen=True, kw_only=True):
    """A picture that was taken; `width` and `height` are of the upright picture, in pixels.

    `quality` are the figures that it was measured by, `fingerprint` its perceptual hash in hex.
    """

    name: str
    file: Shot
    width: int
    height: int
    labels: tuple[Label, ...] = ()
    quality: dict[str, float] = msgspec.field(default_factory=dict)
    fingerprint: str = ""

    @property
    def confidence(self) -> float:
        """The highest confidence of its labels; 1 without labels."""
        return max((label.confidence for label in self.labels), default=1.0)


class RegionRow(Row, frozen=True, kw_only=True):
    """A region of a picture: `bbox` is (ymin, xmin, ymax, xmax) in thousandths of its sides.

    `area` is its share of the picture. `view` is a file that shows the region alone. `guess` is
    what the segmenter took it for, `nature_guess` whether it took it for a thing or for stuff.
    """

    image_id: str
    index: int
    bbox: tuple[float, float, float, float]
    mask: JsonObject
    area: float
    view: Shot
    guess: str = ""
    nature_guess: str = ""
    score: float | None = None


class DescribedRow(Row, frozen=True, kw_only=True):
    """What a describer said of a region: its metadata, and whether it is a thing or stuff.

    `box` is the describer's own box in thousandths, `box_form` how it was written, and
    `box_overlap` its intersection over union with the mask's box. `flags` name doubts.
    """

    image_id: str
    nature: str
    metadata: JsonObject
    nature_guess: str = ""
    box: tuple[float, float, float, float] | None = None
    box_form: str = ""
    box_overlap: float | None = None
    flags: tuple[str, ...] = ()


class QuestionRow(Row, frozen=True, kw_only=True):
    """A question about a region: four options without letters, and the letter of the right one."""

    image_id: str
    region_id: str
    category: str
    question: str
    options: tuple[str, str, str, str]
    answer: str
    generator: str
    index: int
    flags: tuple[str, ...] = ()

    @property
    def right(self) -> str:
        """The text of the right option."""
        return self.options["ABCD".index(self.answer)]
