"""The stages that deal with failures: `collect`, `induce`, `attribute` and `map`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.builders.options import ReviewOptions
from snellen.builders.perception import attributing
from snellen.builders.perception.attributing import PEOPLE, Attributors, chosen_type
from snellen.builders.perception.mapping import error_map, mixes
from snellen.builders.perception.options import (
    MOST_PICTURES,
    CollectOptions,
    PerceptionOptions,
)
from snellen.builders.perception.rows import AttributedRow, ErrorType, FailureRow, MixRow
from snellen.builders.reviewing import Settled, Task
from snellen.builders.rows import Shot
from snellen.builders.steps import Made, Rejected, Unit, joined
from snellen.construction.files import write_json
from snellen.construction.perception.statistics import AGREEMENT, MAP
from snellen.construction.picture_stages import PICTURE_TOKENS
from snellen.construction.review import put_up, state
from snellen.construction.stages import Context, Expected, Stage
from snellen.errors import DataError, ImageError, RunFolderError, UsageError
from snellen.flows import Flow
from snellen.interchange.beside import SUFFIXES, beside, bytes_of
from snellen.interchange.results import ResultFormat, find_results
from snellen.interchange.samples import ForeignSample, Picture
from snellen.keys import digest, digest_of, seed_for
from snellen.pictures.headers import kind_of
from snellen.pictures.prepare import image_from_path, open_upright

# The files of a run of ours that decide what its failures are.
RUN_FILES = ("run.json", "items.jsonl", "replies.jsonl", "verdicts.jsonl")
MISSING = "no_picture"


@dataclass(frozen=True, slots=True)
class Source:
    """A result file, the tool that wrote it, and the folders in which its pictures may lie."""

    path: Path
    format: ResultFormat
    folders: tuple[Path, ...]


def collect_units(context: Context) -> Iterator[Unit]:
    """The units of work of `collect`."""
    options = context.of(CollectOptions)
    root = Path(context.source)
    own = root if root.is_dir() else root.parent
    folders = (own, *map(Path, options.pictures))
    pictures = _listing(folders, without=context.folder)
    for path, known in find_results(root):
        name = str(path.relative_to(own))
        parts = [path.with_name(one) for one in RUN_FILES] if path.name == "run.json" else [path]
        digests = [image_from_path(one).digest for one in parts if one.is_file()]
        basis = [digests, known.name, options.wrong_below, pictures]
        yield Unit(name, basis, Source(path, known, folders))


def _listing(folders: Sequence[Path], *, without: Path) -> str:
    """What tells one state of the picture folders from another: names and sizes of their files.

    The folder of the build itself does not count.
    """
    found = [
        [number, one.relative_to(folder).as_posix(), one.stat().st_size]
        for number, folder in enumerate(dict.fromkeys(folders))
        for one in sorted(folder.rglob("*"))
        if one.suffix.lower() in (*SUFFIXES, ".tsv")
        and one.is_file()
        and not one.is_relative_to(without)
    ]
    return digest_of(found)


def collect_unit(context: Context, source: Source) -> Flow[Made]:
    """The failures of one file, with the pictures that are there."""
    yield []
    options = context.of(CollectOptions)
    name = str(source.path)
    try:
        found = list(source.format.read(source.path))
    except (DataError, RunFolderError) as error:
        gone = Rejected(id=name, reason="bad_file", detail={"error": error.message})
        return Made(rejected=(gone,))
    wrong, dropped = [], []
    counts: Counter[str] = Counter()
    for number, one in enumerate(found, 1):
        if isinstance(one, DataError):
            dropped.append(
                Rejected(id=f"{name}#{number}", made_from=(name,), reason="bad_row",
                         detail={"error": one.message})
            )  # fmt: skip
            continue
        verdict = one.is_wrong(options.wrong_below)
        counts["samples"] += 1
        counts["right" if verdict is False else "wrong" if verdict else "not scored"] += 1
        if verdict:
            wrong.append(one)
    rows, lost = _failures(context, wrong, source)
    dropped += lost
    if not rows:
        reason = "no_failure" if not wrong else "no_usable_failure"
        gone = Rejected(id=name, reason=reason, detail=dict(counts))
        return Made((), (gone,), tuple(dropped), counts=counts)
    return Made(tuple(rows), (), tuple(dropped), counts=counts)


def _failures(
    context: Context, wrong: Sequence[ForeignSample], source: Source
) -> tuple[list[FailureRow], list[Rejected]]:
    """The wrong samples that have all that attribution needs, and why the others have not."""
    bare: dict[str, set[str]] = {}
    for one in wrong:
        if not one.pictures:
            bare.setdefault(one.benchmark, set()).add(str(one.index))
    looked_up = {name: beside(name, ids, source.folders) for name, ids in bare.items()}
    rows, gone = [], []
    for one in wrong:
        pictures = one.pictures or looked_up[one.benchmark].get(str(one.index), ())
        found = _failure(context, one, pictures, source)
        if isinstance(found, Rejected):
            gone.append(found)
        else:
            rows.append(found)
    return rows, gone


def _failure(
    context: Context, one: ForeignSample, pictures: Sequence[Picture], source: Source
) -> FailureRow | Rejected:
    """A wrong sample as a row, its pictures written into the folder of the build."""
    name = digest_of([one.benchmark, one.index, one.model, one.question, one.reply])[:16]

    def reject(reason: str, **detail: object) -> Rejected:
        place = {"file": str(one.file), "row": one.row, "sample": one.id, **detail}
        return Rejected(id=name, made_from=(str(one.file),), reason=reason, detail=place)

    if not (one.reply or "").strip():
        return reject("no_reply")
    if not one.reference.strip() or not one.question.strip():
        return reject("no_reference" if one.question.strip() else "no_question")
    if not pictures:
        return reject(MISSING)
    if len(pictures) > MOST_PICTURES:
        return reject("too_many_pictures", pictures=len(pictures))
    files = []
    for picture in pictures:
        try:
            files.append(_stored(context.folder, bytes_of(picture, one, source.folders)))
        except ImageError as error:
            missing = "not there" in error.message or "outside" in error.message
            return reject(MISSING if missing else "broken_picture", error=error.message)
    return FailureRow(
        id=name,
        made_from=(str(one.file),),
        files=tuple(files),
        question=one.question,
        options=one.options,
        reference=one.reference,
        reply=(one.reply or "").strip(),
        model=one.model,
        source_bmk=one.benchmark,
        source_idx=one.index,
        file=str(one.file),
        row=one.row,
    )


def _stored(folder: Path, data: bytes) -> Shot:
    """A picture in the folder of the build, under its digest.

    Raises:
        ImageError: it is no picture that a model can be shown.
    """
    name = digest(data)
    kind = kind_of(data[:64])
    path = (
        folder / "pictures" / f"{name[:16]}.{'jpg' if kind == 'jpeg' else kind or 'bin'}"
    ).absolute()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(data)
        part.replace(path)
    open_upright(path)
    return Shot(str(path), name)


def collect_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The failures of all files, each once, at most so many a benchmark, the first so many."""
    options = context.of(CollectOptions)
    made = joined(parts)
    single: dict[str, FailureRow] = {}
    gone = list(made.dropped)
    for row in made.rows:
        if row.id in single:
            gone.append(Rejected(id=row.id, made_from=row.made_from, reason="duplicate"))
        single.setdefault(row.id, row)
    if options.per_benchmark:
        by_bmk: dict[str, list[str]] = {}
        for row in single.values():
            by_bmk.setdefault(row.source_bmk, []).append(row.id)
        keep: set[str] = set()
        for ids in by_bmk.values():
            ranked = sorted(ids, key=lambda one: seed_for(context.seed, one, "collect"))
            keep |= set(ranked[: options.per_benchmark])
        gone += (_left(row, "over_benchmark_cap") for row in single.values() if row.id not in keep)
        single = {name: row for name, row in single.items() if name in keep}
    rows = list(single.values())
    if context.limit is not None:
        gone += (_left(row, "over_limit") for row in rows[context.limit :])
        rows = rows[: context.limit]
    counts = {**made.counts, "kept_inputs": len(parts) - len(made.rejected)}
    return Made(tuple(rows), made.rejected, tuple(gone), counts=counts)


def _left(row: FailureRow, reason: str) -> Rejected:
    return Rejected(id=row.id, made_from=row.made_from, reason=reason)


def collect_expected(context: Context) -> Expected:
    """Counts the wrong samples of the files, without looking at their pictures."""
    options = context.of(CollectOptions)
    wrong: Counter[str] = Counter()
    n_files = 0
    for path, known in find_results(context.source):
        n_files += 1
        try:
            for one in known.read(path):
                if isinstance(one, ForeignSample) and one.is_wrong(options.wrong_below):
                    wrong[one.benchmark] += 1
        except (DataError, RunFolderError):
            continue
    most = options.per_benchmark or wrong.total()
    total = sum(min(n, most) for n in wrong.values())
    total = total if context.limit is None else min(total, context.limit)
    return Expected(makes=total / max(1, n_files))


COLLECT = Stage(
    "collect",
    FailureRow,
    collect_units,
    collect_unit,
    settle=collect_settled,
    expects=collect_expected,
)


def types_of(context: Context) -> tuple[ErrorType, ...]:
    """The types of errors that failures are attributed to."""
    return context.rows("induce", ErrorType)


def attributor_roles(context: Context) -> tuple[str, ...]:
    """The role `attributor`; the models must be as many as the options say.

    Raises:
        UsageError: they are not.
    """
    found, wanted = context.seats.get("attributor", ()), context.of(PerceptionOptions).attributors
    if found and len(found) != wanted:
        raise UsageError(
            f"[perception] attributors is {wanted}, and {len(found)} models attribute",
            hint="add [[roles.attributor]] tables, or set attributors",
        )
    return ("attributor",)


def attribute_roles(context: Context) -> tuple[str, ...]:
    """The roles that `attribute` asks."""
    by_arbiter = context.of(PerceptionOptions).disagreement == "arbiter"
    return (*attributor_roles(context), *(("arbiter",) if by_arbiter else ()))


def attribute_units(context: Context) -> Iterator[Unit]:
    """The units of work of `attribute`."""
    options = context.of(PerceptionOptions)
    types = [[one.id, one.definition, one.is_perceptual] for one in types_of(context)]
    shared = [digest_of(types), options.disagreement, options.reasks, context.seed]
    for row in context.rows("collect", FailureRow):
        shown = [row.question, row.options, row.reference, row.reply]
        yield Unit(row.id, [*shared, *shown, [one.digest for one in row.files]], row)


def attribute_unit(context: Context, row: FailureRow) -> Flow[Made]:
    """What `attribute` does with a unit of work."""
    options = context.of(PerceptionOptions)
    seats = context.seats["attributor"]
    attributors = Attributors(
        tuple(seat.role for seat in seats),
        tuple(seat.label for seat in seats),
        context.seat("arbiter").role if options.disagreement == "arbiter" else "",
        options,
        context.seed,
    )
    return attributing.attribute(row, types_of(context), attributors)


def attribute_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The attributed failures, those of people settled by their decisions; writes the agreement."""
    made = joined(parts)
    types = {one.id: one for one in types_of(context)}
    decided = {one.task.id: one for one in _put_up(context, made.rows)}
    rows, gone = [], list(made.rejected)
    for row in made.rows:
        found = _as_decided(row, decided.get(row.id), types)
        if isinstance(found, Rejected):
            gone.append(found)
        else:
            rows.append(found)
    by = Counter(row.decided_by for row in rows)
    report = attributing.agreement(made.rows, list(types.values()), decided=by)
    write_json(context.folder / AGREEMENT, report)
    perceptual = sum(row.is_perceptual for row in rows)
    counts = {
        **made.counts,
        **by,
        "perceptual": perceptual,
        "beyond perception": len(rows) - perceptual,
    }
    return Made(tuple(rows), tuple(gone), counts=counts)


def _put_up(context: Context, rows: Sequence[AttributedRow]) -> list[Settled]:
    """Puts the failures on which attributors differ before people."""
    failures = {row.id: row for row in context.rows("collect", FailureRow)}
    labels = [one.id for one in types_of(context)]
    tasks = []
    for row in rows:
        if row.decided_by != PEOPLE:
            continue
        failure = failures[row.id]
        said = [f"{a.attributor}: {a.type}. {a.description}" for a in row.attributions]
        shown = {"question": failure.question, "reference": failure.reference,
                 "reply": failure.reply, "attributions": said, "type": row.type,
                 "types": labels}  # fmt: skip
        seen = digest_of([failure.question, failure.reference, failure.reply, said])
        tasks.append(
            Task(
                row.id, "attribution", "", seen, shown, image=failure.files[0].digest[:16],
                pictures=failure.files, labels={"category": failure.source_bmk},
            )
        )  # fmt: skip
    if not tasks and not (context.folder / "review" / "queue.jsonl").exists():
        return []
    options = context.of(ReviewOptions)
    return put_up(context.folder, "attribution", tasks, options=options, seed=context.seed)


def _as_decided(
    row: AttributedRow, one: Settled | None, types: Mapping[str, ErrorType]
) -> AttributedRow | Rejected:
    """A failure with the type that people chose; accepting takes the first attributor's."""
    if row.decided_by != PEOPLE:
        return row
    decision = None if one is None else one.deciding
    if one is None or decision is None:
        said = {a.attributor: a.type for a in row.attributions}
        return Rejected(id=row.id, made_from=row.made_from, reason="undecided", detail=said)
    if decision.decision == "delete":
        return Rejected(id=row.id, made_from=row.made_from, reason="deleted_by_people")
    chosen = chosen_type(row.id, one.after, list(types)) if one.after else row.type
    return msgspec.structs.replace(row, type=chosen, is_perceptual=types[chosen].is_perceptual)


def attribute_waits(context: Context) -> str:
    """What people must do after `attribute`; empty for nothing."""
    if context.of(PerceptionOptions).disagreement != "people":
        return ""
    kept = {row.id for row in context.rows("attribute", AttributedRow)}
    settled = state(context.folder, "attribution")
    open_ = [one for one in settled if one.first is None and one.task.id not in kept]
    if not open_:
        return ""
    return f"{len(open_)} attributions wait for a decision in {context.folder / 'review'}"


def attribute_expected(context: Context) -> Expected:
    """What a dry run takes `attribute` to do."""
    n = float(context.of(PerceptionOptions).attributors)
    calls = {"attributor": n}
    if context.of(PerceptionOptions).disagreement == "arbiter":
        calls["arbiter"] = 0.3
    return Expected(1.0, 1.0, calls, PICTURE_TOKENS + 1400, 250)


ATTRIBUTE = Stage(
    "attribute",
    AttributedRow,
    attribute_units,
    attribute_unit,
    settle=attribute_settled,
    roles=attribute_roles,
    waits=attribute_waits,
    expects=attribute_expected,
    is_filter=True,
    prompts=(attributing.FAILURE, attributing.ATTRIBUTE, attributing.ARBITRATE),
)


def _no_units(_context: Context) -> Sequence[Unit]:
    """The units of work of `_no`."""
    return ()


def map_settled(context: Context, _parts: Sequence[Made]) -> Made:
    """How often each benchmark and model fails by each type; writes the map."""
    rows = context.rows("attribute", AttributedRow)
    found = error_map(rows, types_of(context), seed=context.seed)
    write_json(context.folder / MAP, found)
    counts = {
        "kept_inputs": len(rows), "benchmarks": len(found.benchmarks), "models": len(found.models),
    }  # fmt: skip
    return Made(mixes(rows), counts=counts)


MAP_ERRORS = Stage("map", MixRow, _no_units, settle=map_settled)
