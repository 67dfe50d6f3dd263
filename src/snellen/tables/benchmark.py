"""The tables of `snellen data info`: counts, lengths and pictures of a benchmark."""

from __future__ import annotations

from snellen.readers.statistics import BenchmarkInfo, PictureInfo, Spread
from snellen.tables.table import Cell, Column, Format, Number, Table, plain

MEAN = Format(digits=2)
SPREAD_NOTE = "a mean, in brackets the smallest and the largest"


def info_tables(found: BenchmarkInfo) -> list[Table]:
    """A benchmark's statistics: totals, then counts and lengths by label, then pictures."""
    totals: list[tuple[Cell, ...]] = [
        ("items", found.items),
        ("probes", found.probes),
        ("clusters for resampling", found.clusters),
        ("regions", found.regions),
        ("items with a hint", found.hints),
        ("items with several pictures", found.multi_image_items),
        ("probes an item", _spread(found.probes_per_item)),
        *(
            (f"{kind.replace('_', '-')} statements an item", _spread(one))
            for kind, one in found.probes_per_item_by_kind.items()
        ),
        ("probes a region", _spread(found.probes_per_region)),
        ("regions an image", _spread(found.regions_per_item)),
        ("prompt length, characters", _spread(found.prompt_chars)),
        ("answer length, characters", _spread(found.answer_chars)),
        ("golden caption, words", _spread(found.reference_words)),
        ("bad rows left out", found.skipped),
    ]
    return [
        _facts("Totals", totals),
        *(_groups_table(found, name) for name in (*found.groups, *found.probe_groups)),
        _pictures_table(found.pictures),
    ]


def _facts(title: str, rows: list[tuple[Cell, ...]]) -> Table:
    """A table of facts without those that are unknown or zero."""
    kept = tuple(row for row in rows if row[1])
    spread = any(isinstance(row[1], Number) for row in kept)
    columns = (Column("Fact"), Column("Value", MEAN))
    return Table(title, columns, kept, (SPREAD_NOTE,) if spread else ())


def _spread(spread: Spread | None) -> Number | None:
    if spread is None:
        return None
    return Number(spread.mean, bounds=(spread.min, spread.max))


def _groups_table(found: BenchmarkInfo, name: str) -> Table:
    counts = found.groups.get(name) or found.probe_groups[name]
    rows = []
    for label, n in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        lengths = (found.prompt_chars_by.get(label), found.answer_chars_by.get(label))
        row: tuple[Cell, ...] = (label, n, *map(_spread, lengths))
        pictures = found.pictures_by.get(label)
        if pictures is not None:
            sizes = f"{_size(pictures.smallest)} to {_size(pictures.largest)}"
            row = (*row, pictures.uses, sizes)
        rows.append(row)
    columns = (
        *plain(name, "items" if name in found.groups else "probes"),
        *(Column(title, MEAN) for title in ("prompt characters", "answer characters")),
        *plain("pictures", "sizes"),
    )
    shown = 2 if all(row[2] is None for row in rows) else len(rows[0])
    notes = (SPREAD_NOTE,) if shown > 2 else ()
    return Table(f"By {name}", columns[:shown], tuple(row[:shown] for row in rows), notes)


def _size(size: tuple[int, int] | None) -> str | None:
    return f"{size[0]}x{size[1]}" if size else None


def _pictures_table(pictures: PictureInfo) -> Table:
    formats = ", ".join(f"{kind} {n}" for kind, n in sorted(pictures.formats.items()))
    return _facts(
        "Pictures",
        [
            ("pictures, as used", pictures.uses),
            ("pictures, distinct", pictures.distinct),
            ("pictures an item", _spread(pictures.per_item)),
            ("formats", formats),
            ("smallest", _size(pictures.smallest)),
            ("largest", _size(pictures.largest)),
            ("of unknown size", pictures.size_unknown),
            ("unreadable", pictures.unreadable),
        ],
    )
