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
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A snellen.toml whose prices turn tokens into costs; ./snellen.toml by default.",
)
@takes_address
def command(
    runs: tuple[str, ...], *, data: tuple[str, ...], config: str | None, where: Listening
) -> None:
    """Look at runs in the browser: leaderboards, items, pictures, every probe.

    RUNS are run folders or folders with runs below them; a run under way is followed. The first
    line on stdout is the address. Only this machine reaches it unless --host says otherwise.
    """
    from snellen.settings import cache_folder, load_settings
    from snellen.web.view.app import view_app
    from snellen.web.view.library import Library
    from snellen.web.view.work import Beside

    with TemporaryDirectory(prefix="snellen-view-") as room:
        paths = tuple(map(Path, runs))
        library = Library(
            paths, Beside(), cache_folder() / "view", Path(room), data, load_settings(config)
        )
        serve_pages(lambda access: view_app(library, access=access), where)
