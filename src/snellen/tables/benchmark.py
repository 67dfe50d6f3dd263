"""The tables of `snellen data info`: counts, lengths and pictures of a benchmark."""

from __future__ import annotations

from snellen.readers.statistics import BenchmarkInfo, PictureInfo, Spread
from snellen.tables.table import Table


def info_tables(found: BenchmarkInfo) -> list[Table]:
    """A benchmark's statistics: totals, then counts and lengths by label, then pictures."""
    totals = [
        ("items", str(found.items)),
        ("probes", str(found.probes)),
        ("clusters for resampling", str(found.clusters)),
        ("regions", str(found.regions)),
        ("items with a hint", str(found.hints)),
        ("items with several pictures", str(found.multi_image_items)),
        ("probes an item", _spread(found.probes_per_item)),
        ("prompt length, characters", _spread(found.prompt_chars)),
        ("answer length, characters", _spread(found.answer_chars)),
        ("golden caption, words", _spread(found.reference_words)),
        ("bad rows left out", str(found.skipped)),
    ]
    kept = tuple(row for row in totals if row[1] not in {"-", "0"})
    tables = [Table("Totals", ("What", "Value"), kept)]
    tables += [_groups_table(found, name) for name in (*found.groups, *found.probe_groups)]
    return [*tables, _pictures_table(found)]


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"mean {spread.mean:.2f}, {spread.min:g} to {spread.max:g}"


def _groups_table(found: BenchmarkInfo, name: str) -> Table:
    counts = found.groups.get(name) or found.probe_groups[name]
    rows = tuple(
        (
            label,
            str(n),
            _spread(found.prompt_chars_by.get(label)),
            _spread(found.answer_chars_by.get(label)),
            *_picture_cells(found.pictures_by.get(label)),
        )
        for label, n in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    what = "items" if name in found.groups else "probes"
    measured = ("pictures", "sizes") if len(rows[0]) > 4 else ()
    columns = (name, what, "prompt characters", "answer characters", *measured)
    if all(row[2] == "-" for row in rows):
        return Table(f"By {name}", columns[:2], tuple(row[:2] for row in rows))
    return Table(f"By {name}", columns, rows)


def _picture_cells(pictures: PictureInfo | None) -> tuple[str, ...]:
    if pictures is None:
        return ()
    return str(pictures.uses), f"{_size(pictures.smallest)} to {_size(pictures.largest)}"


def _size(size: tuple[int, int] | None) -> str:
    return f"{size[0]}x{size[1]}" if size else "-"


def _pictures_table(found: BenchmarkInfo) -> Table:
    pictures = found.pictures
    rows = [
        ("pictures, as used", str(pictures.uses)),
        ("pictures, distinct", str(pictures.distinct)),
        ("pictures an item", _spread(pictures.per_item)),
        ("formats", ", ".join(f"{k} {n}" for k, n in sorted(pictures.formats.items()))),
        ("smallest", _size(pictures.smallest)),
        ("largest", _size(pictures.largest)),
        ("of unknown size", str(pictures.size_unknown)),
        ("unreadable", str(pictures.unreadable)),
    ]
    kept = tuple(row for row in rows if row[1] not in {"-", "0"})
    return Table("Pictures", ("What", "Value"), kept)
