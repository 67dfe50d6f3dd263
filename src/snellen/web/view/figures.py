"""The figures of runs that stand side by side, drawn once and kept as files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from snellen.errors import SnellenError
from snellen.keys import digest
from snellen.records import NO_USAGE, Item, Region
from snellen.runs.folder import Run, load_run


class Figure(msgspec.Struct, frozen=True):
    """A figure of a page; `name` is that of its file, width and height are in CSS pixels."""

    name: str
    title: str
    caption: str
    width: int
    height: int
    is_wide: bool
    is_thin: bool


MANIFEST = "figures.json"


def draw(title: str, folders: Sequence[Path], out: Path, sources: Sequence[str]) -> None:
    """Draw all figures of runs of one section into a new folder."""
    # Imported here: the server itself draws nothing.
    from snellen.figures.style import page_svg, same_looks
    from snellen.report.page import WIDE_INCHES, bundled_regions, regions_of
    from snellen.report.sections import sections_of

    runs = _loaded(folders)
    regions: dict[str, Region] = bundled_regions(runs)
    for source in sources:
        with suppress(SnellenError):
            regions |= regions_of(source)
    found = []
    part = out.with_name(out.name + ".part")
    part.mkdir(parents=True, exist_ok=True)
    section = sections_of(runs, regions=regions)[0]
    with same_looks([run.name for run in section.runs]):
        for chart in section.charts:
            width, height = chart.figure.get_size_inches()
            name = f"{chart.name}.svg"
            (part / name).write_bytes(page_svg(chart.figure))
            found.append(
                Figure(
                    name, chart.title, chart.caption, round(96 * width), round(96 * height),
                    bool(width > WIDE_INCHES), chart.is_thin,
                )
            )  # fmt: skip
    (part / MANIFEST).write_bytes(msgspec.json.encode({"title": title, "figures": found}))
    part.replace(out)


def _loaded(folders: Sequence[Path]) -> list[Run]:
    """The runs, made light: those that asked the same share their items and their ids.

    Judge's words and tokens, which no figure shows, are left out.
    """
    shared: dict[str, tuple[Item, ...]] = {}
    names: dict[str, str] = {}
    runs = []
    for folder in folders:
        run = load_run(folder)
        state = digest(msgspec.json.encode(run.spec.items, order="sorted"))
        items = shared.setdefault(state, run.items)
        verdicts = {}
        for (item_id, repeat, probe_id), verdict in run.verdicts.items():
            key = (names.setdefault(item_id, item_id), repeat, names.setdefault(probe_id, probe_id))
            verdicts[key] = replace(verdict, id=key[0], probe_id=key[2], raw="", usage=NO_USAGE)
        runs.append(replace(run, items=items, verdicts=verdicts))
    return runs


def figures_in(folder: Path) -> list[Figure]:
    """The figures that were drawn into a folder."""
    found = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=dict[str, object])
    return msgspec.convert(found["figures"], list[Figure])
