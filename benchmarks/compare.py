"""Compares 13 runs of 25,650 verdicts, all pairs and metrics, and prints seconds and peak memory.

    python benchmarks/compare.py [--runs 13] [--images 346] [--questions 25650] [--resamples 10000]

The runs are written first, as run folders of the reading protocol, one simulated captioner each.
What is measured is the whole command `snellen compare` on them, with its start, the reading of the
folders, all intervals, all pairwise comparisons with effects by category, and the tables that it
prints. The goal is 10 s and 1 GB on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

CATEGORIES = (
    "Recognition", "Attributes", "OCR/Text", "Scene Perception", "Count", "Current State",
    "Dynamic Object", "Action", "Camera Features", "Spatial Relationship & Position",
)  # fmt: skip
DOMAINS = tuple(f"domain {k}" for k in range(20))


def write_runs(folder: Path, words: argparse.Namespace) -> None:
    """Writes the run folders: the same items, each captioner with its own verdicts."""
    from snellen.records import ModelRecord
    from snellen.runs.spec import RunSpec

    items = _items(words.images, words.questions)
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
    for number in range(words.runs):
        out = folder / f"run{number:02d}"
        out.mkdir()
        spec = RunSpec(
            benchmark="synthetic",
            protocol="reading",
            data_digest="d",
            items={item.id: item.digest for item in items},
            model=ModelRecord(f"model-{number:02d}"),
            judge=ModelRecord("judge"),
            prompts={},
            options={},
        )
        (out / "run.json").write_bytes(msgspec.json.encode(spec))
        (out / "items.jsonl").write_bytes(lines)
        _write_replies(out, items, number)


def _items(n_images: int, n_questions: int) -> list:
    from snellen.keys import digest
    from snellen.records import Item, Probe

    rng = np.random.default_rng(0)
    shares = rng.uniform(0.4, 1.6, n_images)
    image_of = np.sort(rng.choice(n_images, n_questions, p=shares / shares.sum()))
    items = []
    for image in range(n_images):
        name = f"image{image:04d}"
        probes = tuple(_probe(Probe, name, int(k)) for k in np.flatnonzero(image_of == image))
        groups = {"l1": (DOMAINS[image % 20], DOMAINS[(image * 7 + 3) % 20])}
        items.append(Item(name, (), probes, groups=groups, cluster=name, digest=digest(name)))
    return items


def _probe(kind: type, name: str, k: int) -> object:
    options = tuple(f"the {word} one at the left of the picture" for word in "abcd")
    groups = {
        "category": CATEGORIES[k % 10],
        "generator": f"generator {k % 2}",
        "nature": ("thing", "stuff")[k % 3 == 0],
        "region_id": f"{name}-r{k % 9}",
    }
    question = f"Which of these best describes object number {k} of the picture {name}?"
    return kind(f"{name}-q{k}", question, "ABCD"[k % 4], options, groups=groups)


def _write_replies(out: Path, items: list, number: int) -> None:
    from snellen.records import ReplyRow, Usage, Verdict

    rng = np.random.default_rng([1, number])
    usage = Usage(900, 4)
    with (out / "verdicts.jsonl").open("wb") as file, (out / "replies.jsonl").open("wb") as texts:
        for item in items:
            tokens = int(rng.lognormal(5.5, 0.5))
            row = ReplyRow(item.id, "a caption " * (tokens // 2), tokens=tokens)
            texts.write(msgspec.json.encode(row) + b"\n")
            ability = rng.beta(6 + number * 0.1, 4)
            for probe in item.probes:
                right = bool(rng.random() < ability)
                letter = probe.answer if right else "ABCDE"[rng.integers(5)]
                verdict = Verdict(
                    item.id, probe.id, letter, letter == probe.answer, "scored", None,
                    f"<answer>{letter}</answer>", usage,
                )  # fmt: skip
                file.write(msgspec.json.encode(verdict) + b"\n")


def measure(folder: Path, words: argparse.Namespace) -> None:
    """Compares the runs in a process of its own and prints what it cost."""
    from snellen.protocols.caption_tally import METRICS

    command = [sys.executable, "-m", "snellen", "compare", str(folder)]
    command += ["--resamples", str(words.resamples)]
    for metric in METRICS:
        command += ["--metric", metric.name]
    began = time.perf_counter()
    with (folder.parent / "tables.txt").open("w", encoding="utf-8") as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        sys.exit("the comparison failed")
    pairs = words.runs * (words.runs - 1) // 2
    print(f"{words.runs} runs, {words.questions} verdicts each, {pairs} pairs,")
    print(f"{len(METRICS)} metrics, {words.resamples} resamples")
    print(f"wall clock    {seconds:6.2f} s")
    print(f"processor     {usage.ru_utime + usage.ru_stime:6.2f} s")
    print(f"peak memory   {usage.ru_maxrss / 1024:6.0f} MB")


def main() -> None:
    """Writes the runs, then compares them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=13)
    parser.add_argument("--images", type=int, default=346)
    parser.add_argument("--questions", type=int, default=25_650)
    parser.add_argument("--resamples", type=int, default=10_000)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs"
        folder.mkdir()
        write_runs(folder, words)
        measure(folder, words)


if __name__ == "__main__":
    main()
