"""The stages that make and check questions: `decompose`, `write` and `verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from snellen.builders.perception import asking, paneling
from snellen.builders.perception.asking import Author
from snellen.builders.perception.options import (
    MOST_PICTURES,
    PanelOptions,
    PerceptionOptions,
    WriteOptions,
)
from snellen.builders.perception.paneling import Panel
from snellen.builders.perception.rows import NEW, AtomicRow, AttributedRow, ErrorType, FailureRow
from snellen.builders.rows import Shot
from snellen.builders.steps import Made, Rejected, Unit, joined
from snellen.construction.perception.failure_stages import types_of
from snellen.construction.picture_stages import PICTURE_TOKENS, Offer, offered
from snellen.construction.stages import Context, Expected, Stage
from snellen.errors import UsageError
from snellen.flows import Flow
from snellen.keys import digest_of, seed_for


def _author(context: Context, role: str, unit: str) -> Author:
    """Who writes; of several models each unit has one, by a seeded draw."""
    seats = context.seats[role]
    seat = seats[seed_for(context.seed, unit, role) % len(seats)]
    return Author(seat.role, seat.label, context.of(PerceptionOptions), types_of(context))


def decompose_units(context: Context) -> Iterator[Unit]:
    """The units of work of `decompose`."""
    failures = {row.id: row for row in context.rows("collect", FailureRow)}
    options = context.of(PerceptionOptions)
    types = {one.id: one for one in types_of(context)}
    shared = [options.questions, options.max_answer_words, options.reasks, sorted(types)]
    for row in context.rows("attribute", AttributedRow):
        if row.is_perceptual:
            one = failures[row.id]
            shown = [one.question, one.options, one.reference, one.reply]
            found = [row.type, row.description, types[row.type].definition]
            digests = [file.digest for file in one.files]
            yield Unit(row.id, [*shared, *shown, *found, digests, context.seed], (one, row))


def decompose_unit(context: Context, payload: tuple[FailureRow, AttributedRow]) -> Flow[Made]:
    """What `decompose` does with a unit of work."""
    failure, row = payload
    return asking.decompose(failure, row, _author(context, "decomposer", failure.id))


def decompose_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The questions of all failures; those beyond perception are left out by name."""
    made = joined(parts)
    beyond = tuple(
        Rejected(id=row.id, made_from=(row.id,), reason="beyond_perception",
                 detail={"type": row.type})
        for row in context.rows("attribute", AttributedRow)
        if not row.is_perceptual
    )  # fmt: skip
    rows, gone = _single(made.rows)
    counts = {**made.counts, "kept_inputs": len(parts) - len(made.rejected)}
    return Made(rows, (*made.rejected, *beyond), (*made.dropped, *gone), counts=counts)


def _single(rows: Sequence[AtomicRow]) -> tuple[tuple[AtomicRow, ...], tuple[Rejected, ...]]:
    """Questions of which no two say the same about the same pictures."""
    kept: dict[tuple[object, ...], AtomicRow] = {}
    gone = []
    for row in rows:
        said = (*(file.digest for file in row.files), " ".join(row.problem.casefold().split()))
        twin = kept.setdefault(said, row)
        if twin is not row:
            detail = {"partner": twin.id}
            gone.append(
                Rejected(id=row.id, made_from=row.made_from, reason="duplicate", detail=detail)
            )
    return tuple(kept.values()), tuple(gone)


def decompose_expected(context: Context) -> Expected:
    """What a dry run takes `decompose` to do."""
    least, most = context.of(PerceptionOptions).questions
    return Expected(0.6, (least + most) / 2, {"decomposer": 1.0}, PICTURE_TOKENS + 900, 200)


DECOMPOSE = Stage(
    "decompose",
    AtomicRow,
    decompose_units,
    decompose_unit,
    settle=decompose_settled,
    roles=lambda _: ("decomposer",),
    expects=decompose_expected,
    prompts=("build_failure", asking.DECOMPOSE),
)


def quota_of(options: WriteOptions, *, decomposed: int, capabilities: int) -> int:
    """How many new questions each capability is to get.

    >>> quota_of(WriteOptions(), decomposed=60, capabilities=10)
    4
    """
    if options.quota or not capabilities:
        return options.quota
    share = options.new_share
    return ceil(round(decomposed * share / (1 - share) / capabilities, 9))


def write_units(context: Context) -> Iterator[Unit]:
    """A unit for each capability and picture that is to be tried, pictures by a seeded draw."""
    options = context.of(WriteOptions)
    if not options.pictures:
        return
    author = context.of(PerceptionOptions)
    types = [one for one in types_of(context) if one.is_perceptual]
    decomposed = len(context.rows("decompose", AtomicRow))
    wanted = quota_of(options, decomposed=decomposed, capabilities=len(types))
    groups = _pictures(context, options)
    for one in types:
        ranked = sorted(groups, key=lambda name: seed_for(context.seed, name, one.id))
        for name in ranked[: ceil(wanted * options.spare)]:
            files = groups[name]
            unit = f"{name}.{one.id}"
            basis = [[file.digest for file in files], one.definition, author.max_answer_words,
                     author.reasks, context.seed]  # fmt: skip
            yield Unit(unit, basis, (unit, files, one))


def _pictures(context: Context, options: WriteOptions) -> dict[str, tuple[Shot, ...]]:
    """The pictures that questions are written on, by name; with `grouped` a folder's together."""
    place = replace(context, source=options.pictures, limit=None)
    found: dict[str, list[Offer]] = {}
    for unit in offered(place):
        offer: Offer = unit.payload
        path = offer.candidate.path
        if offer.is_unusable or path is None:
            continue
        name = str(path.parent) if options.grouped else offer.id
        found.setdefault(name, []).append(offer)
    groups = {}
    for name, offers in found.items():
        for start in range(0, len(offers), MOST_PICTURES):
            part = offers[start : start + MOST_PICTURES]
            files = tuple(
                Shot(str(Path(str(one.candidate.path)).absolute()), one.digest) for one in part
            )
            digests = [file.digest for file in files]
            groups[name if not options.grouped else digest_of(digests)[:16]] = files
    return groups


def write_unit(context: Context, payload: tuple[str, tuple[Shot, ...], ErrorType]) -> Flow[Made]:
    """What `write` does with a unit of work."""
    unit, files, capability = payload
    return asking.write(files, unit, capability, _author(context, "writer", unit))


def write_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The questions of failures and the new ones together."""
    made = joined(parts)
    decomposed = context.rows("decompose", AtomicRow)
    rows, gone = _single((*decomposed, *made.rows))
    counts = {
        **made.counts,
        "kept_inputs": len(decomposed) + len(parts) - len(made.rejected),
        "new": sum(row.origin == NEW for row in rows),
    }
    return Made(rows, made.rejected, gone, counts=counts)


def write_roles(context: Context) -> tuple[str, ...]:
    """The roles that `write` asks."""
    return ("writer",) if context.of(WriteOptions).pictures else ()


def write_expected(context: Context) -> Expected:
    """What a dry run takes `write` to do."""
    options = context.of(WriteOptions)
    if not options.pictures:
        return Expected()
    units = options.spare * options.new_share / (1 - options.new_share)
    return Expected(units, (1 + units) / units, {"writer": 1.0}, PICTURE_TOKENS + 500, 80)


WRITE = Stage(
    "write",
    AtomicRow,
    write_units,
    write_unit,
    settle=write_settled,
    roles=write_roles,
    expects=write_expected,
    prompts=(asking.WRITE,),
)


def _rewriter(context: Context) -> str:
    """The role that rewords questions: the decomposer's, or else the writer's."""
    return "decomposer" if context.seats.get("decomposer") else "writer"


def verify_roles(context: Context) -> tuple[str, ...]:
    """The roles that `verify` asks."""
    found, least = context.seats.get("solver", ()), context.of(PanelOptions).least
    if found and len(found) < least:
        raise UsageError(
            f"stage `verify` needs a panel of at least {least} solvers, found {len(found)}",
            hint="add [[roles.solver]] tables, or lower [panel] least",
        )
    return ("solver", "judge", _rewriter(context))


def verify_units(context: Context) -> Iterator[Unit]:
    """The units of work of `verify`."""
    options = context.of(PanelOptions)
    for row in context.rows("write", AtomicRow):
        said = [row.problem, row.answer, row.hint, [file.digest for file in row.files]]
        yield Unit(row.id, [*said, options.least, options.blind, options.reasks], row)


def verify_unit(context: Context, row: AtomicRow) -> Flow[Made]:
    """What `verify` does with a unit of work."""
    seats = context.seats["solver"]
    panel = Panel(
        tuple(seat.role for seat in seats),
        tuple(seat.label for seat in seats),
        context.seat("judge").role,
        context.seat(_rewriter(context)).role,
        context.of(PanelOptions),
    )
    return paneling.verify(row, panel)


def verify_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The questions that pass the rules; another rule is applied without a call."""
    made = joined(parts)
    left = paneling.settled(made.rows, context.of(PanelOptions))
    counts = {**made.counts, **left.counts}
    return Made(left.rows, (*made.rejected, *left.rejected), counts=counts)


def verify_expected(context: Context) -> Expected:
    """What a dry run takes `verify` to do."""
    n = float(len(context.seats.get("solver", ())) or context.of(PanelOptions).least)
    calls = {"solver": 3 * n, "judge": 1.8 * n, _rewriter(context): 1.0}
    return Expected(1.0, 0.7, calls, PICTURE_TOKENS, 60)


VERIFY = Stage(
    "verify",
    AtomicRow,
    verify_units,
    verify_unit,
    settle=verify_settled,
    roles=verify_roles,
    expects=verify_expected,
    is_filter=True,
    prompts=(paneling.SOLVE, asking.REWORD, *paneling.JUDGE_PROMPTS),
)
