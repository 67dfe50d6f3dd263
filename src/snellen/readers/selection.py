"""Which items of a benchmark are loaded, and what happens to bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from snellen import keys
from snellen.errors import DataError, UsageError
from snellen.readers.rows import Row
from snellen.records import Item, Probe
from snellen.schemas import Fault, nearest

OWN_ID = "each row needs an id of its own"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What to load.

    First `subsets` (labels, such as an error category) and `limit_per_subset` apply, then `sample`
    (that many items, drawn with `seed` in proportion to the capabilities), then `limit` (the first
    items of what is left). `on_bad_row` `skip` leaves bad rows out and lists them. `split` and
    `revision` are for public data sets that are fetched from `source`; `cache` is the folder that
    keeps them, and the pictures that are found inside Parquet files.
    """

    limit: int | None = None
    limit_per_subset: int | None = None
    subsets: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    on_bad_row: Literal["stop", "skip"] = "stop"
    split: str = ""
    revision: str = ""
    source: Literal["hub", "modelscope"] = "hub"
    cache: str = "~/.cache/snellen"


class Intake:
    """The items that a load has let in so far, in file order, no id twice."""

    def __init__(self, options: LoadOptions) -> None:
        self._options = options
        self._rows: dict[tuple[str, str], Row] = {}
        self._labels: dict[str, None] = {}
        self._admitted: Counter[str] = Counter()
        self._items: list[tuple[str, Item]] = []
        self.skipped: list[str] = []
        self.broken: list[str] = []

    @property
    def full(self) -> bool:
        """True once the limit is reached and nothing that follows could change the choice."""
        options = self._options
        return (
            options.limit is not None
            and options.sample is None
            and len(self._items) >= options.limit
        )

    def claim(self, row: Row, field: str, *, value: str | int) -> None:
        """Takes an id for this row. Raises: DataError when another row has it."""
        slim = replace(row, data=b"")
        before = self._rows.setdefault((field, str(value)), slim)
        if before is not slim:
            raise row.error(taken(before, value, field=field), field=field, hint=OWN_ID)

    def require(self, row: Row, faults: Iterable[Fault]) -> None:
        """Raises: DataError for the first of the faults, if there is one."""
        for fault in faults:
            raise row.error(fault.message, field=fault.field, hint=fault.hint)

    def reject(self, error: DataError) -> None:
        """Raises the error, or notes it when bad rows are to be skipped."""
        if self._options.on_bad_row == "stop":
            raise error
        self.skipped.append(error.message)

    def tolerate(self, error: DataError | None) -> None:
        """Notes an error that costs an item its probes and no more.

        Raises: the error, when bad rows are to be skipped.
        """
        if error is not None:
            if self._options.on_bad_row == "skip":
                raise error
            self.broken.append(error.message)

    def wants(self, labels: Iterable[str], capability: str) -> bool:
        """Whether an item with these labels is to be loaded."""
        labels = tuple(labels)
        self._labels.update(dict.fromkeys(labels))
        subsets, most = self._options.subsets, self._options.limit_per_subset
        if subsets and not set(subsets).intersection(labels):
            return False
        return most is None or self._admitted[capability] < most

    def wanted_probes(
        self, probes: Iterable[Probe], labels: Iterable[str], *, dimension: str
    ) -> tuple[Probe, ...]:
        """The probes to keep: all, unless a subset names a label of probes and not of the item."""
        subsets = set(self._options.subsets)
        if not subsets or subsets.intersection(labels):
            return tuple(probes)
        return tuple(probe for probe in probes if probe.groups.get(dimension) in subsets)

    def add(self, item: Item, capability: str) -> None:
        """Lets an item in."""
        self._admitted[capability] += 1
        self._items.append((capability, item))

    def finish(self) -> tuple[Item, ...]:
        """The items of the load. Raises: UsageError for a subset that no row belongs to."""
        if not self.full:
            self._know_subsets()
        chosen = self._items
        if self._options.sample is not None:
            chosen = stratified(chosen, self._options.sample, seed=self._options.seed)
        return tuple(item for _, item in chosen[: self._options.limit])

    def _know_subsets(self) -> None:
        for name in self._options.subsets:
            if name not in self._labels:
                raise UsageError(
                    f"no item belongs to the subset {name!r}",
                    hint=nearest(name, list(self._labels)),
                )


def taken(before: Row, value: str | int, *, field: str) -> str:
    """What is said about a second row with the same id."""
    return f"{value!r} is already the {field} of row {before.number} of {before.file.name}"


def stratified(items: list[tuple[str, Item]], size: int, *, seed: int) -> list[tuple[str, Item]]:
    """A seeded sample in file order, each capability in proportion (largest remainders).

    The draw depends on the ids, not on the order of the rows.
    """
    if size >= len(items):
        return items
    counts = Counter(label for label, _ in items)
    chosen: set[str] = set()
    for label, quota in _quotas(counts, size).items():
        ids = sorted(item.id for one, item in items if one == label)
        drawn = keys.rng_for(seed, "sample", label).permutation(len(ids))[:quota]
        chosen.update(ids[at] for at in drawn)
    return [pair for pair in items if pair[1].id in chosen]


def _quotas(counts: Counter[str], size: int) -> dict[str, int]:
    total = counts.total()
    exact = {label: size * count / total for label, count in sorted(counts.items())}
    quotas = {label: int(share) for label, share in exact.items()}
    order = sorted(exact, key=lambda label: (quotas[label] - exact[label], label))
    for label in order[: size - sum(quotas.values())]:
        quotas[label] += 1
    return quotas


def with_digest(item: Item) -> Item:
    """The item with the digest of all that would change a score."""
    content = [
        [image.digest for image in item.images],
        [
            [one.id, one.kind, one.question, one.options, one.answer, one.groups]
            for one in item.probes
        ],
        [item.text, item.hint, item.groups, item.extra.get("permutations")],
    ]
    return replace(item, digest=keys.digest_of(content))
