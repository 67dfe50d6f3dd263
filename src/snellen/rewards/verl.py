"""A reward for verl."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import columns_of, numbers, require_number


def compute_score(
    scorer: Scorer, *, field: str = "item_id"
) -> Callable[..., Coroutine[object, object, dict[str, float]]]:
    """The function for `custom_reward_function`; one sample a call, judged in batches.

    The item's id is `field` of `extra_info`, or the `ground_truth` where there is no such field.
    The result has `score` and every part, the same names for all samples.

    Raises:
        UsageError: the scorer states no number for replies without a score.

    Source: verl, documentation of "Implement reward function for dataset".
    """
    require_number(scorer, "verl")

    async def snellen_score(
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, object] | None = None,
        **_: object,
    ) -> dict[str, float]:
        del data_source
        name = str((extra_info or {}).get(field, ground_truth))
        scores = await scorer.score([solution_str], [name])
        parts = {key: values[0] for key, values in columns_of(scores).items()}
        return {"score": numbers(scores)[0], **parts}

    return snellen_score
