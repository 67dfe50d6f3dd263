"""Scripted models that build perception questions from failures on bundled pictures.

Two models fail two small benchmarks, by results of EvalScope. Attributors read the question: `ann`
and `bob` differ on shapes. Questions of failures are about what a look at the picture tells; some
break a rule, and the panel finds out.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from tests.worlds.capprobe_world import (
    PICTURES,
    Counted,
    Messages,
    colour_of,
    pictures_of,
    text_of,
)

from snellen.builders.perception.options import (
    CollectOptions,
    InduceOptions,
    PanelOptions,
    WriteOptions,
)
from snellen.construction.build import BuildRequest, Built, build
from snellen.construction.config import BuildConfig
from snellen.construction.perception.pipeline import PERCEPTION

NAMES = ("cat.jpg", "coffee.jpg", "app.png")
SPARE = ("flower.jpg", "chart.png")
# What is asked in each benchmark, and the type of the error by both attributors.
ASKED = {
    "palette": {"Which colour fills most of it?": "visual_attribute_error"},
    "frames": {
        "Which shape has the frame, wide, tall or square?": "visual_comparison_error",
        "What is the number of sides times nine?": "reasoning",
    },
}
SECOND = {"shape": "visual_relation_error"}
WRONG = "transparent, I would say"


def truth(messages: Messages, text: str) -> str:
    """What a look at the first picture tells about a question."""
    pixels = pictures_of(messages)[0]
    height, width, _ = pixels.shape
    if "colour" in text:
        return colour_of(pixels)
    if "shape" in text:
        return "wide" if width > height else "tall" if height > width else "square"
    if "light" in text:
        return "bright" if pixels.mean() > 110 else "dim"
    return "36"


def small_pictures(folder: Path, *names: str) -> Path:
    """Some of the bundled pictures, 96 pixels wide or high."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        with Image.open(PICTURES / name) as opened:
            opened.thumbnail((96, 96))
            opened.convert("RGB").save((folder / name).with_suffix(".png"))
    return folder


def results(folder: Path, *models: str, names: tuple[str, ...] = NAMES) -> Path:
    """Results of two benchmarks by EvalScope: each model fails all but the first sample."""
    small_pictures(folder / "pictures", *names)
    for model in models or ("seer", "mole"):
        for benchmark, asked in ASKED.items():
            path = folder / "reviews" / model / f"{benchmark}_test.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            report = folder / "reports" / model / f"{benchmark}.json"
            report.parent.mkdir(parents=True, exist_ok=True)
            report.write_text("{}", encoding="utf-8")
            pairs = [
                (Path(name).with_suffix(".png").name, question)
                for name in names
                for question in asked
            ]
            rows = [
                _review(n, question, f"pictures/{name}", is_right=not n)
                for n, (name, question) in enumerate(pairs)
            ]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def _review(index: int, question: str, picture: str, *, is_right: bool) -> dict[str, Any]:
    parts = [{"type": "image", "image": picture}, {"type": "text", "text": question}]
    return {
        "index": index, "target": ["as it is"],
        "messages": [{"role": "user", "content": parts},
                     {"role": "assistant", "content": WRONG}],
        "sample_score": {"score": {"value": {"acc": float(is_right)}, "prediction": WRONG}},
    }  # fmt: skip


def question_of(messages: Messages) -> str:
    found = re.findall(r"<question>\n(.*?)\n</question>", text_of(messages), re.S)
    return str(found[0])


def type_of(question: str) -> str:
    text = re.sub(r"\[picture \d+\]", "", question)
    return next(asked[text] for asked in ASKED.values() if text in asked)


def allowed(messages: Messages, wanted: str) -> str:
    """The type that is wanted, or the induced one of the same thing where that is not listed."""
    listed = re.findall(r"^- `(\w+)`:", text_of(messages), re.M)
    thing = next((w for w in ("colour", "shape") if w in question_of(messages)), "number")
    named = [wanted, f"unseen_{thing}_error", "reasoning"]
    return next(one for one in named if one in listed)


def attributor(name: str, second: Mapping[str, str]) -> Callable[[Messages], str]:
    def play(messages: Messages) -> str:
        question = question_of(messages)
        found = next((v for k, v in second.items() if k in question), type_of(question))
        thing = next((w for w in ("colour", "shape") if w in question), "number")
        said = {"steps": ["Look at the picture.", f"Say the {thing}."], "earliest_wrong": 2,
                "description": f"The {thing} of the whole is said without a look."}  # fmt: skip
        is_typed = "Name its type" in text_of(messages)
        return json.dumps(said | ({"type": allowed(messages, found)} if is_typed else {}))

    play.__name__ = name
    return play


def arbiter(messages: Messages) -> str:
    """Always with the first attributor."""
    return json.dumps({"type": allowed(messages, type_of(question_of(messages)))})


def inducer(messages: Messages) -> str:
    text = text_of(messages)
    thing = next(word for word in ("colour", "shape", "number") if word in text)
    one = {"name": f"Unseen {thing} error", "definition": f"The {thing} is not seen."}
    return json.dumps({"types": [one]})


def decomposer(messages: Messages) -> str:
    """A good question, one without need of a picture, a wrong reference; or a paraphrase."""
    text = text_of(messages)
    if "other words" in text:
        return json.dumps({"problem": f"Tell me this: {question_of(messages)}"})
    label = re.findall(r"type of this mistake is `(\w+)`", text)[0]
    light = truth(messages, "light")
    drafts = [
        ("How is the light, bright or dim? Answer with one word. <|image_1|>", light),
        ("Is this a picture? Answer with one word.", "yes"),
        ("Which colour fills most of <|image_1|>? Answer with one word.", "octarine"),
    ]
    return json.dumps({"questions": [
        {"problem": problem, "answer": answer, "hint": "", "error_category": label}
        for problem, answer in drafts
    ]})  # fmt: skip


def writer(messages: Messages) -> str:
    """One question on any picture, but none for hallucinations."""
    label = re.findall(r"failures are called `(\w+)`", text_of(messages))[0]
    if label == "hallucination":
        return json.dumps({"questions": []})
    draft = {"problem": f"Which shape ({label}), wide, tall or square? Answer with one word.",
             "answer": truth(messages, "shape"), "hint": None, "error_category": label}  # fmt: skip
    return "```json\n" + json.dumps({"questions": [draft]}) + "\n```"


def solver(name: str, *, is_weak: bool = False) -> Callable[[Messages], str]:
    """Looks, where there is something to look at; a weak one takes every light for dim."""

    def play(messages: Messages) -> str:
        text = text_of(messages)
        if "Is this a picture" in text:
            return "Yes."
        if not pictures_of(messages):
            return "unknown"
        return "dim" if is_weak and "light" in text else truth(messages, text)

    play.__name__ = name
    return play


def judge(messages: Messages) -> str:
    text = text_of(messages)
    said = re.findall(r"<answer_under_test>\n(.*)\n</answer_under_test>", text, re.S)[-1]
    right = re.findall(r"<reference_answer>\n(.*)\n</reference_answer>", text, re.S)[-1]
    return f"[reason] compared\n[judge] {right.casefold() in said.casefold()}"


ATTRIBUTORS = (attributor("ann", {}), attributor("bob", SECOND))
SOLVERS = (solver("one"), solver("two"), solver("weak", is_weak=True))
PLAYERS: Mapping[str, Any] = {
    "attributor": ATTRIBUTORS, "arbiter": arbiter, "inducer": inducer, "decomposer": decomposer,
    "writer": writer, "solver": SOLVERS, "judge": judge,
}  # fmt: skip
MODELS: Mapping[str, Callable[[Messages], str]] = {
    one.__name__: one
    for one in (*ATTRIBUTORS, arbiter, inducer, decomposer, writer, *SOLVERS, judge)
}


def answer(body: Mapping[str, Any]) -> str:
    """What the model that a request names says."""
    return MODELS[body["model"]](body["messages"])


def config(*, seed: int = 0, **sections: Any) -> BuildConfig:
    """A small configuration; sections by name win."""
    options = {type(value): value for value in sections.values()}
    return BuildConfig(seed, options=options)


def construct(source: Path | str, out: Path, **words: Any) -> Built:
    """One build in this process, with the scripted models unless told otherwise."""
    request = {"config": config(), "players": PLAYERS, **words}
    return asyncio.run(build(BuildRequest(PERCEPTION, str(source), out, **request)))


__all__ = [
    "MODELS", "PLAYERS", "CollectOptions", "Counted", "InduceOptions", "PanelOptions",
    "WriteOptions", "answer", "config", "construct", "results",
]  # fmt: skip
