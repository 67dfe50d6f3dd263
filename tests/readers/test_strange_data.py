"""Data of a stranger: nothing outside its folder is read, and nothing in it makes a run hang."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fakes.server import FakeServer
from tests.worlds.benchmark_files import (
    data_uri,
    direct_folder,
    direct_row,
    png,
    reading_folder,
    rubric_folder,
    rubric_row,
    write_card,
)

from snellen.cli import cli
from snellen.errors import DataError
from snellen.readers import LoadOptions, check_benchmark, load_benchmark

SECRET = png((7, 7, 7))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A picture of the user's, beside the folder of a stranger."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "me.png").write_bytes(SECRET)
    return folder / "me.png"


def link_a_file(folder: Path, secret: Path) -> str:
    (folder / "link.png").symlink_to(secret)
    return "link.png"


def link_a_folder(folder: Path, secret: Path) -> str:
    (folder / "pictures").symlink_to(secret.parent)
    return "pictures/me.png"


def make_a_pipe(folder: Path, secret: Path) -> str:
    os.mkfifo(folder / "pipe.png")
    return "pipe.png"


WAYS = {
    "dots": (lambda folder, secret: "../home/me.png", "leads out of the folder"),
    "link": (link_a_file, "leads out of the folder"),
    "folder": (link_a_folder, "leads out of the folder"),
    "absolute": (lambda folder, secret: str(secret), "is an absolute path"),
    "url": (lambda folder, secret: "http://127.0.0.1/me.png", "is a web address"),
    "file": (lambda folder, secret: f"file://{secret}", "the address of a file"),
    "pipe": (make_a_pipe, "is no regular file"),
    "nul": (lambda folder, secret: "a\0.png", "cannot be read"),
    "forged": (lambda folder, secret: {"spooled": str(secret)}, "neither bytes nor a path"),
    "number": (lambda folder, secret: 0, "must be a path"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_picture_outside_the_folder_is_refused_before_any_call(
    tmp_path: Path, secret: Path, way: str, form: str
) -> None:
    """Dots, links, absolute paths, addresses, pipes and forged fields: named, and nothing sent."""
    make, message = WAYS[way]
    folder = direct_folder(tmp_path / "theirs")
    row = direct_row(0, [make(folder, secret)])
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    if form == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        (folder / "questions.jsonl").unlink()
        parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "questions.parquet")
    with FakeServer("ok") as server:
        done = CliRunner().invoke(
            cli,
            [
                *("run", str(folder), "--model", "fake", "--api-url", server.url),
                *("--judge", "fake", "--out", str(tmp_path / "run"), "--quiet"),
            ],
            standalone_mode=False,
        )
        assert not server.requests
    assert isinstance(done.exception, DataError)
    assert f"questions.{form}, row 1, field `image`" in done.exception.message
    assert message in done.exception.message
    found = CliRunner().invoke(cli, ["data", "check", str(folder)], standalone_mode=False)
    assert (found.return_value, message in found.stdout) == (1, True)


def test_what_may_be_read_outside_is_named(tmp_path: Path, secret: Path) -> None:
    """`--allow-outside` opens one folder, for dots, links and absolute paths."""
    folder = direct_folder(tmp_path / "theirs")
    (folder / "link.png").symlink_to(secret)
    rows = [
        direct_row(n, [name]) for n, name in enumerate(["../home/me.png", "link.png", str(secret)])
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    allowed = LoadOptions(allow_outside=(str(secret.parent),))
    assert len(load_benchmark(str(folder), options=allowed).items) == 3
    elsewhere = LoadOptions(allow_outside=(str(tmp_path / "other"),))
    with pytest.raises(DataError, match="leads out of the folder"):
        load_benchmark(str(folder), options=elsewhere)


@pytest.mark.parametrize("make", [reading_folder, rubric_folder, direct_folder])
def test_a_file_of_rows_that_leads_out_is_refused(tmp_path: Path, make: Any) -> None:
    """Rows are not read through a link that leaves the folder; a link inside it is fine."""
    folder = make(tmp_path / "theirs")
    stem = {"reading_folder": "images", "rubric_folder": "rubrics"}.get(make.__name__, "questions")
    file = folder / f"{stem}.jsonl"
    file.rename(folder / "kept.jsonl")
    file.symlink_to("kept.jsonl")
    assert load_benchmark(str(folder)).items
    file.unlink()
    (folder / "kept.jsonl").rename(tmp_path / "rows.jsonl")
    file.symlink_to(tmp_path / "rows.jsonl")
    with pytest.raises(DataError, match="out of the folder") as caught:
        load_benchmark(str(folder))
    assert "--allow-outside" in caught.value.hint
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError):
        load_benchmark(str(folder))


def test_a_snapshot_of_a_hub_is_read_through_its_links(tmp_path: Path, secret: Path) -> None:
    """A snapshot is links to the blobs beside it, and these alone are read."""
    home = tmp_path / "datasets--a--b"
    blobs, snapshot = home / "blobs", home / "snapshots" / "abc123"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "1").write_bytes(png())
    row = json.dumps(rubric_row("r0", "a.png"))
    (blobs / "2").write_text(row + "\n", encoding="utf-8")
    (snapshot / "a.png").symlink_to("../../blobs/1")
    (snapshot / "rubrics.jsonl").symlink_to("../../blobs/2")
    write_card(snapshot, "rubric")
    assert len(load_benchmark(str(snapshot)).items) == 1
    (snapshot / "a.png").unlink()
    (snapshot / "a.png").symlink_to(secret)
    with pytest.raises(DataError, match="leads out"):
        load_benchmark(str(snapshot))


def test_the_commands_take_what_may_be_read_outside(tmp_path: Path, secret: Path) -> None:
    """`--allow-outside` of `data check` and `run` opens the folder that it names."""
    folder = direct_folder(tmp_path / "theirs", [direct_row(0, ["../home/me.png"])])
    outside = ("--allow-outside", str(secret.parent))
    check = ["data", "check", str(folder)]
    assert CliRunner().invoke(cli, check, standalone_mode=False).return_value == 1
    assert CliRunner().invoke(cli, [*check, *outside], standalone_mode=False).return_value == 0
    run = ["run", str(folder), *outside, "--model", "m", "--api-url", "http://127.0.0.1:9/v1"]
    run += ["--judge", "j", "--out", str(tmp_path / "run"), "--dry-run"]
    done = CliRunner().invoke(cli, run, standalone_mode=False)
    assert done.exception is None


BROKEN_TEXTS = {
    "a tail": lambda text: text + "],",
    "stars inside": lambda text: text[:60] + "****" + text[64:],
    "half of it": lambda text: text[: len(text) // 2],
    "a tag": lambda text: text[:40] + "<br>" + text[44:],
}


@pytest.mark.parametrize("how", BROKEN_TEXTS)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_data_uri_is_looked_at_to_its_end_before_any_call(
    tmp_path: Path, how: str, form: str
) -> None:
    """Base64 that breaks off or holds other signs stops a direct run, as the check says."""
    row = direct_row(0, [BROKEN_TEXTS[how](data_uri(png()))])
    folder = direct_folder(tmp_path / "theirs", [row])
    if form == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        (folder / "questions.jsonl").unlink()
        parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "questions.parquet")
    assert any(problem.row == 1 for problem in check_benchmark(folder))
    with FakeServer("4") as server:
        line = ["run", str(folder), "--model", "m", "--api-url", server.url, "--judge", "embedded"]
        found = CliRunner().invoke(cli, [*line, "--out", str(tmp_path / "run"), "--quiet"])
        assert found.exit_code == 1, found.output
        assert not server.requests
    assert "row 1" in f"{found.output}{found.exception}"


def test_other_ways_of_writing_base64_are_read(tmp_path: Path) -> None:
    """Wrapped lines and the alphabet of URLs are no damage."""
    uri = data_uri(png())
    wrapped = uri[:40] + "\n" + uri[40:]
    head, _, payload = uri.partition(",")
    url_safe = head + "," + payload.replace("+", "-").replace("/", "_").rstrip("=")
    rows = [direct_row(0, [wrapped]), direct_row(1, [url_safe])]
    folder = direct_folder(tmp_path / "mine", rows)
    assert len(load_benchmark(folder).items) == 2
