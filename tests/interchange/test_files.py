"""To and from the files of other tools."""

import json

import pytest
from click.testing import CliRunner
from tests.worlds.benchmark_files import direct_folder, direct_row, reading_folder

import snellen
from snellen.cli import cli
from snellen.errors import DataError, UsageError
from snellen.interchange.files import NO_ANSWER, export_run, import_replies
from snellen.readers.replies import load_replies

RIGHT, WRONG = "[reason] it fits\n[judge] True", "[reason] it does not\n[judge] False"
ROWS = [
    direct_row(10, ["a.png"], answer="4", source_bmk="ZeroBench-sub", source_idx=3),
    direct_row(11, ["a.png"], answer="5"),
    direct_row(12, ["b.png"], answer="6", error_category="ocr_error"),
    direct_row(13, ["b.png"], answer="7", error_category="ocr_error"),
    direct_row(14, ["b.png"], answer="8", error_category=" "),
]
SAID = {"10": "4", "11": "four", "12": " ", "13": "HUM"}


def grade(messages):
    text = messages[-1]["content"]
    return "Hm." if "HUM" in text else RIGHT if "\n4\n</answer_under_test>" in text else WRONG


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One right, one wrong, one blank, one unreadable, one without a reply."""
    folder = tmp_path_factory.mktemp("exchange")
    data = direct_folder(folder / "data", ROWS)
    return snellen.run(
        str(data), model="org/model-1", judge=grade, replies=SAID, out=folder / "run", cache=False
    )


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_official_results(run, tmp_path):
    """Rows are in the order of the data, with the original ids, and 1 only for what is right."""
    done = export_run("perception_bench", run, tmp_path)
    results, _ = done.files
    assert results.name == "PerceptionBench_org_model-1.jsonl"
    rows = lines(results)
    assert [row["index"] for row in rows] == [10, 11, 12, 13, 14]
    assert [row["judge_result"] for row in rows] == [1, 0, 0, 0, 0]
    assert [row["prediction"] for row in rows] == ["4", "four", "", "HUM", None]
    assert [row["judge_reason"] for row in rows[:3]] == ["it fits", "it does not", NO_ANSWER]
    assert rows[3]["judge_reason"].startswith("judge error: unreadable_")
    assert rows[0]["source_bmk"] == "ZeroBench-sub"
    assert rows[0]["error_category"] == "visual_counting_error"


def test_official_scores(run, tmp_path):
    """Scores are fractions over all questions; what is unscored counts as wrong, and is told."""
    done = export_run("perception_bench", run, tmp_path)
    scores = json.loads(done.files[1].read_text(encoding="utf-8"))
    assert scores == {
        "overall": 1 / 5,
        "per_category": {"?": 0.0, "ocr_error": 0.0, "visual_counting_error": 1 / 2},
    }
    assert scores["overall"] == run.summary.metrics["accuracy"].value
    assert done.notices == ("2 unscored questions count as wrong there, as in the official script",)


def test_official_results_come_back(run, tmp_path):
    """What was exported can be imported and judged again, to the same numbers."""
    results = export_run("perception_bench", run, tmp_path).files[0]
    done = import_replies("perception_bench", results, tmp_path / "in")
    assert (done.n, done.n_null, done.model) == (5, 1, "org_model-1")
    replies = load_replies(done.file)
    assert replies == {"10": "4", "11": "four", "12": "", "13": "HUM"}
    data = direct_folder(tmp_path / "data", ROWS)
    again = snellen.run(
        str(data), model="m", judge=grade, replies=replies, out=tmp_path / "again", cache=False
    )
    assert again.summary.metrics == run.summary.metrics


def test_replies_of_any_run(run, tmp_path):
    """`replies` writes JSON {id: text}; a blank reply stays, a missing one is left out and told."""
    done = export_run("replies", run, tmp_path / "r.json")
    assert load_replies(done.files[0]) == {"10": "4", "11": "four", "12": "", "13": "HUM"}
    assert done.notices == ("1 items without a reply were left out",)


def test_captions(tmp_path):
    """A reading run's captions become a caption file, which comes back as replies."""
    data = reading_folder(tmp_path / "data")
    captions = {"a": "Two cups.", "b": "A ball."}

    def always(messages):
        return "B"

    run = snellen.run(
        str(data), model="m", judge=always, replies=captions, out=tmp_path / "run", cache=False
    )
    file = tmp_path / "captions.json"
    export_run("captionqa", run, file)
    assert json.loads(file.read_text(encoding="utf-8")) == captions
    assert load_replies(import_replies("captionqa", file, tmp_path / "in").file) == captions
    with pytest.raises(UsageError, match="is a reading run"):
        export_run("perception_bench", run, tmp_path / "x")


def test_repeats_are_told(run, tmp_path):
    """Of several repeats the first is written, and that is said."""
    data = direct_folder(tmp_path / "data", ROWS[:1])
    more = snellen.run(
        str(data), model="m", judge=grade, replies=SAID, out=tmp_path / "run", repeat=2
    )
    done = export_run("perception_bench", more, tmp_path / "out")
    assert done.n == 1
    assert "only the first of 2 repeats was written" in done.notices


def test_wrong_words(run, tmp_path):
    """Unknown formats, and captions of a run that has none, are refused."""
    with pytest.raises(UsageError, match="no export format csv"):
        export_run("csv", run, tmp_path)
    with pytest.raises(UsageError, match="no import format csv"):
        import_replies("csv", tmp_path / "x", tmp_path)
    with pytest.raises(UsageError, match="holds no captions"):
        export_run("captionqa", run, tmp_path / "x.json")


def test_a_wrong_results_file(tmp_path):
    """A results file that is damaged is refused with its row."""
    file = tmp_path / "PerceptionBench_m.jsonl"
    row = {"index": 1, "error_category": "x", "source_bmk": "x", "prediction": "4"}
    file.write_text(json.dumps(row | {"judge_result": 2}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 1.*expected 0 or 1, found 2"):
        import_replies("perception_bench", file, tmp_path / "in")


def test_the_commands(run, tmp_path):
    """`snellen export` names its files, `snellen import` says what to type next."""
    done = CliRunner().invoke(
        cli, ["export", "perception_bench", str(run.folder), "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    results = tmp_path / "PerceptionBench_org_model-1.jsonl"
    assert str(results) in done.output
    back = CliRunner().invoke(
        cli, ["import", "perception_bench", str(results), "--out", str(tmp_path / "in")]
    )
    assert back.exit_code == 0, back.output
    assert f"--replies {tmp_path / 'in' / 'replies.jsonl'} --model org_model-1" in back.output
    assert "1 of 5 replies are null" in back.output
