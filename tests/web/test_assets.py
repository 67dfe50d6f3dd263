"""The assets: what was vendored is what was looked at, and nothing needs inline code."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

from snellen.web.frame import ASSETS

WEB = Path(str(resources.files("snellen.web")))
# htmx 2.0.11, as its package holds it.
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"


def test_htmx_is_the_release_that_was_vendored() -> None:
    """Its hash is that of the published file, and its licence stands beside it."""
    data = (WEB / "static" / "htmx.min.js").read_bytes()
    assert hashlib.sha256(data).hexdigest() == HTMX
    assert "Zero-Clause BSD" in (WEB / "static" / "htmx-LICENSE.txt").read_text(encoding="utf-8")


def test_templates_hold_no_inline_code_and_no_other_site() -> None:
    """No script or style of their own, no handler, no address of another server, no raw text."""
    for file in (WEB / "templates").glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|\|\s*safe", text), (
            file
        )
        assert not re.search(r"https?://(?!www\.w3\.org)|autoescape", text), file


def test_every_asset_is_in_the_package() -> None:
    """Each name leads to a file, and each file of the folder has a name."""
    for name, package in ASSETS.items():
        assert (resources.files(package) / name).is_file()
    assert {f.name for f in (WEB / "static").iterdir()} <= set(ASSETS)
