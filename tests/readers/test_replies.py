"""Replies that exist already, and the result files of the original tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.worlds.benchmark_files import write_lines

from snellen.errors import DataError
from snellen.interchange.original import (
    BenchResult,
    read_bench_results,
    read_captions,
    write_bench_results,
    write_captions,
)
from snellen.readers import load_replies, read_replies


def test_replies_come_as_one_object_or_as_lines(tmp_path: Path) -> None:
    """A JSON object and JSON-lines with the same replies read alike, ids as texts."""
    whole = tmp_path / "a.json"
    whole.write_text(json.dumps({"7": "seven", "x": ""}, indent=1), encoding="utf-8")
    rows = write_lines(
        tmp_path / "b.jsonl", [{"id": 7, "reply": "seven"}, {"id": "x", "reply": ""}]
    )
    assert load_replies(whole) == load_replies(rows) == {"7": "seven", "x": ""}


def test_a_file_with_one_row_is_read_as_a_row(tmp_path: Path) -> None:
    """A file of a single `{id, reply}` row is not taken for two replies."""
    path = write_lines(tmp_path / "one.jsonl", [{"id": "a", "reply": "b", "tokens": 1}])
    assert load_replies(path) == {"a": "b"}


def test_a_torn_last_line_is_dropped_with_a_notice(tmp_path: Path) -> None:
    """A last line that was cut off is dropped and told; one cut in the middle is an error."""
    path = write_lines(tmp_path / "r.jsonl", [{"id": "a", "reply": "x"}])
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"id": "b", "rep')
    found = read_replies(path)
    assert found.replies == {"a": "x"}
    assert len(found.notices) == 1
    assert "r.jsonl, row 2" in found.notices[0]
    with path.open("a", encoding="utf-8") as stream:
        stream.write('\n{"id": "c", "reply": "y"}\n')
    with pytest.raises(DataError, match="row 2"):
        read_replies(path)


def test_null_replies_are_left_out_with_a_notice(tmp_path: Path) -> None:
    """A null reply is a call that failed, not a blank answer: it is left out and told."""
    path = write_lines(tmp_path / "r.jsonl", [{"id": "a", "reply": None}, {"id": "b", "reply": ""}])
    found = read_replies(path)
    assert found.replies == {"b": ""}
    assert len(found.notices) == 1
    whole = tmp_path / "r.json"
    whole.write_text('{"a": null, "b": ""}', encoding="utf-8")
    assert read_replies(whole).replies == {"b": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "reply": "a"}\n{"id": "1", "reply": "b"}\n', "row 2.*'1' is already in row 1"),
        ('{"id": 1, "reply": "a"}\n{"id": 2}\n', "row 2, field `reply`: the field is missing"),
        ('{"id": 1, "reply": "a"}\n{"id": 2, "reply": 3}\n', "row 2, field `reply`: expected text"),
        ('{"a": "x", "a": "y"}', "'a' stands twice"),
        ('{"a": {"text": "x"}}', "field `a`: expected text, found an object"),
        ("", "the file is empty"),
    ],
)
def test_faulty_reply_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """Duplicate ids, missing fields, wrong types and empty files are named."""
    path = tmp_path / "r.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_replies(path)


RESULTS = [
    BenchResult(0, "ocr_error", "NA", "4", 1, "same"),
    BenchResult(1, "ocr_error", "NA", "5", 0, "other"),
    BenchResult(2, "hallucination", "X", "no", 1),
    BenchResult(3, "", "X", None, 0, "failed to obtain answer"),
]


def test_official_result_files_have_the_official_names_keys_and_fractions(tmp_path: Path) -> None:
    """PerceptionBench results carry the official keys, and scores are fractions of all items."""
    files = write_bench_results(RESULTS, tmp_path / "results", model="org/m-1")
    assert files.results.name == "PerceptionBench_org_m-1.jsonl"
    assert files.scores.name == "PerceptionBench_org_m-1_scores.json"
    first = json.loads(files.results.read_text(encoding="utf-8").splitlines()[0])
    assert list(first) == [
        "index",
        "error_category",
        "source_bmk",
        "prediction",
        "judge_result",
        "judge_reason",
    ]
    assert json.loads(files.scores.read_text(encoding="utf-8")) == {
        "overall": 0.5,
        "per_category": {"?": 0.0, "hallucination": 1.0, "ocr_error": 0.5},
    }


def test_official_results_read_back_as_written(tmp_path: Path) -> None:
    """Result files of the official tool read back row by row; a doubtful result is refused."""
    files = write_bench_results(RESULTS, tmp_path, model="m")
    assert read_bench_results(files.results) == tuple(RESULTS)
    write_lines(files.results, [{"index": 1, "error_category": "x", "source_bmk": "y",
                                 "prediction": "z", "judge_result": -1}])  # fmt: skip
    with pytest.raises(DataError, match="expected 0 or 1, found -1"):
        read_bench_results(files.results)


def test_caption_files_read_back_as_written(tmp_path: Path) -> None:
    """A caption file keeps ids, order and every character."""
    captions = {"nat_002": "Zwei Tassen – 猫\n", "doc_001": ""}
    path = write_captions(captions, tmp_path / "out" / "captions.json")
    assert list(read_captions(path).items()) == list(captions.items())
    assert json.loads(path.read_text(encoding="utf-8")) == captions


@pytest.mark.parametrize(
    "text", ["not json", "{}", '{"a": null}', '{"id": "a", "rep', "\n\n", "[]"]
)
@pytest.mark.parametrize("name", ["r.json", "r.jsonl"])
def test_a_file_without_any_reply_is_refused(tmp_path: Path, text: str, name: str) -> None:
    """A file that is no list of replies, or an empty one, is an error and not a run of nothing."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_replies(path)
    assert name in str(caught.value)
