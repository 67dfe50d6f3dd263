"""A small benchmark, a model and a judge behind one fake address, and runs against them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.synthetic import make_reading
from tests.fakes.server import Behaviour, Body, FakeServer, picture_uris, text_of

from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, execute

ROOT = Path(__file__).parents[2]
MODEL, JUDGE = "eye", "mind"
MODELS = (MODEL, JUDGE)


def answer(body: Body) -> str:
    """A caption of the picture, or a letter: always the same for the same request."""
    uris = picture_uris(body)
    if uris:
        return f"A red bus number {_number(uris[0])} stands under a tall tree near the wall."
    return "ABCDE"[_number(text_of(body)) % 5]


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:6], 16)


def serve(script: Callable[[Body], Any] = answer, **behaviour: Any) -> FakeServer:
    """A fake endpoint that knows both names."""
    return FakeServer(script, Behaviour(models=MODELS, **behaviour))


def small_benchmark(folder: Path, *, images: int = 6, questions: int = 40) -> Path:
    return make_reading(folder, images=images, questions=questions)


def evaluate(benchmark: Path | str, url: str, out: Path, **more: Any) -> Finished:
    """One run in this process, with model and judge at one address unless told otherwise."""
    words = {"model": MODEL, "api_url": url, "judge": JUDGE, "judge_url": url, **more}
    return asyncio.run(execute(make_plan(RunRequest(str(benchmark), out, **words))))


def command(benchmark: Path | str, url: str, out: Path, *words: str) -> list[str]:
    """The command line of a run."""
    line = [sys.executable, "-m", "snellen", "run", str(benchmark), "--model", MODEL]
    line += ["--api-url", url, "--judge", JUDGE, "--judge-url", url, "--out", str(out)]
    return [*line, *words]


def type_in(line: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """What a command prints, and its exit code."""
    return subprocess.run(
        line, capture_output=True, text=True, encoding="utf-8", env=environment(**variables),
        timeout=120, check=False,
    )  # fmt: skip


def environment(**variables: str) -> dict[str, str]:
    """This process's variables, with the package on the path and others on top."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}


def chats(server: FakeServer, role: str = "") -> list[Body]:
    """The chat requests that came in, of one role or of both."""
    bodies = [seen.body for seen in server.requests if seen.path.endswith("/chat/completions")]
    names = {"": MODELS, "model": (MODEL,), "judge": (JUDGE,)}[role]
    return [body for body in bodies if body.get("model") in names]


def numbers(out: Path) -> dict[str, Any]:
    """What must be the same, however a run came about: metrics, counts, breakdowns."""
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return {name: summary[name] for name in ("metrics", "counts", "by")}


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    """The rows of one of a run's JSON-lines files."""
    text = (out / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
