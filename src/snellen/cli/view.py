"""`snellen view`: runs in the browser."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from snellen.cli.serving import serve_pages, takes_address

if TYPE_CHECKING:
    from snellen.web.serving import Listening


@click.command("view", epilog="Example: snellen view demo-out")
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--data",
    multiple=True,
    metavar="PATH",
    help="A benchmark's folder or name, for its pictures and regions. Repeatable.",
)
@takes_address
def command(runs: tuple[str, ...], *, data: tuple[str, ...], where: Listening) -> None:
    """Look at runs in the browser: leaderboards, items, pictures, every probe.

    RUNS are run folders or folders with runs below them; a run under way is followed. The first
    line on stdout is the address. Only this machine reaches it unless --host says otherwise.
    """
    from snellen.settings import cache_folder
    from snellen.web.view.app import view_app
    from snellen.web.view.library import Library
    from snellen.web.view.work import Beside

    with TemporaryDirectory(prefix="snellen-view-") as room:
        paths = tuple(map(Path, runs))
        library = Library(paths, Beside(), cache_folder() / "view", Path(room), data)
        serve_pages(lambda access: view_app(library, access=access), where)
