"""Folders on this machine or in an object store: read, copied, and claimed by exclusive files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from snellen.errors import MissingExtraError, RunFolderError, SnellenError

RUN_FILES = (
    "run.json", "items.jsonl", "calls.jsonl", "replies.jsonl", "verdicts.jsonl", "summary.json",
)  # fmt: skip


def is_remote(place: str | Path) -> bool:
    """Whether a place is an address such as `s3://bucket/run`, and no path."""
    return "://" in str(place)


class Store:
    """A folder by its path, or by an address that fsspec knows.

    Raises:
        MissingExtraError: the place is an address, and fsspec or its driver is not installed.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self._fs, self._root = None, self.place
        if is_remote(place):
            try:
                import fsspec

                self._fs, self._root = fsspec.core.url_to_fs(self.place)
            except ImportError as error:
                raise MissingExtraError(f"what opens {self.place}", "store") from error
            except ValueError as error:
                raise SnellenError(f"{self.place} cannot be opened: {error}") from error

    def path(self, name: str = "") -> str:
        """The path of a file of this folder, as its system has it."""
        return str(PurePosixPath(self._root, name)) if self._fs else str(Path(self._root, name))

    def create(self, name: str, data: bytes) -> bool:
        """Writes a file unless there is one of that name; whether it was written.

        Of several workers that try at once, one alone succeeds.

        Raises:
            RunFolderError: the place cannot be written, or knows no exclusive files.
        """
        try:
            if self._fs is None:
                path = Path(self.path(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                return True
            self._fs.makedirs(self._fs._parent(self.path(name)), exist_ok=True)
            with self._fs.open(self.path(name), "xb") as stream:
                stream.write(data)
        except FileExistsError:
            return False
        except (OSError, ValueError, NotImplementedError) as error:
            if getattr(error, "errno", None) == errno.EEXIST:
                return False
            raise RunFolderError(
                f"{self.place} cannot be used for claims: {error}",
                hint="claims need a place that can create a file only where there is none",
            ) from error
        return True

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None where there is none.

        Raises:
            RunFolderError: the file is there and cannot be read.
        """
        try:
            if self._fs is None:
                return Path(self.path(name)).read_bytes()
            data: bytes = self._fs.cat_file(self.path(name))
            return data
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise RunFolderError(f"{self.path(name)} cannot be read: {error}") from error

    def upload(self, folder: Path, name: str) -> None:
        """Copies the files of a run folder into a folder of this store."""
        assert self._fs is not None
        target = self.path(name)
        self._fs.makedirs(target, exist_ok=True)
        for file in RUN_FILES:
            if (folder / file).exists():
                self._fs.put_file(str(folder / file), str(PurePosixPath(target, file)))

    def run_folders(self) -> list[str]:
        """The paths of all run folders at or below this place, sorted."""
        assert self._fs is not None
        found = [str(path) for path in self._fs.find(self._root)]
        return sorted(str(PurePosixPath(p).parent) for p in found if p.endswith("/run.json"))

    def download(self, path: str, target: Path) -> None:
        """Copies the files of a run folder of this store to this machine."""
        assert self._fs is not None
        target.mkdir(parents=True, exist_ok=True)
        for file in RUN_FILES:
            here = str(PurePosixPath(path, file))
            if self._fs.exists(here):
                self._fs.get_file(here, str(target / file))


def copied_here(place: str, scratch: Path) -> Iterator[tuple[str, Path]]:
    """The run folders of an object store by address, each copied to this machine."""
    store = Store(place)
    for number, path in enumerate(store.run_folders()):
        target = scratch / str(number)
        store.download(path, target)
        yield f"{place.partition('://')[0]}://{path.lstrip('/')}", target
