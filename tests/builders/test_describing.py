"""Describers: the schema of figure 6, what is asked again, and the forms of boxes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.worlds.capprobe_world import metadata

from snellen.builders.describing import (
    BoxForm,
    box_form,
    describe,
    in_thousandths,
    metadata_in,
    overlap,
    place,
)
from snellen.builders.options import DescribeOptions
from snellen.builders.rows import PictureRow, RegionRow, Shot
from snellen.builders.steps import Made
from snellen.errors import SettingsError
from snellen.flows import run_by_hand
from snellen.records import Reply, Request
from snellen.replies import UnreadableError

SHOT = Shot("a.png", "0" * 64)
PICTURE = PictureRow(id="p", name="a.png", file=SHOT, width=1080, height=1920)
REGION = RegionRow(id="p.r01", made_from=("p",), image_id="p", index=1, mask={}, area=0.1,
                   bbox=(200.0, 100.0, 400.0, 300.0), view=SHOT, nature_guess="stuff")  # fmt: skip


def told(found: dict[str, Any], **options: Any) -> Made:
    flow = describe(REGION, PICTURE, role="d", options=DescribeOptions(**options))
    return run_by_hand(flow, lambda request: Reply(json.dumps(found)))


def test_a_description_becomes_a_row_with_both_natures() -> None:
    """Thing or stuff is the describer's word; the segmenter's guess is kept beside it."""
    found = metadata("red")
    found["identity_and_taxonomy"]["segment_nature"] = "thing"
    [row] = told(found).rows
    assert (row.id, row.nature, row.nature_guess) == ("p.r01", "thing", "stuff")
    assert row.metadata["spatial_and_localization"]["bounding_box"] == [200, 100, 400, 300]
    assert row.flags == ("no_box",)


def test_further_details_of_the_paper_are_kept_where_given() -> None:
    """The optional fields of section 3.3 stand beside the required ones, and are absent else."""
    found = metadata("red")
    found["spatial_and_localization"]["view_angle"] = "from above"
    found["detailed_appearance"]["sub_components_or_elements"] = [
        {"element_name": "wheel", "description": None, "quantity": 2, "visibility": 0.5}
    ]
    found["dynamics_and_interactions"]["interaction_targets"] = [
        {"target_name": "road", "count": 1, "interaction_type": "stands on", "detail": None}
    ]
    found["physical_composition"] = {"materials": ["steel"], "structural_integrity": "whole"}
    [row] = told(found).rows
    assert row.metadata["spatial_and_localization"]["view_angle"] == "from above"
    assert row.metadata["detailed_appearance"]["sub_components_or_elements"][0]["visibility"] == 0.5
    assert row.metadata["physical_composition"]["materials"] == ["steel"]
    [plain] = told(metadata("red")).rows
    assert "view_angle" not in plain.metadata["spatial_and_localization"]
    assert "physical_composition" not in plain.metadata


def test_printed_text_is_kept_letter_by_letter() -> None:
    """Case, blanks, accents and mistakes of printed text stay."""
    content = "  CAFÉ  №5 opne\u00a0daily!"
    found = metadata("red")
    found["detailed_appearance"]["text_and_markings"] = [
        {"content": content, "type": "sign", "placement": None, "is_partially_obscured": None}
    ]
    [row] = told(found).rows
    assert row.metadata["detailed_appearance"]["text_and_markings"][0]["content"] == content


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("identity_and_taxonomy", "segment_nature"), "object", "segment_nature"),
        (("detailed_appearance", "key_identifying_feature"), " ", "is blank"),
        (("spatial_and_localization", "global_position"), None, "global_position"),
        (("detailed_appearance", "sub_components_or_elements"),
         [{"element_name": "w", "description": "", "quantity": "two"}], "quantity"),
        (("global_scene_context",), None, "global_scene_context"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_in_the_next_ask(
    path: tuple[str, ...], value: Any, complaint: str
) -> None:
    """The error names the field, and the next ask ends with it."""
    found = metadata("red")
    inner = found
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(UnreadableError, match=complaint):
        metadata_in(Reply(json.dumps(found)))
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        return Reply(json.dumps(found if len(asked) == 1 else metadata("red")))

    flow = describe(REGION, PICTURE, role="d", options=DescribeOptions())
    made = run_by_hand(flow, answer)
    assert len(made.rows) == 1
    assert complaint in str(asked[1].messages[-1].parts[-1])
    assert made.counts == {"asked_again": 1}


@pytest.mark.parametrize(
    ("form", "box"),
    [
        ("thousandths xyxy", (100, 200, 300, 400)),
        ("fraction xyxy", (0.1, 0.2, 0.3, 0.4)),
        ("pixels xyxy 588x1036", (59, 207, 176, 414)),
        ("thousandths", (200, 100, 400, 300)),
        ("pixels yxyx", (384, 108, 768, 324)),
    ],
)
def test_each_form_of_a_box_gives_the_same_place(form: str, box: tuple[float, ...]) -> None:
    """In a picture of 1080 x 1920 all of them are about x 108 to 324, y 384 to 768."""
    stated = box_form(form)
    assert stated is not None
    ymin, xmin, ymax, xmax = in_thousandths(box, stated, (1080, 1920))
    assert (xmin * 1.08, xmax * 1.08) == pytest.approx((108, 324), abs=1.5)
    assert (ymin * 1.92, ymax * 1.92) == pytest.approx((384, 768), abs=1.5)
    assert place(box, REGION.bbox, (1080, 1920), options=DescribeOptions(boxes=form)).flags == ()


@pytest.mark.parametrize(
    ("box", "form"),
    [
        ((200, 100, 400, 300), "thousandths yxyx"),
        ((0.2, 0.1, 0.4, 0.3), "fraction yxyx"),
        ((384, 108, 768, 324), "pixels yxyx"),
        ((108, 384, 324, 768), "pixels xyxy"),
    ],
)
def test_without_a_stated_form_the_one_that_fits_the_mask_is_taken(
    box: tuple[float, ...], form: str
) -> None:
    """The unit and the order are found by comparison with the mask's box."""
    placed = place(box, REGION.bbox, (1080, 1920), options=DescribeOptions())
    assert (placed.form, placed.flags) == (form, ())
    assert placed.overlap == pytest.approx(1.0, abs=0.02)


def test_a_box_out_of_range_is_flagged_and_not_clipped() -> None:
    """A value above 1000 stays, with a flag; so does a box that lies elsewhere."""
    stated = DescribeOptions(boxes="thousandths")
    placed = place((200, 100, 1400, 300), REGION.bbox, (1080, 1920), options=stated)
    assert placed.box == (200, 100, 1400, 300)
    assert "box_out_of_range" in placed.flags
    away = place((600, 600, 700, 700), REGION.bbox, (1080, 1920), options=stated)
    assert away.flags == ("box_off_mask",)


def test_an_unknown_form_is_an_error() -> None:
    """The error says what forms there are."""
    assert box_form("auto") is None
    assert box_form("pixels 10x20") == BoxForm("pixels", "yxyx", (10, 20))
    with pytest.raises(SettingsError, match="boxes is 'inches'"):
        box_form("inches")


def test_overlap_is_intersection_over_union() -> None:
    """Equal boxes share all, distant ones nothing."""
    assert overlap((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert overlap((0, 0, 1, 1), (2, 2, 3, 3)) == 0.0
