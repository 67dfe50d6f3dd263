"""Result files of other tools: made by running each of them, read in one form."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from snellen.errors import DataError, ImageError
from snellen.interchange import evalscope, inspect_log, lmms_eval, vlmevalkit
from snellen.interchange.beside import beside, bytes_of
from snellen.interchange.results import RESULTS, find_results, format_of
from snellen.interchange.samples import ForeignSample, samples

FOREIGN = Path(__file__).parents[1] / "data" / "foreign"
REVIEWS = FOREIGN / "evalscope" / "reviews" / "seer-1" / "general_vmcq_example.jsonl"
SAMPLES = FOREIGN / "lmms_eval" / "seer-1" / "20261201_124150_samples_colours.jsonl"
SHEET = FOREIGN / "vlmevalkit" / "seer-1" / "seer-1_colours_exact_matching_result.xlsx"
LOG = FOREIGN / "inspect" / "colours.json"


def by_index(found: list[ForeignSample]) -> dict[str, ForeignSample]:
    return {str(one.index): one for one in found}


def test_evalscope_reviews() -> None:
    """Pictures stand where they stood in the prompt; the report tells benchmark from subset."""
    found = by_index(list(samples(evalscope.read(REVIEWS))))
    assert {k: one.correct for k, one in found.items()} == {"0": True, "1": False, "2": False}
    two = found["2"]
    assert two.pictures == ("pictures/blue.png", "pictures/red.png")
    assert "Look at <|image_1|> and at <|image_2|>. Which one is red?" in two.question
    assert (two.reference, two.reply, two.model) == ("C", "ANSWER: B", "seer-1")
    assert (two.benchmark, two.row) == ("general_vmcq", 1)
    assert found["1"].pictures[0] != found["0"].pictures[0]


def test_an_older_review_and_a_failed_judge_of_evalscope(tmp_path: Path) -> None:
    """Older rows have the prompt as a text; a sample whose judge failed has no verdict."""
    path = tmp_path / "reviews" / "m" / "bench_sub.jsonl"
    path.parent.mkdir(parents=True)
    rows = [
        {"index": 4, "input": "How many?", "target": "two",
         "sample_score": {"score": {"value": {"acc": 0}, "prediction": "three"}}},
        {"index": 5, "input": "How many?", "target": "two",
         "sample_score": {"score": {"value": {}, "prediction": "two", "status": "parse_error"}}},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    old, failed = samples(evalscope.read(path))
    assert (old.question, old.reference, old.reply, old.correct) == (
        "How many?", "two", "three", False,
    )  # fmt: skip
    assert old.is_wrong(0.5) is True
    assert (failed.correct, failed.is_wrong(0.5)) == (None, None)
    assert old.benchmark == "bench_sub"


def test_lmms_eval_samples() -> None:
    """The first metric scores; the model's name is that of the results beside the samples."""
    right, wrong = samples(lmms_eval.read(SAMPLES))
    assert (right.correct, wrong.correct) == (True, False)
    assert (wrong.question, wrong.reference, wrong.reply) == (
        "Which colour is this one?", "blue", "red",
    )  # fmt: skip
    assert (wrong.model, wrong.benchmark, wrong.index) == ("seer-1", "colours", 1)
    assert wrong.pictures == ()


def test_a_metric_of_lmms_eval_may_be_an_object(tmp_path: Path) -> None:
    """Tasks log what their aggregation needs; the score stands inside."""
    path = tmp_path / "m" / "20260101_000000_samples_pope.jsonl"
    path.parent.mkdir()
    row = {"doc_id": 3, "target": "no", "resps": [["yes"]], "filtered_resps": ["yes"],
           "input": "A dog?", "pope_accuracy": {"question_id": 3, "score": 0.0}}  # fmt: skip
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    [one] = samples(lmms_eval.read(path))
    assert (one.reply, one.correct, one.score) == ("yes", False, 0.0)


@pytest.mark.parametrize("name", ["colours.json", "colours.eval"])
def test_inspect_logs(name: str) -> None:
    """Both forms of a log hold the same samples; pictures are attachments."""
    path = FOREIGN / "inspect" / name
    found = by_index(list(samples(inspect_log.read(path))))
    assert {k: one.correct for k, one in found.items()} == {"s1": True, "s2": False, "3": False}
    second = found["s2"]
    assert second.question == "Which colour is the picture?<|image_1|>"
    assert (second.reference, second.reply) == ("blue or navy", "It is green.")
    assert (second.model, second.benchmark) == ("mockllm/model", "colours")
    assert str(second.pictures[0]).startswith("data:image/png;base64,")
    assert bytes_of(second.pictures[0], second, [])[:4] == b"\x89PNG"


def test_choices_of_inspect_are_options() -> None:
    """Options stand apart from the question."""
    found = list(samples(inspect_log.read(FOREIGN / "inspect" / "colours-choice.json")))
    assert [one.options for one in found] == [("blue", "red", "green")] * 2
    assert [one.correct for one in found] == [True, False]


def test_vlmevalkit_sheets() -> None:
    """The data set is what the predictions beside the sheet are named after."""
    found = list(samples(vlmevalkit.read(SHEET)))
    assert [one.correct for one in found] == [True, False, False]
    assert found[2].options == ("blue", "green", "red")
    assert (found[2].reference, found[2].reply, found[2].index) == ("C", "ANSWER: B", 2)
    assert (found[2].model, found[2].benchmark) == ("seer-1", "colours")


def test_other_tables_of_vlmevalkit(tmp_path: Path) -> None:
    """TSV and JSON hold the same columns; pictures may be named, and a failed call is no reply."""
    folder = tmp_path / "m"
    folder.mkdir()
    head = "index\tquestion\tanswer\timage_path\tprediction\tjudge_result"
    lines = ["7\tWhat is <image 1>?\tcup\t['a.png', 'b.png']\tmug\t0",
             "8\tWho?\tcat\tc.png\tFailed to obtain answer via API.\t0"]  # fmt: skip
    (folder / "m_bench.tsv").write_text("\n".join([head, *lines]), encoding="utf-8")
    first, failed = samples(vlmevalkit.read(folder / "m_bench.tsv"))
    assert first.pictures == ("a.png", "b.png")
    assert (first.question, first.correct) == ("What is <|image_1|>?", False)
    assert (failed.reply, failed.correct) == (None, None)
    rows = [{"index": 1, "question": "Q", "answer": "A", "prediction": "B", "score": 0.3}]
    (folder / "m_other.json").write_text(json.dumps(rows), encoding="utf-8")
    [one] = samples(vlmevalkit.read(folder / "m_other.json"))
    assert (one.correct, one.score, one.is_wrong(0.5), one.is_wrong(0.2)) == (
        None, 0.3, True, False,
    )  # fmt: skip


def test_each_file_is_known_for_what_it_is() -> None:
    """A folder is searched; what is no result file is passed over."""
    found = {path.relative_to(FOREIGN).parts[0]: one.name for path, one in find_results(FOREIGN)}
    assert found == {
        "evalscope": "evalscope", "inspect": "inspect", "lmms_eval": "lmms-eval",
        "vlmevalkit": "vlmevalkit",
    }  # fmt: skip
    assert set(RESULTS) == {*found.values(), "snellen"}
    assert format_of(FOREIGN / "vlmevalkit" / "colours.tsv") is None


def test_a_folder_without_results(tmp_path: Path) -> None:
    """The error lists the tools."""
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="holds no result file") as caught:
        list(find_results(tmp_path))
    assert "VLMEvalKit" in caught.value.hint
    with pytest.raises(DataError, match="no such file"):
        list(find_results(tmp_path / "absent"))


def broken_line(path: Path, number: int) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number - 1] = lines[number - 1][:40]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_bad_row_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    """JSON-lines, logs and tables: file and row stand in the message."""
    reviews = tmp_path / "reviews" / "m" / "b.jsonl"
    reviews.parent.mkdir(parents=True)
    shutil.copy(REVIEWS, reviews)
    broken_line(reviews, 2)
    lmms = tmp_path / SAMPLES.name
    shutil.copy(SAMPLES, lmms)
    broken_line(lmms, 2)
    log = tmp_path / "log.json"
    whole = json.loads(LOG.read_text(encoding="utf-8"))
    whole["samples"][1]["target"] = 5
    log.write_text(json.dumps(whole), encoding="utf-8")
    table = tmp_path / "m" / "m_b.tsv"
    table.parent.mkdir()
    head = "index\tquestion\tanswer\tprediction\thit"
    table.write_text(f"{head}\n1\tQ\tA\tB\t0\n2\tQ\tA\n", encoding="utf-8")
    for path, found, row in (
        (reviews, evalscope.read(reviews), 2),
        (lmms, lmms_eval.read(lmms), 2),
        (log, inspect_log.read(log), 2),
        (table, vlmevalkit.read(table), 2),
    ):
        both = list(found)
        [error] = [one for one in both if isinstance(one, DataError)]
        assert f"{path.name}, row {row}" in error.message
        assert len(both) > 1
        with pytest.raises(DataError):
            list(samples(both))


def test_bad_files_are_named(tmp_path: Path) -> None:
    """A file that is none of its kind is named as a whole, and a column that is not there."""
    sheet = tmp_path / "m" / "m_b.xlsx"
    sheet.parent.mkdir()
    sheet.write_bytes(b"no zip")
    with pytest.raises(DataError, match="is no Excel file"):
        list(vlmevalkit.read(sheet))
    table = sheet.with_suffix(".tsv")
    table.write_text("index\tquestion\n1\tQ\n", encoding="utf-8")
    with pytest.raises(DataError, match="field `prediction`: there is no such column"):
        list(vlmevalkit.read(table))
    torn = tmp_path / "torn.eval"
    with zipfile.ZipFile(torn, "w") as archive:
        archive.writestr("samples/a.json", "{}")
    with pytest.raises(DataError, match="no whole log of Inspect"):
        list(inspect_log.read(torn))


def test_pictures_beside_a_file() -> None:
    """By index: files in a folder of the benchmark's name, or the table of VLMEvalKit's data."""
    table = beside("colours", ["0", "2", "9"], [FOREIGN / "vlmevalkit"])
    assert set(table) == {"0", "2"}
    assert table["2"][0].startswith("data:;base64,")
    files = beside("colours", ["1"], [FOREIGN / "lmms_eval" / "pictures"])
    assert [Path(one).name for one in files["1"]] == ["1.png"]
    # Row 2 names row 1, whose picture it shares.
    assert table["2"] == beside("colours", ["1"], [FOREIGN / "vlmevalkit"])["1"]


def test_a_picture_elsewhere_is_not_read(tmp_path: Path) -> None:
    """A result file must not name files outside its folder, nor addresses."""
    first = next(samples(evalscope.read(REVIEWS)))
    outside = tmp_path / "private.png"
    outside.write_bytes(b"secret")
    with pytest.raises(ImageError, match="outside"):
        bytes_of(str(outside), first, [FOREIGN])
    with pytest.raises(ImageError, match="address"):
        bytes_of("https://host/a.png", first, [])
    with pytest.raises(ImageError, match="not there"):
        bytes_of("pictures/blue.png", first, [])
    assert bytes_of("pictures/blue.png", first, [FOREIGN / "evalscope"])[:4] == b"\x89PNG"
