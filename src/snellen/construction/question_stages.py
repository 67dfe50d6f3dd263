"""The stages that describe regions and write, compare and check questions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

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
from snellen.builders.steps import Made, Rejected, Row, Unit, joined
from snellen.construction.embeddings import TEXTS_A_CALL, ask_embeddings
from snellen.construction.stages import Context, Expected, Seat, Stage
from snellen.errors import DataError
from snellen.flows import Flow
from snellen.records import CallFailure
from snellen.settings import encoder_path

if TYPE_CHECKING:
    from snellen.embedded.encoder import Encoder

R = TypeVar("R", bound=Row)
PICTURE_TOKENS = 1200
EMBEDDED = "embedded"


def by_id(context: Context, stage: str, kind: type[R]) -> dict[str, R]:
    """The rows of a stage by their ids."""
    return {row.id: row for row in context.rows(stage, kind)}


def describe_units(context: Context) -> Iterator[Unit]:
    """The units of work of `describe`."""
    pictures = by_id(context, "select", PictureRow)
    options = context.of(DescribeOptions)
    for region in context.rows("segment", RegionRow):
        picture = pictures[region.image_id]
        basis = [options, picture.file.digest, region.view.digest, region.bbox]
        yield Unit(region.id, basis, (region, picture))


def describe_unit(context: Context, payload: tuple[RegionRow, PictureRow]) -> Flow[Made]:
    """What `describe` does with a unit of work."""
    role, options = context.seat("describer").role, context.of(DescribeOptions)
    return describing.describe(*payload, role=role, options=options)


DESCRIBE = Stage(
    "describe",
    DescribedRow,
    describe_units,
    describe_unit,
    roles=lambda _: ("describer",),
    expects=lambda _: Expected(1.0, 1.0, {"describer": 1.0}, 2 * PICTURE_TOKENS + 900, 900),
    prompts=(describing.PROMPT,),
)


def question_units(context: Context) -> Iterator[Unit]:
    """The units of work of `question`."""
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


def question_unit(context: Context, payload: tuple[Subject, Seat]) -> Flow[Made]:
    """What `question` does with a unit of work."""
    subject, seat = payload
    return questioning.write_questions(
        subject,
        role=seat.role,
        generator=seat.label,
        options=context.of(QuestionOptions),
        seed=context.seed,
    )


def question_settled(_context: Context, parts: Sequence[Made]) -> Made:
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


def question_expected(context: Context) -> Expected:
    """What a dry run takes `question` to do."""
    options = context.of(QuestionOptions)
    seats = len(context.seats.get("questioner", ())) or 2
    units = 1.0 if options.regions == "split" else float(seats)
    tokens = 90 * options.wanted
    calls = {"questioner": 1.0}
    return Expected(units, float(options.wanted), calls, 2 * PICTURE_TOKENS + 1500, tokens)


QUESTION = Stage(
    "question",
    QuestionRow,
    question_units,
    question_unit,
    settle=question_settled,
    roles=lambda _: ("questioner",),
    expects=question_expected,
    prompts=(questioning.PROMPT,),
)


def questions_by_picture(rows: Sequence[QuestionRow]) -> dict[str, list[QuestionRow]]:
    """Questions under the ids of their pictures, in their order."""
    found: dict[str, list[QuestionRow]] = {}
    for row in rows:
        found.setdefault(row.image_id, []).append(row)
    return found


def dedup_units(context: Context) -> Iterator[Unit]:
    """The units of work of `dedup`."""
    options = context.of(DedupOptions)
    for image_id, rows in questions_by_picture(context.rows("question", QuestionRow)).items():
        basis = [options, [[r.id, r.question, r.options, r.answer] for r in rows]]
        yield Unit(image_id, basis, rows)


def dedup_unit(context: Context, rows: Sequence[QuestionRow]) -> Flow[Made]:
    """The questions of one picture without the duplicates among them."""
    options = context.of(DedupOptions)
    texts = [embedded_text(row) for row in rows]
    if options.embeddings == EMBEDDED:
        yield []
        embedded = encoder_of(os.getpid()).embed(texts)
        vectors = np.array([embedded[text] for text in texts])
    else:
        role = context.seat(options.embeddings).role
        found = yield from ask_embeddings(texts, role=role)
        if isinstance(found, CallFailure):
            # None is handed on, and all are tried again.
            detail = {"error": found.message}
            reason = f"call_{found.kind}"
            gone = [
                Rejected(id=row.id, made_from=(row.region_id,), reason=reason, detail=detail)
                for row in rows
            ]
            return Made(rejected=tuple(gone), failure=found.kind)
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


@cache
def encoder_of(_process: int) -> Encoder:
    """The sentence encoder of one process, imported late; a fork has none of its threads."""
    from snellen.embedded.encoder import Encoder

    return Encoder(encoder_path())


def dedup_roles(context: Context) -> tuple[str, ...]:
    """The roles that `dedup` asks."""
    name = context.of(DedupOptions).embeddings
    return () if name == EMBEDDED else (name,)


def dedup_expected(context: Context) -> Expected:
    """What a dry run takes `dedup` to do."""
    # A picture has about 75 questions, of which a quarter goes; two calls of 64 texts embed them.
    calls = dict.fromkeys(dedup_roles(context), 2.0)
    return Expected(1 / 75, 58.0, calls, 40 * TEXTS_A_CALL, 0)


DEDUP = Stage(
    "dedup",
    QuestionRow,
    dedup_units,
    dedup_unit,
    roles=dedup_roles,
    expects=dedup_expected,
    is_filter=True,
)


def verify_units(context: Context) -> Iterator[Unit]:
    """The units of work of `verify`."""
    options = context.of(VerifyOptions)
    if not options.enabled:
        return
    pictures = by_id(context, "select", PictureRow)
    for row in context.rows("dedup", QuestionRow):
        picture = pictures[row.image_id]
        basis = [options, context.seed, row, picture.file.digest]
        yield Unit(row.id, basis, (row, picture))


def verify_unit(context: Context, payload: tuple[QuestionRow, PictureRow]) -> Flow[Made]:
    """What `verify` does with a unit of work."""
    row, picture = payload
    seats = context.seats["checker"]
    checkers = verifying.Checkers(seats[0].role, seats[-1].role)
    return verifying.verify(
        row, picture, checkers=checkers, options=context.of(VerifyOptions), seed=context.seed
    )


def verify_settled(context: Context, parts: Sequence[Made]) -> Made:
    """What `verify` makes of all its units."""
    if not context.of(VerifyOptions).enabled:
        return Made(context.rows("dedup", QuestionRow))
    made = joined(parts)
    counts = dict(made.counts)
    for row in made.rows:
        for flag in row.flags:
            counts[f"flag: {flag}"] = counts.get(f"flag: {flag}", 0) + 1
    return Made(made.rows, made.rejected, counts=counts)


def verify_expected(context: Context) -> Expected:
    """What a dry run takes `verify` to do."""
    options = context.of(VerifyOptions)
    if not options.enabled:
        return Expected()
    calls = options.blind_draws * (options.blind != "off") + (options.agreement != "off")
    return Expected(1.0, 1.0, {"checker": float(calls)}, 150, 2)


VERIFY = Stage(
    "verify",
    QuestionRow,
    verify_units,
    verify_unit,
    settle=verify_settled,
    roles=lambda context: ("checker",) if context.of(VerifyOptions).enabled else (),
    expects=verify_expected,
    is_filter=True,
    prompts=(verifying.BLIND, verifying.SEEN),
)
