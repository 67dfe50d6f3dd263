"""The stages that deal with pictures: `select` and `segment`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from snellen.builders.likeness import without_copies
from snellen.builders.options import ReviewOptions, SegmentOptions, SelectOptions
from snellen.builders.reviewing import Task
from snellen.builders.rows import Label, PictureRow, RegionRow, Shot
from snellen.builders.steps import Made, Rejected, Unit, asked_again, joined, undone
from snellen.builders.taxonomy import MATCH_PROMPT, Taxonomy, coverage, match, sample_by_domain
from snellen.construction.review import put_up, state
from snellen.construction.stages import Context, Expected, Stage
from snellen.errors import DataError, ImageError
from snellen.flows import Flow
from snellen.keys import digest_of
from snellen.pictures.masks import encode_mask
from snellen.pictures.prepare import image_from_path, open_upright
from snellen.pictures.quality import fingerprint, quality_of
from snellen.readers import taxonomy as built_in
from snellen.segment.find import Segmenter, pixels_of
from snellen.segment.regions import box_of, choose, covered
from snellen.segment.views import save_view, view_of
from snellen.sources.candidates import Candidate
from snellen.sources.listed import read_json
from snellen.sources.scan import scan

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

PICTURE_TOKENS = 1200


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate under its id; `first` is the id of an equal file before it."""

    candidate: Candidate
    id: str = ""
    digest: str = ""
    first: str = ""
    fault: str = ""

    @property
    def is_unusable(self) -> bool:
        """Whether the file is absent, broken, or equal to an earlier one."""
        return bool(self.candidate.path is None or self.fault or self.first)

    def rejected(self, reason: str, **detail: object) -> Rejected:
        """The rejection of this candidate."""
        return Rejected(id=self.id, made_from=(self.candidate.name,), reason=reason, detail=detail)


def taxonomy_of(options: SelectOptions) -> Taxonomy:
    """The taxonomy of a configuration: the built-in one, or a file's.

    Raises:
        DataError: the file is no object of lists.
    """
    if not options.taxonomy:
        return built_in()
    try:
        return msgspec.convert(read_json(Path(options.taxonomy)), dict[str, tuple[str, ...]])
    except msgspec.ValidationError as error:
        raise DataError(
            f"is no taxonomy: {error}", file=options.taxonomy,
            hint='write {"Domain": ["Sub-domain", ...], ...}',
        ) from error  # fmt: skip


def offered(context: Context, *, by_folder: bool = False) -> Iterator[Unit]:
    """The pictures of the source under their ids; the basis is all that a stage sees of them.

    With `by_folder` the names of the folders above a picture are a part of that.
    """
    seen: dict[str, int] = {}
    for number, candidate in enumerate(scan(context.source, keep_in=context.folder / "pictures")):
        if context.limit is not None and number >= context.limit:
            return
        offer = Offer(candidate, fault="absent")
        if candidate.path is not None:
            try:
                offer = Offer(candidate, digest=image_from_path(candidate.path).digest)
            except ImageError as error:
                offer = Offer(candidate, fault=error.message)
        name = offer.digest[:16] or f"absent-{digest_of(candidate.name)[:16]}"
        copies = seen.get(name, 0)
        seen[name] = copies + 1
        if copies:
            offer = replace(offer, id=f"{name}~{copies + 1}", first=name)
        else:
            offer = replace(offer, id=name)
        own = [offer.digest, offer.first, candidate.name, candidate.tags]
        own += [candidate.labels] if by_folder else []
        yield Unit(offer.id, own, offer)


def select_units(context: Context) -> Iterator[Unit]:
    """The units of work of `select`."""
    options = context.of(SelectOptions)
    basis: list[object] = [
        msgspec.structs.replace(options, per_l1=0, manual=False, max_distance=0, thin=1)
    ]
    if options.labels != "none":
        basis += [digest_of(taxonomy_of(options))]
    for unit in offered(context, by_folder=options.labels == "folder"):
        yield replace(unit, basis=[*basis, *unit.basis])


def opened_offer(offer: Offer) -> tuple[Path, Pixels] | Rejected:
    """The file of a candidate and its upright picture, or why there is none."""
    found = offer.candidate.path
    if found is None or offer.fault:
        return offer.rejected("absent" if found is None else "broken", error=offer.fault)
    if offer.first:
        return offer.rejected("identical", partner=offer.first)
    path = Path(os.path.abspath(found))
    try:
        return path, open_upright(path)
    except ImageError as error:
        return offer.rejected("broken", error=error.message)


def select_unit(context: Context, offer: Offer) -> Flow[Made]:
    """Looks at one picture: its quality first, then its labels."""
    options, candidate = context.of(SelectOptions), offer.candidate

    def reject(reason: str, **detail: object) -> Made:
        return Made(rejected=(offer.rejected(reason, **detail),))

    tag = max(candidate.tags.values(), default=1.0)
    if tag < options.min_tag_confidence and not offer.is_unusable:
        return reject("low_tag_confidence", confidence=tag)
    opened = opened_offer(offer)
    if isinstance(opened, Rejected):
        return Made(rejected=(opened,))
    path, pixels = opened
    found = quality_of(pixels)
    for reason, fails in (
        ("low_resolution", found.pixels < options.min_pixels),
        ("blurred", found.sharpness < options.min_sharpness),
        ("dark", found.brightness < options.darkest),
        ("bright", found.brightness > options.brightest),
    ):
        if fails:
            return reject(reason, **msgspec.to_builtins(found))
    row = PictureRow(
        id=offer.id,
        made_from=(candidate.name,),
        name=candidate.name,
        file=Shot(str(path), offer.digest),
        width=pixels.width,
        height=pixels.height,
        quality={"sharpness": found.sharpness, "brightness": found.brightness, "tag": tag},
        fingerprint=fingerprint(pixels),
    )
    return (yield from _label(context, row, candidate))


def _label(context: Context, row: PictureRow, candidate: Candidate) -> Flow[Made]:
    options = context.of(SelectOptions)
    if options.labels == "none":
        return Made((row,))
    taxonomy = taxonomy_of(options)
    if options.labels == "folder":
        # Labels from two folders' names; a sub-domain alone may stand under several domains.
        domain, sub = (name.casefold() for name in candidate.labels)
        pairs = [(l1, l2) for l1, subs in taxonomy.items() for l2 in subs]
        exact = [p for p in pairs if p[0].casefold() == domain and p[1].casefold() == sub]
        labels = tuple(Label(*p) for p in exact or [p for p in pairs if p[1].casefold() == sub])
        if labels:
            return Made((msgspec.structs.replace(row, labels=labels),))
        detail = {"folders": list(candidate.labels)}
        gone = Rejected(id=row.id, made_from=row.made_from, reason="no_label", detail=detail)
        return Made(rejected=(gone,))
    seat = context.seat("matcher")
    matched = yield from match(
        row.file.image(row.name), taxonomy, role=seat.role, least=options.min_confidence
    )
    if matched.asked.value is None:
        return undone(matched.asked, row.id, made_from=row.made_from)
    counts = asked_again(matched.asked)
    if matched.reason:
        gone = Rejected(id=row.id, made_from=row.made_from, reason=matched.reason)
        return Made(rejected=(gone,), counts=counts)
    return Made((msgspec.structs.replace(row, labels=matched.labels),), counts=counts)


def select_settled(context: Context, parts: Sequence[Made]) -> Made:
    """Copies out, then a balanced sample, then what people said."""
    options = context.of(SelectOptions)
    made = joined(parts)
    single, copies = without_copies(made.rows, options.max_distance)
    kept, over = sample_by_domain(single, options.per_l1, seed=context.seed)
    counts = dict(made.counts)
    gone: tuple[Rejected, ...] = ()
    if options.manual:
        kept, gone = _reviewed(context, kept)
    if options.labels != "none":
        found = coverage(kept, taxonomy_of(options))
        counts["thin_domains"] = len(found.thin(options.thin))
        counts["empty_domains"] = len(found.thin(1))
        counts["empty_subdomains"] = len(found.empty_pairs)
    return Made(kept, (*made.rejected, *copies, *over, *gone), counts=counts)


def _reviewed(
    context: Context, rows: Sequence[PictureRow]
) -> tuple[tuple[PictureRow, ...], tuple[Rejected, ...]]:
    """The pictures that nobody has refused; one failed criterion removes a picture."""
    tasks = []
    for row in rows:
        shown = {
            "name": row.name,
            "labels": [[label.l1, label.l2] for label in row.labels],
        }
        tasks.append(
            Task(row.id, "picture", "", digest_of(shown), shown, image=row.id, pictures=(row.file,))
        )
    options = context.of(ReviewOptions)
    settled = put_up(context.folder, "picture", tasks, options=options, seed=context.seed)
    refused = {
        one.task.id: one.deciding
        for one in settled
        if one.deciding is not None and (one.deciding.decision == "delete" or one.deciding.reasons)
    }
    gone = tuple(
        Rejected(id=row.id, made_from=row.made_from, reason="refused_by_people",
                 detail={"criteria": list(refused[row.id].reasons)})
        for row in rows if row.id in refused
    )  # fmt: skip
    return tuple(row for row in rows if row.id not in refused), gone


def select_waits(context: Context) -> str:
    """What people must do after `select`; empty for nothing."""
    if not context.of(SelectOptions).manual:
        return ""
    open_ = [one for one in state(context.folder, "picture") if one.first is None]
    if not open_:
        return ""
    return f"{len(open_)} pictures wait for a decision in {context.folder / 'review'}"


def select_roles(context: Context) -> tuple[str, ...]:
    """The roles that `select` asks."""
    return ("matcher",) if context.of(SelectOptions).labels == "match" else ()


def select_expected(context: Context) -> Expected:
    """What a dry run takes `select` to do."""
    calls = {"matcher": 2.5} if select_roles(context) else {}
    return Expected(1.0, 1.0, calls, PICTURE_TOKENS + 200, 60)


SELECT = Stage(
    "select",
    PictureRow,
    select_units,
    select_unit,
    settle=select_settled,
    roles=select_roles,
    waits=select_waits,
    expects=select_expected,
    is_filter=True,
    prompts=(MATCH_PROMPT,),
)


def segment_units(context: Context) -> Iterator[Unit]:
    """The units of work of `segment`."""
    options = context.of(SegmentOptions)
    finder = Segmenter(options)
    context.tools["segmenter"] = finder
    for picture in context.rows("select", PictureRow):
        yield Unit(picture.id, [picture.id, options, finder.basis(picture)], picture)


def segment_prepared(context: Context, todo: Sequence[Unit]) -> None:
    """Gets ready what the units of `segment` share."""
    context.tools["segmenter"].waiting = {unit.id: unit.payload for unit in todo}


def segment_unit(context: Context, picture: PictureRow) -> Flow[Made]:
    """The regions of one picture, by the rules, each with a view of its own."""
    yield []
    options = context.of(SegmentOptions)
    finder: Segmenter = context.tools["segmenter"]
    pixels = pixels_of(picture)
    found = list(finder.find(picture, pixels))
    kept, left = choose(found, options)
    rows = []
    for index, one in enumerate(kept, 1):
        name = f"{picture.id}.r{index:02d}"
        view = save_view(view_of(pixels, one.mask), context.folder / "views" / f"{name}.jpg")
        rows.append(
            RegionRow(
                id=name,
                made_from=(picture.id,),
                image_id=picture.id,
                index=index,
                bbox=box_of(one.mask),
                mask=encode_mask(one.mask),
                area=round(float(one.mask.mean()), 6),
                view=view,
                guess=one.guess,
                nature_guess=one.nature,
                score=one.score,
            )
        )
    dropped = tuple(
        Rejected(id=f"{picture.id}.x{number:03d}", made_from=(picture.id,), reason=one.reason,
                 detail={"guess": one.found.guess, "area": round(float(one.found.mask.mean()), 6)})
        for number, one in enumerate(left, 1)
    )  # fmt: skip
    share = covered([one.mask for one in kept])
    if not rows:
        gone = Rejected(id=picture.id, made_from=(picture.id,), reason="no_region",
                        detail={"found": len(found)})  # fmt: skip
        return Made(rejected=(gone,), dropped=dropped, counts={"found": len(found)})
    counts = {"found": len(found), "covered_permille": round(1000 * share)}
    return Made(tuple(rows), dropped=dropped, counts=counts)


def segment_settled(_context: Context, parts: Sequence[Made]) -> Made:
    """All regions; the share covered is averaged over pictures."""
    made = joined(parts)
    counts = dict(made.counts)
    n = sum("covered_permille" in part.counts for part in parts)
    if n:
        counts["covered_permille"] = round(counts["covered_permille"] / n)
    return Made(made.rows, made.rejected, made.dropped, counts=counts)


def segment_expected(context: Context) -> Expected:
    """What a dry run takes `segment` to do."""
    return Expected(makes=min(context.of(SegmentOptions).max_regions, 5.4))


SEGMENT = Stage(
    "segment",
    RegionRow,
    segment_units,
    segment_unit,
    prepare=segment_prepared,
    settle=segment_settled,
    expects=segment_expected,
)
