"""The last stages: people's review of the questions, and the benchmark folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from snellen.builders.options import ExportOptions
from snellen.builders.perception.asking import edited_question
from snellen.builders.perception.counts import PerceptionCounts
from snellen.builders.perception.options import PanelOptions, SampleOptions, WriteOptions
from snellen.builders.perception.paneling import FOR_PEOPLE
from snellen.builders.perception.rows import AtomicRow, PanelResult
from snellen.builders.perception.sampling import drawn
from snellen.builders.reviewing import Task
from snellen.builders.steps import Made, Rejected, Unit
from snellen.construction.export import BENCHMARK, copy_picture
from snellen.construction.files import read_record, write_json, write_lines
from snellen.construction.perception.statistics import EVIDENCE, Evidence, agreement_of, counts_of
from snellen.construction.release_stages import ExportedRow
from snellen.construction.review import Reviewed, review_rows, state
from snellen.construction.stages import Context, Stage
from snellen.engine.journal import read_rows
from snellen.errors import UsageError
from snellen.keys import digest_of
from snellen.records import JsonObject


def _no_units(_context: Context) -> Sequence[Unit]:
    """The units of work of `_no`."""
    return ()


def question_task(row: AtomicRow) -> Task:
    """A question under review, with its pictures and what the panel said."""
    said = row.panel or PanelResult()
    about = {"problem": row.problem, "answer": row.answer, "hint": row.hint,
             "error_category": row.error_category}  # fmt: skip
    words = {True: "right", False: "wrong", None: "no verdict"}
    panel = [f"{one.solver}: {one.reply} ({words[one.correct]})" for one in said.answers]
    shown = {**about, "source": row.source_bmk, "difficulty": row.stratum, "panel": panel}
    return Task(
        row.id, "atomic", "", digest_of(about), shown, row.flags,
        image=row.files[0].digest[:16], pictures=row.files,
        labels={"category": row.error_category, "generator": row.writer, "origin": row.origin},
    )  # fmt: skip


def review_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """The questions as the decisions leave them; doubtful references need a person's word."""
    how: Reviewed[AtomicRow] = Reviewed("atomic", question_task, edited_question)
    made = review_rows(context, context.rows("verify", AtomicRow), how)
    settled = state(context.folder, "atomic") if made.rows else []
    seen = {one.task.id for one in settled if one.deciding is not None}
    kept, gone = [], list(made.rejected)
    for row in made.rows:
        doubt = next((flag for flag in row.flags if flag in FOR_PEOPLE), "")
        if doubt and row.id not in seen:
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason=f"{doubt}_by_people"))
        else:
            kept.append(row)
    return Made(tuple(kept), tuple(gone), counts=made.counts)


REVIEW = Stage("review", AtomicRow, _no_units, settle=review_settled, is_filter=True)


def export_roles(context: Context) -> tuple[str, ...]:
    """The roles that `export` asks."""
    if context.of(ExportOptions).parquet:
        raise UsageError(
            "[export] parquet is for benchmarks of regions", hint="leave it out: questions are JSON"
        )
    return ()


def export_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """Draws the sample and writes the benchmark folder; without a question there is none."""
    rows = context.rows("review", AtomicRow)
    kept = drawn(
        rows,
        context.of(SampleOptions).size,
        new_share=context.of(WriteOptions).new_share,
        seed=context.seed,
    )
    ids = {row.id for row in kept}
    gone = tuple(
        Rejected(id=row.id, made_from=(row.id,), reason="not_drawn",
                 detail={"error_category": row.error_category, "stratum": row.stratum})
        for row in rows if row.id not in ids
    )  # fmt: skip
    counts = counts_of(list(kept))
    write_benchmark(context, kept, counts)
    exported = tuple(ExportedRow(id=row.id, made_from=(row.id,)) for row in kept)
    figures = {"decomposed": counts.decomposed, "new": counts.new, **counts.strata}
    return Made(exported, gone, counts=figures)


EXPORT = Stage(
    "export", ExportedRow, _no_units, settle=export_settled, roles=export_roles, is_filter=True
)


def write_benchmark(context: Context, rows: Sequence[AtomicRow], counts: PerceptionCounts) -> None:
    """Writes `DIR/benchmark`, whole or not at all: questions, pictures, evidence, and a card.

    Rows have the form of the public data set. A question keeps the index that it had before.
    """
    out = context.folder / BENCHMARK
    part = context.folder / f"{BENCHMARK}.part"
    shutil.rmtree(part, ignore_errors=True)
    if not rows:
        shutil.rmtree(out, ignore_errors=True)
        return
    (part / "images").mkdir(parents=True)
    options = context.of(ExportOptions)
    name = options.name or context.folder.resolve().name
    write_json(
        part / "benchmark.json",
        {
            "name": name,
            "protocol": "direct",
            "version": options.version,
            "license": options.license,
            "source": options.attribution or "built with `snellen build perception`",
        },
    )
    indices = _indices(out / EVIDENCE, rows)
    ordered = sorted(rows, key=lambda row: indices[row.id])
    write_lines(
        part / "questions.jsonl", [_question(row, indices[row.id], part) for row in ordered]
    )
    write_lines(part / EVIDENCE, [_evidence(row, indices[row.id]) for row in ordered])
    (part / "card.md").write_text(_card(context, counts, name), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)


def _indices(before: Path, rows: Sequence[AtomicRow]) -> dict[str, int]:
    """The index of each question: as in the benchmark that was written before, else the next."""
    known = {one.question: one.index for one in read_rows(before, Evidence)}
    found = {row.id: known[row.id] for row in rows if row.id in known}
    free = max(known.values(), default=-1) + 1
    for row in rows:
        if row.id not in found:
            found[row.id] = free
            free += 1
    return found


def _question(row: AtomicRow, index: int, folder: Path) -> JsonObject:
    places = [copy_picture(file.digest[:16], file, folder) for file in row.files]
    return {
        "index": index,
        "problem": row.problem,
        "image": places,
        "answer": row.answer,
        "hint": row.hint,
        "error_category": row.error_category,
        "source_bmk": row.source_bmk,
        "source_idx": row.source_idx,
    }


def _evidence(row: AtomicRow, index: int) -> Evidence:
    """What supports a question, under its index."""
    said = row.panel or PanelResult()
    return Evidence(
        index=index,
        question=row.id,
        origin=row.origin,
        stratum=row.stratum,
        writer=row.writer,
        right=sum(one.correct is True for one in said.answers),
        answered=sum(one.correct is not None for one in said.answers),
        right_blind=sum(one.correct is True for one in said.blind),
        paraphrase=said.paraphrase,
        confirmed_by="people" if set(row.flags) & set(FOR_PEOPLE) else "panel",
    )


def _card(context: Context, counts: PerceptionCounts, name: str) -> str:
    """The card of a benchmark: what it holds, who wrote it, and by which rules."""
    record = read_record(context.folder)
    panel = context.of(PanelOptions)
    models = "\n".join(
        f"- {role}: {', '.join(model['name'] for model in given)}"
        for role, given in record.models.items()
    )
    capabilities = "\n".join(
        f"| {label} | {one.questions:,} | {one.decomposed:,} | {one.new:,} |"
        for label, one in counts.capabilities.items()
    )
    strata = ", ".join(f"{n:,} {label}" for label, n in counts.strata.items())
    return f"""# {name}

Questions about pictures that need looking only, each with a short answer, the only right one.

| | |
|---|---|
| Questions | {counts.questions:,} |
| From failures | {counts.decomposed:,} |
| New (`source_bmk` "NA") | {counts.new:,} ({100 * (counts.new_share or 0):.1f}%) |
| With several pictures | {counts.several_pictures:,} |
| With a hint | {counts.hints:,} |
| Difficulty | {strata or "not measured"} |

| Capability | Questions | From failures | New |
|---|--:|--:|--:|
{capabilities}

## How it was made

{models}

{_attributed(context)}
A question stays where a share of at least {panel.agree:g} of the panel, or a person, gives the
reference; less than {panel.blind:g} gives it without the pictures; and at least {panel.steady:g} is
judged alike on a paraphrase. Easy, medium and hard are thirds of the panel's wrong answers. Seed
{record.seed}. `evidence.jsonl` holds what the panel said of each question; every prompt is in
`build.json`, every rejected row and its reason in `rejected.jsonl` of the folder that this
benchmark was built in.

The models of the panel, and those that failed first, are not to be ranked by this benchmark without
saying so: questions were chosen by what they got right and wrong.

The pictures keep the licences of their source: {context.of(ExportOptions).license or "not stated"}.
"""


def _attributed(context: Context) -> str:
    """What the card says of the attributors' agreement."""
    report = agreement_of(context.folder)
    if report is None or not report.pairs:
        return ""
    lines = []
    for one in report.pairs:
        kappa = "" if one.kappa is None else f" (kappa {one.kappa:.2f})"
        lines.append(
            f"{one.pair[0]} and {one.pair[1]} name the same type for "
            f"{100 * one.types:.1f}% of {one.n} failures{kappa}."
        )
    return "\n".join(lines) + "\n"
