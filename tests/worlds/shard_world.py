"""A model and a judge inside this process, and runs of shards before them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.worlds.engine_world import answer

from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import Finished, execute


def eye(messages: list[dict[str, Any]]) -> str:
    """A caption, always the same for the same picture."""
    return answer({"messages": messages})


def mind(messages: list[dict[str, Any]]) -> str:
    """A letter, always the same for the same question."""
    return answer({"messages": messages})


def run_part(benchmark: Path, out: Path, shard: str = "", **more: Any) -> Finished:
    """A run, or one shard of it."""
    words = {"model": eye, "judge": mind, "shard": shard, **more}
    return asyncio.run(execute(make_plan(RunRequest(str(benchmark), out, **words))))


def rewrite(file: Path, change: Any) -> None:
    """Writes the rows of a JSON-lines file anew, each as `change` makes it; None takes it out."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = [row for row in map(change, rows) if row is not None]
    file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
