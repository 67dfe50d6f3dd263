"""What all tests share: a cache of their own, and no way out to a network."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Before numpy is imported: the workers of one run of the tests share the cores as it is.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "", "::1"})

_connect, _connect_ex, _look_up = (
    socket.socket.connect,
    socket.socket.connect_ex,
    socket.getaddrinfo,
)


class OutsideError(AssertionError):
    """A test tried to reach another machine."""


def _is_local(host: Any) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Connections and name look-ups end at this machine; what was tried fails the test.

    Names under `.invalid` exist nowhere and may be looked up.
    """
    tried: list[str] = []

    def refuse(what: str) -> None:
        tried.append(what)
        raise OutsideError(f"{what} was tried")

    def connect(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and not _is_local(address[0]):
            refuse(f"a connection to {address[0]}")
        _connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        if isinstance(address, tuple) and not _is_local(address[0]):
            refuse(f"a connection to {address[0]}")
        return _connect_ex(self, address)

    def look_up(host: Any, *words: Any, **more: Any) -> Any:
        if not _is_local(host):
            if str(host).endswith(".invalid"):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            refuse(f"a look-up of {host}")
        return _look_up(host, *words, **more)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield tried
    assert not tried


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replies and fetched data go to a folder of this test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SNELLEN_CACHE", str(folder))
    proxies = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy")
    # Workers of a parallel run have the width of the terminal that started them.
    for name in (*proxies, "OPENAI_API_KEY", "OPENAI_BASE_URL", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return folder
