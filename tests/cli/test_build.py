"""`snellen build` as it is typed: help, stages, errors, statistics, figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.capprobe_world import construct, paint

from snellen.cli import cli


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli, ["build", *words], standalone_mode=False)


def test_stages_are_listed_in_their_order() -> None:
    """The nine stages of CapProbe."""
    found = json.loads(typed("capprobe", "stages", "--json").stdout)
    assert found == [
        "select", "segment", "describe", "question", "dedup", "verify", "balance", "review",
        "export",
    ]  # fmt: skip
    assert "09 export" in typed("capprobe", "stages").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("capprobe", "pictures"), "no folder to build in"),
        (("capprobe", "--out", "OUT"), "nothing to build from"),
        (("capprobe", "pictures", "--out", "OUT", "--until", "a", "--only", "b"), "exclude"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """Misuse is named before anything is written."""
    out = str(tmp_path / "out")
    result = typed(*(out if word == "OUT" else word for word in words))
    assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_statistics_of_a_build(tmp_path: Path) -> None:
    """Counts, categories, the row for a table of benchmarks, and the funnel."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, until="question")
    shown = typed("statistics", str(out))
    for piece in ("Questions by category", "As a row among benchmarks", "Funnel", "fewer than 3"):
        assert piece in shown.stdout
    found = json.loads(typed("statistics", str(out), "--json").stdout)
    assert found["counts"]["images"] == 1
    assert len(found["thin_domains"]) == 37
    assert 215 <= len(found["empty_subdomains"]) <= 218


@pytest.mark.slow
def test_figures_of_a_build(tmp_path: Path) -> None:
    """The rings of domains and the bars of categories, for pages and for papers."""
    out, figures = tmp_path / "out", tmp_path / "figures"
    construct(paint(tmp_path / "in", 1), out, until="question")
    typed("statistics", str(out), "--figures", str(figures))
    drawn = sorted(path.name for path in figures.iterdir())
    assert drawn == ["categories.png", "categories.svg", "domains.png", "domains.svg"]
    assert all(path.stat().st_size > 1000 for path in figures.iterdir())


def test_a_threshold_is_chosen_on_labelled_pairs(tmp_path: Path) -> None:
    """The same question in other words, and another one."""
    path = tmp_path / "pairs.jsonl"
    base = {"question": "What colour is the cup on the left?", "options": ["red", "blue"]}
    like = {"question": "Which colour does the cup on the left have?", "options": ["red", "blue"]}
    far = {"question": "How many people wait at the stop?", "options": ["two", "three"]}
    rows = [{"a": base, "b": like, "same": True}, {"a": base, "b": far, "same": False}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = json.loads(typed("dedup-calibrate", str(path), "--json").stdout)
    assert found["best"]["f1"] == 1.0


def test_recall_of_regions_is_measured(tmp_path: Path) -> None:
    """A box as large as a region is found, a small one is not."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, until="segment")
    first = (out / "stages" / "02-segment.jsonl").read_text(encoding="utf-8").splitlines()[0]
    ymin, xmin, ymax, xmax = json.loads(first)["bbox"]
    box = [xmin * 0.32, ymin * 0.24, (xmax - xmin) * 0.32, (ymax - ymin) * 0.24]
    found = {
        "images": [{"id": 1, "file_name": "001.png"}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": box},
                        {"id": 2, "image_id": 1, "category_id": 1, "bbox": [0, 0, 3, 3]}],
    }  # fmt: skip
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    recall = json.loads(typed("regions-recall", str(out), str(path), "--json").stdout)
    assert (recall["found"], recall["boxes"], recall["pictures"]) == (1, 2, 1)
