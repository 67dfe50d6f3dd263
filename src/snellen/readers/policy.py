"""One pass over the rows of a benchmark: stop at a bad row, skip it, or collect all that is wrong.

A reader asks its `RowPolicy` for records, claims their ids, finds their pictures, and yields the
items of the good ones. Loading and `data check` are the same pass under another policy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from io import BytesIO
from itertools import chain
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from snellen import keys
from snellen.errors import DataError, ImageError, UsageError
from snellen.pictures import headers
from snellen.readers.pictures import PictureFinder
from snellen.readers.rows import (
    NOT_JSON,
    NOT_UTF8,
    Row,
    Source,
    array_hint,
    broken,
    decode_row,
    field_hint,
    in_words,
    read_rows,
)
from snellen.records import Image, Item, Probe, Region
from snellen.schemas import Fault, nearest, was_read

S = TypeVar("S", bound=Struct)

# How alike a name and a known one must be before it is taken for a slip of the pen.
SLIP = 0.8


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What to load.

    First `subsets` (labels, such as an error category) and `limit_per_subset` apply, then `sample`
    (that many items, drawn with `seed` in proportion to the capabilities), then `limit` (the first
    items of what is left). `on_bad_row` `skip` leaves bad rows out and lists them; `collect` notes
    all that is wrong with each, which takes longer. `split` and `revision` are for public data sets
    that are fetched from `source`; `cache` is the folder that keeps them. `allow_outside` are
    folders outside the benchmark's own whose files it may name.
    """

    limit: int | None = None
    limit_per_subset: int | None = None
    subsets: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    on_bad_row: Literal["stop", "skip", "collect"] = "stop"
    split: str = ""
    revision: str = ""
    source: Literal["hub", "modelscope"] = "hub"
    cache: str = "~/.cache/snellen"
    allow_outside: tuple[str, ...] = ()


class RowPolicy:
    """The rows of one load, what happens to bad ones, and the items that are kept.

    `skipped` are the errors that were noted instead of raised. `broken` are pictures that cost an
    item its probes and no more. `regions` are those of a reading benchmark, by id.
    """

    def __init__(self, source: Source, options: LoadOptions, *, is_direct: bool = False) -> None:
        self.options = options
        self.collects = options.on_bad_row == "collect"
        self.skipped: list[DataError] = []
        self.broken: list[str] = []
        self.regions: dict[str, Region] = {}
        self.fine = True
        """Nothing was noted about the present row."""
        self._source = source
        self._is_direct = is_direct
        self._finder = PictureFinder(source)
        self._ids: dict[tuple[str, str], Row] = {}
        self._labels: dict[str, None] = {}
        self._admitted: Counter[str] = Counter()
        self._items: list[tuple[str, Item]] = []
        self._lost: set[type[Struct]] = set()
        self._sizes: dict[str, tuple[int, int] | None] = {}
        self._told: set[tuple[str, str]] = set()
        self._noted: tuple[str, int | None] = ("", None)

    def note(self, error: DataError) -> None:
        """Raises the error, or notes it: one a row when bad rows are skipped."""
        if self.options.on_bad_row == "stop":
            raise error
        self.fine = False
        if self.collects or self._noted != (error.file, error.row):
            self.skipped.append(error)
        self._noted = (error.file, error.row)

    def advise(self, error: DataError) -> None:
        """Notes what does not stop a load, where all is collected."""
        if self.collects:
            self.skipped.append(error)

    def leave_out(self, error: DataError) -> None:
        """Notes a part of a row that is left out of the benchmark under every policy."""
        self.skipped.append(error)

    def has(self, stem: str) -> bool:
        """Whether the source has a file of that name."""
        return self._source.has(stem)

    def records(
        self,
        stem: str,
        schema: type[S],
        faults: Callable[[S], Iterable[Fault]] | None = None,
        *,
        advice: Callable[[S], Iterable[Fault]] | None = None,
    ) -> Iterator[tuple[Row, S]]:
        """The rows of a file of the source, each with its text and as the schema.

        `faults` say what is wrong with a well-typed row, `advice` what only a check mentions. Where
        all is collected, bad rows are given too: a field that could not be read is unset.

        Raises: DataError for a bad row or file, unless these are noted.
        """
        decoder = msgspec.json.Decoder(schema)
        try:
            files = self._source.files(stem, split=self.options.split)
            for row in chain.from_iterable(read_rows(path) for path in files):
                self.fine = True
                record = self._record(row, schema, decoder)
                if record is None or not was_read(getattr(record, schema.__struct_fields__[0])):
                    self.lose(schema)
                if record is None:
                    continue
                for fault in faults(record) if faults else ():
                    self.note(row.error(fault.message, field=fault.field, hint=fault.hint))
                for fault in advice(record) if advice and self.collects else ():
                    self.advise(row.error(fault.message, field=fault.field, hint=fault.hint))
                if self.fine or self.collects:
                    yield row, record
                if self.full:
                    return
        except DataError as error:
            if not self.collects:
                raise
            self.note(error)
            self.lose(schema)

    def lose(self, schema: type[Struct]) -> None:
        """Says that not all rows of a kind could be read: ids among them are not known."""
        self._lost.add(schema)

    def knows_all(self, schema: type[Struct]) -> bool:
        """Whether all rows of a kind were read, so that no other id of theirs exists."""
        return not self.collects or schema not in self._lost

    def claim(self, row: Row, field: str, value: str | int) -> None:
        """Takes an id for a row, and notes when another row has it."""
        if not was_read(value):
            return
        slim = replace(row, data=b"", cells=())
        before = self._ids.setdefault((field, str(value)), slim)
        if before is not slim:
            message = (
                f"{value!r} is already the {field} of row {before.number} of {before.file.name}"
            )
            self.note(row.error(message, field=field, hint="each row needs an id of its own"))

    def check_label(self, row: Row, field: str, label: str, known: Sequence[str]) -> None:
        """Notes a label that is nearly a known one; labels of one's own are welcome."""
        if self.collects and label not in known:
            near = get_close_matches(label, known, n=1, cutoff=SLIP)
            if near:
                hint = f"did you mean `{near[0]}`?"
                self.note(row.error(f"{label!r} is unknown", field=field, hint=hint))

    def pictures(self, row: Row, raw: Raw, field: str = "image") -> tuple[Image, ...]:
        """The pictures that a field names, found and looked at."""
        found = self.find(row, raw, field)
        self.look(row, found, field)
        return found

    def find(self, row: Row, raw: Raw, field: str = "image") -> tuple[Image, ...]:
        """The pictures that a field names; where all is collected, each is decoded once."""
        found = []
        for one in self._finder.look_over(row, raw, field=field) if was_read(raw) else ():
            if isinstance(one, DataError):
                self.note(one)
                continue
            found.append(one)
            if self.collects and one.digest not in self._sizes:
                self._sizes[one.digest] = None
                try:
                    self._sizes[one.digest] = _decoded_size(row, one, field)
                except DataError as error:
                    self.note(error)
        return tuple(found)

    def look(self, row: Row, images: Iterable[Image], field: str = "image") -> None:
        """Looks at the headers of found pictures, and decodes those where these leave a doubt.

        A broken one makes a bad row of a direct question, and costs others their probes.
        """
        if self.collects:
            return
        for image in images:
            held = next((one for one in row.cells if one.digest == image.digest), None)
            text = held.data if held else row.data[image.start - (row.start or 0) :]
            clean = image.end is None or not text
            if not clean:
                uri = text[1 : (image.end or 0) - image.start - 1]
                is_labelled = uri[:5].lower() == b"data:"
                clean = headers.is_base64(uri.partition(b",")[2] if is_labelled else uri)
            if clean and headers.is_whole(image, BytesIO(held.data) if held else None):
                continue
            try:
                _decoded_size(row, image, field)
            except DataError as error:
                if self._is_direct or self.options.on_bad_row == "skip":
                    self.note(error)
                else:
                    self.broken.append(error.message)
                return

    def size_of(self, image: Image) -> tuple[int, int] | None:
        """Width and height of a picture that was decoded, else None."""
        return self._sizes.get(image.digest)

    def wants(self, labels: Iterable[str]) -> bool:
        """Whether an item with these labels is to be loaded; the first is its capability."""
        labels = tuple(labels)
        self._labels.update(dict.fromkeys(labels))
        subsets, most = self.options.subsets, self.options.limit_per_subset
        if subsets and not set(subsets).intersection(labels):
            return False
        return most is None or self._admitted[labels[0] if labels else "?"] < most

    def wanted_probes(self, probes: Iterable[Probe], labels: Iterable[str]) -> tuple[Probe, ...]:
        """The probes to keep: all, unless a subset names their category and not the item's."""
        subsets = set(self.options.subsets)
        if not subsets or subsets.intersection(labels):
            return tuple(probes)
        return tuple(probe for probe in probes if probe.groups.get("category") in subsets)

    @property
    def full(self) -> bool:
        """True once the limit is reached and nothing that follows could change the choice."""
        limit, sample = self.options.limit, self.options.sample
        return limit is not None and sample is None and len(self._items) >= limit

    def add(self, item: Item) -> None:
        """Lets an item in, with its digest, unless it is not wanted."""
        labels = [label for labels in item.groups.values() for label in labels]
        categories = [one.groups["category"] for one in item.probes if "category" in one.groups]
        if self.wants((*labels, *categories)):
            capability = labels[0] if labels else "?"
            self._admitted[capability] += 1
            probes = self.wanted_probes(item.probes, labels)
            # All that would change a score.
            content = [
                [image.digest for image in item.images],
                [
                    [one.id, one.kind, one.question, one.options, one.answer, one.groups]
                    for one in probes
                ],
                [item.text, item.hint, item.groups, item.extra.get("permutations")],
            ]
            kept = replace(item, probes=probes, digest=keys.digest_of(content))
            self._items.append((capability, kept))

    def items(self) -> tuple[Item, ...]:
        """The items of the load. Raises: UsageError for a subset that no row belongs to."""
        if not self.full:
            for name in self.options.subsets:
                if name not in self._labels:
                    hint = nearest(name, list(self._labels))
                    raise UsageError(f"no item belongs to the subset {name!r}", hint=hint)
        chosen, size = self._items, self.options.sample
        if size is not None and size < len(chosen):
            # Each capability in proportion (largest remainders). The draw depends on the ids, not
            # on the order of the rows.
            counts = Counter(label for label, _ in chosen)
            exact = {label: size * count / len(chosen) for label, count in sorted(counts.items())}
            quotas = {label: int(share) for label, share in exact.items()}
            order = sorted(exact, key=lambda label: (quotas[label] - exact[label], label))
            for label in order[: size - sum(quotas.values())]:
                quotas[label] += 1
            drawn: set[str] = set()
            for label, quota in quotas.items():
                ids = sorted(item.id for one, item in chosen if one == label)
                places = keys.rng_for(self.options.seed, "sample", label).permutation(len(ids))
                drawn.update(ids[at] for at in places[:quota])
            chosen = [pair for pair in chosen if pair[1].id in drawn]
        return tuple(item for _, item in chosen[: self.options.limit])

    def _record(self, row: Row, schema: type[S], decoder: msgspec.json.Decoder[S]) -> S | None:
        """The row as its schema, or None where it is noted as a bad one.

        Where all is collected, fields are read one by one, and unreadable ones left unset.
        """
        if not self.collects:
            try:
                return decode_row(row, decoder)
            except DataError as error:
                self.note(error)
                return None
        try:
            raws = msgspec.json.decode(row.data, type=dict[str, Raw])
        except msgspec.ValidationError as error:
            hint = array_hint(row) or "one JSON object a line is expected"
            self.note(row.error(in_words(str(error))[1], hint=hint))
            return None
        except NOT_JSON:
            self._note_no_json(broken(row))
            return None
        fields = {field.name: field for field in msgspec.structs.fields(schema)}
        for key in raws:
            if key not in fields and self._first(row, key):
                hint = nearest(key, list(fields))
                self.advise(row.error("no such field is known", field=key, hint=hint))
        for key in _twice(row):
            self.note(row.error("the field stands twice in one object", field=key))
        return schema(**{name: self._value(row, one, raws, schema) for name, one in fields.items()})

    def _value(
        self, row: Row, field: msgspec.structs.FieldInfo, raws: Mapping[str, Raw], schema: type[S]
    ) -> object:
        raw = raws.get(field.name)
        if raw is None and not field.required:
            return field.default
        hint = field_hint(row, field.name, schema=schema, is_missing=raw is None)
        if raw is None:
            self.note(row.error("the field is missing", field=field.name, hint=hint))
            return UNSET
        try:
            return msgspec.json.decode(raw, type=field.type)
        except msgspec.ValidationError as error:
            place, message = in_words(str(error))
            self.note(row.error(message, field=f"{field.name}{place}", hint=hint))
        except NOT_JSON:
            self._note_no_json(broken(row, field=field.name))
        return UNSET

    def _note_no_json(self, error: DataError) -> None:
        """Notes what is no JSON; a file in another encoding is told once."""
        self.fine = False
        if NOT_UTF8 not in error.message or self._first(error, ""):
            self.note(error)

    def _first(self, of: Row | DataError, what: str) -> bool:
        """Whether this is told for the first time of a file."""
        place = (of.file if isinstance(of.file, str) else of.file.name, what)
        seen = place in self._told
        self._told.add(place)
        return not seen


def _decoded_size(row: Row, image: Image, field: str) -> tuple[int, int]:
    """Width and height of a decoded picture.

    Raises: DataError of its row, for a picture that no model can be shown.
    """
    from snellen.pictures.prepare import open_upright

    try:
        return open_upright(image).size
    except ImageError as error:
        name = image.name.removeprefix(f"{row.file.name} row {row.number} ")
        message = error.message.removeprefix(f"{image.name}: ")
        raise row.error(f"{name} {message}", field=field, hint=error.hint) from error


def _twice(row: Row) -> list[str]:
    """The keys that an object of a row has twice, which JSON readers silently overwrite."""
    found: list[str] = []

    def pairs(entries: list[tuple[str, object]]) -> None:
        counts = Counter(key for key, _ in entries)
        found.extend(key for key, count in counts.items() if count > 1)

    try:
        json.loads(row.data, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return found
