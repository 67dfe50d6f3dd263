"""Benchmarks of each form become items and probes."""

from __future__ import annotations

import json
import random
import sys
import types
from dataclasses import replace
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

from snellen.errors import DataError, ImageError, MissingExtraError, UsageError
from snellen.pictures.prepare import read
from snellen.readers import KNOWN, LoadOptions, known, load_benchmark, taxonomy
from snellen.readers.captionqa import captionqa_order, is_yes_no
from snellen.records import Probe


def test_a_reading_folder_becomes_one_item_an_image_with_its_questions_in_file_order(
    tmp_path: Path,
) -> None:
    """A reading folder becomes one item an image, its questions in file order and grouped."""
    benchmark = load_benchmark(str(reading_folder(tmp_path)))
    assert (benchmark.name, benchmark.protocol, benchmark.license) == ("mine", "reading", "CC0-1.0")
    first = benchmark.items[0]
    assert [probe.id for probe in first.probes] == ["q0", "q2"]
    assert first.cluster == first.id == "a"
    assert first.groups == {"l1": ("Sports",), "l2": ("Ball Sports",)}
    assert first.probes[1].groups == {
        "category": "Action",
        "generator": "g1",
        "nature": "thing",
        "region_id": "a-r",
        "area": "large",
    }
    assert (first.probes[1].answer, first.probes[1].options[3]) == ("D", "four")
    assert benchmark.regions[0].bbox == (0, 10, 500, 990)
    assert Path(first.images[0].path) == tmp_path / "a.png"


def test_a_rubric_row_becomes_must_right_then_easy_wrong_probes(tmp_path: Path) -> None:
    """A rubric row becomes numbered Must-Right, then Easy-Wrong probes; an object names origins."""
    origin = {"text": "Says cups.", "proposer": "p", "jurors": ["j1", "j2"]}
    folder = rubric_folder(tmp_path, [rubric_row("r0", "a.png", must_right=["x", origin])])
    item = load_benchmark(str(folder)).items[0]
    assert [(probe.id, probe.kind, probe.answer) for probe in item.probes] == [
        ("must_right/0", "must_right", "true"),
        ("must_right/1", "must_right", "true"),
        ("easy_wrong/0", "easy_wrong", "true"),
        ("easy_wrong/1", "easy_wrong", "true"),
    ]
    assert item.probes[1].question == "Says cups."
    assert item.probes[1].groups == {"proposer": "p", "jurors": "j1, j2"}
    assert item.reference == "Two red cups on a table."
    assert item.groups == {"category": ("Natural Scene",)}


def test_ids_are_texts_and_keep_their_original_type_beside(tmp_path: Path) -> None:
    """Ids are texts, and their original type is kept beside for exports."""
    items = load_benchmark(str(direct_folder(tmp_path))).items
    assert [(item.id, item.original_id, item.probes[0].id) for item in items] == [
        ("0", 0, "0"),
        ("1", 1, "1"),
    ]


def test_all_file_formats_give_the_same_items(tmp_path: Path) -> None:
    """JSON-lines, a JSON array and Parquet with the same rows give the same digest."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [direct_row(n, [data_uri(png((n * 9, 0, 0)))], source_idx=n) for n in range(5)]
    lines = write_lines(tmp_path / "a.jsonl", rows)
    array = tmp_path / "b.json"
    array.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    table = tmp_path / "c.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    options = LoadOptions(cache=str(tmp_path / "cache"))
    found = [
        load_benchmark("perception_bench", str(p), options=options) for p in (lines, array, table)
    ]
    assert len({benchmark.digest for benchmark in found}) == 1
    assert [item.id for item in found[2].items] == ["0", "1", "2", "3", "4"]


def test_pictures_inside_parquet_are_read_from_their_rows(tmp_path: Path) -> None:
    """Pictures inside Parquet are not copied: they are read again from their rows, in any order."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    same = {"bytes": png(), "path": "a.png"}
    other = {"bytes": png((0, 99, 0)), "path": None}
    rows = [rubric_row(f"r{n}", same if n < 20 else other) for n in range(40)]
    path = tmp_path / "test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=15)
    options = LoadOptions(cache=str(tmp_path / "cache"))
    items = load_benchmark("perception_rubrics", str(tmp_path), options=options).items
    assert not (tmp_path / "cache").exists()
    for at in (0, 39, 5, 25, 19, 20, 39):
        expected = png() if at < 20 else png((0, 99, 0))
        assert read(items[at].images[0]) == expected
        assert items[at].images[0].row == at + 1
    stored = [{"image_id": "x", "image": {"path": None, "bytes": None}}]
    parquet.write_table(pyarrow.Table.from_pylist(stored), path)
    with pytest.raises(ImageError, match="another picture"):
        read(items[39].images[0])


def test_a_picture_may_be_named_in_four_ways(tmp_path: Path) -> None:
    """A path, a data URI, bare base64 and a bytes-and-path object all name a picture."""
    uri = data_uri(png())
    bare = uri.partition(",")[2]
    ways = ["a.png", uri, bare, {"bytes": bare, "path": "x.png"}, {"bytes": None, "path": "a.png"}]
    folder = direct_folder(tmp_path, [direct_row(0, ways)])
    images = load_benchmark(str(folder)).items[0].images
    text = (folder / "questions.jsonl").read_bytes()
    assert [image.end is None for image in images] == [True, False, False, False, True]
    assert [json.loads(text[one.start : one.end]) for one in images[1:4]] == [uri, bare, bare]


def test_windows_line_ends_blank_lines_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    """Windows line ends, blank lines and a byte order mark change nothing but the row numbers."""
    plain = load_benchmark(str(direct_folder(tmp_path)))
    path = tmp_path / "questions.jsonl"
    rows = path.read_bytes().splitlines()
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(rows))
    assert load_benchmark(str(tmp_path)).digest == plain.digest


def test_the_benchmark_digest_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    """Shuffled rows give the same benchmark digest; another answer gives another one."""
    folder = direct_folder(tmp_path)
    before = load_benchmark(str(folder)).digest
    path = folder / "questions.jsonl"
    rows = path.read_text(encoding="utf-8").splitlines()
    write_lines(path, rows[::-1])
    assert load_benchmark(str(folder)).digest == before
    write_lines(path, [row.replace('"answer": "4"', '"answer": "5"') for row in rows])
    assert load_benchmark(str(folder)).digest != before


def test_option_texts_reach_the_probe_unchanged(tmp_path: Path) -> None:
    """Options with brackets, signs and outer blanks are passed on as they are."""
    options = ["ln(2) = [T1 - T2]", " [x]", "(see fig.)", "0"]
    folder = reading_folder(tmp_path)
    write_lines(folder / "questions.jsonl", [question(0, "a", options=options), question(1, "b")])
    assert load_benchmark(str(folder)).items[0].probes[0].options == tuple(options)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answer": "E"}, ["questions.jsonl, row 2, field `answer`", "'E'", "A to D"]),
        ({"options": ["a", "b", "c"]}, ["field `options`", "expected 4", "found 3"]),
        ({"options": ["a", " ", "c", "d"]}, ["field `options`", "option 2 is empty"]),
        ({"category": "Cuont"}, ["field `category`", "ten categories"]),
        ({"image_id": "z"}, ["field `image_id`", "no image 'z'"]),
        ({"image_id": "b"}, ["field `region_id`", "belongs to the image 'a'"]),
        ({"image_id": "z", "region_id": None}, ["field `image_id`", "no image 'z'"]),
        ({"region_id": "z"}, ["field `region_id`", "no region 'z'"]),
        ({"question_id": "q0"}, ["field `question_id`", "row 1"]),
        ({"question": 7}, ["field `question`", "expected text, found a whole number"]),
    ],
)
def test_a_bad_question_stops_the_load_and_is_named(
    tmp_path: Path, change: dict[str, Any], words: list[str]
) -> None:
    """A bad question stops the load with its file, row and field, and what was expected."""
    folder = reading_folder(tmp_path)
    write_lines(folder / "questions.jsonl", [question(0, "a"), question(1, "a") | change])
    with pytest.raises(DataError) as caught:
        load_benchmark(str(folder))
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_rows_are_left_out_and_listed_when_asked_for(tmp_path: Path) -> None:
    """With `skip`, a bad row is left out and listed, and the other rows load."""
    rows = [direct_row(0, ["a.png"]), direct_row(0, ["b.png"]), direct_row(2, ["no.png"])]
    folder = direct_folder(tmp_path, rows)
    benchmark = load_benchmark(str(folder), options=LoadOptions(on_bad_row="skip"))
    assert [item.id for item in benchmark.items] == ["0"]
    assert ["row 2" in benchmark.skipped[0], "row 3" in benchmark.skipped[1]] == [True, True]


def test_an_image_without_questions_is_a_bad_row(tmp_path: Path) -> None:
    """An image that no question asks about is named: its caption would be paid in vain."""
    folder = reading_folder(tmp_path)
    write_lines(folder / "questions.jsonl", [question(0, "a")])
    with pytest.raises(DataError, match=r"images.jsonl, row 2.*no question"):
        load_benchmark(str(folder))


def test_the_limit_counts_items_of_the_whole(tmp_path: Path) -> None:
    """The limit takes the first items, and reads no further than it must."""
    rows = [direct_row(n, ["a.png"]) for n in range(3)]
    folder = direct_folder(tmp_path, [*rows, "{broken"])
    items = load_benchmark(str(folder), options=LoadOptions(limit=2)).items
    assert [item.id for item in items] == ["0", "1"]


def test_subsets_pick_items_by_label_and_questions_by_category(tmp_path: Path) -> None:
    """A subset is a label of items or, in reading, a category, which then picks questions."""
    folder = reading_folder(tmp_path)
    both = load_benchmark(str(folder), options=LoadOptions(subsets=("Action",)))
    assert [[probe.id for probe in item.probes] for item in both.items] == [["q2"], ["q3"]]
    whole = load_benchmark(str(folder), options=LoadOptions(subsets=("Sports",)))
    assert [len(item.probes) for item in whole.items] == [2, 2]


def test_a_subset_that_does_not_exist_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """An unknown subset is misuse, and the nearest label is named."""
    folder = direct_folder(tmp_path)
    with pytest.raises(UsageError) as caught:
        load_benchmark(str(folder), options=LoadOptions(subsets=("ocr_eror",)))
    assert "ocr_error" in caught.value.hint


def test_a_limit_per_subset_applies_to_each_label(tmp_path: Path) -> None:
    """A limit a subset takes the first items of each label."""
    rows = [
        direct_row(n, ["a.png"], error_category=["ocr_error", "hallucination"][n % 2])
        for n in range(6)
    ]
    folder = direct_folder(tmp_path, rows)
    items = load_benchmark(str(folder), options=LoadOptions(limit_per_subset=1)).items
    assert [item.id for item in items] == ["0", "1"]


def test_a_sample_is_stratified_and_depends_on_the_seed_and_not_on_row_order(
    tmp_path: Path,
) -> None:
    """A sample keeps the proportions of the labels, and is the same in any row order."""
    rows = [
        direct_row(n, ["a.png"], error_category="ocr_error" if n < 30 else "hallucination")
        for n in range(40)
    ]
    folder = direct_folder(tmp_path, rows)

    def drawn(seed: int) -> list[str]:
        options = LoadOptions(sample=8, seed=seed)
        return [item.id for item in load_benchmark(str(folder), options=options).items]

    first = drawn(1)
    assert sum(int(name) < 30 for name in first) == 6
    assert len(first) == 8
    assert first == sorted(first, key=int)
    assert drawn(2) != first
    write_lines(folder / "questions.jsonl", rows[::-1])
    assert sorted(drawn(1)) == sorted(first)


def test_an_unknown_name_is_misuse_with_the_nearest_name() -> None:
    """An unknown benchmark name is misuse, and the nearest known one is named."""
    with pytest.raises(UsageError) as caught:
        load_benchmark("percepton_bench")
    assert "perception_bench" in caught.value.hint
    assert caught.value.exit_code == 2


def test_capprobe_without_data_says_that_it_is_not_released(tmp_path: Path) -> None:
    """CapProbe cannot be fetched, since its authors have not released it; a folder can be named."""
    with pytest.raises(DataError, match="not released") as caught:
        load_benchmark("capprobe")
    assert caught.value.exit_code == 1
    benchmark = load_benchmark("capprobe", str(reading_folder(tmp_path)))
    assert (benchmark.name, benchmark.protocol) == ("capprobe", "reading")


def test_data_for_a_folder_or_a_bundled_benchmark_is_misuse(tmp_path: Path) -> None:
    """`--data` beside a folder or a bundled benchmark is misuse."""
    folder = str(direct_folder(tmp_path))
    with pytest.raises(UsageError, match="own data"):
        load_benchmark(folder, folder)
    with pytest.raises(UsageError, match="own data"):
        load_benchmark("mini-direct", folder)


def test_the_known_benchmarks_say_their_terms() -> None:
    """Every known benchmark is listed with its protocol; PerceptionBench is non-commercial."""
    assert [one.name for one in known()] == [
        "mini-reading",
        "mini-rubric",
        "mini-direct",
        "capprobe",
        "perception_bench",
        "perception_rubrics",
        "captionqa",
    ]
    assert "non-commercial" in KNOWN["perception_bench"].license


def test_the_taxonomy_has_the_published_size() -> None:
    """The taxonomy has 37 domains and 219 sub-domains, as CapProbe's table 5."""
    domains = taxonomy()
    assert (len(domains), sum(map(len, domains.values()))) == (37, 219)


def captionqa_rows(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(png())

    def asked(text: str, choices: list[str], answer: str) -> dict[str, Any]:
        return {"question": text, "choices": choices, "answer": answer, "category": ["Scene", "x"]}

    rows = [
        {
            "id": "nat_001",
            "images": ["a.png"],
            "questions": [
                asked("What is red?", ["cup", "hat", "cat"], "hat"),
                asked("What is blue?", ["cup"], "cup"),
                asked("Which?", ["a", "b"], "c"),
                asked("Is it open?", ["open", "shut"], " shut "),
            ],
        },
        {
            "id": "doc_002",
            "image": "a.png",
            "questions": [asked("Who signs?", ["A", "B", "C", "D"], "D")],
        },
    ]
    return write_lines(tmp_path / "rows.jsonl", rows)


def test_captionqa_keeps_stored_order_and_counts_what_cannot_be_used(tmp_path: Path) -> None:
    """CaptionQA options stay as stored, and unusable questions are listed, not silently gone."""
    benchmark = load_benchmark("captionqa", str(captionqa_rows(tmp_path)))
    first = benchmark.items[0]
    assert [(probe.id, probe.answer) for probe in first.probes] == [
        ("nat_001/0", "B"),
        ("nat_001/3", "B"),
    ]
    assert first.probes[0].groups == {"category": "Scene", "choices": "3"}
    assert len(benchmark.skipped) == 2
    assert all("nat_001/" in line for line in benchmark.skipped)


def test_captionqa_shuffles_with_one_generator_over_the_whole_set(tmp_path: Path) -> None:
    """The orders come from one `Random(0)` over all usable questions, so a part keeps them."""
    path = str(captionqa_rows(tmp_path))
    generator, expected = random.Random(0), []
    for size in (4, 2, 5):
        order = list(range(size))
        generator.shuffle(order)
        expected.append(order)
    whole = load_benchmark("captionqa", path)
    found = [order for item in whole.items for order in item.extra["permutations"].values()]
    assert found == expected
    part = load_benchmark("captionqa", path, options=LoadOptions(subsets=("document",)))
    assert list(part.items[0].extra["permutations"].values()) == expected[2:]


def test_a_shuffle_of_indices_is_the_shuffle_of_the_options() -> None:
    """Shuffling indices gives the order that shuffling the texts themselves gives."""
    options = ("red", "green", "blue")
    texts = [*options, "cannot"]
    random.Random(0).shuffle(texts)
    order = captionqa_order([Probe("p", "What colour?", "A", options)])["p"]
    assert [([*options, "cannot"])[at] for at in order] == texts


@pytest.mark.parametrize(
    ("text", "choices", "expected"),
    [
        ("Is it red?", ["red", "blue"], True),
        ("What is it?", ["Yes, it is", "nothing"], True),
        ("Island or sea?", ["island", "sea"], False),
        ("What is it?", ["yes", "maybe"], False),
    ],
)
def test_yes_no_questions_get_no_extra_option(
    text: str, choices: list[str], expected: bool
) -> None:
    """An auxiliary verb at the start, or yes and no among the choices, make a yes/no question."""
    assert is_yes_no(text, choices) is expected


def test_captionqa_accepts_flat_rows(tmp_path: Path) -> None:
    """Rows with one question each are gathered by image."""
    (tmp_path / "a.png").write_bytes(png())
    flat = [
        {"id": "nat_1", "image": "a.png", "question": q, "choices": ["a", "b"], "answer": "a"}
        for q in ("One?", "Two?")
    ]
    path = write_lines(tmp_path / "flat.jsonl", flat)
    items = load_benchmark("captionqa", str(path)).items
    assert [probe.id for probe in items[0].probes] == ["nat_1/0", "nat_1/1"]


class FakeStream:
    """What `datasets.load_dataset(..., streaming=True)` gives, as far as it is used."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.decoding = True
        self.read = 0

    def decode(self, enable: bool) -> FakeStream:
        self.decoding = enable
        return self

    def __iter__(self) -> Any:
        assert not self.decoding, "pictures must stay the publisher's bytes"
        for row in self.rows:
            self.read += 1
            yield row


class FakeHub:
    """Stands for the `datasets` library; counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stream: FakeStream) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.stream = stream
        module = types.ModuleType("datasets")
        exceptions = types.ModuleType("datasets.exceptions")
        exceptions.DatasetsError = type("DatasetsError", (Exception,), {})  # type: ignore[attr-defined]
        module.exceptions = exceptions  # type: ignore[attr-defined]
        module.load_dataset = self.load_dataset  # type: ignore[attr-defined]
        errors = types.ModuleType("huggingface_hub.errors")
        errors.HTTPError = OSError  # type: ignore[attr-defined]
        hub = types.ModuleType("huggingface_hub")
        hub.errors = errors  # type: ignore[attr-defined]
        hub.HfApi = lambda: self  # type: ignore[attr-defined]
        self.offline = False
        for one in (module, hub, errors):
            monkeypatch.setitem(sys.modules, one.__name__, one)

    def dataset_info(self, repository: str) -> Any:
        if self.offline:
            raise ConnectionError("no route to host")
        return types.SimpleNamespace(sha="abc123")

    def load_dataset(self, repository: str, **more: Any) -> FakeStream:
        self.asked.append((repository, more))
        return self.stream


def test_a_public_data_set_is_fetched_once_and_its_revision_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public data set is fetched once at a known revision; later loads need no network."""
    rows = [rubric_row(f"r{n}", {"bytes": png((n, 0, 0)), "path": None}) for n in range(3)]
    hub = FakeHub(monkeypatch, FakeStream(rows))
    options = LoadOptions(cache=str(tmp_path))
    first = load_benchmark("perception_rubrics", options=options)
    hub.offline = True
    again = load_benchmark("perception_rubrics", options=options)
    assert hub.asked == [
        (
            "M1chaelPeng/PerceptionRubrics",
            {"split": "test", "streaming": True, "revision": "abc123"},
        )
    ]
    assert (first.revision, again.revision) == ("abc123", "abc123")
    assert first.digest == again.digest
    assert Path(first.items[2].images[0].path).read_bytes() == png((2, 0, 0))


def test_a_limit_fetches_no_more_rows_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit, only so many rows are fetched, and the next load without it gets them all."""
    stream = FakeStream([direct_row(n, [data_uri(png())]) for n in range(9)])
    FakeHub(monkeypatch, stream)
    options = LoadOptions(cache=str(tmp_path), limit=2)
    assert len(load_benchmark("perception_bench", options=options).items) == 2
    assert stream.read == 2
    whole = load_benchmark("perception_bench", options=replace(options, limit=None))
    assert len(whole.items) == 9


def test_a_hub_out_of_reach_is_one_line_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the hub is out of reach and nothing is cached, `--data` is offered."""
    hub = FakeHub(monkeypatch, FakeStream([]))
    hub.offline = True
    with pytest.raises(DataError, match="no route to host") as caught:
        load_benchmark("perception_bench", options=LoadOptions(cache=str(tmp_path)))
    assert "--data" in caught.value.hint


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library that fetches, the message names the extra to install."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError) as caught:
        load_benchmark("captionqa", options=LoadOptions(cache=str(tmp_path)))
    assert "snellen[hub]" in caught.value.hint


def test_a_split_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """An unknown split is refused before anything is fetched."""
    options = LoadOptions(cache=str(tmp_path), split="natrual")
    with pytest.raises(DataError) as caught:
        load_benchmark("captionqa", options=options)
    assert "natural" in caught.value.hint


def test_modelscope_is_another_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same data set can come from ModelScope."""
    asked: list[tuple[str, dict[str, Any]]] = []

    class FakeSet:
        @staticmethod
        def load(repository: str, **more: Any) -> list[dict[str, Any]]:
            asked.append((repository, more))
            return [direct_row(0, [data_uri(png())])]

    package = types.ModuleType("modelscope")
    module = types.ModuleType("modelscope.msdatasets")
    module.MsDataset = FakeSet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "modelscope", package)
    monkeypatch.setitem(sys.modules, "modelscope.msdatasets", module)
    options = LoadOptions(cache=str(tmp_path), source="modelscope")
    assert len(load_benchmark("perception_bench", options=options).items) == 1
    assert asked == [("moonshotai/PerceptionBench", {"split": "train", "use_streaming": True})]


def test_a_folder_without_a_card_or_with_an_unknown_protocol_is_refused(tmp_path: Path) -> None:
    """A folder needs a benchmark.json with a known protocol."""
    with pytest.raises(DataError, match=r"has no benchmark\.json"):
        load_benchmark(str(tmp_path))
    write_card(tmp_path, "readng")
    with pytest.raises(DataError, match=r"field `protocol`: there is no protocol") as caught:
        load_benchmark(str(tmp_path))
    assert "reading" in caught.value.hint
