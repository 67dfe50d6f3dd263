"""The stages that make and try statements: `propose`, `ground` and `trial`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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


def propose_units(context: Context) -> Iterator[Unit]:
    """Two units a picture, one a stream."""
    captions, options = golden_rows(context), context.of(RubricsOptions)
    for pool in context.rows("pool", PoolRow):
        row = captions[pool.id]
        shared = [row.caption, row.domain, options.max_words, options.reasks, context.seed]
        must = [*shared, row.file.digest, options.must_right]
        easy = [*shared, options.frequent, [[one.model, one.text] for one in pool.predictions]]
        yield Unit(f"{row.id}.must", must, (row, pool, MUST_RIGHT))
        yield Unit(f"{row.id}.easy", easy, (row, pool, EASY_WRONG))


def propose_unit(context: Context, subject: Subject) -> Flow[Made]:
    """One stream of one picture; of several proposers each picture has one, by a seeded draw."""
    row, pool, kind = subject
    seats = context.seats["proposer"]
    seat = seats[seed_for(context.seed, row.id, "proposer") % len(seats)]
    proposer = Proposer(seat.role, seat.label, context.of(RubricsOptions), context.seed)
    if kind == MUST_RIGHT:
        return proposing.propose_must_right(row, proposer)
    return proposing.propose_easy_wrong(row, pool.predictions, proposer)


def propose_settled(context: Context, parts: Sequence[Made]) -> Made:
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


def _streams(counts: Mapping[str, int], rows: Sequence[RubricRow]) -> dict[str, int]:
    """Counts, with how many statements each stream has."""
    return {
        **counts,
        "Must-Right": sum(row.kind == MUST_RIGHT for row in rows),
        "Easy-Wrong": sum(row.kind == EASY_WRONG for row in rows),
    }


PROPOSE = Stage(
    "propose",
    RubricRow,
    propose_units,
    propose_unit,
    settle=propose_settled,
    roles=lambda _: ("proposer",),
    expects=lambda _: Expected(2.0, 5.0, {"proposer": 1.0}, PICTURE_TOKENS + 4000, 350),
    prompts=(proposing.MUST_PROMPT, proposing.EASY_PROMPT, *proposing.FOCUS.values()),
)


def ground_units(context: Context) -> Iterator[Unit]:
    """The units of work of `ground`."""
    captions, reasks = golden_rows(context), context.of(RubricsOptions).reasks
    for row in context.rows("propose", RubricRow):
        if row.kind == MUST_RIGHT:
            golden = captions[row.image_id]
            yield Unit(
                row.id, [msgspec.to_builtins(row), golden.caption, golden.file.digest, reasks],
                (row, golden),
            )  # fmt: skip


def ground_unit(context: Context, payload: tuple[RubricRow, GoldenRow]) -> Flow[Made]:
    """What `ground` does with a unit of work."""
    reasks = context.of(RubricsOptions).reasks
    return proposing.ground(*payload, role=context.seat("grounder").role, reasks=reasks)


def ground_settled(context: Context, parts: Sequence[Made]) -> Made:
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
    ground_units,
    ground_unit,
    settle=ground_settled,
    roles=lambda _: ("grounder",),
    expects=lambda _: Expected(0.4, 2.3, {"grounder": 1.0}, PICTURE_TOKENS + 1200, 20),
    is_filter=True,
    prompts=(proposing.GROUND_PROMPT,),
)


def trial_units(context: Context) -> Iterator[Unit]:
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


def trial_unit(context: Context, payload: tuple[str, str, str, list[RubricRow]]) -> Flow[Made]:
    """What `trial` does with a unit of work."""
    unit, source, text, rows = payload
    role = context.seat("judge").role
    return trial.audit(text, rows, unit=unit, source=source, role=role)


def trial_settled(context: Context, parts: Sequence[Made]) -> Made:
    """What `trial` makes of all its units."""
    made = joined(parts)
    found = trial.settle_trial(context.rows("ground", RubricRow), made.rows)
    counts = {**made.counts, **_streams(found.counts, found.rows)}
    if failed := sum(bool(one.source and one.reason) for one in made.rows):
        counts["predictions without verdicts"] = failed
    return Made(found.rows, found.rejected, counts=counts)


def trial_expected(context: Context) -> Expected:
    """What a dry run takes `trial` to do."""
    # A picture has about ten statements, and is judged once for each caption.
    captions = context.of(PoolOptions).size + 1
    return Expected(captions / 10, 9.0 / captions, {"judge": 1.0}, 1500, 120)


TRIAL = Stage(
    "trial",
    RubricRow,
    trial_units,
    trial_unit,
    settle=trial_settled,
    roles=lambda _: ("judge",),
    expects=trial_expected,
    is_filter=True,
    part=Audit,
    prompts=JUDGE_PROMPTS,
)
