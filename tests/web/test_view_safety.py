"""`snellen view` on the runs of strangers: nothing in them runs, and nothing else is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient
from tests.worlds.report_runs import HOSTILE, picture, reading_run, save_run
from tests.worlds.viewed_runs import Page, browser_at, spoilt_run

from snellen.web.guard import Access

TEXTS = {
    "markup": HOSTILE + "</textarea></title><svg onload=alert(3)><!--",
    "attributes": '" onmouseover="alert(1)" style="position:fixed" x="',
    "template": "{{ 7*7 }}{% raw %}{# #}",
    "long word": "W" * 3000,
    "right to left": "\u202eevil\u2066\u200f\u05d0\u0627" * 20,
    "zero bytes": "a\x00b\x00\x1b[31m\x07",
    "100,000 characters": "lorem ipsum " * 8334,
    "path": "../../../../etc/passwd",
}


def pages_of(here: TestClient, text: str) -> Iterator[str]:
    """The addresses of all pages about a run; that of its item as the list has it."""
    yield from ("/", "/runs/spoilt", "/runs/spoilt/items", "/runs/spoilt/numbers")
    yield f"/runs/spoilt?{urlencode({'q': text[:500]})}"
    yield from Page(here.get("/runs/spoilt").text).links("/item?")
    yield from Page(here.get("/runs/spoilt/items").text).links("/item?")
    yield from Page(here.get("/runs/spoilt").text).links("category=")


@pytest.mark.parametrize("kind", TEXTS)
def test_hostile_text_in_every_field_is_text(tmp_path: Path, kind: str) -> None:
    """Names, ids, labels, questions, replies, thoughts, judge's words: no page breaks or runs."""
    text = TEXTS[kind]
    spoilt_run(tmp_path, text)
    here = browser_at(tmp_path)
    for path in [*pages_of(here, text)]:
        answer = here.get(path)
        assert answer.status_code == 200, answer.text[:500]
        page = Page(answer.text)
        assert "\0" not in answer.text
        assert not re.search(r"<svg onload|<script>alert|\x1b", answer.text)
        for tag, attributes in page.elements:
            assert tag != "script" or (attributes.get("src") or "").startswith("/static/")
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            assert tag not in {"iframe", "object", "embed", "style", "textarea"}


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..%2f..%2fetc%2fpasswd",
        "/runs/%00",
        "/runs/alpha/item?id=..%2f..%2fetc%2fpasswd",
        "/picture?run=alpha&id=i0&number=9",
        "/picture?run=alpha&id=i0&number=-1",
        "/picture?run=alpha&id=%2fetc%2fpasswd",
        "/picture?run=..%2falpha&id=i0",
        "/mask?run=alpha&id=i0&region=..%2f..",
        "/figures/..%2f..",
        "/figures/s1/..%2f..%2fview.sqlite",
        "/static/..%2fview%2findex.py",
    ],
)
def test_no_address_leads_out(tmp_path: Path, path: str) -> None:
    """An address names runs, items and numbers, never a file."""
    save_run(reading_run(tmp_path, "alpha"))
    answer = browser_at(tmp_path).get(path)
    assert answer.status_code in {400, 403, 404}
    assert "root:" not in answer.text


def test_a_picture_outside_the_given_folders_is_not_read(tmp_path: Path) -> None:
    """The page says how it may be shown; a link inside that leads out is followed to its end."""
    inside, outside = tmp_path / "runs", tmp_path / "elsewhere"
    secret = picture(outside, "secret", "black")
    inside.mkdir()
    os.symlink(secret.path, inside / "link.png")
    for name, path in (("direct", secret.path), ("linked", str(inside / "link.png"))):
        run = reading_run(inside, name)
        image = replace(secret, path=path)
        save_run(replace(run, items=tuple(replace(i, images=(image,)) for i in run.items)))
    here = browser_at(inside)
    for name in ("direct", "linked"):
        assert here.get(f"/picture?run={name}&id=i0").status_code == 403
        assert "--data" in here.get(f"/runs/{name}/item?id=i0").text
    allowed = browser_at(inside, sources=[str(outside)])
    assert allowed.get("/picture?run=direct&id=i0").status_code == 200


def test_a_picture_that_has_changed_since_the_run_is_not_shown(tmp_path: Path) -> None:
    """Another picture than the measured one would mislead."""
    save_run(reading_run(tmp_path, "alpha"))
    picture(tmp_path / "pictures", "red", "green")
    answer = browser_at(tmp_path).get("/picture?run=alpha&id=i0")
    assert answer.status_code == 404
    assert "changed" in answer.text


def test_strangers_are_refused_here_too(tmp_path: Path) -> None:
    """A foreign host, a change, and a missing token get no page of a run."""
    save_run(reading_run(tmp_path, "alpha"))
    here = browser_at(tmp_path)
    assert here.get("/", headers={"host": "evil.example"}).status_code == 421
    assert here.post("/runs/alpha", headers={"origin": "http://evil.example"}).status_code == 403
    guarded = browser_at(tmp_path, access=Access("secret"))
    assert guarded.get("/runs/alpha").status_code == 401
    assert guarded.get("/picture?run=alpha&id=i0").status_code == 401
    assert guarded.get("/runs/alpha?token=secret").status_code == 303
