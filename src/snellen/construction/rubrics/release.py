"""The last stages: people's review of the statements, and the benchmark folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from snellen.builders.options import ExportOptions
from snellen.builders.reviewing import Task
from snellen.builders.rubrics.checks import fault_of, gated
from snellen.builders.rubrics.counts import RubricCounts
from snellen.builders.rubrics.options import GoldenOptions, PoolOptions, RubricsOptions
from snellen.builders.rubrics.rows import EASY_WRONG, MUST_RIGHT, GoldenRow, RubricRow
from snellen.builders.steps import Made, Unit
from snellen.construction.export import BENCHMARK, copy_picture
from snellen.construction.files import read_record, write_json, write_lines
from snellen.construction.release_stages import ExportedRow
from snellen.construction.review import Reviewed, review_rows
from snellen.construction.rubrics.rubric_stages import golden_rows
from snellen.construction.rubrics.statistics import counts_of, discards_of
from snellen.construction.stages import Context, Stage
from snellen.errors import DataError, UsageError
from snellen.keys import digest_of
from snellen.records import JsonObject


def _no_units(_context: Context) -> Sequence[Unit]:
    return ()


def _rubric_task(row: RubricRow, golden: GoldenRow) -> Task:
    """A statement under review, with the picture, the golden caption and the pool's figures."""
    shown = {"kind": row.kind, "text": row.text, "caption": golden.caption,
             "error_rate": row.error_rate,
             "difficulty": row.difficulty, "failed_by": list(row.failed_by)}  # fmt: skip
    return Task(
        row.id, "rubric", "", digest_of([row.kind, row.text]), shown, row.flags,
        image=row.image_id, pictures=(golden.file,),
        labels={"category": golden.domain, "kind": row.kind, "generator": row.proposer},
    )  # fmt: skip


def edited_rubric(row: RubricRow, after: JsonObject) -> RubricRow:
    """A statement with an edit's text.

    Raises:
        DataError: the edit names another field, or leaves no statement in the form of a rubric.
    """
    if set(after) != {"text"}:
        raise DataError(f"the edit of {row.id} changes `{min(set(after) - {'text'}, default='')}`",
                        hint="editable: text")  # fmt: skip
    text = " ".join(str(after["text"]).split())
    if fault_of(text, max_words=1000) == "other_form":
        raise DataError(
            f"the edit of {row.id} is no statement: {text[:60]!r}",
            hint='write "The response must ..."',
        )
    return msgspec.structs.replace(row, text=text)


def review_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """The statements as the decisions leave them, of pictures that keep a gate."""
    captions = golden_rows(context)
    how: Reviewed[RubricRow] = Reviewed(
        "rubric", lambda row: _rubric_task(row, captions[row.image_id]), edited_rubric
    )
    made = review_rows(context, context.rows("trial", RubricRow), how)
    left = gated(made.rows)
    return Made(left.rows, (*made.rejected, *left.rejected), counts=made.counts)


REVIEW = Stage("review", RubricRow, _no_units, settle=review_settled, is_filter=True)


def export_roles(context: Context) -> tuple[str, ...]:
    """The roles that `export` asks."""
    if context.of(ExportOptions).parquet:
        raise UsageError(
            "[export] parquet is for benchmarks of regions", hint="leave it out: rubrics are JSON"
        )
    return ()


def export_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """Writes the benchmark folder; a benchmark without a statement is not written."""
    rows = context.rows("review", RubricRow)
    captions = golden_rows(context)
    by_image: dict[str, list[RubricRow]] = {}
    for row in rows:
        by_image.setdefault(row.image_id, []).append(row)
    kept = [captions[image_id] for image_id in by_image]
    counts = counts_of(kept, rows)
    write_benchmark(context, kept, by_image, counts)
    exported = tuple(ExportedRow(id=row.id, made_from=(row.id,)) for row in rows)
    figures = {
        "images": counts.images,
        "Must-Right": counts.must_right,
        "Easy-Wrong": counts.easy_wrong,
    }
    return Made(exported, counts=figures)


EXPORT = Stage(
    "export", ExportedRow, _no_units, settle=export_settled, roles=export_roles, is_filter=True
)


def write_benchmark(
    context: Context,
    pictures: Sequence[GoldenRow],
    rubrics: Mapping[str, Sequence[RubricRow]],
    counts: RubricCounts,
) -> None:
    """Writes `DIR/benchmark`, whole or not at all: rubrics, pictures, evidence, and a card.

    Rows have the form of the public data set; each statement names its proposer and the authors
    who agreed on the caption. Pictures are copied byte for byte.
    """
    out = context.folder / BENCHMARK
    part = context.folder / f"{BENCHMARK}.part"
    shutil.rmtree(part, ignore_errors=True)
    if not pictures:
        shutil.rmtree(out, ignore_errors=True)
        return
    (part / "images").mkdir(parents=True)
    options = context.of(ExportOptions)
    name = options.name or context.folder.resolve().name
    write_json(
        part / "benchmark.json",
        {
            "name": name,
            "protocol": "rubric",
            "version": options.version,
            "license": options.license,
            "source": options.attribution or "built with `snellen build rubrics`",
        },
    )
    lines = [_row(one, rubrics[one.id], part) for one in pictures]
    write_lines(part / "rubrics.jsonl", lines)
    write_lines(part / "evidence.jsonl", _evidence(pictures, rubrics))
    (part / "card.md").write_text(_card(context, counts, name), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)


def _row(golden: GoldenRow, rubrics: Sequence[RubricRow], folder: Path) -> JsonObject:
    def texts(kind: str) -> list[JsonObject]:
        return [
            {"text": one.text, "proposer": one.proposer, "jurors": list(golden.authors)}
            for one in rubrics
            if one.kind == kind
        ]

    return {
        "id": golden.id,
        "image": copy_picture(golden.id, golden.file, folder),
        "category": golden.domain,
        "golden_caption": golden.caption,
        MUST_RIGHT: texts(MUST_RIGHT),
        EASY_WRONG: texts(EASY_WRONG),
    }


def _evidence(
    pictures: Sequence[GoldenRow], rubrics: Mapping[str, Sequence[RubricRow]]
) -> list[JsonObject]:
    """What supports each statement, under the probe id that an evaluation gives it."""
    found = []
    for golden in pictures:
        places = {MUST_RIGHT: 0, EASY_WRONG: 0}
        for row in rubrics[golden.id]:
            probe = f"{row.kind}/{places[row.kind]}"
            places[row.kind] += 1
            plain = msgspec.to_builtins(row)
            keep = ("wrong_in", "seen_by", "error_rate", "is_severe", "failed_by", "difficulty",
                    "discrimination", "flags")  # fmt: skip
            found.append({"id": golden.id, "probe_id": probe, "rubric": row.id,
                          **{name: plain[name] for name in keep}})  # fmt: skip
    return found


def _card(context: Context, counts: RubricCounts, name: str) -> str:
    """The card of a benchmark: what it holds, who wrote it, and by which thresholds."""
    record = read_record(context.folder)
    golden, pool = context.of(GoldenOptions), context.of(PoolOptions)
    models = "\n".join(
        f"- {role}: {', '.join(model['name'] for model in given)}"
        for role, given in record.models.items()
    )
    domains = "\n".join(f"| {domain} | {n:,} |" for domain, n in counts.domains.items())
    return f"""# {name}

Statements about pictures that a description has to meet. One Must-Right statement that fails shuts
the gate; behind it the score is the share of Easy-Wrong statements that hold.

| | |
|---|---|
| Images | {counts.images:,} |
| Must-Right | {counts.must_right:,} ({_ratio(counts.an_image(counts.must_right))} an image) |
| Easy-Wrong | {counts.easy_wrong:,} ({_ratio(counts.an_image(counts.easy_wrong))} an image) |
| Words a golden caption | {_ratio(counts.words_mean)} |

| Domain | Images |
|---|--:|
{domains}

## How it was made

{models}

Golden captions: circular peer review, at most {golden.rounds} rounds, unanimity
`{golden.unanimity}`.
{_discarded(context)}
Easy-Wrong: errors of at least {context.of(RubricsOptions).frequent:g} of a pool of {pool.size}, or
severe. Seed {record.seed}. `evidence.jsonl` holds error rate, difficulty and discrimination of each
statement; every prompt is in `build.json`, every rejected row and its reason in `rejected.jsonl` of
the folder that this benchmark was built in.

The pictures keep the licences of their source: {context.of(ExportOptions).license or "not stated"}.
"""


def _discarded(context: Context) -> str:
    """What the card says about the pictures on which authors did not agree."""
    report = discards_of(context.folder)
    if report is None:
        return ""
    lines = [f"{report.whole.discarded} of {report.whole.pictures} pictures were discarded."]
    if report.complexity_difference is not None:
        lines.append(f"Kept minus all: complexity {report.complexity_difference:+.2f}, "
                     f"informativeness {report.informativeness_difference:+.2f}.")  # fmt: skip
    return " ".join(lines)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
