"""What `snellen.pictures.prepare` promises of the pictures that models are shown."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import struct
import urllib.parse
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from snellen import records
from snellen.errors import ImageError, SettingsError
from snellen.pictures import prepare

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
UNDO = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
"""EXIF orientation to the transposition that stores an upright picture that way."""


def encode(pixels: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    pixels.save(buffer, kind, **options)
    return buffer.getvalue()


def scene(width: int = 96, height: int = 64) -> Image.Image:
    """Upright: red on top, blue at the bottom, a green mark at the left."""
    pixels = Image.new("RGB", (width, height), WHITE)
    pixels.paste((220, 0, 0), (0, 0, width, height // 4))
    pixels.paste((0, 0, 220), (0, height - height // 4, width, height))
    pixels.paste((0, 160, 0), (0, height // 2 - 8, 16, height // 2 + 8))
    return pixels


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


def stored(folder: Path, data: bytes, name: str = "picture.bin") -> records.Image:
    path = folder / name
    path.write_bytes(data)
    return prepare.image_from_path(path)


def in_row(folder: Path, text: str, *, escape: Callable[[str], str] = json.dumps) -> records.Image:
    """A picture that stands as a JSON string in the middle of a data file."""
    before, literal = b'{"image": ', escape(text).encode()
    path = folder / "rows.jsonl"
    path.write_bytes(before + literal + b', "id": 1}\n')
    digest = hashlib.sha256(literal).hexdigest()
    end = len(before) + len(literal)
    return records.Image("row 1", digest, str(path), start=len(before), end=end)


def sent(picture: prepare.Picture) -> bytes:
    return base64.b64decode(picture.base64, validate=True)


def pixels_of(picture: prepare.Picture) -> np.ndarray:
    """What a server sees that opens the picture plainly; three channels or the test fails."""
    opened = Image.open(io.BytesIO(sent(picture)))
    assert opened.mode == "RGB"
    assert opened.size == (picture.width, picture.height)
    assert Image.MIME[opened.format or ""] == picture.mime
    return np.asarray(opened)


def near(pixels: np.ndarray, x: int, y: int, colour: tuple[int, int, int], by: int = 12) -> bool:
    return bool(np.abs(pixels[y, x].astype(int) - colour).max() <= by)


def broken_exif_jpeg() -> bytes:
    plain = encode(Image.new("RGB", (64, 64), (0, 160, 0)), "JPEG")
    payload = b"Exif\0\0" + b"QQQQ" + bytes(16)
    return plain[:2] + b"\xff\xe1" + (len(payload) + 2).to_bytes(2, "big") + payload + plain[2:]


def with_png_chunk(data: bytes, name: bytes, body: bytes) -> bytes:
    """The PNG with one more chunk after its header."""
    chunk = struct.pack(">I", len(body)) + name + body
    return data[:33] + chunk + struct.pack(">I", zlib.crc32(name + body)) + data[33:]


FIT = {
    "jpeg": lambda: encode(scene(), "JPEG"),
    "progressive jpeg": lambda: encode(scene(), "JPEG", progressive=True),
    "jpeg upright by tag": lambda: encode(scene(), "JPEG", exif=exif(1)),
    "jpeg with profile": lambda: encode(scene(), "JPEG", icc_profile=bytes(90_000)),
    "png": lambda: encode(scene(), "PNG"),
    "png with gamma": lambda: with_png_chunk(encode(scene(), "PNG"), b"gAMA", b"\0\0\x80\0"),
    "lossless webp": lambda: encode(scene(), "WEBP", lossless=True),
    "lossy webp": lambda: encode(scene(), "WEBP"),
    "webp with upright exif": lambda: encode(scene(), "WEBP", exif=exif(1)),
}


@pytest.mark.parametrize("kind", FIT)
def test_fit_pictures_pass_byte_for_byte(tmp_path: Path, kind: str) -> None:
    """A fit file is sent as it is, without any note, and without being mended."""
    data = FIT[kind]()
    picture = prepare.prepare_fast(stored(tmp_path, data))
    assert picture is not None
    assert sent(picture) == data
    assert picture.notes == ()
    assert pixels_of(picture).shape == (64, 96, 3)


@pytest.mark.parametrize("kind", FIT)
def test_fit_data_uris_keep_their_text(tmp_path: Path, kind: str) -> None:
    """A clean data URI in a data file travels as text: the same base64, never re-coded."""
    text = base64.b64encode(FIT[kind]()).decode()
    mime = "image/" + next(k for k in ("jpeg", "png", "webp") if k in kind)
    picture = prepare.prepare_fast(in_row(tmp_path, f"data:{mime};base64,{text}"))
    assert picture is not None
    assert picture.base64 == text.encode()
    assert picture.digest == hashlib.sha256(text.encode()).hexdigest()
    assert picture.notes == ()
    assert b"".join(picture.data_uri_parts).decode() == f"data:{mime};base64,{text}"


@pytest.mark.parametrize(
    "label", ["", "data:image/jpeg;base64,", "data:image/image/png;base64,", "data:;base64,"]
)
def test_label_is_never_trusted(tmp_path: Path, label: str) -> None:
    """Whatever a data URI calls itself, its picture is sent under the type that its bytes have."""
    data = encode(scene(), "PNG")
    image = in_row(tmp_path, label + base64.b64encode(data).decode())
    picture = prepare.prepare_fast(image)
    assert picture is not None
    assert picture.mime == "image/png"
    assert sent(picture) == data


def test_wrong_label_is_noted(tmp_path: Path) -> None:
    """A label that the bytes contradict leaves a note."""
    text = base64.b64encode(encode(scene(), "PNG")).decode()
    picture = prepare.prepare(in_row(tmp_path, f"data:image/webp;base64,{text}"))
    assert picture.notes == ("labelled image/webp, is image/png",)


UNCLEAN: dict[str, Callable[[bytes], str]] = {
    "wrapped": lambda data: base64.encodebytes(data).decode(),
    "padding lost": lambda data: base64.b64encode(data).decode().rstrip("="),
    "url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "percent-encoded": lambda data: urllib.parse.quote(base64.b64encode(data).decode(), safe=""),
    "spaces around": lambda data: f"  {base64.b64encode(data).decode()}\n",
}


@pytest.mark.parametrize("how", UNCLEAN)
@pytest.mark.parametrize("label", ["", "data:image/png;base64,"])
def test_unclean_base64_is_mended_to_the_same_bytes(tmp_path: Path, how: str, label: str) -> None:
    """Wrapped, URL-safe, percent-encoded or unpadded base64 gives the file's own bytes."""
    plain = encode(scene(97, 65), "PNG")
    data = with_png_chunk(plain, b"teXt", bytes((1 - len(plain)) % 3))
    assert base64.b64encode(data).endswith(b"==")
    image = in_row(tmp_path, label + UNCLEAN[how](data))
    assert prepare.prepare_fast(image) is None
    picture = prepare.prepare(image)
    assert sent(picture) == data
    assert picture.notes == ("data URI rewritten",)


def test_data_uri_without_base64(tmp_path: Path) -> None:
    """A data URI whose bytes are percent-encoded, without base64, is read too."""
    data = encode(scene(), "PNG")
    image = in_row(tmp_path, "data:image/png," + urllib.parse.quote_from_bytes(data))
    assert sent(prepare.prepare(image)) == data


@pytest.mark.parametrize(
    "escape",
    [
        lambda text: json.dumps(text).replace("/", "\\/"),
        lambda text: json.dumps(text).replace("A", "\\u0041"),
    ],
    ids=["slashes", "code points"],
)
def test_json_escapes_are_undone(tmp_path: Path, escape: Callable[[str], str]) -> None:
    """A JSON string with escapes holds the same picture as one without."""
    text = "data:image/png;base64," + base64.b64encode(encode(scene(), "PNG")).decode()
    image = in_row(tmp_path, text, escape=escape)
    assert prepare.read(image) == text.encode()
    picture = prepare.prepare_fast(image)
    assert picture is not None
    assert picture.base64 == text.partition(",")[2].encode()


def test_rewritten_data_file_is_noticed(tmp_path: Path) -> None:
    """When the data file no longer holds a string at its place, the error says to start again."""
    image = in_row(tmp_path, "data:image/png;base64,AAAA")
    Path(image.path).write_bytes(b'{"image": 1}')
    with pytest.raises(ImageError, match="row 1") as caught:
        prepare.prepare(image)
    assert "changed" in caught.value.hint


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pictures_are_turned_upright(tmp_path: Path, orientation: int, kind: str) -> None:
    """All eight EXIF orientations give the same upright picture, to the model and to masks."""
    pixels = scene()
    if orientation in UNDO:
        pixels = pixels.transpose(Image.Transpose(UNDO[orientation]))
    options = {"quality": 95} if kind == "JPEG" else {"lossless": True} if kind == "WEBP" else {}
    image = stored(tmp_path, encode(pixels, kind, exif=exif(orientation), **options))
    picture = prepare.prepare(image)
    seen = pixels_of(picture)
    assert (picture.width, picture.height) == (96, 64)
    assert near(seen, 60, 4, (220, 0, 0))
    assert near(seen, 60, 60, (0, 0, 220))
    assert near(seen, 4, 32, (0, 160, 0))
    assert near(seen, 92, 32, WHITE)
    assert np.array_equal(np.asarray(prepare.open_upright(image)), seen)
    turned = any(note == f"turned upright (EXIF {orientation})" for note in picture.notes)
    assert turned == (orientation > 1 and kind != "TIFF")


def test_sent_picture_has_no_orientation_left(tmp_path: Path) -> None:
    """A turned picture carries no tag that would make a server turn it again."""
    image = stored(tmp_path, encode(scene(), "JPEG", exif=exif(6)))
    assert not Image.open(io.BytesIO(sent(prepare.prepare(image)))).getexif()


def test_broken_exif_is_ignored(tmp_path: Path) -> None:
    """A picture with an unreadable EXIF block is sent as it is, with a note."""
    data = broken_exif_jpeg()
    picture = prepare.prepare(stored(tmp_path, data))
    assert sent(picture) == data
    assert picture.notes == ("EXIF unreadable: ignored",)
    assert prepare.open_upright(data).size == (64, 64)


def test_grey_and_alpha(tmp_path: Path) -> None:
    """A two-channel picture becomes three-channel RGB; where it is opaque its values stay."""
    pixels = Image.new("LA", (80, 80), (200, 255))
    pixels.paste((20, 255), (20, 20, 60, 60))
    seen = pixels_of(prepare.prepare(stored(tmp_path, encode(pixels, "PNG"))))
    assert tuple(seen[0, 0]) == (200, 200, 200)
    assert tuple(seen[40, 40]) == (20, 20, 20)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_one_channel_becomes_three(tmp_path: Path, kind: str) -> None:
    """Grey pictures are sent as three-channel RGB, so that no server dies of them."""
    ramp = Image.linear_gradient("L").resize((224, 224))
    data = encode(ramp, kind, quality=90)
    picture = prepare.prepare(stored(tmp_path, data))
    seen = pixels_of(picture)
    assert np.array_equal(seen[..., 1], np.asarray(Image.open(io.BytesIO(data))))
    assert picture.notes == ("grey to RGB", "saved as PNG")
    in_text = prepare.prepare(in_row(tmp_path, base64.b64encode(data).decode()))
    assert in_text == picture


def test_deep_grey_keeps_its_ramp(tmp_path: Path) -> None:
    """A 16-bit ramp stays a ramp in 8 bits."""
    ramp = np.tile(np.linspace(0, 65535, 256, dtype=np.uint16), (64, 1))
    picture = prepare.prepare(stored(tmp_path, encode(Image.fromarray(ramp), "PNG")))
    assert list(pixels_of(picture)[10, :, 0]) == list(range(256))
    assert "16-bit grey scaled to 8 bit" in picture.notes


def test_real_numbers_are_scaled_over_their_range(tmp_path: Path) -> None:
    """Floating-point grey of any range fills 0 to 255, and what is no number is black."""
    values = np.linspace(-5, 5, 64 * 64, dtype=np.float32).reshape(64, 64)
    values[0, 0] = np.nan
    seen = pixels_of(prepare.prepare(stored(tmp_path, encode(Image.fromarray(values), "TIFF"))))
    assert (seen[0, 1, 0], seen[-1, -1, 0]) == (0, 255)


@pytest.mark.parametrize("marked", [True, False])
def test_printing_colours_are_not_inverted(tmp_path: Path, marked: bool) -> None:
    """CMYK patches arrive as red, green and blue, with Adobe's mark or without it."""
    pixels = Image.new("CMYK", (120, 40), (0, 255, 255, 0))
    pixels.paste((255, 0, 255, 0), (40, 0, 80, 40))
    pixels.paste((255, 255, 0, 0), (80, 0, 120, 40))
    data = encode(pixels, "JPEG", quality=95)
    mark = data.index(b"\xff\xee")
    if not marked:
        data = data[:mark] + data[mark + 2 + int.from_bytes(data[mark + 2 : mark + 4], "big") :]
    picture = prepare.prepare(stored(tmp_path, data))
    seen = pixels_of(picture)
    for x, colour in ((20, RED), (60, GREEN), (100, BLUE)):
        assert near(seen, x, 20, colour)
    assert ("CMYK without Adobe mark taken as inverted" in picture.notes) != marked


def test_transparent_pixels_lie_on_the_ground(tmp_path: Path) -> None:
    """Transparent pixels show the stated ground, half-transparent ones a mixture."""
    pixels = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    pixels.paste((255, 0, 0, 255), (0, 0, 20, 40))
    pixels.paste((0, 0, 0, 128), (20, 0, 40, 40))
    image = stored(tmp_path, encode(pixels, "PNG"))
    picture = prepare.prepare(image)
    seen = pixels_of(picture)
    assert [tuple(seen[5, x]) for x in (5, 30, 50)] == [RED, (127, 127, 127), WHITE]
    assert "alpha on white" in picture.notes
    dark = prepare.prepare(image, prepare.PictureRules(background=(0, 0, 64)))
    assert tuple(pixels_of(dark)[5, 50]) == (0, 0, 64)
    assert "alpha on #000040" in dark.notes


def test_opaque_alpha_changes_no_pixel(tmp_path: Path) -> None:
    """An alpha channel that is opaque all over goes, and the colours stay."""
    picture = prepare.prepare(stored(tmp_path, encode(scene().convert("RGBA"), "PNG")))
    assert np.array_equal(pixels_of(picture), np.asarray(scene()))
    assert "opaque alpha dropped" in picture.notes


@pytest.mark.parametrize("lossless", [True, False])
def test_webp_with_alpha(tmp_path: Path, lossless: bool) -> None:
    """A WebP with transparency is laid on the ground as well."""
    pixels = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    pixels.paste((255, 0, 0, 255), (0, 0, 20, 40))
    image = stored(tmp_path, encode(pixels, "WEBP", lossless=lossless))
    assert prepare.prepare_fast(image) is None
    assert near(pixels_of(prepare.prepare(image)), 50, 5, WHITE)


def test_transparent_colours(tmp_path: Path) -> None:
    """A transparent colour or palette entry shows the ground too."""
    keyed = encode(Image.new("RGB", (32, 32), GREEN), "PNG", transparency=GREEN)
    indexed = Image.new("P", (32, 32), 1)
    indexed.putpalette([*BLUE, *GREEN])
    palette = encode(indexed, "PNG", transparency=1)
    for data in (keyed, palette):
        image = stored(tmp_path, data)
        assert prepare.prepare_fast(image) is None
        assert tuple(pixels_of(prepare.prepare(image))[3, 3]) == WHITE


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("mode", ["P", "1"])
def test_palettes_and_bilevel_become_rgb(tmp_path: Path, kind: str, mode: str) -> None:
    """Palette and black-and-white pictures of any container become RGB PNG."""
    pixels = scene().convert(mode)
    picture = prepare.prepare(stored(tmp_path, encode(pixels, kind)))
    assert np.array_equal(pixels_of(picture), np.asarray(pixels.convert("RGB")))
    assert picture.mime == "image/png"
    assert picture.notes[-1] == "saved as PNG"


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_animations_give_their_first_frame(tmp_path: Path, kind: str) -> None:
    """Of an animation the first frame is sent as a still picture, with a note."""
    first, *rest = (Image.new("RGB", (64, 64), colour) for colour in (RED, GREEN, BLUE))
    more = {"lossless": True} if kind == "WEBP" else {}
    data = encode(first, kind, save_all=True, append_images=rest, duration=100, loop=0, **more)
    image = stored(tmp_path, data)
    assert prepare.prepare_fast(image) is None
    picture = prepare.prepare(image)
    assert (pixels_of(picture) == RED).all()
    assert picture.mime == "image/png"
    assert "first of several frames" in picture.notes


def test_first_picture_of_a_multi_picture_file(tmp_path: Path) -> None:
    """Of a multi-picture JPEG the first picture is sent, with its own compressed data."""
    data = encode(scene(), "MPO", save_all=True, append_images=[Image.new("RGB", (96, 64), GREEN)])
    picture = prepare.prepare(stored(tmp_path, data))
    opened = Image.open(io.BytesIO(sent(picture)))
    assert (picture.mime, opened.format, opened.size) == ("image/jpeg", "JPEG", (96, 64))
    assert near(pixels_of(picture), 60, 4, (220, 0, 0))
    assert picture.notes == ("first of several pictures in the file",)
    assert len(picture.base64) < len(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_rubbish_after_the_end_is_cut_off(tmp_path: Path, kind: str) -> None:
    """Bytes behind a picture's end are dropped without encoding it anew."""
    data = encode(scene(), kind)
    picture = prepare.prepare(stored(tmp_path, data + bytes(10)))
    assert sent(picture) == data
    assert picture.notes == ("10 bytes after the picture's end cut off",)


def test_formats_that_are_not_taken(tmp_path: Path) -> None:
    """A format outside the rules is re-encoded losslessly, or as JPEG where only that is taken."""
    image = stored(tmp_path, encode(scene(), "WEBP", lossless=True))
    assert prepare.prepare(image).mime == "image/webp"
    png = prepare.prepare(image, prepare.PictureRules(formats=("jpeg", "png")))
    assert np.array_equal(pixels_of(png), np.asarray(scene()))
    jpeg = prepare.prepare(image, prepare.PictureRules(formats=("jpeg",)))
    assert jpeg.mime == "image/jpeg"
    assert "saved as JPEG of quality 95" in jpeg.notes


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000", "PPM"])
def test_other_containers_are_read(tmp_path: Path, kind: str) -> None:
    """Further formats that Pillow decodes are sent as PNG."""
    picture = prepare.prepare(stored(tmp_path, encode(scene(), kind)))
    assert near(pixels_of(picture), 60, 4, (220, 0, 0))
    assert picture.notes == ("saved as PNG",)


def test_large_pictures_shrink_to_the_limits(tmp_path: Path) -> None:
    """Limits on pixels and on the longer side shrink a picture in proportion."""
    image = stored(tmp_path, encode(scene(400, 200), "PNG"))
    by_side = prepare.prepare(image, prepare.PictureRules(max_side=100))
    assert (by_side.width, by_side.height) == (100, 50)
    assert by_side.notes == ("shrunk from 400 x 200", "saved as PNG")
    by_pixels = prepare.prepare(image, prepare.PictureRules(max_pixels=20_000))
    assert (by_pixels.width, by_pixels.height) == (200, 100)
    assert prepare.prepare(image, prepare.PictureRules(max_side=400)).notes == ()
    assert prepare.open_upright(image, prepare.PictureRules(max_side=100)).size == (400, 200)


def test_long_pictures_are_padded(tmp_path: Path) -> None:
    """A long strip that shrinks below the least side is padded on the ground, never refused."""
    image = stored(tmp_path, encode(Image.new("RGB", (690, 15420), (240, 0, 0)), "PNG"))
    picture = prepare.prepare(image, prepare.PictureRules(max_side=448))
    seen = pixels_of(picture)
    assert (picture.width, picture.height) == (28, 448)
    assert near(seen, 5, 200, (240, 0, 0))
    assert tuple(seen[200, 27]) == WHITE
    assert any(note.startswith("padded") for note in picture.notes)


def test_no_picture_is_longer_than_two_hundred_times_its_width(tmp_path: Path) -> None:
    """Beyond that many servers refuse: such a picture is padded."""
    picture = prepare.prepare(stored(tmp_path, encode(Image.new("RGB", (30, 7000)), "PNG")))
    assert (picture.width, picture.height) == (35, 7000)


def test_small_pictures_grow_by_whole_factors(tmp_path: Path) -> None:
    """Tiny pictures of equal raw bytes but unlike shapes stay two; each pixel becomes a block."""
    raw = bytes(range(72))
    wide, tall = (Image.frombytes("RGB", size, raw) for size in ((6, 4), (4, 6)))
    one = prepare.prepare(stored(tmp_path, encode(wide, "PNG")))
    other = prepare.prepare(stored(tmp_path, encode(tall, "PNG")))
    assert (one.width, one.height, other.width, other.height) == (42, 28, 28, 42)
    assert np.array_equal(pixels_of(one)[3::7, 3::7], np.asarray(wide))
    assert one.digest != other.digest


def bomb() -> bytes:
    """A PNG that claims 196 megapixels: the header alone must be enough to refuse it."""
    body = struct.pack(">IIBBBBB", 14_000, 14_000, 1, 0, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + body
    return head + struct.pack(">I", zlib.crc32(b"IHDR" + body)) + encode(scene(), "PNG")[33:]


def huge_gif() -> bytes:
    return b"GIF89a" + struct.pack("<HH", 60_000, 60_000) + bytes(3) + b"," + bytes(20) + b";"


@pytest.mark.parametrize("make", [bomb, huge_gif])
def test_decompression_bombs_are_refused_undecoded(
    tmp_path: Path, make: Callable[[], bytes]
) -> None:
    """Too many pixels are refused from the header, whatever the file weighs."""
    with pytest.raises(ImageError, match=r"too many pixels: \d+ x \d+"):
        prepare.prepare(stored(tmp_path, make()))


def test_pixel_limit_is_a_setting(tmp_path: Path) -> None:
    """`refuse_pixels` decides, also for a file that would pass untouched."""
    image = stored(tmp_path, encode(scene(), "PNG"))
    with pytest.raises(ImageError, match="too many pixels"):
        prepare.prepare(image, prepare.PictureRules(refuse_pixels=6000))
    with pytest.raises(ImageError, match="too many pixels"):
        prepare.open_upright(image, prepare.PictureRules(refuse_pixels=6000))


def noise(side: int) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    return Image.fromarray(values)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_cut_pictures_are_refused(tmp_path: Path, kind: str, share: float) -> None:
    """A file that was cut off anywhere is refused by name; no grey filling."""
    data = encode(noise(100), kind)
    image = stored(tmp_path, data[: int(len(data) * share)], "cut.img")
    assert prepare.prepare_fast(image) is None
    with pytest.raises(ImageError, match=r"cut\.img"):
        prepare.prepare(image)


HOPELESS = {
    "empty": (b"", "empty"),
    "web page": (b"<html>404</html>", "HTML page"),
    "text": (b"no picture at all", "no picture"),
    "drawing": (b'<?xml version="1.0"?><svg xmlns="x"/>', "SVG drawing"),
    "phone photo": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC photo"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    "signature alone": (b"\x89PNG\r\n\x1a\n", "broken or cut off"),
    "jpeg start alone": (b"\xff\xd8\xff\xe0\xff\xd9", "broken or cut off"),
    "webp without chunks": (b"RIFF\x04\0\0\0WEBP", "broken or cut off"),
}


@pytest.mark.parametrize("what", HOPELESS)
def test_what_is_no_picture_is_named(tmp_path: Path, what: str) -> None:
    """The error names the file and what it holds instead of a picture, from file and data URI."""
    data, message = HOPELESS[what]
    with pytest.raises(ImageError, match=message) as caught:
        prepare.prepare(stored(tmp_path, data, "photo.png"))
    assert str(caught.value).startswith("photo.png: ")
    row = in_row(tmp_path, f"data:image/png;base64,{base64.b64encode(data).decode()}")
    with pytest.raises(ImageError, match=message):
        prepare.prepare(row)


@pytest.mark.parametrize("text", ["https://example.org/a.png", "images/a.png", "data:image/png"])
def test_text_that_holds_no_picture(tmp_path: Path, text: str) -> None:
    """A web address or a path where a data URI should be is refused with what was found."""
    with pytest.raises(ImageError, match=r"row 1: holds") as caught:
        prepare.prepare(in_row(tmp_path, text))
    assert caught.value.hint


def test_cut_base64(tmp_path: Path) -> None:
    """Base64 of an impossible length is refused, not filled up."""
    with pytest.raises(ImageError, match="cut off"):
        prepare.prepare(in_row(tmp_path, "iVBOR"))


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """A missing file and a folder are named as such, on loading and on sending."""
    with pytest.raises(ImageError, match="does not exist"):
        prepare.image_from_path(tmp_path / "gone.png")
    with pytest.raises(ImageError, match="folder"):
        prepare.image_from_path(tmp_path)
    with pytest.raises(ImageError, match=r"gone\.png: .*does not exist"):
        prepare.prepare(records.Image("gone.png", "0", str(tmp_path / "gone.png")))


def test_names_of_files_do_not_matter(tmp_path: Path) -> None:
    """Upper-case, wrong and foreign names, and links, all give the picture."""
    data = encode(scene(), "JPEG")
    for name in ("PHOTO.JPG", "photo.png", "数据 图 1.jpeg"):
        assert prepare.prepare(stored(tmp_path, data, name)).mime == "image/jpeg"
    (tmp_path / "link").symlink_to(tmp_path / "PHOTO.JPG")
    assert sent(prepare.prepare(prepare.image_from_path(tmp_path / "link"))) == data


def test_record_of_a_file(tmp_path: Path) -> None:
    """A file's record has the digest of its bytes and a name for people."""
    image = stored(tmp_path, b"abc", "a.png")
    assert (image.name, image.digest) == ("a.png", hashlib.sha256(b"abc").hexdigest())
    assert prepare.image_from_path(tmp_path / "a.png", name="item 7").name == "item 7"
    assert prepare.read(image) == b"abc"


def test_weight_limit(tmp_path: Path) -> None:
    """What weighs too much as PNG is sent as JPEG, and refused when it cannot be shrunk enough."""
    image = stored(tmp_path, encode(noise(100), "PNG"))
    jpeg = prepare.prepare(image, prepare.PictureRules(max_bytes=28_000))
    assert jpeg.mime == "image/jpeg"
    assert len(sent(jpeg)) <= 28_000
    with pytest.raises(ImageError, match="weighs"):
        prepare.prepare(image, prepare.PictureRules(max_bytes=700))


def test_heavy_photos_stay_lossy(tmp_path: Path) -> None:
    """A turned photo that would weigh more than 5 MB as PNG is saved as JPEG, near the original."""
    photo = encode(noise(1400), "JPEG", quality=95, exif=exif(3))
    picture = prepare.prepare(stored(tmp_path, photo))
    assert picture.mime == "image/jpeg"
    assert picture.notes == ("turned upright (EXIF 3)", "saved as JPEG of quality 95")
    original = np.asarray(prepare.open_upright(photo)).astype(int)
    assert np.abs(pixels_of(picture) - original).mean() < 3


def test_lost_end_mark_alone_loses_no_picture(tmp_path: Path) -> None:
    """A PNG without its end chunk still has all its pixels, and is saved whole."""
    data = encode(noise(60), "PNG")
    picture = prepare.prepare(stored(tmp_path, data[:-12]))
    assert np.array_equal(pixels_of(picture), np.asarray(noise(60)))
    assert picture.notes == ("end of the file missing, all pixels there", "saved as PNG")


def test_mending_repeats_to_the_byte(tmp_path: Path) -> None:
    """The same file and rules give the same bytes, whatever metadata the file carries."""
    one = stored(tmp_path, encode(scene().convert("RGBA"), "PNG"))
    first = prepare.prepare(one)
    dressed = encode(scene().convert("RGBA"), "PNG", icc_profile=b"profile", dpi=(72, 72))
    assert prepare.prepare(one) == first
    assert prepare.prepare(stored(tmp_path, dressed)).base64 == first.base64


def test_upright_pixels_from_anything(tmp_path: Path) -> None:
    """Records, paths, bytes and data URIs open to the same pixels."""
    data = encode(scene(), "PNG")
    image = stored(tmp_path, data)
    text = "data:image/png;base64," + base64.b64encode(data).decode()
    for source in (
        image,
        image.path,
        Path(image.path),
        data,
        text.encode(),
        in_row(tmp_path, text),
    ):
        assert np.array_equal(np.asarray(prepare.open_upright(source)), np.asarray(scene()))


def test_name_of_rules_tells_them_apart() -> None:
    """Rules that could send other bytes have another name; equal rules have the same."""
    others = [
        prepare.PictureRules(refuse_pixels=1),
        prepare.PictureRules(max_pixels=1000),
        prepare.PictureRules(max_side=1000),
        prepare.PictureRules(min_side=1),
        prepare.PictureRules(max_bytes=1),
        prepare.PictureRules(background=(0, 0, 0)),
        prepare.PictureRules(formats=("png",)),
    ]
    names = {rules.name for rules in others} | {prepare.PictureRules().name}
    assert len(names) == len(others) + 1
    assert prepare.PictureRules(formats=("webp", "png", "jpeg")).name == prepare.PictureRules().name


@pytest.mark.parametrize(
    "settings",
    [
        {"formats": ("gif",)},
        {"formats": ("webp",)},
        {"max_pixels": 0},
        {"max_side": 20},
        {"background": (0, 0, 300)},
    ],
)
def test_impossible_rules_are_refused(settings: dict[str, object]) -> None:
    """Rules that no picture could meet are refused when they are made."""
    with pytest.raises(SettingsError):
        prepare.PictureRules(**settings)  # type: ignore[arg-type]
