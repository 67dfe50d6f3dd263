"""The review in a real headless browser, with people at the same time (slow)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.capprobe_world import config, construct, paint
from tests.worlds.engine_world import environment

import snellen
from snellen.builders.options import ReviewOptions
from snellen.construction import review

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [pytest.mark.slow, pytest.mark.browser]
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build of two painted pictures with two annotators and an adjudicator."""
    options = ReviewOptions(
        annotators=("ann", "bob"), adjudicator="eve", overlap=0.2, adjudicate_accepts=0.05
    )
    source = paint(tmp_path / "in", 1, 2)
    aside(construct, source, tmp_path / "out", config=config(review=options))
    return tmp_path / "out"


def aside(function: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """Calls a function in a thread of its own: the browser's loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *words, **more).result()


class Server:
    """`snellen review` as a process of its own."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "snellen", "review", *words, "--no-browser"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().rstrip("/")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def post(self, path: str, **form: str) -> str:
        """Sends a form as a page of the server would; the address that the answer leads to."""
        request = urllib.request.Request(
            self.url + path, urllib.parse.urlencode(form).encode(), {"Origin": self.url}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine (apt install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def open_page(browser: Any, address: str, viewport: dict[str, int]) -> Any:
    page = browser.new_page(viewport=viewport)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on(
        "console",
        lambda said: (
            page.problems.append(said.text)
            if said.type == "error" and "409" not in said.text
            else None
        ),
    )
    page.goto(address)
    return page


def press(page: Any, *keys: str) -> None:
    """Presses keys that each lead to another page."""
    for key in keys:
        with page.expect_navigation():
            page.keyboard.press(key)


def test_two_annotators_and_an_adjudicator_review_and_the_result_is_evaluated(
    browser: Any, folder: Path
) -> None:
    """Keys alone: accept, delete, edit, undo, a collision; then export and a run."""
    with Server(str(folder)) as server:
        ann = open_page(browser, f"{server.url}/next?as=ann", WIDE)
        bob = open_page(browser, ann.url.replace("as=ann", "as=bob"), PHONE)
        task = urllib.parse.parse_qs(urllib.parse.urlsplit(ann.url).query)["id"][0]
        ann.keyboard.press("1")
        ann.keyboard.press("e")
        ann.fill("#question_0", "What colour is the largest area?")
        press(ann, "Control+Enter")
        press(bob, "x")
        bob.get_by_text("Somebody else decided on this first").wait_for()
        assert bob.get_by_text("largest").count()
        press(bob, "Enter")
        for page, keys in ((ann, "aaaxaaaaaaaaaa"), (bob, "aaaaxaaaaaaaaa")):
            press(page, *keys)
        taken_back = open_page(browser, f"{server.url}/next?as=ann", WIDE)
        press(taken_back, "Backspace", "a")
        eve = open_page(browser, f"{server.url}/next?as=eve", WIDE)
        assert eve.get_by_text("without names").count()
        press(eve, "a")
        for page in (ann, bob, taken_back, eve):
            assert page.problems == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ann.goto(f"{server.url}/stats")
        assert ann.get_by_text("Krippendorff").count()
    decided = review.read_decisions(folder)
    assert len(decided) >= 30
    assert {one.annotator for one in decided} == {"ann", "bob", "eve"}
    deleted = {one.task.id for one in review.state(folder) if one.deciding is not None
               and one.deciding.decision == "delete"}  # fmt: skip
    options = review.review_options(folder)[0]
    built = aside(construct, folder.parent / "in", folder, config=config(review=options))
    assert built.funnel[-1].kept > 0
    run = aside(
        snellen.run, str(folder / "benchmark"), model=lambda messages: "Areas.",
        judge=lambda messages: "E", out=folder.parent / "run",
    )  # fmt: skip
    probes = {probe.id for item in run.items for probe in item.probes}
    assert not probes & deleted
    edited = next(p for item in run.items for p in item.probes if p.id == task)
    assert edited.question == "What colour is the largest area?"


def test_a_killed_server_loses_no_saved_decision(folder: Path) -> None:
    """`kill -9` right after each answer: every decision that was acknowledged is there."""
    tasks = [one for one in review.read_queue(folder) if one.annotator == "ann"][:4]
    for task in tasks:
        with Server(str(folder)) as server:
            server.post("/task", **{"as": "ann", "id": task.id, "decision": "accept", "seen": "0"})
            os.kill(server.process.pid, signal.SIGKILL)
    with Server(str(folder)):
        pass
    assert [one.id for one in review.read_decisions(folder)] == [task.id for task in tasks]
    assert sum(one.first is not None for one in review.state(folder)) == len(tasks)
