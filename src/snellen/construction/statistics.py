"""What a benchmark of regions holds, read from the folder that it is built in or from itself."""

from __future__ import annotations

from pathlib import Path

import msgspec

from snellen.builders.counts import DataCounts, count
from snellen.builders.options import SelectOptions
from snellen.builders.rows import Label, PictureRow, QuestionRow, Shot
from snellen.builders.taxonomy import Coverage, coverage
from snellen.construction import files
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.export import BENCHMARK
from snellen.construction.picture_stages import taxonomy_of
from snellen.engine.journal import read_rows
from snellen.errors import DataError
from snellen.readers import load_benchmark
from snellen.records import Benchmark

# The stages after which questions are there, the latest first.
WITH_QUESTIONS = ("review", "balance", "verify", "dedup", "question")


class _Labels(msgspec.Struct):
    """A row of `labels.jsonl` of a benchmark that was built here."""

    image_id: str
    labels: list[tuple[str, str, float]]
    name: str = ""


def data_counts(path: str | Path) -> tuple[DataCounts, str]:
    """The counts of a folder, and where they were taken: a stage, or the benchmark.

    Raises:
        DataError: the folder holds no questions about regions.
    """
    folder = Path(path)
    if not (folder / "build.json").exists():
        found = load_benchmark(str(folder))
        if found.protocol != "reading":
            raise DataError(
                f"is a {found.protocol} benchmark",
                file=folder,
                hint="`snellen data info` describes benchmarks of every kind",
            )
        return count(_pictures(found, folder), _questions(found)), BENCHMARK
    pictures = files.read_stage(folder, CAPPROBE, CAPPROBE.stages[0]) or ()
    for name in WITH_QUESTIONS:
        stage = CAPPROBE.stages[CAPPROBE.number(name) - 1]
        rows = files.read_stage(folder, CAPPROBE, stage)
        if rows is not None:
            return count(pictures, rows), name
    raise DataError("no stage has written questions yet", file=folder, hint="go on building first")


def label_coverage(path: str | Path) -> tuple[Coverage, int] | None:
    """How many pictures each label of the taxonomy has after `select`, and what counts as thin.

    None for a folder that is not being built, or whose pictures have no labels.
    """
    folder = Path(path)
    if not (folder / "build.json").exists():
        return None
    section = files.read_record(folder).options.get("select", {})
    options = msgspec.convert(section, SelectOptions)
    pictures = files.read_stage(folder, CAPPROBE, CAPPROBE.stages[0])
    if options.labels == "none" or pictures is None:
        return None
    return coverage(pictures, taxonomy_of(options)), options.thin


def _pictures(found: Benchmark, folder: Path) -> list[PictureRow]:
    """The pictures with their labels; without `labels.jsonl` each domain has no sub-domain."""
    listed = {row.image_id: row.labels for row in read_rows(folder / "labels.jsonl", _Labels)}
    pictures = []
    for item in found.items:
        pairs = listed.get(item.id) or [(name, "", 1.0) for name in item.groups.get("l1", ())]
        labels = tuple(Label(*pair) for pair in pairs)
        shot = Shot(item.images[0].path, item.images[0].digest)
        pictures.append(
            PictureRow(id=item.id, name=item.id, file=shot, width=0, height=0, labels=labels)
        )
    return pictures


def _questions(found: Benchmark) -> list[QuestionRow]:
    return [
        QuestionRow(
            id=probe.id,
            image_id=item.id,
            region_id=probe.groups.get("region_id", ""),
            category=probe.groups["category"],
            question=probe.question,
            options=("", "", "", ""),
            answer=probe.answer,
            generator=probe.groups.get("generator", ""),
            index=number,
        )
        for item in found.items
        for number, probe in enumerate(item.probes, 1)
    ]
