"""Runs by batch files: rounds until complete, trouble of all kinds, and files of other runs."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fakes.batch_provider import serve_file
from tests.fakes.server import Body, text_of
from tests.worlds.engine_world import (
    JUDGE,
    MODEL,
    ROOT,
    answer,
    environment,
    evaluate,
    numbers,
    rows,
    serve,
    small_benchmark,
)

from snellen.cli import cli
from snellen.endpoints import batch_lines
from snellen.errors import DataError, RunFolderError, UsageError
from snellen.fleet.batch import BatchRun, Step
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished

FORMS = ("openai", "anthropic", "gemini")
URL = "http://127.0.0.1:1/v1"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pictures, twenty-four questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"), images=5, questions=24)


@pytest.fixture(scope="module")
def online(benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, asked call by call."""
    out = tmp_path_factory.mktemp("online") / "run"
    with serve() as server:
        evaluate(benchmark, server.url, out)
    return out


def begin(benchmark: Path, out: Path, form: str = "openai", **more: Any) -> BatchRun:
    words = {"model": MODEL, "api_url": URL, "judge": JUDGE, **more}
    pictures_url = words.pop("pictures_url", "")
    return BatchRun.begin(RunRequest(str(benchmark), out, **words), form, pictures_url=pictures_url)


def write(run: BatchRun) -> Step:
    return asyncio.run(run.write())


def read(out: Path, *files: Path, ask_again: bool = False) -> Step:
    return asyncio.run(BatchRun.open(out).read(files, ask_again=ask_again))


def answered(out: Path, step: Step, form: str = "openai", **more: Any) -> list[Path]:
    """The replies of a provider to the files of a round."""
    assert step.round is not None
    found = []
    for file in step.round.files:
        replies = out.parent / f"{file.stem}-{step.round.number}-replies.jsonl"
        serve_file(form, file, replies, **more)
        found.append(replies)
    return found


def until_complete(
    out: Path, step: Step, form: str, trouble: Callable[[int], int | None] = lambda k: None,
    say: Callable[[Body], str] = answer,
) -> tuple[Finished, list[Step]]:  # fmt: skip
    """Every round answered and read, as a user would, until the run is finished."""
    steps = [step]
    while step.finished is None:
        assert step.round is not None, step
        files = answered(out, step, form, trouble=trouble(step.round.number), say=say)
        step = read(out, *files)
        steps.append(step)
    return step.finished, steps


class TestRounds:
    @pytest.mark.parametrize("form", FORMS)
    def test_captions_then_judgements_give_the_numbers_of_a_run(
        self, benchmark: Path, online: Path, tmp_path: Path, form: str
    ) -> None:
        step = write(begin(benchmark, tmp_path / "run", form))
        finished, steps = until_complete(tmp_path / "run", step, form)
        assert [s.round.n_calls for s in steps if s.round] == [5, 24]
        assert finished.exit_code == 0
        assert finished.summary.status == "complete"
        assert numbers(tmp_path / "run") == numbers(online)
        assert finished.summary.usage["judge"]["prompt_tokens"] == 24 * 7

    @pytest.mark.parametrize("form", FORMS)
    def test_no_trouble_changes_a_number(
        self, benchmark: Path, online: Path, tmp_path: Path, form: str
    ) -> None:
        """Errors, expired, lost and repeated lines, another order, an error before its reply."""
        step = write(begin(benchmark, tmp_path / "run", form))
        finished, steps = until_complete(
            tmp_path / "run", step, form, lambda k: k if k < 4 else None
        )
        assert finished.exit_code == 0
        assert numbers(tmp_path / "run") == numbers(online)
        seen: Counter[str] = Counter()
        for one in steps:
            seen.update(one.answered.failures)
            seen.update(repeats=one.answered.repeats, missing=one.missing)
            seen.update(damaged=one.answered.damaged)
        assert seen["judge overload"] + seen["model overload"] > 0
        assert seen["judge timeout"] + seen["model timeout"] > 0
        assert all(seen[name] for name in ("repeats", "missing", "damaged")), seen
        asked = Counter(row["name"] for row in rows(tmp_path / "run" / "batch", "sent"))
        assert max(asked.values()) > 1
        replied = [r for r in rows(tmp_path / "run", "calls") if r["reply"]]
        assert len(replied) == len({(r["item"], r["purpose"], r["probe"]) for r in replied}) == 29

    def test_an_unreadable_judgement_is_asked_again_in_the_next_round(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        def unclear(body: Body) -> str:
            text = text_of(body)
            if "number 0 at the left of s0001?" in text and text.count("letter") < 3:
                asked.append(text)
                return "I would say that it depends on the light." if len(asked) == 1 else "B"
            return answer(body)

        asked: list[str] = []
        step = write(begin(benchmark, tmp_path / "run"))
        finished, steps = until_complete(tmp_path / "run", step, "openai", say=unclear)
        assert [s.round.n_calls for s in steps if s.round] == [5, 24, 1]
        assert finished.summary.counts.unscored == 0
        assert [r["ask"] for r in rows(tmp_path / "run", "calls")][-1] == 1

    def test_a_call_refused_for_good_is_not_sent_again(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        """Its probe is unscored with the reason, as in a run."""
        out = tmp_path / "run"
        [captions] = answered(out, write(begin(benchmark, out)))
        step = read(out, captions)
        [judged] = answered(out, step)
        lines = judged.read_text(encoding="utf-8").splitlines()
        first = json.loads(lines[0])
        body = {"error": {"message": "blocked by policy", "code": "content_filter"}}
        first["response"] = {"status_code": 400, "body": body}
        judged.write_text("\n".join([json.dumps(first), *lines[1:]]), encoding="utf-8")
        step = read(out, judged)
        assert step.finished is not None
        assert step.finished.summary.counts.unscored_by_reason == {"judge_content_filter": 1}
        again = read(out, judged)
        assert again.answered.repeats == 24

    def test_what_fails_in_every_round_is_given_up(self, benchmark: Path, tmp_path: Path) -> None:
        """After as many rounds as a run would try, its probes are unscored."""
        out = tmp_path / "run"
        step = write(begin(benchmark, out, max_tries=2, limit=1))
        for _ in range(2):
            [file] = answered(out, step)
            text = file.read_text(encoding="utf-8")
            line = json.loads(text) | {"response": None, "error": {"code": "batch_expired"}}
            file.write_text(json.dumps(line), encoding="utf-8")
            step = read(out, file)
        assert step.finished is not None
        assert list(step.finished.summary.counts.unscored_by_reason) == ["model_timeout"]

    def test_a_round_waits_for_all_of_its_files(
        self, benchmark: Path, online: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A format's limits split a round; one file's replies are no reason to ask again."""

        class TwoLines(batch_lines.OpenAiBatch):
            most_lines = 2

        formats = {"openai": TwoLines()}
        monkeypatch.setattr("snellen.fleet.batch.FORMATS", formats)
        out = tmp_path / "run"
        step = write(begin(benchmark, out))
        assert step.round is not None
        assert list(step.round.files.values()) == [2, 2, 1]
        files = answered(out, step)
        half = read(out, files[1])
        assert (half.round, half.finished, half.missing) == (None, None, 3)
        assert half.waits_for == ("model-001.jsonl", "model-003.jsonl")
        step = read(out, files[0], files[2])
        finished, _ = until_complete(out, step, "openai")
        assert numbers(finished.folder) == numbers(online)

    def test_what_is_lost_can_be_asked_for_again(self, benchmark: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        first = write(begin(benchmark, out))
        assert first.round is not None
        again = read(out, ask_again=True)
        assert again.round == first.round
        assert write(begin(benchmark, out)).round == first.round

    @pytest.mark.slow
    def test_a_judge_inside_this_process_is_asked_at_the_end(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        step = write(begin(benchmark, tmp_path / "run", judge="embedded"))
        finished, steps = until_complete(tmp_path / "run", step, "openai")
        assert [s.round.n_calls for s in steps if s.round] == [5]
        assert finished.summary.counts.scored == 24

    def test_replies_that_exist_are_judged_by_batch(self, benchmark: Path, tmp_path: Path) -> None:
        given = tmp_path / "given.json"
        given.write_text(json.dumps({f"s{k:04d}": "A red bus." for k in range(5)}))
        run = begin(benchmark, tmp_path / "run", model="bus", api_url="", replies=str(given))
        finished, steps = until_complete(tmp_path / "run", write(run), "openai")
        assert [s.round.n_calls for s in steps if s.round] == [24]
        assert finished.summary.counts.scored == 24

    def test_a_run_goes_on_call_by_call_where_batches_have_stopped(
        self, benchmark: Path, online: Path, tmp_path: Path
    ) -> None:
        """The folder is that of a run: nothing paid for is asked again."""
        out = tmp_path / "run"
        read(out, *answered(out, write(begin(benchmark, out))))
        with serve() as server:
            evaluate(benchmark, server.url, out)
            assert sum(server.calls[path] for path in server.calls if "chat" in path) == 24
        assert numbers(out) == numbers(online)


class TestFiles:
    def test_a_file_of_another_run_is_refused(self, benchmark: Path, tmp_path: Path) -> None:
        """Even of one with the same settings; nothing of it is taken."""
        one, other = tmp_path / "a" / "run", tmp_path / "b" / "run"
        files = answered(other, write(begin(benchmark, other)))
        write(begin(benchmark, one))
        with pytest.raises(DataError, match=r"row 1: \S+ is no call of the run in"):
            read(one, *files)
        assert rows(one, "calls") == []

    def test_pictures_may_be_named_by_their_address(self, benchmark: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        step = write(begin(benchmark, out, pictures_url="https://pictures.invalid/a/"))
        assert step.round is not None
        [file] = step.round.files
        line = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        [part] = [p for p in line["body"]["messages"][0]["content"] if p["type"] == "image_url"]
        name = part["image_url"]["url"].removeprefix("https://pictures.invalid/a/")
        assert (out / "batch" / "pictures" / name).read_bytes()[:2] == b"\xff\xd8"
        assert file.stat().st_size < 10_000
        assert read(out, ask_again=True).round == step.round

    def test_another_format_on_the_same_folder_is_refused(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        write(begin(benchmark, tmp_path / "run"))
        with pytest.raises(RunFolderError, match="sent in the format openai"):
            begin(benchmark, tmp_path / "run", "gemini")

    def test_a_python_function_cannot_be_sent(self, benchmark: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="`judge` cannot be"):
            begin(benchmark, tmp_path / "run", judge=lambda messages: "A")

    def test_no_key_is_written(self, benchmark: Path, tmp_path: Path) -> None:
        write(begin(benchmark, tmp_path / "run", api_key="sk-very-secret", judge_key="sk-too"))
        for file in (tmp_path / "run").rglob("*.js*"):
            assert b"sk-" not in file.read_bytes()


class TestCommand:
    def test_write_says_what_it_costs_and_read_what_is_next(
        self, benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        table = "[models.{}]\nprice_in_usd = 100.0\nprice_out_usd = 0.0\n"
        text = "".join(table.format(name) for name in (MODEL, JUDGE))
        (tmp_path / "snellen.toml").write_text(text, encoding="utf-8")
        words = ["batch", "write", str(benchmark), "--model", MODEL, "--judge", JUDGE]
        words += ["--format", "openai", "--out", "run"]
        dear = CliRunner().invoke(cli, [*words, "--max-cost", "0.01"])
        assert isinstance(dear.exception, UsageError)
        assert "at the batch price" in dear.exception.message
        said = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
        found = json.loads(said.stdout)
        assert found["files"] == {"run/batch/round-1/model-001.jsonl": 5}
        assert found["forecast"]["model"]["cost_usd"] > 0
        serve_file("openai", Path("run/batch/round-1/model-001.jsonl"), Path("replies.jsonl"))
        said = CliRunner().invoke(cli, ["batch", "read", "run", "replies.jsonl"])
        assert "read: 5 replies, 0 failures" in said.output
        assert "round 2: 24 calls" in said.output
        serve_file("openai", Path("run/batch/round-2/judge-001.jsonl"), Path("more.jsonl"))
        said = CliRunner().invoke(
            cli, ["batch", "read", "run", "more.jsonl"], standalone_mode=False
        )
        assert said.return_value == 0
        summary = json.loads(Path("run/summary.json").read_text(encoding="utf-8"))
        # 24 judgements and 5 captions of 7 prompt tokens, at half of 100 USD a million.
        assert summary["usage"]["cost_usd"] == pytest.approx(29 * 7 * 50e-6)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_provider_as_a_process(benchmark: Path, online: Path, tmp_path: Path, form: str) -> None:
    """The commands, and a provider that knows nothing of this program but its files."""
    out = tmp_path / "run"
    snellen = [sys.executable, "-m", "snellen", "batch"]
    line = [*snellen, "write", str(benchmark), "--model", MODEL, "--judge", JUDGE, "--api-url", URL]
    line += ["--format", form, "--out", str(out), "--json"]
    said = json.loads(_output(line))
    for number in range(1, 12):
        replies = []
        for file in said["files"]:
            target = tmp_path / f"{number}-{Path(file).name}"
            provider = [sys.executable, "-m", "tests.fakes.batch_provider", form, file, str(target)]
            _output([*provider, *(("--trouble", str(number)) if number < 4 else ())])
            replies.append(str(target))
        said = json.loads(_output([*snellen, "read", str(out), *replies, "--json"]))
        if "files" not in said:
            break
    assert said["status"] == "complete"
    assert numbers(out) == numbers(online)


def _output(line: list[str]) -> str:
    path = f"{ROOT / 'src'}:{ROOT}"
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment(PYTHONPATH=path), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_copied_folder_is_read_where_it_lies(benchmark: Path, tmp_path: Path) -> None:
    """The folder may be moved between writing and reading."""
    step = write(begin(benchmark, tmp_path / "run"))
    files = answered(tmp_path / "run", step)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    assert read(tmp_path / "moved", *files).answered.replies == 5
