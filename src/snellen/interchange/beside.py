"""Pictures of result files: those that a file names, and those that lie beside it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from snellen.errors import DataError, ImageError
from snellen.files import is_inside
from snellen.interchange.samples import ForeignSample, listed
from snellen.interchange.vlmevalkit import Cells, table
from snellen.pictures.prepare import read
from snellen.records import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
# A shorter cell of a data set's picture column is the index of the row that has the picture.
LONGEST_INDEX = 64
MOST_BESIDE = 64


def bytes_of(picture: str | Image, sample: ForeignSample, folders: Sequence[Path]) -> bytes:
    """The bytes of a picture that a sample names.

    A path is one below the folder of the result file, or below one of `folders`: a file of a
    stranger must not send others to an endpoint.

    Raises:
        ImageError: the picture is an address, lies elsewhere, or cannot be read.
    """
    if isinstance(picture, Image):
        data = read(picture)
        return data if picture.end is None else _decoded(data.decode("ascii", "replace"), sample)
    if picture.startswith(("http://", "https://")):
        raise ImageError("is an address, which is not fetched", file=picture[:80])
    if picture.startswith("data:") or len(picture) > 4096:
        return _decoded(picture, sample)
    allowed = [sample.file.parent, *folders]
    for folder in (Path(), *allowed):
        path = folder / picture
        if not path.is_file():
            continue
        if not is_inside(path, allowed):
            raise ImageError(
                "lies outside the folder of the results", file=picture,
                hint="name its folder under [collect] pictures",
            )  # fmt: skip
        return read(Image(path.name, "", str(path)))
    raise ImageError(
        "the picture is not there", file=picture, hint="name its folder under [collect] pictures"
    )


def _decoded(uri: str, sample: ForeignSample) -> bytes:
    text = uri.partition(",")[2] if uri.startswith("data:") else uri
    try:
        return base64.b64decode(text.strip(), validate=False)
    except (binascii.Error, ValueError) as error:
        raise ImageError(f"is no base64: {error}", file=sample.id) from error


def beside(
    benchmark: str, indices: Iterable[str], folders: Sequence[Path]
) -> dict[str, tuple[str, ...]]:
    """The pictures of a benchmark's samples by index, as paths or as base64.

    They are files `INDEX.png`, or `INDEX_1.png` and so on, in a folder of the benchmark's name, or
    stand in its table `BENCHMARK.tsv`, as VLMEvalKit keeps both.
    """
    wanted = set(indices)
    found: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        for own in (folder / benchmark, folder / "images" / benchmark):
            for index in wanted - found.keys():
                if paths := _files(own, index):
                    found[index] = paths
        if wanted - found.keys() and (file := folder / f"{benchmark}.tsv").is_file():
            found |= _of_table(file, wanted - found.keys())
    return found


def _files(folder: Path, index: str) -> tuple[str, ...]:
    if "/" in index or "\\" in index or not folder.is_dir():
        return ()
    one = next(_named(folder, index), "")
    if one:
        return (one,)
    numbered = (next(_named(folder, f"{index}_{k}"), "") for k in range(MOST_BESIDE))
    return tuple(path for path in numbered if path)


def _named(folder: Path, stem: str) -> Iterator[str]:
    paths = (folder / f"{stem}{suffix}" for suffix in SUFFIXES)
    return (str(path) for path in paths if path.is_file())


def _of_table(file: Path, wanted: set[str]) -> Mapping[str, tuple[str, ...]]:
    """The pictures of the wanted rows; a row may name another whose picture it shares."""
    found = {cells["index"]: _pictures(cells) for cells in _cells(file, wanted)}
    shared = {
        index: one[0]
        for index, one in found.items()
        if len(one) == 1 and len(one[0]) <= LONGEST_INDEX and one[0].isalnum()
    }
    owners = {cells["index"]: _pictures(cells) for cells in _cells(file, set(shared.values()))}
    found |= {index: owners.get(owner, ()) for index, owner in shared.items()}
    return {index: one for index, one in found.items() if one}


def _pictures(cells: Cells) -> tuple[str, ...]:
    one = listed(cells.get("image", ""))
    if not one:
        return listed(cells.get("image_path", ""))
    return tuple(f"data:;base64,{text}" if len(text) > LONGEST_INDEX else text for text in one)


def _cells(file: Path, wanted: set[str]) -> Iterator[Cells]:
    if wanted:
        for _, cells in table(file):
            if isinstance(cells, DataError):
                raise cells
            if cells.get("index") in wanted:
                yield cells
