"""Coverage and effective accuracy against caption length: stored captions cut at sentence ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from snellen.errors import UsageError
from snellen.records import ReplyRow
from snellen.runs.folder import Run

SHARES = (0.25, 0.5, 0.75, 1.0)

_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s)|[。！？]+[”’」』）]*|\n+|\Z")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|ms|dr|st)|(?:^|\s)[A-Z])\.$", re.IGNORECASE
)


def sentence_ends(text: str) -> list[int]:
    """Where sentences end, as positions after their last sign; the text's own end is the last.

    >>> sentence_ends("One cat. Two, e.g. dogs! End")
    [8, 24, 28]
    """
    found = [m for m in _END.finditer(text) if m.end() > 0]
    ends = [m.end() for m in found if not _ABBREVIATION.search(text[: m.end()][-12:])]
    return sorted({*ends, len(text)})


def cut_text(text: str, share: float) -> str:
    """The text up to the sentence end that is nearest to a share of it; at least one sentence.

    >>> cut_text("A cat. It is black. It sleeps.", 0.5)
    'A cat. It is black.'

    Raises:
        UsageError: the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise UsageError(
            f"a share of {share} cannot be kept", hint="give shares above 0, at most 1"
        )
    if share == 1:
        return text
    wanted = share * len(text)
    return text[: min(sentence_ends(text), key=lambda end: abs(end - wanted))].rstrip()


def cut_captions(
    replies: Mapping[tuple[str, int], ReplyRow], share: float
) -> dict[tuple[str, int], ReplyRow]:
    """The rows with their captions cut; failed and blank ones stay, tokens are to be counted anew.

    `variant` says how much was kept.
    """
    cut = {}
    for key, row in replies.items():
        text = None if row.reply is None else cut_text(row.reply, share)
        cut[key] = replace(row, reply=text, tokens=0, variant=f"cut:{share:g}")
    return cut


def shorten(run: Run, share: float) -> Run:
    """The run with its captions cut, ready to be judged again.

    Raises:
        UsageError: its replies are no captions, or it is a control.
    """
    if not run.protocol.describes or run.spec.options.get("control"):
        raise UsageError(
            f"{run.folder} holds no captions of its pictures that could be cut",
            hint="give a run of a reading or rubric benchmark that is no control",
        )
    return replace(run, replies=cut_captions(run.replies, share))
