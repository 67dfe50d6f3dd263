"""Files that a stranger may have made: only regular ones are opened, and no link misleads."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

from snellen.errors import RunFolderError

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | Path) -> BufferedReader:
    """A regular file, open for reading; a pipe or a device would be waited for without end.

    Raises: OSError when it cannot be read or is something else.
    """
    stream = os.fdopen(os.open(path, os.O_RDONLY | _NO_WAIT), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is no regular file")
    return stream


def is_inside(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path lies in one of the folders once all links are followed."""
    real = os.path.realpath(path)
    return any(Path(real).is_relative_to(os.path.realpath(folder)) for folder in folders)


def open_own(path: Path, flags: int) -> int:
    """The descriptor of a file that a run writes.

    Raises: RunFolderError when a link stands there, or something that is no regular file.
    """
    try:
        descriptor = os.open(path, flags | _NO_LINK | _NO_WAIT, 0o644)
    except OSError as error:
        if not path.is_symlink() and (path.is_file() or not path.exists()):
            raise
        raise _foreign(path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _foreign(path)
    return descriptor


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all; a link at its place is replaced, never followed."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(open_own(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
        stream.write(data)
    part.replace(path)


def _foreign(path: Path) -> RunFolderError:
    what = "a link" if path.is_symlink() else "no regular file"
    return RunFolderError(
        f"{path} is {what}, and a run writes to files of its own only",
        hint="remove it, or give another --out",
    )
