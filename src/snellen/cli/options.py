"""Options of commands, made from the fields of `RunRequest`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

import click

from snellen.records import Params
from snellen.runs.request import Argument, RunRequest, arguments

F = TypeVar("F", bound=Callable[..., object])

JUDGE = (
    "judge", "judge_url", "judge_key_env", "judge_key", "judge_temperature", "judge_max_tokens",
    "judge_top_p", "judge_params", "judge_thinking", "judge_prompt", "judge_system", "panel",
    "min_valid",
)  # fmt: skip
DRIVING = (
    "config", "concurrency", "seed", "max_cost", "max_unscored", "max_tries", "reasks",
    "allow_blank", "keep_unreadable", "patience", "cache",
)  # fmt: skip
TITLES = {
    "model": "Model",
    "judge": "Judge",
    "data": "Data",
    "sampling": "Sampling",
    "protocol": "Protocol",
    "running": "Running",
    "output": "Output",
}


@dataclass(frozen=True, slots=True)
class Display:
    """What a command that makes calls shows: progress, tables or JSON, or a forecast alone."""

    dry_run: bool = False
    as_json: bool = False
    quiet: bool = False


class GroupedOption(click.Option):
    """An option that stands under the title of its group."""

    def __init__(self, *names: Any, group: str = "output", **more: Any) -> None:
        super().__init__(*names, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options by group; its own come first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each group under its title."""
        groups: dict[str, list[tuple[str, str]]] = {t: [] for t in ("Options", *TITLES.values())}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                group = option.group if isinstance(option, GroupedOption) else ""
                last = "Output" if option.name == "help" else "Options"
                groups[TITLES.get(group, last)].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def takes_request(*names: str, several: Collection[str] = ()) -> Callable[[F], F]:
    """Give a command the options of some fields, and the `RunRequest` that they make.

    The fields in `several` may be repeated and reach the command beside the request, as tuples.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**values: Any) -> object:
            fields = {name: values.pop(name) for name in names if name not in several}
            return function(request=RunRequest(**fields), **values)

        made: Callable[..., object] = command
        for name in reversed(names):
            made = option_of(arguments()[name], repeats=name in several)(made)
        return made  # type: ignore[return-value]

    return decorate


def option_of(one: Argument, *, repeats: bool = False) -> Callable[[F], F]:
    """The option of a field."""
    about, names = one.about, [one.option, one.name]
    more: dict[str, Any] = {}
    if repeats:
        more = {"multiple": True}
    elif about.is_switch:
        more = {"type": click.Choice(["on", "off"]), "callback": _switch, "default": None}
    elif bool in one.types:
        no = about.off or "--no-" + one.option.removeprefix("--")
        has_no = NoneType in one.types
        names[0] = f"{one.option}/{no}" if has_no else one.option
        more = {"default": one.default} if has_no else {"is_flag": True}
    elif one.choices:
        more = {"type": click.Choice(one.choices)}
    elif int in one.types:
        more = {"type": int if about.least is None else click.IntRange(int(about.least))}
    elif float in one.types:
        more = {"type": click.FloatRange(about.least, about.most)}
    elif one.type == Params:
        more = {"multiple": True, "callback": _params}
    elif isinstance(one.default, tuple) or one.name in ("judge", "judge_url"):
        more = {"multiple": True, "callback": _one_or_several}
    elif Path in one.types and about.metavar == "FILE":
        more = {"type": click.Path(dir_okay=False)}
    if "multiple" not in more and "default" not in more and "is_flag" not in more:
        shows = one.default not in (None, "", 0)
        more |= {"default": one.default, "show_default": shows}
    metavar = about.metavar or None
    return click.option(
        *names, cls=GroupedOption, group=about.group, metavar=metavar, help=about.help, **more
    )


def display_options(function: F) -> F:
    """The options that say what a command shows."""

    @functools.wraps(function)
    def command(*, dry_run: bool, as_json: bool, quiet: bool, **values: Any) -> object:
        return function(display=Display(dry_run, as_json, quiet), **values)

    made: Callable[..., object] = command
    for names, about in (
        (("--quiet",), "No progress on stderr."),
        (("--json", "as_json"), "Print the summary as JSON."),
        (("--dry-run",), "Print calls, tokens and cost; send nothing."),
    ):
        made = click.option(*names, cls=GroupedOption, is_flag=True, help=about)(made)
    return made  # type: ignore[return-value]


def _one_or_several(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> str | tuple[str, ...]:
    """One value as a text, several as a tuple."""
    return values if len(values) > 1 else "".join(values)


def _switch(_context: click.Context, _option: click.Parameter, value: str | None) -> bool | None:
    return None if value is None else value == "on"


def _params(
    _context: click.Context, _option: click.Parameter, pairs: tuple[str, ...]
) -> Mapping[str, object]:
    return parse_params(pairs)


def parse_params(pairs: tuple[str, ...]) -> dict[str, object]:
    """Body fields from `NAME=JSON` texts; a value that is no JSON is a text.

    >>> parse_params(("temperature=0.7", "stop=END"))
    {'temperature': 0.7, 'stop': 'END'}
    """
    params: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{pair}` is not NAME=VALUE")
        try:
            params[name.strip()] = json.loads(text)
        except ValueError:
            params[name.strip()] = text
    return params
