"""The review queue in other tools, and their decisions back here."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from tests.worlds.capprobe_world import config, construct, paint

from snellen.builders.options import ReviewOptions
from snellen.cli import cli
from snellen.construction import review
from snellen.construction.review_exchange import import_decisions
from snellen.errors import DataError


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    options = ReviewOptions(annotators=("ann",), adjudicator="eve")
    construct(paint(folder / "in", 1), folder / "out", config=config(review=options))
    return folder / "out"


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(built, tmp_path / "out")
    return tmp_path / "out"


def exported(name: str, folder: Path, out: Path) -> list[Path]:
    done = CliRunner().invoke(cli, ["export", name, str(folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return [Path(line) for line in done.stdout.splitlines()]


def labelled(folder: Path, tmp_path: Path) -> list[dict[str, object]]:
    """An export of Label Studio: an acceptance, a deletion, an edit, and one cancelled."""
    tasks, xml = exported("label-studio", folder, tmp_path / "ls")
    ElementTree.parse(xml)
    rows = json.loads(tasks.read_text())
    assert len(rows) == len(review.read_queue(folder))
    after = json.dumps({"question": "What colour is it?"})
    results = [
        [("decision", {"choices": ["accept"]})],
        [("decision", {"choices": ["delete"]}), ("reasons", {"choices": ["clarity"]})],
        [("decision", {"choices": ["edit"]}), ("after", {"text": [after]})],
    ]
    for row, result in zip(rows, results, strict=False):
        row["annotations"] = [{
            "completed_by": {"email": "ann"}, "lead_time": 12.5,
            "result": [{"from_name": name, "value": value} for name, value in result],
        }]  # fmt: skip
    rows[3]["annotations"] = [{"result": [], "was_cancelled": True}]
    return rows


def test_decisions_come_back_from_label_studio(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps(labelled(folder, tmp_path)))
    done = CliRunner().invoke(cli, ["import", "label-studio", str(file), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    found = review.read_decisions(folder)
    assert [one.decision for one in found] == ["accept", "delete", "edit"]
    assert found[1].reasons == ("clarity",)
    assert found[0].seconds == 12.5
    assert found[2].after == {"question": "What colour is it?"}
    assert import_decisions("label-studio", file, folder) in (0, 3)


def test_decisions_come_back_from_argilla(folder: Path, tmp_path: Path) -> None:
    [file] = exported("argilla", folder, tmp_path / "records.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[0]["responses"] = {
        "decision": [{"value": "accept", "user_id": "ann"}, {"value": "delete", "user_id": "bob"}]
    }
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert import_decisions("argilla", file, folder) == 2
    assert [one.annotator for one in review.read_decisions(folder)] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"snellen_id": "nobody"}, "not in the queue"),
        ({"decision": "maybe"}, "maybe"),
        ({"after": "{"}, "cannot be read"),
        ({"reason": "taste"}, "criterion"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_taken(
    folder: Path, tmp_path: Path, change: dict[str, str], said: str
) -> None:
    rows = labelled(folder, tmp_path)
    row = rows[2]
    result = row["annotations"][0]["result"]  # type: ignore[index]
    if "snellen_id" in change:
        row["data"]["snellen_id"] = change["snellen_id"]  # type: ignore[index]
    elif "decision" in change:
        result[0]["value"]["choices"] = [change["decision"]]
    elif "after" in change:
        result[1]["value"]["text"] = [change["after"]]
    else:
        result.append({"from_name": "reasons", "value": {"choices": [change["reason"]]}})
    file = tmp_path / "export.json"
    file.write_text(json.dumps(rows))
    with pytest.raises(DataError) as caught:
        import_decisions("label-studio", file, folder)
    assert said in caught.value.message
    assert caught.value.row == 3
    assert review.read_decisions(folder) == []
