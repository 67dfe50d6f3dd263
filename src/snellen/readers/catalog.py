"""The benchmarks that have a name: where they come from and under which terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.records import ProtocolName


@dataclass(frozen=True, slots=True)
class Known:
    """A named benchmark.

    `folder` is a folder of the package, for bundled ones; `repository` the public data set with
    its default `split` and all `splits`, and `pictures` the columns that hold pictures; `stem` is
    the name of its file. `items` is the number of items of the release, None where unknown.
    """

    name: str
    protocol: ProtocolName
    title: str
    license: str = ""
    source: str = ""
    items: int | None = None
    folder: str = ""
    repository: str = ""
    split: str = ""
    splits: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    stem: str = ""

    @property
    def path(self) -> Path | None:
        """The folder of a bundled benchmark on this machine, else None."""
        return DATA / self.folder if self.folder else None


DATA = Path(__file__).resolve().parent.parent / "data"

_MINI = "15 photographs and drawn pictures, for trying things out offline"

KNOWN: Mapping[str, Known] = {
    one.name: one
    for one in (
        Known("mini-reading", "reading", _MINI, "Apache-2.0", "snellen", 15, "mini/reading"),
        Known("mini-rubric", "rubric", _MINI, "Apache-2.0", "snellen", 15, "mini/rubric"),
        Known("mini-direct", "direct", _MINI, "Apache-2.0", "snellen", 55, "mini/direct"),
        Known(
            "capprobe",
            "reading",
            "CapProbe: 25,650 questions about the regions of 346 images",
            source="arXiv 2608.11074",
            items=346,
        ),
        Known(
            "perception_bench",
            "direct",
            "PerceptionBench: 3,000 questions on ten atomic abilities of perception",
            "cc-by-nc-4.0 (non-commercial)",
            "arXiv 2607.24957",
            3000,
            repository="moonshotai/PerceptionBench",
            split="train",
            splits=("train",),
            pictures=("image",),
            stem="PerceptionBench",
        ),
        Known(
            "perception_rubrics",
            "rubric",
            "PerceptionRubrics: 10,718 gated rubrics for captions of 1,038 images",
            "Apache-2.0",
            "PerceptionRubrics, version 2",
            1038,
            repository="M1chaelPeng/PerceptionRubrics",
            split="test",
            splits=("test",),
            pictures=("image",),
            stem="test",
        ),
        Known(
            "captionqa",
            "reading",
            "CaptionQA: multiple-choice questions about captions, four domains",
            source="CaptionQA",
            repository="Borise/CaptionQA",
            split="all",
            splits=("all", "natural", "document", "ecommerce", "embodiedai"),
            pictures=("images", "image"),
            stem="all",
        ),
    )
}


def known() -> tuple[Known, ...]:
    """The named benchmarks, bundled ones first.

    >>> [one.name for one in known()][:2]
    ['mini-reading', 'mini-rubric']
    """
    return tuple(KNOWN.values())


def taxonomy() -> Mapping[str, tuple[str, ...]]:
    """The 37 domains of CapProbe, each with its sub-domains (219 in all).

    >>> len(taxonomy()), sum(len(ones) for ones in taxonomy().values())
    (37, 219)

    Source: CapProbe, appendix C, table 5.
    """
    path = DATA / "capprobe_taxonomy.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[str, ...]])
