"""Folders laid out as Open Images and Places365 are."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from snellen.errors import DataError
from snellen.sources.candidates import SUFFIXES, Candidate


def open_images(folder: Path) -> Iterator[Candidate]:
    """The pictures below a folder with the confidence of their labels.

    The tables are `*imagelabels*.csv` with the columns ImageID, LabelName and Confidence; a
    picture's file is its id with a suffix. `class-descriptions*.csv` gives labels their names.

    Source: Open Images V7, the format of its image-level labels.
    """
    names: dict[str, str] = {}
    for table in sorted(folder.glob("*class-descriptions*.csv")):
        with table.open(encoding="utf-8-sig", newline="") as file:
            names.update((row[0], row[1]) for row in csv.reader(file) if len(row) == 2)
    tags: dict[str, dict[str, float]] = {}
    for table in sorted(folder.glob("*imagelabels*.csv")):
        with table.open(encoding="utf-8-sig", newline="") as file:
            for number, entry in enumerate(csv.DictReader(file), 2):
                try:
                    name = names.get(entry["LabelName"], entry["LabelName"])
                    tags.setdefault(entry["ImageID"], {})[name] = float(entry["Confidence"])
                except (KeyError, TypeError, ValueError) as error:
                    raise DataError(
                        "expected the columns ImageID, LabelName and Confidence (a number)",
                        file=table, row=number,
                    ) from error  # fmt: skip
    for path in _pictures(folder):
        yield Candidate(str(path.relative_to(folder)), path, tags=tags.get(path.stem, {}))


def places365(folder: Path) -> Iterator[Candidate]:
    """The pictures below a folder; the tag is the category that a list gives, or the folder's name.

    Lists are `places365*.txt` with a file and a category number a line; the names of categories
    are in `categories_places365.txt`.

    Source: Places365-Standard, its file lists.
    """
    names = {number: name for name, number in _numbered(folder / "categories_places365.txt")}
    listed: dict[str, str] = {}
    for table in sorted(folder.glob("places365*.txt")):
        for name, number in _numbered(table):
            listed[name.lstrip("/")] = names.get(number, number).strip("/")
    for path in _pictures(folder):
        place = path.relative_to(folder).as_posix()
        near = [place[k:] for k in range(len(place)) if k == 0 or place[k - 1] == "/"]
        category = next((listed[one] for one in near if one in listed), path.parent.name)
        yield Candidate(place, path, tags={category: 1.0}, labels=("", category))


def _numbered(path: Path) -> Iterator[tuple[str, str]]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, _, value = line.strip().rpartition(" ")
        if not name:
            if line.strip():
                raise DataError("expected a name and a number", file=path, row=number)
            continue
        yield name, value


def _pictures(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            yield path
