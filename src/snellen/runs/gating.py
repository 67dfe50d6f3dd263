"""What the gate did in a run: where it shut, and what asking about it first saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from snellen.metrics import ProbeTable, group_masks
from snellen.protocols.rubric import (
    GATE_FIRST_METRICS,
    METRICS,
    Group,
    RubricOptions,
    audit_request,
    groups_of,
    settle_without_judge,
    single_request,
    tally,
)
from snellen.records import Item, ReplyRow, Request
from snellen.runs.folder import Run
from snellen.runs.spec import PromptRecord
from snellen.templates import Template
from snellen.tokens import count_tokens


@dataclass(frozen=True, slots=True)
class ShutGates:
    """The gates of one label: how many there are, are known to be shut, and cannot be told.

    `share` is shut over gates; `of_all` the label's share of all shut gates of the run. Both are
    None over zero.
    """

    gates: int
    shut: int
    unknown: int
    share: float | None
    of_all: float | None


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


def gate_extra(run: Run, table: ProbeTable) -> dict[str, Any]:
    """What `summary.json` holds under `extra` about the gates of a rubric run."""
    sums = tally(table, run.replies).sums()
    extra: dict[str, Any] = {
        "images_without_must_right": int(sums["no_must"]),
        "images_without_easy_wrong": int(sums["no_easy"]),
        "shut_gates": {"category": msgspec.to_builtins(shut_gates(run, table, "category"))},
    }
    if run.spec.options.get("gate_first"):
        extra["gate_first"] = msgspec.to_builtins(savings(run))
    return extra


def shut_gates(run: Run, table: ProbeTable, dimension: str) -> dict[str, ShutGates]:
    """The gates of each label of a dimension, a blank or failed reply's included."""
    counts: dict[str, tuple[int, int, int]] = {}
    for label, mask in group_masks(table, run.items, dimension).items():
        sums = tally(table.where(mask), run.replies).sums()
        gates, known = int(sums["n"]), int(sums["nG"])
        counts[label] = gates, gates - int(sums["Gu"]), gates - known
    total = sum(shut for _, shut, _ in counts.values())
    return {
        label: ShutGates(
            gates,
            shut,
            unknown,
            share=shut / gates if gates else None,
            of_all=shut / total if total else None,
        )
        for label, (gates, shut, unknown) in sorted(counts.items())
    }


def savings(run: Run) -> Savings:
    """What asking about the gate first saved in a run, or cost, against judging all statements."""
    options = options_of(run.spec.prompts, one_a_call=bool(run.spec.options.get("one_a_call")))
    full: list[Request] = []
    made: list[Request] = []
    for item, row in _judged(run):
        full += _requests(item, row, options, groups_of(item))
        must, easy = groups_of(item)
        made += _requests(item, row, options, (must, Group(easy.kind, ())))
        if not _is_skipped(run, item, row.repeat):
            made += _requests(item, row, options, (Group(must.kind, ()), easy))
    tokens_full, tokens_made = _tokens(full), _tokens(made)
    skipped = sum(v.status == "skipped" for v in run.verdicts.values())
    kept = {m.name for m in GATE_FIRST_METRICS} if skipped else {m.name for m in METRICS}
    return Savings(
        len(full),
        len(made),
        len(full) - len(made),
        tokens_full,
        tokens_made,
        tokens_full - tokens_made,
        skipped,
        tuple(m.name for m in METRICS if m.name not in kept),
    )


def options_of(
    prompts: Mapping[str, PromptRecord], *, one_a_call: bool = False, gate_first: bool = False
) -> RubricOptions:
    """The options under which a stored run asked its judge, with the prompts of its `run.json`."""
    judge = _template(prompts["verdict"])
    if one_a_call:
        return RubricOptions(judge_one=judge, one_a_call=True, gate_first=gate_first)
    return RubricOptions(judge=judge, gate_first=gate_first)


def _template(record: PromptRecord) -> Template:
    return Template(record.name, record.text)


def _judged(run: Run) -> Iterator[tuple[Item, ReplyRow]]:
    """The items and replies that went to the judge."""
    for item in run.items:
        for repeat in range(run.spec.repeats):
            row = run.replies.get((item.id, repeat))
            if row is not None and settle_without_judge(item, row) is None:
                yield item, row


def _is_skipped(run: Run, item: Item, repeat: int) -> bool:
    found = (run.verdicts.get((item.id, repeat, p.id)) for p in item.probes)
    return any(v is not None and v.status == "skipped" for v in found)


def _requests(
    item: Item, row: ReplyRow, options: RubricOptions, groups: tuple[Group, Group]
) -> list[Request]:
    probes = [probe for group in groups for probe in group.probes]
    if not probes:
        return []
    if options.one_a_call:
        return [single_request(item, row, probe, options) for probe in probes]
    return [audit_request(item, row, groups, options)]


def _tokens(requests: list[Request]) -> int:
    texts = (str(part) for r in requests for message in r.messages for part in message.parts)
    return sum(count_tokens(texts))


def gate_notes(extra: Mapping[str, Any]) -> tuple[str, ...]:
    """What people are told about the gates: images without a group, and what `gate_first` did."""
    notes = []
    if extra["images_without_must_right"]:
        notes.append(
            f"{extra['images_without_must_right']} images have no Must-Right statement: "
            "their gate is open"
        )
    if extra["images_without_easy_wrong"]:
        notes.append(
            f"{extra['images_without_easy_wrong']} images have no Easy-Wrong statement: "
            "their score is the gate itself"
        )
    if "gate_first" in extra:
        notes.append(_savings_note(extra["gate_first"]))
    return tuple(notes)


def _savings_note(saved: Mapping[str, Any]) -> str:
    calls, tokens = saved["calls_saved"], saved["prompt_tokens_saved"]
    said = (
        f"gate first: {_gain(calls, 'judge calls')} and {_gain(tokens, 'prompt tokens')} against "
        f"judging all statements, {saved['skipped_probes']} of them skipped"
    )
    if saved["not_given"]:
        said += f"; not given: {', '.join(saved['not_given'])}"
    return said


def _gain(saved: int, what: str) -> str:
    return f"{abs(saved)} {what} {'added' if saved < 0 else 'saved'}"
