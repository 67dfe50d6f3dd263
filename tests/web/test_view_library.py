"""Indexes beside runs: fresh, in reach of no writer but their own, and harmless when broken."""

from __future__ import annotations

import os
import stat
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.worlds.report_runs import picture, reading_run, save_run
from tests.worlds.viewed_runs import browser_at

from snellen.records import Verdict
from snellen.web.view import index
from snellen.web.view.library import Library
from snellen.web.view.work import Beside, Here


def library_of(root: Path, renewal_s: float = 0.0) -> Library:
    """A library that works at once."""
    for name in ("cache", "scratch"):
        (root.parent / name).mkdir(exist_ok=True)
    return Library(
        (root,), Here(), root.parent / "cache", root.parent / "scratch", renewal_s=renewal_s,
        renewal_factor=0.0,
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one run."""
    folder = tmp_path / "runs"
    save_run(reading_run(folder, "alpha"))
    return folder


def test_an_index_lies_beside_its_run_and_stays(root: Path) -> None:
    """A second look builds nothing."""
    library = library_of(root)
    assert library.look()[0].key == "alpha"
    library.look()
    path = root / "alpha" / index.NAME
    built = path.stat().st_mtime_ns
    again = library_of(root)
    again.look()
    assert again.entries["alpha"].is_fresh
    assert path.stat().st_mtime_ns == built


def test_a_run_that_goes_on_is_indexed_anew(root: Path) -> None:
    """A verdict that is appended appears, and the run counts as under way."""
    run = reading_run(root, "beta")
    kept = dict(list(run.verdicts.items())[:5])
    save_run(replace(run, verdicts=kept, folder=root / "beta"))
    (root / "beta" / "summary.json").unlink()
    here = browser_at(root)
    assert "5 of 24 probes judged" in here.get("/runs/beta").text
    library: Library = here.app.state.library
    library.renewal_s = library.renewal_factor = 0.0
    verdict = Verdict("i1", "p1-0", "A", True, "scored")
    with (root / "beta" / "verdicts.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(verdict) + b"\n" + b'{"id": "torn')
    here.get("/runs/beta")
    text = here.get("/runs/beta").text
    assert "6 of 24 probes judged" in text
    assert "under way" in text


def test_an_index_is_not_renewed_at_every_look(root: Path) -> None:
    """While a run goes on its index rests for a while after each build."""
    library = library_of(root, renewal_s=60.0)
    library.look()
    os.utime(root / "alpha" / "verdicts.jsonl", (1, 1))
    library.look()
    assert not library.entry("alpha").is_fresh


def test_a_folder_that_cannot_be_written_has_its_index_in_the_cache(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is left beside the run."""
    # Root may write everywhere, so that the answer of the system is stood in for.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    library = library_of(root)
    library.look()
    library.look()
    assert library.entry("alpha").is_indexed
    assert library.entry("alpha").index.parent == library.cache
    assert not (root / "alpha" / index.NAME).exists()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\x00" * 200])
def test_an_index_that_is_broken_is_built_anew(root: Path, content: bytes) -> None:
    """Whoever left it there."""
    (root / "alpha" / index.NAME).write_bytes(content)
    library = library_of(root)
    library.look()
    entry = library.entry("alpha")
    with library.opened(entry) as connection:
        assert connection.execute("SELECT count(*) FROM probes").fetchone()[0] == 24


def test_an_index_replaces_a_link_and_never_follows_it(root: Path, tmp_path: Path) -> None:
    """The file that the link led to keeps its content."""
    target = tmp_path / "precious.txt"
    target.write_text("mine")
    os.symlink(target, root / "alpha" / index.NAME)
    library = library_of(root)
    library.look()
    assert target.read_text() == "mine"
    assert stat.S_ISREG((root / "alpha" / index.NAME).lstat().st_mode)


def test_a_damaged_run_is_named_and_the_others_are_shown(root: Path) -> None:
    """With the reason; its own page says the same."""
    save_run(reading_run(root, "beta"))
    (root / "beta" / "run.json").write_text("{")
    save_run(reading_run(root, "gamma"))
    (root / "gamma" / "verdicts.jsonl").write_bytes(b"{}\n")
    here = browser_at(root)
    here.get("/")
    text = here.get("/").text
    assert "/runs/alpha" in text
    assert "beta cannot be shown" in text
    assert "is no valid row" in here.get("/runs/gamma").text
    assert here.get("/runs/beta").status_code == 400


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    """And a run that begins there appears."""
    here = browser_at(tmp_path)
    assert "snellen demo" in here.get("/").text
    save_run(reading_run(tmp_path, "alpha"))
    library: Library = here.app.state.library
    library.looked_at = float("-inf")
    assert "/runs/alpha" in here.get("/").text


def test_runs_of_one_name_have_addresses_of_their_own(tmp_path: Path) -> None:
    """Whatever their folders are called."""
    for folder in ("a b", "a-b", "a/b"):
        save_run(reading_run(tmp_path / folder, "m"))
    library = library_of(tmp_path)
    library.look()
    assert sorted(library.entries) == ["a-b-m", "a-b-m-2", "a-b-m-3"]


def test_regions_come_from_the_benchmark_that_is_given(tmp_path: Path) -> None:
    """With boxes, masks and names; those of another benchmark stay away."""
    import json

    bench = tmp_path / "bench"
    picture(bench, "red")
    mask = {"size": [2, 2], "counts": [0, 2, 2]}
    rows = {
        "benchmark.json": {"name": "mine", "protocol": "reading", "version": "1", "license": "x",
                           "source": "x"},
        "images.jsonl": {"image_id": "i0", "image": "red.png", "l1": ["a"], "l2": ["b"]},
        "regions.jsonl": {"region_id": "r0-0", "image_id": "i0", "bbox": [100, 200, 600, 900],
                          "mask": mask, "nature": "thing",
                          "metadata": {"identity_and_taxonomy": {"specific_type": "a <b>barn"}}},
        "questions.jsonl": {"question_id": "q", "image_id": "i0", "region_id": "r0-0",
                            "category": "Count", "question": "?", "options": ["1", "2", "3", "4"],
                            "answer": "A", "generator": "g"},
    }  # fmt: skip
    for name, row in rows.items():
        (bench / name).write_text(json.dumps(row) + "\n")
    runs = tmp_path / "runs"
    for name, benchmark in (("own", "mine"), ("other", "theirs")):
        save_run(reading_run(runs, name, benchmark=benchmark))
    here = browser_at(runs, sources=[str(bench)])
    text = here.get("/runs/own/item?id=i0").text
    assert 'x="200.0" y="100.0" width="700.0" height="500.0"' in text
    assert "a &lt;b&gt;barn" in text
    assert 'href="#p0"' in text
    drawn = here.get("/mask?run=own&id=i0&region=r0-0")
    assert (drawn.status_code, drawn.content[:4]) == (200, b"\x89PNG")
    assert "<rect" not in here.get("/runs/other/item?id=i0").text.split("</article>")[0]
    assert here.get("/mask?run=own&id=i0&region=none").status_code == 404


@pytest.mark.slow
def test_work_beside_the_server_is_done_or_says_why_not(root: Path, tmp_path: Path) -> None:
    """In a process of its own: a result, a sentence, or an end when the server ends."""
    worker = Beside()
    out = tmp_path / "out.sqlite"
    assert worker.do("index", [str(root / "alpha"), str(out)]).exception(60) is None
    assert index.meta_of(out, "summary")
    failed: Future[None] = worker.do("index", [str(tmp_path / "nothing"), str(out)])
    assert "no run folder" in str(failed.exception(60))
    worker.close()
    with pytest.raises(RuntimeError):
        worker.do("index", [])
