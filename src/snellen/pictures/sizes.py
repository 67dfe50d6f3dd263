"""Format and size of pictures where they lie, read from a few bytes of each."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import msgspec

from snellen.pictures import headers
from snellen.pictures.prepare import DEFAULT_RULES
from snellen.records import Image

_HEAD = 1024


@dataclass(frozen=True, slots=True)
class _File:
    """A file, read only where it is looked at."""

    stream: BinaryIO
    size: int

    def read(self, start: int, end: int) -> bytes:
        self.stream.seek(start)
        return self.stream.read(max(min(end, self.size) - start, 0))


@dataclass(frozen=True, slots=True)
class _Base64Part:
    """Base64 text in a file, from `begin` to `end`, decoded only where it is read."""

    stream: BinaryIO
    begin: int
    end: int
    padding: int

    @property
    def size(self) -> int:
        return (self.end - self.begin) // 4 * 3 - self.padding

    def read(self, start: int, end: int) -> bytes:
        first = start // 3
        from_, to = self.begin + first * 4, min(self.begin + (end + 2) // 3 * 4, self.end)
        self.stream.seek(from_)
        decoded = binascii.a2b_base64(self.stream.read(max(to - from_, 0)))
        return decoded[start - first * 3 : end - first * 3]


def headers_of(images: Iterable[Image]) -> Iterator[tuple[Image, headers.Header | None]]:
    """Each picture and what it is, None for one that is no picture; sizes are as stored.

    The order is that of the files and of the places in them, so that each file is opened once.
    """
    ordered = sorted(images, key=lambda image: (image.path, image.start))
    for path, group in groupby(ordered, key=lambda image: image.path):
        with Path(path).open("rb") as stream:
            for image in group:
                yield image, _header(stream, image)


def is_whole(image: Image) -> bool:
    """Whether headers show a JPEG, PNG or WebP that ends where it should and is not too large.

    No is a suspicion, not a verdict: a decoder knows more.
    """
    with Path(image.path).open("rb") as stream:
        header = _header(stream, image)
    if header is None or header.end is None:
        return False
    return 0 < header.width * header.height <= DEFAULT_RULES.refuse_pixels


def _header(stream: BinaryIO, image: Image) -> headers.Header | None:
    try:
        return headers.read_header(_source(stream, image))
    except (binascii.Error, msgspec.DecodeError):
        return None


def _source(stream: BinaryIO, image: Image) -> headers.Source:
    if image.end is None:
        return _File(stream, stream.seek(0, 2))
    stream.seek(image.start)
    head = stream.read(min(_HEAD, image.end - image.start))
    if b"\\" in head:
        return _unescaped(stream, image)
    begin = image.start + 1
    if head[1:6].lower() == b"data:":
        begin = image.start + head.find(b",") + 1
    stream.seek(image.end - 3)
    return _Base64Part(stream, begin, image.end - 1, stream.read(2).count(b"="))


def _unescaped(stream: BinaryIO, image: Image) -> headers.Source:
    """A text with escaped slashes has no fixed places, so it is decoded whole."""
    stream.seek(image.start)
    assert image.end is not None
    text = msgspec.json.decode(stream.read(image.end - image.start), type=str)
    payload = text.partition(",")[2] if text[:5].lower() == "data:" else text
    return headers.RawBytes(binascii.a2b_base64(payload))
