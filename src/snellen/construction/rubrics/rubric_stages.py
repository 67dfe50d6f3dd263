"""The stages that make and try statements: `propose`, `ground` and `trial`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from snellen.builders.rubrics import proposing, trial
from snellen.builders.rubrics.checks import check, gated
from snellen.builders.rubrics.options import PoolOptions, RubricsOptions
from snellen.builders.rubrics.proposing import Proposer
from snellen.builders.rubrics.rows import (
    EASY_WRONG,
    MUST_RIGHT,
    Audit,
    GoldenRow,
    PoolRow,
    RubricKind,
    RubricRow,
)
from snellen.builders.steps import Made, Rejected, Unit, joined
from snellen.construction.picture_stages import PICTURE_TOKENS
from snellen.construction.stages import Context, Expected, Stage
from snellen.flows import Flow
from snellen.keys import seed_for

Subject = tuple[GoldenRow, PoolRow, RubricKind]
JUDGE_PROMPTS = ("rubric_judge", "remind_assessment")


def golden_rows(context: Context) -> dict[str, GoldenRow]:
    """The golden captions by picture."""
    return {row.id: row for row in context.rows("golden", GoldenRow)}


def _pooled(context: Context) -> Iterator[Unit]:
    """Two units a picture, one a stream."""
    captions, options = golden_rows(context), context.of(RubricsOptions)
    for pool in context.rows("pool", PoolRow):
        row = captions[pool.id]
        shared = [row.caption, row.domain, options.max_words, options.reasks, context.seed]
        must = [*shared, row.file.digest, options.must_right]
        easy = [*shared, options.frequent, [[one.model, one.text] for one in pool.predictions]]
        yield Unit(f"{row.id}.must", must, (row, pool, MUST_RIGHT))
        yield Unit(f"{row.id}.easy", easy, (row, pool, EASY_WRONG))


def _propose(context: Context, subject: Subject) -> Flow[Made]:
    """One stream of one picture; of several proposers each picture has one, by a seeded draw."""
    row, pool, kind = subject
    seats = context.seats["proposer"]
    seat = seats[seed_for(context.seed, row.id, "proposer") % len(seats)]
    proposer = Proposer(seat.role, seat.label, context.of(RubricsOptions), context.seed)
    if kind == MUST_RIGHT:
        return proposing.propose_must_right(row, proposer)
    return proposing.propose_easy_wrong(row, pool.predictions, proposer)


def _proposed(context: Context, parts: Sequence[Made]) -> Made:
    """The statements that pass the checks by code; a picture without a gate is left out."""
    max_words = context.of(RubricsOptions).max_words
    made = joined(parts)
    lost = {one.id: one for one in reversed(made.rejected)}
    by_image: dict[str, list[RubricRow]] = {}
    for row in made.rows:
        by_image.setdefault(row.image_id, []).append(row)
    rows: list[RubricRow] = []
    gone: list[Rejected] = []
    dropped = list(made.dropped)
    for pool in context.rows("pool", PoolRow):
        if pool.id in lost:
            gone.append(lost[pool.id])
            continue
        checked = check(by_image.get(pool.id, ()), max_words=max_words)
        dropped += checked.dropped
        left = gated(checked.rows)
        rows += left.rows
        dropped += left.rejected
        if not left.rows:
            gone.append(Rejected(id=pool.id, made_from=(pool.id,), reason="no_must_right"))
    return Made(tuple(rows), tuple(gone), tuple(dropped), counts=_streams(made.counts, rows))


def _streams(counts: Any, rows: Sequence[RubricRow]) -> dict[str, int]:
    """Counts, with how many statements each stream has."""
    return {
        **counts,
        "Must-Right": sum(row.kind == MUST_RIGHT for row in rows),
        "Easy-Wrong": sum(row.kind == EASY_WRONG for row in rows),
    }


PROPOSE = Stage(
    "propose",
    RubricRow,
    _pooled,
    _propose,
    settle=_proposed,
    roles=lambda _: ("proposer",),
    expects=lambda _: Expected(2.0, 5.0, {"proposer": 1.0}, PICTURE_TOKENS + 4000, 350),
    prompts=(proposing.MUST_PROMPT, proposing.EASY_PROMPT, *proposing.FOCUS.values()),
)


def _must_right(context: Context) -> Iterator[Unit]:
    captions, reasks = golden_rows(context), context.of(RubricsOptions).reasks
    for row in context.rows("propose", RubricRow):
        if row.kind == MUST_RIGHT:
            golden = captions[row.image_id]
            yield Unit(
                row.id, [msgspec.to_builtins(row), golden.caption, golden.file.digest, reasks],
                (row, golden),
            )  # fmt: skip


def _ground(context: Context, payload: tuple[RubricRow, GoldenRow]) -> Flow[Made]:
    reasks = context.of(RubricsOptions).reasks
    return proposing.ground(*payload, role=context.seat("grounder").role, reasks=reasks)


def _grounded(context: Context, parts: Sequence[Made]) -> Made:
    """Must-Right statements that are grounded, and the Easy-Wrong ones beside them."""
    made = joined(parts)
    grounded = {row.id for row in made.rows}
    rows = [
        row
        for row in context.rows("propose", RubricRow)
        if row.kind == EASY_WRONG or row.id in grounded
    ]
    left = gated(rows)
    counts = _streams(made.counts, left.rows)
    return Made(left.rows, (*made.rejected, *left.rejected), counts=counts)


GROUND = Stage(
    "ground",
    RubricRow,
    _must_right,
    _ground,
    settle=_grounded,
    roles=lambda _: ("grounder",),
    expects=lambda _: Expected(0.4, 2.3, {"grounder": 1.0}, PICTURE_TOKENS + 1200, 20),
    is_filter=True,
    prompts=(proposing.GROUND_PROMPT,),
)


def _captions(context: Context) -> Iterator[Unit]:
    """A unit for each golden caption and each prediction of a picture with statements."""
    captions = golden_rows(context)
    pools = {row.id: row for row in context.rows("pool", PoolRow)}
    by_image: dict[str, list[RubricRow]] = {}
    for row in context.rows("ground", RubricRow):
        by_image.setdefault(row.image_id, []).append(row)
    for image_id, rows in by_image.items():
        texts = [("", captions[image_id].caption)]
        texts += [(one.model, one.text) for one in pools[image_id].predictions]
        asked = [[row.id, row.kind, row.text] for row in rows]
        for source, text in texts:
            name = f"{image_id}.{source}" if source else f"{image_id}/golden"
            yield Unit(name, [source, text, asked], (name, source, text, rows))


def _audit(context: Context, payload: tuple[str, str, str, list[RubricRow]]) -> Flow[Made]:
    unit, source, text, rows = payload
    role = context.seat("judge").role
    return trial.audit(text, rows, unit=unit, source=source, role=role)


def _tried(context: Context, parts: Sequence[Made]) -> Made:
    made = joined(parts)
    found = trial.settle_trial(context.rows("ground", RubricRow), made.rows)
    counts = {**made.counts, **_streams(found.counts, found.rows)}
    if failed := sum(bool(one.source and one.reason) for one in made.rows):
        counts["predictions without verdicts"] = failed
    return Made(found.rows, found.rejected, counts=counts)


def _expected_audits(context: Context) -> Expected:
    # A picture has about ten statements, and is judged once for each caption.
    captions = context.of(PoolOptions).size + 1
    return Expected(captions / 10, 9.0 / captions, {"judge": 1.0}, 1500, 120)


TRIAL = Stage(
    "trial",
    RubricRow,
    _captions,
    _audit,
    settle=_tried,
    roles=lambda _: ("judge",),
    expects=_expected_audits,
    is_filter=True,
    part=Audit,
    prompts=JUDGE_PROMPTS,
)
