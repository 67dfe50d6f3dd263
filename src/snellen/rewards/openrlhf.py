"""A reward for OpenRLHF, as a function or over HTTP (`snellen reward serve`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snellen.errors import SnellenError
from snellen.rewards.scorer import Score, Scorer
from snellen.rewards.shapes import columns_of, numbers, require_number


def reply_of(query: str, prompt: str) -> str:
    """The reply in a query, which is a prompt and the reply to it.

    >>> reply_of("Describe. A cat.", "Describe.")
    'A cat.'
    """
    return query.removeprefix(prompt).strip()


def reward_func(scorer: Scorer) -> Callable[..., dict[str, object]]:
    """The function for `--remote_rm_url FILE.py`; `labels` (`--label_key`) are item ids.

    It returns tensors. OpenRLHF drops an exception in silence, so every error is also logged.

    Raises:
        UsageError: the scorer states no number for replies without a score.

    Source: OpenRLHF, README, "Reinforced Fine-tuning (RFT)".
    """
    require_number(scorer, "OpenRLHF")

    def snellen_reward(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: object
    ) -> dict[str, object]:
        import logging

        import torch

        replies = [reply_of(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
        try:
            answer = answer_of(scorer.score_now(replies, labels))
        except (SnellenError, ValueError):
            logging.getLogger("snellen").exception("no rewards for a batch of %d", len(replies))
            raise
        logs = answer["extra_logs"]
        assert isinstance(logs, dict)
        return {
            "rewards": torch.tensor(answer["rewards"]),
            "scores": torch.tensor(answer["scores"]),
            "extra_logs": {name: torch.tensor(values) for name, values in logs.items()},
        }

    return snellen_reward


def answer_of(scores: Sequence[Score | None]) -> dict[str, object]:
    """The rewards of a batch, as plain lists: what goes over HTTP."""
    values = numbers(scores)
    return {"rewards": values, "scores": values, "extra_logs": columns_of(scores)}
