"""The rubric protocol (PerceptionRubrics): a description against statements, with a hard gate.

One Must-Right statement that fails shuts the gate, and the image scores zero; behind an open gate
the score is the share of Easy-Wrong statements that hold.
Source: PerceptionRubrics, formulas (1) and (2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from snellen.flows import (
    REASKS,
    Asked,
    Flow,
    Given,
    ask_model,
    ask_parts,
    ask_until,
    failed_reason,
    readable,
    said,
)
from snellen.metrics import Array, Metric, ProbeTable, Tally, column, pool, quotient, ratio
from snellen.records import (
    Item,
    Message,
    Outcome,
    Probe,
    Reply,
    ReplyRow,
    Request,
    RubricTask,
    Usage,
    Verdict,
)
from snellen.replies import Parsed
from snellen.replies.answers import parse_statement
from snellen.replies.fences import fence
from snellen.replies.groups import parse_assessment
from snellen.templates import Template, bundled

MUST_RIGHT = "must_right"
EASY_WRONG = "easy_wrong"


@dataclass(frozen=True, slots=True)
class RubricOptions:
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
    reasks: int = REASKS
    given: Given | None = None

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
    settled = settle_without_judge(item, row)
    if settled is not None:
        return Outcome(row, settled)
    must, easy = groups_of(item)
    audit = _audit_singly if options.one_a_call else _audit_groups
    if not options.gate_first:
        [verdicts] = yield [audit(item, row, (must, easy), options)]
        return Outcome(row, _in_order(item, verdicts))
    [first] = yield [audit(item, row, (must, Group(EASY_WRONG, ())), options)]
    if any(v.correct is False for v in first):
        rest = [_skipped(item, probe, row) for probe in easy.probes]
    else:
        [rest] = yield [audit(item, row, (Group(MUST_RIGHT, ()), easy), options)]
    return Outcome(row, _in_order(item, [*first, *rest]))


def settle_without_judge(item: Item, row: ReplyRow) -> tuple[Verdict, ...] | None:
    """The verdicts on a failed call (unscored), or on a blank reply (every statement false)."""
    failed = failed_reason(row)
    if failed is not None:
        return tuple(
            Verdict(item.id, p.id, None, None, "unscored", failed, repeat=row.repeat)
            for p in item.probes
        )
    if row.status == "ok":
        return None
    return tuple(
        Verdict(item.id, p.id, False, False, "scored", row.status, repeat=row.repeat)
        for p in item.probes
    )


def _skipped(item: Item, probe: Probe, row: ReplyRow) -> Verdict:
    return Verdict(item.id, probe.id, None, None, "skipped", "gate_shut", repeat=row.repeat)


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


def _assessment_schema(n_a: int, n_b: int) -> dict[str, Any]:
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
    probes = [probe for group in groups for probe in group.probes]
    verdicts = yield [_audit_one(item, row, probe, options) for probe in probes]
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


def _audit_one(item: Item, row: ReplyRow, probe: Probe, options: RubricOptions) -> Flow[Verdict]:
    request = single_request(item, row, probe, options)
    judged = yield from ask_until(
        request,
        _parse_one,
        remind=options.remind_one.text,
        schema=("true", "false"),
        reasks=options.reasks,
    )
    value = None if judged.reason else bool(said(judged).value)
    return _verdict(item, probe, judged, value=value, usage=judged.usage, row=row)


def _parse_one(reply: Reply) -> Parsed:
    return readable(parse_statement(reply.text, finish_reason=reply.finish_reason))


# Tallies. Columns by unit: probes, right and unscored ones of both groups (Mm Mc Mx, Em Ec Ex,
# P C X for all); n units; G gate, S score, A ungated Easy-Wrong rate: strict, over scored (with
# the number of units where it is known), and upper. A gate is known to be shut in n - Gu units.
COLUMNS = (
    "P", "C", "X", "Mm", "Mc", "Mx", "Em", "Ec", "Ex", "n",
    "G", "Gs", "nG", "Gu", "S", "Ss", "nS", "Su", "A", "As", "nA", "Au", "nE",
    "no_must", "no_easy",
)  # fmt: skip


def _statement_metric(name: str, title: str, columns: str) -> Metric:
    """The share of statements that hold; `columns` names right, all and unscored statements."""
    right, n, unscored = columns.split()
    return Metric(
        name,
        quotient(right, n),
        lambda s: ratio(s[right], s[n] - s[unscored]),
        lambda s: ratio(s[right] + s[unscored], s[n]),
        column(n),
        title=title,
    )


SCORE = Metric(
    "score",
    quotient("S", "n"),
    quotient("Ss", "nS"),
    quotient("Su", "n"),
    column("n"),
    title="Score",
    is_main=True,
)
GATE = Metric(
    "gate_pass",
    quotient("G", "n"),
    quotient("Gs", "nG"),
    quotient("Gu", "n"),
    column("n"),
    title="Gate pass",
    is_main=True,
)
ATOMIC = replace(_statement_metric("atomic_acc", "Atomic", "C P X"), is_main=True)
MUST_RIGHT_ACC = _statement_metric("must_right_acc", "Must-Right", "Mc Mm Mx")
EASY_WRONG_ACC = _statement_metric("easy_wrong_acc", "Easy-Wrong", "Ec Em Ex")
EASY_AVG = Metric(
    "easy_wrong_avg",
    quotient("A", "nE"),
    quotient("As", "nA"),
    quotient("Au", "nE"),
    column("nE"),
    title="E-W avg (no gate)",
)
GAP = Metric(
    "reliability_gap",
    lambda s: GATE.value(s) - ATOMIC.value(s),
    lambda s: ratio(s["Gs"], s["nG"]) - ratio(s["C"], s["P"] - s["X"]),
    None,
    column("n"),
    title="Gap",
    unit="points",
    parts=("gate_pass", "atomic_acc"),
)
METRICS: tuple[Metric, ...] = (
    SCORE,
    GATE,
    ATOMIC,
    MUST_RIGHT_ACC,
    EASY_WRONG_ACC,
    EASY_AVG,
    GAP,
)
# Those that need no gate.
STATEMENT_METRICS = ("atomic_acc", "must_right_acc", "easy_wrong_acc")
GATE_FIRST_METRICS: tuple[Metric, ...] = (SCORE, GATE, MUST_RIGHT_ACC)


def tally(table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]) -> Tally:
    """Counts by image; where statements were skipped, with the metrics that they leave."""
    del replies
    n = len(table.units)
    skipped = bool(table.skipped.any())
    by_unit = _group_counts(table, n) | _gate_columns(table, n)
    return table.by_cluster(COLUMNS, by_unit, GATE_FIRST_METRICS if skipped else METRICS)


def _group_counts(table: ProbeTable, n: int) -> dict[str, Array]:
    counts: dict[str, Array] = {}
    must, easy = table.kind == MUST_RIGHT, table.kind == EASY_WRONG
    for prefix, mask in (("M", must), ("E", easy)):
        part = table.where(mask & ~table.skipped)
        counts[f"{prefix}m"] = pool(part.unit, np.ones(part.n), n)
        counts[f"{prefix}c"] = pool(part.unit, part.correct, n)
        counts[f"{prefix}x"] = pool(part.unit, part.unscored, n)
    counts["P"] = counts["Mm"] + counts["Em"]
    counts["C"] = counts["Mc"] + counts["Ec"]
    counts["X"] = counts["Mx"] + counts["Ex"]
    return counts


def _gate_columns(table: ProbeTable, n: int) -> dict[str, Array]:
    """Gate and score of each unit: strict, known, and upper."""
    c = _group_counts(table, n)
    present = (pool(table.unit, np.ones(table.n), n) > 0).astype(float)
    shut = (c["Mm"] - c["Mc"] - c["Mx"] > 0).astype(float)
    gate = (c["Mc"] == c["Mm"]) * present
    upper = (1 - shut) * present
    known = np.maximum(shut, gate) * present
    easy = c["Em"] > 0
    asked_easy = pool(table.unit, table.kind == EASY_WRONG, n) > 0
    # Without Easy-Wrong statements the score is the gate itself.
    rate = np.where(easy, np.nan_to_num(ratio(c["Ec"], c["Em"])), 1.0)
    best = np.where(easy, np.nan_to_num(ratio(c["Ec"] + c["Ex"], c["Em"])), 1.0)
    clear = ((c["Ex"] == 0) | (shut > 0)) * known
    easy_known = (easy & (c["Ex"] == 0)).astype(float)
    return {
        "n": present,
        "G": gate, "Gs": gate * known, "nG": known, "Gu": upper,
        "S": gate * rate, "Ss": gate * rate * clear, "nS": clear, "Su": upper * best,
        "A": rate * easy, "As": rate * easy_known, "nA": easy_known, "Au": best * easy,
        "nE": easy * present,
        "no_must": (c["Mm"] == 0) * present, "no_easy": ~asked_easy * present,
    }  # fmt: skip
