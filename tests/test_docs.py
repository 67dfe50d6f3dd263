"""The docs: links lead somewhere, commands exist, examples run, the reference is up to date."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import snellen
from snellen.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
FILE_NAME = re.compile(r"# (\w+\.py)\n")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for name, body in BLOCK.findall(text) if name == language]


def commands_in(text: str) -> list[list[str]]:
    """The snellen commands of a shell block, with continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["snellen"]:
            found.append(words[1:])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page is a file of the project."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_exist_with_their_options(page: Path) -> None:
    """Every snellen command of a page names a command and options that exist."""
    for block in blocks(page, "bash") + blocks(page, "sh"):
        for words in commands_in(block):
            check_command(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_sentences_exist(page: Path) -> None:
    """Every command that a sentence names exists, with the options that it names there."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for quoted in re.findall(r"`snellen ([a-z][^`]*)`", text):
        check_command(quoted.replace("\n", " ").split())


def every_command(group: click.Group, name: str = "snellen") -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        found.append((f"{name} {word}", command))
        if isinstance(command, click.Group):
            found += every_command(command, f"{name} {word}")
    return found


def test_help_is_narrow_and_grouped() -> None:
    """Help fits 100 columns, and no heading stands above more than 20 options."""
    for name, command in every_command(cli):
        with click.Context(command, info_name=name, terminal_width=100) as context:
            lines = command.get_help(context).splitlines()
        assert [line for line in lines if len(line) > 100] == [], name
        n, most = 0, 0
        for line in lines:
            n = 0 if line.endswith(":") and not line.startswith(" ") else n
            n += line.startswith("  -")
            most = max(most, n)
        assert most <= 20, name


def check_command(words: list[str]) -> None:
    command: click.Command | None = cli
    context = click.Context(cli)
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        command = command.get_command(context, name)
        assert command is not None, f"no command {name} in: snellen {' '.join(words)}"
    assert command is not None
    known = {o for p in command.params if isinstance(p, click.Option) for o in p.opts}
    known |= {"--help", "-h", "--version"}
    for word in rest:
        if word.startswith("--"):
            option = word.partition("=")[0]
            assert option in known, f"no option {option} in: snellen {' '.join(words)}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    """Every Python block of a page runs as it stands; one that begins with a file's name is saved.

    Later blocks of the page may import such a file.
    """
    for code in blocks(page, "python"):
        if named := FILE_NAME.match(code):
            (tmp_path / named[1]).write_text(code, encoding="utf-8")
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert found.returncode == 0, f"{code}\n{found.stderr}"


def test_the_reference_is_what_the_program_says() -> None:
    """docs/make_reference.py has been run since commands, names or metrics changed."""
    found = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_page_is_on_a_shelf() -> None:
    """Each page of the docs is linked from their index."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = set(LINK.findall(index))
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert pages - {"README.md"} == linked


def modules() -> list[str]:
    found = pkgutil.walk_packages(snellen.__path__, "snellen.")
    # Tasks of Inspect are for those who have that library.
    other = ("snellen.__main__", "snellen.testing.__main__", "snellen.inspect_tasks")
    return [m.name for m in found if m.name not in other and ".cli." not in m.name]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_hold(name: str) -> None:
    """Every example in a docstring gives what it shows."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
