"""The options of the rubrics pipeline: the sections of `build.toml`, with their defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from snellen.builders.options import Count, Positive, Share
from snellen.schemas import DOMAINS, nearest

BY_MODEL, BY_FOLDER = "model", "folder"
Threshold = Annotated[int, Meta(ge=2, le=20)]


class CurateOptions(Struct, frozen=True):
    """`[curate]`: which pictures are worth a rubric.

    A picture passes when complexity and informativeness (1 to 10 each) add up to the `threshold` of
    its domain; `thresholds` holds those that differ. With `wanted` above 0 each domain without a
    threshold of its own gets the highest one that keeps at least so many pictures. `domain` says
    where domains come from: `model` asks the scorer, `folder` takes the name of a folder above the
    picture, and the name of a domain stands for all pictures. `max_distance` is as in `[select]`.
    """

    domain: str = BY_MODEL
    threshold: Threshold = 12
    thresholds: dict[str, Threshold] = {}
    wanted: Count = 0
    min_pixels: Count = 65536
    max_distance: Annotated[int, Meta(ge=-1, le=64)] = 5
    reasks: Count = 2

    def __post_init__(self) -> None:
        """Refuses a domain that is none of the seven."""
        named = (self.domain,) if self.domain not in (BY_MODEL, BY_FOLDER) else ()
        for name in (*named, *self.thresholds):
            if name not in DOMAINS:
                raise ValueError(f"no domain is called {name!r}; {nearest(name, DOMAINS)}")


class GoldenOptions(Struct, frozen=True):
    """`[golden]`: how authors come to one caption.

    `rounds` is how often the jurors compare. `unanimity` says whether the first comparison may end
    the review, or whether the captions must have been rewritten once. `manual` stops until people
    have seen every caption.
    """

    rounds: Annotated[int, Meta(ge=1, le=2)] = 2
    unanimity: Literal["after-rewrite", "first-round"] = "after-rewrite"
    manual: bool = False
    reasks: Count = 2

    def __post_init__(self) -> None:
        """Refuses a setting under which no picture could be kept."""
        if self.rounds == 1 and self.unanimity == "after-rewrite":
            raise ValueError(
                "one round has no rewrite, hence keeps nothing; set unanimity = 'first-round'"
            )


class PoolOptions(Struct, frozen=True):
    """`[pool]`: whose descriptions show what is easily got wrong.

    `size` is the number of models, those of `runs` among them. `runs` are folders of runs on the
    same pictures, or files of replies; ids are those of this build, or names of the pictures.
    """

    size: Positive = 8
    runs: tuple[str, ...] = ()
    reasks: Count = 2


class RubricsOptions(Struct, frozen=True):
    """`[rubrics]`: how many Must-Right statements, and which errors count.

    An error is frequent when at least the share `frequent` of the pool makes it; a rarer one is
    taken when the proposer calls it severe. `max_words` bounds the length of a statement.
    """

    frequent: Share = 0.25
    must_right: tuple[Positive, Positive] = (3, 5)
    max_words: Positive = 40
    reasks: Count = 2

    def __post_init__(self) -> None:
        """Refuses an empty range."""
        if self.must_right[0] > self.must_right[1]:
            raise ValueError(f"must_right is from {self.must_right[0]} to {self.must_right[1]}")
