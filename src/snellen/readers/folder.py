"""Reads a benchmark folder: `benchmark.json` and the files of its protocol."""

from __future__ import annotations

from pathlib import Path

import msgspec

from snellen import keys
from snellen.errors import DataError
from snellen.readers.capprobe import read_reading
from snellen.readers.perception_bench import read_direct
from snellen.readers.perception_rubrics import read_rubrics
from snellen.readers.rows import BOM, NOT_JSON, find_files, in_words, rows_of
from snellen.readers.selection import Intake, LoadOptions
from snellen.records import Benchmark, Item, ProtocolName, Region
from snellen.schemas import nearest

CARD = "benchmark.json"
PROTOCOLS: tuple[ProtocolName, ...] = ("direct", "reading", "rubric")


class Card(msgspec.Struct):
    """What `benchmark.json` says."""

    name: str
    protocol: str
    version: str | int | float = ""
    license: str = ""
    source: str = ""
    revision: str = ""


def load_folder(folder: Path, options: LoadOptions) -> Benchmark:
    """The benchmark in a folder. Raises: DataError that names file, row and field."""
    card = read_card(folder)
    return load_with_card(folder, card, options=options)


def load_with_card(folder: Path, card: Card, *, options: LoadOptions) -> Benchmark:
    """The benchmark in a folder whose name and protocol are already known."""
    intake = Intake(options)
    spool = pictures_folder(options)
    regions: tuple[Region, ...] = ()
    if card.protocol == "reading":
        items, regions = read_reading(folder, intake, spool=spool)
    elif card.protocol == "direct":
        items = read_direct(
            rows_of(find_files(folder, "questions"), spool=spool), folder, intake=intake
        )
    else:
        items = read_rubrics(
            rows_of(find_files(folder, "rubrics"), spool=spool), folder, intake=intake
        )
    return assemble(card, items, folder=folder, regions=regions, intake=intake)


def assemble(
    card: Card,
    items: tuple[Item, ...],
    *,
    folder: Path,
    regions: tuple[Region, ...] = (),
    intake: Intake,
) -> Benchmark:
    """The benchmark of a card and its items. Raises: DataError when nothing is left."""
    if not items:
        hint = intake.skipped[0] if intake.skipped else ""
        raise DataError("no usable row is left", file=folder, hint=hint)
    return Benchmark(
        name=card.name,
        protocol=protocol_of(card),
        items=items,
        version=str(card.version),
        license=card.license,
        source=card.source,
        revision=card.revision,
        digest=keys.digest_of_set(item.digest for item in items),
        folder=str(folder),
        regions=regions,
        skipped=tuple(intake.skipped),
        broken=tuple(intake.broken),
    )


def pictures_folder(options: LoadOptions) -> Path:
    """Where pictures found inside Parquet files are kept, one file a digest."""
    return Path(options.cache).expanduser() / "pictures"


def read_card(folder: Path) -> Card:
    """What `benchmark.json` says. Raises: DataError when it is absent or wrong."""
    path = folder / CARD
    if not folder.is_dir():
        raise DataError("there is no such folder", file=folder)
    if not path.is_file():
        raise DataError(
            f"has no {CARD}",
            file=folder,
            hint='write one: {"name": "mine", "protocol": "direct", "version": "1", '
            '"license": "", "source": ""}',
        )
    try:
        card = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=Card)
    except msgspec.ValidationError as error:
        field, message = in_words(str(error))
        raise DataError(message, file=CARD, field=field) from error
    except NOT_JSON as error:
        raise DataError(f"is not JSON: {error}", file=CARD) from error
    protocol_of(card)
    return card


def protocol_of(card: Card) -> ProtocolName:
    """The protocol that a card names. Raises: DataError when there is none of that name."""
    for protocol in PROTOCOLS:
        if card.protocol == protocol:
            return protocol
    raise DataError(
        f"there is no protocol {card.protocol!r}",
        file=CARD,
        field="protocol",
        hint=nearest(card.protocol, PROTOCOLS),
    )
