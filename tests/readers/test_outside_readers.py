"""Benchmarks that are not in the package: readers of other packages, and those made in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fakes.server import FakeServer
from tests.worlds.benchmark_files import data_uri, png, write_lines

import snellen
from snellen import Benchmark, Item, Probe
from snellen.cli import cli
from snellen.errors import DataError, UsageError
from snellen.readers import LoadOptions, known, load_benchmark

READER = """
import msgspec
from snellen import Item, Probe
from snellen.readers import Reader

class Row(msgspec.Struct):
    name: str
    picture: msgspec.Raw
    asked: str
    wanted: str

def read(policy):
    for row, record in policy.records("toy", Row):
        policy.claim(row, "name", record.name)
        images = policy.pictures(row, record.picture, "picture")
        if policy.fine:
            probe = Probe(record.name, record.asked, record.wanted)
            yield Item(id=record.name, images=images, probes=(probe,), text=record.asked)

TOY = Reader("toy", "direct", "Toy questions", read)
NOTHING = None
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package outside ours that names a reader `toy`, and two that do not work."""
    site = tmp_path / "site"
    info = site / "toy_reader-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "toy_reader.py").write_text(READER, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[snellen.readers]\n"
        "toy = toy_reader:TOY\nabsent = toy_absent:TOY\nnone = toy_reader:NOTHING\n"
    )
    monkeypatch.syspath_prepend(site)
    return site


def toy_rows(folder: Path) -> Path:
    rows = [
        {"name": f"t{n}", "picture": data_uri(png()), "asked": "How many?", "wanted": "4"}
        for n in range(3)
    ]
    return write_lines(folder / "toy.jsonl", rows)


def command(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None
    return done.return_value or 0, done.stdout, done.stderr


def test_a_reader_of_another_package_is_run_by_its_name(installed: Path, tmp_path: Path) -> None:
    """A benchmark whose reader another package names is run and checked like any other."""
    path = str(toy_rows(tmp_path))
    out = tmp_path / "run"
    with FakeServer("[reason] as it is [judge] True") as server:
        code, _, said = command(
            *("run", "toy", "--data", path, "--model", "fake", "--api-url", server.url),
            *("--judge", "fake", "--out", str(out), "--quiet"),
        )
    assert code == 0, said
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert (summary["benchmark"], summary["counts"]["correct"]) == ("toy", 3)


def test_a_reader_of_another_package_is_listed_and_checked(installed: Path, tmp_path: Path) -> None:
    """`data list` has its name, and `data check` names its bad rows."""
    path = toy_rows(tmp_path)
    (installed / "toy_reader-1.0.dist-info" / "entry_points.txt").write_text(
        "[snellen.readers]\ntoy = toy_reader:TOY\n"
    )
    assert "toy" in command("data", "list")[1]
    assert command("data", "check", "toy", "--data", str(path))[0] == 0
    with path.open("a", encoding="utf-8") as stream:
        stream.write('{"name": "t0", "picture": "none.png", "asked": 7}\n')
    code, told, _ = command("data", "check", "toy", "--data", str(path))
    assert code == 1
    assert [mark in told for mark in ("`asked`", "`wanted`", "`name`", "`picture`")] == [True] * 4


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent", "cannot be loaded: No module named"), ("none", "is of type NoneType, expected")],
)
def test_a_reader_that_does_not_work_is_one_line(
    installed: Path, tmp_path: Path, name: str, message: str
) -> None:
    """An entry point that leads nowhere, or to something else, is told with what it says."""
    with pytest.raises(UsageError, match=message) as caught:
        load_benchmark(name, str(toy_rows(tmp_path)))
    assert caught.value.hint


def test_a_reader_without_data_asks_for_them(installed: Path) -> None:
    """A reader that brings no data and names no data set needs --data."""
    with pytest.raises(DataError, match="data of toy are not released") as caught:
        load_benchmark("toy")
    assert "--data" in caught.value.hint


def sums(**more: Any) -> Benchmark:
    """Four questions in memory."""
    items = tuple(
        Item(
            id=f"q{n}",
            text=f"What is {n} and {n}?",
            images=(),
            probes=(Probe(f"q{n}", f"What is {n} and {n}?", str(2 * n)),),
            groups={"error_category": ("even" if n % 2 == 0 else "odd",)},
        )
        for n in range(4)
    )
    return Benchmark(**({"name": "sums", "protocol": "direct", "items": items} | more))


def test_a_benchmark_made_in_memory_is_run(tmp_path: Path) -> None:
    """`snellen.run` takes a Benchmark; selections apply, and the run goes on in its folder."""
    out = tmp_path / "run"
    done = snellen.run(sums(), model=lambda _: "4", judge="embedded", out=out, subset="even")
    assert done.spec.benchmark == "sums"
    assert [item.id for item in done.items] == ["q0", "q2"]
    assert done.summary is not None
    assert done.summary.metrics["accuracy"].value == 0.5

    asked: list[object] = []
    silent = lambda messages: asked.append(messages) or ""  # noqa: E731
    again = snellen.run(sums(), model=silent, judge="embedded", out=out, subset="even")
    assert again.summary is not None
    assert (again.summary.metrics, asked) == (done.summary.metrics, [])


def test_items_in_memory_get_digests_and_clusters(tmp_path: Path) -> None:
    """Equal items have equal digests; direct questions about one picture share a cluster."""
    (tmp_path / "a.png").write_bytes(png())
    seen = snellen.image_from_path(tmp_path / "a.png")
    items = tuple(replace(one, images=(seen,)) for one in sums().items[:2])
    loaded = load_benchmark(sums(items=items))
    assert {item.cluster for item in loaded.items} == {"q0"}
    assert loaded.digest == load_benchmark(sums(items=items[::-1])).digest
    assert load_benchmark(sums(), options=LoadOptions(limit=1)).items[0].digest
    assert load_benchmark(sums()).items[1].cluster == "q1"


GOOD = Probe("p", "How many?", "A", ("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("protocol", "item", "message"),
    [
        ("direct", Item(" ", (), (GOOD,), text="?"), "needs an id of its own"),
        ("direct", Item("i", (), (), text="?"), "needs probes"),
        ("direct", Item("i", (), (GOOD,)), "needs one probe, and its question"),
        ("reading", Item("i", (), (GOOD, GOOD)), "each with an id of its own"),
        ("reading", Item("i", (), (replace(GOOD, answer="E"),)), "four options and the letter"),
        ("reading", Item("i", (), (replace(GOOD, options=("a",)),)), "four options"),
        ("rubric", Item("i", (), (GOOD,)), "needs the kind"),
    ],
)
def test_an_item_that_does_not_fit_its_protocol_is_refused(
    protocol: str, item: Item, message: str
) -> None:
    """An item in memory is held against its protocol before anything is asked."""
    with pytest.raises(DataError, match=message):
        load_benchmark(sums(protocol=protocol, items=(item,)))


def test_known_benchmarks_are_ours_first() -> None:
    """The bundled benchmarks stand at the head of the list."""
    assert known()[0].name == "mini-reading"
