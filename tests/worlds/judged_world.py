"""Runs of simulated captioners under a judge of known errors, made in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from snellen.records import Item, ModelRecord, Probe, ReplyRow, Verdict
from snellen.runs.folder import Run
from snellen.runs.spec import PromptRecord, RunSpec

TRUTHS = ("right", "wrong", "E")


@dataclass(frozen=True, slots=True)
class World:
    """A run, and the truth behind each verdict by (item, probe): a letter or a boolean."""

    run: Run
    truth: dict[tuple[str, str], str | bool]


def reading_world(
    *,
    shares: tuple[float, float, float] = (0.6, 0.15, 0.25),
    errors: np.ndarray | None = None,
    images: int = 80,
    questions: int = 12,
    seed: int = 0,
) -> World:
    """A reading run: `shares` of right, wrong and E; `errors` (truths, said) is the judge."""
    rng = np.random.default_rng(seed)
    chances = np.eye(3) if errors is None else errors
    items, verdicts, truth = [], {}, {}
    for k in range(images):
        item_id = f"i{k}"
        probes = []
        for q in range(questions):
            probe = Probe(f"q{q}", f"Question {q} of {k}?", "A", ("one", "two", "three", "four"))
            real = int(rng.choice(3, p=shares))
            said = int(rng.choice(3, p=chances[real]))
            letters = ("A", "B", "E")
            truth[item_id, probe.id] = letters[real]
            verdicts[item_id, 0, probe.id] = Verdict(
                item_id, probe.id, letters[said], said == 0, "scored"
            )
            probes.append(probe)
        items.append(Item(item_id, (), tuple(probes), cluster=item_id))
    return World(_run("reading", items, verdicts), truth)


def boolean_world(
    protocol: str = "rubric",
    *,
    share: float = 0.7,
    errors: np.ndarray | None = None,
    images: int = 80,
    statements: int = 10,
    seed: int = 0,
) -> World:
    """A rubric or direct run: a `share` of true; `errors` (true, false) x (said true, false)."""
    rng = np.random.default_rng(seed)
    chances = np.eye(2) if errors is None else errors
    items, verdicts, truth = [], {}, {}
    for k in range(images):
        item_id = f"i{k}"
        probes = []
        for q in range(statements if protocol == "rubric" else 1):
            kind = "" if protocol == "direct" else "must_right" if q % 2 else "easy_wrong"
            probe = Probe(f"q{q}", f"Statement {q} of {k}.", "true", kind=kind)
            real = bool(rng.random() < share)
            said = bool(rng.random() < chances[0 if real else 1, 0])
            truth[item_id, probe.id] = real
            verdicts[item_id, 0, probe.id] = Verdict(item_id, probe.id, said, said, "scored")
            probes.append(probe)
        items.append(Item(item_id, (), tuple(probes), cluster=item_id))
    return World(_run(protocol, items, verdicts), truth)


def _run(protocol: str, items: list[Item], verdicts: dict[tuple[str, int, str], Verdict]) -> Run:
    spec = RunSpec(
        benchmark="world",
        protocol=protocol,
        data_digest="",
        items={item.id: "" for item in items},
        model=ModelRecord("captioner"),
        judge=ModelRecord("judge", model="judge"),
        prompts={"verdict": PromptRecord("p", "hash", "text")},
        options={},
    )
    replies = {(i.id, 0): ReplyRow(i.id, f"Caption {i.id}.", tokens=10) for i in items}
    return Run(Path("world"), spec, tuple(items), replies, verdicts, None)
