"""Pictures with marks and loads that readers differ on, from `tests/data/picture_cases.jsonl`."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from snellen.errors import ImageError
from snellen.pictures import headers, prepare
from snellen.pictures.decode import PixelBudget

PATH = Path(__file__).parents[1] / "data" / "picture_cases.jsonl"
CASES = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]
XMP_HEAD = b"http://ns.adobe.com/xap/1.0/\0"


def xmp(value: int, form: str = "attribute") -> bytes:
    """An XMP packet with the orientation, as an attribute or as an element."""
    mark = f'tiff:Orientation="{value}"' if form == "attribute" else ""
    inner = "" if mark else f"<tiff:Orientation>{value}</tiff:Orientation>"
    return (
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description {mark}>{inner}'
        "</rdf:Description></x:xmpmeta>"
    ).encode()


def chunk(name: str, body: bytes) -> bytes:
    kind = name.encode()
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check


def text_chunk(name: str, key: str, text: bytes) -> bytes:
    """A PNG chunk of text under a key, packed where the kind of chunk is, or asked for by `+`."""
    packed = zlib.compress(text)
    kind, plus = name[:4], name.endswith("+")
    body = {
        "tEXt": b"\0" + text,
        "zTXt": b"\0\0" + packed,
        "iCCP": b"\0\0" + packed,
        "iTXt": b"\0" + (b"\1" if plus else b"\0") + b"\0\0\0" + (packed if plus else text),
    }[kind]
    return chunk(kind, key.encode() + body)


def raw_profile(value: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = value
    data = b"Exif\0\0" + tags.tobytes().removeprefix(b"Exif\0\0")
    return f"\nexif\n{len(data):8d}\n{data.hex()}\n".encode()


def make(case: dict[str, Any]) -> bytes:
    """The file of a case: stored 30 wide and 20 high, red in its left third."""
    mode = case.get("mode", "RGB")
    pixels = Image.new("RGB", (90, 60), (255, 255, 255))
    pixels.paste((220, 0, 0), (0, 0, 30, 60))
    kind = case["format"]
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {}
    if "exif" in case:
        tags = Image.Exif()
        tags[0x0112] = case["exif"]
        options["exif"] = tags
    packet = xmp(case["xmp"], case.get("form", "attribute")) if "xmp" in case else b""
    if packet and kind == "WEBP":
        options["xmp"] = packet
    buffer = io.BytesIO()
    pixels.convert(mode).save(buffer, kind, **options)
    data = buffer.getvalue()
    if kind == "JPEG":
        segments = [XMP_HEAD + packet] * bool(packet)
        segments += [b"ICC_PROFILE\0\1\1" + bytes(60_000)] * case.get("profiles", 0)
        for at, body in enumerate(segments):
            marker = b"\xff\xe1" if packet and at == 0 else b"\xff\xe2"
            data = data[:2] + marker + struct.pack(">H", len(body) + 2) + body + data[2:]
        return data
    chunks = b""
    if packet and kind == "PNG":
        chunks += text_chunk(case.get("chunk", "iTXt"), "XML:com.adobe.xmp", packet)
    if "raw" in case:
        name = case.get("key", "Raw profile type exif")
        chunks += text_chunk(case["chunk"], name, raw_profile(case["raw"]))
    if "megabytes" in case:
        chunks += text_chunk(case["load"], "note", b"a" * int(case["megabytes"] * 2**20))
    return data[:33] + chunks + data[33:] if chunks else data


@pytest.mark.parametrize("case", CASES, ids=[one["id"] for one in CASES])
def test_one_upright_picture_for_all_servers(tmp_path: Path, case: dict[str, Any]) -> None:
    """Every server sees the same upright pixels, and no mark or load is left in the file."""
    path = tmp_path / "picture"
    path.write_bytes(make(case))
    picture = prepare.prepare(prepare.image_from_path(path))
    sent = base64.b64decode(picture.base64)
    assert [picture.width, picture.height] == case["size"]
    opened = Image.open(io.BytesIO(sent))
    shown = np.asarray(opened.convert("RGB")).astype(int)
    turned = np.asarray(ImageOps.exif_transpose(opened).convert("RGB")).astype(int)
    assert np.array_equal(shown, turned)
    x, y = case["red"]
    assert abs(shown[y, x] - (220, 0, 0)).max() < 30
    assert len(sent) < 2**20
    assert (sent == make(case)) is case.get("untouched", False)
    for note in case.get("notes", []):
        assert any(note in one for one in picture.notes), picture.notes


def test_left_out_texts_cost_no_pixel(tmp_path: Path) -> None:
    """A whole PNG with a text of 3 MB is sent with its own image data, byte for byte."""
    plain = make({"format": "PNG"})
    path = tmp_path / "picture"
    path.write_bytes(make({"format": "PNG", "load": "zTXt", "megabytes": 3}))
    picture = prepare.prepare(prepare.image_from_path(path))
    assert base64.b64decode(picture.base64) == plain


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("seed", range(3))
def test_damaged_headers_end_in_an_error(kind: str, seed: int) -> None:
    """Random bytes in the head of a file are read or refused, never a traceback."""
    generator = np.random.default_rng(seed)
    whole = make({"format": kind, "xmp": 6, "chunk": "iTXt+"})
    for _ in range(40):
        data = bytearray(whole)
        for at in generator.integers(2, len(data), 8):
            data[at] = int(generator.integers(256))
        headers.read_header(headers.RawBytes(bytes(data)))
        with contextlib.suppress(ImageError):
            assert prepare.open_upright(bytes(data)).mode == "RGB"


@pytest.mark.parametrize("formats", [("jpeg",), ("png",), ("jpeg", "png")])
def test_a_heavy_picture_is_made_lighter_and_says_how(
    tmp_path: Path, formats: tuple[str, ...]
) -> None:
    """Where no encoding is light enough, the picture is shrunk in proportion."""
    noise = np.random.default_rng(0).integers(0, 255, (120, 240, 3), dtype=np.uint8)
    path = tmp_path / "noise.png"
    Image.fromarray(noise).save(path)
    rules = prepare.PictureRules(max_bytes=12_000, formats=formats)
    picture = prepare.prepare(prepare.image_from_path(path), rules)
    assert len(base64.b64decode(picture.base64)) <= 12_000
    assert picture.width == pytest.approx(2 * picture.height, abs=2)
    assert any("shrunk from 240 x 120 to weigh" in note for note in picture.notes)


def test_quality_goes_before_size(tmp_path: Path) -> None:
    """A picture that fits as JPEG of lower quality keeps its size."""
    noise = np.random.default_rng(0).integers(0, 255, (100, 100, 3), dtype=np.uint8)
    path = tmp_path / "noise.png"
    Image.fromarray(noise).save(path)
    picture = prepare.prepare(prepare.image_from_path(path), prepare.PictureRules(max_bytes=20_000))
    assert (picture.width, picture.height) == (100, 100)
    assert picture.notes[-1] in {"saved as JPEG of quality 85", "saved as JPEG of quality 75"}


def test_pictures_wait_for_room_in_the_order_in_which_they_ask() -> None:
    """At no time are more pixels decoded than the budget; what is above it is decoded alone."""
    budget = PixelBudget(100)
    lock, used, most, done = threading.Lock(), [0], [0], []

    def decode(pixels: int) -> None:
        with budget.taken(pixels):
            with lock:
                used[0] += pixels
                most[0] = max(most[0], used[0])
            threading.Event().wait(0.002)
            with lock:
                used[0] -= pixels
                done.append(pixels)

    threads = [threading.Thread(target=decode, args=(n,)) for n in (60, 30, 60, 100, 10, 40) * 3]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    assert len(done) == len(threads)
    assert most[0] <= 100
    with budget.taken(1_000):
        pass
