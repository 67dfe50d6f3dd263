"""Regions: masks from annotations as they are, rules that keep some, areas without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco
from tests.worlds.capprobe_world import PICTURES, paint

from snellen.builders.options import SegmentOptions
from snellen.builders.rows import PictureRow, Shot
from snellen.errors import DataError, SettingsError
from snellen.pictures.masks import decode_mask, encode_mask, mask_fault
from snellen.segment.annotations import Annotations, LabelStudio, brush_bytes
from snellen.segment.find import Segmenter
from snellen.segment.regions import Found, box_of, choose, covered, recall
from snellen.segment.superpixels import superpixels
from snellen.segment.views import view_of

SHAPE = (60, 80)


def block(top: int, left: int, bottom: int, right: int) -> np.ndarray[Any, Any]:
    mask = np.zeros(SHAPE, bool)
    mask[top:bottom, left:right] = True
    return mask


@pytest.mark.parametrize("seed", range(8))
def test_masks_are_packed_as_cocos_own_tools_pack_them(seed: int) -> None:
    """The same letters as pycocotools, and the same pixels back."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rng.integers(1, 50), rng.integers(1, 50))) < rng.random()
    packed = encode_mask(mask)
    theirs = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    assert packed["counts"] == theirs["counts"].decode()
    assert mask_fault(packed) == ""
    assert (decode_mask(packed) == mask).all()


def test_a_broken_mask_is_an_error() -> None:
    """Runs that do not cover the picture are not filled up."""
    with pytest.raises(DataError, match="the runs cover 2 pixels"):
        decode_mask({"size": [2, 2], "counts": [2]})


def test_a_cap_below_three_ends_the_search_with_three_regions() -> None:
    """Fewer than three regions are never found; the rule of the cap leaves the others out."""
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, 30:] = 200
    assert [len(superpixels(pixels, most)) for most in (1, 2, 3)] == [3, 3, 3]
    kept, left = choose(superpixels(pixels, 1), SegmentOptions(max_regions=1))
    assert (len(kept), {one.reason for one in left}) == (1, {"over_region_cap"})


def test_regions_tile_every_bundled_picture() -> None:
    """3 to 12 areas, together at least 90% of the picture, none above 60%; edges as stated."""
    for path in (*sorted(PICTURES.glob("[a-d]*.*g")),):
        with Image.open(path) as opened:
            pixels = np.asarray(opened.convert("RGB"))
        found = superpixels(pixels)
        masks = [one.mask for one in found]
        assert 3 <= len(found) <= 12
        assert covered(masks) >= 0.9
        assert max(float(mask.mean()) for mask in masks) <= 0.6
        assert sum(int(mask.sum()) for mask in masks) == masks[0].size


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 2), (3000, 20), (8, 8)])
def test_odd_shapes_have_regions_too(shape: tuple[int, int]) -> None:
    """A plain picture of any shape is tiled; one of three pixels or more has three areas."""
    found = superpixels(np.full((*shape, 3), 90, np.uint8))
    assert covered([one.mask for one in found]) == 1.0
    assert len(found) >= min(3, shape[0] * shape[1])


def test_rules_name_what_they_leave_out() -> None:
    """Too small, too large, over another and over the cap: each with its rule; things first."""
    sky = Found(block(0, 0, 30, 80), "sky", "stuff", 0.9)
    cat = Found(block(10, 10, 30, 40), "cat", "thing", 0.5)
    copy = Found(block(10, 10, 30, 39), "cat", "thing", 0.4)
    dot = Found(block(0, 0, 1, 1), "dot", "thing", 0.99)
    none = Found(block(0, 0, 0, 0), "none", "thing", 0.99)
    cup = Found(block(40, 50, 60, 80), "cup", "thing", 0.8)
    options = SegmentOptions(max_regions=2, max_overlap=0.9)
    kept, left = choose([sky, cat, copy, dot, none, cup], options)
    assert [one.guess for one in kept] == ["cup", "cat"]
    assert {(one.found.guess, one.reason) for one in left} == {
        ("none", "empty_mask"), ("dot", "too_small"), ("cat", "overlap"), ("sky", "overlap")
    }  # fmt: skip
    floor = Found(block(30, 0, 60, 50), "floor", "stuff", 0.9)
    _, left = choose([cat, cup, floor], options)
    assert [one.reason for one in left] == ["over_region_cap"]
    _, large = choose([sky], SegmentOptions(max_area=0.4))
    assert large[0].reason == "too_large"


def test_none_and_seven_hundred_regions() -> None:
    """Nothing gives nothing; of 700 the cap keeps twelve and names the others."""
    assert choose([], SegmentOptions()) == ((), ())
    many = [Found(block(k % 50, k // 50, k % 50 + 8, k // 50 + 8), str(k)) for k in range(700)]
    kept, left = choose(many, SegmentOptions(max_overlap=1.0))
    assert len(kept) == 12
    assert len(left) == 688
    assert {one.reason for one in left} == {"over_region_cap"}


def test_boxes_are_thousandths_of_height_and_width() -> None:
    """The order is ymin, xmin, ymax, xmax, and the last row and column are inside."""
    assert box_of(block(15, 20, 60, 80)) == (250.0, 250.0, 1000.0, 1000.0)


def test_recall_counts_each_region_once() -> None:
    """Two true boxes on one region are one hit; the least overlap is a setting."""
    assert recall([(0, 0, 10, 10), (0, 0, 10, 9)], [(0, 0, 10, 10)]) == (1, 2)
    assert recall([(0, 0, 10, 10)], [(0, 0, 10, 4)]) == (0, 1)
    assert recall([(0, 0, 10, 10)], [(0, 0, 10, 4)], least=0.4) == (1, 1)
    assert recall([], []) == (0, 0)


def picture(name: str, folder: Path) -> PictureRow:
    file = Shot(str(folder / name), "0" * 64)
    return PictureRow(id=name, name=name, file=file, width=SHAPE[1], height=SHAPE[0])


def annotations(folder: Path, **more: Any) -> Path:
    """A file of COCO annotations: polygons, run lengths packed and not, a crowd."""
    packed = encode_mask(block(5, 5, 25, 30))
    plain = {"size": list(SHAPE), "counts": [0, 60, 4740]}
    found = {
        "images": [{"id": 7, "file_name": "001.png", "width": 80, "height": 60}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "sky", "isthing": 0}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 10, 20, 10],
             "segmentation": [[10.0, 10.0, 30.0, 10.0, 30.0, 20.0, 10.0, 20.0]]},
            {"id": 2, "image_id": 7, "category_id": 2, "bbox": [5, 5, 25, 20],
             "segmentation": packed},
            {"id": 3, "image_id": 7, "category_id": 1, "iscrowd": 1, "bbox": [0, 0, 1, 60],
             "segmentation": plain},
        ],
    } | more  # fmt: skip
    path = folder / "instances.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def test_coco_regions_equal_their_annotations(tmp_path: Path) -> None:
    """Polygons are drawn as COCO draws them; run lengths, packed or not, are taken as they are."""
    found = list(Annotations(annotations(tmp_path), "masks").regions("in/001.png", SHAPE))
    drawn = coco.merge(coco.frPyObjects([[10.0, 10, 30, 10, 30, 20, 10, 20]], *SHAPE))
    assert encode_mask(found[0].mask)["counts"] == drawn["counts"].decode()
    assert int(coco.area(drawn)) == int(found[0].mask.sum()) > 0
    assert (found[1].mask == block(5, 5, 25, 30)).all()
    assert (found[2].mask == block(0, 0, 60, 1)).all()
    assert [(one.guess, one.nature) for one in found] == [
        ("cat", "thing"), ("sky", "stuff"), ("cat", "thing")
    ]  # fmt: skip
    assert list(Annotations(annotations(tmp_path), "masks").regions("other.png", SHAPE)) == []
    boxes = list(Annotations(annotations(tmp_path), "boxes").regions("001.png", SHAPE))
    assert (boxes[0].mask == block(10, 10, 20, 30)).all()


def test_lvis_files_name_pictures_by_their_address(tmp_path: Path) -> None:
    """Where there is no file name, the end of the address is the file."""
    images = [{"id": 7, "coco_url": "http://images.example/val2017/001.png"}]
    path = annotations(tmp_path, images=images)
    assert len(list(Annotations(path, "masks").regions("001.png", SHAPE))) == 3


def test_panoptic_pictures_are_read_by_their_colours(tmp_path: Path) -> None:
    """A segment's id is red + 256 green + 65536 blue; things and stuff are told apart."""
    folder = tmp_path / "instances"
    folder.mkdir()
    colours = np.zeros((*SHAPE, 3), np.uint8)
    colours[:, :40] = (1, 1, 0)
    colours[:, 40:] = (0, 0, 2)
    Image.fromarray(colours).save(folder / "001.png")
    segments = [{"id": 257, "category_id": 1}, {"id": 131072, "category_id": 2}]
    entry = {"image_id": 7, "file_name": "001.png", "segments_info": segments}
    path = annotations(tmp_path, annotations=[entry])
    found = list(Annotations(path, "panoptic").regions("001.png", SHAPE))
    assert (found[0].mask == block(0, 0, 60, 40)).all()
    assert (found[1].mask == block(0, 40, 60, 80)).all()
    assert [one.nature for one in found] == ["thing", "stuff"]


def test_a_mask_of_another_size_is_an_error(tmp_path: Path) -> None:
    """Masks refer to the upright picture; one that lies across is named."""
    with pytest.raises(DataError, match="60 high and 80 wide, and the upright picture 80 high"):
        list(Annotations(annotations(tmp_path), "masks").regions("001.png", (80, 60)))


def test_label_studio_rectangles_polygons_and_strokes(tmp_path: Path) -> None:
    """Edges are in per cent; an upload's random head is no part of its name."""
    alpha = np.zeros((*SHAPE, 4), np.uint8)
    alpha[10:20, 10:20, 3] = 255
    results = [
        {"id": "a", "type": "rectanglelabels",
         "value": {"x": 25, "y": 50, "width": 50, "height": 25, "rectanglelabels": ["Cat"]}},
        {"id": "b", "type": "polygonlabels",
         "value": {"points": [[0, 0], [50, 0], [50, 50], [0, 50]], "polygonlabels": ["Sky"]}},
        {"id": "c", "type": "brushlabels",
         "value": {"format": "rle", "rle": packed_brush(alpha.ravel()), "brushlabels": ["Cup"]}},
    ]  # fmt: skip
    task = {"data": {"image": "/data/upload/1/0a1b2c3d-001.png"},
            "annotations": [{"result": results}]}  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task]), encoding="utf-8")
    found = list(LabelStudio(path).regions("001.png", SHAPE))
    assert (found[0].mask == block(30, 20, 45, 60)).all()
    assert abs(int(found[1].mask.sum()) - 30 * 40) <= 71
    assert (found[2].mask == block(10, 10, 20, 20)).all()
    assert [one.guess for one in found] == ["Cat", "Sky", "Cup"]


def packed_brush(data: np.ndarray[Any, Any]) -> list[int]:
    """Bytes as Label Studio packs them, written here from its format: runs, and single bytes."""
    bits = f"{len(data):032b}" + f"{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    at = 0
    while at < len(data):
        end = at + 1
        while end < len(data) and data[end] == data[at] and end - at < 65536:
            end += 1
        if end - at == 1:
            bits += "0" + "00" + f"{0:03b}" + f"{data[at]:08b}"
        else:
            bits += "1" + "11" + f"{end - at - 1:016b}" + f"{data[at]:08b}"
        at = end
    bits += "0" * (-len(bits) % 8)
    return [int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)]


def test_brush_strokes_are_unpacked() -> None:
    """Runs and single bytes come back as they were."""
    data = np.array([0, 0, 0, 7, 8, 8, 255], np.uint8)
    assert brush_bytes(packed_brush(data)).tolist() == data.tolist()


def test_a_source_of_masks_needs_its_file(tmp_path: Path) -> None:
    """The error names the setting."""
    one = picture("001.png", paint(tmp_path, 1))
    with pytest.raises(SettingsError, match="source coco needs annotations"):
        Segmenter(SegmentOptions(source="coco")).basis(one)


def test_changed_annotations_change_their_own_picture_only(tmp_path: Path) -> None:
    """What a picture's regions rest on is the annotations of that picture."""
    options = SegmentOptions(source="coco", annotations=str(annotations(tmp_path)))
    one, other = (picture(name, tmp_path) for name in ("001.png", "002.png"))
    before = Segmenter(options).basis(one), Segmenter(options).basis(other)
    annotations(tmp_path, annotations=[])
    assert Segmenter(options).basis(one) != before[0]
    assert Segmenter(options).basis(other) == before[1]


def test_a_view_shows_the_region_enlarged_and_fades_the_rest() -> None:
    """The longer side has 768 pixels; the region keeps its colours, the rest turns grey."""
    pixels = np.full((*SHAPE, 3), (250, 10, 10), np.uint8)
    view = np.asarray(view_of(pixels, block(20, 20, 40, 40)))
    assert max(view.shape[:2]) == 768
    height, width = view.shape[:2]
    assert view[height // 2, width // 2].tolist() == [250, 10, 10]
    assert abs(int(view[2, 2, 0]) - 152) < 4
    assert abs(int(view[2, 2, 1]) - 104) < 4


@pytest.mark.slow
def test_printed_text_is_found_where_it_stands() -> None:
    """The lines of the bundled receipt are found; the engine reads its total."""
    pytest.importorskip("rapidocr")
    from snellen.segment.text import text_regions

    with Image.open(PICTURES / "receipt.png") as opened:
        found = list(text_regions(np.asarray(opened.convert("RGB"))))
    assert len(found) > 20
    assert any("TOTAL" in one.guess.upper() for one in found)
    assert all(one.score is not None and one.score >= 0.8 for one in found)
