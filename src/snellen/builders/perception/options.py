"""The options of the perception pipeline: the sections of `build.toml`, with their defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from snellen.builders.options import Count, Positive, Share

MOST_PICTURES = 8


class CollectOptions(Struct, frozen=True):
    """`[collect]`: which samples of the result files are failures.

    `pictures` are folders with the pictures that result files name or leave out. A sample that is
    scored below `wrong_below` counts as wrong where the tool gives no plain yes or no.
    `per_benchmark` is how many failures of a benchmark are taken, by a seeded draw; 0 for all.
    """

    pictures: tuple[str, ...] = ()
    wrong_below: Share = 0.5
    per_benchmark: Count = 0


class InduceOptions(Struct, frozen=True):
    """`[induce]`: where the types of errors come from.

    `taxonomy` is `default` (ours), `induced` (from descriptions of `sample` failures), or a JSON
    file of types. Descriptions are clustered while clusters are on average at least `similarity`
    alike (cosine); clusters of fewer than `least` join the nearest one, and types whose definitions
    are at least `merge` alike become one. `manual` stops until people have seen the types.
    """

    taxonomy: str = "default"
    sample: Positive = 200
    similarity: Share = 0.45
    least: Positive = 3
    merge: Share = 0.8
    manual: bool = False
    reasks: Count = 2


class PerceptionOptions(Struct, frozen=True):
    """`[perception]`: how failures are attributed, and how many questions each becomes.

    `attributors` is the number of models that attribute each failure. Where they differ,
    `disagreement` says who decides. `questions` are the least and the most questions of a failure;
    answers have at most `max_answer_words` words.
    """

    attributors: Annotated[int, Meta(ge=2)] = 2
    disagreement: Literal["arbiter", "people"] = "arbiter"
    questions: tuple[Positive, Positive] = (1, 3)
    max_answer_words: Positive = 6
    reasks: Count = 2

    def __post_init__(self) -> None:
        """Refuses an empty range."""
        if self.questions[0] > self.questions[1]:
            raise ValueError(f"questions is from {self.questions[0]} to {self.questions[1]}")


class WriteOptions(Struct, frozen=True):
    """`[write]`: new questions on pictures that come from no failure.

    `pictures` is a folder, a list or a data set, as the other builders take it; empty for none.
    `quota` is how many new questions each capability is to get, 0 for as many as make the share
    `new_share` of all. Some fail the checks, so that `spare` times as many are asked for. With
    `grouped` the pictures of one folder, at most 8, are shown together.
    """

    pictures: str = ""
    quota: Count = 0
    new_share: Annotated[float, Meta(ge=0, lt=1)] = 0.4
    spare: Annotated[float, Meta(ge=1)] = 1.5
    grouped: bool = False


class PanelOptions(Struct, frozen=True):
    """`[panel]`: by which rules a question is kept.

    The reference is agreed where at least the share `agree` of the panel gives it; else people have
    to. A question is left out where at least the share `blind` gives it without the pictures, or
    where fewer than the share `steady` is judged alike on a paraphrase. Where at least the share
    `other` gives one and the same other answer, people decide.
    """

    least: Positive = 3
    agree: Share = 0.3
    blind: Share = 0.5
    steady: Share = 0.6
    other: Share = 0.5
    reasks: Count = 2


class SampleOptions(Struct, frozen=True):
    """`[sample]`: how many questions the benchmark has: 0 for all that are left.

    A sample is balanced over capabilities, then keeps `[write] new_share`, then is stratified by
    difficulty; the draw is seeded.
    """

    size: Count = 0
