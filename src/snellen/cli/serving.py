"""The options of commands that serve pages: `--host`, `--port`, `--token`, `--no-browser`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from snellen.web.serving import Listening, MakeApp

F = TypeVar("F", bound=Callable[..., object])


def takes_address(command: F) -> F:
    """Give a command the options of a server, and the `Listening` that they make."""

    @functools.wraps(command)
    def wrapped(
        *words: Any, host: str, port: int, token: str, no_browser: bool, **more: Any
    ) -> object:
        from snellen.web.serving import Listening

        return command(*words, where=Listening(host, port, token, not no_browser), **more)

    options = (
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            help="The address to listen on; one that others reach needs a token.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=0,
            show_default=True,
            help="The port; 0 takes a free one.",
        ),
        click.option(
            "--token",
            default="",
            envvar="SNELLEN_TOKEN",
            help="Ask for this token; made and printed once with --host.",
        ),
        click.option("--no-browser", is_flag=True, help="Only print the address."),
    )
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def serve_pages(make: MakeApp, where: Listening) -> None:
    """Serve until Ctrl-C; the address is the first line on stdout."""
    from snellen.web.serving import serve

    def say(address: str) -> None:
        click.echo(address)
        click.echo("Ctrl-C ends the server.", err=True)

    serve(make, where, say=say)
