"""What the paper prints about its rubrics, counted on any benchmark of rubrics.

Source: PerceptionRubrics, section 3.4 and figure 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from snellen.schemas import DOMAINS


class Described(msgspec.Struct, frozen=True):
    """One picture of a benchmark: its domain, the words of its caption, and its statements."""

    domain: str
    words: int
    must_right: int
    easy_wrong: int


class RubricCounts(msgspec.Struct, frozen=True):
    """Images, statements of both streams, words a caption, and images a domain."""

    images: int
    must_right: int
    easy_wrong: int
    words_mean: float | None
    words_median: float | None
    words_most: int
    must_right_range: tuple[int, int]
    easy_wrong_range: tuple[int, int]
    domains: dict[str, int]

    @property
    def rubrics(self) -> int:
        """Statements of both streams."""
        return self.must_right + self.easy_wrong

    def an_image(self, n: int) -> float | None:
        """A number a picture."""
        return n / self.images if self.images else None


def words_in(text: str) -> int:
    """Words of a caption: what white space parts.

    >>> words_in("A cat, asleep.")
    3
    """
    return len(text.split())


def count_rubrics(pictures: Sequence[Described]) -> RubricCounts:
    """Counts the pictures of a benchmark; domains stand in their usual order."""
    words = [one.words for one in pictures if one.words]
    domains = Counter(one.domain for one in pictures)
    order = [*DOMAINS, *sorted(set(domains) - set(DOMAINS))]
    must, easy = [one.must_right for one in pictures], [one.easy_wrong for one in pictures]
    return RubricCounts(
        len(pictures),
        sum(must),
        sum(easy),
        round(float(np.mean(words)), 2) if words else None,
        float(np.median(words)) if words else None,
        max(words, default=0),
        (min(must, default=0), max(must, default=0)),
        (min(easy, default=0), max(easy, default=0)),
        {name: domains[name] for name in order if domains[name]},
    )
