"""Data as the world writes it: each oddity is read right, or told in one line with a way out."""

from __future__ import annotations

import base64
import json
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import (
    data_uri,
    direct_folder,
    direct_row,
    png,
    question,
    reading_folder,
    rubric_folder,
    rubric_row,
    write_card,
    write_lines,
)

from snellen.errors import DataError
from snellen.pictures.prepare import open_upright
from snellen.readers import LoadOptions, check_benchmark, load_benchmark
from snellen.records import Benchmark

HUGE = png((0, 0, 0), (11_000, 10_000))
CUT = png()[:60]


def told(folder: Path, cache: Path) -> list[tuple[int | None, str]]:
    options = LoadOptions(cache=str(cache))
    problems = check_benchmark(str(folder), options=options)
    return [(problem.row, problem.field) for problem in problems]


def refused(folder: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load_benchmark(str(folder), options=LoadOptions(cache=str(folder / "cache")))
    assert "\n" not in str(caught.value)
    return caught.value


def parquet_folder(folder: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    write_card(folder, "direct")
    (folder / "a.png").write_bytes(png())
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "questions.parquet")
    return folder


def read(folder: Path) -> Benchmark:
    return load_benchmark(str(folder), options=LoadOptions(cache=str(folder / "cache")))


ROWS = b'{"index": 1}', b'{"index": 2}'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (b'{"index": ' + b"[" * 100_000, "nested too deeply", ""),
        (b'{"index": ' + b"9" * 5_000 + b"}\n", "number of thousands of digits", ""),
        (b'{"index": ' + b"9" * 5_000, "number of thousands of digits", ""),
        (b"[" + ROWS[0] + b",\n" + ROWS[1] + b"]", "", "array is named .json"),
        (b"[" + ROWS[0] + b", " + ROWS[1] + b"]\n", "found a list", "array is named .json"),
        (b"\r".join(ROWS), "Extra data", "one JSON object a line"),
        (b"".join(ROWS), "Extra data", "one JSON object a line"),
        (b",\n".join(ROWS), "Extra data", "one JSON object a line"),
        (b"\0" * 99, "is not JSON", ""),
        (b"<!DOCTYPE html><html>404</html>", "is an HTML page", "download it again"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer", "git lfs pull"),
        (b"\x1f\x8b\x08\0\0\0", "a gzip file", "unpack it"),
        (b'{"index": 1, "problem": "\\ud83d"}\n', r"`problem` holds \ud83d", ""),
        (b'{"index": 1, "problem": tr', "the last line is cut off", ""),
        (b'{"index": 1, "prob', "the last line is cut off", ""),
        (b'{"index": 1,}', "is not JSON", ""),
    ],
)
def test_a_file_that_holds_no_rows_says_what_it_is(
    tmp_path: Path, text: bytes, message: str, hint: str
) -> None:
    """What stands in a file instead of one object a line is named for what it is."""
    folder = direct_folder(tmp_path)
    (folder / "questions.jsonl").write_bytes(text)
    error = refused(folder)
    assert error.row == 1
    assert message in error.message
    assert hint in error.hint
    assert ("cut off" in error.message) == ("cut off" in message)
    assert told(folder, tmp_path / "cache")[0][0] == 1


def test_deep_nesting_is_refused_wherever_json_is_read(tmp_path: Path) -> None:
    """A card, an array and a file of replies that are nested too deeply are errors of the data."""
    from snellen.readers.replies import load_replies

    deep, array = b"[" * 100_000, tmp_path / "questions.json"
    array.write_bytes(deep)
    for name in ("benchmark.json", "replies.json"):
        (tmp_path / name).write_bytes(b'{"a": ' + deep)
    with pytest.raises(DataError):
        load_benchmark(str(tmp_path))
    with pytest.raises(DataError):
        load_benchmark("perception_bench", str(array))
    with pytest.raises(DataError):
        load_replies(tmp_path / "replies.json")


@pytest.mark.parametrize("protocol", ["direct", "reading", "rubric", "captionqa"])
@pytest.mark.parametrize("data", [CUT, b"", b"<html>", HUGE], ids=["cut", "empty", "html", "huge"])
def test_a_broken_picture_is_named_with_its_row_in_every_protocol(
    tmp_path: Path, protocol: str, data: bytes
) -> None:
    """A question about it stops the load; an item to describe is noted; both can be left out."""
    name, source = tmp_path, None
    if protocol == "direct":
        direct_folder(name, [direct_row(0, ["a.png"]), direct_row(1, ["b.png"])])
    elif protocol == "reading":
        reading_folder(name)
    elif protocol == "rubric":
        rubric_folder(name, [rubric_row("r0", "a.png"), rubric_row("r1", "b.png")])
    else:
        asked = [{"question": "What?", "choices": ["a", "b"], "answer": "a"}]
        rows = [{"id": f"nat_{n}", "images": [f"{n}.png"], "questions": asked} for n in "ab"]
        source = str(write_lines(tmp_path / "rows.jsonl", rows))
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(data)
    benchmark = "captionqa" if source else str(name)
    if protocol == "direct":
        with pytest.raises(DataError) as caught:
            load_benchmark(benchmark, source)
        said = caught.value.message
    else:
        [said] = load_benchmark(benchmark, source).broken
    assert re.search(r"row 2, field `images?`: .*b\.png", said)
    left = load_benchmark(benchmark, source, options=LoadOptions(on_bad_row="skip"))
    assert len(left.items) == len(left.skipped) == 1
    assert left.skipped[0] == said
    assert not left.broken
    assert len(load_benchmark(benchmark, source, options=LoadOptions(limit=1)).items) == 1


def test_a_row_of_captionqa_without_a_picture_is_a_bad_row(tmp_path: Path) -> None:
    """A caption of no picture would be paid for and judged, so such a row is refused."""
    asked = [{"question": "What?", "choices": ["a", "b"], "answer": "a"}]
    rows = [{"id": "nat_1", "img": "a.png", "questions": asked}]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    with pytest.raises(DataError, match=r"row 1, field `image`: expected one picture"):
        load_benchmark("captionqa", str(path))
    found = check_benchmark("captionqa", str(path))
    assert (1, "image") in [(one.row, one.field) for one in found]


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("Images/A.PNG", "images/a.png"),
        ("my%20pictures/a%20b.png", "my pictures/a b.png"),
        ("images\\a.png", "images/a.png"),
        ("a.png\n", "a.png"),
        (unicodedata.normalize("NFD", "caf\u00e9.png"), "caf\u00e9.png"),
    ],
)
def test_a_name_that_is_nearly_right_gets_the_right_one(
    tmp_path: Path, name: str, there: str
) -> None:
    """A path that differs in case, escapes, slashes, blanks or accents is told with the file."""
    folder = direct_folder(tmp_path, [direct_row(0, [name])])
    (folder / "a.png").unlink()
    (folder / there).parent.mkdir(exist_ok=True)
    (folder / there).write_bytes(png())
    error = refused(folder)
    assert (error.row, error.field) == (1, "image")
    shown = ascii(there) if "\u00e9" in there else repr(there)
    assert error.hint == f"did you mean {shown}?"


@pytest.mark.parametrize(
    ("name", "message"),
    [("x" * 300, "cannot be read"), ("file:///tmp/a.png", "the address of a file")],
)
def test_a_name_that_cannot_be_opened_is_a_bad_row(tmp_path: Path, name: str, message: str) -> None:
    """What the system itself refuses is an error of the row, not of the process."""
    folder = direct_folder(tmp_path, [direct_row(0, [name]), direct_row(1, ["a.png"])])
    error = refused(folder)
    assert (error.row, error.field) == (1, "image")
    assert message in error.message
    assert told(folder, tmp_path / "cache") == [(1, "image")]


def test_the_scheme_of_a_data_uri_may_be_in_capitals(tmp_path: Path) -> None:
    """`DATA:` is the scheme that `data:` is."""
    upper = data_uri(png()).replace("data:image/png;base64", "DATA:IMAGE/PNG;BASE64")
    (item,) = read(direct_folder(tmp_path, [direct_row(0, [upper])])).items
    assert open_upright(item.images[0]).size == (48, 32)


BARE = base64.b64encode(png()).decode()


@pytest.mark.parametrize(
    "picture",
    [data_uri(png()), data_uri(png(), ""), BARE, {"bytes": BARE, "path": None}, "a.png"],
    ids=["uri", "no label", "bare", "struct", "path"],
)
def test_a_picture_as_text_is_the_same_in_parquet_and_in_lines(
    tmp_path: Path, picture: object
) -> None:
    """Every way to write a picture in JSON-lines works in Parquet, with the same digest."""
    rows = [direct_row(n, [picture], source_idx=n) for n in range(2)]
    (tmp_path / "lines").mkdir()
    (tmp_path / "table").mkdir()
    lines = read(direct_folder(tmp_path / "lines", rows))
    table = read(parquet_folder(tmp_path / "table", rows))
    assert table.digest == lines.digest
    assert open_upright(table.items[1].images[0]).size == (48, 32)


def test_texts_in_parquet_stay_texts(tmp_path: Path) -> None:
    """A question about a data URI is no picture, and unmarked UTF-8 bytes are a text."""
    asked = {"problem": "data:image/png, what is that?", "answer": b"caf\xc3\xa9"}
    (item,) = read(parquet_folder(tmp_path, [direct_row(0, ["a.png"], **asked)])).items
    assert (item.text, item.probes[0].answer) == (asked["problem"], "caf\u00e9")


def test_whole_numbers_that_a_table_with_gaps_made_real_are_ids_again(tmp_path: Path) -> None:
    """Optional ids of 3 and 3.0 are the same id, in clusters and between questions and regions."""
    rows = [direct_row(n, ["a.png"], source_bmk="s", source_idx=3.0) for n in range(2)]
    assert [item.extra["source_idx"] for item in read(direct_folder(tmp_path, rows)).items] == [
        3,
        3,
    ]
    folder = reading_folder(tmp_path / "reading")
    regions = folder / "regions.jsonl"
    regions.write_text(regions.read_text(encoding="utf-8").replace('"a-r"', "7"), encoding="utf-8")
    write_lines(folder / "questions.jsonl", [question(0, "a", region_id=7.0), question(1, "b")])
    assert read(folder).items[0].probes[0].groups["region_id"] == "7"
    assert told(folder, tmp_path) == []


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_shard_is_told(lost: int, tmp_path: Path) -> None:
    """A part of a file that is not there would be rows that disappear; it is named."""
    rows = [direct_row(n, ["a.png"]) for n in range(2)]
    table = parquet_folder(tmp_path, rows) / "questions.parquet"
    for number in {0, 1, 2} - {lost}:
        (tmp_path / f"questions-0000{number}-of-00003.parquet").write_bytes(table.read_bytes())
    table.unlink()
    assert f"lacks questions-0000{lost}-of-00003.parquet" in refused(tmp_path).message


def test_a_table_without_rows_and_a_file_in_wrong_clothes_are_told(tmp_path: Path) -> None:
    """Parquet without rows, and a packed file beside the one that is missing, are told."""
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = parquet_folder(tmp_path, [direct_row(0, ["a.png"])]) / "questions.parquet"
    parquet.write_table(parquet.read_table(table).slice(0, 0), table)
    assert "has no rows" in refused(tmp_path).message
    assert told(tmp_path, tmp_path / "cache") == [(None, "")]
    table.rename(tmp_path / "questions.jsonl.gz")
    assert "questions.jsonl.gz" in refused(tmp_path).hint


def test_an_object_around_the_rows_is_told(tmp_path: Path) -> None:
    """A JSON file whose rows stand below a key names its keys, and is not called broken JSON."""
    folder = direct_folder(tmp_path)
    rows = [direct_row(0, ["a.png"])]
    (folder / "questions.jsonl").unlink()
    wrapped = json.dumps({"info": {}, "data": rows}, indent=1)
    (folder / "questions.json").write_text(wrapped, encoding="utf-8")
    error = refused(folder)
    assert "is one JSON object (info, data)" in error.message
    assert error.hint
    (folder / "questions.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    assert len(read(folder).items) == 1


def test_no_damage_of_a_table_goes_beyond_the_errors_of_this_package(tmp_path: Path) -> None:
    """Parquet files damaged at random load, or fail in one line."""
    rows = [direct_row(n, ["a.png"], problem="\u00e9" * 40) for n in range(40)]
    path = parquet_folder(tmp_path, rows) / "questions.parquet"
    whole, chance, errors = path.read_bytes(), random.Random(5), []
    for _ in range(60):
        at = chance.randrange(len(whole))
        path.write_bytes(whole[:at] + chance.randbytes(3) + whole[at + 3 :])
        try:
            read(tmp_path)
        except DataError as error:
            errors.append(str(error))
    assert len(errors) > 20
    assert not [error for error in errors if "\n" in error]
