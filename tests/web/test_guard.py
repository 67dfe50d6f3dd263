"""Who gets in: strangers' hosts and origins, missing tokens and unknown paths are refused."""

from __future__ import annotations

import pytest

from snellen.errors import DataError
from snellen.web.frame import application, asset_url, form_of, page
from snellen.web.guard import HEADERS, LARGEST_BODY, Access

starlette = pytest.importorskip("starlette.testclient")
from starlette.requests import Request  # noqa: E402
from starlette.responses import PlainTextResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

HOME = "http://127.0.0.1:8000"
HOSTILE = "<script>alert(1)</script>\0\u202e" + "x" * 300


async def _start(request: Request) -> Response:
    return page(request, "error.html", {"message": HOSTILE, "hint": ""})


async def _save(request: Request) -> Response:
    return PlainTextResponse((await form_of(request))["words"])


async def _fail(request: Request) -> Response:
    raise DataError(HOSTILE, hint="look there")


def client(access: Access | None = None, base: str = HOME) -> TestClient:
    """A browser at a small application."""
    routes = [Route("/", _start), Route("/save", _save, methods=["POST"]), Route("/fail", _fail)]
    return TestClient(
        application(routes, access=access or Access()), base_url=base, follow_redirects=False
    )


def test_every_answer_carries_the_safety_headers() -> None:
    """Pages, assets, errors and refusals alike, and none allows inline scripts or other sites."""
    here = client()
    answers = [here.get("/"), here.get(asset_url("web.css")), here.get("/nothing")]
    answers.append(client(base="http://evil.example").get("/"))
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers[name] == value
        assert "unsafe" not in answer.headers["content-security-policy"]
    assert [a.status_code for a in answers] == [200, 200, 404, 421]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.0.2.7", "[::ffff", "", "evil@x"]
)
def test_a_foreign_host_header_is_refused(host: str) -> None:
    """A name that was pointed at this machine gets no page."""
    assert client().get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:1", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_served(host: str) -> None:
    """An address of this machine or its name, whatever the port."""
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_change_from_elsewhere_is_refused(headers: dict[str, str]) -> None:
    """A change needs the origin of this very server; without any it is refused too."""
    assert client().post("/save", data={"words": "a"}, headers=headers).status_code == 403


@pytest.mark.parametrize("headers", [{"origin": HOME}, {"sec-fetch-site": "same-origin"}])
def test_a_change_from_a_page_of_this_server_is_made(headers: dict[str, str]) -> None:
    """Words come through as they were typed."""
    answer = client().post("/save", data={"words": HOSTILE}, headers=headers)
    assert (answer.status_code, answer.text) == (200, HOSTILE)


def test_a_change_of_unknown_or_great_size_is_refused() -> None:
    """Before its body is read."""
    headers = {"origin": HOME, "content-length": str(LARGEST_BODY + 1)}
    assert client().post("/save", content=b"a", headers=headers).status_code == 413
    chunks = client().post("/save", content=iter([b"a"]), headers={"origin": HOME})
    assert chunks.status_code == 413


def test_a_server_for_others_asks_for_its_token() -> None:
    """The address opens it once; from then on a cookie does, and the address is without token."""
    access = Access.of("0.0.0.0")
    assert len(access.token) >= 24
    here = client(access, "http://192.0.2.7:8000")
    assert here.get("/").status_code == 401
    assert here.get("/?token=wrong").status_code == 401
    assert here.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    opened = here.get(f"/?q=a+b&token={access.token}")
    assert (opened.status_code, opened.headers["location"]) == (303, "/?q=a+b")
    assert "httponly" in opened.headers["set-cookie"].lower()
    assert here.get("/").status_code == 200
    stranger = client(access, "http://192.0.2.7:8000")
    bearer = {"authorization": f"Bearer {access.token}"}
    assert stranger.get("/", headers=bearer).status_code == 200
    post = stranger.post(f"/save?token={access.token}", data={"words": "a"},
                         headers={"origin": "http://192.0.2.7:8000"})  # fmt: skip
    assert post.status_code == 401


def test_the_token_leads_to_no_other_site() -> None:
    """A path that looks like another host stays a path."""
    access = Access("secret")
    answer = client(access).get(f"{HOME}//evil.example/?token=secret")
    assert answer.headers["location"].startswith("/evil.example")


def test_this_machine_alone_needs_no_token() -> None:
    """The default address is for whoever sits here, unless a token is asked for."""
    assert Access.of("127.0.0.1").token == ""
    assert Access.of("127.0.0.1", "mine").token == "mine"
    assert "secret" not in repr(Access("secret"))


@pytest.mark.parametrize(
    "name", ["../guard.py", "%2e%2e%2fguard.py", "..%5cguard.py", "nothing.css", "web.css/../x"]
)
def test_only_the_assets_are_served(name: str) -> None:
    """No path leads to another file of the package or the machine."""
    assert client().get(f"/static/{name}").status_code == 404


def test_foreign_text_in_a_page_or_an_error_is_text() -> None:
    """Markup is escaped and zero bytes are replaced; the error's hint is shown."""
    for answer in (client().get("/"), client().get("/fail")):
        assert "<script>alert" not in answer.text
        assert "&lt;script&gt;alert" in answer.text
        assert "\0" not in answer.text
    assert "look there" in client().get("/fail").text
