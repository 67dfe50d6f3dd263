"""The frame of the browser applications: pages from templates, assets, errors as pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from snellen.errors import MissingExtraError, SnellenError
from snellen.keys import digest
from snellen.report.environment import environment
from snellen.web.guard import Access, Guard

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import BaseRoute

TYPES = {
    "js": "text/javascript",
    "css": "text/css",
    "txt": "text/plain",
    "svg": "image/svg+xml",
}
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
NO_VALUES: Mapping[str, object] = {}
# The style sheet of the report draws tables, figures and warnings in the applications too.
ASSETS = {
    "report.css": "snellen.report",
    "web.css": "snellen.web.static",
    "web.js": "snellen.web.static",
    "view.css": "snellen.web.static",
    "view.js": "snellen.web.static",
    "review.css": "snellen.web.static",
    "review.js": "snellen.web.static",
    "icon.svg": "snellen.web.static",
    "htmx.min.js": "snellen.web.static",
    "htmx-LICENSE.txt": "snellen.web.static",
}


def application(
    routes: Sequence[BaseRoute],
    *,
    access: Access,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    """An application of these routes behind the guard, with the assets and pages for errors.

    Raises:
        MissingExtraError: starlette or jinja2 is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette, which serves the pages,", "web") from error
    templates()
    return Starlette(
        routes=[*routes, Route("/static/{name}", _static)],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _http_error, SnellenError: _own_error},
        lifespan=lifespan,
    )


def page(
    request: Request, template: str, values: Mapping[str, object] = NO_VALUES, *, status: int = 200
) -> HTMLResponse:
    """A page from a template of this package, which escapes all values."""
    from starlette.responses import HTMLResponse

    text = templates().get_template(template).render(values)
    # A lone surrogate, which JSON can hold, has no form in UTF-8.
    return HTMLResponse(text.encode("utf-8", "replace"), status)


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a posted form by name; of several values of one name the last."""
    body = await request.body()
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


@cache
def templates() -> Environment:
    """The templates of the applications, which may use those of the report.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    found = environment("snellen.web", "snellen.report")
    found.finalize = _legible
    found.globals["asset"] = asset_url
    return found


def _legible(value: object) -> object:
    """A value with marks in the place of signs that no page may hold, or that nobody sees."""
    return _CONTROLS.sub("\ufffd", value) if type(value) is str else value


@cache
def asset_url(name: str) -> str:
    """The address of an asset, with the hash of its content: a new version is fetched anew."""
    return f"/static/{name}?v={digest(_asset(name))[:12]}"


@cache
def _asset(name: str) -> bytes:
    return (resources.files(ASSETS[name]) / name).read_bytes()


async def _static(request: Request) -> Response:
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in ASSETS:
        raise HTTPException(404)
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(_asset(name), headers=headers, media_type=TYPES[name.rpartition(".")[2]])


async def _http_error(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    said = getattr(error, "detail", "") or HTTPStatus(status).phrase
    return page(request, "error.html", {"message": said, "hint": ""}, status=status)


async def _own_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SnellenError)
    values = {"message": error.message, "hint": error.hint}
    return page(request, "error.html", values, status=400)
