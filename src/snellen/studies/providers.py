"""The view of who pays for a model: how fast, how wordy, how dear, and how often it fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snellen.records import ReplyRow
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of

CONTENT_FILTER = "content_filter"
_REFUSAL = re.compile(
    r"\s*(?:i['’]?m\s+(?:very\s+)?sorry|sorry|i\s+(?:cannot|can['’]?t|can\s+not|won['’]?t)\s|"
    r"i['’]?m\s+(?:not\s+able|unable)|i\s+am\s+(?:not\s+able|unable)|unfortunately,?\s+i\s)",
    re.IGNORECASE,
)
REFUSAL_CHARS = 400


@dataclass(frozen=True, slots=True)
class Service:
    """What one run tells about a model's service; None where the endpoint did not say.

    Latencies are in seconds over calls that were answered, tokens are means a reply, costs are US
    dollars of the model's calls without the judge's. `failed` has no reply at all, `refused` was
    stopped by a filter or declines in words, `cut` hit the limit on tokens.
    """

    n: int
    latency_p50_s: float | None
    latency_p95_s: float | None
    output_tokens: float | None
    thinking_tokens: float | None
    cost_item_usd: float | None
    cost_right_usd: float | None
    failed: int
    refused: int
    cut: int


def is_refusal(row: ReplyRow) -> bool:
    """Whether a filter stopped the reply, or a short one begins by declining.

    >>> is_refusal(ReplyRow("a", "I'm sorry, I can't help with that."))
    True
    """
    if CONTENT_FILTER in (row.failure, row.finish_reason):
        return True
    text = row.reply or ""
    return len(text) <= REFUSAL_CHARS and bool(_REFUSAL.match(text))


def service_of(run: Run) -> Service:
    """The service that a run's replies and its summary tell of."""
    rows = list(run.replies.values())
    answered = [row for row in rows if not row.failure]
    waits = [row.latency_s for row in answered if row.latency_s > 0]
    summary = summary_of(run)
    cost = summary.usage.get("model", {}).get("cost_usd")
    right = summary.counts.correct
    return Service(
        n=len(rows),
        latency_p50_s=float(np.percentile(waits, 50)) if waits else None,
        latency_p95_s=float(np.percentile(waits, 95)) if waits else None,
        output_tokens=_mean([row.usage.completion for row in answered]),
        thinking_tokens=_mean([row.usage.reasoning for row in answered]),
        cost_item_usd=cost / len(rows) if cost and rows else None,
        cost_right_usd=cost / right if cost and right else None,
        failed=len(rows) - len(answered),
        refused=sum(map(is_refusal, rows)),
        cut=sum(row.finish_reason == "length" for row in answered),
    )


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return float(np.mean(known)) if known else None
