"""A reward function for TRL's GRPOTrainer and its relatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence

from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import columns_of, text_of

Reward = Callable[..., Coroutine[object, object, list[float | None]]]


def reward_function(scorer: Scorer, *, column: str = "item_id") -> Reward:
    """The function to give as one of `reward_funcs`; `column` of the data set holds item ids.

    It returns None for a reply without a score, which TRL leaves out of the mean, and logs the
    mean of every part under `snellen/NAME`.

    Source: TRL, documentation of GRPOTrainer, "Using a custom reward function".
    """

    async def snellen_reward(
        prompts: Sequence[object] = (), completions: Sequence[object] = (), **columns: object
    ) -> list[float | None]:
        del prompts
        names = columns[column]
        assert isinstance(names, Sequence)
        scores = await scorer.score([text_of(one) for one in completions], names)
        log = columns.get("log_metric")
        if callable(log):
            for name, values in columns_of(scores).items():
                known = [value for value in values if not math.isnan(value)]
                if known:
                    log(f"snellen/{name}", sum(known) / len(known))
        return [None if score is None else score.value for score in scores]

    return snellen_reward
