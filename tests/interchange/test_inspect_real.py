"""Inspect itself: reads our logs, and runs the three protocols with our scorers (slow)."""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources
from pathlib import Path

import pytest
from tests.worlds.report_runs import direct_run, reading_run, rubric_run, save_run

from snellen.interchange.files import export_run
from snellen.runs.folder import load_run

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
HEADLINES = {"direct": "accuracy", "reading": "overall_acc", "rubric": "score"}


@pytest.mark.parametrize("maker", [direct_run, reading_run, rubric_run])
def test_it_reads_our_logs(tmp_path: Path, maker) -> None:
    """Every metric and every sample is there."""
    from inspect_ai.log import read_eval_log

    run = load_run(save_run(maker(tmp_path, "alpha")))
    [file] = export_run("inspect", run, tmp_path / "log.json").files
    log = read_eval_log(str(file))
    assert log.status == "success"
    assert len(log.samples) == len(run.items)
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert run.summary is not None
    for name, value in run.summary.metrics.items():
        if value.value is not None:
            assert found[name] == pytest.approx(value.value)


@pytest.mark.parametrize("name", HEADLINES)
def test_it_runs_our_tasks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are those that our scorer gives to the same replies."""
    from inspect_ai.model import ModelOutput, get_model

    from snellen import inspect_tasks
    from snellen.rewards import Scorer

    # Inspect counts tokens with a vocabulary that it would fetch; ours is the same.
    packed = (resources.files("snellen") / "data" / "o200k_base.tiktoken.gz").read_bytes()
    cache = tmp_path / hashlib.sha1(VOCABULARY.encode()).hexdigest()
    cache.write_bytes(gzip.decompress(packed))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    reply = "A tabby cat with yellow-green eyes. Two."
    outputs = (ModelOutput.from_content("mockllm/model", reply) for _ in range(9))
    [log] = inspect_ai.eval(
        getattr(inspect_tasks, name)(), limit=3, display="none", log_dir=str(tmp_path / "logs"),
        model=get_model("mockllm/model", custom_outputs=outputs),
    )  # fmt: skip
    assert log.status == "success"
    scorer = Scorer(f"mini-{name}", "embedded")
    for sample in log.samples:
        [expected] = scorer.score_now([reply], [str(sample.id)])
        assert expected is not None
        assert sample.scores["snellen"].value == pytest.approx(expected.value)
        assert HEADLINES[name] in sample.scores["snellen"].metadata
