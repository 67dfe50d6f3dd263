"""Fetches public data sets once into the cache, as JSON-lines that the readers read like any file.

Rows are streamed; pictures that come as bytes are written to a folder, one file a digest, and
pictures that come as text stay in their row. A second load needs no network.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.errors import DataError, MissingExtraError
from snellen.pictures import headers
from snellen.readers.catalog import Reader
from snellen.readers.policy import LoadOptions
from snellen.schemas import nearest


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched data set: its file, the folder of its pictures, and its revision ("": unknown)."""

    path: Path
    pictures: Path
    revision: str


def fetch(entry: Reader, options: LoadOptions) -> Fetched:
    """The data set on disk, fetched when it is not in the cache yet.

    With a limit and nothing that needs the whole set, only the first rows are fetched.

    Raises: MissingExtraError, or DataError when the data set cannot be reached.
    """
    split = options.split or entry.split
    if split not in entry.splits:
        raise DataError(
            f"{entry.name} has no split {split!r}", hint=nearest(split, list(entry.splits))
        )
    home = Path(options.cache).expanduser() / "datasets" / entry.name
    if options.source == "modelscope":
        revision, stream = options.revision, _modelscope_rows
    else:
        revision, stream = options.revision, hub_rows
        if not revision:
            with _hub_installed():
                from huggingface_hub import HfApi
            try:
                revision = str(HfApi().dataset_info(entry.repository).sha)
            except _network_errors() as error:
                # Without a network, the newest commit in the cache.
                cached = sorted((home / "hub").glob("*"), key=lambda path: path.stat().st_mtime)
                if not cached:
                    raise _unreachable(entry.repository, error) from error
                revision = cached[-1].name
    folder = home / options.source / (revision or "latest")
    # CaptionQA's option orders depend on all rows, and so does a choice among the rows.
    selective = options.subsets or options.sample is not None or options.limit_per_subset
    needs_all = selective or entry.needs_all_rows or options.on_bad_row == "skip"
    first = None if needs_all else options.limit
    whole = folder / f"{split}.jsonl"
    part = folder / f"{split}-first-{first}.jsonl"
    path = whole if first is None or whole.is_file() else part
    if not path.is_file():
        rows = stream(entry.repository, split, revision=revision)
        write_rows(itertools.islice(rows, first), path, pictures=home / "pictures")
    return Fetched(path, home / "pictures", revision)


def write_rows(rows: Iterable[Mapping[str, object]], path: Path, *, pictures: Path) -> None:
    """Writes rows as JSON-lines, whole or not at all; picture bytes go to the pictures folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as stream:
        for row in rows:
            stream.write(msgspec.json.encode(_plain(row, path.parent, pictures=pictures)) + b"\n")
    part.replace(path)


def _plain(value: object, folder: Path, *, pictures: Path) -> object:
    if isinstance(value, bytes):
        return Path(os.path.relpath(keep(value, pictures), folder)).as_posix()
    if isinstance(value, Mapping):
        if isinstance(value.get("bytes"), bytes):
            return _plain(value["bytes"], folder, pictures=pictures)
        return {key: _plain(one, folder, pictures=pictures) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, folder, pictures=pictures) for one in value]
    return value


def keep(data: bytes, folder: Path) -> Path:
    """The file of a folder that holds a picture's bytes, named by their digest, written once."""
    kind = headers.kind_of(data[:32]) or "img"
    path = folder / f"{hashlib.sha256(data).hexdigest()}.{kind}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.replace(path)
    return path


def hub_rows(
    repository: str, split: str = "", *, revision: str = ""
) -> Iterator[Mapping[str, object]]:
    """The rows of a public data set, streamed; without a split, those of the first.

    Undecoded pictures come as {"bytes", "path"}: the very bytes of the publisher.

    Raises: MissingExtraError without datasets, DataError when the data set cannot be reached.
    """
    with _hub_installed():
        import datasets
    try:
        stream = datasets.load_dataset(
            repository, split=split or None, streaming=True, revision=revision or None
        )
        if isinstance(stream, dict):
            stream = next(iter(stream.values()))
        yield from stream.decode(False)
    except (datasets.exceptions.DatasetsError, *_network_errors()) as error:
        raise _unreachable(repository, error) from error


@contextmanager
def _hub_installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError("datasets, which fetches public data sets,", "hub") from error


def _network_errors() -> tuple[type[Exception], ...]:
    """What the hub's client raises; the base of its HTTP errors differs between its versions."""
    from huggingface_hub import errors

    return (OSError, ValueError, getattr(errors, "HTTPError", OSError))


def _modelscope_rows(
    repository: str, split: str, *, revision: str
) -> Iterator[Mapping[str, object]]:
    try:
        from modelscope.msdatasets import MsDataset
    except ImportError as error:
        raise MissingExtraError("modelscope", "modelscope") from error
    version = {"version": revision} if revision else {}
    try:
        yield from MsDataset.load(repository, split=split, use_streaming=True, **version)
    except (OSError, ValueError) as error:
        raise _unreachable(repository, error) from error


def _unreachable(repository: str, error: Exception) -> DataError:
    reason = str(error).strip().splitlines()
    return DataError(
        f"the data set {repository} cannot be fetched: {reason[0] if reason else error!r}",
        hint="name a copy on this machine with --data PATH",
    )
