"""Options that several commands share."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    return lambda f: functools.reduce(lambda g, option: option(g), reversed(options), f)


def _one_or_several(
    _context: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> str | tuple[str, ...]:
    """What was said once as a text, and only what was repeated as a tuple."""
    return values if len(values) > 1 else "".join(values)


def judge_options(f: F) -> F:
    """The options that name a judge."""
    return _all(
        click.option("--judge", multiple=True, callback=_one_or_several, metavar="NAME",
                     help="The judge's name; `embedded`: the offline one, low fidelity. "
                     "Repeated: a panel, which votes."),
        click.option("--judge-url", multiple=True, callback=_one_or_several, metavar="URL",
                     help="Its endpoint; the model's by default. Repeatable, one for each judge."),
        click.option("--panel", type=click.Choice(["majority", "unanimity"]),
                     help="What several judges must agree on (majority)."),
        click.option("--min-valid", type=click.IntRange(1), metavar="K",
                     help="How many judges of a panel must give a verdict (more than half)."),
        click.option("--judge-key-env", default="", metavar="VAR",
                     help="The variable that holds its key."),
        click.option("--judge-key", default="", metavar="KEY", help="Its key; never written."),
        click.option("--judge-param", "judge_params", multiple=True, metavar="NAME=JSON",
                     help="A body field that is sent to the judge. Repeatable."),
        click.option("--judge-thinking", is_flag=True,
                     help="Let the judge think aloud (off where the endpoint can switch it off)."),
        click.option("--judge-prompt", type=click.Path(dir_okay=False), metavar="FILE",
                     help="A judge prompt of your own."),
    )(f)  # fmt: skip


def driving_options(f: F) -> F:
    """The options of everything that makes calls."""
    return _all(
        click.option("--config", type=click.Path(dir_okay=False), metavar="FILE",
                     help="Settings; ./snellen.toml by default."),
        click.option("--concurrency", type=click.IntRange(1), metavar="N",
                     help="Calls in flight at each endpoint (64)."),
        click.option("--seed", type=int, default=0, show_default=True),
        click.option("--max-cost", type=click.FloatRange(0), metavar="USD",
                     help="Stop before this is exceeded; needs prices in the settings."),
        click.option("--max-unscored", type=click.FloatRange(0, 1), default=0.05,
                     show_default=True, help="Exit with 3 above this share of unscored probes."),
        click.option("--max-tries", type=click.IntRange(1), default=6, show_default=True,
                     help="How often a failing call is tried; rate limits do not count."),
        click.option("--reasks", type=click.IntRange(0), default=2, show_default=True,
                     help="How often an unreadable judgement is asked for again."),
        click.option("--no-cache", "cache", flag_value=False, default=True, type=bool,
                     help="Neither read nor write the shared response cache."),
        click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing."),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--quiet", is_flag=True, help="No progress on stderr."),
    )(f)  # fmt: skip


judge_system_option = click.option(
    "--judge-system",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="captionqa: a system message of your own for the judge.",
)


def parse_params(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Body fields from `NAME=JSON` texts; a value that is no JSON is a text.

    >>> parse_params(("temperature=0.7", "stop=END"))
    {'temperature': 0.7, 'stop': 'END'}
    """
    params: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{pair}` is not NAME=VALUE")
        try:
            params[name.strip()] = json.loads(text)
        except ValueError:
            params[name.strip()] = text
    return params
