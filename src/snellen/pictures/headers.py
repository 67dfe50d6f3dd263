"""What a picture is and where it ends, told from a few bytes of it: nothing is decoded.

The walk reads a few bytes at known places, so that a picture that lies as base64 text in a data
file costs microseconds, whatever its size.
"""

from __future__ import annotations

import binascii
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import groupby
from typing import BinaryIO, Literal, Protocol

import msgspec

from snellen.files import open_regular
from snellen.pictures import parquet
from snellen.records import Image

MOST_PIXELS = 100_000_000
"""The stored size above which a picture is refused before it is decoded."""

ORIENTATION_TAG = 0x0112
MOST_PARTS = 4096
"""Segments or chunks that a walk looks at; a file with more is left to a real decoder."""

MOST_TEXT = 1 << 20
"""Bytes of text, profiles and the like above which they are left out of a picture that is sent."""

_XMP_ORIENTATION = re.compile(rb"tiff:Orientation(?:=[\"']|>)\s*([1-8])")
_TEXT_CHUNKS = frozenset({b"tEXt", b"zTXt", b"iTXt", b"iCCP"})
_JPEG_END = re.compile(rb"\xff+[^\x00\x01\xff\xd0-\xd7]")
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NETPBM = re.compile(rb"P[1-6][ \t\r\n]")


class Source(Protocol):
    """Bytes of known number that can be read in any place."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, fewer at the end of the source."""
        ...


@dataclass(frozen=True, slots=True)
class RawBytes:
    """A source that is in memory as it is."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


@dataclass(frozen=True, slots=True)
class Base64Text:
    """A source in padded standard base64, decoded only where it is read.

    >>> Base64Text(b"U25lbGxlbg==").read(2, 5)
    b'ell'
    """

    text: bytes

    @property
    def size(self) -> int:
        return len(self.text) // 4 * 3 - self.text[-2:].count(b"=")

    def read(self, start: int, end: int) -> bytes:
        first = start // 3
        decoded = binascii.a2b_base64(self.text[first * 4 : (end + 2) // 3 * 4])
        return decoded[start - first * 3 : end - first * 3]


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says about its picture.

    `kind` is `jpeg`, `png`, `webp`, `gif`, `bmp`, `tiff`, `avif`, `jp2` or `ppm`; the headers of
    the last six are not read. `width` and `height` are as stored, before any turning, 0 when
    unknown. `plain` means three channels of 8 bits, one frame, no transparency. `exif` is the
    orientation by EXIF and `xmp` that by XMP, 1 to 8, 0 without one. `bulky` means that texts and
    profiles make more than a megabyte, unpacked. `end` is where the picture ends, None when it does
    not end properly. `index` is the place (start, end) of a JPEG's list of further pictures.
    """

    kind: str
    width: int = 0
    height: int = 0
    plain: bool = False
    animated: bool = False
    exif: int = 0
    xmp: int = 0
    bulky: bool = False
    exif_broken: bool = False
    end: int | None = None
    index: tuple[int, int] | None = None
    adobe: bool = False

    @property
    def orientation(self) -> int:
        """How to turn the picture: as EXIF says, else as XMP says."""
        return self.exif or self.xmp or 1

    @property
    def is_marked(self) -> bool:
        """Whether some reader of the file would turn the picture."""
        return not {self.exif, self.xmp} <= {0, 1}


def headers_of(images: Iterable[Image]) -> Iterator[tuple[Image, Header | None]]:
    """Each picture and what it is, None for one that is no picture; sizes are as stored.

    The order is that of the files and of the places in them, so that each file is opened once.
    """
    ordered = sorted(images, key=lambda image: (image.path, image.row or 0, image.start))
    for _, group in groupby(ordered, key=lambda image: (image.path, image.row)):
        several = list(group)
        if several[0].row is not None:
            for image in several:
                with open_stored(image) as stream:
                    yield image, _header(stream, image)
            continue
        with open_stored(several[0]) as stream:
            for image in several:
                yield image, _header(stream, image)


def is_whole(image: Image, stream: BinaryIO | None = None) -> bool:
    """Whether headers show a JPEG, PNG or WebP that ends where it should and is not too large.

    `stream` is the file of the picture where that is at hand. No is a suspicion, not a verdict: a
    decoder knows more.
    """
    with stream or open_stored(image) as opened:
        header = _header(opened, image)
    if header is None or header.end is None:
        return False
    return 0 < header.width * header.height <= MOST_PIXELS


def open_stored(image: Image) -> BinaryIO:
    """What a picture lies in: its file, or what a row of a Parquet file holds.

    Raises: OSError when that cannot be read or is no regular file.
    """
    if image.row is not None:
        return BytesIO(parquet.picture(image.path, image.row, image.digest))
    return open_regular(image.path)


def is_base64(text: bytes) -> bool:
    """Whether a text is padded standard base64 to its end, without a break.

    >>> is_base64(b"U25lbGxlbg=="), is_base64(b"U25l*GxlbA=="), is_base64(b"U25lbGxlbg==],")
    (True, False, False)
    """
    rest = text.translate(None, BASE64)
    if len(text) % 4 or not text or rest not in {b"", b"=", b"=="}:
        return False
    last = text[-4:]
    return (
        text.endswith(rest)
        and binascii.b2a_base64(binascii.a2b_base64(last), newline=False) == last
    )


def read_header(source: Source) -> Header | None:
    """What the picture is, or None when no known signature stands at its beginning."""
    kind = kind_of(source.read(0, 32))
    reader = {"jpeg": _read_jpeg, "png": _read_png, "webp": _read_webp}.get(kind)
    if reader is not None:
        return reader(source)
    return Header(kind) if kind else None


def kind_of(head: bytes) -> str:
    """The kind of picture that begins with these bytes (12 are enough), or an empty text.

    >>> kind_of(b"GIF89a")
    'gif'
    """
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] == b"ftyp" and head[8:12] in {b"avif", b"avis"}:
        return "avif"
    return "ppm" if _NETPBM.match(head) else ""


_SIGNATURES = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),
)


def describe_foreign(head: bytes) -> tuple[str, str]:
    """What bytes are that are no picture, for people, and a hint what to do (often empty)."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:400].lower()
    if head[4:8] == b"ftyp" and head[8:12].lower() in _HEIC_BRANDS:
        return "a HEIC photo", "convert it to JPEG or PNG first"
    if b"<svg" in start and b"<html" not in start:
        return "an SVG drawing", "render it to PNG first"
    for signature, what, hint in _FOREIGN:
        if start.startswith(signature):
            return what, hint
    return "no picture", ""


_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}
_FOREIGN = (
    (b"<!doctype html", "an HTML page", "download it again"),
    (b"<html", "an HTML page", "download it again"),
    (b"<?xml", "an XML document", ""),
    (b"{", "a JSON document", "download it again"),
    (b"%pdf", "a PDF document", "render its page to PNG first"),
    (b"version https://git-lfs", "a Git LFS pointer", "fetch the file itself: git lfs pull"),
    (b"pk\x03\x04", "a ZIP archive", "unpack it first"),
    (b"\x1f\x8b", "a gzip file", "unpack it first"),
    (b"8bps", "a Photoshop document", "export it to PNG first"),
    (b"http://", "a web address", "download the picture: only data URIs and files are read"),
    (b"https://", "a web address", "download the picture: only data URIs and files are read"),
)


def find_jpeg_end(data: bytes) -> int | None:
    """Where the first picture of a JPEG file ends, just after its end marker; None without one."""
    place = 2
    while place + 4 <= len(data):
        found = _JPEG_END.search(data, place)
        if found is None:
            return None
        marker = data[found.end() - 1]
        if marker == 0xD9:
            return found.end()
        length = data[found.end() : found.end() + 2]
        place = found.end() + int.from_bytes(length, "big")
    return None


def _read_jpeg(source: Source) -> Header:
    closed = source.read(max(source.size - 2, 0), source.size) == b"\xff\xd9"
    header, place, exif_seen = Header("jpeg", end=source.size if closed else None), 2, False
    for _ in range(MOST_PARTS):
        head = source.read(place, place + 20)
        if len(head) < 4 or head[0] != 0xFF:
            break
        marker = head[1]
        if marker == 0xFF:
            place += 1
            continue
        end = place + 2 + int.from_bytes(head[2:4], "big")
        if marker in _FRAMES:
            if len(head) < 10:
                return replace(header, end=None)
            bits, height, width, channels = struct.unpack(">BHHB", head[4:10])
            common = marker in {0xC0, 0xC1, 0xC2}
            plain = common and bits == 8 and channels == 3
            return replace(header, width=width, height=height, plain=plain)
        if marker == 0xE1 and head[4:10] == b"Exif\0\0" and not exif_seen:
            header, exif_seen = _with_exif(header, source, (place + 10, end)), True
        elif marker == 0xE1 and head[4:20] == b"http://ns.adobe.":
            header = _with_xmp(header, source.read(place, end))
        elif marker == 0xE2 and head[4:8] == b"MPF\0":
            header = replace(header, index=(place, end))
        elif marker == 0xEE and head[4:9] == b"Adobe":
            header = replace(header, adobe=True)
        if end > MOST_TEXT:
            header = replace(header, bulky=True)
        place = end
    return replace(header, end=None)


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def without_texts(header: Header, data: bytes) -> bytes:
    """A JPEG or PNG without texts, colour profiles and previews; its pixels stay as they are."""
    place = 2 if header.kind == "jpeg" else 8
    kept = [data[:place]]
    while place + 8 <= len(data):
        if header.kind == "jpeg":
            marker, end = data[place + 1], place + 2 + int.from_bytes(data[place + 2 : place + 4])
            if data[place] != 0xFF or marker in _FRAMES:
                break
            is_text = (0xE1 <= marker <= 0xEF and marker != 0xEE) or marker == 0xFE
        else:
            end = place + 12 + int.from_bytes(data[place : place + 4])
            is_text = data[place + 4 : place + 8] in _TEXT_CHUNKS
        if not is_text:
            kept.append(data[place:end])
        place = end
    return b"".join((*kept, data[place:]))


def _read_png(source: Source) -> Header:
    header, place, room = Header("png"), 8, MOST_TEXT
    for _ in range(MOST_PARTS):
        head = source.read(place, place + 8)
        if len(head) < 8:
            break
        length, name = int.from_bytes(head[:4], "big"), head[4:]
        body = place + 8
        place = body + length + 4
        if name == b"IHDR":
            head = source.read(body, body + 10)
            if len(head) == 10:
                width, height, bits, colour = struct.unpack(">IIBB", head)
                plain = (bits, colour) == (8, 2)
                header = replace(header, width=width, height=height, plain=plain)
        elif name == b"tRNS":
            header = replace(header, plain=False)
        elif name == b"acTL":
            header = replace(header, plain=False, animated=True)
        elif name == b"eXIf":
            header = _with_exif(header, source, (body, body + length))
        elif name in _TEXT_CHUNKS:
            text = source.read(body, body + length) if length <= room else b""
            header, n_bytes = _with_png_text(header, name, text, room=room)
            room -= n_bytes
            if length > room or room < 0:
                header = replace(header, bulky=True)
        elif name == b"IEND":
            return replace(header, end=place if place <= source.size else None)
    return header


def _with_png_text(header: Header, name: bytes, chunk: bytes, *, room: int) -> tuple[Header, int]:
    """The header with what a text says of the orientation, and the bytes of the unpacked text."""
    key, _, text = chunk.partition(b"\0")
    is_packed = name in {b"zTXt", b"iCCP"}
    if name == b"iTXt":
        is_packed, text = text[:1] == b"\1", text[2:].split(b"\0", 2)[-1]
    elif is_packed:
        text = text[1:]
    if is_packed:
        try:
            text = zlib.decompressobj().decompress(text, room + 1)
        except zlib.error:
            return header, len(chunk)
    if key.lower().startswith(b"raw profile type ") and len(text) <= room:
        # ImageMagick writes a name, a length, and the profile in hexadecimal digits.
        try:
            text = bytes.fromhex("".join(text.decode("ascii").split()[2:]))
        except ValueError:
            return header, len(text)
        if text[:6] == b"Exif\0\0" and not header.exif:
            header = _with_exif(header, RawBytes(text), (0, len(text)))
    return _with_xmp(header, text), len(text)


def _with_xmp(header: Header, text: bytes) -> Header:
    found = _XMP_ORIENTATION.search(text)
    return replace(header, xmp=int(found[1])) if found else header


def _read_webp(source: Source) -> Header:
    end = 8 + int.from_bytes(source.read(4, 8), "little")
    whole = end <= source.size
    header, place = Header("webp", plain=True, end=end if whole else None), 12
    for _ in range(MOST_PARTS):
        head = source.read(place, place + 18)
        if len(head) < 8 or place >= end:
            break
        name, length, body = head[:4], int.from_bytes(head[4:8], "little"), head[8:]
        if name in {b"EXIF", b"XMP ", b"ICCP"} and length > MOST_TEXT:
            header = replace(header, bulky=True)
        elif name == b"XMP ":
            header = _with_xmp(header, source.read(place + 8, place + 8 + length))
        elif name == b"EXIF":
            header = _with_exif(header, source, (place + 8, place + 8 + length))
        elif name == b"VP8X" and len(body) >= 10:
            plain, animated = header.plain and not body[0] & 0x12, bool(body[0] & 0x02)
            width, height = (1 + int.from_bytes(body[i : i + 3], "little") for i in (4, 7))
            header = replace(header, width=width, height=height, plain=plain, animated=animated)
        elif header.width and name in {b"VP8 ", b"VP8L"}:
            alpha = name == b"VP8L" and len(body) > 4 and bool(body[4] & 0x10)
            header = replace(header, plain=header.plain and not alpha)
        elif name == b"VP8 " and len(body) >= 10:
            width, height = (n & 0x3FFF for n in struct.unpack("<HH", body[6:10]))
            header = replace(header, width=width, height=height)
        elif name == b"VP8L" and len(body) >= 5:
            bits = int.from_bytes(body[1:5], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
            plain = header.plain and not bits >> 28 & 1
            header = replace(header, width=width, height=height, plain=plain)
        place += 8 + length + length % 2
    return header


def _with_exif(header: Header, source: Source, place: tuple[int, int]) -> Header:
    orientation = _orientation(source, place)
    if orientation is None:
        return replace(header, exif_broken=True)
    return replace(header, exif=orientation)


def _orientation(source: Source, place: tuple[int, int]) -> int | None:
    """The orientation that an EXIF block gives, 0 without one, None when the block is broken."""
    start, end = place
    if source.read(start, start + 6) == b"Exif\0\0":
        start += 6
    head = source.read(start, min(start + 8, end))
    if len(head) < 8 or head[:4] not in {b"II*\0", b"MM\0*"}:
        return None
    order: Literal["little", "big"] = "little" if head[:1] == b"I" else "big"
    table = start + int.from_bytes(head[4:8], order)
    count = int.from_bytes(source.read(table, min(table + 2, end)), order)
    entries = source.read(table + 2, min(table + 2 + 12 * count, end))
    for i in range(0, len(entries) - 11, 12):
        if int.from_bytes(entries[i : i + 2], order) == ORIENTATION_TAG:
            entry = entries[i : i + 12]
            width = {1: 1, 3: 2, 4: 4}.get(int.from_bytes(entry[2:4], order), 0)
            value = int.from_bytes(entry[8 : 8 + width], order)
            return value if 1 <= value <= 8 else 1
    return 0 if table + 2 <= end and len(entries) == 12 * count else None


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


def _header(stream: BinaryIO, image: Image) -> Header | None:
    if image.end is None:
        return read_header(_File(stream, stream.seek(0, 2)))
    stream.seek(image.start)
    head = stream.read(min(1024, image.end - image.start))
    try:
        if b"\\" in head:
            # A text with escaped slashes has no fixed places, so it is decoded whole.
            stream.seek(image.start)
            text = msgspec.json.decode(stream.read(image.end - image.start), type=str)
            payload = text.partition(",")[2] if text[:5].lower() == "data:" else text
            return read_header(RawBytes(binascii.a2b_base64(payload)))
        begin = image.start + 1
        if head[1:6].lower() == b"data:":
            begin = image.start + head.find(b",") + 1
        stream.seek(image.end - 3)
        padding = stream.read(2).count(b"=")
        return read_header(_Base64Part(stream, begin, image.end - 1, padding))
    except (binascii.Error, msgspec.DecodeError):
        return None
