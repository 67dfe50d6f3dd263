"""A request for a run: one field an argument, in step with commands, Python calls and protocols."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import click
import pytest

import snellen
from snellen.api import RunArguments
from snellen.cli import cli
from snellen.errors import UsageError
from snellen.protocols import PROTOCOLS
from snellen.runs.request import RunRequest, arguments, in_python_words

# Fields that the calls name themselves.
NAMED = {"benchmark", "model", "judge", "replies"}
# Options of protocols that are no field: prompts that no user replaces by name, and what a run
# puts in itself.
INTERNAL = {"reasks", "given"}


def judge(_messages: Any) -> str:
    return "[judge] True"


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "call",
    [snellen.run, snellen.run_async, snellen.score_captions, snellen.score_captions_async],
)
def test_calls_list_every_argument_with_its_default(call: Callable[..., Any]) -> None:
    """An editor completes what a run takes, and a type checker knows each type."""
    shown = inspect.signature(call).parameters
    rest = set(arguments()) - NAMED
    assert rest <= set(shown)
    for name in rest:
        assert shown[name].default == arguments()[name].default
        assert shown[name].annotation
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_types_of_calls_are_those_of_the_request() -> None:
    """The types that are written out for calls are the fields' own, name by name."""
    written = get_type_hints(RunArguments)
    assert written == {k: v for k, v in get_type_hints(RunRequest).items() if k not in NAMED}


def test_every_field_is_an_option_of_run() -> None:
    """Options come from the fields, and none was left out."""
    options = {param.name: param for param in command("run").params}
    for name, one in arguments().items():
        assert name in options
        if name != "benchmark":
            assert one.option in options[name].opts


def test_the_options_of_protocols_are_fields_of_the_request() -> None:
    """Each option of a protocol, prompts aside, is a field that names that protocol."""
    claimed = {
        (protocol, one.inner) for one in arguments().values() for protocol in one.about.protocols
    }
    found = set()
    for name, protocol in PROTOCOLS.items():
        usual = protocol.options()
        prompts = {f for f in usual.__dataclass_fields__ if hasattr(getattr(usual, f), "sha256")}
        replaced = {inner for protocol_name, inner in claimed if protocol_name == name} & prompts
        fields = set(usual.__dataclass_fields__) - INTERNAL - prompts
        found |= {(name, field) for field in fields | replaced}
    assert claimed == found


def test_a_slip_is_answered_with_the_nearest_argument() -> None:
    """An argument that no run has is named, with the nearest that there is."""
    with pytest.raises(UsageError, match="unknown argument `modle`") as caught:
        snellen.run("mini-direct", judge=judge, modle="m")  # type: ignore[call-arg]
    assert caught.value.hint == "did you mean `model`?"


def test_what_is_missing_is_said_in_the_words_of_the_caller() -> None:
    """A Python error names arguments, that of a command options."""
    with pytest.raises(UsageError, match="no model given") as caught:
        snellen.run("mini-direct", judge=judge)
    assert "model=NAME api_url=URL" in caught.value.hint
    assert "--" not in caught.value.hint
    with pytest.raises(UsageError, match="no model given") as caught:
        command("run").main(["mini-direct", "--judge", "embedded"], standalone_mode=False)
    assert "--model NAME --api-url URL" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "python"),
    [
        ("--gate-first has no meaning for x", "gate_first has no meaning for x"),
        ("give --hint off or --no-cache", "give hint=False or cache=False"),
        ("give --judge embedded", "give judge='embedded'"),
        ("set --judge-param temperature", "set judge_params temperature"),
        ("an option of others: --data-dir x", "an option of others: --data-dir x"),
    ],
)
def test_options_become_arguments(said: str, python: str) -> None:
    """Only options of the request are replaced, with values as Python writes them."""
    assert in_python_words(said) == python


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("limit", 0, "a whole number from 1 on"),
        ("max_unscored", 2, "a number from 0 to 1"),
        ("max_cost", "much", "a number from 0 on"),
        ("source", "disk", "'hub' or 'modelscope'"),
        ("cache", "no", "True or False"),
        ("judge", [3], "one or a list"),
        ("data", 3, "a name or a path"),
    ],
)
def test_a_value_out_of_its_range_is_refused(name: str, value: Any, wanted: str) -> None:
    """The argument, what was found, and what it may be."""
    with pytest.raises(UsageError, match=f"`{name}` cannot be") as caught:
        RunRequest(**{name: value})
    assert caught.value.hint == f"give {wanted}"


def test_no_key_shows_in_what_is_printed() -> None:
    """Neither the model's nor the judge's."""
    assert "CANARY" not in repr(RunRequest(api_key="CANARY", judge_key="CANARY"))


@pytest.mark.parametrize("name", ["run", "rejudge", "lengths", "audit", "judge-check", "align"])
def test_help_is_grouped_and_fits(name: str) -> None:
    """Options stand under titles, in at most 100 columns."""
    context = click.Context(command(name), info_name=name, terminal_width=100)
    text = command(name).get_help(context)
    assert max(map(len, text.splitlines())) <= 100
    assert "Judge:" in text
    assert "Running:" in text
