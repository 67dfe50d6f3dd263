"""Judging stored replies again."""

import asyncio
import json
import shutil

import pytest
from click.testing import CliRunner
from tests.fakes.server import picture_uris
from tests.worlds.rubric_world import assessment, listed, serve_world, write_settings, write_world

import snellen
from snellen.cli import cli
from snellen.errors import UsageError
from snellen.runs.folder import load_run
from snellen.runs.rejudge import rejudge_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A finished run, of which the data set is gone."""
    folder = tmp_path_factory.mktemp("first")
    data = write_world(folder / "data")
    with serve_world() as server:
        config = write_settings(folder, server)
        text = config.read_text(encoding="utf-8")
        config.write_text(text + 'family = "Fakes"\n', encoding="utf-8")
        run = snellen.run(
            str(data), model="fake", judge="fake", out=folder / "run", config=config,
            max_tries=1, cache=False, seed=3, max_pixels=10_000,
        )  # fmt: skip
    shutil.rmtree(data)
    return run


def mild(messages):
    """A judge that holds every statement to be true."""
    a, b = listed(messages[-1]["content"])
    return assessment([True] * len(a), [True] * len(b))


def rejudge(run, out, judge=mild, **words):
    plan = rejudge_plan(run, RunRequest("", out, judge=judge, cache=False, **words))
    asyncio.run(execute(plan))
    return load_run(out)


def test_replies_are_kept_and_judged_anew(first, tmp_path):
    """Replies, blank and failed ones too, are those of the run; verdicts are the new judge's."""
    again = rejudge(first, tmp_path / "again")
    assert {k: (r.reply, r.status) for k, r in again.replies.items()} == {
        k: (r.reply, r.status) for k, r in first.replies.items()
    }
    statuses = {r.status for r in again.replies.values()}
    assert statuses == {"ok", "empty", "failed"}
    # Of twelve images one is blank (false) and one has no reply (unscored): ten are all true.
    score = again.summary.metrics["score"]
    assert (score.value, score.scored, score.upper) == pytest.approx((10 / 12, 10 / 11, 11 / 12))
    assert again.spec.judge.name == "mild"


def test_what_is_known_of_the_model_is_kept(first, tmp_path):
    """Model, items, prompts, options, seed and picture preparation stay as the run had them."""
    again = rejudge(first, tmp_path / "again")
    for name in ("model", "items", "data_digest", "prompts", "options", "seed"):
        assert getattr(again.spec, name) == getattr(first.spec, name)
    assert again.spec.model.family == "Fakes"
    assert again.spec.image_preparation == first.spec.image_preparation
    assert "pixels=10000" in again.spec.image_preparation
    assert again.spec.replies_from == "run"


def test_an_option_may_differ(first, tmp_path):
    """A protocol option that is given wins over the run's, and stands in run.json."""
    again = rejudge(first, tmp_path / "again", gate_first=True)
    assert again.spec.options["gate_first"] is True
    assert "gate_first" in again.summary.extra


def test_a_judge_prompt_may_differ(first, tmp_path):
    """With a judge prompt of one's own the model's prompt still is the run's."""
    prompt = tmp_path / "prompt.txt"
    text = (
        "{caption}\n[Group A: Critical Rubrics]\n{group_a_rubrics}\n"
        "[Group B: Granular Rubrics]\n{group_b_rubrics}"
    )
    prompt.write_text(text, encoding="utf-8")
    again = rejudge(first, tmp_path / "again", judge_prompt=prompt)
    assert again.spec.prompts["verdict"].text == text
    assert again.spec.prompts["reply"] == first.spec.prompts["reply"]


def test_prompts_are_the_stored_ones(first, tmp_path):
    """The judge is asked in the words that the run stored, not in today's."""
    folder = tmp_path / "old"
    shutil.copytree(first.folder, folder)
    spec = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    spec["prompts"]["verdict"]["text"] = "OLD WORDS\n" + spec["prompts"]["verdict"]["text"]
    (folder / "run.json").write_text(json.dumps(spec), encoding="utf-8")
    seen = []

    def judge(messages):
        seen.append(messages[-1]["content"])
        return mild(messages)

    rejudge(load_run(folder), tmp_path / "again", judge)
    assert len(seen) == 10
    assert all(text.startswith("OLD WORDS") for text in seen)


def test_its_own_folder_is_refused(first):
    """A run is not judged again into itself."""
    with pytest.raises(UsageError, match="judged again"):
        rejudge(first, first.folder)


@pytest.mark.slow
def test_the_command(first, tmp_path):
    """`snellen rejudge` calls the judge alone, prints the new run, and resumes without a call."""
    with serve_world() as server:
        words = ["rejudge", str(first.folder), "--judge", "fake", "--judge-url", server.url,
                 "--out", str(tmp_path / "out"), "--quiet", "--max-tries", "1",
                 "--one-rubric-a-call", "--max-unscored", "1", "--config",
                 str(write_settings(tmp_path, server))]  # fmt: skip
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        assert result.return_value == 0, result.output
        assert not any(picture_uris(r.body) for r in server.requests)
        before = server.calls["/v1/chat/completions"]
        assert before > 30
        again = CliRunner().invoke(cli, words, standalone_mode=False)
        assert again.return_value == 0, again.output
    again_run = load_run(tmp_path / "out")
    assert again_run.spec.options["one_a_call"] is True
    # g2's calls hang, as they did before; only they are asked for again.
    assert server.calls["/v1/chat/completions"] - before == 4
