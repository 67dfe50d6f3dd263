"""The adapters inside the real trainers, where these are installed (slow)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.worlds.engine_world import JUDGE, answer, chats, serve, small_benchmark

from snellen.rewards import Scorer

# The trainers warn of what they will change; that is theirs.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def tiny_policy(folder: Path):
    """A random language model of two layers over bytes, with its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: k for k, token in enumerate(["<pad>", "<eos>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>"
    )
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, eos_token_id=1, pad_token_id=0, bos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config), wrapped


def test_two_steps_of_grpo_with_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer calls the reward with its own keywords, and logs the parts."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    from snellen.rewards.trl import reward_function

    with serve() as server:
        folder = small_benchmark(tmp_path / "benchmark")
        scorer = Scorer(str(folder), JUDGE, judge_url=server.url)
        names = [item.id for item in scorer.benchmark.items]
        rows = datasets.Dataset.from_dict({"prompt": ["Describe."] * len(names), "item_id": names})
        model, tokenizer = tiny_policy(tmp_path)
        settings = trl.GRPOConfig(
            output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2,
            num_generations=2, max_completion_length=8, report_to=[], logging_steps=1,
            use_cpu=True, save_strategy="no",
        )  # fmt: skip
        trainer = trl.GRPOTrainer(
            model=model, reward_funcs=[reward_function(scorer)], args=settings,
            train_dataset=rows, processing_class=tokenizer,
        )  # fmt: skip
        trainer.train()
        logs = [row for row in trainer.state.log_history if "reward" in row]
        assert len(logs) == 2
        assert any("snellen/coverage" in name for row in logs for name in row)
        assert chats(server, "judge")


def test_a_rollout_of_verifiers(tmp_path: Path) -> None:
    """The library's own task scores a trace, and records every part as a metric."""
    vf = pytest.importorskip("verifiers.v1")
    from snellen.rewards.verifiers import taskset_class

    with serve(answer) as server:
        folder = small_benchmark(tmp_path / "benchmark")
        scorer = Scorer(str(folder), JUDGE, judge_url=server.url, unscored=0.0)
        taskset = taskset_class(scorer)(vf.TasksetConfig())
        tasks = list(taskset)
        assert [task.data.id for task in tasks] == [item.id for item in scorer.benchmark.items]
        assert tasks[0].data.prompt
        trace = trace_of(vf, tasks[0], "A red bus under a tree.")
        asyncio.run(tasks[0].score(trace))
        [score] = scorer.score_now(["A red bus under a tree."], [tasks[0].data.id])
        assert score is not None
        assert trace.reward == pytest.approx(score.value)
        assert trace.metrics["snellen_tokens"] == score.tokens


def trace_of(vf, task, reply: str):
    """A finished trace of one turn."""
    trace = vf.Trace(
        task=vf.TraceTask(type="SnellenTask", data=task.data), agent=vf.AgentInfo.model_construct()
    )
    trace.nodes.append(
        vf.MessageNode.model_construct(
            parent=None, message=vf.AssistantMessage(content=reply), sampled=True
        )
    )
    return trace
