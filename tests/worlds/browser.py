"""A headless Chromium for tests: pages that are watched, and a check of their accessibility."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
NEEDS_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine (apt install chromium)"),
]
SERIOUS = frozenset({"serious", "critical"})


@dataclass
class Watched:
    """A page, and what went wrong or was asked for while it was open."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium; the test is skipped where playwright is not installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def watched(browser: Any, **settings: Any) -> Iterator[Watched]:
    """A fresh window whose messages, dialogs and requests are kept."""
    context = browser.new_context(**settings)
    page = context.new_page()
    seen = Watched(page)

    def refuse(dialog: Any) -> None:
        seen.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: seen.problems.append(message.text))
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: seen.requests.append(request.url))
    yield seen
    context.close()


def barriers(page: Any) -> list[str]:
    """What axe-core finds serious or critical on a page, one line each with the elements."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"][:3]
    ]


@contextmanager
def served(words: Sequence[str | Path]) -> Iterator[str]:
    """The address of a command that serves pages, started as a user starts it."""
    command = [sys.executable, "-m", "snellen", *map(str, words), "--no-browser"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    try:
        address = child.stdout.readline().strip()
        assert address.startswith("http://"), child.stderr.read()
        yield address
    finally:
        child.terminate()
        child.communicate(timeout=20)
