"""Regions from masks and boxes that exist: COCO, LVIS, panoptic pictures, Label Studio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from snellen.errors import DataError, MissingExtraError
from snellen.pictures.masks import decode_mask
from snellen.segment.regions import Found, Mask
from snellen.sources.listed import file_name, read_json

Shape = tuple[int, int]


class _Category(msgspec.Struct):
    id: int
    name: str
    isthing: int = 1


class _Image(msgspec.Struct):
    id: int | str
    file_name: str = ""
    coco_url: str = ""
    width: int = 0
    height: int = 0


class _Segment(msgspec.Struct):
    id: int
    category_id: int = 0


class _Annotation(msgspec.Struct):
    image_id: int | str
    category_id: int = 0
    id: int | str = ""
    bbox: list[float] = []
    segmentation: object = None
    iscrowd: int = 0
    segments_info: list[_Segment] = []
    file_name: str = ""


class _File(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category] = []


class Annotations:
    """The annotations of one file, by the name of the picture's file.

    `kind` is `masks` (COCO, LVIS), `boxes` (the boxes of the same), or `panoptic`, whose pictures
    of segments lie in a folder named as the file.

    Raises:
        DataError: the file has another form.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        try:
            found = msgspec.convert(read_json(path), _File)
        except msgspec.ValidationError as error:
            raise DataError(
                f"is no file of annotations: {error}",
                file=path,
                hint='expected {"images": [...], "annotations": [...], "categories": [...]}',
            ) from error
        self._categories = {one.id: one for one in found.categories}
        self._images = {
            Path(file_name(one.file_name, one.coco_url)).name: one.id for one in found.images
        }
        self._by_image: dict[int | str, list[_Annotation]] = {}
        for one in found.annotations:
            self._by_image.setdefault(one.image_id, []).append(one)

    def digest_basis(self, name: str) -> object:
        """What would change the regions of a picture, as plain data."""
        return msgspec.to_builtins(self._of(name))

    def _of(self, name: str) -> list[_Annotation]:
        image = self._images.get(Path(name).name)
        return [] if image is None else self._by_image.get(image, [])

    def regions(self, name: str, shape: Shape) -> Iterator[Found]:
        """The regions of a picture of (height, width); none for one that the file does not name."""
        for one in self._of(name):
            if self.kind == "panoptic":
                yield from self._segments(one, shape)
                continue
            category = self._categories.get(one.category_id)
            mask = (
                box_mask(one.bbox, shape)
                if self.kind == "boxes"
                else segmentation_mask(one.segmentation, shape)
            )
            self._check(mask, shape, name)
            nature = "stuff" if category is not None and not category.isthing else "thing"
            yield Found(mask, category.name if category else "", nature, name=str(one.id))

    def _segments(self, one: _Annotation, shape: Shape) -> Iterator[Found]:
        from PIL import Image

        folder = self.path.with_suffix("")
        place = folder / one.file_name if folder.is_dir() else self.path.parent / one.file_name
        if not place.is_file():
            raise DataError(f"the picture of segments {one.file_name} is absent", file=self.path)
        with Image.open(place) as opened:
            colours = np.asarray(opened.convert("RGB"), dtype=np.int64)
        ids = colours @ np.array([1, 256, 65536])
        self._check(ids > 0, shape, one.file_name)
        for segment in one.segments_info:
            category = self._categories.get(segment.category_id)
            nature = "stuff" if category is not None and not category.isthing else "thing"
            label = category.name if category else ""
            yield Found(ids == segment.id, label, nature, name=str(segment.id))

    def _check(self, mask: Mask, shape: Shape, name: str) -> None:
        if mask.shape != shape:
            raise DataError(
                f"a mask of {name} is {mask.shape[0]} high and {mask.shape[1]} wide, and the "
                f"upright picture {shape[0]} high and {shape[1]} wide",
                file=self.path,
                hint="masks refer to the upright picture; turn them as the picture is turned",
            )


def box_mask(box: Sequence[float], shape: Shape) -> Mask:
    """A box [x, y, width, height] in pixels as a mask."""
    mask = np.zeros(shape, bool)
    x, y, wide, high = box
    bottom, right = max(round(y) + 1, round(y + high)), max(round(x) + 1, round(x + wide))
    mask[round(y) : bottom, round(x) : right] = True
    return mask


def segmentation_mask(segmentation: object, shape: Shape) -> Mask:
    """A COCO segmentation as a mask: polygons, or run lengths, packed or not."""
    if isinstance(segmentation, Mapping):
        return decode_mask(segmentation)
    return polygons_mask(msgspec.convert(segmentation or [], list[list[float]]), shape)


def polygons_mask(polygons: Sequence[Sequence[float]], shape: Shape) -> Mask:
    """Polygons [x, y, x, y ...] in pixels as one mask, drawn as COCO's own tools draw them.

    Raises:
        MissingExtraError: pycocotools is not installed.
    """
    try:
        from pycocotools import mask as coco
    except ImportError as error:
        raise MissingExtraError("pycocotools, which draws polygons", "build") from error
    whole = [list(map(float, one)) for one in polygons if len(one) >= 6]
    if not whole:
        return np.zeros(shape, bool)
    drawn = coco.merge(coco.frPyObjects(whole, *shape))
    return decode_mask({"size": list(shape), "counts": drawn["counts"].decode()})


class LabelStudio:
    """The regions of a Label Studio export (JSON), by the name of the picture's file.

    Rectangles, polygons and brush strokes are read; of several annotations of a task the last
    that was not cancelled counts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        tasks = read_json(path)
        if not isinstance(tasks, list):
            raise DataError("is no Label Studio export: expected a list of tasks", file=path)
        self._tasks = {_picture_of(task): task for task in tasks}

    def digest_basis(self, name: str) -> object:
        """What would change the regions of a picture, as plain data."""
        return self._results(name)

    def _results(self, name: str) -> list[Mapping[str, Any]]:
        task = self._tasks.get(Path(name).name, {})
        done = [a for a in task.get("annotations", ()) if not a.get("was_cancelled")]
        return list(done[-1].get("result", ())) if done else []

    def regions(self, name: str, shape: Shape) -> Iterator[Found]:
        """The regions of a picture of (height, width)."""
        for one in self._results(name):
            value = one.get("value", {})
            mask = _label_studio_mask(value, shape)
            if mask is None:
                continue
            labels = value.get(str(one.get("type", "")), ())
            yield Found(mask, labels[0] if labels else "", name=str(one.get("id", "")))


def _picture_of(task: Mapping[str, Any]) -> str:
    """The file name of a task's picture; an upload has a random head before it."""
    for value in task.get("data", {}).values():
        if isinstance(value, str):
            name = Path(unquote(urlsplit(value).path)).name
            head, dash, rest = name.partition("-")
            is_upload = dash and len(head) == 8 and all(c in "0123456789abcdef" for c in head)
            return rest if is_upload else name
    return ""


def _label_studio_mask(value: Mapping[str, Any], shape: Shape) -> Mask | None:
    height, width = shape
    if "points" in value:
        flat = [c for x, y in value["points"] for c in (x * width / 100, y * height / 100)]
        return polygons_mask([flat], shape)
    if value.get("format") == "rle" or "rle" in value:
        alpha = brush_bytes(value["rle"])[3::4]
        if len(alpha) != height * width:
            raise DataError(f"a brush mask has {len(alpha)} pixels, the picture {height * width}")
        return (alpha > 0).reshape(shape)
    if "width" in value and "height" in value:
        x, y = value["x"] * width / 100, value["y"] * height / 100
        wide, high = value["width"] * width / 100, value["height"] * height / 100
        return box_mask([x, y, wide, high], shape)
    return None


def brush_bytes(packed: Sequence[int]) -> NDArray[np.uint8]:
    """The bytes (red, green, blue, alpha in turn) of a brush mask as Label Studio packs it.

    A bit stream: length (32 bits), word size less 1 (5), four sizes of run lengths less 1 (4 each).
    Then runs: one bit says whether a single word is repeated, two bits which size the length has.
    """
    bits = "".join(f"{byte:08b}" for byte in packed)
    at = 0

    def read(n: int) -> int:
        nonlocal at
        at += n
        return int(bits[at - n : at], 2)

    length, word = read(32), read(5) + 1
    sizes = [read(4) + 1 for _ in range(4)]
    out = np.zeros(length, np.uint8)
    place = 0
    while place < length:
        is_repeated = read(1)
        end = place + 1 + read(sizes[read(2)])
        if is_repeated:
            out[place:end] = read(word)
        else:
            out[place:end] = [read(word) for _ in range(end - place)][: length - place]
        place = end
    return out
