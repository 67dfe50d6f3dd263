"""Shards united: the numbers of one run, repeats, gaps, strangers, and damaged folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.engine_world import answer, numbers, rows, small_benchmark
from tests.worlds.shard_world import eye, rewrite, run_part

import snellen
from snellen.errors import RunFolderError
from snellen.fleet.merge import merge


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures, sixty questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=12, questions=60)


@pytest.fixture(scope="module")
def whole(benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody divided."""
    out = tmp_path_factory.mktemp("whole") / "run"
    run_part(benchmark, out)
    return out


@pytest.fixture(scope="module")
def made(benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as three shards."""
    folder = tmp_path_factory.mktemp("shards")
    for k in (1, 2, 3):
        run_part(benchmark, folder / f"s{k}", f"{k}/3")
    return folder


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> Path:
    """A copy of the shards that a test may change."""
    return Path(shutil.copytree(made, tmp_path / "shards"))


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return found


class TestWhole:
    def test_united_shards_are_one_run(self, shards: Path, whole: Path, tmp_path: Path) -> None:
        """Byte for byte in numbers, in another order of folders too; nothing is lost."""
        merged = merge([shards / "s3", shards / "s1", shards / "s2"], tmp_path / "out")
        assert merged.summary.status == "complete"
        assert list(merged.notices()) == []
        for name in ("metrics", "counts", "by", "extra", "notes", "group_counts"):
            a, b = (json.dumps(summary(one)[name]) for one in (tmp_path / "out", whole))
            assert a == b, name
        assert merged.n_calls == len(rows(tmp_path / "out", "calls")) == len(rows(whole, "calls"))
        assert [row["id"] for row in rows(tmp_path / "out", "items")] == [
            row["id"] for row in rows(whole, "items")
        ]
        usage, once = summary(tmp_path / "out")["usage"], summary(whole)["usage"]
        assert usage["judge"]["done"] == once["judge"]["done"] == 60

    def test_the_united_run_goes_on_as_a_whole_one(
        self, benchmark: Path, shards: Path, whole: Path, tmp_path: Path
    ) -> None:
        """What no shard has done is asked when the whole run is started there; no more."""
        merge([shards / "s1", shards / "s3"], tmp_path / "out")
        asked: list[str] = []

        def eye(messages: list[dict[str, Any]]) -> str:
            asked.append("")
            return answer({"messages": messages})

        run_part(benchmark, tmp_path / "out", model=eye)
        assert len(asked) == len(rows(shards / "s2", "items"))
        assert numbers(tmp_path / "out") == numbers(whole)

    def test_python_has_the_same(self, shards: Path, whole: Path, tmp_path: Path) -> None:
        found = snellen.merge([shards], tmp_path / "out")
        assert found.folder == tmp_path / "out"
        assert numbers(found.folder) == numbers(whole)


class TestGaps:
    def test_a_missing_shard_is_named(
        self, shards: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        n = len(rows(shards / "s2", "items"))
        found = snellen.merge([shards / "s1", shards / "s3"], tmp_path / "out")
        assert found.summary is not None
        assert found.summary.status == "incomplete"
        assert f"missing: shards 2/3, {n} items" in caplog.text
        assert f"shards 2/3 are missing: {n} items" in found.summary.notes

    def test_a_shard_that_was_killed_is_named_and_its_calls_are_kept(
        self, benchmark: Path, shards: Path, whole: Path, tmp_path: Path
    ) -> None:
        """Without its summary, and with a torn last row."""
        (shards / "s2" / "summary.json").unlink()
        journal = shards / "s2" / "calls.jsonl"
        journal.write_bytes(journal.read_bytes()[:-10])
        n = len(rows(whole, "calls"))
        merged = merge([shards], tmp_path / "out")
        assert merged.unfinished == (str(shards / "s2"),)
        assert (merged.n_calls, merged.summary.status) == (n - 1, "incomplete")
        run_part(benchmark, shards / "s2", "2/3")
        assert merge([shards], tmp_path / "again").summary.status == "complete"
        assert numbers(tmp_path / "again") == numbers(whole)


class TestRepeats:
    def test_a_shard_that_ran_twice_counts_once(
        self, benchmark: Path, shards: Path, whole: Path, tmp_path: Path
    ) -> None:
        run_part(benchmark, shards / "s4", "2/3")
        merged = merge([shards], tmp_path / "out")
        assert merged.repeats == len(rows(shards / "s2", "calls"))
        assert merged.n_calls == len(rows(whole, "calls"))
        assert numbers(tmp_path / "out") == numbers(whole)

    def test_the_first_reply_is_kept_with_all_that_follows_from_it(
        self, benchmark: Path, shards: Path, whole: Path, tmp_path: Path
    ) -> None:
        """A second run of a shard whose model says something else adds nothing."""

        def other(messages: list[dict[str, Any]]) -> str:
            return "Nothing but " + eye(messages)

        other.__name__ = "eye"
        rewrite(shards / "s2" / "calls.jsonl", lambda r: r if r["role"] == "model" else None)
        rewrite(shards / "s2" / "verdicts.jsonl", lambda r: None)
        (shards / "s2" / "summary.json").unlink()
        run_part(benchmark, shards / "s4", "2/3", model=other)
        merged = merge([shards], tmp_path / "out")
        judged = len(rows(whole, "calls")) - merged.n_calls
        assert judged == merged.left_out > 0
        texts = {row["reply"] for row in rows(tmp_path / "out", "replies")}
        assert not any(text.startswith("Nothing") for text in texts)
        assert merged.summary.counts.unscored_by_reason == {"not_run": judged}

    def test_a_second_run_heals_a_failed_call(
        self, benchmark: Path, shards: Path, whole: Path, tmp_path: Path
    ) -> None:
        """A reply is worth more than a failure that came first."""
        shutil.copytree(shards / "s2", shards / "s4")
        spoilt = {"done": False}

        def fail(row: dict[str, Any]) -> dict[str, Any]:
            if row["role"] == "judge" and not spoilt["done"]:
                spoilt.update(row, done=True)
                row["reply"], row["failure"] = None, {"kind": "timeout", "message": "late"}
            return row

        def unscore(row: dict[str, Any]) -> dict[str, Any]:
            if row["probe_id"] == spoilt["probe"]:
                row |= {"status": "unscored", "correct": None, "reason": "judge_timeout"}
            return row

        rewrite(shards / "s2" / "calls.jsonl", fail)
        rewrite(shards / "s2" / "verdicts.jsonl", unscore)
        merged = merge([shards], tmp_path / "out")
        assert merged.summary.counts.unscored == 0
        assert numbers(tmp_path / "out") == numbers(whole)


class TestRefusals:
    def test_another_request_at_the_same_place_is_refused_by_name(
        self, shards: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(shards / "s2", shards / "s4")
        first = next(row for row in rows(shards / "s2", "calls") if row["role"] == "judge")

        def change(row: dict[str, Any]) -> dict[str, Any]:
            same = (row["item"], row["probe"]) == (first["item"], first["probe"])
            return row | {"key": "0" * 64} if same else row

        rewrite(shards / "s4" / "calls.jsonl", change)
        with pytest.raises(RunFolderError) as caught:
            merge([shards], tmp_path / "out")
        for piece in ("s2", "s4", first["item"], first["probe"]):
            assert piece in caught.value.message
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ({"reasks": 1}, "options.reasks was 2, now 1"),
            ({"limit": 8}, "--limit"),
            ({"seed": 4}, "seed was 0, now 4"),
        ],
    )
    def test_shards_of_another_run_are_refused(
        self, benchmark: Path, shards: Path, tmp_path: Path, words: dict[str, Any], said: str
    ) -> None:
        run_part(benchmark, shards / "s9", "2/3", **words)
        with pytest.raises(RunFolderError, match=said):
            merge([shards / "s1", shards / "s9"], tmp_path / "out")

    def test_another_number_of_shards_is_refused(
        self, benchmark: Path, shards: Path, tmp_path: Path
    ) -> None:
        run_part(benchmark, shards / "s9", "2/2")
        with pytest.raises(RunFolderError, match="3 shards of 12 items and 2 of 12"):
            merge([shards / "s1", shards / "s9"], tmp_path / "out")

    def test_a_folder_that_holds_something_is_left_alone(
        self, shards: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(RunFolderError, match="not empty"):
            merge([shards], shards / "s1")


def test_shards_in_an_object_store_are_fetched(shards: Path, whole: Path, tmp_path: Path) -> None:
    """Any address that fsspec knows."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.put(str(shards), "/bucket/run", recursive=True)
    try:
        merged = merge(["memory://bucket/run"], tmp_path / "out")
    finally:
        store.rm("/bucket", recursive=True)
    assert merged.summary.status == "complete"
    assert numbers(tmp_path / "out") == numbers(whole)
