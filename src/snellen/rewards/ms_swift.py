"""A reward for ms-swift's GRPO."""

from __future__ import annotations

from collections.abc import Sequence

from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import text_of


def reward_class(scorer: Scorer, *, column: str = "item_id", base: type = object) -> type:
    """A class for `orms`; `base` is ms-swift's `AsyncORM`, `column` holds item ids.

    ms-swift opens an event loop for each step. The scorer closes its connections at the end of
    each.

    In a plug-in file: `orms["snellen"] = reward_class(scorer, base=AsyncORM)`.

    Source: ms-swift, documentation of GRPO, "Reward functions".
    """

    class SnellenReward(base):  # type: ignore[misc]
        async def __call__(
            self, completions: Sequence[object], **columns: Sequence[str]
        ) -> list[float | None]:
            scores = await scorer.score([text_of(one) for one in completions], columns[column])
            return [None if score is None else score.value for score in scores]

    return SnellenReward
