"""Who may ask: hosts, origins and a token are checked before any page is made."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from snellen.keys import digest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4 * 1024 * 1024
READING = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _own_names() -> frozenset[str]:
    return frozenset({"localhost", socket.gethostname().lower()})


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: anybody on this machine without a `token`, else those who know the token.

    A Host header must name an address in figures, `localhost`, this machine, or one of `hosts`:
    the name of a stranger's site that was pointed at this machine is refused.
    """

    token: str = field(default="", repr=False)
    hosts: frozenset[str] = field(default_factory=_own_names)

    @classmethod
    def of(cls, host: str, token: str = "") -> Access:
        """The access to a server on `host`; one that others reach gets a token if it has none."""
        if not token and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        return cls(token, _own_names() | {host.lower()})

    @property
    def cookie(self) -> str:
        """The name of the cookie: servers on other ports have cookies of other names."""
        return f"snellen-{digest(self.token)[:8]}"

    def knows_host(self, header: str) -> bool:
        """Whether a Host header names this server."""
        try:
            name = (urlsplit(f"//{header}").hostname or "").lower()
        except ValueError:
            return False
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return not self._is_local or is_loopback(name)

    @property
    def _is_local(self) -> bool:
        return not self.token

    def knows_token(self, given: str | None) -> bool:
        """Whether a token is the right one, compared in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """Middleware: refuses strangers, and puts the safety headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say in a line of text why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse, RedirectResponse

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                held = {name.lower() for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in HEADERS]
                added.append((b"cache-control", b"no-store"))
                message["headers"] = [
                    *message["headers"], *(pair for pair in added if pair[0] not in held)
                ]  # fmt: skip
            await send(message)

        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope.get("headers", ())}
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        refusal = self._refusal(scope, headers)
        if refusal:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send_guarded)
            return
        if self._access.token and not self._is_known(headers):
            given = next((value for name, value in query if name == "token"), None)
            if not (scope["method"] in READING and self._access.knows_token(given)):
                text = "This server asks for a token: open the address that it printed."
                await PlainTextResponse(text, 401)(scope, receive, send_guarded)
                return
            # The token goes from the address into a cookie, so that a link that is sent lacks it.
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(
                self._access.cookie, self._access.token, httponly=True, samesite="lax"
            )
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the words of a refusal; None where the request may go on."""
        if scope["type"] != "http":
            return 400, "Only HTTP is spoken here."
        host = headers.get("host", "")
        if not self._access.knows_host(host):
            return 421, "This server does not answer to that name; use the address that it printed."
        if scope["method"] in READING:
            return None
        if not is_same_origin(headers):
            return 403, "A change must come from a page of this server."
        size = headers.get("content-length", "")
        if not size.isdecimal() or int(size) > LARGEST_BODY:
            return 413, f"A change must say its size, at most {LARGEST_BODY:,} bytes."
        return None

    def _is_known(self, headers: dict[str, str]) -> bool:
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except ValueError:
            return False
        held = cookies.get(self._access.cookie)
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = (None if held is None else held.value, bearer)
        return any(map(self._access.knows_token, given))


def is_same_origin(headers: dict[str, str]) -> bool:
    """Whether a change comes from a page of this server: its Origin is the host that is asked.

    A browser that sends no Origin must say `same-origin` in Sec-Fetch-Site.
    """
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    host = headers.get("host", "")
    return origin.lower() in {f"http://{host.lower()}", f"https://{host.lower()}"}
