"""Direct questions through the commands: repeats, the control, bad rows, and words of others."""

import json
import re

import pytest
from click.testing import CliRunner
from tests.fakes.server import FakeServer, picture_uris, text_of
from tests.worlds.benchmark_files import data_uri, direct_row, png, write_lines

import snellen
from snellen.cli import cli
from snellen.errors import DataError, UsageError
from snellen.readers import load_benchmark
from snellen.readers.statistics import info
from snellen.replies import parse_verdict
from snellen.replies.official import NO_MARKERS, official_verdict
from snellen.tables.boards import main_table
from snellen.tables.writers import texts

URIS = [data_uri(png((k * 40, 10, 10), (40 + k, 30))) for k in range(3)]
OCR, COUNT = "ocr_error", "visual_counting_error"
ROWS = [
    direct_row(0, URIS[:1], problem="SEEN <|image_1|>", answer="yes", error_category=OCR),
    direct_row(1, URIS[1:2], problem="GUESSED <|image_1|>", answer="yes", error_category=OCR),
    direct_row(2, URIS[2:], problem="MOODY <|image_1|>", answer="yes", error_category=COUNT),
]


def type_in(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A run with two repeats and its control: `SEEN` needs the picture, `MOODY` is right once."""
    folder = tmp_path_factory.mktemp("commands")
    data = write_lines(folder / "PerceptionBench.jsonl", ROWS)
    asked = []

    def answer(body):
        text = text_of(body)
        if "<answer_under_test>" in text:
            said = re.findall(r"<answer_under_test>\n(.*)\n</answer_under_test>", text)[-1]
            return f"[reason] as it is [judge] {said == 'yes'}"
        asked.append(text)
        if "SEEN" in text:
            return "yes" if picture_uris(body) else "no"
        return "no" if "MOODY" in text and asked.count(text) == 2 else "yes"

    with FakeServer(answer) as server:
        for name, words in {"real": {}, "control": {"control": "no-image"}}.items():
            asked.clear()
            snellen.run(
                "perception_bench", data=str(data), model="fake", judge="fake", repeat=2,
                api_url=server.url, out=folder / name, cache=False, **words,
            )  # fmt: skip
    return folder


class TestTables:
    def test_show_tells_how_steady_the_answers_are(self, world):
        """Of three questions two are right in both repeats, one in one of them."""
        done = type_in("show", world / "real")
        [line] = re.findall(r"fake +2 +3 +(.*)", done.stdout)
        assert line.split() == ["83.3", "66.7", "33.3", "0.0", "66.7"]

    def test_show_sets_the_control_beside_the_run(self, world):
        """Without pictures 3 of 6 answers are right, with them 5: 60% needs no picture."""
        done = type_in("show", world / "real", world / "control")
        assert "Without the pictures" in done.stdout
        [row] = re.findall(r"fake .* 33\.3 +60\.0", done.stdout)
        assert "83.3" in row
        assert "50.0" in row

    @pytest.mark.parametrize("order", [("real", "control"), ("control", "real")])
    def test_compare_says_how_much_needs_no_looking(self, world, order):
        """Whichever of the two comes first."""
        done = type_in("compare", *(world / name for name in order), "--across", "control")
        assert "50.0 of 83.3 points of accuracy are reached: 60%" in done.stdout

    def test_the_report_has_a_board_of_controls(self, world):
        """Runs of one name keep their own numbers, whether controls or not."""
        runs = [snellen.load_run(world / name) for name in ("control", "real")]
        assert [row[1] for row in texts(main_table(runs))] == ["83.3", "50.0"]
        assert [row[1] for row in texts(main_table(runs[:1]))] == ["50.0"]

    def test_a_breakdown_counts_items_not_repeats(self, world):
        """Two questions on text, asked twice each, are two items and four probes."""
        counts = json.loads((world / "real/summary.json").read_text(encoding="utf-8"))
        assert counts["group_counts"]["error_category"][OCR]["items"] == 2
        assert counts["group_counts"]["error_category"][OCR]["probes"] == 4


BROKEN = {
    "no picture": data_uri(b"hello world, this is text"),
    "an HTML page": data_uri(b"<html><body>503</body></html>"),
    "holds '!' where base64 is due": "data:image/png;base64,!!!!",
    "is broken or cut off": data_uri(png(size=(300, 200))[:-40]),
    "the picture 'gone.png' does not exist": "gone.png",
}


class TestBadRows:
    @pytest.mark.parametrize("said", BROKEN)
    def test_a_broken_picture_is_named_at_once(self, tmp_path, said):
        """File, row, field and which picture are named before anything is asked."""
        rows = [ROWS[0], direct_row(1, [URIS[1], BROKEN[said]])]
        data = write_lines(tmp_path / "rows.jsonl", rows)
        with pytest.raises(DataError) as caught:
            load_benchmark("perception_bench", str(data))
        assert caught.value.message.startswith("rows.jsonl, row 2, field `image`: ")
        assert said in caught.value.message

    def test_a_picture_that_only_looks_wrong_passes(self, tmp_path):
        """Bytes after a picture's end can be cut off, so that such a row is no bad one."""
        rows = [direct_row(0, [data_uri(png() + b"tail", "image/jpeg")])]
        data = write_lines(tmp_path / "rows.jsonl", rows)
        assert len(load_benchmark("perception_bench", str(data)).items) == 1

    def test_skipped_rows_are_counted_in_the_summary(self, tmp_path):
        """A missing field, a broken picture, a mark without pictures and a twin: four bad rows."""
        lone = {k: v for k, v in direct_row(6, URIS[:1]).items() if k != "answer"}
        bad = [
            lone,
            direct_row(7, [BROKEN["no picture"]]),
            direct_row(8, []),
            direct_row(0, URIS[:1]),
        ]
        data = write_lines(tmp_path / "rows.jsonl", [*ROWS, *bad])
        run = snellen.run(
            "perception_bench", data=str(data), model=lambda messages: "yes", judge="embedded",
            out=tmp_path / "run", on_bad_row="skip",
        )  # fmt: skip
        summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
        assert (summary["counts"]["items"], summary["counts"]["bad_rows"]) == (3, 4)
        named = [re.match(r"rows.jsonl, row (\d), field", said) for said in run.spec.skipped_rows]
        assert [found and found[1] for found in named] == ["4", "5", "6", "7"]


class TestWords:
    def test_a_control_of_another_protocol_is_refused(self, tmp_path):
        """Nothing is asked under a control that direct questions do not have."""
        data = write_lines(tmp_path / "rows.jsonl", ROWS)
        words = ["--data", data, "--model", "m", "--api-url", "http://127.0.0.1:9/v1"]
        done = type_in("run", "perception_bench", *words, "--judge", "j", "--control", "blind")
        assert isinstance(done.exception, UsageError)
        assert "no control `blind`" in done.exception.message

    def test_two_benchmarks_in_one_command_are_refused(self):
        """One is not silently left out."""
        done = type_in("run", "mini-direct", "--datasets", "perception_bench", "--model", "m")
        assert isinstance(done.exception, UsageError)
        assert "two benchmarks" in done.exception.message

    @pytest.mark.parametrize(
        ("words", "missing"),
        [
            (["--api-key", "EMPTY_TOKEN", "--limit", "10", "--model", "m"], "no judge"),
            (["--judge", "j"], "no model"),
        ],
    )
    def test_who_is_asked_comes_before_the_data(self, words, missing):
        """What the command line lacks is said before gigabytes are fetched."""
        done = type_in("run", "--datasets", "perception_bench", *words)
        assert isinstance(done.exception, UsageError)
        assert done.exception.message.startswith(missing)

    @pytest.mark.parametrize("labels", [OCR, [OCR], (OCR,)])
    def test_python_takes_the_words_of_the_command(self, tmp_path, labels):
        """`subset` may be one label or several, and `hint` may be off."""
        data = write_lines(tmp_path / "rows.jsonl", [dict(row, hint="Look.") for row in ROWS])
        roles = []
        run = snellen.run(
            "perception_bench", data=str(data), judge="embedded", subset=labels, hint="off",
            model=lambda messages: roles.extend(m["role"] for m in messages) or "yes",
            out=tmp_path / "run",
        )  # fmt: skip
        assert list(run.spec.items) == ["0", "1"]
        assert set(roles) == {"user"}


def test_info_has_the_pictures_of_each_capability(tmp_path):
    """How many, and the smallest and largest, by capability."""
    found = info(
        load_benchmark("perception_bench", str(write_lines(tmp_path / "rows.jsonl", ROWS)))
    )
    ocr = found.pictures_by[OCR]
    assert (ocr.uses, ocr.smallest, ocr.largest) == (2, (40, 30), (41, 30))
    assert found.pictures_by[COUNT].largest == (42, 30)
    assert found.terms == "non-commercial use only"


@pytest.mark.parametrize(
    "reply",
    [
        "[reason] ok [judge] True",
        "[reason] ok [/reason] [judge] False [/judge]",
        "［reason］ ok ［judge］ False",
        "【reason】ok【judge】False",
        "[reason] ok [judge] Ｔｒｕｅ",
        "[reason] ok [judge] not true",
        "[reason] ok [judge] yes",
        "[Reason] ok [Judge] False",
    ],
)
def test_marked_means_that_the_official_script_reads_the_same(reply):
    """Every other reading is counted as recovered, however like the protocol's form it looks."""
    parsed, official = parse_verdict(reply), official_verdict(reply)
    alike = official.note != NO_MARKERS and official.value is parsed.value
    assert isinstance(parsed.value, bool)
    assert parsed.how == ("marked" if alike else "recovered")
