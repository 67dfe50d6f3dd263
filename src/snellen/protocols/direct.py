"""The direct protocol (PerceptionBench): a question about pictures, judged right or wrong.

Source: PerceptionBench (arXiv 2607.24957) and its public evaluation notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from snellen.errors import UsageError
from snellen.flows import Flow, ask_model, ask_until, readable, said
from snellen.metrics import (
    Array,
    Formula,
    Metric,
    ProbeTable,
    Sums,
    Tally,
    column,
    hit_rate,
    pool,
    quotient,
    ratio,
)
from snellen.protocols.protocol import (
    Extra,
    Forecast,
    JudgeDefaults,
    Lengths,
    Options,
    Protocol,
    Replies,
    RunView,
    first_label,
)
from snellen.protocols.verdicts import judged_verdict, settle
from snellen.records import (
    IMAGE_MARK,
    GradeTask,
    Image,
    Item,
    Message,
    Outcome,
    Probe,
    Reply,
    ReplyRow,
    Request,
    Verdict,
)
from snellen.replies import Parsed
from snellen.replies.answers import parse_verdict
from snellen.replies.fences import fence
from snellen.replies.official import normalize_escape, official_verdict
from snellen.templates import Template, bundled

_SPACE = re.compile(r"\s+")
CONTROLS = ("", "no-image")
VERDICT_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "boolean"}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
PARSERS = ("snellen", "official")


@dataclass(frozen=True, slots=True)
class DirectOptions(Options):
    """How questions are asked and judged.

    `hint` sends an item's non-blank hint as system message. `parser` is `snellen` or `official`.
    `exact_match` spares the judge where reply and reference are equal but for case and space.
    `control` is "" or `no-image`.

    Raises:
        UsageError: no such control, or no such parser.
    """

    judge: Template = field(default_factory=lambda: bundled("direct_judge"))
    remind: Template = field(default_factory=lambda: bundled("remind_verdict"))
    hint: bool = True
    parser: str = "snellen"
    exact_match: bool = False
    control: str = ""

    def __post_init__(self) -> None:
        """Refuses what direct questions do not have, rather than to leave it out in silence."""
        if self.control not in CONTROLS:
            raise UsageError(
                f"a direct benchmark has no control `{self.control}`",
                hint="give --control no-image",
            )
        if self.parser not in PARSERS:
            raise UsageError(
                f"there is no parser `{self.parser}`", hint=f"there are: {', '.join(PARSERS)}"
            )

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose; the question itself is the data's."""
        return {"verdict": self.judge, "reminder": self.remind}


def interleave(text: str, images: tuple[Image, ...]) -> tuple[str | Image, ...]:
    """Text and pictures in the order in which they are sent.

    `<|image_N|>` counts from 1; a repeated mark repeats its picture, a mark out of range stays in
    the text, pictures without a mark follow at the end, texts are not stripped.
    Source: PerceptionBench, official message builder.

    >>> a, b = Image("a", "", ""), Image("b", "", "")
    >>> interleave("<|image_2|>Which? <|image_9|>", (a, b)) == (b, "Which? <|image_9|>", a)
    True
    """
    parts: list[str | Image] = []
    used: set[int] = set()
    position = 0
    for mark in IMAGE_MARK.finditer(text):
        number = int(mark.group(1))
        if not 1 <= number <= len(images):
            continue
        if mark.start() > position:
            parts.append(text[position : mark.start()])
        parts.append(images[number - 1])
        used.add(number)
        position = mark.end()
    if position < len(text):
        parts.append(text[position:])
    parts.extend(image for n, image in enumerate(images, 1) if n not in used)
    return tuple(parts) or (text,)


def ask(item: Item, options: DirectOptions) -> Request:
    """The request that asks a model the question, with its hint as system message."""
    images = () if options.control == "no-image" else item.images
    text = item.text if images else IMAGE_MARK.sub("", item.text)
    messages = [Message("user", interleave(text, images))]
    if options.hint and item.hint.strip():
        messages.insert(0, Message("system", (item.hint,)))
    return Request("model", tuple(messages), "reply")


def ask_item(item: Item, options: DirectOptions, repeat: int = 0) -> Flow[Outcome]:
    """The whole protocol for one question: a reply, then a verdict on it."""
    [probe] = item.probes
    [row] = yield [ask_model(ask(item, options), item.id, repeat=repeat, given=options.given)]
    settled = settle(item, row, lambda probe: False)
    if settled is None and options.exact_match and same_text(row.reply or "", probe.answer):
        exact = Verdict(item.id, probe.id, True, True, "scored", "exact_match", repeat=repeat)
        settled = (exact,)
    if settled is not None:
        return Outcome(row, settled)
    [verdict] = yield [judge_reply(item, row, options)]
    return Outcome(row, (verdict,))


def same_text(reply: str, reference: str) -> bool:
    """Whether two texts are equal but for case, outer space and a final full stop.

    >>> same_text(" Red. ", "red")
    True
    """
    plain = (
        _SPACE.sub(" ", text).strip().removesuffix(".").casefold() for text in (reply, reference)
    )
    return next(plain) == next(plain)


def judge_reply(item: Item, row: ReplyRow, options: DirectOptions) -> Flow[Verdict]:
    """The judge's verdict on one reply."""
    request = judge_request(item, row, options)
    is_official = options.parser == "official"

    def parse(reply: Reply) -> Parsed:
        if is_official:
            return official_verdict(reply.text)
        return readable(parse_verdict(reply.text, finish_reason=reply.finish_reason))

    reasks = 0 if is_official else options.reasks
    judged = yield from ask_until(
        request, parse, remind=options.remind.text, schema=VERDICT_SCHEMA, reasks=reasks
    )
    value = None if judged.reason else bool(said(judged).value)
    return judged_verdict(item, item.probes[0], judged, value, repeat=row.repeat)


def judge_request(item: Item, row: ReplyRow, options: DirectOptions) -> Request:
    """The judge call: question, fenced reply and reference, as text, without hint or picture."""
    probe = item.probes[0]
    reply = row.reply or ""
    text = options.judge.fill(
        problem=normalize_escape(item.text).strip(),
        reference_answer=normalize_escape(probe.answer).strip(),
        assistant_answer=fence(normalize_escape(reply).strip()),
    )
    task = GradeTask(IMAGE_MARK.sub("", item.text).strip(), probe.answer, reply)
    return Request("judge", (Message("user", (text,)),), "verdict", probe=probe.id, task=task)


# Tallies. Columns by unit (an item, or one repeat of it): M asked, C right, X unscored, and the
# same three by capability ("M:label"), since the macro mean is a function of those.
ACCURACY = replace(
    hit_rate("accuracy", "C", "M", "X", title="Accuracy"),
    is_main=True,
    definition="Share of the questions that are answered rightly.",
    formula="right / questions",
    example="200 questions, 90 right: 45.0 %.",
)


def macro(labels: Sequence[str]) -> Metric:
    """The mean of the capabilities' accuracies, each weighing the same, without absent ones."""

    def mean_of(rate: Callable[[Array, Array, Array], Array]) -> Formula:
        def compute(s: Sums) -> Array:
            rates = [rate(s[f"C:{k}"], s[f"M:{k}"], s[f"X:{k}"]) for k in labels]
            stacked = np.stack(rates, axis=-1)
            known = ~np.isnan(stacked)
            return ratio(np.nansum(stacked, axis=-1), known.sum(axis=-1))

        return compute

    return Metric(
        "macro_accuracy",
        mean_of(lambda c, m, x: ratio(c, m)),
        mean_of(lambda c, m, x: ratio(c, m - x)),
        mean_of(lambda c, m, x: ratio(c + x, m)),
        column("M"),
        title="Macro",
        definition="Mean of the accuracies of the capabilities, each weighing the same.",
        formula="mean over capabilities of right / questions",
        example="Counting 20 of 100, reading 30 of 50: 40.0 %.",
        is_main=True,
        mean_of=tuple(
            Metric(k, quotient(f"C:{k}", f"M:{k}"), None, None, column(f"M:{k}")) for k in labels
        ),
    )


def tally(table: ProbeTable, replies: Replies) -> Tally:
    """Counts by cluster: items that share a picture or a source item are one cluster."""
    del replies
    n = len(table.units)
    probes = table.where(~table.skipped)
    label = probes.labels.get("error_category", np.full(probes.n, "?", str))
    labels = [str(k) for k in np.unique(label)]
    by_unit: dict[str, Array] = {}
    for suffix, mask in [("", np.ones(probes.n, bool)), *((f":{k}", label == k) for k in labels)]:
        part = probes.where(mask)
        by_unit["M" + suffix] = pool(part.unit, np.ones(part.n), n)
        by_unit["C" + suffix] = pool(part.unit, part.correct, n)
        by_unit["X" + suffix] = pool(part.unit, part.unscored, n)
    metrics = (ACCURACY, macro(labels)) if len(labels) > 1 else (ACCURACY,)
    return probes.by_cluster(tuple(by_unit), by_unit, metrics)


@dataclass(frozen=True, slots=True)
class Consistency:
    """How steady a model is when it is asked the same question several times.

    Shares of the `n` questions that are scored in all repeats: right every time, sometimes,
    never. `agreement` is the chance that two repeats of one question are judged alike.
    """

    n: int
    repeats: int
    mean_accuracy: float
    always: float
    sometimes: float
    never: float
    agreement: float


def consistency(table: ProbeTable, repeats: int) -> Consistency | None:
    """The consistency over repeats; None where no question is scored in all of them."""
    names = [item_id for item_id, _ in table.units]
    items = {name: k for k, name in enumerate(dict.fromkeys(names))}
    item = np.array([items[name] for name in names], np.intp)[table.unit]
    right = pool(item, table.correct, len(items))
    scored = pool(item, ~table.unscored & ~table.skipped, len(items))
    right = right[scored == repeats]
    n = len(right)
    if n == 0 or repeats < 2:
        return None
    wrong = repeats - right
    pairs = repeats * (repeats - 1) / 2
    alike = (right * (right - 1) + wrong * (wrong - 1)) / 2 / pairs
    return Consistency(
        n,
        repeats,
        float(right.sum() / (n * repeats)),
        float((right == repeats).mean()),
        float(((right > 0) & (right < repeats)).mean()),
        float((right == 0).mean()),
        float(alike.mean()),
    )


def consistency_extra(view: RunView) -> Extra:
    steady = consistency(view.table, view.repeats)
    return {} if steady is None else {"consistency": steady}


def question_text(item: Item) -> str:
    """The question without the marks that pictures take the place of."""
    most = len(item.images)
    return IMAGE_MARK.sub(lambda mark: "" if 1 <= int(mark[1]) <= most else mark[0], item.text)


def lengths(item: Item, probe: Probe) -> Lengths:
    return Lengths(first_label(item), len(question_text(item)), len(probe.answer))


def labels(item: Item, probe: Probe) -> tuple[str, tuple[str, ...]]:
    """The capability of a question, and the benchmark that it came from as its domain."""
    del probe
    source = item.extra.get("source_bmk")
    capability = next(iter(item.groups.get("error_category", ())), "")
    return capability, (str(source),) if source else ()


PROTOCOL = Protocol(
    name="direct",
    title="Direct questions",
    about="A model answers questions about pictures; a judge compares each answer with the "
    "reference.",
    options=DirectOptions,
    flow=ask_item,
    tally=tally,
    metrics=(ACCURACY, macro(())),
    headline="accuracy",
    dimensions=("error_category",),
    judge_defaults=JudgeDefaults(temperature=0.3, max_tokens=8192),
    forecast=Forecast(60, lambda request: 60, lambda request: Reply("[reason] none [judge] True")),
    describes=False,
    extras=consistency_extra,
    tables=("repeats",),
    charts=("radar-capability",),
    labels=labels,
    lengths=lengths,
)
