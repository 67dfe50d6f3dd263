"""Starts the command line; expected failures become one line and a hint."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import click

from snellen.cli import cli
from snellen.errors import INTERRUPTED, SnellenError

RESUMABLE = frozenset({"run", "eval", "rejudge", "judge-check", "lengths", "build"})


def main() -> None:
    """The `snellen` command."""
    open_streams()
    add_up_in_one_thread()
    signal.signal(signal.SIGTERM, end_as_after_ctrl_c)
    try:
        code = cli.main(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        tell_how_to_go_on()
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SnellenError as error:
        complain(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno is None:
            raise
        if not isinstance(error, BrokenPipeError):
            where = error.filename or "the output"
            complain(SnellenError(f"{where}: {error.strerror}"))
        forget_output()
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def end_as_after_ctrl_c(_number: int, _frame: object) -> None:
    """Ends a command that is asked to end, before a run takes the signal over and after it."""
    raise KeyboardInterrupt


def tell_how_to_go_on() -> None:
    """Prints the command that goes on, where a command that can was interrupted at its start."""
    if sys.argv[1:2] and sys.argv[1] in RESUMABLE:
        from snellen.cli.run import resume_command

        click.echo(f"resume with: {resume_command(sys.argv)}", err=True)


def add_up_in_one_thread() -> None:
    """Before numpy is there: on sums as small as runs', its threads burn more than they save.

    Where other programs are busy too, they wait for one another: a comparison took seven times as
    long. Only a process that is wholly Snellen's is set so.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def open_streams() -> None:
    """Makes stdout and stderr UTF-8; one that was closed (`>&-`) leads nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # This also keeps files that are opened later off the number of the closed stream.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def forget_output() -> None:
    """Leads nowhere what is still to be written, where the output has been closed or is full."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())


def complain(error: SnellenError) -> None:
    """Prints an expected failure to stderr."""
    from snellen.tables.screen import legible

    with contextlib.suppress(OSError):
        click.echo(f"error: {legible(error.message)}", err=True)
        if error.hint:
            click.echo(f"hint: {legible(error.hint)}", err=True)


if __name__ == "__main__":
    main()
