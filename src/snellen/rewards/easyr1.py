"""A reward for EasyR1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import columns_of, numbers, require_number

REWARD_NAME = "snellen"
REWARD_TYPE = "batch"


def compute_score(
    scorer: Scorer,
) -> Callable[[Sequence[Mapping[str, object]]], list[dict[str, float]]]:
    """The function for `reward_function`, a whole batch a call; `ground_truth` is the item's id.

    The module that EasyR1 loads also needs `REWARD_NAME` and `REWARD_TYPE`, as they stand here.

    Raises:
        UsageError: the scorer states no number for replies without a score.

    Source: EasyR1, `examples/reward_function`.
    """
    require_number(scorer, "EasyR1")

    def snellen_score(reward_inputs: Sequence[Mapping[str, object]]) -> list[dict[str, float]]:
        scores = scorer.score_now(
            [str(one["response"]) for one in reward_inputs],
            [str(one["ground_truth"]) for one in reward_inputs],
        )
        columns = columns_of(scores)
        return [
            {"overall": value, **{name: column[k] for name, column in columns.items()}}
            for k, value in enumerate(numbers(scores))
        ]

    return snellen_score
