"""Runs to compare: bundled captioners under a perfect judge, simulated and hand-made ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from snellen.keys import digest
from snellen.readers import load_benchmark
from snellen.readers.mini import labels
from snellen.records import Item, ModelRecord, Probe, ReplyRow, Verdict
from snellen.runs.folder import Run, write_json
from snellen.runs.spec import PromptRecord, RunSpec

JUDGE = ModelRecord("perfect", model="perfect-1", params={"temperature": 0})
Answers = Mapping[tuple[str, str], str | bool | None]


def prompt(text: str, name: str = "prompt") -> PromptRecord:
    return PromptRecord(name, digest(text), text)


PROMPTS = {"reply": prompt("Describe it."), "verdict": prompt("Read it.")}


def a_run(
    items: Sequence[Item],
    answers: Sequence[Answers],
    *,
    name: str = "model",
    tokens: Mapping[str, int] | int = 100,
    **spec: Any,
) -> Run:
    """A run from its verdicts by (item, probe), one mapping a repeat; None or absent: unscored."""
    verdicts, replies = {}, {}
    for repeat, given in enumerate(answers):
        for item in items:
            length = tokens if isinstance(tokens, int) else tokens[item.id]
            replies[item.id, repeat] = ReplyRow(item.id, "text", tokens=length, repeat=repeat)
            for probe in item.probes:
                value = given.get((item.id, probe.id))
                verdicts[item.id, repeat, probe.id] = _verdict(item, probe, value, repeat)
    fields = {
        "benchmark": "mini",
        "protocol": "reading",
        "data_digest": "d",
        "items": {item.id: item.digest for item in items},
        "model": ModelRecord(name),
        "judge": JUDGE,
        "prompts": PROMPTS,
        "options": {},
        "repeats": len(answers),
    } | spec
    return Run(Path(f"/runs/{name}"), RunSpec(**fields), tuple(items), replies, verdicts, None)


def _verdict(item: Item, probe: Probe, value: str | bool | None, repeat: int) -> Verdict:
    if value is None:
        return Verdict(item.id, probe.id, None, None, "unscored", "judge_timeout", repeat=repeat)
    correct = value if isinstance(value, bool) else value == probe.answer
    return Verdict(item.id, probe.id, value, correct, "scored", repeat=repeat)


@lru_cache
def mini(protocol: str) -> tuple[Item, ...]:
    return load_benchmark(f"mini-{protocol}").items


@lru_cache
def bundled(captioner: str, protocol: str = "reading") -> Run:
    """A bundled captioner as a perfect judge sees it."""
    answers = {
        (item, probe): verdict
        for (who, item, probe), verdict in labels(protocol).items()
        if who == captioner
    }
    return a_run(
        mini(protocol), [answers], name=captioner, benchmark=f"mini-{protocol}", protocol=protocol
    )


def reading_items(counts: Sequence[int]) -> list[Item]:
    """Pictures with so many questions, in categories that take turns; the answer is always A."""
    return [
        Item(
            f"image{k}",
            (),
            tuple(
                Probe(
                    f"image{k}-{q}",
                    "?",
                    "A",
                    ("a", "b", "c", "d"),
                    groups={"category": ("Count", "Action")[q % 2]},
                )
                for q in range(n)
            ),
            digest=f"digest{k}",
        )
        for k, n in enumerate(counts)
    ]


def simulated(joint: np.ndarray, tokens: np.ndarray, *, name: str, seed: int = 0) -> Run:
    """A captioner of `snellen.stats.simulation` as a run; which question is right is drawn."""
    rng = np.random.default_rng(seed)
    seen = joint.sum(axis=1).astype(int)
    items = reading_items(seen.sum(axis=1))
    answers = {}
    for item, counts in zip(items, seen, strict=True):
        letters = rng.permutation(np.repeat(["A", "B", "E"], counts))
        answers |= {
            (item.id, probe.id): str(letter)
            for probe, letter in zip(item.probes, letters, strict=True)
        }
    lengths = {item.id: int(n) for item, n in zip(items, tokens, strict=True)}
    return a_run(items, [answers], name=name, tokens=lengths)


def varied(run: Run, **spec: Any) -> Run:
    """The same run with other words in its `run.json`."""
    return replace(run, spec=replace(run.spec, **spec))


def write_run(run: Run, folder: Path) -> Path:
    """The folder of a run, as `snellen run` leaves it but for its summary."""
    folder.mkdir(parents=True)
    write_json(folder / "run.json", run.spec)
    for name, rows in (
        ("items", run.items),
        ("replies", run.replies.values()),
        ("verdicts", run.verdicts.values()),
    ):
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        (folder / f"{name}.jsonl").write_bytes(lines)
    return folder
