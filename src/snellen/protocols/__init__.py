"""The protocols, by name: what asks, what counts, and what is broken down.

On disk there are three; a benchmark may have a variant of its own, such as CaptionQA of `reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from snellen.flows import Flow
from snellen.metrics import Metric, ProbeTable, Tally
from snellen.protocols import caption_tally, captionqa, direct, reading, rubric
from snellen.protocols.captionqa import CaptionQAOptions
from snellen.protocols.direct import DirectOptions
from snellen.protocols.reading import ReadingOptions
from snellen.protocols.rubric import RubricOptions
from snellen.records import Item, Outcome, ReplyRow

Options = DirectOptions | ReadingOptions | CaptionQAOptions | RubricOptions
Replies = Mapping[tuple[str, int], ReplyRow]


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a protocol is tallied, and the type of its options.

    `metrics` are all that a run can have. `headline` is the first number; `judge_temperature` and
    `judge_max_tokens` are the judge's defaults. `partial` holds the dimensions that divide the
    probes of one item, each with the metrics that mean something over a part of them: an item has
    one gate, a proposer has none.
    """

    name: str
    tally: Callable[[ProbeTable, Replies], Tally]
    metrics: tuple[Metric, ...]
    headline: str
    dimensions: tuple[str, ...]
    judge_temperature: float
    judge_max_tokens: int
    options: type[Options]
    partial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def metrics_by(self, dimension: str, names: Collection[str]) -> list[str]:
        """Those of some metrics that have a meaning for one label of a dimension.

        >>> PROTOCOLS["rubric"].metrics_by("proposer", ["score", "atomic_acc"])
        ['atomic_acc']
        """
        kept = self.partial.get(dimension, names)
        return [name for name in names if name in kept]


PROTOCOLS: Mapping[str, Protocol] = {
    "reading": Protocol(
        "reading",
        reading.tally,
        caption_tally.METRICS,
        "overall_acc",
        ("category", "l1", "generator", "nature", "area"),
        judge_temperature=0.0,
        judge_max_tokens=2048,
        options=ReadingOptions,
    ),
    "captionqa": Protocol(
        "captionqa",
        captionqa.tally,
        captionqa.METRICS,
        "score",
        ("category", "domain"),
        judge_temperature=0.0,
        judge_max_tokens=4,
        options=CaptionQAOptions,
    ),
    "rubric": Protocol(
        "rubric",
        rubric.tally,
        rubric.METRICS,
        "score",
        ("category", "proposer", "jurors"),
        judge_temperature=0.0,
        judge_max_tokens=16384,
        options=RubricOptions,
        partial=dict.fromkeys(("proposer", "jurors"), rubric.STATEMENT_METRICS),
    ),
    "direct": Protocol(
        "direct",
        direct.tally,
        (direct.ACCURACY, direct.macro(())),
        "accuracy",
        ("error_category",),
        judge_temperature=0.3,
        judge_max_tokens=8192,
        options=DirectOptions,
    ),
}
# Benchmarks that are read in a way of their own, by protocol on disk and name.
VARIANTS: Mapping[tuple[str, str], str] = {("reading", captionqa.NAME): "captionqa"}


def protocol_of(name: str, benchmark: str) -> Protocol:
    """The protocol of that name on disk, or its variant for one benchmark.

    >>> protocol_of("reading", "captionqa").headline, protocol_of("reading", "mine").headline
    ('score', 'overall_acc')
    """
    return PROTOCOLS[VARIANTS.get((name, benchmark), name)]


def metric_named(name: str) -> Metric | None:
    """The metric of that name under any protocol; None where there is none.

    >>> metric_named("overall_acc").heading
    'Overall %'
    """
    known = (metric for one in PROTOCOLS.values() for metric in one.metrics)
    return next((metric for metric in known if metric.name == name), None)


def judge_forms(options: Options) -> tuple[frozenset[str], ...]:
    """The sets of marks that a prompt of the user's may have in place of the judge's.

    >>> [sorted(form) for form in judge_forms(DirectOptions())]
    [['assistant_answer', 'problem', 'reference_answer']]
    """
    if isinstance(options, ReadingOptions):
        return options.judge_forms
    return (options.prompts["verdict"].fields,)


def flow(item: Item, options: Options, repeat: int = 0) -> Flow[Outcome]:
    """The flow of one item under its protocol."""
    match options:
        case DirectOptions():
            return direct.ask_item(item, options, repeat)
        case ReadingOptions():
            return reading.read_item(item, options, repeat)
        case CaptionQAOptions():
            return captionqa.answer_item(item, options, repeat)
        case RubricOptions():
            return rubric.audit_item(item, options, repeat)
