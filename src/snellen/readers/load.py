"""Loads a benchmark by name or path, and names all that is wrong with one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import msgspec

from snellen import keys
from snellen.errors import DataError, UsageError
from snellen.readers.catalog import KNOWN, READERS, Reader, known, reader_of
from snellen.readers.hub import fetch
from snellen.readers.perception_bench import clustered
from snellen.readers.policy import SLIP, LoadOptions, RowPolicy
from snellen.readers.rows import BOM, CARD, NOT_JSON, Source, broken, in_words, read_rows
from snellen.records import Benchmark, Item
from snellen.schemas import ALPHABET, nearest

DEFAULTS = LoadOptions()


class Card(msgspec.Struct):
    """What `benchmark.json` says."""

    name: str
    protocol: str
    version: str | int | float = ""
    license: str = ""
    source: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `message` is a whole line that names file, row and field."""

    file: str
    row: int | None
    field: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class _Found:
    """A benchmark that was found: what reads it, and where its rows are."""

    reader: Reader
    path: Path
    version: str = ""
    revision: str = ""
    allowed: tuple[Path, ...] = ()


def load_benchmark(
    benchmark: str | Path | Benchmark,
    data: str | Path | None = None,
    *,
    options: LoadOptions = DEFAULTS,
) -> Benchmark:
    """The benchmark of that name, or in that folder; `data` is a folder or file with its rows.

    A benchmark made in memory gets what a loaded one has: digests, clusters, and the selection that
    the options ask for. Without `data`, a public data set is fetched once and kept in the cache.

    Raises: UsageError for an unknown name or subset, DataError for anything wrong with the data,
    MissingExtraError when the library that fetches or reads it is not installed.
    """
    if isinstance(benchmark, Benchmark):
        _refuse_data(benchmark.name, data)
        policy = RowPolicy(Source(Path(benchmark.folder)), options)
        return _assembled(benchmark, policy, benchmark.items)
    found = _find(str(benchmark), data, options)
    policy = _policy(found, options)
    reader = found.reader
    empty = Benchmark(
        name=reader.name,
        protocol=reader.protocol,
        items=(),
        version=found.version,
        license=reader.license,
        source=reader.source,
        revision=found.revision,
        folder=str(found.path if found.path.is_dir() else found.path.parent),
    )
    return _assembled(empty, policy, reader.read(policy))


def check_benchmark(
    name_or_path: str | Path, data: str | Path | None = None, *, options: LoadOptions = DEFAULTS
) -> list[Problem]:
    """All problems of a benchmark folder, a file of rows, or a known benchmark, in file order.

    Each picture is decoded once. An empty list means that the benchmark loads.

    Raises: UsageError when there is nothing of that name.
    """
    options = replace(options, on_bad_row="collect")
    name, noted = str(name_or_path), list[DataError]()
    path = Path(data or name)
    try:
        if path.is_file() and (_is_path(name) or reader_of(name) is None):
            row = next(read_rows(path))
            try:
                names = msgspec.json.decode(row.data, type=dict[str, msgspec.Raw]).keys()
            except NOT_JSON as error:
                raise broken(row) from error
            like = [one for one in KNOWN.values() if not names.isdisjoint(one.fields)]
            if not like:
                fields = ", ".join(name for one in KNOWN.values() for name in one.fields)
                raise row.error(
                    "the row looks like none of the known data sets",
                    hint=f"expected one of the fields {fields}",
                )
            found = _Found(like[0], path)
        else:
            found = _find(name, data, options)
        if found.path.is_dir():
            noted += _card_faults(found.path / CARD)
        policy = _policy(found, options)
        seen: set[str] = set()
        for item in found.reader.read(policy):
            if not policy.skipped and (fault := _item_fault(item, found.reader, seen)):
                policy.note(DataError(fault))
        noted += policy.skipped
    except DataError as error:
        noted.append(error)
    return [Problem(one.file, one.row, one.field, one.message, one.hint) for one in noted]


def _find(name: str, data: str | Path | None, options: LoadOptions) -> _Found:
    reader = None if _is_path(name) else reader_of(name)
    if reader is None:
        return _find_folder(name, data)
    if reader.folder:
        _refuse_data(name, data)
        folder = Path(reader.folder)
        version = str(read_card(folder).version) if (folder / CARD).is_file() else ""
        return _Found(reader, folder, version, allowed=(folder.parent,))
    if data is not None:
        path = Path(data).absolute()
        if not path.exists():
            raise DataError("there is no such file or folder", file=path)
        return _Found(reader, path)
    if not reader.repository:
        raise DataError(
            f"the data of {name} are not released, and none come with it",
            hint="name a folder in the documented form with --data PATH",
        )
    fetched = fetch(reader, options)
    return _Found(reader, fetched.path, revision=fetched.revision, allowed=(fetched.pictures,))


def _find_folder(name: str, data: str | Path | None) -> _Found:
    path = Path(name).absolute()
    if not path.exists() and not _is_path(name):
        raise UsageError(
            f"there is no benchmark {name!r}, and no folder of that name",
            hint=nearest(name, [one.name for one in known()]),
        )
    _refuse_data(name, data)
    if path.is_file():
        raise UsageError(
            f"{name} is a file",
            hint=f"name its benchmark: perception_bench --data {name}, or another known one",
        )
    card = read_card(path)
    reader = Reader(
        card.name,
        card.protocol,
        "",
        READERS[card.protocol],
        license=card.license,
        source=card.source,
        is_folder=True,
    )
    return _Found(reader, path, str(card.version), card.revision)


def _policy(found: _Found, options: LoadOptions) -> RowPolicy:
    outside = (Path(one).expanduser() for one in options.allow_outside)
    source = Source(
        found.path,
        found.reader.file,
        is_folder=found.reader.is_folder,
        allowed=(*found.allowed, *outside),
    )
    return RowPolicy(source, options, is_direct=found.reader.protocol == "direct")


def _assembled(benchmark: Benchmark, policy: RowPolicy, items: Iterable[Item]) -> Benchmark:
    """The benchmark with its items chosen, digested and clustered.

    Raises: DataError when an item does not fit the protocol, or none is left.
    """
    seen: set[str] = set()
    for item in items:
        if fault := _item_fault(item, benchmark, seen):
            raise DataError(fault, file=benchmark.name)
        policy.add(item)
        if policy.full:
            break
    chosen = policy.items()
    if not chosen:
        hint = policy.skipped[0].message if policy.skipped else ""
        raise DataError("no usable row is left", file=benchmark.folder or benchmark.name, hint=hint)
    if benchmark.protocol == "direct":
        chosen = clustered(chosen)
    kept = {item.id for item in chosen}
    regions = policy.regions.values() or benchmark.regions
    return replace(
        benchmark,
        items=tuple(one if one.cluster else replace(one, cluster=one.id) for one in chosen),
        digest=keys.digest_of_set(item.digest for item in chosen),
        regions=tuple(one for one in regions if one.image_id in kept),
        skipped=(*benchmark.skipped, *(error.message for error in policy.skipped)),
        broken=(*benchmark.broken, *policy.broken),
    )


def _item_fault(item: Item, benchmark: Benchmark | Reader, seen: set[str]) -> str:
    """Why an item does not fit its protocol, or an empty text; `seen` are the ids before it."""
    if not item.id.strip() or item.id in seen:
        return f"an item needs an id of its own, found {item.id!r}"
    seen.add(item.id)
    names = [probe.id for probe in item.probes]
    if not names or len(set(names)) < len(names):
        return f"the item {item.id!r} needs probes, each with an id of its own"
    if benchmark.protocol == "direct" and (len(names) != 1 or not item.text.strip()):
        return f"the direct item {item.id!r} needs one probe, and its question as `text`"
    for probe in item.probes:
        letters = ALPHABET[: len(probe.options)]
        if benchmark.protocol == "reading" and (
            probe.answer not in list(letters)
            or (len(letters) != 4 and "permutations" not in item.extra)
        ):
            return f"the question {probe.id!r} needs four options and the letter of the right one"
        if benchmark.protocol == "rubric" and probe.kind not in {"must_right", "easy_wrong"}:
            return f"the rubric {probe.id!r} needs the kind `must_right` or `easy_wrong`"
    return ""


def _card_faults(path: Path) -> Iterator[DataError]:
    """What a check says of a card that loads: slips of the pen, and a blank name."""
    if not path.is_file():
        return
    raws = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=dict[str, msgspec.Raw])
    names = Card.__struct_fields__
    for key in raws.keys() - set(names):
        if near := get_close_matches(key, names, n=1, cutoff=SLIP):
            hint = f"did you mean `{near[0]}`?"
            yield DataError("no such field is known", file=CARD, field=key, hint=hint)
    if not bytes(raws["name"]).strip(b'" '):
        yield DataError("the text is empty", file=CARD, field="name")


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name


def _refuse_data(name: str, data: str | Path | None) -> None:
    if data is not None:
        raise UsageError(
            f"{name} brings its own data, so --data cannot be used with it",
            hint="leave --data out",
        )


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
    if card.protocol not in READERS:
        raise DataError(
            f"there is no protocol {card.protocol!r}",
            file=CARD,
            field="protocol",
            hint=nearest(card.protocol, sorted(READERS)),
        )
    return card
