"""The last stages: `balance`, `review` and `export`."""

from __future__ import annotations

from collections.abc import Sequence

from snellen.builders.balancing import Ranked, balance
from snellen.builders.options import BalanceOptions
from snellen.builders.reviewing import edited, question_task
from snellen.builders.rows import PictureRow, QuestionRow
from snellen.builders.steps import Made, Rejected, Row, Unit
from snellen.construction.export import export
from snellen.construction.files import write_lines
from snellen.construction.review import Reviewed, review_rows
from snellen.construction.stages import Context, Stage
from snellen.engine.journal import read_rows


def _no_units(_context: Context) -> Sequence[Unit]:
    return ()


def balance_settled(context: Context, _parts: Sequence[Made]) -> Made:
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


BALANCE = Stage("balance", QuestionRow, _no_units, settle=balance_settled, is_filter=True)


def review_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """The questions as the decisions leave them."""
    questions = context.rows("balance", QuestionRow)
    files = {row.id: row.file for row in context.rows("select", PictureRow)}
    how: Reviewed[QuestionRow] = Reviewed(
        "question", lambda row: question_task(row, files.get(row.image_id)), edited
    )
    return review_rows(context, questions, how)


REVIEW = Stage("review", QuestionRow, _no_units, settle=review_settled, is_filter=True)


class ExportedRow(Row, frozen=True, kw_only=True):
    """A question that stands in the benchmark."""


def export_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """Writes the benchmark folder; a benchmark without a question is not written."""
    questions = context.rows("review", QuestionRow)
    counts = export(context, questions)
    rows = tuple(ExportedRow(id=row.id, made_from=(row.id,)) for row in questions)
    return Made(rows, counts={"images": counts.images, "regions": counts.regions})


EXPORT = Stage("export", ExportedRow, _no_units, settle=export_settled, is_filter=True)
