"""The benchmarks that have a name: the function that reads each, its data and its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from snellen.errors import UsageError
from snellen.readers.capprobe import DATA, read_reading
from snellen.readers.captionqa import read_captionqa
from snellen.readers.perception_bench import read_direct
from snellen.readers.perception_rubrics import read_rubrics
from snellen.readers.policy import RowPolicy
from snellen.records import Item, ProtocolName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "snellen.readers"
"""The group of entry points in which other packages name their readers."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A named benchmark: `read` gives its items, in order, from the rows of its files.

    Without a digest and a cluster, items get them. `folder` holds the data of a benchmark that
    brings them along; `repository` is the public data set, with its default `split` and all
    `splits`. `file` is the name of the published file, and `fields` are those by which its rows are
    known; `is_folder` says that several files make the benchmark. `needs_all_rows` says that a part
    of the data set cannot be read alone. `items` is the number of items of the release, None where
    unknown.
    """

    name: str
    protocol: ProtocolName
    title: str
    read: Callable[[RowPolicy], Iterable[Item]]
    license: str = ""
    source: str = ""
    items: int | None = None
    folder: str | Path = ""
    repository: str = ""
    split: str = ""
    splits: tuple[str, ...] = ()
    file: str = ""
    fields: tuple[str, ...] = ()
    is_folder: bool = False
    needs_all_rows: bool = False


def _mini(protocol: ProtocolName, read: Callable[[RowPolicy], Iterable[Item]]) -> Reader:
    title = "15 photographs and drawn pictures, for trying things out offline"
    return Reader(
        f"mini-{protocol}",
        protocol,
        title,
        read,
        license="Apache-2.0",
        source="snellen",
        items=55 if protocol == "direct" else 15,
        folder=DATA / "mini" / protocol,
    )


KNOWN: Mapping[str, Reader] = {
    one.name: one
    for one in (
        _mini("reading", read_reading),
        _mini("rubric", read_rubrics),
        _mini("direct", read_direct),
        Reader(
            "capprobe",
            "reading",
            "CapProbe: 25,650 questions about the regions of 346 images",
            read_reading,
            source="arXiv 2608.11074",
            items=346,
            is_folder=True,
        ),
        Reader(
            "perception_bench",
            "direct",
            "PerceptionBench: 3,000 questions on ten atomic abilities of perception",
            read_direct,
            "cc-by-nc-4.0 (non-commercial)",
            "arXiv 2607.24957",
            3000,
            repository="moonshotai/PerceptionBench",
            split="train",
            splits=("train",),
            file="PerceptionBench",
            fields=("problem",),
        ),
        Reader(
            "perception_rubrics",
            "rubric",
            "PerceptionRubrics: 10,718 gated rubrics for captions of 1,038 images",
            read_rubrics,
            "Apache-2.0",
            "PerceptionRubrics, version 2",
            1038,
            repository="M1chaelPeng/PerceptionRubrics",
            split="test",
            splits=("test",),
            file="test",
            fields=("must_right", "easy_wrong"),
        ),
        Reader(
            "captionqa",
            "reading",
            "CaptionQA: multiple-choice questions about captions, four domains",
            read_captionqa,
            source="CaptionQA",
            repository="Borise/CaptionQA",
            split="all",
            splits=("all", "natural", "document", "ecommerce", "embodiedai"),
            file="all",
            fields=("questions", "choices"),
            needs_all_rows=True,
        ),
    )
}


READERS: Mapping[ProtocolName, Callable[[RowPolicy], Iterable[Item]]] = {
    "reading": read_reading,
    "rubric": read_rubrics,
    "direct": read_direct,
}
"""What reads a folder of each protocol."""


def known() -> tuple[Reader, ...]:
    """The named benchmarks: bundled ones first, those of other packages last.

    >>> [one.name for one in known()][:2]
    ['mini-reading', 'mini-rubric']
    """
    return (*KNOWN.values(), *(reader_of(name) for name in _others()))  # type: ignore[arg-type]


def reader_of(name: str) -> Reader | None:
    """The reader of a named benchmark, of this package or another; None for other names.

    Raises: UsageError when another package names something that is no reader.
    """
    if name in KNOWN:
        return KNOWN[name]
    entry = _others().get(name)
    if entry is None:
        return None
    try:
        reader = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the reader of {name} cannot be loaded: {error}",
            hint=f"the package that names it says {entry.value}",
        ) from error
    if not isinstance(reader, Reader):
        raise UsageError(
            f"{entry.value} is of type {type(reader).__name__}, expected snellen.readers.Reader",
            hint=f"mend the entry point `{name}` of the package that names it",
        )
    return replace(reader, name=name)


def _others() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group=ENTRY_POINTS) if one.name not in KNOWN}
