"""Finds the pictures of a source: a folder, annotations, a table, a data set, or a list of URLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snellen.errors import DataError
from snellen.sources.candidates import SUFFIXES, Candidate
from snellen.sources.layouts import open_images, places365
from snellen.sources.listed import annotated, is_annotations
from snellen.sources.remote import columns_of, listed_urls

HUB = "hub:"


def scan(source: str, *, keep_in: Path) -> Iterator[Candidate]:
    """The pictures of a source in a stable order; what is not on disk is kept in a folder.

    - a folder: every picture below it; as Open Images where it holds `*imagelabels*.csv` files, as
      Places365 where it holds `places365*.txt` lists;
    - `FILE.json`: annotations of COCO or LVIS, pictures beside it or in a folder near it;
    - `FILE.parquet`, or `hub:OWNER/NAME[:SPLIT]`: the first column of pictures;
    - `FILE.txt`: one path, URL or object-store address a line, opened through fsspec.

    Raises:
        DataError: there is no such source, or it is of another kind.
    """
    if source.startswith(HUB) or source.endswith(".parquet"):
        yield from columns_of(source.removeprefix(HUB), keep_in=keep_in)
        return
    path = Path(source)
    if not path.exists():
        raise DataError(
            "there is no such file or folder",
            file=source,
            hint="give a folder of pictures, annotations (.json), a .parquet file, a list (.txt), "
            "or hub:OWNER/NAME",
        )
    if path.is_dir() and any(path.glob("*imagelabels*.csv")):
        yield from open_images(path)
    elif path.is_dir() and any(path.glob("places365*.txt")):
        yield from places365(path)
    elif path.is_dir():
        for one in sorted(path.rglob("*")):
            if one.suffix.lower() in SUFFIXES and one.is_file():
                yield Candidate(str(one.relative_to(path)), one, labels=labels_above(one))
    elif path.suffix == ".txt":
        yield from listed_urls(path, keep_in=keep_in)
    elif is_annotations(path):
        yield from annotated(path)
    else:
        raise DataError(
            "is neither annotations nor a list of pictures",
            file=path,
            hint='COCO and LVIS files have a list "images"; lists end in .txt',
        )


def labels_above(path: Path) -> tuple[str, str]:
    """The names of the two folders above a picture: a domain and a sub-domain, perhaps."""
    return path.parent.parent.name, path.parent.name
