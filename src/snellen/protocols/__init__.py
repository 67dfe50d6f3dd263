"""The three protocols, by name: what asks, what counts, and what is broken down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from snellen.flows import Flow
from snellen.protocols import direct, reading, rubric
from snellen.protocols.direct import DirectOptions
from snellen.protocols.reading import ReadingOptions
from snellen.protocols.rubric import RubricOptions
from snellen.records import Item, Outcome, ReplyRow
from snellen.tallies import ProbeTable, Tally

Options = DirectOptions | ReadingOptions | RubricOptions
Replies = Mapping[tuple[str, int], ReplyRow]


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a protocol is tallied. `headline` is its first number, `judge_temperature` its default."""

    name: str
    tally: Callable[[ProbeTable, Replies], Tally]
    headline: str
    dimensions: tuple[str, ...]
    judge_temperature: float
    judge_max_tokens: int


PROTOCOLS: Mapping[str, Protocol] = {
    "reading": Protocol(
        "reading",
        reading.tally,
        "overall_acc",
        ("category", "l1", "generator", "nature"),
        judge_temperature=0.0,
        judge_max_tokens=2048,
    ),
    "rubric": Protocol(
        "rubric",
        rubric.tally,
        "score",
        ("category",),
        judge_temperature=0.0,
        judge_max_tokens=16384,
    ),
    "direct": Protocol(
        "direct",
        direct.tally,
        "accuracy",
        ("error_category",),
        judge_temperature=0.3,
        judge_max_tokens=8192,
    ),
}


def flow(item: Item, options: Options, repeat: int = 0) -> Flow[Outcome]:
    """The flow of one item under its protocol."""
    match options:
        case DirectOptions():
            return direct.ask_item(item, options, repeat)
        case ReadingOptions():
            return reading.read_item(item, options, repeat)
        case RubricOptions():
            return rubric.audit_item(item, options, repeat)
