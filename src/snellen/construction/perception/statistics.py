"""What a benchmark of perception questions holds, from the folder it is built in or from itself."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from snellen.builders.perception.attributing import AgreementReport
from snellen.builders.perception.counts import Counted, PerceptionCounts, count_questions
from snellen.builders.perception.mapping import ErrorMap
from snellen.builders.perception.rows import NEWLY_WRITTEN, AtomicRow
from snellen.construction.export import BENCHMARK
from snellen.construction.files import read_record, stage_file
from snellen.construction.stages import Pipeline
from snellen.engine.journal import read_rows
from snellen.errors import DataError
from snellen.readers import load_benchmark

T = TypeVar("T")
AGREEMENT, MAP, EVIDENCE = "agreement.json", "map.json", "evidence.jsonl"
# The stages after which questions are there, the latest first.
WITH_QUESTIONS = ("review", "verify", "write", "decompose")


class Evidence(msgspec.Struct, frozen=True):
    """A row of `evidence.jsonl`: what supports the question with that index."""

    index: int
    question: str
    origin: str
    stratum: str
    writer: str
    right: int
    answered: int
    right_blind: int
    paraphrase: str
    confirmed_by: str


def holds_perception(path: str | Path) -> bool:
    """Whether perception questions are built in a folder, or are a benchmark there."""
    folder = Path(path)
    if (folder / "build.json").exists():
        return read_record(folder).kind == "perception"
    card = folder / "benchmark.json"
    return card.exists() and b'"direct"' in card.read_bytes()


def counts_of(rows: list[AtomicRow]) -> PerceptionCounts:
    """The counts of questions."""
    return count_questions(
        Counted(
            row.error_category,
            row.source_bmk,
            len(row.files),
            len(row.problem),
            len(row.answer),
            bool(row.hint),
            row.stratum,
        )
        for row in rows
    )


def perception_counts(path: str | Path, pipeline: Pipeline) -> tuple[PerceptionCounts, str]:
    """The counts of a folder, and where they were taken: a stage, or the benchmark.

    Raises:
        DataError: the folder holds no questions.
    """
    folder = Path(path)
    if not (folder / "build.json").exists():
        return _of_benchmark(folder), BENCHMARK
    if (folder / BENCHMARK).is_dir():
        return _of_benchmark(folder / BENCHMARK), "export"
    for name in WITH_QUESTIONS:
        file = stage_file(folder, pipeline, name)
        if file.exists():
            return counts_of(list(read_rows(file, AtomicRow))), name
    raise DataError("no stage has written questions yet", file=folder, hint="go on building first")


def agreement_of(path: str | Path) -> AgreementReport | None:
    """How far attributors agree; None before `attribute`, and for a benchmark."""
    return _report(Path(path) / AGREEMENT, AgreementReport)


def map_of(path: str | Path) -> ErrorMap | None:
    """The map of errors; None before `map`, and for a benchmark."""
    return _report(Path(path) / MAP, ErrorMap)


def _report(path: Path, kind: type[T]) -> T | None:
    return msgspec.json.decode(path.read_bytes(), type=kind) if path.exists() else None


def _of_benchmark(folder: Path) -> PerceptionCounts:
    found = load_benchmark(str(folder))
    if found.protocol != "direct":
        raise DataError(
            f"is a {found.protocol} benchmark",
            file=folder,
            hint="`snellen data info` describes benchmarks of every kind",
        )
    strata = {str(row.index): row.stratum for row in read_rows(folder / EVIDENCE, Evidence)}
    return count_questions(
        Counted(
            item.groups["error_category"][0],
            str(item.extra.get("source_bmk") or NEWLY_WRITTEN),
            len(item.images),
            len(item.text),
            len(item.probes[0].answer),
            bool(item.hint.strip()),
            strata.get(item.id, ""),
        )
        for item in found.items
    )
