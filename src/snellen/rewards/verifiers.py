"""Tasks and a reward for verifiers (0.4 and later)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snellen.errors import UsageError
from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import columns_of, numbers, require_number


def taskset_class(scorer: Scorer) -> Any:
    """A `Taskset` class whose tasks ask for a reply to each item, pictures included, and score it.

    A module that verifiers loads defines it with `SnellenTaskset = taskset_class(scorer)`. The
    reward is called `snellen`; every part is recorded as a metric.

    Raises:
        UsageError: the scorer states no number for replies without a score, or verifiers is not
            installed.

    Source: verifiers, `verifiers.v1`.
    """
    require_number(scorer, "verifiers")
    try:
        import verifiers.v1 as vf
    except ImportError as error:
        raise UsageError("verifiers is not installed", hint="pip install verifiers") from error

    class SnellenTask(vf.Task[vf.TaskData]):  # type: ignore[misc]
        @vf.reward  # type: ignore[untyped-decorator]
        async def snellen(self, trace: Any) -> float:
            scores = await scorer.score([trace.last_reply or ""], [self.data.id])
            trace.record_metrics(
                {f"snellen_{name}": values[0] for name, values in columns_of(scores).items()}
            )
            return numbers(scores)[0]

    class SnellenTaskset(vf.Taskset[SnellenTask, vf.TasksetConfig]):  # type: ignore[misc]
        def load(self) -> Iterator[SnellenTask]:
            for item in scorer.benchmark.items:
                yield SnellenTask(vf.TaskData(id=item.id, prompt=scorer.messages(item.id)))

    return SnellenTaskset
