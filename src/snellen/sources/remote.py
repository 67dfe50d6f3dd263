"""Pictures that are not files yet: rows of tables and data sets, URLs, object stores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from snellen.errors import DataError, MissingExtraError
from snellen.pictures.headers import kind_of
from snellen.readers.picture_columns import picture_rows
from snellen.sources.candidates import Candidate


def columns_of(source: str, *, keep_in: Path) -> Iterator[Candidate]:
    """The pictures of a Parquet file or of a public data set, `OWNER/NAME[:SPLIT]`."""
    for name, data in picture_rows(source):
        yield Candidate(name, keep(data, keep_in))


def listed_urls(path: Path, *, keep_in: Path) -> Iterator[Candidate]:
    """The pictures of a list: one path, URL or address that fsspec knows a line.

    Lines that begin with # are left out. What was fetched once is not fetched again.

    Raises:
        MissingExtraError: fsspec is not installed.
    """
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        address = line.strip()
        if not address or address.startswith("#"):
            continue
        note = keep_in / "fetched" / hashlib.sha256(address.encode()).hexdigest()
        if note.exists() and (keep_in / note.read_text(encoding="utf-8")).exists():
            yield Candidate(address, keep_in / note.read_text(encoding="utf-8"))
            continue
        data = _fetch(address, path)
        if data is None:
            yield Candidate(address, None)
            continue
        kept = keep(data, keep_in)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(kept.name, encoding="utf-8")
        yield Candidate(address, kept)


def _fetch(address: str, listed_in: Path) -> bytes | None:
    """The bytes at an address; None where there are none."""
    beside = listed_in.parent / address
    if "://" not in address and beside.is_file():
        return beside.read_bytes()
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec, which opens URLs and object stores", "build") from error
    try:
        with fsspec.open(address, "rb") as file:
            data: bytes = file.read()
            return data
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            return None
        raise DataError(f"{address} cannot be opened: {error}", file=listed_in) from error


def keep(data: bytes, folder: Path) -> Path:
    """Writes a picture's bytes under their digest, and says where."""
    kind = kind_of(data[:64]) or "bin"
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.{kind}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(data)
        part.replace(path)
    return path
