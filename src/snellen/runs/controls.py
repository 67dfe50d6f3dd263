"""The control `swapped`: every picture's questions are answered from another picture's caption."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace

from snellen.errors import UsageError
from snellen.flows import Flow, Given, ask_model
from snellen.keys import rng_for
from snellen.protocols import Options
from snellen.protocols.choices import describe
from snellen.records import Item, ReplyRow, walk

PREFIX = "swapped:"
Rows = MutableMapping[tuple[str, int], ReplyRow]


def derange(ids: Sequence[str], seed: int) -> dict[str, str]:
    """For each id another one, each given once: one ring through all in an order of the seed.

    >>> sorted(derange(["a", "b"], 0).items())
    [('a', 'b'), ('b', 'a')]

    Raises:
        UsageError: there are fewer than two.
    """
    if len(ids) < 2:
        raise UsageError(
            "captions cannot be swapped among fewer than two pictures", hint="raise --limit"
        )
    ring = [sorted(ids)[int(k)] for k in rng_for(seed, "swapped").permutation(len(ids))]
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def swap(rows: Given, donors: dict[str, str]) -> dict[tuple[str, int], ReplyRow]:
    """Each picture's rows replaced by its donor's; `variant` says whose caption it is."""
    taker = {donor: name for name, donor in donors.items()}
    return {
        (taker[donor], repeat): replace(row, id=taker[donor], variant=PREFIX + donor)
        for (donor, repeat), row in rows.items()
        if donor in taker
    }


def donor_of(row: ReplyRow) -> str | None:
    """The picture that a swapped caption was written for; None for a picture's own."""
    return row.variant.removeprefix(PREFIX) if row.variant.startswith(PREFIX) else None


def swapped_options(options: Options, items: Sequence[Item], rows: Given, *, seed: int) -> Options:
    """The same options with the captions of other pictures as given ones.

    Rows that were swapped before, as a run keeps them, stay as they are.
    """
    if any(donor_of(row) is not None for row in rows.values()):
        return replace(options, given=rows)
    donors = derange([item.id for item in items], seed)
    return replace(options, given=swap(rows, donors))


def gather(
    items: Sequence[Item], options: Options, *, repeats: int, into: Rows
) -> Iterator[tuple[str, int, Flow[None]]]:
    """Flows that only ask for captions, at the addresses of an ordinary run, and keep them."""

    def gather_one(item: Item, repeat: int) -> Flow[None]:
        request = describe(item.images, options.prompts["reply"])
        into[item.id, repeat] = yield from ask_model(request, item.id, repeat=repeat)

    for item, repeat in walk(items, repeats):
        yield item.id, repeat, gather_one(item, repeat)
