"""What a protocol is: one object that says how items are asked, judged, counted and shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

from snellen.flows import REASKS, Flow, Given
from snellen.metrics import Metric, ProbeTable, Tally
from snellen.records import (
    Item,
    JsonObject,
    Outcome,
    Params,
    Probe,
    Reply,
    ReplyRow,
    Request,
    Verdict,
)
from snellen.templates import Template

Replies = Mapping[tuple[str, int], ReplyRow]
Verdicts = Mapping[tuple[str, int, str], Verdict]
Extra = JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a protocol for one run; each protocol has a class of its own.

    `reasks` is how often an unreadable reply of the judge is asked again. `given` holds replies
    that exist already, by (item id, repeat).
    """

    reasks: int = REASKS
    given: Given | None = None

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose; the judge's is `verdict`."""
        raise NotImplementedError

    @property
    def judge_forms(self) -> tuple[frozenset[str], ...]:
        """The sets of marks that the judge's prompt may have; the first is the bundled one's."""
        return (self.prompts["verdict"].fields,)

    @property
    def asks_model(self) -> bool:
        """Whether the model is asked for a reply before the judge reads one."""
        return True

    @property
    def is_swapped(self) -> bool:
        """Whether each item is judged by the reply to another item."""
        return False

    @property
    def shares_calls(self) -> bool:
        """Whether one call of the judge is about all probes of an item."""
        return False


def with_templates(options: Options, templates: Mapping[str, Template]) -> Options:
    """The options with other prompts; `templates` maps names of fields to prompts."""
    return replace(options, **templates)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class RunView:
    """What a protocol may read of a run: all that extras and notes of a summary are made of.

    `options` are the settings that `run.json` records, `prompts` the prompts by purpose.
    """

    options: Params
    prompts: Mapping[str, Template]
    items: tuple[Item, ...]
    replies: Replies
    verdicts: Verdicts
    table: ProbeTable
    repeats: int


@dataclass(frozen=True, slots=True)
class JudgeDefaults:
    """What is sent to a judge unless the user gives something else."""

    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a dry run assumes of replies that do not exist yet.

    `model_tokens` are the completion tokens of a model's reply. `judge_tokens` gives those of one
    judge call, and `judge_reply` a reply of the right form, so that a flow goes its usual way.
    """

    model_tokens: int
    judge_tokens: Callable[[Request], int]
    judge_reply: Callable[[Request], Reply]


class Lengths(NamedTuple):
    """One probe in the statistics of a benchmark: a label, and lengths in characters.

    `answer` is None where the probe has no reference answer.
    """

    label: str
    prompt: int
    answer: int | None


def first_label(item: Item) -> str:
    """The first label of an item's first dimension, `?` where the item has none."""
    return next((label for labels in item.groups.values() for label in labels), "?")


def statement_lengths(item: Item, probe: Probe) -> Lengths:
    """The lengths of a probe whose text is a statement or question and that has no reference."""
    return Lengths(first_label(item), len(probe.question), None)


def item_labels(item: Item, probe: Probe) -> tuple[str, tuple[str, ...]]:
    """The probe's category, and the item's domains (`l1` or `domain`)."""
    domains = item.groups.get("l1", ()) or item.groups.get("domain", ())
    return probe.groups.get("category", ""), domains


def no_extras(view: RunView) -> Extra:
    """No extras."""
    del view
    return {}


def no_notes(view: RunView, extra: Params) -> Iterator[str]:
    """No notes."""
    del view, extra
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How items are asked and judged under a protocol, and what is counted and shown.

    `title` and `about` (a sentence or two) are for people. `on_disk` is the protocol that a
    benchmark's card names; a variant for one benchmark has another one than its own name.
    `flow(item, options, repeat)` is the flow of one item. `metrics` are all that a run can have,
    and `headline` is the first of them. `dimensions` are the breakdowns; `partial` holds those
    that divide the probes of one item, each with the metrics that mean something over a part: an
    item has one gate, a proposer has none. `classes` are the verdicts of a judge as a check of
    judges counts them. `describes` says that replies are descriptions of pictures.

    `extras` and `notes` are what a summary says beyond metrics. `tables` and `charts` name what
    `snellen show` and the report have for this protocol; the tables and charts stand in the
    packages of these names. `labels` gives a probe's category and domains for the filters of a
    gallery, and `lengths` its line in the statistics of a benchmark; `pictures_by_label` says
    that pictures are counted by the first label of their item, too.
    """

    name: str
    title: str
    about: str
    options: type[Options]
    flow: Callable[..., Flow[Outcome]]
    tally: Callable[[ProbeTable, Replies], Tally]
    metrics: tuple[Metric, ...]
    headline: str
    dimensions: tuple[str, ...]
    judge_defaults: JudgeDefaults
    forecast: Forecast
    on_disk: str = ""
    partial: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ("true", "false")
    describes: bool = True
    extras: Callable[[RunView], Extra] = no_extras
    notes: Callable[[RunView, Params], Iterator[str]] = no_notes
    tables: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    labels: Callable[[Item, Probe], tuple[str, tuple[str, ...]]] = item_labels
    lengths: Callable[[Item, Probe], Lengths] = statement_lengths
    pictures_by_label: bool = True

    def metrics_by(self, dimension: str, names: Collection[str]) -> list[str]:
        """Those of some metrics that have a meaning for one label of a dimension."""
        kept = self.partial.get(dimension, names)
        return [name for name in names if name in kept]

    def options_from(self, recorded: Params) -> Options:
        """The options that `run.json` records; what is no option of the protocol is left out."""
        known = {one.name for one in fields(self.options)} - {"given"}
        return self.options(**{name: value for name, value in recorded.items() if name in known})
