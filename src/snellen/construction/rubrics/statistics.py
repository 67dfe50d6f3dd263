"""What a benchmark of rubrics holds, read from the folder that it is built in or from itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from snellen.builders.rubrics.counts import Described, RubricCounts, count_rubrics, words_in
from snellen.builders.rubrics.curating import DomainThreshold
from snellen.builders.rubrics.discards import DiscardReport
from snellen.builders.rubrics.rows import EASY_WRONG, MUST_RIGHT, GoldenRow, RubricRow
from snellen.construction.export import BENCHMARK
from snellen.construction.files import read_record, stage_file
from snellen.construction.stages import Pipeline
from snellen.engine.journal import read_rows
from snellen.errors import DataError
from snellen.readers import load_benchmark

T = TypeVar("T")
THRESHOLDS, DISCARDS = "thresholds.json", "discards.json"
# The stages after which statements are there, the latest first.
WITH_RUBRICS = ("review", "trial", "ground", "propose")


def holds_rubrics(path: str | Path) -> bool:
    """Whether rubrics are built in a folder, or are a benchmark there."""
    folder = Path(path)
    if (folder / "build.json").exists():
        return read_record(folder).kind == "rubrics"
    return any(folder.glob("rubrics.*"))


def counts_of(pictures: Sequence[GoldenRow], rubrics: Sequence[RubricRow]) -> RubricCounts:
    """The counts of pictures and their statements; pictures without one are not counted."""
    n = Counter((row.image_id, row.kind) for row in rubrics)
    with_any = {row.image_id for row in rubrics}
    return count_rubrics(
        [
            Described(
                one.domain,
                words_in(one.caption),
                n[one.id, MUST_RIGHT],
                n[one.id, EASY_WRONG],
            )
            for one in pictures
            if one.id in with_any
        ]
    )


def rubric_counts(path: str | Path, pipeline: Pipeline) -> tuple[RubricCounts, str]:
    """The counts of a folder, and where they were taken: a stage, or the benchmark.

    Raises:
        DataError: the folder holds no statements.
    """
    folder = Path(path)
    if not (folder / "build.json").exists():
        return _of_benchmark(folder), BENCHMARK
    pictures = list(read_rows(stage_file(folder, pipeline, "golden"), GoldenRow))
    for name in WITH_RUBRICS:
        file = stage_file(folder, pipeline, name)
        if file.exists():
            return counts_of(pictures, list(read_rows(file, RubricRow))), name
    raise DataError("no stage has written statements yet", file=folder, hint="go on building first")


def discards_of(path: str | Path) -> DiscardReport | None:
    """The pictures on which authors were divided; None before `golden`, and for a benchmark."""
    return _report(Path(path) / DISCARDS, DiscardReport)


def thresholds_of(path: str | Path) -> list[DomainThreshold]:
    """The threshold of each domain; none before `curate`, and for a benchmark."""
    return _report(Path(path) / THRESHOLDS, list[DomainThreshold]) or []


def _report(path: Path, kind: type[T]) -> T | None:
    return msgspec.json.decode(path.read_bytes(), type=kind) if path.exists() else None


def _of_benchmark(folder: Path) -> RubricCounts:
    found = load_benchmark(str(folder))
    if found.protocol != "rubric":
        raise DataError(
            f"is a {found.protocol} benchmark",
            file=folder,
            hint="`snellen data info` describes benchmarks of every kind",
        )
    described = []
    for item in found.items:
        kinds = Counter(probe.kind for probe in item.probes)
        domain = item.groups["category"][0]
        reference = item.reference or ""
        described.append(
            Described(domain, words_in(reference), kinds[MUST_RIGHT], kinds[EASY_WRONG])
        )
    return count_rubrics(described)
