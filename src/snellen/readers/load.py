"""Loads a benchmark by name or path: the table of readers, and what each needs."""

from __future__ import annotations

from pathlib import Path

from snellen.errors import DataError, UsageError
from snellen.readers.captionqa import read_captionqa
from snellen.readers.catalog import KNOWN, Known
from snellen.readers.folder import (
    CARD,
    Card,
    assemble,
    load_folder,
    load_with_card,
    pictures_folder,
)
from snellen.readers.hub import fetch
from snellen.readers.perception_bench import read_direct
from snellen.readers.perception_rubrics import read_rubrics
from snellen.readers.rows import SUFFIXES, find_files, has_files, rows_of
from snellen.readers.selection import Intake, LoadOptions
from snellen.records import Benchmark
from snellen.schemas import nearest

ROW_READERS = {
    "perception_bench": read_direct,
    "perception_rubrics": read_rubrics,
    "captionqa": read_captionqa,
}
DEFAULTS = LoadOptions()


def load_benchmark(
    name_or_path: str, data: str | None = None, *, options: LoadOptions = DEFAULTS
) -> Benchmark:
    """The benchmark of that name, or in that folder; `data` is a folder or file with its rows.

    Without `data`, a public data set is fetched once and kept in the cache.

    Raises: UsageError for an unknown name or subset, DataError for anything wrong with the data,
    MissingExtraError when the library that fetches or reads it is not installed.
    """
    entry = KNOWN.get(name_or_path)
    if entry is None:
        return _load_path(name_or_path, data, options=options)
    if entry.path is not None:
        _refuse_data(name_or_path, data)
        return load_folder(entry.path, options)
    if data is not None:
        return load_known(entry, Path(data).absolute(), options=options)
    if not entry.repository:
        raise DataError(
            f"the authors of {entry.name} have not released its data",
            hint="name a folder in the documented form with --data PATH, or build one",
        )
    fetched = fetch(entry, options)
    return load_known(entry, fetched.path, options=options, revision=fetched.revision)


def load_known(entry: Known, data: Path, *, options: LoadOptions, revision: str = "") -> Benchmark:
    """A named benchmark from a folder or a file."""
    if not data.exists():
        raise DataError("there is no such file or folder", file=data)
    card = card_of(entry, revision)
    if entry.name not in ROW_READERS:
        return load_with_card(data, card, options=options)
    files = data_files(entry, data, options=options)
    folder = files[0].parent
    intake = Intake(options)
    rows = rows_of(files, spool=pictures_folder(options))
    items = ROW_READERS[entry.name](rows, folder, intake=intake)
    return assemble(card, items, folder=folder, intake=intake)


def card_of(entry: Known, revision: str = "") -> Card:
    """What `benchmark.json` would say about a named benchmark."""
    return Card(
        name=entry.name,
        protocol=entry.protocol,
        license=entry.license,
        source=entry.source,
        revision=revision,
    )


def data_files(entry: Known, data: Path, *, options: LoadOptions) -> tuple[Path, ...]:
    """The files with the rows of a named benchmark: the file itself, or what the folder holds.

    A folder may be one of ours (`benchmark.json` and `questions` or `rubrics`), a copy of the
    published one, or hold a single file of rows.
    """
    if data.is_file():
        return (data,)
    ours = "rubrics" if entry.protocol == "rubric" else "questions"
    stems = (ours,) if (data / CARD).is_file() else (options.split or entry.stem, ours)
    for folder in (data, data / "data"):
        for stem in stems:
            if has_files(folder, stem):
                return find_files(folder, stem)
    single = [path for path in sorted(data.iterdir()) if path.suffix in SUFFIXES]
    if len(single) == 1:
        return (single[0],)
    raise DataError(
        f"holds {len(single)} files with rows, and none called {' or '.join(stems)}",
        file=data,
        hint="name the file itself with --data",
    )


def _load_path(name: str, data: str | None, *, options: LoadOptions) -> Benchmark:
    path = Path(name).absolute()
    if not path.exists() and "/" not in name and "\\" not in name:
        raise UsageError(
            f"there is no benchmark {name!r}, and no folder of that name",
            hint=nearest(name, list(KNOWN)),
        )
    _refuse_data(name, data)
    if path.is_file():
        raise UsageError(
            f"{name} is a file",
            hint=f"name its benchmark: perception_bench --data {name}, or another known one",
        )
    return load_folder(path, options)


def _refuse_data(name: str, data: str | None) -> None:
    if data is not None:
        raise UsageError(
            f"{name} brings its own data, so --data cannot be used with it",
            hint="leave --data out",
        )
