"""The blind audit of a judge in the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.worlds.report_runs import direct_run, reading_run, rubric_run, save_run

from snellen.cli import cli
from snellen.errors import SnellenError
from snellen.web.guard import Access
from snellen.web.review.audit import AuditDesk, audit_app

OWN = {"origin": "http://127.0.0.1"}
MAKERS = {"direct": direct_run, "reading": reading_run, "rubric": rubric_run}


@pytest.fixture(params=MAKERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_run(MAKERS[request.param](tmp_path, "alpha"))


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    app = audit_app(AuditDesk(folder, 20), access=Access())
    with TestClient(app, base_url="http://127.0.0.1") as found:
        yield found


def choices(page: str) -> list[str]:
    return re.findall(r'<button name="truth" value="([^"]+)"', page)


def test_the_judges_verdict_is_hidden_until_the_person_has_spoken(
    client: TestClient, folder: Path
) -> None:
    """No trace of the judge's word stands in the page before; afterwards both do."""
    desk = AuditDesk(folder, 20)
    before = client.get("/row", params={"n": 0}).text
    assert "The judge said" not in before
    assert "agree" not in before
    said = choices(before)
    assert len(said) >= 2
    client.post("/row", data={"n": "0", "truth": said[0]}, headers=OWN)
    after = client.get("/row", params={"n": 0}).text
    assert "The judge said" in after
    agrees = str(desk.rows[0].verdict) == said[0]
    assert ("You agree with the judge" in after) is agrees


def test_an_audit_ends_in_show_and_survives_a_new_start(client: TestClient, folder: Path) -> None:
    """Every verdict is written at once; the agreement stands in `show`, by Wilson."""
    desk = AuditDesk(folder, 20)
    for k, row in enumerate(desk.rows):
        client.post("/row", data={"n": str(k), "truth": str(row.verdict)}, headers=OWN)
    assert AuditDesk(folder, 20).done == len(desk.rows)
    shown = CliRunner().invoke(cli, ["show", str(folder)])
    assert shown.exit_code == 0, shown.output
    assert "agreement with" in shown.output
    assert "100.0" in shown.output
    assert f"{len(desk.rows)}/{len(desk.rows)}" in shown.output


def test_a_verdict_can_be_taken_back(client: TestClient, folder: Path) -> None:
    said = choices(client.get("/row", params={"n": 0}).text)
    client.post("/row", data={"n": "0", "truth": said[0]}, headers=OWN)
    assert AuditDesk(folder, 20).done == 1
    client.post("/row", data={"n": "0", "truth": ""}, headers=OWN)
    assert AuditDesk(folder, 20).done == 0


def test_wrong_requests_change_nothing(client: TestClient, folder: Path) -> None:
    assert client.post("/row", data={"n": "0", "truth": "True"}).status_code == 403
    assert client.post("/row", data={"n": "0", "truth": "maybe"}, headers=OWN).status_code == 400
    for bad in ("99999", "-1", "x", ""):
        assert client.get("/row", params={"n": bad}).status_code == 404
    assert client.get("/picture", params={"n": "0", "k": "99"}).status_code == 404
    assert AuditDesk(folder, 20).done == 0


def test_the_audit_of_another_run_is_refused(folder: Path) -> None:
    AuditDesk(folder, 5)
    file = folder / "audit.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(json.dumps({**rows[0], "id": "nobody"}) + "\n")
    with pytest.raises(SnellenError, match="no such verdict"):
        AuditDesk(folder, 5)
