"""Pictures that are not files yet: rows of tables and data sets, URLs, object stores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from snellen.errors import DataError, MissingExtraError
from snellen.pictures import parquet
from snellen.readers.hub import hub_rows, keep
from snellen.sources.candidates import Candidate


def columns_of(source: str, *, keep_in: Path) -> Iterator[Candidate]:
    """The pictures of a table: of each row that of the first column that holds pictures.

    `source` is a Parquet file, or `OWNER/NAME[:SPLIT]` of a data set on the hub, whose first split
    is taken by default.

    Raises:
        MissingExtraError: pyarrow or datasets is not installed.
        DataError: there is no column of pictures, or no such table.
    """
    rows: Iterator[Mapping[str, object]]
    if source.endswith(".parquet"):
        rows = parquet.rows(Path(source))
    else:
        repository, _, split = source.partition(":")
        rows = hub_rows(repository, split)
    for number, row in enumerate(rows, 1):
        for value in row.values():
            fields = value if isinstance(value, Mapping) else {"bytes": value}
            data = fields.get("bytes")
            if isinstance(data, bytes):
                break
        else:
            raise DataError(
                "no column holds a picture", file=source, row=number,
                hint="a picture is bytes, or an object {bytes, path}",
            )  # fmt: skip
        named = fields.get("path") or f"{Path(source).name} row {number}"
        name = next((row[k] for k in ("id", "image_id", "name") if row.get(k)), named)
        yield Candidate(str(name), keep(data, keep_in))


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
        beside = path.parent / address
        if "://" not in address and beside.is_file():
            data: bytes = beside.read_bytes()
        else:
            try:
                import fsspec
            except ImportError as error:
                what = "fsspec, which opens URLs and object stores"
                raise MissingExtraError(what, "build") from error
            try:
                with fsspec.open(address, "rb") as file:
                    data = file.read()
            except FileNotFoundError:
                yield Candidate(address, None)
                continue
            except (OSError, ValueError) as error:
                raise DataError(f"{address} cannot be opened: {error}", file=path) from error
        kept = keep(data, keep_in)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(kept.name, encoding="utf-8")
        yield Candidate(address, kept)
