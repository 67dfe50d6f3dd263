"""PerceptionBench's file: read by offset, clustered, described with the published statistics."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.worlds.benchmark_files import (
    data_uri,
    direct_folder,
    direct_row,
    png,
    reading_folder,
    rubric_folder,
    rubric_row,
    write_lines,
)

from snellen.errors import DataError
from snellen.readers import info, load_benchmark
from snellen.records import Benchmark


def load(tmp_path: Path, rows: list[Any], **more: Any) -> Benchmark:
    path = write_lines(tmp_path / "PerceptionBench.jsonl", rows)
    return load_benchmark("perception_bench", str(path), **more)


def test_a_picture_is_the_offset_and_digest_of_its_json_string(tmp_path: Path) -> None:
    """A picture is where its JSON string lies in the file, quotes included, and its digest."""
    uris = [data_uri(png((n, 0, 0))) for n in range(3)]
    rows = [direct_row(0, uris[:2]), direct_row(1, [uris[2], uris[2]])]
    benchmark = load(tmp_path, rows)
    text = (tmp_path / "PerceptionBench.jsonl").read_bytes()
    images = [image for item in benchmark.items for image in item.images]
    cut = [text[image.start : image.end] for image in images]
    assert [json.loads(one) for one in cut] == [*uris[:2], uris[2], uris[2]]
    assert [image.digest for image in images] == [hashlib.sha256(one).hexdigest() for one in cut]
    assert images[1].name == "PerceptionBench.jsonl row 1 image 2"
    assert images[2].start != images[3].start


def padded(data: bytes, size: int) -> bytes:
    """A PNG with so many bytes of a private chunk, which a reader passes over, after its header."""
    chunk = b"paDd" + bytes(size)
    crc = zlib.crc32(chunk).to_bytes(4, "big")
    return data[:33] + size.to_bytes(4, "big") + chunk + crc + data[33:]


def test_loading_does_not_hold_pictures(tmp_path: Path) -> None:
    """Thirty rows of a megabyte load within the memory of a few of them."""
    path = tmp_path / "PerceptionBench.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for n in range(30):
            uri = data_uri(padded(png((n, 0, 0)), 750_000))
            stream.write(json.dumps(direct_row(n, [uri])) + "\n")
    tracemalloc.start()
    benchmark = load_benchmark("perception_bench", str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(benchmark.items) == 30
    assert peak < 8_000_000


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("left", "left"),
        (4, "4"),
        (2.5, "2.5"),
        ({"answer": "red"}, "red"),
        ({"answer": 3}, "3"),
        ('{"answer": "B"}', "B"),
        ("{1, 2}", "{1, 2}"),
        ('{"x": 1}', '{"x": 1}'),
    ],
)
def test_the_answer_may_be_a_text_a_number_or_wrapped(
    tmp_path: Path, answer: Any, text: str
) -> None:
    """An answer may be text, a number, an object with `answer`, or such an object as text."""
    row = direct_row(0, [data_uri(png())], answer=answer)
    assert load(tmp_path, [row]).items[0].probes[0].answer == text


def test_a_blank_category_is_a_question_mark(tmp_path: Path) -> None:
    """A blank or absent category is counted under a question mark."""
    uri = data_uri(png())
    rows = [direct_row(0, [uri], error_category=" "), direct_row(1, [uri], error_category=None)]
    labels = [item.groups["error_category"] for item in load(tmp_path, rows).items]
    assert labels == [("?",), ("?",)]


@pytest.mark.parametrize(
    "problem",
    [
        "<|image_1|>What?",
        "What?",
        "<|image_3|>What?",
        "What does the label '<|image_pad|>' in the picture say?",
        "Look at <image>.",
    ],
)
def test_marks_that_are_legal_leave_the_text_as_it_is(tmp_path: Path, problem: str) -> None:
    """Marks beyond the pictures, no marks, and words that look like marks stay untouched."""
    item = load(tmp_path, [direct_row(0, [data_uri(png())], problem=problem)]).items[0]
    assert item.text == item.probes[0].question == problem
    assert len(item.images) == 1


@pytest.mark.parametrize(
    ("problem", "images", "message"),
    [
        ("Compare <image> with <image>.", 1, "2 marks, 1 image"),
        ("<image><image><image>", 2, "3 marks, 2 images"),
        ("<|image_1|>What?", 0, "has image marks, but there is no image"),
    ],
)
def test_marks_that_cannot_be_filled_are_a_load_error(
    tmp_path: Path, problem: str, images: int, message: str
) -> None:
    """Marks without a number must be as many as the pictures; numbered ones need a picture."""
    rows = [direct_row(0, [data_uri(png())] * images, problem=problem)]
    with pytest.raises(DataError, match=f"PerceptionBench.jsonl, row 1.*{message}"):
        load(tmp_path, rows)


def test_the_same_index_twice_is_an_error_that_names_both_rows(tmp_path: Path) -> None:
    """Two rows with one index are refused, whatever the type in which it is written."""
    uri = data_uri(png())
    with pytest.raises(DataError, match=r"row 3.*already the index of row 1"):
        load(tmp_path, [direct_row(7, [uri]), direct_row(8, [uri]), direct_row("7", [uri])])


def test_items_that_share_a_picture_or_a_source_are_one_cluster(tmp_path: Path) -> None:
    """A shared picture or source item joins clusters, through others too; NA joins nothing."""
    one, two, three, four = (data_uri(png((n, 0, 0))) for n in range(4))
    rows = [
        direct_row(10, [one]),
        direct_row(11, [two], source_bmk="X", source_idx=5),
        direct_row(12, [three], source_bmk="X", source_idx=5),
        direct_row(13, [three, one]),
        direct_row(14, [four], source_bmk="X", source_idx=6),
        direct_row(15, [data_uri(png((9, 9, 9)))], source_bmk="Y", source_idx=5),
    ]
    clusters = [item.cluster for item in load(tmp_path, rows).items]
    assert clusters == ["10", "10", "10", "10", "14", "15"]


def test_the_item_digest_covers_what_changes_a_score(tmp_path: Path) -> None:
    """Another problem, answer, hint, category or picture gives another digest; the source not."""
    uri = data_uri(png())
    changes: list[dict[str, Any]] = [
        {},
        {"problem": "<|image_1|>Else?"},
        {"answer": "5"},
        {"hint": "0-1000"},
        {"error_category": "ocr_error"},
        {"image": [data_uri(png((1, 1, 1)))]},
    ]
    digests = [load(tmp_path, [direct_row(0, [uri]) | one]).items[0].digest for one in changes]
    assert len(set(digests)) == len(changes)
    assert load(tmp_path, [direct_row(0, [uri], source_idx=3)]).items[0].digest == digests[0]


def picture(kind: str, size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, (10, 90, 200)).save(buffer, kind)
    return buffer.getvalue()


def test_info_gives_the_published_statistics(tmp_path: Path) -> None:
    """Counts, prompt and answer lengths by subset, pictures and terms are told."""
    png_uri = data_uri(picture("PNG", (101, 64)))
    jpeg_uri = data_uri(picture("JPEG", (300, 200)), "image/png")
    webp_uri = data_uri(picture("WEBP", (120, 80)))
    rows = [
        direct_row(0, [png_uri], problem="<|image_1|>12345", answer="ab", hint="h"),
        direct_row(1, [jpeg_uri, webp_uri], problem="123<|image_2|>4567", answer="abcd"),
        direct_row(2, [png_uri], problem="123456789", answer="x", error_category="ocr_error"),
    ]
    found = info(load(tmp_path, rows))
    assert (found.items, found.probes, found.hints, found.multi_image_items) == (3, 3, 1, 1)
    assert found.terms == "non-commercial use only"
    assert "cc-by-nc-4.0" in found.license
    assert found.prompt_chars is not None
    assert (found.prompt_chars.min, found.prompt_chars.mean, found.prompt_chars.max) == (5, 7, 9)
    assert found.prompt_chars_by["visual_counting_error"].mean == 6
    assert found.answer_chars_by["ocr_error"].mean == 1
    assert found.groups == {"error_category": {"ocr_error": 1, "visual_counting_error": 2}}
    pictures = found.pictures
    assert (pictures.uses, pictures.distinct) == (4, 3)
    assert pictures.formats == {"jpeg": 1, "png": 2, "webp": 1}
    assert (pictures.smallest, pictures.largest) == ((101, 64), (300, 200))
    assert pictures.per_item is not None
    assert (pictures.per_item.min, pictures.per_item.max) == (1, 2)


def test_info_reads_pictures_whose_slashes_are_escaped(tmp_path: Path) -> None:
    """A data URI whose slashes JSON escapes is measured all the same."""
    path = tmp_path / "PerceptionBench.jsonl"
    uri = data_uri(picture("JPEG", (300, 200)))
    assert "/" in uri.partition(",")[2]
    path.write_text(json.dumps(direct_row(0, [uri])).replace("/", "\\/") + "\n", encoding="utf-8")
    pictures = info(load_benchmark("perception_bench", str(path))).pictures
    assert (pictures.formats, pictures.largest) == ({"jpeg": 1}, (300, 200))


def test_info_counts_what_is_no_picture(tmp_path: Path) -> None:
    """A picture that is none any more is counted as unreadable, and sizes are None without any."""
    benchmark = load_benchmark(str(rubric_folder(tmp_path, [rubric_row("r1", "a.png")])))
    (tmp_path / "a.png").write_bytes(b"<html>not found</html>")
    pictures = info(benchmark).pictures
    assert (pictures.unreadable, pictures.smallest) == (1, None)


def test_info_describes_the_other_protocols(tmp_path: Path) -> None:
    """Reading counts regions and question labels, rubric the words of golden captions."""
    reading = info(load_benchmark(str(reading_folder(tmp_path / "reading"))))
    assert (reading.items, reading.probes, reading.regions) == (2, 4, 2)
    assert reading.probe_groups["category"] == {"Action": 2, "Count": 2}
    assert reading.probe_groups["generator"] == {"g1": 3, "g2": 1}
    assert reading.groups["l1"] == {"Sports": 2}
    assert reading.terms == ""
    rubric = info(load_benchmark(str(rubric_folder(tmp_path / "rubric"))))
    assert rubric.probe_groups == {"kind": {"easy_wrong": 2, "must_right": 1}}
    assert rubric.reference_words is not None
    assert rubric.reference_words.mean == 6
    assert rubric.answer_chars is None
    direct = info(load_benchmark(str(direct_folder(tmp_path / "direct"))))
    assert direct.pictures.formats == {"png": 2}
