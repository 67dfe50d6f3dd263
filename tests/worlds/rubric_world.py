"""A small world for the rubric protocol: pictures, a captioner, and a judge that follows rules.

A statement `mention X` is true of a caption that holds X, `never X` of one that does not. Some
captions carry a mark at which the judge misbehaves.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.fakes.server import Body, FakeServer, error_response, picture_uris, text_of
from tests.worlds.benchmark_files import data_uri, png, rubric_folder, rubric_row

NATURAL, PAGES, SCREENS = "Natural Scene", "Document/OCR", "Digital UI/UX"


@dataclass(frozen=True)
class Scene:
    """A picture by the caption that the model gives of it, None where its call fails."""

    name: str
    category: str
    caption: str | None
    must: tuple[str, ...]
    easy: tuple[str, ...]


SCENES = (
    Scene("n1", NATURAL, "cups tray two", ("mention cups", "mention tray"),
          ("mention two", "mention lid")),
    Scene("n2", NATURAL, "tree bird", ("mention tree", "mention lake"),
          ("mention bird", "never boat")),
    Scene("n3", NATURAL, "dog", ("mention dog",), ("mention collar", "never cat", "never hat")),
    Scene("d1", PAGES, "letter SHORT", ("mention letter",), ("mention stamp", "mention date")),
    Scene("d2", PAGES, "form box FENCES", ("mention form", "mention box"), ("never stain",)),
    Scene("d3", PAGES, "page MIXED one", ("mention page",),
          ("mention one", "mention six", "mention ten")),
    Scene("g1", SCREENS, "menu bar TORN", ("mention menu", "mention bar"),
          ("never advert", "mention icon")),
    Scene("g2", SCREENS, "tab HANG", ("mention tab", "mention dial"), ("never toast", "never ad")),
    Scene("g3", SCREENS, "", ("mention window",), ("never error",)),
    Scene("g4", SCREENS, None, ("mention cursor",), ("mention arrow",)),
    Scene("e1", NATURAL, "hill", ("mention hill",), ()),
    Scene("e2", NATURAL, "sea sand", (), ("mention sand", "mention crab")),
)  # fmt: skip

_LISTED = re.compile(r"^\d+\. (.+)$", re.M)
_CAPTION = re.compile(r"<caption_under_test>\n(.*)\n</caption_under_test>", re.S)


def holds(statement: str, caption: str) -> bool:
    kind, word = statement.split()
    return (word in caption.split()) == (kind == "mention")


def block(name: str, values: list[bool]) -> str:
    results = "".join(f"<Result>{str(value).lower()}</Result>" for value in values)
    return f"<Group{name}>{results}</Group{name}>"


def assessment(a: list[bool], b: list[bool]) -> str:
    return f"<Assessment>{block('A', a)}{block('B', b)}</Assessment>"


def listed(text: str) -> tuple[list[str], list[str]]:
    """The statements of both groups that a judge's prompt lists."""
    _, _, rest = text.partition("[Group A: Critical Rubrics]")
    a, _, b = rest.partition("[Group B: Granular Rubrics]")
    return _LISTED.findall(a), _LISTED.findall(b)


class Hanging(web.Response):
    """A response that never comes."""

    async def prepare(self, request: Any) -> Any:
        await asyncio.sleep(3600)


def judge(text: str) -> Any:
    """What the rule-bound judge says to its prompt."""
    caption = _CAPTION.findall(text)[-1]
    if "HANG" in caption:
        return Hanging()
    if "against one statement" in text:
        [statement] = re.findall(r"^(?:mention|never) \w+$", text, re.M)
        return str(holds(statement, caption)).lower()
    a, b = ([holds(s, caption) for s in group] for group in listed(text))
    said = assessment(a, b)
    if "SHORT" in caption and b:
        return assessment(a, b[:-1])
    if "FENCES" in caption:
        return f"```xml\n{said}\n```"
    if "MIXED" in caption:
        return said.replace("Result", "RESULT").replace("true", "TRUE").replace("false", "False")
    if "TORN" in caption and a:
        return said + assessment([not value for value in a], b)
    return said


def picture(number: int) -> bytes:
    return png((number * 9, 40, 40))


def write_world(folder: Path, scenes: tuple[Scene, ...] = SCENES) -> Path:
    rows = []
    rubric_folder(folder)
    for number, scene in enumerate(scenes):
        (folder / f"{scene.name}.png").write_bytes(picture(number))
        rows.append(
            rubric_row(
                scene.name,
                f"{scene.name}.png",
                category=scene.category,
                must_right=list(scene.must),
                easy_wrong=list(scene.easy),
            )
        )
    return rubric_folder(folder, rows)


def serve_world(scenes: tuple[Scene, ...] = SCENES) -> FakeServer:
    """A model that knows its captions by the picture's bytes, and the judge, at one endpoint."""
    captions = {data_uri(picture(n)): scene.caption for n, scene in enumerate(scenes)}

    def answer(body: Body) -> Any:
        pictures = picture_uris(body)
        if not pictures:
            return judge(text_of(body))
        caption = captions[pictures[0]]
        return error_response(400, "no such picture") if caption is None else caption

    return FakeServer(answer)


def write_settings(folder: Path, server: FakeServer) -> Path:
    """A settings file in which both roles have little patience, yet enough for a busy machine."""
    file = folder / "snellen.toml"
    url = json.dumps(server.url)
    file.write_text(f"[models.fake]\nurl = {url}\ntimeout_s = 2.0\n", encoding="utf-8")
    return file
