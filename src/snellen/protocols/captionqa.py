"""CaptionQA: a judge answers questions from a caption, with shuffled options and part credit.

Other than in CapProbe, the abstaining option stands anywhere among the options, yes/no questions
have none, abstaining earns part credit, and images without a caption are left out.
Source: CaptionQA, the official evaluation script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from snellen.flows import REASKS, Flow, Given, ask_model, ask_until, failed_reason, readable
from snellen.keys import rng_for
from snellen.metrics import Array, Metric, ProbeTable, Tally, column, pool, quotient, ratio
from snellen.protocols import caption_tally
from snellen.protocols.choices import (
    LETTERS,
    Shown,
    abstained,
    describe,
    letter_verdict,
    options_block,
    show,
    unscored,
)
from snellen.records import (
    Item,
    Message,
    Outcome,
    Probe,
    ReadTask,
    Reply,
    ReplyRow,
    Request,
    Verdict,
)
from snellen.replies import Parsed
from snellen.replies.fences import soften_turns
from snellen.replies.letters import parse_letter
from snellen.replies.official import official_letter_captionqa
from snellen.templates import Template, bundled

NAME = "captionqa"
CANNOT_ANSWER = "Cannot answer from the caption"
# Added to what a blind guess earns, so that abstaining is worth a little more than guessing.
ABSTENTION_BONUS = 0.05
NO_CAPTION = "no_caption"
# The status of an id that a caption file does not have.
NO_REPLY = "failed:no_reply"
UNPARSED = Parsed("")

# A heading may be dressed, and its line begin after any sign that some models take for a line end.
_LINE_ENDS = r"\r\v\f\x85\u2028\u2029"
_GAP = rf"[^\S\n{_LINE_ENDS}]*+"
_HEADING = re.compile(
    rf"(?:^|(?<=[{_LINE_ENDS}]))({_GAP}[#>*_`]*+{_GAP}"
    rf"(?:Caption|Question|Options|Answer){_GAP}[*_`]*+)[:：]",
    re.M | re.I,
)


@dataclass(frozen=True, slots=True)
class CaptionQAOptions:
    """How captions are asked for and read.

    `parser` is `snellen`, where an unreadable reply is asked again and is unscored in the end, or
    `official`, where it scores 0 at once. `option_seed` replaces the published order of the
    options. `given` holds captions that exist already; an image that has none is left out.
    """

    describe: Template = field(default_factory=lambda: bundled("describe_captionqa"))
    system: Template = field(default_factory=lambda: bundled("captionqa_judge_system"))
    judge: Template = field(default_factory=lambda: bundled("captionqa_judge_user"))
    remind: Template = field(default_factory=lambda: bundled("remind_letter"))
    reasks: int = REASKS
    parser: str = "snellen"
    option_seed: int | None = None
    given: Given | None = None

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose."""
        return {
            "reply": self.describe,
            "verdict_system": self.system,
            "verdict": self.judge,
            "reminder": self.remind,
        }


def answer_item(item: Item, options: CaptionQAOptions, repeat: int = 0) -> Flow[Outcome]:
    """The whole protocol for one image: a caption, then a verdict on each question."""
    request = describe(item.images, options.describe)
    [row] = yield [ask_model(request, item.id, repeat=repeat, given=options.given)]
    failed = failed_reason(row)
    if row.status == NO_REPLY:
        skipped = unscored(item, NO_CAPTION, repeat=repeat)
        return Outcome(row, tuple(replace(verdict, status="skipped") for verdict in skipped))
    if failed is not None:
        return Outcome(row, unscored(item, failed, repeat=repeat))
    if row.status != "ok":
        return Outcome(row, _blank(item, row))
    verdicts = yield [answer_one(item, probe, row, options) for probe in item.probes]
    return Outcome(row, tuple(verdicts))


def _blank(item: Item, row: ReplyRow) -> tuple[Verdict, ...]:
    """A blank caption abstains; a yes/no question offers no abstention and is wrong."""
    return tuple(
        verdict if _offers_abstention(item, probe) else replace(verdict, verdict=None)
        for verdict, probe in zip(abstained(item, row), item.probes, strict=True)
    )


def _offers_abstention(item: Item, probe: Probe) -> bool:
    return len(_order(item, probe)) > len(probe.options)


def _order(item: Item, probe: Probe) -> list[int]:
    """The shown order as the reader computed it over the whole data set."""
    order: list[int] = item.extra["permutations"][probe.id]
    return order


def show_options(item: Item, probe: Probe, options: CaptionQAOptions) -> Shown:
    """The options in the published order, or shuffled anew with a seed of the question's own."""
    order = list(_order(item, probe))
    if options.option_seed is not None:
        rng_for(options.option_seed, probe.id, "options").shuffle(order)
    offered = len(order) > len(probe.options)
    return show(probe, order, CANNOT_ANSWER if offered else None)


def answer_one(item: Item, probe: Probe, row: ReplyRow, options: CaptionQAOptions) -> Flow[Verdict]:
    """The verdict on one question."""
    shown = show_options(item, probe, options)
    request = judge_request(item, probe, row, shown=shown, options=options)
    official = options.parser == "official"
    parse = partial(_parse_official if official else _parse, shown=shown)
    reasks = 0 if official else options.reasks
    judged = yield from ask_until(
        request,
        parse,
        remind=options.remind.text,
        schema=tuple(shown.shown_letters),
        reasks=reasks,
    )
    if judged.value is UNPARSED:
        return Verdict(
            item.id, probe.id, None, False, "scored", "unparsed", judged.raw, judged.usage,
            repeat=row.repeat,
        )  # fmt: skip
    return letter_verdict(item, probe, judged, shown=shown, repeat=row.repeat)


def judge_request(
    item: Item, probe: Probe, row: ReplyRow, *, shown: Shown, options: CaptionQAOptions
) -> Request:
    """The judge call for one question: the rules as system message, then the four blocks."""
    caption = row.reply or ""
    text = options.judge.fill(
        CAPTION_HERE=_fenced(caption),
        QUESTION_HERE=probe.question,
        OPTIONS_HERE=options_block(shown),
    )
    places = {letter: k for k, letter in enumerate(shown.letters)}
    abstention = places.get(LETTERS[len(probe.options)])
    return Request(
        "judge",
        (Message("system", (options.system.text,)), Message("user", (text,))),
        "verdict",
        probe=probe.id,
        lead=item.id,
        task=ReadTask(
            caption,
            probe.question,
            tuple(one for k, one in enumerate(shown.texts) if k != abstention),
            allow_uncertain=abstention is not None,
            uncertain_at=abstention,
        ),
    )


@lru_cache(512)
def _fenced(caption: str) -> str:
    """A caption that cannot open a block of the prompt, or end its turn: a colon becomes a dash."""
    return _HEADING.sub(r"\1 –", soften_turns(caption))


def _parse(reply: Reply, *, shown: Shown) -> Parsed:
    lone = reply.text.strip()
    if len(lone) == 1 and lone in shown.shown_letters:
        return Parsed(lone, "marked")
    return readable(
        parse_letter(reply.text, shown.texts, uncertain=None, finish_reason=reply.finish_reason)
    )


def _parse_official(reply: Reply, *, shown: Shown) -> Parsed:
    position = official_letter_captionqa(reply.text, len(shown.texts))
    return UNPARSED if position is None else Parsed(shown.shown_letters[position], "marked")


METRICS: tuple[Metric, ...] = (
    Metric(
        "score",
        quotient("S", "M"),
        lambda s: ratio(s["S"], s["M"] - s["X"]),
        lambda s: ratio(s["S"] + s["X"], s["M"]),
        column("M"),
        title="Score",
        is_main=True,
    ),
    Metric(
        "accuracy",
        quotient("C", "M"),
        lambda s: ratio(s["C"], s["M"] - s["X"]),
        lambda s: ratio(s["C"] + s["X"], s["M"]),
        column("M"),
        title="Accuracy",
        is_main=True,
    ),
    Metric(
        "cannot_answer_rate",
        quotient("U", "M"),
        lambda s: ratio(s["U"], s["M"] - s["X"]),
        quotient("U", "M"),
        column("M"),
        title="Cannot answer",
        is_main=True,
        better=-1,
    ),
    *(replace(metric, is_main=False) for metric in caption_tally.METRICS),
)


def abstention_credit(n_choices: int) -> float:
    """What abstaining on a question of `n_choices` own choices earns, rounded as published.

    >>> abstention_credit(4), abstention_credit(3)
    (0.3, 0.3833)

    Source: CaptionQA, the official evaluation script.
    """
    return round(1 / n_choices + ABSTENTION_BONUS, 4)


def tally(table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]) -> Tally:
    """Counts by image that has a caption; column S adds up the scores of its questions."""
    table = table.where(~table.skipped)
    columns = caption_tally.columns_by_unit(table, replies)
    columns["S"] = pool(table.unit, scores(table), len(table.units))
    return table.by_cluster((*caption_tally.COLUMNS, "S"), columns, METRICS)


def scores(table: ProbeTable) -> Array:
    """Each question's score: 1 for right, part credit for abstaining, else 0; (n_probes,)."""
    n_choices = table.labels["choices"]
    credit = np.array([abstention_credit(int(n)) for n in n_choices], float)
    return np.where(table.correct, 1.0, np.where(table.uncertain, credit, 0.0))
