"""Makes benchmarks of any size: reading folders, and PerceptionBench files of the real size.

python benchmarks/synthetic.py reading OUT --images 346 --questions 25650
python benchmarks/synthetic.py direct OUT.jsonl --rows 3000 --pictures 3567 --kb 336     (1.6 GB)
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

CATEGORIES = (
    "Recognition", "Attributes", "OCR/Text", "Scene Perception", "Count", "Current State",
    "Dynamic Object", "Action", "Camera Features", "Spatial Relationship & Position",
)  # fmt: skip
# Sizes of the public data set's subsets.
CAPABILITIES = {
    "visual_relation_error": 330,
    "visual_counting_error": 330,
    "visual_attribute_error": 330,
    "depth_3d_perception_error": 330,
    "visual_localization_error": 330,
    "visual_comparison_error": 279,
    "fine_grained_recognition_error": 290,
    "context_integration_error": 255,
    "ocr_error": 255,
    "hallucination": 271,
}


def picture(kilobytes: float, seed: int) -> bytes:
    """A JPEG of about that size: noise, which hardly compresses."""
    # What such a JPEG takes beside its header: 0.31 bytes a pixel.
    side = max(32, int((max(kilobytes * 1024 - 620, 0) / 0.31) ** 0.5))
    noise = np.random.default_rng(seed).integers(0, 255, (side, side, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "JPEG", quality=35, subsampling=2)
    return out.getvalue()


def make_reading(folder: Path, *, images: int, questions: int, seed: int = 0) -> Path:
    """A reading benchmark of `images` pictures and `questions` questions, unevenly spread."""
    rng = random.Random(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    card = {
        "name": "synthetic",
        "protocol": "reading",
        "version": "1",
        "license": "CC0-1.0",
        "source": "made by benchmarks/synthetic.py",
    }
    (folder / "benchmark.json").write_text(json.dumps(card), encoding="utf-8")
    data = picture(22, seed)
    counts = _spread(images, questions, rng)
    names = [f"s{k:04d}" for k in range(images)]
    for k, name in enumerate(names):
        # A comment segment makes each picture another one.
        tagged = data[:2] + b"\xff\xfe\x00\x06%04d" % k + data[2:]
        (folder / "images" / f"{name}.jpg").write_bytes(tagged)
    _write(
        folder / "images.jsonl",
        (
            {"image_id": n, "image": f"images/{n}.jpg", "l1": ["Science"], "l2": ["Physics"]}
            for n in names
        ),
    )
    _write(
        folder / "regions.jsonl",
        (
            {
                "region_id": f"{n}-r",
                "image_id": n,
                "bbox": [0, 0, 500, 500],
                "mask": None,
                "nature": "thing" if k % 3 else "stuff",
                "metadata": {},
            }
            for k, n in enumerate(names)
        ),
    )
    _write(folder / "questions.jsonl", _questions(names, counts, rng))
    return folder


def _spread(n: int, total: int, rng: random.Random) -> list[int]:
    weights = [rng.uniform(0.4, 1.6) for _ in range(n)]
    counts = [max(1, round(total * w / sum(weights))) for w in weights]
    counts[0] += total - sum(counts)
    return counts


def _questions(names: list[str], counts: list[int], rng: random.Random) -> Iterator[dict]:
    for name, count in zip(names, counts, strict=True):
        for k in range(count):
            yield {
                "question_id": f"{name}-q{k}",
                "image_id": name,
                "region_id": f"{name}-r",
                "category": CATEGORIES[k % len(CATEGORIES)],
                "question": f"Which colour has the object number {k} at the left of {name}?",
                "options": [f"red {k}", f"blue {k}", f"green {k}", f"yellow {k}"],
                "answer": rng.choice("ABCD"),
                "generator": "alpha" if k % 2 else "beta",
            }


def make_direct(path: Path, *, rows: int, pictures: int, kilobytes: float, seed: int = 0) -> Path:
    """A PerceptionBench file: `rows` questions with `pictures` pictures of about that size."""
    rng = random.Random(seed)
    extra = max(0, pictures - rows)
    per_row = [1] * rows
    for k in range(extra):
        per_row[(k * 7) % rows] += 1
    stock = [picture(kilobytes, seed + k) for k in range(8)]
    labels = [name for name, n in CAPABILITIES.items() for _ in range(n)]
    n_done = 0
    with path.open("w", encoding="utf-8") as file:
        for index in range(rows):
            uris = []
            for _ in range(per_row[index]):
                data = stock[n_done % len(stock)]
                tagged = data[:2] + b"\xff\xfe\x00\x0a%08d" % n_done + data[2:]
                text = base64.b64encode(tagged).decode()
                uris.append(f"data:image/png;base64,{text}")
                n_done += 1
            marks = "".join(f"<|image_{k}|>" for k in range(1, per_row[index] + 1))
            row = {
                "index": index,
                "problem": f"{marks}How many red objects does picture {index} show?",
                "image": uris,
                "answer": str(rng.randint(0, 9)),
                "hint": "",
                "error_category": labels[index % len(labels)],
                "source_bmk": "NA",
                "source_idx": None,
            }
            file.write(json.dumps(row) + "\n")
    return path


def _write(path: Path, rows: Iterator[dict]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Makes what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    reading = kinds.add_parser("reading")
    reading.add_argument("out", type=Path)
    reading.add_argument("--images", type=int, default=346)
    reading.add_argument("--questions", type=int, default=25_650)
    direct = kinds.add_parser("direct")
    direct.add_argument("out", type=Path)
    direct.add_argument("--rows", type=int, default=3000)
    direct.add_argument("--pictures", type=int, default=3567)
    direct.add_argument("--kb", type=float, default=336)
    words = parser.parse_args()
    if words.kind == "reading":
        make_reading(words.out, images=words.images, questions=words.questions)
    else:
        make_direct(words.out, rows=words.rows, pictures=words.pictures, kilobytes=words.kb)


if __name__ == "__main__":
    main()
