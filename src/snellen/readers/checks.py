"""Names everything that is wrong with a benchmark on disk, where loading stops at the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from snellen.errors import DataError, UsageError
from snellen.pictures.masks import mask_fault, shape_fault
from snellen.readers.captionqa import (
    NO_PICTURE,
    NO_QUESTION,
    CaptionQARow,
    QuestionOfImage,
    unusable,
)
from snellen.readers.catalog import KNOWN, Known, taxonomy
from snellen.readers.findings import Findings, Look, Problem, records_of
from snellen.readers.folder import CARD, Card, pictures_folder, read_card
from snellen.readers.hub import fetch
from snellen.readers.load import data_files
from snellen.readers.pictures import PictureFinder
from snellen.readers.rows import BOM, NOT_JSON, Row, broken, find_files, has_files, read_rows
from snellen.readers.selection import LoadOptions
from snellen.schemas import (
    DOMAINS,
    ERROR_CATEGORIES,
    DirectRow,
    Fault,
    ImageRow,
    QuestionRow,
    RegionRow,
    RubricRow,
    direct_faults,
    image_faults,
    labels_of,
    letter_faults,
    nearest,
    picture_count,
    question_faults,
    region_faults,
    rubric_faults,
    twin_faults,
    was_read,
    whole_id,
)

CARD_KEYS = (
    "name",
    "protocol",
    "version",
    "license",
    "source",
    "revision",
    "schema",
    "description",
    "created",
    "seed",
    "builder",
    "statistics",
)
# How alike a label and a known one must be before it is taken for a slip of the pen.
SLIP = 0.8


def check_benchmark(
    name_or_path: str,
    data: str | None = None,
    *,
    look: Look | None = None,
    options: LoadOptions | None = None,
) -> list[Problem]:
    """All problems of a benchmark folder, a file of rows, or a known benchmark, in file order.

    `look` decodes each picture once; without it, pictures are only looked for. An empty list means
    that the benchmark loads.

    Raises: UsageError when there is nothing of that name.
    """
    options = options or LoadOptions()
    found = Findings(look, pictures_folder(options))
    entry = KNOWN.get(name_or_path)
    try:
        if entry is not None:
            _check_known(entry, data, found=found, options=options)
        else:
            _check_path(Path(data or name_or_path), found)
    except DataError as error:
        found.note(error)
    return found.all()


def _check_known(entry: Known, data: str | None, *, found: Findings, options: LoadOptions) -> None:
    if entry.path is not None:
        _check_folder(entry.path, found)
        return
    if data is None and not entry.repository:
        raise DataError(f"{entry.name} has no data of its own", hint="name a folder with --data")
    path = Path(data) if data is not None else fetch(entry, options).path
    if not path.exists():
        raise DataError("there is no such file or folder", file=path)
    if entry.name == "capprobe":
        _check_protocol(path, Card(entry.name, "reading"), found=found)
    else:
        _check_files(data_files(entry, path, options=options), entry.name, found=found)


def _check_path(path: Path, found: Findings) -> None:
    if path.is_file():
        _check_files((path,), _kind_of(path, found.spool), found=found)
    elif path.is_dir():
        _check_folder(path, found)
    else:
        raise UsageError(
            f"there is no benchmark, folder or file {str(path)!r}",
            hint=nearest(str(path), list(KNOWN)),
        )


def _kind_of(path: Path, spool: Path) -> str:
    """Which public data set a file of rows looks like."""
    row = next(read_rows(path, spool=spool))
    try:
        keys = set(msgspec.json.decode(row.data, type=dict[str, Raw]))
    except NOT_JSON as error:
        raise broken(row) from error
    for key, kind in _TELLTALES.items():
        if key in keys:
            return kind
    raise row.error(
        "the row looks like none of the known data sets",
        hint=f"expected one of the fields {', '.join(_TELLTALES)}",
    )


_TELLTALES = {
    "problem": "perception_bench",
    "must_right": "perception_rubrics",
    "easy_wrong": "perception_rubrics",
    "questions": "captionqa",
    "choices": "captionqa",
}


def _check_files(files: Iterable[Path], name: str, *, found: Findings) -> None:
    checks = {
        "perception_bench": _check_direct,
        "perception_rubrics": _check_rubrics,
        "captionqa": _check_captionqa,
    }
    checks[name](tuple(files), found)


def _check_folder(folder: Path, found: Findings) -> None:
    path = folder / CARD
    try:
        card = read_card(folder)
    except DataError as error:
        found.note(error)
        card = None
    if path.is_file():
        _check_card_keys(path, found)
    if card is not None:
        _check_protocol(folder, card, found=found)


def _check_card_keys(path: Path, found: Findings) -> None:
    try:
        keys = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=dict[str, Raw])
    except NOT_JSON:
        return
    row = Row(path, 1, b"")
    for key in keys:
        if key not in CARD_KEYS:
            found.note_unknown(row, key, valid=CARD_KEYS)
    for key in ("version", "license", "source"):
        if key not in keys:
            found.note(DataError("the field is missing", file=CARD, field=key))
    if not bytes(keys.get("name", b"?")).strip(b'" '):
        found.note(DataError("the text is empty", file=CARD, field="name"))


def _check_protocol(folder: Path, card: Card, *, found: Findings) -> None:
    if card.protocol == "reading":
        _check_reading(folder, found)
    elif card.protocol == "direct":
        _check_direct(_files(folder, "questions", found=found), found)
    else:
        _check_rubrics(_files(folder, "rubrics", found=found), found)


def _files(folder: Path, stem: str, *, found: Findings) -> tuple[Path, ...]:
    try:
        return find_files(folder, stem)
    except DataError as error:
        found.note(error)
        return ()


def _check_reading(folder: Path, found: Findings) -> None:
    images = _check_images(folder, found)
    if not images:
        found.lose(ImageRow)
    regions = _check_regions(folder, images, found=found) if has_files(folder, "regions") else {}
    asked = set()
    files = _files(folder, "questions", found=found)
    for row, record in records_of(files, QuestionRow, faults=_question_faults, found=found):
        found.claim(row, "question_id", value=record.question_id)
        asked.add(str(record.image_id))
        if not was_read(record.image_id):
            found.lose(QuestionRow)
        _check_image_id(row, record.image_id, images=images, found=found)
        if was_read(record.region_id) and record.region_id is not None:
            _check_region_id(row, record, regions=regions, images=images, found=found)
            if not regions:
                found.lose(RegionRow)  # a folder without regions is told once
    for name, row in images.items():
        if name not in asked and files and found.knows_all(QuestionRow):
            found.note(row.error(f"no question asks about the image {name!r}", field="image_id"))


def _question_faults(row: QuestionRow) -> Iterator[Fault]:
    yield from question_faults(row)
    yield from twin_faults(row)
    yield from letter_faults(row)


def _region_faults(row: RegionRow) -> Iterator[Fault]:
    yield from region_faults(row)
    # A real box covers more than a millionth of a picture.
    if was_read(row.bbox) and row.bbox and 0 < max(row.bbox) <= 1:
        hint = "multiply shares of the picture by 1000"
        yield Fault("bbox", f"expected edges from 0 to 1000, found shares of 1: {row.bbox}", hint)
    if fault := mask_fault(row.mask):
        yield Fault("mask", fault)


def _check_images(folder: Path, found: Findings) -> dict[str, Row]:
    finder, images = PictureFinder(folder), {}
    domains = taxonomy()
    parts = sorted({part for parts in domains.values() for part in parts})
    for row, record in records_of(
        _files(folder, "images", found=found), ImageRow, faults=image_faults, found=found
    ):
        if found.claim(row, "image_id", value=record.image_id):
            images[str(record.image_id)] = replace(row, data=b"")
        for size in found.look_at(finder, row, raw=record.image):
            found.sizes[str(record.image_id)] = size
        for field, known in (("l1", list(domains)), ("l2", parts)):
            if was_read(getattr(record, field)):
                for label in labels_of(getattr(record, field)):
                    _check_label(row, field, label=label, known=known, found=found)
    return images


def _check_regions(folder: Path, images: Mapping[str, Row], *, found: Findings) -> dict[str, str]:
    regions: dict[str, str] = {}
    files = _files(folder, "regions", found=found)
    for row, record in records_of(files, RegionRow, faults=_region_faults, found=found):
        if found.claim(row, "region_id", value=record.region_id):
            regions[str(record.region_id)] = str(record.image_id)
        _check_image_id(row, record.image_id, images=images, found=found)
        size = found.sizes.get(str(record.image_id))
        if size is not None and (fault := shape_fault(record.mask, size)):
            found.note(row.error(fault, field="mask"))
    return regions


def _check_image_id(row: Row, value: Any, *, images: Mapping[str, Row], found: Findings) -> None:
    if was_read(value) and str(value) not in images and found.knows_all(ImageRow):
        hint = _one_of(value, images, "image_id of a row of images")
        found.note(row.error(f"there is no image {value!r}", field="image_id", hint=hint))


def _check_region_id(
    row: Row,
    record: QuestionRow,
    *,
    regions: Mapping[str, str],
    images: Mapping[str, Row],
    found: Findings,
) -> None:
    """Notes a region that does not exist, or that is part of another image."""
    assert record.region_id is not None
    owner = regions.get(str(whole_id(record.region_id)))
    if owner is None:
        if found.knows_all(RegionRow):
            hint = _one_of(record.region_id, regions, "region_id of a row of regions, or null")
            message = f"there is no region {record.region_id!r}"
            found.note(row.error(message, field="region_id", hint=hint))
    elif {owner, str(record.image_id)} <= images.keys() and owner != str(record.image_id):
        message = f"the region {record.region_id!r} belongs to the image {owner!r}"
        hint = "a question names a region of its own image, or null"
        found.note(row.error(message, field="region_id", hint=hint))


def _one_of(value: Any, known: Iterable[str], what: str) -> str:
    """The id that was probably meant, or what is expected."""
    near = get_close_matches(str(value), list(known), n=1, cutoff=SLIP)
    return f"did you mean `{near[0]}`?" if near else f"expected the {what}"


def _check_label(
    row: Row, field: str, *, label: str, known: Sequence[str], found: Findings
) -> None:
    """Labels of one's own are welcome; one that is nearly a known one is a slip of the pen."""
    if label in known:
        return
    near = get_close_matches(label, known, n=1, cutoff=SLIP)
    if near:
        found.note(
            row.error(f"{label!r} is unknown", field=field, hint=f"did you mean `{near[0]}`?")
        )


def _check_direct(files: tuple[Path, ...], found: Findings) -> None:
    finder = _finder(files)
    for row, record in records_of(files, DirectRow, faults=direct_faults, found=found):
        found.claim(row, "index", value=record.index)
        found.look_at(finder, row, raw=record.image)
        label = record.error_category
        if was_read(label) and label and label.strip():
            _check_label(
                row, "error_category", label=label.strip(), known=ERROR_CATEGORIES, found=found
            )


def _check_rubrics(files: tuple[Path, ...], found: Findings) -> None:
    finder = _finder(files)
    for row, record in records_of(files, RubricRow, faults=rubric_faults, found=found):
        found.claim(row, "id", value=record.id)
        found.look_at(finder, row, raw=record.image)
        label = record.category
        if was_read(label) and label and label.strip():
            _check_label(row, "category", label=label.strip(), known=DOMAINS, found=found)


def _check_captionqa(files: tuple[Path, ...], found: Findings) -> None:
    finder, shown = _finder(files), set()
    for row, record in records_of(files, CaptionQARow, faults=_captionqa_faults, found=found):
        if record.id not in shown and not _names_pictures(record):
            found.note(row.error(NO_PICTURE, field="images"))
        shown.add(record.id)
        if record.questions is not None and was_read(record.questions):
            found.claim(row, "id", value=record.id)
        for field in ("images", "image"):
            found.look_at(finder, row, raw=getattr(record, field), field=field)


def _names_pictures(record: CaptionQARow) -> bool:
    """Whether a row names a picture, or could not be read."""
    fields = (record.images, record.image)
    return any(not was_read(raw) or picture_count(raw) for raw in fields)


def _captionqa_faults(row: CaptionQARow) -> Iterator[Fault]:
    if not all(was_read(one) for one in (row.questions, row.question, row.choices, row.answer)):
        return
    questions = row.questions
    if questions is None:
        if row.question is None or row.choices is None:
            yield Fault("questions", "the field is missing")
            return
        questions = [QuestionOfImage(row.question, row.choices, row.answer)]
    if not questions:
        yield Fault("questions", NO_QUESTION)
    for number, question in enumerate(questions, 1):
        if reason := unusable(question):
            yield Fault("questions", f"question {number}: {reason}")
        if not all(choice.strip() for choice in question.choices):
            yield Fault("questions", f"question {number} has an empty choice")


def _finder(files: tuple[Path, ...]) -> PictureFinder:
    return PictureFinder(files[0].parent if files else Path())
