"""One row a sample and probe: everything that was asked, said and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from snellen.records import Item, ReplyRow, Verdict


@dataclass(frozen=True, slots=True)
class Sample:
    """One probe of one item with the model's reply and the judge's verdict.

    `images` are the names of the pictures, `options` those of a multiple-choice question. `verdict`
    is a letter or a boolean, `correct` None unless scored. `judge_reply` is the judge's text.
    Tokens are as the endpoints counted them, None where they did not say; `tokens` counts the
    judged reply in o200k_base tokens.
    """

    id: str
    repeat: int
    probe_id: str
    images: tuple[str, ...]
    question: str
    options: tuple[str, ...]
    reference: str
    reply: str | None
    verdict: str | bool | None
    correct: bool | None
    status: str
    reason: str | None
    judge_reply: str
    kind: str
    finish_reason: str | None
    latency_s: float
    tokens: int
    prompt_tokens: int | None
    completion_tokens: int | None
    judge_prompt_tokens: int | None
    judge_completion_tokens: int | None


def samples_of(
    items: Sequence[Item],
    replies: Mapping[tuple[str, int], ReplyRow],
    verdicts: Mapping[tuple[str, int, str], Verdict],
    *,
    repeats: int = 1,
) -> Iterator[Sample]:
    """All samples in the order of the items; a probe without a verdict is unscored, `not_run`."""
    for item in items:
        images = tuple(image.name for image in item.images)
        for repeat in range(repeats):
            reply = replies.get((item.id, repeat)) or ReplyRow(item.id, None)
            for probe in item.probes:
                verdict = verdicts.get((item.id, repeat, probe.id)) or Verdict(
                    item.id, probe.id, None, None, "unscored", "not_run"
                )
                yield Sample(
                    id=item.id,
                    repeat=repeat,
                    probe_id=probe.id,
                    images=images,
                    question=item.text or probe.question,
                    options=probe.options,
                    reference=probe.answer,
                    reply=reply.reply,
                    verdict=verdict.verdict,
                    correct=verdict.correct,
                    status=verdict.status,
                    reason=verdict.reason,
                    judge_reply=verdict.raw,
                    kind=probe.kind,
                    finish_reason=reply.finish_reason,
                    latency_s=reply.latency_s,
                    tokens=reply.tokens,
                    prompt_tokens=reply.usage.prompt,
                    completion_tokens=reply.usage.completion,
                    judge_prompt_tokens=verdict.usage.prompt,
                    judge_completion_tokens=verdict.usage.completion,
                )
