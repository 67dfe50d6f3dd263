"""Scripted models that build rubrics: they look at pictures, and their errors are known.

Statements end in the word that they are about. A description holds when the word is in it, and a
ban when it is not. Authors are divided for good over pictures that are `DIVIDED` in colour.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.worlds.capprobe_world import Counted, Messages, colour_of, pictures_of, text_of
from tests.worlds.rubric_world import assessment, listed

from snellen.builders.rubrics.options import CurateOptions, GoldenOptions, PoolOptions
from snellen.construction.build import BuildRequest, Built, build
from snellen.construction.config import BuildConfig
from snellen.construction.rubrics.pipeline import RUBRICS

NAMES = ("cat.jpg", "coffee.jpg", "flower.jpg", "app.png", "chart.png")
DIVIDED = "black"
PLAIN = "white"
_FRAMED = re.compile(r"<(candidate|response)_(\d+)>\n(.*?)\n</\1_\2>", re.S)


def facts(messages: Messages) -> tuple[str, str, str]:
    """The main colour, the light and the shape of the picture that is shown."""
    [pixels] = pictures_of(messages)
    height, width, _ = pixels.shape
    shape = "wide" if width > height else "tall" if height > width else "square"
    return colour_of(pixels), "bright" if pixels.mean() > 110 else "dim", shape


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def holds(statement: str, caption: str) -> bool:
    *_, last = re.findall(r"\w+", statement.casefold())
    return (last in words(caption)) != (" not " in statement)


def scorer(messages: Messages) -> str:
    """Scores by what the picture is like; plain white ones are poor."""
    colour, light, shape = facts(messages)
    if "domain" in text_of(messages):
        return json.dumps({"domain": "Natural Scene" if shape == "wide" else "Digital UI/UX"})
    points = 3 if colour == PLAIN else 9 if colour == DIVIDED else 7
    part = "<{0}>\n<reasoning>It is mainly {1} & {2}.</reasoning>\n<score>{3}</score>\n</{0}>"
    parts = [
        part.format(n, colour, light, points) for n in ("visual_complexity", "informativeness")
    ]
    return "<image_evaluation>\n" + "\n".join(parts) + "\n</image_evaluation>"


def caption(messages: Messages) -> str:
    colour, light, shape = facts(messages)
    return f"The view is {shape}, has a border, its light is {light}, and its colour is {colour}."


def _vote(messages: Messages, favourite: Callable[[str], tuple[Any, ...]]) -> str:
    shown = {int(n): text for _, n, text in _FRAMED.findall(text_of(messages))}
    order = sorted(shown, key=lambda n: favourite(shown[n]), reverse=True)
    critiques = "\n".join(
        f"<candidate_{n}_critique>It has {len(shown[n])} letters.</candidate_{n}_critique>"
        for n in sorted(shown)
    )
    return (
        f"<voting_result>\n<analysis>\n{critiques}\n</analysis>\n"
        f"<ranking>{','.join(map(str, order))}</ranking>\n"
        f"<best_candidate_id>{order[0]}</best_candidate_id>\n"
        "<rationale>It is the fullest.</rationale>\n</voting_result>"
    )


def author(name: str, extra: str) -> Callable[[Messages], str]:
    """An author that signs its captions; the juror prefers the longest, or, divided, its own."""

    def play(messages: Messages) -> str:
        text = text_of(messages)
        if "<voting_result>" in text:
            if facts(messages)[0] == DIVIDED:
                return _vote(messages, lambda one: (name in words(one), one))
            return _vote(messages, lambda one: (len(one), one))
        return f"{caption(messages)} {extra} Signed: {name}."

    play.__name__ = name
    return play


def pooled(name: str, *, lies: bool, dreams: bool) -> Callable[[Messages], str]:
    """A model of the pool: one that lies has another colour, one that dreams sees a dragon."""

    def play(messages: Messages) -> str:
        colour = facts(messages)[0]
        said = caption(messages)
        if lies:
            said = said.replace(colour, "transparent")
        return said + (" There is a dragon." if dreams else "") + f" Signed: {name}."

    play.__name__ = name
    return play


def proposer(messages: Messages) -> str:
    """Statements about the picture, or about the pool's errors; a few of them break a rule."""
    text = text_of(messages)
    golden = re.findall(r"<golden_caption>\n(.*?)\n</golden_caption>", text, re.S)[0]
    shape, light, colour = re.findall(
        r"is (wide|tall|square),.*light is (\w+),.*is (\w+)\.", golden
    )[0]
    if "<response_1>" not in text:
        return json.dumps([
            f"The response must state that the view is {shape}.",
            f"The response must state that its light is {light}.",
            "The response must mention the border.",
        ])  # fmt: skip
    shown = [one for _, _, one in _FRAMED.findall(text)]

    def wrong(statement: str) -> dict[str, Any]:
        erring = [k for k, one in enumerate(shown, 1) if not holds(statement, one)]
        return {"text": statement, "wrong_in": erring}

    statements = [
        f"The response must state that its colour is {colour}.",
        "The response must not mention a dragon.",
        "The response must mention a window.",
        "The response must not mention a unicorn.",
        f"The response must state the view is {shape}.",
    ]
    found: list[Any] = [wrong(one) for one in statements]
    return json.dumps({"rubrics": [*found, "Mentions a dragon.",
                                   "The response must not mention a ghost."]})  # fmt: skip


def grounder(messages: Messages) -> str:
    """The border is in the captions alone."""
    text = text_of(messages)
    [statement] = re.findall(r"<statement>\n(.*?)\n</statement>", text, re.S)
    golden = re.findall(r"<golden_caption>\n(.*?)\n</golden_caption>", text, re.S)[0]
    return json.dumps({"in_image": "border" not in statement,
                       "in_caption": holds(statement, golden)})  # fmt: skip


def judge(messages: Messages) -> str:
    text = text_of(messages)
    said = re.findall(r"<caption_under_test>\n(.*)\n</caption_under_test>", text, re.S)[-1]
    a, b = ([holds(s, said) for s in group] for group in listed(text))
    return assessment(a, b)


AUTHORS = (
    author("ann", "It has one part."),
    author("ben", "It has one large part in the middle."),
    author("cat", "It has a part."),
)
POOL = (
    pooled("honest", lies=False, dreams=False),
    pooled("liar", lies=True, dreams=False),
    pooled("dreamer", lies=False, dreams=True),
    pooled("fool", lies=True, dreams=True),
)
PLAYERS: Mapping[str, Any] = {
    "scorer": scorer, "author": AUTHORS, "pool": POOL, "proposer": proposer,
    "grounder": grounder, "judge": judge,
}  # fmt: skip
MODELS: Mapping[str, Callable[[Messages], str]] = {
    one.__name__: one for one in (scorer, *AUTHORS, *POOL, proposer, grounder, judge)
}


def answer(body: Mapping[str, Any]) -> str:
    """What the model that a request names says."""
    return MODELS[body["model"]](body["messages"])


def config(*, seed: int = 0, **sections: Any) -> BuildConfig:
    """A small configuration; sections by name win."""
    options: dict[type[Any], Any] = {
        CurateOptions: CurateOptions(min_pixels=1000),
        GoldenOptions: GoldenOptions(unanimity="first-round"),
        PoolOptions: PoolOptions(size=len(POOL)),
    }
    options |= {type(value): value for value in sections.values()}
    return BuildConfig(seed, options=options)


def construct(source: Path | str, out: Path, **words_: Any) -> Built:
    """One build in this process, with the scripted models unless told otherwise."""
    request = {"config": config(), "players": PLAYERS, **words_}
    return asyncio.run(build(BuildRequest(RUBRICS, str(source), out, **request)))


__all__ = ["MODELS", "NAMES", "PLAYERS", "Counted", "answer", "config", "construct"]
