"""What CapProbe's paper prints about its data, counted on any benchmark of regions.

Source: CapProbe, section 3.8, table 1, figures 2 and 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from snellen.builders.rows import PictureRow, QuestionRow
from snellen.schemas import CATEGORIES


class DataCounts(msgspec.Struct, frozen=True):
    """Images, regions and questions, and the shares of what they are made of.

    `categories` counts questions, `domains` and `subdomains` images: an image counts under each of
    its labels. `regions` counts those that have a question.
    """

    images: int
    regions: int
    questions: int
    categories: dict[str, int]
    domains: dict[str, int]
    subdomains: dict[str, dict[str, int]]

    @property
    def regions_an_image(self) -> float | None:
        """Regions an image."""
        return self.regions / self.images if self.images else None

    @property
    def questions_an_image(self) -> float | None:
        """Questions an image."""
        return self.questions / self.images if self.images else None

    @property
    def questions_a_region(self) -> float | None:
        """Questions a region."""
        return self.questions / self.regions if self.regions else None

    def share(self, category: str) -> float | None:
        """The share of a category among all questions, 0 to 1."""
        return self.categories.get(category, 0) / self.questions if self.questions else None


def count(pictures: Sequence[PictureRow], questions: Sequence[QuestionRow]) -> DataCounts:
    """Counts the questions, and the pictures and regions that they are about."""
    asked = {row.image_id for row in questions}
    domains, subdomains = Counter[str](), Counter[tuple[str, str]]()
    for picture in pictures:
        if picture.id in asked:
            domains.update({label.l1 for label in picture.labels})
            subdomains.update({(label.l1, label.l2) for label in picture.labels})
    nested: dict[str, dict[str, int]] = {}
    for (l1, l2), n in sorted(subdomains.items()):
        nested.setdefault(l1, {})[l2] = n
    found = Counter(row.category for row in questions)
    return DataCounts(
        len(asked),
        len({row.region_id for row in questions}),
        len(questions),
        {name: found[name] for name in CATEGORIES},
        dict(sorted(domains.items())),
        nested,
    )


def reduction(before: int, after: int) -> float:
    """The share by which a number fell.

    >>> round(100 * reduction(50_902, 50_902 - 3_268 - 8_507), 1)
    23.1
    """
    return (before - after) / before


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Counts as shares of their sum; of nothing, none."""
    total = sum(counts.values())
    return {name: n / total for name, n in counts.items()} if total else {}
