"""A reward for slime, as a function or over HTTP (`snellen reward serve`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Protocol

from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import numbers, require_number


class Sample(Protocol):
    """What of slime's `Sample` is read: the reply, and the item's id as the label."""

    response: str
    label: str | None


def custom_rm(
    scorer: Scorer,
) -> Callable[[object, Sample | list[Sample]], Coroutine[object, object, float | list[float]]]:
    """The function for `--custom-rm-path`, for one sample or, with `--group-rm`, for a list.

    Raises:
        UsageError: the scorer states no number for replies without a score.

    Source: slime, documentation of `--custom-rm-path`.
    """
    require_number(scorer, "slime")

    async def snellen_rm(args: object, samples: Sample | list[Sample]) -> float | list[float]:
        del args
        group = samples if isinstance(samples, list) else [samples]
        values = numbers(
            await scorer.score([one.response for one in group], [str(one.label) for one in group])
        )
        return values if isinstance(samples, list) else values[0]

    return snellen_rm
