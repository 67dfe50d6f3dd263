"""The pictures of a table: a Parquet file, or a public data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from snellen.errors import DataError, MissingExtraError


def picture_rows(source: str) -> Iterator[tuple[str, bytes]]:
    """A name and the bytes of the picture of each row, from the first column that holds pictures.

    `source` is a Parquet file, or `OWNER/NAME[:SPLIT]` of a data set on the hub, whose first split
    is taken by default.

    Raises:
        MissingExtraError: pyarrow or datasets is not installed.
        DataError: there is no column of pictures.
    """
    is_file = source.endswith(".parquet")
    rows = _parquet_rows(Path(source)) if is_file else _hub_rows(source)
    for number, row in enumerate(rows, 1):
        found = next(((k, v) for k, v in row.items() if _is_picture(v)), None)
        if found is None:
            raise DataError(
                "no column holds a picture", file=source, row=number,
                hint="a picture is bytes, or an object {bytes, path}",
            )  # fmt: skip
        value = found[1]
        data = value["bytes"] if isinstance(value, Mapping) else value
        named = value.get("path") if isinstance(value, Mapping) else None
        name = next((str(row[k]) for k in ("id", "image_id", "name") if row.get(k)), named)
        yield str(name or f"{Path(source).name} row {number}"), data


def _is_picture(value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(value.get("bytes"), bytes)
    return isinstance(value, bytes)


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow, which reads Parquet files", "parquet") from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise DataError(f"is no Parquet file: {error}", file=path) from error
    for batch in file.iter_batches(batch_size=64):
        yield from batch.to_pylist()


def _hub_rows(source: str) -> Iterator[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("datasets, which fetches public data sets", "hub") from error
    name, _, split = source.partition(":")
    found = datasets.load_dataset(name, split=split or None, streaming=True)
    if isinstance(found, dict):
        found = next(iter(found.values()))
    for column, kind in (found.features or {}).items():
        if type(kind).__name__ == "Image":
            found = found.cast_column(column, datasets.Image(decode=False))
    yield from found
