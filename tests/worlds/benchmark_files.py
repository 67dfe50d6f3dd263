"""Small benchmark folders of each protocol, for tests that read, check and break them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

PROTOCOL_FILES = {"reading": "questions", "direct": "questions", "rubric": "rubrics"}


def png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (48, 32)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def data_uri(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Writes rows as JSON-lines; a row that is text goes in as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_card(folder: Path, protocol: str, **more: Any) -> None:
    card = {
        "name": "mine",
        "protocol": protocol,
        "version": "1",
        "license": "CC0-1.0",
        "source": "tests",
    }
    (folder / "benchmark.json").write_text(json.dumps(card | more), encoding="utf-8")


def question(number: int, image: str, **more: Any) -> dict[str, Any]:
    row = {
        "question_id": f"q{number}",
        "image_id": image,
        "region_id": f"{image}-r",
        "category": "Count",
        "question": "How many cups are there?",
        "options": ["one", "two", "three", "four"],
        "answer": "B",
        "generator": "g1",
    }
    return row | more


def direct_row(index: int | str, images: list[Any], **more: Any) -> dict[str, Any]:
    row = {
        "index": index,
        "problem": "<|image_1|>How many cups are there?",
        "image": images,
        "answer": "4",
        "hint": "",
        "error_category": "visual_counting_error",
        "source_bmk": "NA",
        "source_idx": None,
    }
    return row | more


def rubric_row(name: str, image: Any, **more: Any) -> dict[str, Any]:
    row = {
        "id": name,
        "image": image,
        "category": "Natural Scene",
        "golden_caption": "Two red cups on a table.",
        "must_right": ["The response mentions cups."],
        "easy_wrong": ["The response must say two.", "The response must NOT mention a plate."],
    }
    return row | more


def reading_folder(folder: Path) -> Path:
    """Two images with a region and two questions each."""
    folder.mkdir(parents=True, exist_ok=True)
    write_card(folder, "reading")
    names = ["a", "b"]
    for shade, name in enumerate(names):
        (folder / f"{name}.png").write_bytes(png((shade * 90, 0, 0)))
    images = [
        {"image_id": name, "image": f"{name}.png", "l1": ["Sports"], "l2": ["Ball Sports"]}
        for name in names
    ]
    regions = [
        {
            "region_id": f"{name}-r",
            "image_id": name,
            "bbox": [0, 10, 500, 990],
            "mask": None,
            "nature": "thing",
            "metadata": {},
        }
        for name in names
    ]
    questions = [
        question(0, "a"),
        question(1, "b"),
        question(2, "a", category="Action", answer="D"),
        question(3, "b", category="Action", generator="g2"),
    ]
    write_lines(folder / "images.jsonl", images)
    write_lines(folder / "regions.jsonl", regions)
    write_lines(folder / "questions.jsonl", questions)
    return folder


def direct_folder(folder: Path, rows: list[Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_card(folder, "direct")
    (folder / "a.png").write_bytes(png())
    (folder / "b.png").write_bytes(png((0, 90, 0)))
    default = [direct_row(0, ["a.png"]), direct_row(1, ["b.png"], error_category="ocr_error")]
    write_lines(folder / "questions.jsonl", default if rows is None else rows)
    return folder


def rubric_folder(folder: Path, rows: list[Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_card(folder, "rubric")
    (folder / "a.png").write_bytes(png())
    write_lines(folder / "rubrics.jsonl", [rubric_row("r0", "a.png")] if rows is None else rows)
    return folder
