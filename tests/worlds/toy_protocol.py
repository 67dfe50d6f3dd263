"""A protocol in a file of its own: a model names a colour, and no judge is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snellen.flows import Flow, ask_model, failed_reason
from snellen.metrics import ProbeTable, Tally, hit_rate, pool
from snellen.protocols.protocol import (
    Forecast,
    JudgeDefaults,
    Options,
    Protocol,
    Replies,
    RunView,
)
from snellen.records import Benchmark, Item, Message, Outcome, Probe, Reply, Request, Verdict
from snellen.templates import Template

NAMED = replace(hit_rate("named", "C", "M", "X", title="Named"), is_main=True)


@dataclass(frozen=True, slots=True)
class ToyOptions(Options):
    """Whether letters of another case count as right."""

    any_case: bool = True

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The question; the verdict's prompt is never sent."""
        return {"reply": Template("toy", "Which colour?"), "verdict": Template("none", "")}


def ask_colour(item: Item, options: ToyOptions, repeat: int = 0) -> Flow[Outcome]:
    """A reply, and a verdict by comparison with the answer."""
    request = Request("model", (Message("user", (options.prompts["reply"].text,)),), "reply")
    [row] = yield [ask_model(request, item.id, repeat=repeat, given=options.given)]
    [probe] = item.probes
    failed = failed_reason(row)
    if failed is not None:
        return Outcome(row, (Verdict(item.id, probe.id, None, None, "unscored", failed),))
    reply = row.reply or ""
    right = (reply.lower() if options.any_case else reply) == probe.answer
    return Outcome(row, (Verdict(item.id, probe.id, right, right, "scored", repeat=repeat),))


def tally(table: ProbeTable, replies: Replies) -> Tally:
    """Counts by item."""
    del replies
    n = len(table.units)
    columns = {
        "M": pool(table.unit, np.ones(table.n), n),
        "C": pool(table.unit, table.correct, n),
        "X": pool(table.unit, table.unscored, n),
    }
    return table.by_cluster(("M", "C", "X"), columns, (NAMED,))


def notes(view: RunView, extra: Mapping[str, Any]) -> Iterator[str]:
    """How many colours there are."""
    del view
    yield f"{extra['colours']} colours"


PROTOCOL = Protocol(
    name="toy",
    title="Toy",
    about="A model names a colour.",
    options=ToyOptions,
    flow=ask_colour,
    tally=tally,
    metrics=(NAMED,),
    headline="named",
    dimensions=("shade",),
    judge_defaults=JudgeDefaults(temperature=0.0, max_tokens=1),
    forecast=Forecast(1, lambda request: 0, lambda request: Reply("")),
    describes=False,
    extras=lambda view: {"colours": len({p.answer for item in view.items for p in item.probes})},
    notes=notes,
)


def toy_benchmark() -> Benchmark:
    """Three colours, two of them dark."""
    shades = {"red": "dark", "blue": "dark", "white": "light"}
    items = tuple(
        Item(name, (), (Probe("0", "Which?", name, groups={"shade": shade}),), digest=name)
        for name, shade in shades.items()
    )
    return Benchmark("colours", "toy", items, digest="colours")
