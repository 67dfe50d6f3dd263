"""What the adapters share: the text of a completion, and numbers where None is not allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from snellen.errors import UsageError
from snellen.rewards.scorer import Score, Scorer


def text_of(completion: object) -> str:
    """The text of a completion: a string, or chat messages of which the last one counts.

    >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}])
    'A cat.'

    Raises:
        UsageError: it is neither.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        content = completion.get("content")
        if content is None or isinstance(content, str):
            return content or ""
        if isinstance(content, Sequence):
            return "".join(p.get("text", "") for p in content if isinstance(p, Mapping))
    if isinstance(completion, Sequence) and completion:
        return text_of(completion[-1])
    raise UsageError(
        f"a completion is of type {type(completion).__name__}",
        hint="give text, or chat messages with `role` and `content`",
    )


def require_number(scorer: Scorer, trainer: str) -> None:
    """Goes on only where a reply without a score gets a stated number.

    Raises:
        UsageError: the scorer gives None, which the trainer cannot take.
    """
    if scorer.unscored is None:
        raise UsageError(
            f"{trainer} takes no reward of None, and some replies may have no score",
            hint="state a number for them: Scorer(..., unscored=0.0)",
        )


def numbers(scores: Sequence[Score | None]) -> list[float]:
    """The values of scores, none of which is missing (see `require_number`).

    Raises:
        ValueError: one is missing.
    """
    if any(score is None for score in scores):
        raise ValueError("a reply has no score, and no number was stated for it")
    return [score.value for score in scores if score is not None]


def columns_of(scores: Sequence[Score | None]) -> dict[str, list[float]]:
    """Parts by name, one number a reply, for a trainer's logs; NaN where a part has no value."""
    names = dict.fromkeys(name for score in scores if score is not None for name in score.parts)
    found = {name: [_part(score, name) for score in scores] for name in names}
    found["tokens"] = [float("nan") if s is None else float(s.tokens) for s in scores]
    found["unscored"] = [float("nan") if s is None else s.unscored / max(s.n, 1) for s in scores]
    return found


def _part(score: Score | None, name: str) -> float:
    value = None if score is None else score.parts.get(name)
    return float("nan") if value is None else value
