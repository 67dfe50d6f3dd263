"""The options of the CapProbe pipeline: the sections of `build.toml`, with their defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class SelectOptions(Struct, frozen=True):
    """`[select]`: which pictures are taken.

    `min_sharpness` is the least variance of the Laplacian of the grey picture (0 to 255) with its
    longer side at 512 pixels. `darkest` and `brightest` bound its mean grey, 0 to 1. `labels` says
    where labels come from: `match` asks the matcher, `folder` takes the names of the two folders
    above a picture, `none` takes none. `taxonomy` is a JSON file of domains and their sub-domains.
    `max_distance` is the number of differing bits, of 64, up to which two pictures are alike; -1
    switches the comparison off. `per_l1` is how many pictures a domain may have, 0 for no cap.
    `manual` stops for people after this stage.
    """

    min_pixels: Count = 65536
    min_sharpness: float = 15.0
    darkest: Share = 0.04
    brightest: Share = 0.96
    min_tag_confidence: Share = 0.5
    min_confidence: Share = 0.8
    labels: Literal["match", "folder", "none"] = "match"
    taxonomy: str = ""
    max_distance: Annotated[int, Meta(ge=-1, le=64)] = 5
    per_l1: Count = 0
    thin: Positive = 3
    manual: bool = False


class SegmentOptions(Struct, frozen=True):
    """`[segment]`: where regions come from, and which are kept.

    Shares are of the picture's area. A region that overlaps a better one by more than
    `max_overlap` of the smaller area is dropped. `annotations` is the file or folder of masks that
    exist. `things` and `stuff` are weights or hub ids of the segmentation classes, `concepts` what
    the second is asked to find.
    """

    source: Literal[
        "superpixels", "text", "boxes", "yolo+sam3", "coco", "lvis", "panoptic", "label_studio"
    ] = "superpixels"
    max_regions: Positive = 12
    min_area: Share = 0.002
    max_area: Share = 1.0
    max_overlap: Share = 0.8
    annotations: str = ""
    things: str = "yolo26n-seg.pt"
    stuff: str = "facebook/sam3"
    concepts: tuple[str, ...] = (
        "sky",
        "ground",
        "wall",
        "floor",
        "vegetation",
        "water",
        "building",
    )
    min_score: Share = 0.25
    batch: Positive = 8
    device: str = ""


class DescribeOptions(Struct, frozen=True):
    """`[describe]`: how a describer writes boxes, and when its box counts as off the mask.

    `boxes` is `auto`, or a unit (`thousandths`, `fraction`, `pixels`) with an optional order
    (`yxyx`, `xyxy`) and the size of the picture that the model saw, such as `pixels xyxy 588x1036`.
    """

    boxes: str = "auto"
    min_box_overlap: Share = 0.3
    reasks: Count = 2


class QuestionOptions(Struct, frozen=True):
    """`[question]`: who writes for which region. `wanted` is the least number to ask for."""

    regions: Literal["both", "split"] = "both"
    wanted: Positive = 15
    reasks: Count = 2


class DedupOptions(Struct, frozen=True, rename={"across": "global", "within": "local"}):
    """`[dedup]`: the cosine above which two questions are duplicates.

    `across` (written `global`) holds within a picture, `within` (written `local`) within a region.
    `guard` keeps questions apart that differ in a direction, number, colour or negation;
    `kept_only` compares with questions that were kept, and not with removed ones.
    """

    across: Share = 0.90
    within: Share = 0.85
    guard: bool = True
    kept_only: bool = False
    embeddings: str = "embedded"


class VerifyOptions(Struct, frozen=True):
    """`[verify]`: checks by models before people look.

    A question whose right option is found in `blind_hits` of `blind_draws` draws without the
    picture is answerable blind; where a model that sees the picture chooses another option, they
    disagree.
    """

    enabled: bool = False
    blind: Literal["off", "flag", "drop"] = "drop"
    blind_draws: Positive = 10
    blind_hits: Positive = 7
    agreement: Literal["off", "flag", "drop"] = "flag"


class BalanceOptions(Struct, frozen=True):
    """`[balance]`: how many pictures a sub-domain may have; 0 for no cap."""

    per_subdomain: Count = 5


class ReviewOptions(Struct, frozen=True):
    """`[review]`: who reviews, and what is reviewed twice.

    `adjudicate_accepts` is the share of accepted questions that the adjudicator sees beside all
    edits. `overlap` is the share of questions that two annotators see, so that their agreement can
    be measured. `only_flagged` queues the questions that a check has flagged. `reviewed_only`
    leaves undecided questions out of the export.
    """

    annotators: tuple[str, ...] = ("annotator",)
    adjudicator: str = "adjudicator"
    adjudicate_accepts: Share = 0.05
    overlap: Share = 0.0
    only_flagged: bool = False
    reviewed_only: bool = False


class ExportOptions(Struct, frozen=True):
    """`[export]`: what the card of the benchmark says, and whether a Parquet folder is written."""

    name: str = ""
    version: str = "1"
    license: str = ""
    attribution: str = ""
    parquet: bool = False
