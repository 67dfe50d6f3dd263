"""The stages that choose pictures and have them described: `curate`, `golden` and `pool`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from snellen.builders.likeness import without_copies
from snellen.builders.reviewing import Task
from snellen.builders.rows import Shot
from snellen.builders.rubrics import curating, golden
from snellen.builders.rubrics.discards import discard_report
from snellen.builders.rubrics.golden import LEAST_AUTHORS, Circle
from snellen.builders.rubrics.options import (
    BY_FOLDER,
    BY_MODEL,
    CurateOptions,
    GoldenOptions,
    PoolOptions,
)
from snellen.builders.rubrics.rows import GoldenRow, PeerReview, PoolRow, Prediction, ScoredRow
from snellen.builders.steps import Made, Rejected, Unit, asked_again, is_failed, joined, undone
from snellen.construction.files import write_json, write_lines
from snellen.construction.picture_stages import PICTURE_TOKENS, Offer, offered, opened_offer
from snellen.construction.review import Reviewed, review_rows, state
from snellen.construction.rubrics.statistics import DISCARDS, THRESHOLDS
from snellen.construction.stages import Context, Expected, Seat, Stage
from snellen.errors import UsageError
from snellen.flows import Flow, ask_until
from snellen.keys import digest_of
from snellen.pictures.quality import fingerprint
from snellen.readers.replies import load_replies
from snellen.records import Message, Request
from snellen.templates import bundled

POOL_PROMPT = "describe_rubric"
PEER_REVIEW = "peer_review.jsonl"


def curate_units(context: Context) -> Iterator[Unit]:
    """The units of work of `curate`."""
    options = context.of(CurateOptions)
    basis = [options.domain, options.min_pixels, options.reasks]
    for unit in offered(context, by_folder=options.domain == BY_FOLDER):
        yield Unit(unit.id, [*basis, *unit.basis], unit.payload)


def curate_unit(context: Context, offer: Offer) -> Flow[Made]:
    """Looks at one picture, then has it scored and placed in a domain."""
    options, seat = context.of(CurateOptions), context.seat("scorer")
    opened = opened_offer(offer)
    if isinstance(opened, Rejected):
        return Made(rejected=(opened,))
    path, pixels = opened
    size = pixels.width * pixels.height
    if size < options.min_pixels:
        return Made(rejected=(offer.rejected("low_resolution", pixels=size),))
    domain = options.domain
    if domain == BY_FOLDER:
        folders = offer.candidate.labels
        domain = curating.domain_of_folders(folders) or ""
        if not domain:
            return Made(rejected=(offer.rejected("no_domain", folders=list(folders)),))
    shot = Shot(str(path), offer.digest)
    image, role = shot.image(offer.candidate.name), seat.role
    asked: list[Flow[Any]] = [curating.score(image, role=role, reasks=options.reasks)]
    if domain == BY_MODEL:
        asked.append(curating.place(image, role=role, reasks=options.reasks))
    answers = yield asked
    lost = sorted((one for one in answers if one.value is None), key=lambda one: not is_failed(one))
    if lost:
        return undone(lost[0], offer.id, made_from=(offer.candidate.name,))
    scores = answers[0].value
    row = ScoredRow(
        id=offer.id,
        made_from=(offer.candidate.name,),
        name=offer.candidate.name,
        file=shot,
        width=pixels.width,
        height=pixels.height,
        fingerprint=fingerprint(pixels),
        domain=answers[-1].value if domain == BY_MODEL else domain,
        complexity=scores.complexity,
        informativeness=scores.informativeness,
        reasons=scores.reasons,
    )
    again = joined(Made(counts=asked_again(one)) for one in answers)
    return Made((row,), counts=again.counts)


def curate_settled(context: Context, parts: Sequence[Made]) -> Made:
    """Copies out, then the pictures that reach their domain's threshold."""
    options = context.of(CurateOptions)
    made = joined(parts)
    single, copies = without_copies(made.rows, options.max_distance)
    thresholds = curating.thresholds_for(single, options)
    write_json(context.folder / THRESHOLDS, thresholds)
    left = curating.above(single, thresholds)
    counts = {**made.counts, **{f"threshold of {t.domain}": t.threshold for t in thresholds}}
    return Made(left.rows, (*made.rejected, *copies, *left.rejected), counts=counts)


def curate_expected(context: Context) -> Expected:
    """What a dry run takes `curate` to do."""
    calls = 2.0 if context.of(CurateOptions).domain == BY_MODEL else 1.0
    return Expected(1.0, 0.6, {"scorer": calls}, PICTURE_TOKENS + 300, 120)


CURATE = Stage(
    "curate",
    ScoredRow,
    curate_units,
    curate_unit,
    settle=curate_settled,
    roles=lambda _: ("scorer",),
    expects=curate_expected,
    is_filter=True,
    prompts=(curating.SCORE, curating.DOMAIN),
)


def golden_roles(context: Context) -> tuple[str, ...]:
    """The roles that `golden` asks."""
    found = context.seats.get("author", ())
    if 0 < len(found) < LEAST_AUTHORS:
        raise UsageError(
            f"stage `golden` needs at least {LEAST_AUTHORS} authors, found {len(found)}",
            hint="add further [[roles.author]] tables to build.toml",
        )
    return ("author",)


def golden_units(context: Context) -> Iterator[Unit]:
    """The units of work of `golden`."""
    options = replace(context.of(GoldenOptions), manual=False)
    for row in context.rows("curate", ScoredRow):
        yield Unit(row.id, [row.file.digest, options, context.seed], row)


def golden_unit(context: Context, row: ScoredRow) -> Flow[Made]:
    """What `golden` does with a unit of work."""
    seats = context.seats["author"]
    circle = Circle(
        tuple(seat.role for seat in seats),
        tuple(seat.label for seat in seats),
        context.of(GoldenOptions),
        context.seed,
    )
    return golden.peer_review(row, circle)


def golden_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The captions that authors agreed on, less what people delete; all reviews are written."""
    made = joined(parts)
    reviews: tuple[PeerReview, ...] = made.rows
    write_lines(context.folder / PEER_REVIEW, reviews)
    scored = {row.id: row for row in context.rows("curate", ScoredRow)}
    divided = tuple(
        Rejected(
            id=one.id,
            made_from=one.made_from,
            reason="no_unanimity",
            detail={
                "domain": scored[one.id].domain,
                "first_choices": [[one.authors[k] for k in each.firsts] for each in one.rounds],
            },
        )
        for one in reviews
        if one.agreed is None
    )
    rows = [
        golden_row(scored[one.id], one, one.agreed) for one in reviews if one.agreed is not None
    ]
    pictures = [scored[one.id] for one in reviews]
    report = discard_report(pictures, {one.id for one in divided}, seed=context.seed)
    write_json(context.folder / DISCARDS, report)
    how: Reviewed[GoldenRow] = Reviewed(
        "caption", caption_task, lambda row, after: replace(row, caption=after["caption"])
    )
    left = review_rows(context, rows, how)
    # How many pictures of each domain and band of complexity were discarded.
    bands = {f"{band} complexity": group for band, group in report.complexity.items()}
    groups = {**report.domains, **bands}
    discarded = {f"discarded of {name}": g.discarded for name, g in groups.items() if g.discarded}
    counts = {**made.counts, **discarded}
    for number in range(1, context.of(GoldenOptions).rounds + 1):
        counts[f"agreed in round {number}"] = sum(row.round == number for row in rows)
    counts |= {f"captions {name}": n for name, n in left.counts.items() if n}
    return Made(left.rows, (*made.rejected, *divided, *left.rejected), counts=counts)


def golden_row(picture: ScoredRow, review: PeerReview, agreed: int) -> GoldenRow:
    """A picture with the candidate of the last round that all jurors put first."""
    return GoldenRow(
        id=picture.id,
        made_from=(picture.id,),
        name=picture.name,
        file=picture.file,
        domain=picture.domain,
        complexity=picture.complexity,
        informativeness=picture.informativeness,
        caption=review.rounds[-1].candidates[agreed],
        author=review.authors[agreed],
        authors=review.authors,
        round=len(review.rounds),
    )


def caption_task(row: GoldenRow) -> Task:
    """A golden caption under review, beside its picture."""
    shown = {"name": row.name, "caption": row.caption}
    return Task(
        row.id, "caption", "", digest_of(shown), shown,
        image=row.id, pictures=(row.file,), labels={"category": row.domain},
    )  # fmt: skip


def golden_waits(context: Context) -> str:
    """What people must do after `golden`; empty for nothing."""
    if not context.of(GoldenOptions).manual:
        return ""
    open_ = [one for one in state(context.folder, "caption") if one.first is None]
    if not open_:
        return ""
    return f"{len(open_)} golden captions wait for a decision in {context.folder / 'review'}"


def golden_expected(context: Context) -> Expected:
    """What a dry run takes `golden` to do."""
    n = len(context.seats.get("author", ())) or LEAST_AUTHORS
    return Expected(1.0, 0.7, {"author": 4.0 * n}, PICTURE_TOKENS + 400 * n, 700)


GOLDEN = Stage(
    "golden",
    GoldenRow,
    golden_units,
    golden_unit,
    settle=golden_settled,
    roles=golden_roles,
    waits=golden_waits,
    expects=golden_expected,
    is_filter=True,
    part=PeerReview,
    prompts=(golden.DRAFT, golden.VOTE, golden.REWRITE),
)


def pool_roles(context: Context) -> tuple[str, ...]:
    """The pool's role, unless runs make the whole pool; the sizes must agree."""
    options = context.of(PoolOptions)
    seats = context.seats.get("pool", ())
    names = [*(seat.label for seat in seats), *map(_model_of, options.runs)]
    n = len(names)
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"two predictors of the pool are called {twice[0]}",
            hint="rename the run's folder or file: statements name the models that err",
        )
    if n and n != options.size:
        raise UsageError(
            f"the pool has {n} models (roles and runs), and [pool] size is {options.size}",
            hint=f"add [[roles.pool]] tables or runs, or set size = {n}",
        )
    return () if options.runs and not seats else ("pool",)


def pool_units(context: Context) -> Iterator[Unit]:
    """The units of work of `pool`."""
    reasks = context.of(PoolOptions).reasks
    for row in context.rows("golden", GoldenRow):
        for seat in context.seats.get("pool", ()):
            # A model's predictions stay, whoever else is in the pool.
            yield Unit(f"{row.id}.{seat.label}", [row.file.digest, reasks], (row, seat))


def pool_unit(context: Context, payload: tuple[GoldenRow, Seat]) -> Flow[Made]:
    """What `pool` does with a unit of work."""
    row, seat = payload
    image = row.file.image(row.name)
    message = Message("user", (image, bundled(POOL_PROMPT).text))
    name = f"{row.id}.{seat.label}"
    reasks = context.of(PoolOptions).reasks
    asked = yield from ask_until(
        Request(seat.role, (message,), "prediction"), golden.caption_in, reasks=reasks
    )
    if asked.value is None:
        return undone(asked, name, made_from=(row.id,))
    found = Prediction(
        id=name, made_from=(row.id,), image_id=row.id, model=seat.label, text=asked.value
    )
    return Made((found,), counts=asked_again(asked))


def pool_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The predictions of each picture; a picture with less than half of the pool is left out."""
    options = context.of(PoolOptions)
    made = joined(parts)
    by_image: dict[str, list[Prediction]] = {}
    for one in (*made.rows, *_from_runs(context)):
        by_image.setdefault(one.image_id, []).append(one)
    rows, gone = [], []
    for row in context.rows("golden", GoldenRow):
        found = by_image.get(row.id, [])
        if 2 * len(found) < options.size:
            detail = {"predictions": len(found), "size": options.size}
            gone.append(Rejected(id=row.id, made_from=(row.id,), reason="thin_pool", detail=detail))
        else:
            rows.append(PoolRow(id=row.id, made_from=(row.id,), predictions=tuple(found)))
    counts = {**made.counts, "predictions": sum(len(row.predictions) for row in rows)}
    return Made(tuple(rows), tuple(gone), made.rejected, counts=counts)


def _from_runs(context: Context) -> Iterator[Prediction]:
    """Predictions that exist: of runs, under the ids of this build or the names of the pictures."""
    for place in context.of(PoolOptions).runs:
        path, model = Path(place), _model_of(place)
        replies = load_replies(path / "replies.jsonl" if path.is_dir() else path)
        for row in context.rows("golden", GoldenRow):
            names = (row.id, row.name, Path(row.name).name, Path(row.name).stem)
            text = next((replies[name] for name in names if replies.get(name, "").strip()), None)
            if text is not None:
                yield Prediction(
                    id=f"{row.id}.{model}",
                    made_from=(row.id,),
                    image_id=row.id,
                    model=model,
                    text=text,
                )


def _model_of(run: str) -> str:
    """The name that a run's predictions go by: that of its folder, or of its file."""
    path = Path(run)
    return path.stem if path.suffix in (".json", ".jsonl") else path.name


def pool_expected(context: Context) -> Expected:
    """What a dry run takes `pool` to do."""
    n = len(context.seats.get("pool", ()))
    if not n:
        return Expected(0.0, 1.0)
    return Expected(n, 1.0 / n, {"pool": 1.0}, PICTURE_TOKENS + 30, 500)


POOL = Stage(
    "pool",
    PoolRow,
    pool_units,
    pool_unit,
    settle=pool_settled,
    roles=pool_roles,
    expects=pool_expected,
    is_filter=True,
    part=Prediction,
    prompts=(POOL_PROMPT,),
)
