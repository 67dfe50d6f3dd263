"""Damaged files of every kind that is read: an error of one line, never a traceback or a hang."""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.benchmark_files import data_uri, direct_folder, direct_row, png, reading_folder

from snellen.errors import SnellenError
from snellen.pictures import prepare
from snellen.readers import LoadOptions, check_benchmark, load_benchmark, read_replies
from snellen.runs.folder import load_run
from snellen.settings import load_settings

pytestmark = pytest.mark.slow

RUNS = Path(__file__).parents[1] / "data" / "runs"
MOST_MB_MORE = 400
FIXED = settings(derandomize=True, max_examples=150, deadline=None, database=None)

PIECES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"[" * 5_000, b'"', b"\\u", b"\xff\xfe", b"1e999", b"NaN", b"null", b"-1", b"9" * 5_000,
         b"\0", b"{}", b"<result>" * 300, b"\n", b"true", b'{"bytes": "x"}', b"../../etc/passwd"]
    ),
)  # fmt: skip
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES), min_size=1, max_size=4)


def damaged(whole: bytes, damage: list[tuple[float, int, bytes]]) -> bytes:
    """The bytes with pieces put in, each in place of so many bytes."""
    for share, length, piece in damage:
        at = int(share * len(whole))
        whole = whole[:at] + piece + whole[at + length :]
    return whole


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    """Fails a test that makes the process grow by more than 400 MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert more < MOST_MB_MORE


@pytest.mark.parametrize("name", ["questions.jsonl", "regions.jsonl", "benchmark.json"])
@pytest.mark.parametrize("policy", ["stop", "collect"])
def test_damaged_rows(tmp_path: Path, name: str, policy: str) -> None:
    """Rows and cards of a benchmark load, or fail in one line; a check names what is wrong."""
    folder = reading_folder(tmp_path / "reading")
    whole = (folder / name).read_bytes()

    @FIXED
    @given(DAMAGE)
    def attack(damage: list[tuple[float, int, bytes]]) -> None:
        (folder / name).write_bytes(damaged(whole, damage))
        with contextlib.suppress(SnellenError):
            if policy == "stop":
                load_benchmark(folder, options=LoadOptions(limit=10))
            else:
                check_benchmark(folder)

    attack()


def test_damaged_data_uris(tmp_path: Path) -> None:
    """Pictures as text are read, or refused with their row."""
    folder = direct_folder(tmp_path, [direct_row(0, [data_uri(png())])])
    path = folder / "questions.jsonl"
    whole = path.read_bytes()

    @FIXED
    @given(DAMAGE)
    def attack(damage: list[tuple[float, int, bytes]]) -> None:
        path.write_bytes(damaged(whole, damage))
        with contextlib.suppress(SnellenError):
            for item in load_benchmark(folder).items:
                for image in item.images:
                    prepare.prepare(image)

    attack()


def test_damaged_replies_and_settings(tmp_path: Path) -> None:
    """Files of replies, in both forms, and settings."""
    lines = b"".join(json.dumps({"id": n, "reply": "a cup"}).encode() + b"\n" for n in range(9))
    files = {
        "replies.jsonl": lines,
        "replies.json": b'{"a": "one cup", "b": "two cups"}',
        "snellen.toml": b'cache = true\n[models.m]\nurl = "http://127.0.0.1/v1"\nconcurrency = 4\n',
    }

    @FIXED
    @given(st.sampled_from(sorted(files)), DAMAGE)
    def attack(name: str, damage: list[tuple[float, int, bytes]]) -> None:
        path = tmp_path / name
        path.write_bytes(damaged(files[name], damage))
        with contextlib.suppress(SnellenError):
            if name.endswith("toml"):
                load_settings(path)
            else:
                read_replies(path)

    attack()


@pytest.mark.parametrize("kind", ["direct", "rubric"])
def test_damaged_run_folders(tmp_path: Path, kind: str) -> None:
    """Any file of a run folder may be damaged; the folder loads, or fails in one line."""
    folder = tmp_path / "run"
    shutil.copytree(RUNS / kind / "run", folder)
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    whole = {name: (folder / name).read_bytes() for name in names}

    @FIXED
    @given(st.sampled_from(names), DAMAGE)
    def attack(name: str, damage: list[tuple[float, int, bytes]]) -> None:
        (folder / name).write_bytes(damaged(whole[name], damage))
        with contextlib.suppress(SnellenError):
            load_run(folder)
        (folder / name).write_bytes(whole[name])

    attack()
