"""Run folders for the tests of `snellen view`, tame and hostile, and a browser at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from starlette.testclient import TestClient
from tests.worlds.report_runs import picture, reading_run, save_run

from snellen.records import Item, Probe, ReplyRow, Verdict
from snellen.runs.folder import Run
from snellen.runs.spec import RunSpec
from snellen.runs.summary import summarise
from snellen.web.guard import Access
from snellen.web.view.app import view_app
from snellen.web.view.library import Library
from snellen.web.view.work import Here

HOME = "http://127.0.0.1:8000"


def browser_at(
    *paths: Path, sources: Sequence[str] = (), access: Access | None = None
) -> TestClient:
    """A browser at `snellen view` of some paths, whose work is done at once."""
    scratch = paths[0] / ".scratch"
    scratch.mkdir(exist_ok=True)
    library = Library(paths, Here(), scratch, scratch, tuple(sources))
    app = view_app(library, access=access or Access())
    return TestClient(app, base_url=HOME, follow_redirects=False)


def spoilt_run(folder: Path, text: str, *, name: str = "spoilt") -> Run:
    """A reading run of one item in which every text of a model, judge or benchmark is `text`."""
    tame = reading_run(folder, name)
    image = replace(picture(folder / "pictures", "grey", "grey"), name=text)
    probe = Probe(text, text, "A", (text, text + "2", text + "3", text + "4"), kind="",
                  groups={"category": text, "generator": text, "region_id": text})  # fmt: skip
    item = Item(text, (image,), (probe,), text="", hint=text, reference=text, cluster=text,
                groups={"l1": (text,), "l2": (text,)}, digest="f" * 64)  # fmt: skip
    reply = ReplyRow(text, text, reasoning=text, finish_reason=text[:50], tokens=5, status="ok")
    verdict = Verdict(text, text, text, False, "scored", reason=text, raw=f'"{text}"', note=text)
    spec: RunSpec = replace(
        tame.spec,
        items={text: item.digest},
        benchmark=text,
        model=replace(tame.spec.model, name=text),
        judge=replace(tame.spec.judge, name=text),
        license=text,
    )
    run = Run(folder / name, spec, (item,), {(text, 0): reply}, {(text, 0, text): verdict}, None)
    run = replace(run, summary=summarise(run, status="complete"))
    save_run(run)
    return run


class Page(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.text += data

    def links(self, like: str = "") -> list[str]:
        """The addresses of links that hold some words."""
        found = [attrs.get("href") or "" for tag, attrs in self.elements if tag == "a"]
        return [href for href in found if like in href]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        """The elements of a class."""
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]
