"""The rubric protocol (PerceptionRubrics): a description against statements, with a hard gate.

One Must-Right statement that fails shuts the gate, and the image scores zero; behind an open gate
the score is the share of Easy-Wrong statements that hold.
Source: PerceptionRubrics, formulas (1) and (2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from snellen.flows import Asked, Flow, ask_model, ask_parts, ask_until, readable, said
from snellen.protocols.gate_tally import (
    EASY_WRONG,
    GATE_FIRST_METRICS,
    METRICS,
    MUST_RIGHT,
    STATEMENT_METRICS,
    shut_gates,
    tally,
)
from snellen.protocols.protocol import (
    Extra,
    Forecast,
    JudgeDefaults,
    Options,
    Protocol,
    RunView,
)
from snellen.protocols.verdicts import settle
from snellen.records import (
    Item,
    JsonObject,
    Message,
    Outcome,
    Params,
    Probe,
    Reply,
    ReplyRow,
    Request,
    RubricTask,
    Usage,
    Verdict,
    walk,
)
from snellen.replies import Parsed
from snellen.replies.answers import parse_statement
from snellen.replies.fences import fence
from snellen.replies.groups import parse_assessment
from snellen.templates import Template, bundled
from snellen.tokens import count_tokens


@dataclass(frozen=True, slots=True)
class RubricOptions(Options):
    """How descriptions are asked for and audited.

    `one_a_call` asks about each statement in a call of its own. `gate_first` asks about the
    Must-Right group first, and skips the rest where the gate is shut.
    """

    describe: Template = field(default_factory=lambda: bundled("describe_rubric"))
    judge: Template = field(default_factory=lambda: bundled("rubric_judge"))
    judge_one: Template = field(default_factory=lambda: bundled("rubric_judge_one"))
    remind: Template = field(default_factory=lambda: bundled("remind_assessment"))
    remind_one: Template = field(default_factory=lambda: bundled("remind_statement"))
    one_a_call: bool = False
    gate_first: bool = False

    @property
    def shares_calls(self) -> bool:
        """Whether one call of the judge is about all statements of a group."""
        return not self.one_a_call

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose."""
        judge, remind = self.judge, self.remind
        if self.one_a_call:
            judge, remind = self.judge_one, self.remind_one
        return {"reply": self.describe, "verdict": judge, "reminder": remind}


@dataclass(frozen=True, slots=True)
class Group:
    """The statements of one kind of an item, and what is known of them."""

    kind: str
    probes: tuple[Probe, ...]


def groups_of(item: Item) -> tuple[Group, Group]:
    """The Must-Right and the Easy-Wrong statements of an item."""
    must = tuple(p for p in item.probes if p.kind == MUST_RIGHT)
    easy = tuple(p for p in item.probes if p.kind == EASY_WRONG)
    return Group(MUST_RIGHT, must), Group(EASY_WRONG, easy)


def describe(item: Item, prompt: Template) -> Request:
    """The request that asks a model for a description: the picture, then the prompt."""
    return Request("model", (Message("user", (*item.images, prompt.text)),), "reply")


def audit_item(item: Item, options: RubricOptions, repeat: int = 0) -> Flow[Outcome]:
    """The whole protocol for one picture: a description, then a verdict on each statement."""
    request = describe(item, options.describe)
    [row] = yield [ask_model(request, item.id, repeat=repeat, given=options.given)]
    settled = settle(item, row, lambda probe: False)
    if settled is not None:
        return Outcome(row, settled)
    must, easy = groups_of(item)
    audit = _audit_singly if options.one_a_call else _audit_groups
    if not options.gate_first:
        [verdicts] = yield [audit(item, row, (must, easy), options)]
        return Outcome(row, _in_order(item, verdicts))
    [first] = yield [audit(item, row, (must, Group(EASY_WRONG, ())), options)]
    if any(v.correct is False for v in first):
        rest = [
            Verdict(item.id, p.id, None, None, "skipped", "gate_shut", repeat=row.repeat)
            for p in easy.probes
        ]
    else:
        [rest] = yield [audit(item, row, (Group(MUST_RIGHT, ()), easy), options)]
    return Outcome(row, _in_order(item, [*first, *rest]))


def _in_order(item: Item, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    by_probe = {v.probe_id: v for v in verdicts}
    return tuple(by_probe[p.id] for p in item.probes)


def audit_request(
    item: Item, row: ReplyRow, groups: tuple[Group, Group], options: RubricOptions
) -> Request:
    """The judge call for whole groups; an empty group is said to be empty."""
    must, easy = groups
    caption = row.reply or ""
    text = options.judge.fill(
        caption=fence(caption),
        group_a_rubrics=_numbered(must.probes),
        group_b_rubrics=_numbered(easy.probes),
    )
    asked = [g.kind for g in groups if g.probes]
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe="+".join(asked),
        lead=item.id,
        task=RubricTask(caption, _texts(must.probes), _texts(easy.probes)),
    )


def _numbered(probes: Sequence[Probe]) -> str:
    if not probes:
        return "(this group is empty)"
    return "\n".join(f"{k}. {probe.question}" for k, probe in enumerate(probes, 1))


def _texts(probes: Sequence[Probe]) -> tuple[str, ...]:
    return tuple(probe.question for probe in probes)


def _audit_groups(
    item: Item, row: ReplyRow, groups: tuple[Group, Group], options: RubricOptions
) -> Flow[list[Verdict]]:
    """The verdicts on whole groups: a group that cannot be read is asked again whole."""
    if not any(group.probes for group in groups):
        return []
    request = audit_request(item, row, groups, options)
    n_a, n_b = (len(group.probes) for group in groups)

    def parse(reply: Reply) -> Sequence[Parsed]:
        read = parse_assessment(reply.text, n_a, n_b, finish_reason=reply.finish_reason)
        # Nothing was asked of an empty group, so nothing of it can be unreadable.
        return [p if g.probes else Parsed(()) for g, p in zip(groups, read, strict=True)]

    judged, usage = yield from ask_parts(
        request,
        parse,
        2,
        remind=options.remind.text,
        schema=_assessment_schema(n_a, n_b),
        reasks=options.reasks,
    )
    verdicts: list[Verdict] = []
    for group, result in zip(groups, judged, strict=True):
        values = said(result).parts if result.reason else said(result).value
        for k, probe in enumerate(group.probes):
            value = values[k] if isinstance(values, tuple) and values else None
            # One call's tokens are counted once, with its first statement.
            spent = Usage() if verdicts else usage
            verdicts.append(_verdict(item, probe, result, value=value, usage=spent, row=row))
    return verdicts


def _assessment_schema(n_a: int, n_b: int) -> JsonObject:
    """As many booleans for each group as it has statements."""
    groups = {
        name: {"type": "array", "items": {"type": "boolean"}, "minItems": n, "maxItems": n}
        for name, n in (("GroupA", n_a), ("GroupB", n_b))
    }
    return {
        "type": "object",
        "properties": groups,
        "required": list(groups),
        "additionalProperties": False,
    }


def _verdict(
    item: Item,
    probe: Probe,
    result: Asked[Parsed],
    *,
    value: bool | None,
    usage: Usage,
    row: ReplyRow,
) -> Verdict:
    # A result that its id tells apart counts, though another of its group is in conflict.
    is_recovered = said(result).how == "recovered" or result.reason is not None
    return Verdict(
        item.id,
        probe.id,
        value,
        value,
        "unscored" if value is None else "scored",
        result.reason if value is None else "recovered" if is_recovered else None,
        result.raw,
        usage,
        repeat=row.repeat,
        note=said(result).note,
    )


def _audit_singly(
    item: Item, row: ReplyRow, groups: tuple[Group, Group], options: RubricOptions
) -> Flow[list[Verdict]]:
    """The verdicts on statements that are each asked in a call of their own."""

    def audit_one(probe: Probe) -> Flow[Verdict]:
        judged = yield from ask_until(
            single_request(item, row, probe, options),
            lambda reply: readable(parse_statement(reply.text, finish_reason=reply.finish_reason)),
            remind=options.remind_one.text,
            schema=("true", "false"),
            reasks=options.reasks,
        )
        value = None if judged.reason else bool(said(judged).value)
        return _verdict(item, probe, judged, value=value, usage=judged.usage, row=row)

    verdicts = yield [audit_one(probe) for group in groups for probe in group.probes]
    return list(verdicts)


def single_request(item: Item, row: ReplyRow, probe: Probe, options: RubricOptions) -> Request:
    """The judge call for one statement."""
    caption = row.reply or ""
    text = options.judge_one.fill(caption=fence(caption), rubric=probe.question)
    must = (probe.question,) if probe.kind == MUST_RIGHT else ()
    easy = (probe.question,) if probe.kind == EASY_WRONG else ()
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe=probe.id,
        lead=item.id,
        task=RubricTask(caption, must, easy),
    )


@dataclass(frozen=True, slots=True)
class Savings:
    """First asks of the judge and their prompt tokens (o200k_base): all at once, and gate first.

    Negative savings are a loss: behind an open gate the second call sends the caption once more.
    Asks after an unreadable reply are in neither number. `not_given` names the metrics that need
    the skipped statements.
    """

    calls_all_at_once: int
    calls_gate_first: int
    calls_saved: int
    prompt_tokens_all_at_once: int
    prompt_tokens_gate_first: int
    prompt_tokens_saved: int
    skipped_probes: int
    not_given: tuple[str, ...]


def savings(view: RunView) -> Savings:
    """What asking about the gate first saved in a run, or cost, against judging all statements."""
    options = RubricOptions(judge=view.prompts["verdict"])
    if view.options.get("one_a_call"):
        options = RubricOptions(judge_one=view.prompts["verdict"], one_a_call=True)
    full: list[Request] = []
    made: list[Request] = []
    for item, repeat in walk(view.items, view.repeats):
        row = view.replies.get((item.id, repeat))
        if row is None or row.status != "ok":
            continue
        must, easy = groups_of(item)
        full += _requests(item, row, options, (must, easy))
        made += _requests(item, row, options, (must, Group(EASY_WRONG, ())))
        verdicts = (view.verdicts.get((item.id, repeat, probe.id)) for probe in item.probes)
        if not any(v is not None and v.status == "skipped" for v in verdicts):
            made += _requests(item, row, options, (Group(MUST_RIGHT, ()), easy))
    tokens_full, tokens_made = _prompt_tokens(full), _prompt_tokens(made)
    skipped = sum(v.status == "skipped" for v in view.verdicts.values())
    kept = GATE_FIRST_METRICS if skipped else METRICS
    return Savings(
        len(full),
        len(made),
        len(full) - len(made),
        tokens_full,
        tokens_made,
        tokens_full - tokens_made,
        skipped,
        tuple(metric.name for metric in METRICS if metric not in kept),
    )


def _requests(
    item: Item, row: ReplyRow, options: RubricOptions, groups: tuple[Group, Group]
) -> list[Request]:
    """The judge calls about groups of statements, without asks after an unreadable reply."""
    probes = [probe for group in groups for probe in group.probes]
    if options.one_a_call:
        return [single_request(item, row, probe, options) for probe in probes]
    return [audit_request(item, row, groups, options)] if probes else []


def _prompt_tokens(requests: Sequence[Request]) -> int:
    texts = (str(part) for r in requests for message in r.messages for part in message.parts)
    return sum(count_tokens(texts))


def gate_extra(view: RunView) -> Extra:
    """What `summary.json` holds about gates: images without a group, shut gates, calls saved."""
    sums = tally(view.table, view.replies).sums()
    extra: Extra = {
        "images_without_must_right": int(sums["no_must"]),
        "images_without_easy_wrong": int(sums["no_easy"]),
        "shut_gates": {"category": msgspec.to_builtins(shut_gates(view, "category"))},
    }
    if view.options.get("gate_first"):
        extra["gate_first"] = msgspec.to_builtins(savings(view))
    return extra


def gate_notes(view: RunView, extra: Params) -> Iterator[str]:
    """What people are told about the gates: images without a group, and what `gate_first` did."""
    del view
    if extra["images_without_must_right"]:
        yield (
            f"{extra['images_without_must_right']} images have no Must-Right statement: "
            "their gate is open"
        )
    if extra["images_without_easy_wrong"]:
        yield (
            f"{extra['images_without_easy_wrong']} images have no Easy-Wrong statement: "
            "their score is the gate itself"
        )
    if "gate_first" in extra:
        saved = extra["gate_first"]
        calls, tokens = saved["calls_saved"], saved["prompt_tokens_saved"]
        lost = f"; not given: {', '.join(saved['not_given'])}" if saved["not_given"] else ""
        yield (
            f"gate first: {_gain(calls, 'judge calls')} and {_gain(tokens, 'prompt tokens')} "
            f"against judging all statements, {saved['skipped_probes']} of them skipped{lost}"
        )


def _gain(saved: int, noun: str) -> str:
    return f"{abs(saved)} {noun} {'added' if saved < 0 else 'saved'}"


def assumed_reply(request: Request) -> Reply:
    """What a dry run takes the judge to say: every statement holds."""
    task = request.task
    if not isinstance(task, RubricTask) or not set(request.probe.split("+")) <= {
        MUST_RIGHT,
        EASY_WRONG,
    }:
        return Reply("true")
    sides = (("GroupA", task.must_right), ("GroupB", task.easy_wrong))
    groups = (f"<{name}>{'<Result>true</Result>' * len(side)}</{name}>" for name, side in sides)
    return Reply(f"<Assessment>{''.join(groups)}</Assessment>")


def labels(item: Item, probe: Probe) -> tuple[str, tuple[str, ...]]:
    """The group of a statement, and the domains of the picture."""
    names = {MUST_RIGHT: "Must-Right", EASY_WRONG: "Easy-Wrong"}
    return names.get(probe.kind, ""), item.groups.get("category", ())


PROTOCOL = Protocol(
    name="rubric",
    title="Rubrics with a gate",
    about="A model describes each picture; a judge holds the description against statements. "
    "One Must-Right statement that fails shuts the gate, and the picture scores zero.",
    options=RubricOptions,
    flow=audit_item,
    tally=tally,
    metrics=METRICS,
    headline="score",
    dimensions=("category", "proposer", "jurors"),
    judge_defaults=JudgeDefaults(temperature=0.0, max_tokens=16384),
    forecast=Forecast(900, lambda request: 130, assumed_reply),
    partial=dict.fromkeys(("proposer", "jurors"), STATEMENT_METRICS),
    extras=gate_extra,
    notes=gate_notes,
    tables=("rubric-studies",),
    charts=("heat", "gap", "coverage", "bars-category", "bars-gates"),
    labels=labels,
)
