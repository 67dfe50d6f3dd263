"""Odd pictures through the stages: turned, copied, without a region, and with seven hundred."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.worlds.capprobe_world import PICTURES, config, construct, paint

from snellen.builders.options import SegmentOptions, SelectOptions
from snellen.builders.rows import PictureRow, RegionRow
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.files import read_rejected, read_stage
from snellen.segment.find import pixels_of

TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}


def turned_pictures(folder: Path) -> Path:
    """One picture, red above and blue below, stored in each of the ways that EXIF can undo."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    upright = Image.fromarray(rng.integers(112, 144, (300, 400, 3), dtype=np.uint8))
    draw = ImageDraw.Draw(upright)
    draw.rectangle([0, 0, 399, 74], fill=(220, 0, 0))
    draw.rectangle([0, 225, 399, 299], fill=(0, 0, 220))
    for orientation, turn in TURNS.items():
        exif = Image.Exif()
        exif[274] = orientation
        stored = upright.transpose(Image.Transpose(turn))
        stored.save(folder / f"o{orientation}.png", exif=exif)
    return folder


def test_turned_pictures_are_segmented_upright(tmp_path: Path) -> None:
    """Masks have the upright picture's shape, and are the same however it is stored."""
    out = tmp_path / "out"
    construct(
        turned_pictures(tmp_path / "in"), out, until="segment",
        config=config(most=6, select=SelectOptions(max_distance=-1)),
    )  # fmt: skip
    pictures: tuple[PictureRow, ...] = read_stage(out, CAPPROBE, CAPPROBE.stages[0]) or ()
    regions: tuple[RegionRow, ...] = read_stage(out, CAPPROBE, CAPPROBE.stages[1]) or ()
    assert len(pictures) == len(TURNS)
    found = []
    for picture in pictures:
        assert (picture.width, picture.height) == (400, 300)
        assert pixels_of(picture)[10, 200].tolist() == [220, 0, 0]
        mine = [region for region in regions if region.image_id == picture.id]
        assert all(region.mask["size"] == [300, 400] for region in mine)
        found.append([(region.bbox, region.mask) for region in mine])
    assert all(one == found[0] for one in found)


def test_copies_of_a_photo_are_one_picture_and_its_mirror_is_another(tmp_path: Path) -> None:
    """PNG, JPEG of low quality and half the size are one cluster; the largest is kept."""
    source = tmp_path / "in"
    source.mkdir()
    with Image.open(PICTURES / "coffee.jpg") as opened:
        photo = opened.convert("RGB")
    photo.save(source / "a.png")
    photo.save(source / "b.jpg", quality=50)
    small = photo.resize((photo.width * 3 // 4, photo.height * 3 // 4))
    small.save(source / "c.png")
    photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(source / "d.png")
    built = construct(source, tmp_path / "out", until="select")
    assert built.funnel[0].reasons == {"near_duplicate": 2}
    rows = read_stage(tmp_path / "out", CAPPROBE, CAPPROBE.stages[0]) or ()
    assert {row.name for row in rows} in ({"a.png", "d.png"}, {"b.jpg", "d.png"})


def test_no_region_and_seven_hundred_are_both_in_the_report(tmp_path: Path) -> None:
    """A picture without a region is listed; of 700 twelve are kept, and 688 named with the rule."""
    source = paint(tmp_path / "in", 1, 2)
    boxes = [[3 * (k % 100), 8 * (k // 100), 18, 14] for k in range(700)]
    found = {
        "images": [{"id": 1, "file_name": "001.png"}, {"id": 2, "file_name": "002.png"}],
        "annotations": [{"id": k, "image_id": 2, "bbox": box} for k, box in enumerate(boxes)],
    }
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    options = SegmentOptions(source="boxes", annotations=str(path), max_overlap=1.0)
    built = construct(source, tmp_path / "out", until="segment", config=config(segment=options))
    record = built.funnel[-1]
    assert record.adds_up
    assert (record.entered, record.kept, record.made) == (2, 1, 12)
    assert record.reasons == {"no_region": 1, "over_region_cap": 688}
    assert record.counts["found"] == 700
    named = [one for one in read_rejected(tmp_path / "out") if one.stage == "segment"]
    assert len({one.id for one in named}) == 689


@pytest.mark.parametrize("kind", ["L", "LA", "I;16", "CMYK", "P"])
def test_other_kinds_of_pixels_are_taken(tmp_path: Path, kind: str) -> None:
    """Grey, transparent, deep, printed and indexed pictures are looked at as a model gets them."""
    source = paint(tmp_path / "in", 1)
    with Image.open(source / "001.png") as opened:
        picture = opened.convert("RGB")
    (source / "001.png").unlink()
    if kind == "I;16":
        grey = np.asarray(picture.convert("L"), dtype=np.uint16) * 257
        Image.fromarray(grey).save(source / "x.png")
    elif kind == "CMYK":
        picture.convert("CMYK").save(source / "x.jpg")
    else:
        picture.convert(kind).save(source / "x.png")
    built = construct(source, tmp_path / "out", until="segment")
    assert built.funnel[0].kept == 1
    assert built.funnel[1].made == 3


def test_the_same_bytes_are_recognised_whatever_they_are_called(tmp_path: Path) -> None:
    """A copy of a file is rejected as identical, and named with the one that was kept."""
    source = paint(tmp_path / "in", 1)
    buffer = io.BytesIO((source / "001.png").read_bytes())
    (source / "002.png").write_bytes(buffer.getvalue())
    construct(source, tmp_path / "out", until="select")
    [gone] = read_rejected(tmp_path / "out")
    assert gone.reason == "identical"
    assert gone.id == f"{gone.detail['partner']}~2"
