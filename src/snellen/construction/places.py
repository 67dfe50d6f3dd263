"""Paths of pictures in the files of a construction folder, so that the folder may be moved."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from snellen.builders.rows import Shot

T = TypeVar("T", bound=msgspec.Struct)
IN_FOLDER, IN_SOURCE = "build:", "source:"


class Places:
    """Where the pictures of a build are: below its folder, below its source, or elsewhere.

    On disk a path below the folder is written `build:PATH`, and one below the source
    `source:PATH`. Any other path is written as it is, and so are the paths of older folders.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = os.path.abspath(folder)
        path = Path(source)
        is_local = bool(source) and path.exists()
        self.source = os.path.abspath(path if path.is_dir() else path.parent) if is_local else ""

    def stored(self, row: T) -> T:
        """A row as it is written."""
        return _changed(row, self._relative)

    def opened(self, row: T) -> T:
        """A row as it was read, with the paths of today."""
        return _changed(row, self._absolute)

    def _relative(self, path: str) -> str:
        whole = Path(os.path.abspath(path))
        for mark, base in ((IN_FOLDER, self.folder), (IN_SOURCE, self.source)):
            if base and whole.is_relative_to(base):
                return mark + whole.relative_to(base).as_posix()
        return path

    def _absolute(self, path: str) -> str:
        for mark, base in ((IN_FOLDER, self.folder), (IN_SOURCE, self.source)):
            if path.startswith(mark):
                return os.path.join(base, path.removeprefix(mark))
        return path


def _changed(row: T, change: Callable[[str], str]) -> T:
    """A row whose picture files, alone or in a tuple, have other paths."""

    def moved(shot: Shot) -> Shot:
        return Shot(change(shot.path), shot.digest)

    changes: dict[str, Shot | tuple[Shot, ...]] = {}
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if isinstance(value, Shot):
            changes[name] = moved(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Shot):
            changes[name] = tuple(moved(one) for one in value)
    return msgspec.structs.replace(row, **changes) if changes else row
