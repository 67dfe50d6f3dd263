"""`data check` names everything that is wrong with a benchmark, and nothing else."""

from __future__ import annotations

import json
import random
import re
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

from snellen.errors import DataError, UsageError
from snellen.readers import Problem, check_benchmark, load_benchmark


def check(path: Path, **more: Any) -> list[Problem]:
    return check_benchmark(str(path), **more)


def lines(path: Path) -> list[str]:
    return [str(problem) for problem in check(path)]


def test_good_folders_of_all_protocols_have_no_problem(tmp_path: Path) -> None:
    """A good folder of each protocol has no problem."""
    assert lines(reading_folder(tmp_path / "reading")) == []
    assert lines(direct_folder(tmp_path / "direct")) == []
    assert lines(rubric_folder(tmp_path / "rubric")) == []


QUESTION_FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"answer": "F"}, "answer", "expected one letter A to D, found 'F'"),
    ({"answer": "b"}, "answer", "expected one letter A to D, found 'b'"),
    ({"options": ["a", "b", "c", "d", "e"]}, "options", "expected 4 options, found 5"),
    ({"options": ["a", "", "c", "d"]}, "options", "option 2 is empty"),
    (
        {"options": ["a", "b", "b ", "d"]},
        "options",
        "the right answer is also another option: B and C are both 'b'",
    ),
    (
        {"options": ["a", "b", "d", "d"]},
        "options",
        "two options are equal: C and D are both 'd'",
    ),
    ({"category": "Cuont"}, "category", "'Cuont' is none of the ten categories"),
    ({"image_id": "z"}, "image_id", "there is no image 'z'"),
    ({"region_id": "z"}, "region_id", "there is no region 'z'"),
    ({"region_id": "a-r"}, "region_id", "the region 'a-r' belongs to the image 'a'"),
    ({"question_id": "q0"}, "question_id", "'q0' is already the question_id of row 1"),
    ({"question": " "}, "question", "the text is empty"),
    ({"question": None}, "question", "expected text, found nothing (null)"),
    ({"options": "abcd"}, "options", "expected a list, found text"),
    ({"anwser": "B"}, "anwser", "no such field is known"),
    (
        {"options": ["A. one", "B) two", "(C) three", "D: four"]},
        "options",
        "the options begin with letters",
    ),
]


@pytest.mark.parametrize(("change", "field", "message"), QUESTION_FAULTS)
def test_each_fault_of_a_question_is_named_with_file_row_and_field(
    tmp_path: Path, change: dict[str, Any], field: str, message: str
) -> None:
    """Each fault of a question is told with its file, row and field, and with a hint."""
    folder = reading_folder(tmp_path)
    write_lines(
        folder / "questions.jsonl", [question(0, "a"), question(1, "b"), question(2, "b") | change]
    )
    start = f"questions.jsonl, row 3, field `{field}`: {message}"
    [told] = [problem for problem in check(folder) if problem.message.startswith(start)]
    assert told.hint


def test_all_faults_are_told_at_once_and_in_order(tmp_path: Path) -> None:
    """Several faults, in one row and in many, are all told in one go."""
    folder = reading_folder(tmp_path)
    rows = [
        question(0, "a", answer="F", category="Cuont"),
        "{torn",
        question(1, "b", options=["a", 1, "c", "d"], question=7),
    ]
    write_lines(folder / "questions.jsonl", rows)
    told = [(problem.row, problem.field) for problem in check(folder)]
    assert told == [(1, "category"), (1, "answer"), (2, ""), (3, "question"), (3, "options[1]")]


def test_a_missing_field_is_named_and_the_slip_beside_it_explained(tmp_path: Path) -> None:
    """A misspelt field is told as missing and as unknown, with the nearest valid one."""
    row = {key: value for key, value in question(1, "b").items() if key != "answer"}
    folder = reading_folder(tmp_path)
    write_lines(folder / "questions.jsonl", [question(0, "a"), row | {"anwser": "B"}])
    missing, unknown = sorted(check(folder), key=lambda problem: problem.field, reverse=False)
    assert (missing.field, missing.message.partition(": ")[2]) == ("answer", "the field is missing")
    assert (unknown.field, unknown.hint) == ("anwser", "did you mean `answer`?")


def test_an_unknown_field_is_told_once_a_file(tmp_path: Path) -> None:
    """A field that no row should have is told for the first row only."""
    rows = [direct_row(n, ["a.png"], note="x") for n in range(5)]
    assert [problem.row for problem in check(direct_folder(tmp_path, rows))] == [1]


@pytest.mark.parametrize(
    ("bbox", "message"),
    [
        ([0, 0, 10, 1001], "expected edges from 0 to 1000"),
        ([10, 0, 5, 100], "the box is inverted or empty"),
        ([0, 50, 10, 50], "the box is inverted or empty"),
        ([0, 0, 10], "expected [ymin, xmin, ymax, xmax], found 3 numbers"),
        ([0, "x", 10, 20], "expected a number, found text"),
        ([0.1, 0.2, 0.5, 1], "expected edges from 0 to 1000, found shares of 1"),
    ],
)
def test_a_bad_box_is_named(tmp_path: Path, bbox: list[Any], message: str) -> None:
    """A box outside 0-1000, inverted, or without four numbers is told."""
    folder = reading_folder(tmp_path)
    path = folder / "regions.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    write_lines(path, [rows[0] | {"bbox": bbox}, rows[1]])
    told = lines(folder)
    assert len(told) == 1
    assert told[0].startswith("regions.jsonl, row 1, field `bbox")
    assert message in told[0]
    assert check(folder)[0].hint


def test_a_missing_field_is_told_with_what_it_is(tmp_path: Path) -> None:
    """Of each field that a row must have."""
    folder = reading_folder(tmp_path)
    for field, what in (
        ("answer", "one letter A to D"),
        ("options", "four texts"),
        ("category", "ten categories"),
        ("image_id", "an id"),
    ):
        row = question(1, "b")
        del row[field]
        write_lines(folder / "questions.jsonl", [question(0, "a"), question(2, "b"), row])
        [told] = check(folder)
        assert (told.row, told.field) == (3, field)
        assert what in told.hint


def test_a_nearly_right_id_gets_the_right_one(tmp_path: Path) -> None:
    """An image or a region that does not exist is told with the one that was probably meant."""
    folder = reading_folder(tmp_path)
    rows = [question(0, "a"), question(1, "b"), question(2, "b") | {"region_id": "b-rr"}]
    write_lines(folder / "questions.jsonl", rows)
    [told] = check(folder)
    assert told.hint == "did you mean `b-r`?"


def test_a_blank_name_of_a_benchmark_is_told(tmp_path: Path) -> None:
    """A run would bear it."""
    folder = reading_folder(tmp_path)
    card = json.loads((folder / "benchmark.json").read_text(encoding="utf-8"))
    text = json.dumps(card | {"name": " "})
    (folder / "benchmark.json").write_text(text, encoding="utf-8")
    assert lines(folder) == ["benchmark.json, field `name`: the text is empty"]


def test_pictures_that_no_model_can_be_shown_are_named(tmp_path: Path) -> None:
    """An absent, an empty, a cut and a foreign picture are told, each with its row."""
    names = ["a.png", "none.png", "empty.png", "cut.png", "page.png"]
    folder = direct_folder(tmp_path, [direct_row(n, [name]) for n, name in enumerate(names)])
    (folder / "empty.png").write_bytes(b"")
    (folder / "cut.png").write_bytes(png()[:60])
    (folder / "page.png").write_bytes(b"<html>404</html>")
    told = check(folder)
    assert [problem.row for problem in told] == [2, 3, 4, 5]
    assert "does not exist" in told[0].message
    assert "empty" in told[1].message
    assert "HTML" in told[3].message


def test_a_broken_picture_inside_a_row_is_named(tmp_path: Path) -> None:
    """A data URI that holds half a picture is told with row and number of the picture."""
    rows = [direct_row(0, [data_uri(png()), data_uri(png()[:50])])]
    told = lines(direct_folder(tmp_path, rows))
    assert len(told) == 1
    assert "row 1, field `image`: image 2 is broken" in told[0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("C:\\data\\1.png", "is an absolute path"),
        ("\\\\host\\share\\1.png", "is an absolute path"),
        ("/data/1.png", "is an absolute path"),
        ("images\\1.png", "does not exist"),
        ("https://example.org/1.png", "is a web address"),
        ("", "the path is blank"),
    ],
)
def test_a_picture_must_be_named_relative_to_the_folder(
    tmp_path: Path, name: str, message: str
) -> None:
    """Absolute paths, backslashes and web addresses are told with the right way to write them."""
    (problem,) = check(direct_folder(tmp_path, [direct_row(0, [name])]))
    assert message in problem.message
    assert problem.hint


def test_bytes_that_are_not_utf8_are_named_with_row_and_column(tmp_path: Path) -> None:
    """A file in another encoding is told once, with the first such byte and its column."""
    folder = direct_folder(tmp_path)
    path = folder / "questions.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"answer": "4"', b'"answer": "\xe9"'))
    [told] = check(folder)
    assert told.message.startswith("questions.jsonl, row 1")
    assert "is not UTF-8: byte 0xe9 at column" in told.message
    assert "as UTF-8" in told.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"index": NaN}\n', "NaN is not a JSON number"),
        ("[1]\n", "expected an object, found a list"),
        ('{"index": 1,}\n', "is not JSON"),
        ('{"index": 7, "prob', "the last line is cut off"),
    ],
)
def test_rows_that_are_no_json_objects_are_named(tmp_path: Path, text: str, message: str) -> None:
    """NaN, lists, stray commas and a torn last line are told in plain words."""
    folder = direct_folder(tmp_path)
    with (folder / "questions.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(text)
    (told,) = lines(folder)
    assert told.startswith("questions.jsonl, row 3: ")
    assert message in told


def test_a_key_that_stands_twice_is_named(tmp_path: Path) -> None:
    """A key that an object has twice is told, since one of its values would be lost."""
    folder = direct_folder(tmp_path)
    path = folder / "questions.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{", '{"answer": "9", ', 1), encoding="utf-8")
    (problem,) = check(folder)
    assert (problem.row, problem.field) == (1, "answer")
    assert "twice" in problem.message


def test_line_ends_blank_lines_bom_and_long_lines_are_no_problem(tmp_path: Path) -> None:
    """CRLF, blank lines, a byte order mark and a megabyte in one line are accepted."""
    noise = png((1, 2, 3), (600, 600)) + b"\0" * 800_000
    rows = [direct_row(0, [data_uri(noise)]), direct_row(1, ["a.png"])]
    folder = direct_folder(tmp_path, rows)
    path = folder / "questions.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert lines(folder) == []


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    """A protocol's file that is absent or empty is told."""
    folder = reading_folder(tmp_path)
    (folder / "regions.jsonl").write_bytes(b"")
    (folder / "questions.jsonl").unlink()
    told = "\n".join(lines(folder))
    assert "regions.jsonl: the file is empty" in told
    assert "has no `questions` file" in told


UTF_16 = '{"image_id": "a"}\n'.encode("utf-16")


@pytest.mark.parametrize("name", ["images.jsonl", "regions.jsonl", "questions.jsonl"])
@pytest.mark.parametrize("damage", [b"", b"\n \n", None, UTF_16, b"<html>\n"])
def test_one_broken_file_is_told_once(tmp_path: Path, name: str, damage: bytes | None) -> None:
    """What other files say of its rows is not held against them."""
    folder = reading_folder(tmp_path)
    if damage is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damage)
    assert len(lines(folder)) == 1


@pytest.mark.parametrize(
    ("name", "field"),
    [("images", "image_id"), ("regions", "region_id"), ("questions", "image_id")],
)
def test_one_unreadable_id_is_told_once(tmp_path: Path, name: str, field: str) -> None:
    """Rows that point at what has lost its id are not to blame."""
    folder = reading_folder(tmp_path)
    rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]
    write_lines(folder / f"{name}.jsonl", [rows[0] | {field: None}, *rows[1:]])
    [problem] = check(folder)
    assert (problem.file, problem.row, problem.field) == (f"{name}.jsonl", 1, field)


# 60 x 100 pixels; the text is what pycocotools makes of such a mask.
PACKED = "jU1n0n" + "0" * 19 + "WOWO?i0AWO?i0AWO?i0AWO?i0AWO?i0:" + "0" * 68 + "ng1"


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (None, ""),
        ({"size": [60, 100], "counts": PACKED}, ""),
        ({"size": [3, 4], "counts": [2, 4, 6]}, ""),
        ({"size": [31, 51], "counts": [1581]}, ""),
        (
            {"size": [100, 60], "counts": PACKED},
            "the mask is 100 high and 60 wide, and the picture",
        ),
        ({"size": [60, 90], "counts": [5400]}, "the mask is 60 high and 90 wide"),
        ({"size": [60, 101], "counts": PACKED}, "the runs cover 6000 pixels, and 60 x 101 are"),
        ({"size": [3, 4], "counts": [2, 4]}, "the runs cover 6 pixels, and 3 x 4 are 12"),
        ({"size": [3, 4], "counts": [14, -2]}, "the runs are no counts of pixels"),
        ({"size": [3, 4], "counts": "zz"}, "the runs are no counts of pixels"),
        ({"size": [3, 4], "counts": "24o"}, "the runs are no counts of pixels"),
        ({"size": [3], "counts": "246"}, "expected a size [height, width], found [3]"),
        ({"size": ["3", 4], "counts": "246"}, "expected a size [height, width]"),
        ({"counts": "246"}, 'expected null or {"size": [height, width], "counts": runs}'),
        ([[0, 0, 5, 5]], "expected null or"),
    ],
)
def test_masks_are_checked(tmp_path: Path, mask: Any, message: str) -> None:
    """A mask is run lengths, packed or plain, that cover its size; it has its picture's shape."""
    folder = reading_folder(tmp_path)
    (folder / "a.png").write_bytes(png(size=(100, 60)))
    rows = [json.loads(line) for line in (folder / "regions.jsonl").read_text("utf-8").splitlines()]
    write_lines(folder / "regions.jsonl", [rows[0] | {"mask": mask}, *rows[1:]])
    told = lines(folder)
    assert len(told) == bool(message)
    assert not told or told[0].startswith(f"regions.jsonl, row 1, field `mask`: {message}")


def test_the_card_is_checked(tmp_path: Path) -> None:
    """An absent card, an unknown protocol and a slip in a key are told; a card may be short."""
    (absent,) = check(tmp_path)
    assert "has no benchmark.json" in absent.message
    write_card(tmp_path, "rubrik")
    (protocol,) = check(tmp_path)
    assert (protocol.field, protocol.hint) == ("protocol", "did you mean `rubric`?")
    (tmp_path / "benchmark.json").write_text("{]", encoding="utf-8")
    assert "is not JSON" in check(tmp_path)[0].message
    folder = direct_folder(tmp_path / "d")
    card = {"name": "x", "protocol": "direct", "version": "1", "licence": "x", "source": "s"}
    (folder / "benchmark.json").write_text(json.dumps(card), encoding="utf-8")
    assert [(problem.field, problem.hint) for problem in check(folder)] == [
        ("licence", "did you mean `license`?")
    ]
    card = {"name": "x", "protocol": "direct", "made_on": "Monday"}
    (folder / "benchmark.json").write_text(json.dumps(card), encoding="utf-8")
    assert check(folder) == []


def test_rubric_faults_are_named(tmp_path: Path) -> None:
    """Rows without statements, blank ones, an id used twice and a slip in the domain are told."""
    rows = [
        rubric_row("r0", "a.png", must_right=[], easy_wrong=[]),
        rubric_row("r1", "a.png", easy_wrong=["x", " "]),
        rubric_row("r1", "a.png"),
        rubric_row("r2", "a.png", category="Natural Scenes"),
        rubric_row("r3", "a.png", category="My own"),
    ]
    told = [(problem.row, problem.field) for problem in check(rubric_folder(tmp_path, rows))]
    assert told == [(1, "must_right"), (2, "easy_wrong"), (3, "id"), (4, "category")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"answer": None}, "answer"),
        ({"answer": " "}, "answer"),
        ({"answer": {"text": "4"}}, "answer"),
        ({"problem": "Compare <image> with <image>."}, "problem"),
        ({"image": []}, "image"),
        ({"image": [None]}, "image"),
        ({"error_category": "visual_counting_eror"}, "error_category"),
    ],
)
def test_direct_faults_are_named(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    """A missing answer, too few pictures and a slip in the category are told."""
    rows = [direct_row(0, ["a.png"]) | change]
    assert [problem.field for problem in check(direct_folder(tmp_path, rows))] == [field]


def test_a_file_of_rows_is_checked_as_what_it_looks_like(tmp_path: Path) -> None:
    """A file alone is checked as the known data set that its fields are those of."""
    (tmp_path / "a.png").write_bytes(png())
    direct = write_lines(tmp_path / "d.jsonl", [direct_row(0, ["a.png"], answer=None)])
    assert [problem.field for problem in check(direct)] == ["answer"]
    flat = {"id": 1, "image": "a.png", "question": "?", "choices": ["a", ""], "answer": "z"}
    told = lines(write_lines(tmp_path / "c.jsonl", [flat]))
    assert len(told) == 2
    assert "empty choice" in told[0]
    assert "none of the choices" in told[1]
    other = write_lines(tmp_path / "o.jsonl", [{"x": 1}])
    assert "looks like none of the known" in lines(other)[0]


def test_parquet_is_checked_like_text(tmp_path: Path) -> None:
    """Rows and pictures in Parquet are checked as those of JSON-lines are."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from snellen.readers import LoadOptions

    rows = [direct_row(n, [{"bytes": png()[: 999 - 940 * n], "path": None}]) for n in range(2)]
    path = tmp_path / "PerceptionBench.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    options = LoadOptions(cache=str(tmp_path / "cache"))
    (problem,) = check(path, options=options)
    assert (problem.row, problem.field) == (2, "image")
    path.write_bytes(b"PAR1 and nothing else")
    assert "no Parquet file" in check(path, options=options)[0].message


@pytest.mark.parametrize("change", [change for change, _, _ in QUESTION_FAULTS])
def test_what_does_not_load_does_not_pass(tmp_path: Path, change: dict[str, Any]) -> None:
    """Whatever stops a load is among the problems that the check names."""
    folder = reading_folder(tmp_path)
    write_lines(
        folder / "questions.jsonl", [question(0, "a"), question(1, "b"), question(2, "b") | change]
    )
    told = [(problem.row, problem.field) for problem in check(folder)]
    harmless = {(3, "anwser")} if "options" not in change else {(3, "options")}
    if "anwser" in change or re.search(" are both | begin with ", lines(folder)[0]):
        assert set(told) == harmless
        assert len(load_benchmark(str(folder)).items) == 2
        return
    with pytest.raises(DataError) as caught:
        load_benchmark(str(folder))
    assert (caught.value.row, caught.value.field) in told


def test_a_row_cannot_point_into_the_cache(tmp_path: Path) -> None:
    """The mark by which Parquet pictures are found in the cache has no power in a text file."""
    rows = [direct_row(0, [{"spooled": "/etc/hostname"}])]
    (told,) = lines(direct_folder(tmp_path, rows))
    assert "neither bytes nor a path" in told


SCRAPS = (b"null", b"[]", b"{}", b'""', b"1e999", b"NaN", b'"\\ud800"', b"\xff", b"}", b'"', b"\\")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["images", "regions", "questions"])
def test_no_damage_of_a_file_goes_beyond_the_errors_of_this_package(
    tmp_path: Path, name: str
) -> None:
    """Files damaged at random load, or fail in one line that the check names a problem for."""
    folder = reading_folder(tmp_path)
    path = folder / f"{name}.jsonl"
    whole = path.read_bytes()
    chance = random.Random(name)
    failed = 0
    for _ in range(150):
        at = chance.randrange(len(whole))
        scrap = chance.choice(SCRAPS)
        path.write_bytes(whole[:at] + scrap + whole[at + chance.randrange(9) :])
        problems = check(folder)
        try:
            load_benchmark(str(folder))
        except DataError as error:
            failed += 1
            if not problems or "\n" in str(error):
                pytest.fail(f"{path.read_bytes()!r}: {error}")
    assert failed > 75


def test_a_name_that_is_nothing_is_misuse() -> None:
    """A name that is neither a benchmark nor a path is misuse."""
    with pytest.raises(UsageError):
        check_benchmark("captoinqa")
