"""CaptionQA: a judge answers questions from a caption, with shuffled options and part credit.

Other than in CapProbe, the abstaining option stands anywhere among the options, yes/no questions
have none, abstaining earns part credit, and images without a caption are left out.
Source: CaptionQA, the official evaluation script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from snellen.flows import Flow, ask_model, ask_until, readable
from snellen.keys import rng_for
from snellen.metrics import Array, Metric, ProbeTable, Tally, hit_rate, pool
from snellen.protocols import caption_tally
from snellen.protocols.caption_tally import NO_CAPTION
from snellen.protocols.choices import (
    Shown,
    describe,
    letter_verdict,
    options_block,
    show,
)
from snellen.protocols.protocol import Forecast, JudgeDefaults, Options, Protocol, Replies
from snellen.protocols.reading import choice_lengths
from snellen.protocols.verdicts import settle, unscored
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
    abstention,
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
# The failure of an id that a caption file does not have.
NO_REPLY = "no_reply"
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
class CaptionQAOptions(Options):
    """How captions are asked for and read.

    `parser` is `snellen`, where an unreadable reply is asked again and is unscored in the end, or
    `official`, where it scores 0 at once. `option_seed` replaces the published order of the
    options. `given` holds captions that exist already; an image that has none is left out.
    """

    describe: Template = field(default_factory=lambda: bundled("describe_captionqa"))
    system: Template = field(default_factory=lambda: bundled("captionqa_judge_system"))
    judge: Template = field(default_factory=lambda: bundled("captionqa_judge_user"))
    remind: Template = field(default_factory=lambda: bundled("remind_letter"))
    parser: str = "snellen"
    option_seed: int | None = None

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
    if row.failure == NO_REPLY:
        skipped = unscored(item, NO_CAPTION, repeat=repeat)
        return Outcome(row, tuple(replace(verdict, status="skipped") for verdict in skipped))

    def blank(probe: Probe) -> str | None:
        """An abstention; a yes/no question offers none and has no verdict."""
        order = item.extra["permutations"][probe.id]
        return abstention(probe) if len(order) > len(probe.options) else None

    settled = settle(item, row, blank)
    if settled is not None:
        return Outcome(row, settled)
    verdicts = yield [answer_one(item, probe, row, options) for probe in item.probes]
    return Outcome(row, tuple(verdicts))


def show_options(item: Item, probe: Probe, options: CaptionQAOptions) -> Shown:
    """The options in the published order, or shuffled anew with a seed of the question's own.

    The reader computes the published order over the whole data set.
    """
    order = list(item.extra["permutations"][probe.id])
    if options.option_seed is not None:
        rng_for(options.option_seed, probe.id, "options").shuffle(order)
    offered = len(order) > len(probe.options)
    return show(probe, order, CANNOT_ANSWER if offered else None)


def answer_one(item: Item, probe: Probe, row: ReplyRow, options: CaptionQAOptions) -> Flow[Verdict]:
    """The verdict on one question."""
    shown = show_options(item, probe, options)
    request = judge_request(item, probe, row, shown=shown, options=options)
    is_official = options.parser == "official"

    def parse(reply: Reply) -> Parsed:
        if is_official:
            place = official_letter_captionqa(reply.text, len(shown.texts))
            return UNPARSED if place is None else Parsed(shown.shown_letters[place], "marked")
        lone = reply.text.strip()
        if len(lone) == 1 and lone in shown.shown_letters:
            return Parsed(lone, "marked")
        return readable(
            parse_letter(reply.text, shown.texts, uncertain=None, finish_reason=reply.finish_reason)
        )

    reasks = 0 if is_official else options.reasks
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
    place = places.get(abstention(probe))
    return Request(
        "judge",
        (Message("system", (options.system.text,)), Message("user", (text,))),
        "verdict",
        probe=probe.id,
        lead=item.id,
        task=ReadTask(
            caption,
            probe.question,
            tuple(one for k, one in enumerate(shown.texts) if k != place),
            allow_uncertain=place is not None,
            uncertain_at=place,
        ),
    )


@lru_cache(512)
def _fenced(caption: str) -> str:
    """A caption that cannot open a block of the prompt, or end its turn: a colon becomes a dash."""
    return _HEADING.sub(r"\1 –", soften_turns(caption))


METRICS: tuple[Metric, ...] = (
    replace(
        hit_rate("score", "S", "M", "X", title="Score"),
        is_main=True,
        definition="Mean credit of the questions: 1 where right, 0 where wrong, and a little more "
        "than a blind guess earns where the judge says that the caption does not tell.",
        formula="sum of credits / questions; an abstention among k options earns 1/k + 0.05",
        example="4 questions of 4 options, 2 right, 1 abstention: (2 + 0.30) / 4, 57.5 %.",
    ),
    replace(caption_tally.OVERALL, name="accuracy", title="Accuracy"),
    replace(
        caption_tally.UNCERTAIN, name="cannot_answer_rate", title="Cannot answer", is_main=True
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


def tally(table: ProbeTable, replies: Replies) -> Tally:
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


PROTOCOL = Protocol(
    name=NAME,
    on_disk="reading",
    title="Reading, as CaptionQA does it",
    about="A model describes each picture; a judge that sees only the description answers "
    "multiple-choice questions. Saying that the description does not tell earns part credit.",
    options=CaptionQAOptions,
    flow=answer_item,
    tally=tally,
    metrics=METRICS,
    headline="score",
    dimensions=("category", "domain"),
    judge_defaults=JudgeDefaults(temperature=0.0, max_tokens=4),
    forecast=Forecast(440, lambda request: 2, lambda request: Reply("A")),
    classes=caption_tally.CLASSES,
    extras=caption_tally.calibration_extra,
    notes=caption_tally.caption_notes,
    tables=caption_tally.TABLES,
    charts=caption_tally.CHARTS,
    lengths=choice_lengths,
    pictures_by_label=False,
)
