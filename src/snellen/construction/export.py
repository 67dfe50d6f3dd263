"""Writes what was built as a benchmark folder that `snellen run` takes, with a card."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from snellen.builders.counts import DataCounts, count
from snellen.builders.options import DedupOptions, ExportOptions, SegmentOptions
from snellen.builders.rows import DescribedRow, PictureRow, QuestionRow, RegionRow, Shot
from snellen.construction.files import read_record, write_json, write_lines
from snellen.construction.stages import Context
from snellen.pictures.headers import kind_of
from snellen.records import JsonObject

BENCHMARK = "benchmark"


def export(context: Context, questions: Sequence[QuestionRow]) -> DataCounts:
    """Writes `DIR/benchmark`, whole or not at all, and gives the counts of what is in it.

    Pictures are copied byte for byte; boxes and masks refer to the upright picture.
    """
    pictures = context.rows("select", PictureRow)
    counts = count(pictures, questions)
    out = context.folder / BENCHMARK
    part = context.folder / f"{BENCHMARK}.part"
    shutil.rmtree(part, ignore_errors=True)
    if not questions:
        shutil.rmtree(out, ignore_errors=True)
        return counts
    (part / "images").mkdir(parents=True)
    options = context.of(ExportOptions)
    name = options.name or context.folder.resolve().name
    write_json(
        part / "benchmark.json",
        {
            "name": name,
            "protocol": "reading",
            "version": options.version,
            "license": options.license,
            "source": options.attribution or "built with `snellen build capprobe`",
        },
    )
    asked = {row.image_id for row in questions}
    kept = [one for one in pictures if one.id in asked]
    images, labels = [], []
    for one in kept:
        own = {
            "l1": list(dict.fromkeys(label.l1 for label in one.labels)),
            "l2": list(dict.fromkeys(label.l2 for label in one.labels)),
        }
        images.append({"image_id": one.id, "image": copy_picture(one.id, one.file, part), **own})
        # Which sub-domain of a picture stands under which of its domains.
        pairs = [[label.l1, label.l2, label.confidence] for label in one.labels]
        labels.append({"image_id": one.id, "name": one.name, "labels": pairs})
    write_lines(part / "images.jsonl", images)
    write_lines(part / "labels.jsonl", labels)
    write_lines(part / "regions.jsonl", _regions(context, questions))
    fields = ("image_id", "region_id", "category", "question", "options", "answer", "generator")
    rows = [{"question_id": q.id, **{f: getattr(q, f) for f in fields}} for q in questions]
    write_lines(part / "questions.jsonl", rows)
    (part / "card.md").write_text(_card(context, counts, name), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    if options.parquet:
        from snellen.interchange.hub_folder import write_hub_folder

        write_hub_folder(out, context.folder / "hub")
    return counts


def copy_picture(name: str, shot: Shot, folder: Path) -> str:
    """Copies a picture into `images` of a benchmark folder; gives its path inside the folder."""
    data = Path(shot.path).read_bytes()
    kind = kind_of(data[:64])
    place = f"images/{name}.{'jpg' if kind == 'jpeg' else kind or 'bin'}"
    (folder / place).write_bytes(data)
    return place


def _regions(context: Context, questions: Sequence[QuestionRow]) -> list[JsonObject]:
    asked = {row.region_id for row in questions}
    described = {row.id: row for row in context.rows("describe", DescribedRow)}
    return [
        {
            "region_id": row.id,
            "image_id": row.image_id,
            "bbox": list(row.bbox),
            "mask": row.mask,
            "nature": described[row.id].nature,
            "metadata": described[row.id].metadata,
        }
        for row in context.rows("segment", RegionRow)
        if row.id in asked
    ]


def _card(context: Context, counts: DataCounts, name: str) -> str:
    """The card of a benchmark: what it holds, who wrote it, and by which thresholds."""
    record = read_record(context.folder)
    dedup, segment = context.of(DedupOptions), context.of(SegmentOptions)
    models = "\n".join(
        f"- {role}: {', '.join(model['name'] for model in given)}"
        for role, given in record.models.items()
    )
    categories = "\n".join(
        f"| {category} | {n:,} | {100 * n / counts.questions:.1f} |"
        for category, n in counts.categories.items()
    )
    return f"""# {name}

Multiple-choice questions about regions of pictures. A caption of a picture is judged by what its
reader can answer.

| | |
|---|---|
| Images | {counts.images:,} |
| Regions | {counts.regions:,} ({_ratio(counts.regions_an_image)} an image) |
| Questions | {counts.questions:,} ({_ratio(counts.questions_an_image)} an image, \
{_ratio(counts.questions_a_region)} a region) |
| Domains, sub-domains | {len(counts.domains)}, \
{sum(len(subs) for subs in counts.subdomains.values())} |

| Category | Questions | % |
|---|--:|--:|
{categories}

## How it was made

{models}

Regions: {segment.source}, at most {segment.max_regions} a picture. Duplicates: cosine above
{dedup.across:g} within a picture, above {dedup.within:g} within a region. Seed {record.seed}. Every
prompt is in `build.json`, every rejected row and its reason in `rejected.jsonl` of the folder that
this benchmark was built in.

Boxes are [ymin, xmin, ymax, xmax] in thousandths of the upright picture's height and width, masks
are run lengths as COCO writes them. The pictures keep the licences of their source:
{context.of(ExportOptions).license or "not stated"}.
"""


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
