"""Describing regions: the metadata schema, the describer's flow, and the form of its boxes.

Source: CapProbe, section 3.3 and figure 6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from snellen.builders.options import DescribeOptions
from snellen.builders.rows import DescribedRow, PictureRow, RegionRow
from snellen.builders.steps import Made, asked_again, undone
from snellen.errors import SettingsError
from snellen.flows import Flow, ask_until
from snellen.records import Message, Reply, Request
from snellen.replies import UnreadableError, json_reply
from snellen.templates import bundled

PROMPT = "build_describe"
Box = tuple[float, float, float, float]
Number = int | float | None


class Visibility(Struct, frozen=True):
    """What hides a region, and how much of it can be seen."""

    is_occluded: bool
    occluded_by: str | None
    visible_range: str | None
    out_of_frame_parts: str | list[str] | UnsetType | None = UNSET


class Spatial(Struct, frozen=True):
    """Where a region is; further details are optional."""

    bounding_box: tuple[float, float, float, float] | None
    global_position: str
    spatial_layer: str | None
    visibility_state: Visibility
    view_angle: str | UnsetType | None = UNSET
    orientation: str | UnsetType | None = UNSET
    physical_scale: str | UnsetType | None = UNSET


class Identity(Struct, frozen=True):
    """What a region is."""

    segment_nature: Literal["thing", "stuff"]
    broad_category: str
    specific_type: str
    primary_function_or_role: str | None


class Component(Struct, frozen=True):
    """A part of a region; quantity and visibility are numbers, the latter 0 to 1."""

    element_name: str
    description: str | None
    quantity: Number
    visibility: Number | UnsetType = UNSET


class Marking(Struct, frozen=True):
    """A printed text, kept letter by letter."""

    content: str
    type: str | None
    placement: str | None
    is_partially_obscured: bool | None


class Appearance(Struct, frozen=True):
    """What a region looks like."""

    key_identifying_feature: str
    overall_color_palette: list[str] | None
    materials_and_textures: list[str] | None
    sub_components_or_elements: list[Component] | None
    text_and_markings: list[Marking] | None
    surface_texture: str | UnsetType | None = UNSET
    specific_details: str | list[str] | UnsetType | None = UNSET


class Target(Struct, frozen=True):
    """Something that a region interacts with."""

    target_name: str
    count: Number = None
    interaction_type: str | None = None
    detail: str | None = None


class Dynamics(Struct, frozen=True):
    """What happens in a region."""

    motion_or_physical_state: str | None
    interaction_details: str | None
    interaction_targets: list[Target] | UnsetType | None = UNSET
    current_action: str | UnsetType | None = UNSET
    condition: str | UnsetType | None = UNSET


class Composition(Struct, frozen=True):
    """What a region is made of; optional as a whole."""

    materials: list[str] | None = None
    structural_integrity: str | None = None


class SceneContext(Struct, frozen=True):
    """The scene around a region."""

    lighting_and_weather: str | None
    time_of_day: str | None
    overall_atmosphere: str | None


class Metadata(Struct, frozen=True):
    """The five modules of figure 6, with the further details of section 3.3 where they are given.

    Fields that do not apply are null or empty.
    """

    spatial_and_localization: Spatial
    identity_and_taxonomy: Identity
    detailed_appearance: Appearance
    dynamics_and_interactions: Dynamics
    global_scene_context: SceneContext
    physical_composition: Composition | UnsetType | None = UNSET


_parse = json_reply(Metadata)


def metadata_in(reply: Reply) -> Metadata:
    """The metadata that a describer's reply holds.

    Raises:
        UnreadableError: it is no JSON, or a field is missing or of another type, which is named.
    """
    found = _parse(reply)
    if not found.detailed_appearance.key_identifying_feature.strip():
        raise UnreadableError("blank_feature", "`key_identifying_feature` is blank")
    return found


def describe(
    region: RegionRow, picture: PictureRow, *, role: str, options: DescribeOptions
) -> Flow[Made]:
    """One call a region: the picture and the view of the region, into typed metadata."""
    parts = (picture.file.image(picture.name), region.view.image(region.id))
    request = Request(role, (Message("user", (*parts, bundled(PROMPT).text)),), "describe")
    asked = yield from ask_until(request, metadata_in, reasks=options.reasks)
    if asked.value is None:
        return undone(asked, region.id, made_from=(region.id,))
    found: Metadata = asked.value
    placed = place(
        found.spatial_and_localization.bounding_box,
        region.bbox,
        (picture.width, picture.height),
        options=options,
    )
    metadata = msgspec.to_builtins(found)
    metadata["spatial_and_localization"]["bounding_box"] = list(region.bbox)
    row = DescribedRow(
        id=region.id,
        made_from=(region.id,),
        image_id=region.image_id,
        nature=found.identity_and_taxonomy.segment_nature,
        metadata=metadata,
        nature_guess=region.nature_guess,
        box=placed.box,
        box_form=placed.form,
        box_overlap=placed.overlap,
        flags=placed.flags,
    )
    return Made((row,), counts=asked_again(asked))


@dataclass(frozen=True, slots=True)
class BoxForm:
    """How a model writes boxes: the unit, the order of the edges, and the picture that it saw."""

    unit: Literal["thousandths", "fraction", "pixels"] = "thousandths"
    order: Literal["yxyx", "xyxy"] = "yxyx"
    size: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The form as it stands in options and rows."""
        size = "" if self.size is None else f" {self.size[0]}x{self.size[1]}"
        return f"{self.unit} {self.order}{size}"


FORMS = tuple(BoxForm(unit, order) for unit in ("thousandths", "fraction", "pixels")
              for order in ("yxyx", "xyxy"))  # fmt: skip
_SIZE = re.compile(r"(\d+)x(\d+)")


def box_form(text: str) -> BoxForm | None:
    """A form from its name; None for `auto`.

    >>> box_form("pixels xyxy 588x1036")
    BoxForm(unit='pixels', order='xyxy', size=(588, 1036))

    Raises:
        SettingsError: the name is none.
    """
    if text == "auto":
        return None
    words = text.split()
    sizes = [_SIZE.fullmatch(word) for word in words]
    size = next(((int(m[1]), int(m[2])) for m in sizes if m), None)
    rest = [word for word, m in zip(words, sizes, strict=True) if not m]
    for form in FORMS:
        if rest in ([form.unit, form.order], [form.unit]):
            return BoxForm(form.unit, form.order, size)
    raise SettingsError(
        f"[describe]: boxes is {text!r}",
        hint="write auto, or a unit (thousandths, fraction, pixels), then yxyx or xyxy",
    )


def in_thousandths(box: Sequence[float], form: BoxForm, size: tuple[int, int]) -> Box:
    """A box of any form as (ymin, xmin, ymax, xmax) in thousandths; never clipped.

    `size` is (width, height) of the upright picture, in pixels.

    >>> in_thousandths((59, 207, 176, 414), box_form("pixels xyxy 588x1036"), (1080, 1920))
    (199.8, 100.3, 399.6, 299.3)
    """
    a, b, c, d = box
    ymin, xmin, ymax, xmax = (a, b, c, d) if form.order == "yxyx" else (b, a, d, c)
    width, height = form.size or size
    down, right = {
        "thousandths": (1.0, 1.0),
        "fraction": (1000.0, 1000.0),
        "pixels": (1000.0 / height, 1000.0 / width),
    }[form.unit]
    edges = (ymin * down, xmin * right, ymax * down, xmax * right)
    first, second, third, fourth = (round(edge, 1) for edge in edges)
    return first, second, third, fourth


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes (ymin, xmin, ymax, xmax).

    >>> overlap((0, 0, 2, 2), (1, 0, 3, 2))
    0.3333333333333333
    """
    high = min(a[2], b[2]) - max(a[0], b[0])
    wide = min(a[3], b[3]) - max(a[1], b[1])
    if high <= 0 or wide <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return high * wide / (sum(areas) - high * wide)


@dataclass(frozen=True, slots=True)
class Placed:
    """A describer's box in thousandths, its form, its overlap with the mask's box, and doubts."""

    box: Box | None = None
    form: str = ""
    overlap: float | None = None
    flags: tuple[str, ...] = ()


def place(
    box: Sequence[float] | None, mask_box: Box, size: tuple[int, int], *, options: DescribeOptions
) -> Placed:
    """Reads a describer's box and compares it with the box of the mask.

    Without a stated form, the form under which it fits the mask best is taken, the figure's own
    form first. A value out of range is flagged, not clipped.
    """
    if box is None:
        return Placed(flags=("no_box",))
    stated = box_form(options.boxes)
    forms = FORMS if stated is None else (stated,)
    tried = [(form, in_thousandths(box, form, size)) for form in forms]
    form, read = max(tried, key=lambda pair: overlap(pair[1], mask_box))
    share = overlap(read, mask_box)
    if not share and stated is None:
        form, read = tried[0]
    flags = []
    if not all(0 <= edge <= 1000 for edge in read) or read[0] >= read[2] or read[1] >= read[3]:
        flags.append("box_out_of_range")
    if share < options.min_box_overlap:
        flags.append("box_off_mask")
    return Placed(read, form.name, round(share, 4), tuple(flags))


def plain_text(metadata: object) -> str:
    """Metadata as a prompt shows it."""
    return msgspec.json.format(msgspec.json.encode(metadata), indent=1).decode()
