"""The stages that describe regions and write, compare and check questions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snellen.builders import describing, questioning, verifying
from snellen.builders.dedup import deduplicate, embedded_text
from snellen.builders.options import (
    DedupOptions,
    DescribeOptions,
    QuestionOptions,
    VerifyOptions,
)
from snellen.builders.questioning import Subject
from snellen.builders.rows import DescribedRow, PictureRow, QuestionRow, RegionRow
from snellen.builders.steps import Made, Rejected, Unit, joined
from snellen.construction.embeddings import TEXTS_A_CALL, ask_embeddings
from snellen.construction.stages import Context, Expected, Seat, Stage
from snellen.errors import DataError
from snellen.flows import Flow
from snellen.records import CallFailure
from snellen.settings import encoder_path

if TYPE_CHECKING:
    from snellen.embedded.encoder import Encoder

PICTURE_TOKENS = 1200
EMBEDDED = "embedded"


def by_id(context: Context, stage: str, kind: type[Any]) -> dict[str, Any]:
    """The rows of a stage by their ids."""
    return {row.id: row for row in context.rows(stage, kind)}


def _regions(context: Context) -> Iterator[Unit]:
    pictures = by_id(context, "select", PictureRow)
    options = context.of(DescribeOptions)
    for region in context.rows("segment", RegionRow):
        picture = pictures[region.image_id]
        basis = [options, picture.file.digest, region.view.digest, region.bbox]
        yield Unit(region.id, basis, (region, picture))


def _describe(context: Context, payload: tuple[RegionRow, PictureRow]) -> Flow[Made]:
    role, options = context.seat("describer").role, context.of(DescribeOptions)
    return describing.describe(*payload, role=role, options=options)


DESCRIBE = Stage(
    "describe",
    DescribedRow,
    _regions,
    _describe,
    roles=lambda _: ("describer",),
    expects=lambda _: Expected(1.0, 1.0, {"describer": 1.0}, 2 * PICTURE_TOKENS + 900, 900),
    prompts=(describing.PROMPT,),
)


def _subjects(context: Context) -> Iterator[Unit]:
    pictures = by_id(context, "select", PictureRow)
    regions = by_id(context, "segment", RegionRow)
    options, seats = context.of(QuestionOptions), context.seats["questioner"]
    labels = {seat.label: seat for seat in seats}
    split = options.regions == "split"
    for described in context.rows("describe", DescribedRow):
        region = regions[described.id]
        subject = Subject(pictures[region.image_id], region, described)
        chosen = questioning.generators_for(region.id, list(labels), split=split, seed=context.seed)
        for label in chosen:
            basis = [options.wanted, options.reasks, context.seed, subject.picture.file.digest,
                     region.view.digest, described.metadata]  # fmt: skip
            yield Unit(f"{region.id}.{label}", basis, (subject, labels[label]))


def _write(context: Context, payload: tuple[Subject, Seat]) -> Flow[Made]:
    subject, seat = payload
    return questioning.write_questions(
        subject,
        role=seat.role,
        generator=seat.label,
        options=context.of(QuestionOptions),
        seed=context.seed,
    )


def _covered_categories(_context: Context, parts: Sequence[Made]) -> Made:
    """All questions; how many of the ten categories a region has on average is a count."""
    made = joined(parts)
    regions: dict[str, set[str]] = {}
    for row in made.rows:
        regions.setdefault(row.region_id, set()).add(row.category)
    counts = dict(made.counts)
    if regions:
        mean = sum(map(len, regions.values())) / len(regions)
        counts["categories_a_region_tenths"] = round(10 * mean)
        counts["regions_with_all_ten"] = sum(len(one) == 10 for one in regions.values())
    return Made(made.rows, made.rejected, made.dropped, counts=counts)


def _expected_questions(context: Context) -> Expected:
    options = context.of(QuestionOptions)
    seats = len(context.seats.get("questioner", ())) or 2
    units = 1.0 if options.regions == "split" else float(seats)
    tokens = 90 * options.wanted
    calls = {"questioner": 1.0}
    return Expected(units, float(options.wanted), calls, 2 * PICTURE_TOKENS + 1500, tokens)


QUESTION = Stage(
    "question",
    QuestionRow,
    _subjects,
    _write,
    settle=_covered_categories,
    roles=lambda _: ("questioner",),
    expects=_expected_questions,
    prompts=(questioning.PROMPT,),
)


def questions_by_picture(rows: Sequence[QuestionRow]) -> dict[str, list[QuestionRow]]:
    """Questions under the ids of their pictures, in their order."""
    found: dict[str, list[QuestionRow]] = {}
    for row in rows:
        found.setdefault(row.image_id, []).append(row)
    return found


def _written(context: Context) -> Iterator[Unit]:
    options = context.of(DedupOptions)
    for image_id, rows in questions_by_picture(context.rows("question", QuestionRow)).items():
        basis = [options, [[r.id, r.question, r.options, r.answer] for r in rows]]
        yield Unit(image_id, basis, rows)


def _dedup(context: Context, rows: Sequence[QuestionRow]) -> Flow[Made]:
    """The questions of one picture without the duplicates among them."""
    options = context.of(DedupOptions)
    texts = [embedded_text(row) for row in rows]
    if options.embeddings == EMBEDDED:
        yield []
        vectors = _embedded(texts)
    else:
        role = context.seat(options.embeddings).role
        found = yield from ask_embeddings(texts, role=role)
        if isinstance(found, CallFailure):
            return _unembedded(rows, found)
        if len({part.shape[1] for part in found}) > 1:
            raise DataError("embeddings of unequal length", hint="check the embeddings endpoint")
        vectors = np.concatenate(found)
    done = deduplicate(rows, vectors, options)
    counts = {"kept_by_answer": done.kept_by_answer, "kept_by_guard": done.kept_by_guard}
    counts |= {
        f"removed_{level}": sum(one.level == level for one in done.removals)
        for level in ("across", "within")
    }
    return Made(done.kept, done.rejected(rows), counts=counts)


def _embedded(texts: Sequence[str]) -> NDArray[np.float32]:
    vectors = encoder_of(os.getpid()).embed(texts)
    return np.array([vectors[text] for text in texts])


@cache
def encoder_of(_process: int) -> Encoder:
    """The sentence encoder of one process, imported late; a fork has none of its threads."""
    from snellen.embedded.encoder import Encoder

    return Encoder(encoder_path())


def _unembedded(rows: Sequence[QuestionRow], failure: CallFailure) -> Made:
    """Questions that could not be compared: none is handed on, and all are tried again."""
    gone = tuple(
        Rejected(id=row.id, made_from=(row.region_id,), reason=f"call_{failure.kind}",
                 detail={"error": failure.message})
        for row in rows
    )  # fmt: skip
    return Made(rejected=gone, failure=failure.kind)


def _embedding_roles(context: Context) -> tuple[str, ...]:
    name = context.of(DedupOptions).embeddings
    return () if name == EMBEDDED else (name,)


def _expected_embeddings(context: Context) -> Expected:
    # A picture has about 75 questions, of which a quarter goes; two calls of 64 texts embed them.
    calls = dict.fromkeys(_embedding_roles(context), 2.0)
    return Expected(1 / 75, 58.0, calls, 40 * TEXTS_A_CALL, 0)


DEDUP = Stage(
    "dedup",
    QuestionRow,
    _written,
    _dedup,
    roles=_embedding_roles,
    expects=_expected_embeddings,
    is_filter=True,
)


def _unique(context: Context) -> Iterator[Unit]:
    options = context.of(VerifyOptions)
    if not options.enabled:
        return
    pictures = by_id(context, "select", PictureRow)
    for row in context.rows("dedup", QuestionRow):
        picture = pictures[row.image_id]
        basis = [options, context.seed, row, picture.file.digest]
        yield Unit(row.id, basis, (row, picture))


def _verify(context: Context, payload: tuple[QuestionRow, PictureRow]) -> Flow[Made]:
    row, picture = payload
    seats = context.seats["checker"]
    checkers = verifying.Checkers(seats[0].role, seats[-1].role)
    return verifying.verify(
        row, picture, checkers=checkers, options=context.of(VerifyOptions), seed=context.seed
    )


def _verified(context: Context, parts: Sequence[Made]) -> Made:
    if not context.of(VerifyOptions).enabled:
        return Made(context.rows("dedup", QuestionRow))
    made = joined(parts)
    counts = dict(made.counts)
    for row in made.rows:
        for flag in row.flags:
            counts[f"flag: {flag}"] = counts.get(f"flag: {flag}", 0) + 1
    return Made(made.rows, made.rejected, counts=counts)


def _expected_checks(context: Context) -> Expected:
    options = context.of(VerifyOptions)
    if not options.enabled:
        return Expected()
    calls = options.blind_draws * (options.blind != "off") + (options.agreement != "off")
    return Expected(1.0, 1.0, {"checker": float(calls)}, 150, 2)


VERIFY = Stage(
    "verify",
    QuestionRow,
    _unique,
    _verify,
    settle=_verified,
    roles=lambda context: ("checker",) if context.of(VerifyOptions).enabled else (),
    expects=_expected_checks,
    is_filter=True,
    prompts=(verifying.BLIND, verifying.SEEN),
)
