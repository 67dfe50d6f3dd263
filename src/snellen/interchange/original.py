"""Result and caption files of the original tools: PerceptionBench and CaptionQA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from snellen.readers.replies import load_replies
from snellen.readers.rows import decode_row, read_rows

BLANK_CATEGORY = "?"


class BenchResult(Struct):
    """A row of `PerceptionBench_<model>.jsonl`; `judge_result` is 1 for right, 0 for wrong."""

    index: int | str
    error_category: str | None
    source_bmk: str | None
    prediction: str | None
    judge_result: int
    judge_reason: str | None = ""


class BenchScores(Struct):
    """`PerceptionBench_<model>_scores.json`: fractions over all items, unscored ones as wrong."""

    overall: float
    per_category: dict[str, float]


@dataclass(frozen=True, slots=True)
class BenchFiles:
    """The two files of one model."""

    results: Path
    scores: Path


def bench_files(folder: str | Path, model: str) -> BenchFiles:
    """The official names of a model's files; a slash in its name becomes an underscore.

    >>> bench_files("results", "org/model-1").results.name
    'PerceptionBench_org_model-1.jsonl'
    """
    safe = "".join("_" if letter in '/\\:*?"<>|' else letter for letter in model)
    stem = Path(folder) / f"PerceptionBench_{safe}"
    return BenchFiles(Path(f"{stem}.jsonl"), Path(f"{stem}_scores.json"))


def bench_scores(rows: Iterable[BenchResult]) -> BenchScores:
    """The official scores: right answers over all items, overall and by category.

    Source: PerceptionBench, the official evaluation script.
    """
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in rows:
        label = (row.error_category or "").strip() or BLANK_CATEGORY
        total[label] += 1
        right[label] += row.judge_result
    overall = right.total() / total.total() if total else 0.0
    return BenchScores(overall, {label: right[label] / total[label] for label in sorted(total)})


def write_bench_results(
    rows: Iterable[BenchResult], folder: str | Path, *, model: str
) -> BenchFiles:
    """Writes both files of a model; the order of the rows is kept."""
    rows = tuple(rows)
    files = bench_files(folder, model)
    files.results.parent.mkdir(parents=True, exist_ok=True)
    files.results.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    scores = msgspec.json.encode(bench_scores(rows))
    files.scores.write_bytes(msgspec.json.format(scores, indent=2) + b"\n")
    return files


def read_bench_results(path: str | Path) -> tuple[BenchResult, ...]:
    """The rows of `PerceptionBench_<model>.jsonl`.

    Raises: DataError that names the row of a duplicate index or of a result that is not 0 or 1.
    """
    path = Path(path)
    decoder = msgspec.json.Decoder(BenchResult)
    found: dict[str, BenchResult] = {}
    for row in read_rows(path):
        record = decode_row(row, decoder)
        if record.judge_result not in (0, 1):
            raise row.error(f"expected 0 or 1, found {record.judge_result}", field="judge_result")
        if found.setdefault(str(record.index), record) is not record:
            raise row.error(f"the index {record.index!r} stands twice", field="index")
    return tuple(found.values())


def write_captions(captions: Mapping[str, str], path: str | Path) -> Path:
    """Writes a caption file of CaptionQA, JSON `{id: caption}`; the order is kept."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(dict(captions)), indent=2)
    path.write_bytes(text + b"\n")
    return path


def read_captions(path: str | Path) -> dict[str, str]:
    """The captions of a file, JSON `{id: caption}` or JSON-lines `{id, reply}`."""
    return load_replies(path)
