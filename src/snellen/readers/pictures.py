"""Where the pictures of a row are: files, or offsets of JSON strings; never their bytes."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from pathlib import Path
from urllib.parse import unquote

import msgspec

from snellen.errors import DataError
from snellen.files import is_inside, open_regular
from snellen.readers.rows import Row, Source, embeds_picture
from snellen.records import Image

_WINDOWS_ROOT = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")
_NOTHING = msgspec.Raw(b"null")


class _Struct(msgspec.Struct):
    """A picture as `datasets` writes it."""

    bytes: msgspec.Raw = _NOTHING
    path: str | None = None


_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_struct_decoder = msgspec.json.Decoder(_Struct)
_text_decoder = msgspec.json.Decoder(str)


class PictureFinder:
    """Finds the pictures that rows name; each file is hashed once, however often it is named."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._files: dict[Path, str] = {}
        self._names: dict[Path, dict[str, str]] = {}

    def look_over(
        self, row: Row, raw: msgspec.Raw, *, field: str = "image"
    ) -> list[Image | DataError]:
        """For each picture of one field, where it is or what is wrong with how it is named."""
        view = memoryview(raw)
        if view.nbytes == 0 or bytes(view[:4]) == b"null":
            return []
        entries = _list_decoder.decode(raw) if bytes(view[:1]) == b"[" else [raw]
        found: list[Image | DataError] = []
        after = 0
        for number, entry in enumerate(entries, 1):
            try:
                image, after = self._one(_Place(row, field, number), entry, after=after)
            except DataError as error:
                found.append(error)
            else:
                found.append(image)
        return found

    def _one(self, place: _Place, raw: msgspec.Raw, *, after: int) -> tuple[Image, int]:
        head = bytes(memoryview(raw)[:1])
        if head == b'"':
            if embeds_picture(raw):
                return self._embedded(place, raw, after=after)
            try:
                name = _text_decoder.decode(raw)
            except msgspec.DecodeError as error:
                raise place.error("the path is not UTF-8") from error
            return self._file(place, name), after
        if head == b"{":
            return self._struct(place, raw, after=after)
        # Only rows of Parquet files have cells.
        if head.isdigit() and bytes(raw).isdigit() and int(raw) < len(place.row.cells):
            cell = place.row.cells[int(raw)]
            end = len(cell.data) if cell.is_text else None
            path, number = str(place.row.file), place.row.number
            return Image(place.name, cell.digest, path, 0, end, row=number), after
        raise place.error("a picture must be a path, a data URI or a {bytes, path} object")

    def _struct(self, place: _Place, raw: msgspec.Raw, *, after: int) -> tuple[Image, int]:
        try:
            value = _struct_decoder.decode(raw)
        except msgspec.DecodeError as error:
            raise place.error("is no {bytes, path} object") from error
        if bytes(memoryview(value.bytes)[:1]) == b'"':
            return self._embedded(place, value.bytes, after=after)
        if value.path:
            return self._file(place, value.path), after
        raise place.error("has neither bytes nor a path")

    def _embedded(self, place: _Place, raw: msgspec.Raw, *, after: int) -> tuple[Image, int]:
        row = place.row
        assert row.start is not None, "texts of pictures in Parquet are cells"
        size = memoryview(raw).nbytes
        # A short head is looked for first: finding a long needle costs its length twice. An earlier
        # place with the same bytes is as good, since it holds the same picture.
        text = bytes(raw)
        head = text[:64]
        at = row.data.find(head, after)
        while at >= 0 and not row.data.startswith(text, at):
            at = row.data.find(head, at + 1)
        start = row.start + at
        image = Image(
            place.name, hashlib.sha256(raw).hexdigest(), str(row.file), start, start + size
        )
        return image, at + size

    def _file(self, place: _Place, name: str) -> Image:
        path = self._path(place, name)
        digest = self._files.get(path)
        if digest is None:
            try:
                with open_regular(path) as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise place.error(_unreadable(name, error)) from error
            self._files[path] = digest
        return Image(name, digest, str(path))

    def _path(self, place: _Place, name: str) -> Path:
        hint = "write it relative to the folder, with forward slashes, such as images/1.png"
        if not name.strip():
            raise place.error("the path is blank", hint=hint)
        if name[:5].lower() == "file:":
            raise place.error(f"{name!r} is the address of a file, expected its path", hint=hint)
        if "://" in name:
            raise place.error(
                f"{name!r} is a web address, and pictures are read from disk only",
                hint="download it and name the file",
            )
        path = place.row.file.parent / name
        is_absolute = _WINDOWS_ROOT.match(name) or name.startswith("/")
        try:
            if is_absolute and not is_inside(Path(name), self._source.allowed):
                raise place.error(f"{_short(name)} is an absolute path", hint=hint)
            if not self._source.may_read(path):
                hint = "copy it into the folder, or name a folder that may be read: --allow-outside"
                raise place.error(f"{_short(name)} leads out of the folder", hint=hint)
            mode = path.stat().st_mode
            if stat.S_ISREG(mode):
                return path
            why = "is a folder" if stat.S_ISDIR(mode) else "is no regular file"
        except FileNotFoundError:
            why = "does not exist"
        except (OSError, ValueError) as error:
            raise place.error(_unreadable(name, error)) from error
        near = self._near_miss(place.row.file.parent, name)
        hint = f"did you mean {near}?" if near else hint if "\\" in name else ""
        raise place.error(f"the picture {_short(name)} {why}", hint=hint)

    def _near_miss(self, at: Path, name: str) -> str:
        """The path of a picture whose name differs in case, accents, blanks or escapes alone."""
        found: list[str] = []
        for part in unquote(name).replace("\\", "/").split("/"):
            there = part if part in {"", ".", ".."} else self._names_in(at).get(_folded(part))
            if there is None:
                return ""
            at /= there
            found.append(there)
        meant = "/".join(found)
        # Where the two look alike, the codes of their letters tell them apart.
        show = ascii if _composed(meant) == _composed(name) else repr
        return show(meant) if at.is_file() else ""

    def _names_in(self, folder: Path) -> dict[str, str]:
        if folder not in self._names:
            try:
                names = os.listdir(folder)
            except OSError:
                names = []
            self._names[folder] = {_folded(name): name for name in names}
        return self._names[folder]


class _Place(msgspec.Struct, frozen=True):
    """Which picture of which row is meant."""

    row: Row
    field: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.row.file.name} row {self.row.number} image {self.number}"

    def error(self, message: str, *, hint: str = "") -> DataError:
        return self.row.error(message, field=self.field, hint=hint)


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _folded(name: str) -> str:
    return _composed(name).casefold().strip()


def _short(name: str) -> str:
    return repr(name) if len(name) <= 200 else f"{name[:200]!r}..."


def _unreadable(name: str, error: OSError | ValueError) -> str:
    why = getattr(error, "strerror", None) or error
    return f"the picture {_short(name)} cannot be read: {why}"
