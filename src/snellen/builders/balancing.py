"""Balance over sub-domains: a few pictures each, by fit and quality, with people's word first.

Source: CapProbe, section 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from snellen.builders.rows import PictureRow
from snellen.keys import seed_for


class Ranked(msgspec.Struct, frozen=True):
    """A row of the list that people may edit: `keep` true or false overrides what is `proposed`.

    `rank` is the picture's place in its best sub-domain, from 1.
    """

    image_id: str
    name: str
    labels: tuple[tuple[str, str], ...]
    rank: int
    proposed: bool
    keep: bool | None = None


def balance(
    pictures: Sequence[PictureRow],
    per_subdomain: int,
    *,
    words: Mapping[str, bool],
    seed: int,
) -> tuple[Ranked, ...]:
    """Which pictures to keep: at most so many a sub-domain, 0 for no cap.

    The rarest pair of domain and sub-domain chooses first: by the confidence of the label, then by
    sharpness, then by a seeded order. A picture counts under each of its pairs, and is taken only
    where all of them have room; pictures that people keep are counted first, those that they drop
    are left out.
    """
    by_pair: dict[tuple[str, str], list[PictureRow]] = {}
    for picture in pictures:
        for label in picture.labels:
            by_pair.setdefault((label.l1, label.l2), []).append(picture)
    taken = {one.id for one in pictures if words.get(one.id) or not one.labels}
    room = {
        pair: (per_subdomain or len(members)) - sum(one.id in taken for one in members)
        for pair, members in by_pair.items()
    }
    ranks: dict[str, int] = {}
    for pair in sorted(by_pair, key=lambda name: (len(by_pair[name]), name)):
        for rank, one in enumerate(sorted(by_pair[pair], key=_order(pair, seed)), 1):
            ranks[one.id] = min(rank, ranks.get(one.id, rank))
            if one.id in taken or words.get(one.id) is False:
                continue
            pairs = {(label.l1, label.l2) for label in one.labels}
            if all(room[each] > 0 for each in pairs):
                taken.add(one.id)
                for each in pairs:
                    room[each] -= 1
    return tuple(
        Ranked(
            one.id,
            one.name,
            tuple((label.l1, label.l2) for label in one.labels),
            ranks.get(one.id, 1),
            one.id in taken and words.get(one.id) is not False,
            words.get(one.id),
        )
        for one in pictures
    )


def _order(pair: tuple[str, str], seed: int) -> Callable[[PictureRow], tuple[float, float, int]]:
    def key(one: PictureRow) -> tuple[float, float, int]:
        fit = max(b.confidence for b in one.labels if (b.l1, b.l2) == pair)
        return -fit, -one.quality.get("sharpness", 0.0), seed_for(seed, one.id, "balance")

    return key
