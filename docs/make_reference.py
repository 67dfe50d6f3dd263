"""Writes the reference shelf from the program itself: commands, Python names, metrics.

python docs/make_reference.py          writes docs/reference/
python docs/make_reference.py --check  exits 1 where a page is out of date
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

import snellen
from snellen.api import RunArguments
from snellen.cli import COMMANDS, cli
from snellen.metrics import reach
from snellen.protocols import PROTOCOLS
from snellen.runs.request import arguments

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

HERE = Path(__file__).parent / "reference"
WIDTH = 96
# Classes whose attributes are read by users.
WITH_ATTRIBUTES = ("Run", "Comparison", "Benchmark")


def help_of(command: click.Command, path: str) -> list[str]:
    """The help of a command and of its subcommands, as Markdown."""
    context = click.Context(command, info_name=path, max_content_width=WIDTH, terminal_width=WIDTH)
    lines = [f"## `{path}`", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group) and command is not cli:
        for name, sub in command.commands.items():
            lines += help_of(sub, f"{path} {name}")
    return lines


def commands_page() -> str:
    """All commands with their options."""
    lines = ["# Commands", "", "`snellen` and `python -m snellen` are the same.", ""]
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        lines += help_of(command, f"snellen {name}")
    return "\n".join(lines)


def python_page() -> str:
    """The public Python names with their docstrings."""
    lines = ["# Python", "", "```python", "import snellen", "```", ""]
    for name in snellen.__all__:
        if name.startswith("__"):
            continue
        value = getattr(snellen, name)
        lines += [*_heading(name, value), inspect.getdoc(value) or "", ""]
        if name in WITH_ATTRIBUTES:
            lines += attributes_of(value)
    lines += arguments_table()
    return "\n".join(lines)


def attributes_of(value: type[DataclassInstance]) -> list[str]:
    """A table of the fields, properties and methods of a class."""
    lines = ["| attribute | type or meaning |", "|---|---|"]
    for field in dataclasses.fields(value):
        kind = str(field.type).replace("|", "\\|")
        lines.append(f"| `{field.name}` | `{kind}` |")
    for name, member in vars(value).items():
        if name.startswith("_") or not (inspect.isfunction(member) or hasattr(member, "__get__")):
            continue
        meaning = (inspect.getdoc(member) or "").split("\n")[0]
        if meaning and not inspect.ismemberdescriptor(member):
            call = "()" if inspect.isfunction(member) else ""
            lines.append(f"| `{name}{call}` | {meaning} |")
    return [*lines, ""]


def _heading(name: str, value: object) -> list[str]:
    """The call with its signature; arguments that all runs share stand in a table of their own."""
    if not callable(value) or inspect.isclass(value):
        return [f"## `snellen.{name}`", ""]
    signature = inspect.signature(value)
    shown = list(signature.parameters.values())
    makes_a_run = set(RunArguments.__annotations__) <= set(signature.parameters)
    if makes_a_run:
        shown = [one for one in shown if one.name not in RunArguments.__annotations__]
    lines = [f"    {one},".replace("'", "") for one in shown]
    keywords = [k for k, one in enumerate(shown) if one.kind is inspect.Parameter.KEYWORD_ONLY]
    if keywords:
        lines.insert(keywords[0], "    *,")
    if makes_a_run:
        lines.append("    ...,  # and the arguments of all runs, below")
    returns = str(signature.return_annotation).strip("'")
    body = [f"snellen.{name}(", *lines, f") -> {returns}"]
    return [f"## `snellen.{name}`", "", "```text", *body, "```", ""]


def arguments_table() -> list[str]:
    """Every argument of a run: type, default, meaning."""
    lines = [
        "## Arguments of all runs",
        "",
        "The options of `snellen run`, as keywords. None stands for the default.",
        "",
        "| argument | type | default | meaning | as an option |",
        "|---|---|---|---|---|",
    ]
    for name, annotation in RunArguments.__annotations__.items():
        one = arguments()[name]
        kind = annotation.__forward_arg__.replace("|", "\\|")
        lines.append(
            f"| `{name}` | `{kind}` | `{one.default!r}` | {one.about.help} | `{one.option}` |"
        )
    return [*lines, ""]


def metrics_page() -> str:
    """The metrics of each protocol: definition, formula, range, direction and an example."""
    lines = [
        "# Metrics",
        "",
        "Formulas are those of the strict value, in which an unscored probe counts as not right. "
        "The other two readings (over scored probes, upper bound) stand in "
        "[What the numbers mean](../concepts/numbers.md).",
        "",
    ]
    better = {1: "higher is better", -1: "lower is better", 0: "neither direction is better"}
    for name, protocol in PROTOCOLS.items():
        lines += [f"## {protocol.title} (`{name}`)", "", protocol.about, ""]
        for m in protocol.metrics:
            low, high = reach([m])
            ends = f"{m.scale * low[0]:g} to {m.scale * high[0]:g} {m.unit}"
            span = ends if np.isfinite(high[0]) else f"from 0 {m.unit}"
            lines += [
                f"### `{m.name}`: {m.heading}",
                "",
                m.definition,
                "",
                f"- formula: {m.formula}",
                f"- range: {span.strip()}; {better[m.better]}",
                f"- example: {m.example}",
                "",
            ]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every page of the shelf by its path."""
    return {
        HERE / "commands.md": commands_page().rstrip() + "\n",
        HERE / "python.md": python_page().rstrip() + "\n",
        HERE / "metrics.md": metrics_page().rstrip() + "\n",
    }


def main() -> int:
    """Writes or checks the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'out of date' if check else 'written'}: {path.relative_to(HERE.parent.parent)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
