"""Pictures as a model gets them: untouched where any server takes them, mended once where not.

A fit picture (JPEG, PNG or WebP; three channels of 8 bits; upright; one frame; complete; within
the limits) is never decoded and passes byte for byte. All others are decoded, brought to upright
RGB and encoded anew, the same way for every model; `Picture.notes` says what was done.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from snellen import records
from snellen.errors import DataError, ImageError, SettingsError
from snellen.files import open_regular
from snellen.pictures import headers
from snellen.pictures.decode import decoding, exif_notes, hex_of, trim, upright

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

MENDING_VERSION = 1
"""Raised, from the first release on, whenever the same file and rules give other bytes.

Part of every request key.
"""

MAX_SOURCE_BYTES = 512 * 1024 * 1024
MAX_ASPECT = 200
ENLARGED_SIDE = 1024
QUALITIES = (95, 85, 75)
"""Of JPEG, one after the other until the file is light enough."""
LOSSY_AS_PNG_BYTES = 5_000_000
"""Above this a mended JPEG or AVIF stays lossy: public endpoints refuse single pictures of 5 MB."""

_URL_SAFE = bytes.maketrans(b"-_", b"+/")


@dataclass(frozen=True, slots=True)
class PictureRules:
    """What pictures may be like when they are sent.

    `refuse_pixels` is the stored size above which a file is refused before it is decoded.
    `max_pixels` and `max_side` shrink what is larger (None: never). A shorter side below
    `min_side` is enlarged by a whole factor while the longer one stays within 1024, and padded
    right and below otherwise; so is a picture more than 200 times as long as it is wide.
    `max_bytes` limits the encoded file, before base64. `background` is the ground (red, green,
    blue) under transparent pixels. `formats` may pass untouched; what is mended becomes PNG, or
    JPEG of quality 95 where PNG is not among the formats or would weigh too much: more than
    `max_bytes`, or more than 5 MB when the file was JPEG or AVIF. What is still too heavy becomes
    JPEG of lower quality, and is shrunk at last.

    Raises: SettingsError for values that nothing could fulfil.
    """

    refuse_pixels: int = headers.MOST_PIXELS
    max_pixels: int | None = None
    max_side: int | None = None
    min_side: int = 28
    max_bytes: int = 20_000_000
    background: tuple[int, int, int] = (255, 255, 255)
    formats: tuple[str, ...] = ("jpeg", "png", "webp")

    def __post_init__(self) -> None:
        if unknown := set(self.formats) - {"jpeg", "png", "webp"}:
            raise SettingsError(f"unknown picture format {min(unknown)!r}; jpeg, png, webp exist")
        if not {"jpeg", "png"} & set(self.formats):
            raise SettingsError("picture formats need jpeg or png: mended pictures become these")
        limits = [self.refuse_pixels, self.min_side, self.max_bytes]
        limits += [n for n in (self.max_pixels, self.max_side) if n is not None]
        if min(limits) < 1:
            raise SettingsError("picture limits must be 1 or more")
        if self.max_side is not None and self.max_side < self.min_side:
            raise SettingsError(f"max_side {self.max_side} is below min_side {self.min_side}")
        if len(self.background) != 3 or not all(0 <= c <= 255 for c in self.background):
            raise SettingsError(f"background {self.background} is not three numbers of 0 to 255")

    @property
    def name(self) -> str:
        """One line with every setting and the version of the mending, for request keys."""
        formats = ",".join(sorted(set(self.formats)))
        return (
            f"pictures-{MENDING_VERSION} refuse={self.refuse_pixels} pixels={self.max_pixels}"
            f" side={self.min_side}..{self.max_side} bytes={self.max_bytes}"
            f" ground={hex_of(self.background)} formats={formats}"
        )


DEFAULT_RULES = PictureRules()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture ready to be sent: `base64` is ASCII, `digest` its SHA-256 in hex.

    `width` and `height` are in pixels, as sent. `notes` say what was done to the picture, in
    order; none means that the file's own bytes are sent.
    """

    mime: str
    base64: bytes
    width: int
    height: int
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Computed when asked for: a run names pictures by what lies on the disk."""
        return hashlib.sha256(self.base64).hexdigest()

    @property
    def data_uri_parts(self) -> tuple[bytes, bytes]:
        """The two pieces of the picture's data URI, not joined: what they weigh is not copied."""
        return f"data:{self.mime};base64,".encode(), self.base64


def image_from_path(path: str | Path, name: str = "") -> records.Image:
    """The record of a picture file, with its digest; `name` is for people, the file's by default.

    Raises: ImageError when the file cannot be read.
    """
    path = Path(path)
    name = name or path.name
    with _reading(name), open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return records.Image(name=name, digest=digest, path=str(path))


def read(image: records.Image, *, checked: bool = False) -> bytes:
    """The bytes of a picture file, or the text of the data URI that stands in a data file.

    `checked` compares the digest: a stranger's run folder may name any file of this machine.

    Raises: ImageError when the file cannot be read or has changed.
    """
    with _reading(image.name), headers.open_stored(image) as file:
        end = file.seek(0, os.SEEK_END) if image.end is None else image.end
        if end - image.start > MAX_SOURCE_BYTES:
            raise ImageError(f"is larger than {MAX_SOURCE_BYTES:,} bytes", file=image.name)
        file.seek(image.start)
        data = file.read(end - image.start)
    if checked and image.row is None and hashlib.sha256(data).hexdigest() != image.digest:
        raise ImageError(
            f"{image.path} holds another picture than the recorded one",
            file=image.name,
            hint="restore the pictures to where they were when the run was made",
        )
    if image.end is None:
        return data
    name, hint = image.name, "the data file has changed since it was loaded: start again"
    if len(data) < 2 or data[:1] != b'"' or data[-1:] != b'"':
        raise ImageError("no JSON string stands where the picture should be", file=name, hint=hint)
    if b"\\" not in data:
        return data[1:-1]
    try:
        text: str = json.loads(data)
    except ValueError as error:
        raise ImageError(f"the picture's JSON string is broken: {error}", file=name) from error
    return text.encode(errors="surrogatepass")


def prepare_fast(image: records.Image, rules: PictureRules = DEFAULT_RULES) -> Picture | None:
    """The picture when it can pass untouched; None when `prepare` must look into it.

    Decodes nothing but headers: well under a millisecond for a picture of 300 KB.

    Raises: ImageError when the file cannot be read.
    """
    data = read(image)
    if image.end is None:
        header = headers.read_header(headers.RawBytes(data))
        if header is None or not _is_fit(header, len(data), rules):
            return None
        return _picture(header, b2a_base64(data, newline=False), exif_notes(header))
    label, payload, _ = _split_uri(data)
    if not headers.is_base64(payload):
        return None
    source = headers.Base64Text(payload)
    header = headers.read_header(source)
    if header is None or not _is_fit(header, source.size, rules):
        return None
    mime = f"image/{header.kind}"
    labelled = (f"labelled {label}, is {mime}",) if label and label != mime else ()
    return _picture(header, payload, (*labelled, *exif_notes(header)))


def prepare(image: records.Image, rules: PictureRules = DEFAULT_RULES) -> Picture:
    """The picture as it is sent to every model, mended where it must be.

    Raises: ImageError, with the picture's name, when it is missing, empty, cut off, no picture,
        or above the rules' limits.
    """
    picture = prepare_fast(image, rules)
    if picture is not None:
        return picture
    data = read(image)
    notes: tuple[str, ...] = ()
    if image.end is not None:
        clean = headers.is_base64(_split_uri(data)[1])
        notes = () if clean else ("data URI rewritten",)
        data = _bytes_of_uri(data, image.name)
    name = image.name
    header, data, trimmed = trim(_known_header(data, name), data)
    limit, ground = rules.refuse_pixels, rules.background
    with upright(header, data, name, limit=limit, ground=ground) as (full, done):
        if _is_fit(header, len(data), rules):
            text = b2a_base64(data, newline=False)
            return _picture(header, text, (*notes, *trimmed, *exif_notes(header)))
        with decoding(name):
            sized, resized = _resize(full, rules)
            lossy = header.kind in {"jpeg", "avif"}
            pixels, kind, data, saved = _encode(sized, name, rules, lossy=lossy)
    text, sent = b2a_base64(data, newline=False), headers.Header(kind, *pixels.size)
    return _picture(sent, text, (*notes, *trimmed, *done, *resized, *saved))


def open_upright(
    source: records.Image | str | Path | bytes, rules: PictureRules = DEFAULT_RULES
) -> Pixels:
    """The picture's pixels in RGB, upright and in full size: what boxes and masks refer to.

    These are the pixels that a model gets, before any shrinking, enlarging or padding. Bytes may
    be a picture file's or a data URI.

    Raises: ImageError as `prepare` does.
    """
    name = "picture" if isinstance(source, bytes) else str(source)
    is_recorded = isinstance(source, records.Image)
    if isinstance(source, str | Path):
        source = image_from_path(source)
    if isinstance(source, records.Image):
        name, slice_of_json = source.name, source.end is not None
        data = read(source, checked=is_recorded)
    else:
        data, slice_of_json = source, source[:5].lower() == b"data:"
    if slice_of_json:
        data = _bytes_of_uri(data, name)
    header, data, _ = trim(_known_header(data, name), data)
    limit, ground = rules.refuse_pixels, rules.background
    with upright(header, data, name, limit=limit, ground=ground) as (pixels, _done):
        return pixels


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ImageError("the picture file does not exist", file=name) from error
    except IsADirectoryError as error:
        raise ImageError("is a folder, not a picture file", file=name) from error
    except ImageError:
        raise
    except DataError as error:
        raise ImageError(error.message, file=name, hint=error.hint) from error
    except (OSError, ValueError) as error:
        raise ImageError(f"the picture file cannot be read: {error}", file=name) from error


def _split_uri(text: bytes) -> tuple[str, bytes, bool]:
    """Label, payload, and whether the payload claims to be base64, of a data URI or bare base64."""
    if text[:5].lower() != b"data:":
        return "", text, True
    comma = text.find(b",", 5, 512)
    label, *options = text[5 : max(comma, 5)].decode("latin-1").lower().split(";")
    claims_base64 = "base64" in (option.strip() for option in (label, *options))
    return label.strip(), text[comma + 1 if comma > 0 else 5 :], claims_base64


def _bytes_of_uri(text: bytes, name: str) -> bytes:
    """The file inside a data URI or bare base64, however the text is wrapped, escaped or padded."""
    text = text.strip()
    if text[:5].lower() == b"data:" and b"," not in text[:512]:
        hint = "a data URI is data:image/png;base64, and the file in base64"
        raise ImageError("holds a data URI without its comma", file=name, hint=hint)
    _, payload, claims_base64 = _split_uri(text)
    if not claims_base64 and headers.kind_of(plain := unquote_to_bytes(payload)):
        return plain
    if b"%" in payload:
        payload = unquote_to_bytes(payload)
    packed = payload.translate(_URL_SAFE, b" \t\r\n\f\v").rstrip(b"=")
    if strange := packed.translate(None, headers.BASE64):
        what, hint = headers.describe_foreign(payload[:512])
        found = what if hint else f"{chr(strange[0])!r} where base64 is due: {payload[:24]!r}..."
        raise ImageError(f"holds {found}", file=name, hint=hint or "give a data URI or a file")
    if len(packed) % 4 == 1:
        raise ImageError("its base64 text is cut off", file=name)
    return a2b_base64(packed + b"=" * (-len(packed) % 4))


def _known_header(data: bytes, name: str) -> headers.Header:
    if not data:
        raise ImageError("is empty (0 bytes)", file=name)
    header = headers.read_header(headers.RawBytes(data))
    if header is None:
        what, hint = headers.describe_foreign(data[:512])
        hint = hint or "JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, JPEG 2000 and PNM are read"
        raise ImageError(f"is {what}: it begins with {data[:12]!r}", file=name, hint=hint)
    return header


def _is_fit(header: headers.Header, size: int, rules: PictureRules) -> bool:
    shape = (header.width, header.height)
    return (
        header.plain
        and not header.is_marked
        and not header.bulky
        and header.end == size <= rules.max_bytes
        and header.index is None
        and header.kind in rules.formats
        and 0 < shape[0] * shape[1] <= rules.refuse_pixels
        and _target_sizes(shape, rules) == (shape, shape)
    )


def _picture(header: headers.Header, text: bytes, notes: tuple[str, ...]) -> Picture:
    return Picture(
        mime=f"image/{header.kind}",
        base64=text,
        width=header.width,
        height=header.height,
        notes=notes,
    )


def _target_sizes(
    size: tuple[int, int], rules: PictureRules
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The size to scale a picture to, and the size to pad it to after that."""
    width, height = _shrunk_size(size, rules)
    least = max(rules.min_side, math.ceil(max(width, height) / MAX_ASPECT))
    if min(width, height) >= least:
        return (width, height), (width, height)
    factor = math.ceil(least / min(width, height))
    large = (width * factor, height * factor)
    if (
        max(large) <= ENLARGED_SIDE
        and _shrunk_size(large, rules) == large
        and least == rules.min_side
    ):
        return large, large
    return (width, height), (max(width, least), max(height, least))


def _shrunk_size(size: tuple[int, int], rules: PictureRules) -> tuple[int, int]:
    scale = 1.0
    if rules.max_side is not None:
        scale = min(scale, rules.max_side / max(size))
    if rules.max_pixels is not None:
        scale = min(scale, math.sqrt(rules.max_pixels / (size[0] * size[1])))
    if scale >= 1:
        return size
    # The small addend keeps a side that is exactly at its limit from losing a pixel to rounding.
    width, height = (max(1, math.floor(side * scale + 1e-6)) for side in size)
    return width, height


def _resize(pixels: Pixels, rules: PictureRules) -> tuple[Pixels, tuple[str, ...]]:
    from PIL import Image

    old = pixels.size
    scaled, padded = _target_sizes(old, rules)
    notes: tuple[str, ...] = ()
    if max(scaled) > max(old):
        pixels = pixels.resize(scaled, Image.Resampling.NEAREST)
        notes += (f"enlarged {scaled[0] // old[0]} times from {old[0]} x {old[1]}",)
    elif scaled != old:
        pixels = pixels.resize(scaled, Image.Resampling.LANCZOS)
        notes += (f"shrunk from {old[0]} x {old[1]}",)
    if padded != scaled:
        ground = Image.new("RGB", padded, rules.background)
        ground.paste(pixels, (0, 0))
        pixels = ground
        notes += (f"padded right and below from {scaled[0]} x {scaled[1]}",)
    return pixels, notes


def _encode(
    pixels: Pixels, name: str, rules: PictureRules, *, lossy: bool
) -> tuple[Pixels, str, bytes, tuple[str, ...]]:
    """The pixels, kind, file and notes of an encoding within the limit of weight.

    Too heavy a picture becomes JPEG, then JPEG of lower quality, and is shrunk at last.

    Raises: ImageError when a picture of the smallest side is still too heavy.
    """
    from PIL import Image

    kind = "jpeg" if "jpeg" in rules.formats else "png"
    if "png" in rules.formats:
        data = _save(pixels, "PNG")
        limit = min(rules.max_bytes, LOSSY_AS_PNG_BYTES) if lossy else rules.max_bytes
        if len(data) <= limit:
            return pixels, "png", data, ("saved as PNG",)
    for quality in QUALITIES if kind == "jpeg" else ():
        data = _save(pixels, "JPEG", quality=quality)
        if len(data) <= rules.max_bytes:
            return pixels, kind, data, (f"saved as JPEG of quality {quality}",)
    small, weight = pixels, len(data)
    while len(data) > rules.max_bytes:
        scale = 0.95 * math.sqrt(rules.max_bytes / len(data))
        width, height = (math.floor(side * scale) for side in small.size)
        if min(width, height) < rules.min_side:
            message = f"weighs {weight:,} bytes as {kind.upper()}, more than {rules.max_bytes:,}"
            raise ImageError(message, file=name, hint="shrink the file, or raise the limit")
        small = pixels.resize((width, height), Image.Resampling.LANCZOS)
        data = _save(small, kind.upper(), quality=QUALITIES[-1])
    old = f"{pixels.width} x {pixels.height}"
    how = f" of quality {QUALITIES[-1]}" if kind == "jpeg" else ""
    notes = (f"shrunk from {old} to weigh no more than {rules.max_bytes:,} bytes",)
    return small, kind, data, (*notes, f"saved as {kind.upper()}{how}")


def _save(pixels: Pixels, kind: str, *, quality: int = 95) -> bytes:
    from io import BytesIO

    options = {"quality": quality, "subsampling": 0} if kind == "JPEG" else {}
    buffer = BytesIO()
    pixels.save(buffer, kind, **options)
    return buffer.getvalue()
