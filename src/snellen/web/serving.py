"""Start a server for one application, say its address, and end with Ctrl-C."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snellen.errors import MissingExtraError, UsageError
from snellen.web.guard import Access

if TYPE_CHECKING:
    from starlette.applications import Starlette

    MakeApp = Callable[[Access], Starlette]

ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens: `port` 0 is a free one; a `token` is made where others reach it."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default="", repr=False)
    opens_browser: bool = True


def serve(make: MakeApp, where: Listening, *, say: Callable[[str], None]) -> None:
    """Serve the application that `make` gives until Ctrl-C; `say` gets the address first.

    The address holds the token, where there is one: it is said this once.

    Raises:
        MissingExtraError: uvicorn is not installed.
        UsageError: the address cannot be listened on.
    """
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("what serves the pages", "web") from error
    del starlette
    access = Access.of(where.host, where.token)
    app = make(access)
    with _listen(where) as listener:
        address = address_of(where.host, listener.getsockname()[1], access.token)
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, ws="none",
            proxy_headers=False, timeout_graceful_shutdown=1,
        )  # fmt: skip
        say(address)
        if where.opens_browser:
            import webbrowser

            webbrowser.open(address)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return


def _listen(where: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
        # From here on a browser waits for the first page instead of being refused.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {where.host}, port {where.port}: {error}",
            hint="give another --port (0 takes a free one) or an address of this machine as --host",
        ) from error
    return listener


def address_of(host: str, port: int, token: str = "") -> str:
    """The address that a person opens.

    >>> address_of("127.0.0.1", 8000), address_of("::1", 80, "t")
    ('http://127.0.0.1:8000/', 'http://[::1]:80/?token=t')
    """
    if host in ALL_ADDRESSES:
        host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
