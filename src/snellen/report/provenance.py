"""What was measured and how: everything in `run.json`, as names and readable values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from snellen.records import ModelRecord
from snellen.runs.folder import Run
from snellen.runs.spec import PromptRecord, RunSpec

NOT_STATED = "not stated"
_PICTURE_WORDS: Mapping[str, str] = {
    "refuse": "files above {} stored pixels are refused",
    "pixels": "at most {} pixels are sent",
    "side": "sides of {} pixels",
    "bytes": "at most {} bytes a picture",
    "ground": "{} under transparent pixels",
    "formats": "{} pass untouched",
}
_PARTY_TITLES: Mapping[str, str] = {
    "name": "Name",
    "model": "Name at the endpoint",
    "url": "Endpoint",
    "params": "Parameters sent",
    "family": "Family",
    "license": "Licence",
    "released": "Released",
    "revision": "Revision",
    "quantization": "Quantization",
    "fidelity": "Fidelity",
}
_SPEC_TITLES: Mapping[str, str] = {
    "benchmark": "Benchmark",
    "protocol": "Protocol",
    "benchmark_version": "Benchmark version",
    "license": "Licence of the data",
    "source": "Source of the data",
    "revision": "Revision of the data",
    "data_digest": "Hash of the data",
    "image_preparation": "Preparation of pictures",
    "tokenizer": "Tokenizer",
    "seed": "Seed",
    "repeats": "Repeats",
    "skipped_rows": "Rows left out",
    "judge_check": "Check of the judge",
    "replies_from": "Replies taken from",
    "sessions": "Sessions",
    "schema": "Schema of the files",
}
_FIRST = (
    "benchmark", "benchmark_version", "protocol", "source", "revision", "license", "data_digest",
    "items", "skipped_rows", "model", "judge", "judge_check", "prompts", "options",
    "image_preparation", "tokenizer", "seed", "repeats", "sessions", "schema",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that all of several runs share, and those in which they differ, one value a run."""

    shared: tuple[tuple[str, str], ...]
    differing: tuple[tuple[str, tuple[str, ...]], ...]


def facts_of(runs: Sequence[Run]) -> Facts:
    """All facts of runs, split into what they share and what not; item ids and prompts apart.

    What no run states is named in one line at the end.
    """
    columns = [dict(_facts(run.spec)) for run in runs]
    names = dict.fromkeys(name for column in columns for name in column)
    shared, differing, missing = [], [], []
    for name in names:
        values = tuple(column.get(name, NOT_STATED) for column in columns)
        if set(values) == {NOT_STATED}:
            missing.append(name)
        elif len(set(values)) == 1:
            shared.append((name, values[0]))
        else:
            differing.append((name, values))
    if missing:
        shared.append(("Not stated", "; ".join(missing)))
    return Facts(tuple(shared), tuple(differing))


def _facts(spec: RunSpec) -> Iterator[tuple[str, str]]:
    rest = (name for name in RunSpec.__dataclass_fields__ if name not in _FIRST)
    for name in (*_FIRST, *rest):
        value = getattr(spec, name)
        if name == "items":
            yield "Items used", f"{len(value):,}"
        elif name in {"model", "judge"}:
            yield from _party(name.capitalize(), value)
        elif name == "options":
            yield from ((f"Option: {key}", _plain(v)) for key, v in sorted(value.items()))
        elif name == "prompts":
            for purpose, prompt in sorted(value.items()):
                yield f"Prompt: {purpose}", f"{prompt.name}, sha256 {prompt.sha256}"
        else:
            if name == "image_preparation":
                text = describe_pictures(value)
            elif name == "sessions":
                text = "; ".join(
                    f"{s.at} with snellen {s.snellen}, Python {s.python}" for s in value
                )
            elif name == "skipped_rows":
                text = f"{len(value)}: " + "; ".join(value) if value else "none"
            elif name == "judge_check":
                text = "not done" if value is None else _plain(value)
            else:
                text = _plain(value) if value not in {"", None} else ""
            yield _SPEC_TITLES.get(name, name), text or NOT_STATED


def _party(role: str, party: ModelRecord) -> Iterator[tuple[str, str]]:
    for name in ModelRecord.__dataclass_fields__:
        value = getattr(party, name)
        title = f"{role}: {_PARTY_TITLES.get(name, name).lower()}"
        if name == "params":
            sent = ", ".join(f"{key} = {_plain(v)}" for key, v in sorted(value.items()))
            yield title, sent or "none"
        elif name == "url":
            yield title, value or "none: no endpoint was called"
        elif name == "members":
            for k, member in enumerate(value, 1):
                yield from _party(f"{role}, member {k}", member)
        elif name == "fidelity":
            if role == "Judge" or value:
                yield title, value or "full"
        else:
            yield title, value or NOT_STATED


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, sort_keys=True)


def describe_pictures(rules: str) -> str:
    """The line of picture rules in words, with the line itself behind them.

    >>> describe_pictures("pictures-1 side=28..None")
    'sides of 28 or more pixels (pictures-1 side=28..None)'
    """
    said = []
    for name, value in re.findall(r"(\w+)=(\S+)", rules):
        if name in _PICTURE_WORDS and value != "None":
            low, dots, high = value.partition("..")
            if dots:
                amount = f"{low} or more" if high == "None" else f"{low} to {high}"
            else:
                amount = f"{int(value):,}" if value.isdecimal() else value.replace(",", ", ")
            said.append(_PICTURE_WORDS[name].format(amount))
    return f"{'; '.join(said)} ({rules})" if said else rules or NOT_STATED


def prompts_of(runs: Sequence[Run]) -> tuple[tuple[str, PromptRecord], ...]:
    """The prompts of runs with their purposes, each text once."""
    found: dict[tuple[str, str], PromptRecord] = {}
    for run in runs:
        for purpose, prompt in run.spec.prompts.items():
            found.setdefault((purpose, prompt.sha256), prompt)
    return tuple((purpose, prompt) for (purpose, _), prompt in found.items())


def item_sets(runs: Sequence[Run]) -> tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]:
    """The different sets of items among runs, with the names of the runs that used them."""
    found: list[tuple[list[str], Mapping[str, str]]] = []
    for run in runs:
        same = next((names for names, items in found if items == run.spec.items), None)
        if same is None:
            found.append(([run.name], run.spec.items))
        else:
            same.append(run.name)
    return tuple((tuple(names), items) for names, items in found)
