"""How an endpoint is reached: its proxy, its connections, and why there is none."""

from __future__ import annotations

import base64
import errno
import ipaddress
import os
import ssl
import weakref
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from snellen.errors import SettingsError

_is_reused: ContextVar[bool] = ContextVar("_is_reused", default=False)


class Connector(aiohttp.TCPConnector):
    """Notes for `is_reused` whether a call's connection has served calls before.

    aiohttp's own tracing tells it too, and takes a fifth of a call's processor time.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()

    async def connect(self, *words: Any, **more: Any) -> Any:
        connection = await super().connect(*words, **more)
        _is_reused.set(connection.protocol in self._met)
        self._met.add(connection.protocol)
        return connection


def is_reused() -> bool:
    """Whether the connection of this task's last exchange had served calls before it."""
    return _is_reused.get()


def proxy_for(url: URL) -> tuple[URL | None, dict[str, str]]:
    """The proxy that the environment names for a URL, and the header that it wants; asked once.

    aiohttp's own `trust_env` asks again in a thread for every call. Nobody's proxy can reach this
    machine's own addresses, whatever the environment says.
    """
    host = url.host or ""
    if is_this_machine(host) or proxy_bypass(f"{host}:{url.port}") or _is_excepted(host, url.port):
        return None, {}
    named = getproxies().get(url.scheme)
    if not named:
        return None, {}
    hint = "name an HTTP proxy, or put the endpoint's host into no_proxy"
    try:
        proxy = URL(named if "://" in named else f"http://{named}")
    except ValueError as error:
        message = f"the proxy for {url.scheme} that the environment names is no URL"
        raise SettingsError(message, hint=hint) from error
    if proxy.scheme not in ("http", "https"):
        raise SettingsError(
            f"the proxy for {url.scheme} is of the kind `{proxy.scheme}`", hint=hint
        )
    if not proxy.user:
        return proxy, {}
    return proxy.with_user(None), {
        "proxy-authorization": basic_authorization(proxy.user, proxy.password or "")
    }


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine itself, or on its own cable.

    >>> [is_this_machine(h) for h in ("app.localhost", "0.0.0.0", "::ffff:127.0.0.1", "10.0.0.1")]
    [True, True, True, False]
    """
    if host == "localhost" or host.endswith((".localhost", "localhost.localdomain")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified or address.is_link_local


def _is_excepted(host: str, port: int | None) -> bool:
    """Whether `no_proxy` names a range of addresses that holds the host, or its address and port.

    The standard library knows names, domains and ports of these.
    """
    for entry in (getproxies().get("no") or "").split(","):
        place, _, entry_port = entry.strip().partition("]:")
        if entry_port and entry_port != str(port):
            continue
        try:
            if ipaddress.ip_address(host) in ipaddress.ip_network(place.strip("[]"), strict=False):
                return True
        except (ValueError, TypeError):
            continue
    return False


def basic_authorization(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def why_unreached(error: Exception) -> str:
    """Why there is no connection, in the system's words where it has some."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        said = getattr(error.certificate_error, "verify_message", "") or str(
            error.certificate_error
        )
        return (
            f"its certificate is not trusted: {said.rstrip('.')} (the variable SSL_CERT_FILE names "
            "a file of certificates that are)"
        )
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ssl.SSLError):  # whose numbers are not the system's
        reason = (cause.reason or str(cause)).replace("_", " ").lower()
        return f"TLS: {reason} (does the server speak http, not https?)"
    number = cause.errno if isinstance(cause, OSError) else None
    if number is not None and number in errno.errorcode:
        return os.strerror(number)
    return getattr(cause, "strerror", None) or str(cause) or type(error).__name__
