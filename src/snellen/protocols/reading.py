"""The reading protocol (CapProbe): a judge answers questions about a picture from its caption.

Source: CapProbe (arXiv 2608.11074), sections 3.9 and 4, and its figure 8 for the judge's task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from msgspec import structs

from snellen.errors import UsageError
from snellen.flows import Flow, ask_model, ask_parts, ask_until, readable
from snellen.keys import rng_for
from snellen.protocols import caption_tally
from snellen.protocols.choices import (
    Shown,
    describe,
    letter_probabilities,
    letter_verdict,
    options_block,
    show,
)
from snellen.protocols.protocol import Forecast, JudgeDefaults, Lengths, Options, Protocol
from snellen.protocols.verdicts import settle
from snellen.records import (
    LETTERS,
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
from snellen.replies.fences import fence_caption
from snellen.replies.letters import parse_letter, parse_letters
from snellen.templates import Template, bundled

UNCERTAIN = "Not mentioned / Cannot be determined"
CONTROLS = ("", "blind", "swapped")
TOP_LOGPROBS = 20
# Completion tokens of one line of a reply to several questions: "12. B" and its line end.
LINE_TOKENS = 4
# Marks of a judge prompt that writes the letters itself, as the published one does.
OPTION_MARKS = ("OPTION_A", "OPTION_B", "OPTION_C", "OPTION_D")
_LISTS_E = re.compile(r"^\s*\(?E[.):]", re.MULTILINE)

# One caption stands in front of all its questions.
_fenced = lru_cache(512)(fence_caption)


@dataclass(frozen=True, slots=True)
class ReadingOptions(Options):
    """How captions are asked for and read.

    `control` is "" or `blind` (empty caption, no option E) or `swapped` (captions of other
    pictures, which arrive in `given`). `decide` is `letter`, or `logprob` for the most probable
    letter. `option_seed` shuffles A-D for each question; None keeps them as stored. `given` holds
    replies that exist already. `several` is the prompt for more than one question a call.
    `parser` changes nothing here: CapProbe's authors have published none.

    Raises:
        UsageError: the control is unknown, or two options exclude each other.
    """

    describe: Template = field(default_factory=lambda: bundled("describe_reading"))
    judge: Template = field(default_factory=lambda: bundled("reading_judge"))
    forced: Template = field(default_factory=lambda: bundled("reading_judge_forced"))
    several: Template = field(default_factory=lambda: bundled("reading_judge_several"))
    remind: Template = field(default_factory=lambda: bundled("remind_letter"))
    remind_several: Template = field(default_factory=lambda: bundled("remind_letters"))
    parser: str = "snellen"
    decide: str = "letter"
    logprobs: bool = False
    questions_a_call: int = 1
    option_seed: int | None = None
    control: str = ""

    def __post_init__(self) -> None:
        if self.control not in CONTROLS:
            raise UsageError(
                f"a reading benchmark has no control `{self.control}`",
                hint="give --control blind or --control swapped",
            )
        if self.questions_a_call > 1 and (self.control == "blind" or self.wants_logprobs):
            raise UsageError(
                "several questions a call go neither with --control blind nor with letter "
                "probabilities",
                hint="leave --questions-a-call out",
            )
        if self.control == "blind" and _LISTS_E.search(self.forced.text):
            raise UsageError(
                f"prompt {self.forced.name} offers E, and --control blind forces an answer",
                hint="give it a prompt without E, or leave --judge-prompt out",
            )

    @property
    def has_uncertain(self) -> bool:
        """Whether the judge may answer E."""
        return self.control != "blind"

    @property
    def wants_logprobs(self) -> bool:
        """Whether the letters' probabilities are asked for."""
        return self.logprobs or self.decide == "logprob"

    @property
    def judge_forms(self) -> tuple[frozenset[str], ...]:
        """The sets of marks that the judge's prompt may have; the first is the bundled one's."""
        if self.questions_a_call > 1:
            return (frozenset({"CAPTION_HERE", "QUESTIONS_HERE"}),)
        base = frozenset({"CAPTION_HERE", "QUESTION_HERE"})
        return (base | {"OPTIONS_HERE"}, base | set(OPTION_MARKS))

    @property
    def asks_model(self) -> bool:
        """Whether captions are asked for: the control `blind` has none."""
        return self.control != "blind"

    @property
    def is_swapped(self) -> bool:
        """Whether each picture is read from another picture's caption."""
        return self.control == "swapped"

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose."""
        judge, remind = (self.judge if self.has_uncertain else self.forced), self.remind
        if self.questions_a_call > 1:
            judge, remind = self.several, self.remind_several
        return {"reply": self.describe, "verdict": judge, "reminder": remind}


def show_options(probe: Probe, options: ReadingOptions) -> Shown:
    """The options as stored, or shuffled with a seed of the question's own; E stays last."""
    n = len(probe.options)
    order = list(range(n))
    if options.option_seed is not None:
        shuffled = rng_for(options.option_seed, probe.id, "options").permutation(n)
        order = [int(k) for k in shuffled]
    if not options.has_uncertain:
        return show(probe, order, None)
    return show(probe, [*order, n], UNCERTAIN)


def read_item(item: Item, options: ReadingOptions, repeat: int = 0) -> Flow[Outcome]:
    """The whole protocol for one picture: a caption, then a verdict on each question."""
    request = describe(item.images, options.describe)
    given = options.given
    if options.control == "blind":  # an empty caption, which is judged all the same
        given = {(item.id, repeat): ReplyRow(item.id, "", repeat=repeat, variant="blind")}
    [row] = yield [ask_model(request, item.id, repeat=repeat, given=given)]
    settled = settle(item, row, abstention)
    if settled is not None and (options.has_uncertain or row.failure):
        return Outcome(row, settled)
    if options.questions_a_call > 1:
        size = options.questions_a_call
        groups = [item.probes[k : k + size] for k in range(0, len(item.probes), size)]
        nested = yield [read_several(item, group, row, options) for group in groups]
        return Outcome(row, tuple(v for verdicts in nested for v in verdicts))
    verdicts = yield [read_one(item, probe, row, options) for probe in item.probes]
    return Outcome(row, tuple(verdicts))


def read_one(item: Item, probe: Probe, row: ReplyRow, options: ReadingOptions) -> Flow[Verdict]:
    """The verdict on one question."""
    shown = show_options(probe, options)
    request = judge_request(item, probe, row, shown=shown, options=options)
    parse = partial(_parse, probe=probe, shown=shown, options=options)
    # The probabilities are those of a letter alone.
    schema = None if options.wants_logprobs else tuple(shown.shown_letters)
    judged = yield from ask_until(
        request, parse, remind=options.remind.text, schema=schema, reasks=options.reasks
    )
    return letter_verdict(item, probe, judged, shown=shown, repeat=row.repeat)


def judge_request(
    item: Item, probe: Probe, row: ReplyRow, *, shown: Shown, options: ReadingOptions
) -> Request:
    """The judge call for one question; the caption stands ahead, so that prefixes are shared."""
    caption = row.reply or ""
    template = options.judge if options.has_uncertain else options.forced
    lettered = not template.fields.isdisjoint(OPTION_MARKS)
    offered = dict(zip(OPTION_MARKS, shown.texts, strict=False)) if lettered else {}
    text = template.fill(
        CAPTION_HERE=_fenced(caption),
        QUESTION_HERE=probe.question,
        **(offered or {"OPTIONS_HERE": options_block(shown)}),
    )
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe=probe.id,
        lead=item.id,
        params={"logprobs": True, "top_logprobs": TOP_LOGPROBS} if options.wants_logprobs else {},
        task=ReadTask(
            caption,
            probe.question,
            shown.texts[: len(probe.options)],
            allow_uncertain=options.has_uncertain,
        ),
    )


def _parse(reply: Reply, *, probe: Probe, shown: Shown, options: ReadingOptions) -> Parsed:
    lone = reply.text.strip()
    if options.decide == "logprob" and reply.choices:
        chances = letter_probabilities(reply.choices, len(shown.texts))
        if chances:
            return Parsed(max(chances, key=lambda letter: chances[letter]), "marked")
    if len(lone) == 1 and lone in shown.shown_letters:
        return Parsed(lone, "marked")
    parsed = parse_letter(
        reply.text,
        shown.texts[: len(probe.options)],
        uncertain=UNCERTAIN if options.has_uncertain else None,
        finish_reason=reply.finish_reason,
    )
    return readable(parsed)


def read_several(
    item: Item, probes: Sequence[Probe], row: ReplyRow, options: ReadingOptions
) -> Flow[list[Verdict]]:
    """The verdicts on several questions from one judge call: cheaper, and another instrument.

    What one ask leaves unreadable is asked again with all its questions; readable answers of an
    earlier ask are kept.
    """
    shown = [show_options(probe, options) for probe in probes]
    request = _several_request(item, probes, row, options=options)

    def parse(reply: Reply) -> Sequence[Parsed]:
        return parse_letters(
            reply.text,
            len(shown),
            options=[s.texts[: len(p.options)] for p, s in zip(probes, shown, strict=True)],
            uncertain=UNCERTAIN,
            finish_reason=reply.finish_reason,
        )

    numbers = {str(k): {"enum": list(s.shown_letters)} for k, s in enumerate(shown, 1)}
    judged, usage = yield from ask_parts(
        request,
        parse,
        len(probes),
        remind=options.remind_several.text,
        schema={
            "type": "object",
            "properties": numbers,
            "required": list(numbers),
            "additionalProperties": False,
        },
        reasks=options.reasks,
    )
    # One call's tokens are counted once, with its first question.
    judged[0] = structs.replace(judged[0], usage=usage)
    return [
        letter_verdict(item, probe, result, shown=s, repeat=row.repeat)
        for probe, result, s in zip(probes, judged, shown, strict=True)
    ]


def _several_request(
    item: Item, probes: Sequence[Probe], row: ReplyRow, *, options: ReadingOptions
) -> Request:
    blocks = [
        f"{k}. {probe.question}\n{options_block(show_options(probe, options))}"
        for k, probe in enumerate(probes, 1)
    ]
    text = options.several.fill(
        CAPTION_HERE=_fenced(row.reply or ""), QUESTIONS_HERE="\n\n".join(blocks)
    )
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe=f"{probes[0].id}+{len(probes) - 1}",
        lead=item.id,
    )


def choice_lengths(item: Item, probe: Probe) -> Lengths:
    """The category of a question, with the lengths of the question and of the right option."""
    del item
    right = probe.options[LETTERS.index(probe.answer)]
    return Lengths(probe.groups.get("category", "?"), len(probe.question), len(right))


def assumed_reply(request: Request) -> Reply:
    """A letter; a line for each question where several are asked in one call."""
    n = _asked_at_once(request)
    return Reply("\n".join(f"{k}. A" for k in range(1, n + 1)) if n > 1 else "A")


def assumed_tokens(request: Request) -> int:
    n = _asked_at_once(request)
    return LINE_TOKENS * n if n > 1 else 2


def _asked_at_once(request: Request) -> int:
    """How many questions a judge call holds: `id+3` is one and three more."""
    if request.task is not None:
        return 1
    return int(request.probe.rpartition("+")[2]) + 1


PROTOCOL = Protocol(
    name="reading",
    title="Reading",
    about="A model describes each picture; a judge that sees only the description answers "
    "multiple-choice questions about the picture, or says that it cannot tell.",
    options=ReadingOptions,
    flow=read_item,
    tally=caption_tally.tally,
    metrics=caption_tally.METRICS,
    headline="overall_acc",
    dimensions=("category", "l1", "l2", "generator", "nature", "area"),
    judge_defaults=JudgeDefaults(temperature=0.0, max_tokens=2048),
    forecast=Forecast(440, assumed_tokens, assumed_reply),
    classes=caption_tally.CLASSES,
    extras=caption_tally.calibration_extra,
    notes=caption_tally.caption_notes,
    tables=caption_tally.TABLES,
    charts=caption_tally.CHARTS,
    lengths=choice_lengths,
    pictures_by_label=False,
)
