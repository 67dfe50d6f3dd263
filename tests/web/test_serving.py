"""Starting a server: the address, and what stands in the way of one."""

from __future__ import annotations

import socket
import sys
from contextlib import closing

import pytest

from snellen.errors import MissingExtraError, UsageError
from snellen.web.frame import application
from snellen.web.serving import Listening, serve


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is listened on."""
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(MissingExtraError) as caught:
        serve(lambda access: application([], access=access), Listening(), say=print)
    assert "snellen[web]" in caught.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no such host"])
def test_an_address_that_cannot_be_had_is_refused(host: str) -> None:
    """A port in use and an address of another machine: one line, and what to do."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        where = Listening(host, taken.getsockname()[1], opens_browser=False)
        with pytest.raises(UsageError, match="cannot listen on") as caught:
            serve(lambda access: application([], access=access), where, say=print)
    assert "--port" in caught.value.hint
