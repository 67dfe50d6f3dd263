"""What makes two runs comparable: every difference beside the model, and which question it answers.

A difference of two runs means something when only one thing differs. Every other difference is a
`Change`, with the word of `--across` that makes it the question.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Final

from snellen.errors import ComparisonError, UsageError
from snellen.protocols import protocol_of
from snellen.runs.spec import PromptRecord, RunSpec

ACROSS: Final = ("judge", "prompt", "control", "hint", "data")
# Options of a protocol that say how verdicts are come by: they belong to the judge.
_JUDGING: Final = frozenset(
    {"parser", "decide", "option_seed", "gate_first", "exact_match", "reasks"}
)
# Options that are another prompt: more or fewer questions in one judge call.
_REPROMPTING: Final = ("questions_a_call", "one_a_call")
# Options that are typed under another name.
_TYPED: Final = {"option_seed": "option-order", "one_a_call": "one-rubric-a-call"}
# What is recorded and changes no number.
_HARMLESS: Final = frozenset({"replies", "given", "logprobs"})
_JUDGE_FIELDS: Final = ("name", "model", "params", "revision", "quantization")
_ABSENT: Final = PromptRecord("no prompt", "", "")
_DIFF_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Change:
    """Something beside the model that differs between two runs.

    `across` is the word that lifts it, "" where nothing does. `first` and `second` are the values,
    shortened. `detail` is a line-by-line difference of prompts.
    """

    what: str
    across: str
    first: str
    second: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NamedSpec:
    """What stands in a `run.json`, and the name that the comparison has for the run."""

    name: str
    spec: RunSpec


def check_across(across: Collection[str]) -> None:
    """Refuses words that are no question.

    Raises:
        UsageError: a word is not among `judge`, `prompt`, `control`, `hint`, `data`.
    """
    for word in across:
        if word not in ACROSS:
            near = difflib.get_close_matches(word, ACROSS, 1)
            raise UsageError(
                f"nothing can be compared across `{word}`",
                hint=f"did you mean {near[0]}?" if near else f"there are: {', '.join(ACROSS)}",
            )


def check_comparable(runs: Sequence[NamedSpec], *, across: Collection[str]) -> tuple[Change, ...]:
    """The changes between the first run and the others that `across` lifts, each once.

    Raises:
        ComparisonError: something else differs; the message names it with both values.
        UsageError: a word of `across` is unknown.
    """
    check_across(across)
    lifted: dict[Change, None] = {}
    for other in runs[1:]:
        found = list(changes(runs[0].spec, other.spec))
        refused = [change for change in found if change.across not in across]
        if refused:
            worst, names = refused[0], f"{runs[0].name} and {other.name}"
            message = f"{names} differ in {worst.what}: `{worst.first}` and `{worst.second}`"
            others = list(dict.fromkeys(change.what for change in refused[1:]))
            if others:
                message += f" (and in {', '.join(others)})"
            words = dict.fromkeys(change.across for change in refused)
            asked = " ".join(f"--across {word}" for word in words)
            hint = f"if that is the question, say so: {asked}"
            if "" in words:
                hint = "compare runs of one protocol"
            raise ComparisonError(message, hint=hint)
        lifted |= dict.fromkeys(found)
    return tuple(lifted)


def unlike(runs: Sequence[NamedSpec]) -> list[str]:
    """A line for each run whose numbers do not belong beside the first's, with what differs."""
    lines = []
    for other in runs[1:]:
        found = [change.what for change in changes(runs[0].spec, other.spec)]
        if runs[0].spec.items.keys() != other.spec.items.keys():
            found.insert(0, "items")
        if found:
            what = ", ".join(dict.fromkeys(found))
            lines.append(f"{other.name} was not measured like {runs[0].name}: other {what}")
    return lines


def changes(first: RunSpec, second: RunSpec) -> Iterator[Change]:
    """Everything beside the model that differs; which items there are is another matter."""
    kinds = [protocol_of(spec.protocol, spec.benchmark).name for spec in (first, second)]
    if kinds[0] != kinds[1]:
        yield Change("protocol", "", *kinds)
        return
    yield from _field("benchmark", "data", (first, second), "benchmark")
    differing = [
        name for name, digest in first.items.items() if second.items.get(name, digest) != digest
    ]
    if differing:
        more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
        name = differing[0]
        yield Change(
            f"the content of item {name}{more}",
            "data",
            first.items[name][:12],
            second.items[name][:12],
        )
    yield from _field("tokenizer", "data", (first, second), "tokenizer")
    yield from _field("image preparation", "control", (first, second), "image_preparation")
    yield from _judge(first, second)
    yield from _options(first, second)
    yield from _prompts(first, second)


def _judge(first: RunSpec, second: RunSpec) -> Iterator[Change]:
    for name in _JUDGE_FIELDS:
        what = "judge" if name == "name" else f"the judge's {name}"
        yield from _field(what, "judge", (first, second), f"judge.{name}")
    members = (first.judge.members, second.judge.members)
    # Panels of other judges differ by name already.
    if len(members[0]) == len(members[1]):
        for a, b in zip(*members, strict=True):
            for name in _JUDGE_FIELDS[1:] if a.name == b.name else ():
                values = getattr(a, name), getattr(b, name)
                if values[0] != values[1]:
                    told = map(shorten, only_differing(*values))
                    yield Change(f"the {name} of judge {a.name}", "judge", *told)


def _options(first: RunSpec, second: RunSpec) -> Iterator[Change]:
    chosen = [_chosen_options(spec) for spec in (first, second)]
    for name in sorted({*chosen[0], *chosen[1]} - _HARMLESS):
        values = [options.get(name) for options in chosen]
        if values[0] == values[1]:
            continue
        title = f"option {_TYPED.get(name, name.replace('_', '-'))}"
        across = "judge" if name in _JUDGING else "control"
        if name in {"control", "hint"}:
            title = across = name
        elif name in _REPROMPTING:
            across = "prompt"
        yield Change(title, across, *map(shorten, values))


def _chosen_options(spec: RunSpec) -> dict[str, object]:
    """The options of a run, with the defaults of those that were not given."""
    kind = protocol_of(spec.protocol, spec.benchmark).options
    defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return defaults | dict(spec.options)


def _prompts(first: RunSpec, second: RunSpec) -> Iterator[Change]:
    for purpose in dict.fromkeys([*first.prompts, *second.prompts]):
        a, b = (spec.prompts.get(purpose, _ABSENT) for spec in (first, second))
        if a.sha256 == b.sha256:
            continue
        before, after = (prompt.text.splitlines() for prompt in (a, b))
        lines = list(difflib.unified_diff(before, after, a.name, b.name, lineterm="", n=0))
        if len(lines) > _DIFF_LINES:
            lines = [*lines[:_DIFF_LINES], f"({len(lines) - _DIFF_LINES} lines more)"]
        yield Change(
            f"prompt `{purpose}`",
            _prompt_word(purpose, first, second),
            _prompt_value(a),
            _prompt_value(b),
            "\n".join(lines),
        )


def _prompt_word(purpose: str, first: RunSpec, second: RunSpec) -> str:
    """A judge prompt that a control or an option brings along is a part of that change."""
    a, b = _chosen_options(first), _chosen_options(second)
    if purpose == "reply" or any(a.get(name) != b.get(name) for name in _REPROMPTING):
        return "prompt"
    blind = [options.get("control") == "blind" for options in (a, b)]
    return "control" if blind[0] != blind[1] else "prompt"


def _prompt_value(prompt: PromptRecord) -> str:
    return f"{prompt.name} {prompt.sha256[:8]}".strip()


def _field(what: str, across: str, specs: tuple[RunSpec, RunSpec], path: str) -> Iterator[Change]:
    first, second = map(attrgetter(path), specs)
    if first != second:
        yield Change(what, across, *map(shorten, only_differing(first, second)))


def only_differing(first: object, second: object) -> tuple[object, object]:
    """Two values; of two mappings the entries that differ, so that a cut text shows them.

    >>> only_differing({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 0}, "d": 3})
    ({'a': {'c': 2}}, {'a': {'c': 0}})
    """
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return first, second
    kept: tuple[dict[str, object], dict[str, object]] = ({}, {})
    for name in dict.fromkeys([*first, *second]):
        if name not in first or name not in second:
            owner = 0 if name in first else 1
            kept[owner][name] = (first, second)[owner][name]
        elif first[name] != second[name]:
            kept[0][name], kept[1][name] = only_differing(first[name], second[name])
    return kept


def shorten(value: object) -> str:
    """A value as a text of at most 60 characters.

    >>> shorten({"temperature": 0}), shorten("")
    ("{'temperature': 0}", 'none')
    """
    text = "none" if value in (None, "", {}) else " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
