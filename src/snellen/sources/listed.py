"""Pictures that a file of annotations names: COCO and LVIS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from snellen.errors import DataError
from snellen.sources.candidates import Candidate


class _Image(msgspec.Struct):
    id: int | str
    file_name: str = ""
    coco_url: str = ""
    flickr_url: str = ""


class _File(msgspec.Struct):
    images: list[_Image]


def is_annotations(path: Path) -> bool:
    """Whether a file is one of annotations."""
    return path.suffix == ".json"


def annotated(path: Path) -> Iterator[Candidate]:
    """The pictures of a COCO or LVIS file, looked for beside it and in the folders around it.

    Raises:
        DataError: it has another form.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"is no file of annotations: {error}", file=path,
            hint='expected COCO or LVIS: {"images": [{"id", "file_name"}], "annotations": [...]}',
        ) from error  # fmt: skip
    for image in found.images:
        name = file_name(image.file_name, image.coco_url)
        yield Candidate(name, find_near(path.parent, name), tags={})


def file_name(name: str, url: str) -> str:
    """A picture's file: as it is named, or, as in LVIS, the end of its address.

    >>> file_name("", "http://images.example/val2017/000000397133.jpg")
    'val2017/000000397133.jpg'
    """
    return name or "/".join(urlsplit(url).path.strip("/").split("/")[-2:])


def find_near(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, one above it, or a folder of either; None if absent."""
    for base in (folder, folder.parent):
        inner = [p for p in sorted(base.iterdir()) if p.is_dir()] if base.is_dir() else []
        for place in (base, *inner):
            for one in (place / name, place / Path(name).name):
                if one.is_file():
                    return one
    return None


def read_json(path: Path) -> object:
    """The value of a JSON file.

    Raises:
        DataError: it is none.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"cannot be read as JSON: {error}", file=path) from error
