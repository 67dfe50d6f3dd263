"""Where the pictures of a row are: files, or offsets of JSON strings; never their bytes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from snellen.errors import DataError
from snellen.readers.rows import LONGEST_PATH, Row
from snellen.records import Image

# How PNG, JPEG, GIF, WebP and TIFF begin in base64.
_BASE64_HEADS = (b"iVBORw0KGgo", b"/9j/", b"R0lGOD", b"UklGR", b"SUkqA", b"TU0AK")
_WINDOWS_ROOT = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")
_NOTHING = msgspec.Raw(b"null")


class _Struct(msgspec.Struct):
    """A picture as `datasets` writes it, or as the Parquet reader left it."""

    bytes: msgspec.Raw = _NOTHING
    path: str | None = None
    spooled: str | None = None
    text: bool = False


_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_struct_decoder = msgspec.json.Decoder(_Struct)
_text_decoder = msgspec.json.Decoder(str)


class PictureFinder:
    """Finds the pictures that rows name; each file is hashed once, however often it is named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, str] = {}

    def find(self, row: Row, raw: msgspec.Raw, *, field: str = "image") -> tuple[Image, ...]:
        """The pictures of one field: a text, a struct, a list of these, or null.

        Raises: DataError for a picture that is absent or named in a way that cannot work.
        """
        found = []
        for one in self.look_over(row, raw, field=field):
            if isinstance(one, DataError):
                raise one
            found.append(one)
        return tuple(found)

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
            if _is_embedded(raw):
                return self._embedded(place, raw, after=after)
            return self._file(place, _path_text(place, raw)), after
        if head == b"{":
            return self._struct(place, raw, after=after)
        raise place.error("a picture must be a path, a data URI or a {bytes, path} object")

    def _struct(self, place: _Place, raw: msgspec.Raw, *, after: int) -> tuple[Image, int]:
        try:
            value = _struct_decoder.decode(raw)
        except msgspec.DecodeError as error:
            raise place.error("is no {bytes, path} object") from error
        # Only a row that was made here can point into the spool folder.
        if value.spooled and place.row.start is None:
            return self._spooled(place, Path(value.spooled), text=value.text), after
        if bytes(memoryview(value.bytes)[:1]) == b'"':
            return self._embedded(place, value.bytes, after=after)
        if value.path:
            return self._file(place, value.path), after
        raise place.error("has neither bytes nor a path")

    def _embedded(self, place: _Place, raw: msgspec.Raw, *, after: int) -> tuple[Image, int]:
        row = place.row
        if row.start is None:
            raise place.error("holds base64 text that was not recognised as a picture")
        size = memoryview(raw).nbytes
        at = _locate(row.data, raw, after=after)
        start = row.start + at
        image = Image(
            place.name, hashlib.sha256(raw).hexdigest(), str(row.file), start, start + size
        )
        return image, at + size

    def _spooled(self, place: _Place, path: Path, *, text: bool) -> Image:
        # The name of a spooled file is the digest of what it holds.
        end = path.stat().st_size if text else None
        return Image(place.name, path.stem, str(path), 0, end)

    def _file(self, place: _Place, name: str) -> Image:
        path = self._path(place, name)
        digest = self._files.get(path)
        if digest is None:
            digest = _digest_of_file(path)
            self._files[path] = digest
        return Image(name, digest, str(path))

    def _path(self, place: _Place, name: str) -> Path:
        hint = "write it relative to the folder, with forward slashes, such as images/1.png"
        if not name.strip():
            raise place.error("the path is blank", hint=hint)
        if "://" in name:
            raise place.error(
                f"{name!r} is a web address, and pictures are read from disk only",
                hint="download it and name the file",
            )
        if _WINDOWS_ROOT.match(name) or name.startswith("/"):
            raise place.error(f"{name!r} is an absolute path", hint=hint)
        path = self.folder / name
        if not path.is_file():
            why = "is a folder" if path.is_dir() else "does not exist"
            raise place.error(f"the picture {name!r} {why}", hint=hint if "\\" in name else "")
        return path


def broken_picture(row: Row, image: Image, error: DataError, *, field: str) -> DataError:
    """What a decoder says of a picture, as an error of its row."""
    name = image.name.removeprefix(f"{row.file.name} row {row.number} ")
    message = error.message.removeprefix(f"{image.name}: ")
    return row.error(f"{name} {message}", field=field, hint=error.hint)


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


def _path_text(place: _Place, raw: msgspec.Raw) -> str:
    try:
        return _text_decoder.decode(raw)
    except msgspec.DecodeError as error:
        raise place.error("the path is not UTF-8") from error


def _is_embedded(raw: msgspec.Raw) -> bool:
    view = memoryview(raw)
    head = bytes(view[1:80]).replace(b"\\/", b"/")
    if head.startswith(b"data:") or view.nbytes > LONGEST_PATH:
        return True
    return view.nbytes > 64 and b"." not in head and head.startswith(_BASE64_HEADS)


def _locate(data: bytes, raw: msgspec.Raw, *, after: int) -> int:
    """The offset of a JSON string in its row.

    The search compares a short head first, since finding a long needle costs its length twice. An
    earlier place with the same bytes is as good: it holds the same picture.
    """
    text = bytes(raw)
    head = text[:64]
    at = data.find(head, after)
    while at >= 0 and not data.startswith(text, at):
        at = data.find(head, at + 1)
    return at


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
