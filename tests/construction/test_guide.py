"""The guide on building a chart, walked as it stands: its configuration and all of its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakes.server import Behaviour, Body, FakeServer
from tests.worlds.capprobe_world import (
    ROOT,
    alpha,
    beta,
    describer,
    matcher,
    paint,
    pictures_of,
    text_of,
)

from snellen.cli import cli

GUIDE = (ROOT / "docs" / "guides" / "build-a-chart.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def answer(body: Body) -> str:
    """What the guide's models say; the evaluated one and its judge are called NAME."""
    messages = body["messages"]
    if body["model"] == "NAME":
        return "Areas of plain colours." if pictures_of(messages) else "E"
    if body["model"] == "other-model":
        return beta(messages)
    if len(pictures_of(messages)) == 1:
        return matcher(messages)
    return alpha(messages) if '"object_id"' in text_of(messages) else describer(messages)


@pytest.mark.slow
def test_the_guide_leads_to_an_evaluated_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first configuration and every command of the guide, in order, in a fresh folder."""
    blocks = BLOCK.findall(GUIDE)
    settings = next(body for language, body in blocks if language == "toml")
    commands = [
        shlex.split(line, comments=True)[1:]
        for language, body in blocks
        if language == "bash"
        for line in body.splitlines()
        if line.startswith("snellen ")
    ]
    assert len(commands) >= 7
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OTHER_KEY", "a-key")
    paint(tmp_path / "pictures", 1, 2)
    models = ("qwen3-vl-32b", "other-model", "NAME")
    with FakeServer(answer, Behaviour(models=models)) as server:
        settings = re.sub(r'url = "[^"]+"', f'url = "{server.url}"', settings)
        Path("build.toml").write_text(settings, encoding="utf-8")
        for words in commands:
            line = [server.url if word == "URL" else word for word in words]
            result = CliRunner().invoke(cli, line, standalone_mode=False)
            assert not result.return_value, f"{line}: {result.stderr}{result.exception!r}"
            assert result.exception is None, f"{line}: {result.exception!r}"
    assert Path("chart/benchmark/card.md").exists()
    assert Path("figures/categories.svg").exists()
    assert Path("runs/mine/summary.json").exists()
