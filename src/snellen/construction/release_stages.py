"""The last stages: `balance`, `review` and `export`."""

from __future__ import annotations

from collections.abc import Sequence

from snellen.builders.balancing import Ranked, balance
from snellen.builders.options import BalanceOptions, ReviewOptions
from snellen.builders.reviewing import edited, question_task
from snellen.builders.rows import PictureRow, QuestionRow
from snellen.builders.steps import Made, Rejected, Row, Unit
from snellen.construction.export import export
from snellen.construction.files import write_lines
from snellen.construction.review import put_up
from snellen.construction.stages import Context, Stage
from snellen.engine.journal import read_rows


def _no_units(_context: Context) -> Sequence[Unit]:
    return ()


def _balance(context: Context, _parts: Sequence[Made]) -> Made:
    """The questions of the pictures that the rule and the people's list keep."""
    questions = context.rows("verify", QuestionRow)
    asked = {row.image_id for row in questions}
    pictures = [one for one in context.rows("select", PictureRow) if one.id in asked]
    path = context.folder / "balance.jsonl"
    words = {row.image_id: row.keep for row in read_rows(path, Ranked) if row.keep is not None}
    cap = context.of(BalanceOptions).per_subdomain
    ranked = balance(pictures, cap, words=words, seed=context.seed)
    write_lines(path, ranked)
    keep = {row.image_id for row in ranked if row.proposed}
    gone = tuple(
        Rejected(id=row.id, made_from=(row.image_id,),
                 reason="dropped_by_people" if words.get(row.image_id) is False
                 else "over_subdomain_cap")
        for row in questions if row.image_id not in keep
    )  # fmt: skip
    kept = tuple(row for row in questions if row.image_id in keep)
    counts = {"pictures_before": len(pictures), "pictures_kept": len(keep)}
    return Made(kept, gone, counts=counts)


BALANCE = Stage("balance", QuestionRow, _no_units, settle=_balance, is_filter=True)


def _review(context: Context, _parts: Sequence[Made]) -> Made:
    """The questions as the decisions leave them; undecided ones stay unless told otherwise."""
    options = context.of(ReviewOptions)
    questions = context.rows("balance", QuestionRow)
    queued = [row for row in questions if row.flags or not options.only_flagged]
    settled = put_up(
        context.folder,
        "question",
        [question_task(row, "") for row in queued],
        options=options,
        seed=context.seed,
    )
    by_id = {one.task.id: one for one in settled}
    kept: list[QuestionRow] = []
    gone: list[Rejected] = []
    n_edited = n_undecided = 0
    for row in questions:
        one = by_id.get(row.id)
        decision = one.deciding if one is not None else None
        if decision is not None and decision.decision == "delete":
            detail = {"reasons": list(decision.reasons), "annotator": decision.annotator}
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason="deleted_by_people",
                                 detail=detail))  # fmt: skip
            continue
        is_open = one is not None and (decision is None or one.needs_adjudicator)
        n_undecided += is_open
        if is_open and options.reviewed_only:
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason="undecided"))
            continue
        after = one.after if one is not None else {}
        n_edited += bool(after)
        kept.append(edited(row, after) if after else row)
    counts = {
        "queued": len(queued),
        "undecided": n_undecided,
        "edited": n_edited,
        "for_adjudicator": sum(one.needs_adjudicator for one in settled),
    }
    return Made(tuple(kept), tuple(gone), counts=counts)


REVIEW = Stage("review", QuestionRow, _no_units, settle=_review, is_filter=True)


class ExportedRow(Row, frozen=True, kw_only=True):
    """A question that stands in the benchmark."""


def _export(context: Context, _parts: Sequence[Made]) -> Made:
    """Writes the benchmark folder; a benchmark without a question is not written."""
    questions = context.rows("review", QuestionRow)
    counts = export(context, questions)
    rows = tuple(ExportedRow(id=row.id, made_from=(row.id,)) for row in questions)
    return Made(rows, counts={"images": counts.images, "regions": counts.regions})


EXPORT = Stage("export", ExportedRow, _no_units, settle=_export, is_filter=True)
