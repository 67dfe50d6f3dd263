"""Shards: which items they hold, how a worker learns its number, and what a folder says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worlds.engine_world import small_benchmark
from tests.worlds.shard_world import run_part

from snellen.errors import RunFolderError, UsageError
from snellen.runs.folder import read_spec
from snellen.runs.shards import EmptyShardError, Shard, read_shard

SLURM = {"SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1"}


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=9, questions=18)


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "variables", "found"),
        [
            ("3/16", {}, "3/16"),
            ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "1"}, "1/4"),
            ("auto", {**SLURM, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_ID": "3"}, "4/4"),
            ("auto", {**SLURM, "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_ID": "7"}, "4/4"),
            ("auto", {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "1/2"),
            ("auto/5", {"JOB_COMPLETION_INDEX": "4"}, "5/5"),
            ("auto", {"JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "8"}, "5/8"),
        ],
    )
    def test_a_worker_learns_its_number(
        self, text: str, variables: dict[str, str], found: str
    ) -> None:
        """Slurm's arrays and steps and Kubernetes' indexed jobs count from where they like."""
        assert str(read_shard(text, variables)) == found

    @pytest.mark.parametrize(
        ("text", "variables", "said"),
        [
            ("0/4", {}, "from 1 to N"),
            ("5/4", {}, "from 1 to N"),
            ("auto", {}, "give --shard I/N"),
            ("auto", {"JOB_COMPLETION_INDEX": "4"}, "give --shard auto/N"),
            ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "9"}, "give --shard I/N"),
        ],
    )
    def test_a_number_that_cannot_be_is_refused(
        self, text: str, variables: dict[str, str], said: str
    ) -> None:
        with pytest.raises(UsageError) as caught:
            read_shard(text, variables)
        assert said in caught.value.hint

    def test_each_item_is_in_one_shard_whatever_else_there_is(self) -> None:
        """An item's shard follows from its id alone, and shards are of about one size."""
        held = [[k for k in range(4000) if Shard(n, 16).holds(f"i{k}")] for n in range(1, 17)]
        assert sorted(k for part in held for k in part) == list(range(4000))
        assert all(190 < len(part) < 310 for part in held)


class TestFolders:
    def test_a_folder_says_which_part_it_is(self, benchmark: Path, tmp_path: Path) -> None:
        """Its digest stays that of the whole, and another shard's folder is refused."""
        whole, part = tmp_path / "whole", tmp_path / "part"
        run_part(benchmark, whole)
        finished = run_part(benchmark, part, "1/2")
        spec, all_of_it = read_spec(part), read_spec(whole)
        assert spec.shard is not None
        assert (spec.shard.number, spec.shard.of, spec.shard.n_items) == (1, 2, 9)
        names = list(all_of_it.items)
        assert [names[k] for k in spec.shard.positions] == list(spec.items)
        assert spec.data_digest == all_of_it.data_digest
        assert 0 < finished.summary.counts.items < 9
        with pytest.raises(RunFolderError, match="shard was 1/2, now 2/2"):
            run_part(benchmark, part, "2/2")

    def test_given_replies_of_other_shards_are_no_strangers(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        """No notice says that replies are for no item, where they are for another shard."""
        given = {f"s{k:04d}": "A red bus." for k in range(9)}
        finished = run_part(benchmark, tmp_path / "run", "1/2", model="bus", replies=given)
        assert finished.notices == ()
        assert finished.exit_code == 0

    def test_what_one_worker_cannot_do_is_refused(self, benchmark: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="swapped"):
            run_part(benchmark, tmp_path / "run", "1/2", control="swapped")
        with pytest.raises(EmptyShardError, match="holds none of the 9 items"):
            run_part(benchmark, tmp_path / "run", "1/1000")
