"""Small runs of all three protocols for the tests of what is shown of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image as Pillow

from snellen.pictures.prepare import image_from_path
from snellen.records import Image, Item, ModelRecord, Probe, ReplyRow, Usage, Verdict
from snellen.runs.folder import Run, write_json
from snellen.runs.spec import PromptRecord, RunSpec, Session, Summary
from snellen.runs.summary import summarise

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
CATEGORIES = ("Count", "Attributes", "OCR/Text", "Action")
CAPABILITIES = ("ocr_error", "hallucination", "visual_counting_error")
PROMPT = PromptRecord("reading_judge", "ab" * 32, "Read {this} & answer <letter>.")
# Bootstrapping takes most of the time, and depends on nothing else than these.
_SUMMARIES: dict[tuple[str, str, str], Summary] = {}
USAGE: Mapping[str, Any] = {
    "model": {"done": 4, "failed": 1, "retries": 2, "prompt_tokens": 4000, "reasoning_tokens": 77,
              "completion_tokens": 800, "unknown_usage": 0, "cost_usd": 0.25},
    "judge": {"done": 24, "retries": 0, "prompt_tokens": 0, "unknown_usage": 24, "cost_usd": None},
    "cost_usd": None,
}  # fmt: skip


def picture(folder: Path, name: str = "red", colour: str = "red") -> Image:
    """A small picture in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    Pillow.new("RGB", (64, 48), colour).save(path)
    return image_from_path(path)


def reading_run(
    folder: Path, name: str = "m", *, right: int = 4, caption: str = "A red field.", **spec: Any
) -> Run:
    """Four pictures with six questions: `right` right or one more, one wrong, the rest abstained.

    The last question of the last picture is unscored.
    """
    image = picture(folder / "pictures")
    items, replies, verdicts = [], {}, {}
    for i in range(4):
        probes = tuple(
            Probe(f"p{i}-{k}", f"What is thing {k}?", "A", ("one", "two", "three", "four"),
                  groups={"category": CATEGORIES[k % 4], "generator": ("g1", "g2")[k % 2],
                          "nature": "thing", "choices": "4", "region_id": f"r{i}-{k}"})
            for k in range(6)
        )  # fmt: skip
        item = f"i{i}"
        groups = {"l1": (("Plants", "Sports")[i % 2],), "l2": ("Forests",)}
        items.append(Item(item, (image,), probes, cluster=item, groups=groups, digest=f"{i}" * 64))
        replies[item, 0] = ReplyRow(item, caption, tokens=20 + i, usage=Usage(100, 20))
        for k, probe in enumerate(probes):
            own = right + i % 2
            letter = "A" if k < own else "B" if k == own else "E"
            verdicts[item, 0, probe.id] = Verdict(
                item, probe.id, letter, letter == "A", "scored", raw=f"I say {letter}. {HOSTILE}"
            )
    verdicts["i3", 0, "p3-5"] = Verdict(
        "i3", "p3-5", None, None, "unscored", "unreadable_hedged", raw="A or B"
    )
    return _run(folder, name, "reading", (items, replies, verdicts), **spec)


def rubric_run(folder: Path, name: str = "m", *, right: int = 2, **spec: Any) -> Run:
    """Four pictures of two domains with two Must-Right and two Easy-Wrong statements each."""
    image = picture(folder / "pictures", "blue", "blue")
    items, replies, verdicts = [], {}, {}
    for i in range(4):
        probes = tuple(
            Probe(f"{kind}/{k}", f"The response says {kind} {k}.", "true", kind=kind)
            for kind in ("must_right", "easy_wrong")
            for k in range(2)
        )
        item = f"i{i}"
        groups = {"category": (("Natural Scene", "Logic/Puzzle")[i % 2],)}
        items.append(Item(item, (image,), probes, cluster=item, groups=groups, digest=f"{i}" * 64))
        replies[item, 0] = ReplyRow(item, "Blue.", tokens=2)
        for k, probe in enumerate(probes):
            is_right = k < right + i % 2
            verdicts[item, 0, probe.id] = Verdict(item, probe.id, is_right, is_right, "scored")
    return _run(folder, name, "rubric", (items, replies, verdicts), **spec)


def direct_run(folder: Path, name: str = "m", **spec: Any) -> Run:
    """Six questions of three capabilities, every third of them wrong."""
    image = picture(folder / "pictures", "green", "green")
    items, replies, verdicts = [], {}, {}
    for i in range(6):
        item = str(i)
        probe = Probe(item, f"<|image_1|>What is {i}?", f"answer {i}")
        groups = {"error_category": (CAPABILITIES[i // 2],)}
        items.append(
            Item(item, (image,), (probe,), text=probe.question, cluster=item, groups=groups,
                 digest=f"{i}" * 64, extra={"source_bmk": "NA"})
        )  # fmt: skip
        replies[item, 0] = ReplyRow(item, f"reply {i}", tokens=3)
        is_right = i % 3 != 0
        verdicts[item, 0, item] = Verdict(item, item, is_right, is_right, "scored", raw="[judge]")
    return _run(folder, name, "direct", (items, replies, verdicts), **spec)


def _run(
    folder: Path,
    name: str,
    protocol: str,
    rows: tuple[list[Item], dict[tuple[str, int], ReplyRow], dict[tuple[str, int, str], Verdict]],
    *,
    fidelity: str = "",
    benchmark: str = "",
) -> Run:
    items, replies, verdicts = rows
    spec = RunSpec(
        benchmark=benchmark or f"bench-{protocol}",
        protocol=protocol,
        data_digest="d" * 64,
        items={item.id: item.digest for item in items},
        model=ModelRecord(
            name, url="http://127.0.0.1:1/v1", params={"temperature": 0.7, "top_p": 0.9}
        ),
        judge=ModelRecord("j", fidelity=fidelity),
        prompts={"verdict": PROMPT},
        options={"reasks": 2},
        license="CC-BY-4.0",
        image_preparation="pictures-1 refuse=1000 pixels=None side=28..None bytes=2000",
        sessions=(Session("2026-01-02T03:04:05Z", "0.1.0", "3.11.0"),),
    )
    run = Run(folder / name, spec, tuple(items), replies, verdicts, None)
    marks = "".join(str(v.correct)[0] for v in verdicts.values())
    kin = (run.protocol.name, fidelity, marks)
    summary = _SUMMARIES.get(kin)
    if summary is None:
        summary = summarise(run, status="complete")
        _SUMMARIES[kin] = summary
    named = replace(summary, model=name, benchmark=spec.benchmark, usage=USAGE)
    return replace(run, summary=named)


def save_run(run: Run) -> Path:
    """Writes a run's folder as `snellen run` leaves it; gives the folder."""
    run.folder.mkdir(parents=True, exist_ok=True)
    write_json(run.folder / "run.json", run.spec)
    write_json(run.folder / "summary.json", run.summary)
    for file, rows in (
        ("items.jsonl", run.items),
        ("replies.jsonl", run.replies.values()),
        ("verdicts.jsonl", run.verdicts.values()),
    ):
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        (run.folder / file).write_bytes(lines)
    return run.folder
