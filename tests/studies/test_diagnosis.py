"""Response patterns, silence, difficulty and doubtful questions, on runs made for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.benchmark_files import png, question, write_card, write_lines

import snellen
from snellen.errors import ComparisonError
from snellen.runs.folder import Run
from snellen.runs.spec import Value
from snellen.studies.diagnosis import difficulties, doubtful_questions, patterns, silent_labels
from snellen.studies.published import published_models
from snellen.tables.studies import diagnose, doubtful_table, patterns_table, silence_table
from snellen.tables.writers import texts

CATEGORIES = ("Count", "Count", "Action", "Action")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """One picture with a thing and a stuff region, two questions about each."""
    base = tmp_path / "bench"
    base.mkdir()
    write_card(base, "reading")
    (base / "a.png").write_bytes(png())
    boxes = {"thing": [0, 0, 100, 100], "stuff": [0, 0, 900, 900]}
    regions = [
        {
            "region_id": nature, "image_id": "a", "bbox": box, "mask": None, "nature": nature,
            "metadata": {},
        }
        for nature, box in boxes.items()
    ]  # fmt: skip
    questions = [
        question(k, "a", region_id=("thing", "stuff")[k // 2], category=CATEGORIES[k], answer="A")
        for k in range(4)
    ]
    write_lines(base / "images.jsonl", [{"image_id": "a", "image": "a.png", "l1": [], "l2": []}])
    write_lines(base / "regions.jsonl", regions)
    write_lines(base / "questions.jsonl", questions)
    return str(base)


def run_that_says(folder: str, out: Path, letters: Sequence[str]) -> Run:
    """A run in which the judge answers the four questions with these letters, in order."""
    said = iter(letters)
    return snellen.run(
        folder,
        model=out.name,
        judge=lambda _: next(said),
        replies={"a": "A caption."},
        out=out,
        concurrency=1,
        cache=False,
        reasks=0,
    )


def value(number: float) -> Value:
    return Value(number, number, number, None, 1, 1)


def names(**numbers: float) -> list[str]:
    return [p.name for p in patterns({name: value(n) for name, n in numbers.items()})]


def test_each_pattern_has_numbers_that_show_it() -> None:
    """Rarely uncertain, conservative and committed but wrong are told apart."""
    rarely = names(overall_acc=0.68, effective_acc=0.70, uncertain_ratio=0.03)
    conservative = names(overall_acc=0.34, effective_acc=0.94, uncertain_ratio=0.64)
    wrong = names(overall_acc=0.40, effective_acc=0.45, uncertain_ratio=0.11)
    assert (rarely, conservative, wrong) == (
        ["rarely uncertain"],
        ["conservative"],
        ["committed but wrong"],
    )
    assert names(overall_acc=0.6, effective_acc=0.9, uncertain_ratio=0.33) == []


def test_densities_are_compared_under_both_weights() -> None:
    """Mean above, below and near global density have names of their own, and so has the CV."""
    assert names(mean_density=2.5, global_density=1.9) == [
        "long captions or many probes are less dense"
    ]
    assert names(mean_density=1.0, global_density=1.2) == [
        "long captions or many probes are denser"
    ]
    assert names(mean_density=1.0, global_density=1.05, density_cv=0.2) == [
        "alike under both weights",
        "steady density",
    ]
    assert names(density_cv=0.6) == ["volatile density"]


def test_the_paper_s_example_of_a_conservative_model_is_found() -> None:
    """Among the 13 published models only GPT-4o is conservative, as the paper says of it."""
    found = {
        row.model for row in published_models("capprobe") if "conservative" in names(**row.metrics)
    }
    assert found == {"GPT-4o"}


def test_silent_regions_and_categories_are_listed(folder: str, tmp_path: Path) -> None:
    """A region of which every question is E is silent; one right answer gives it a voice."""
    run = run_that_says(folder, tmp_path / "m", "ABEE")
    assert silent_labels(run, "region_id") == {"stuff": 2}
    assert silent_labels(run, "category") == {"Action": 2}
    [row] = texts(silence_table([run]))
    assert row[1:] == ("1/2", "0/1", "1/1", "Action", "stuff")


def test_a_label_with_one_scored_question_is_not_called_silent(folder: str, tmp_path: Path) -> None:
    """An unscored verdict is no silence."""
    run = run_that_says(folder, tmp_path / "m", ["A", "B", "E", "?"])
    assert silent_labels(run, "region_id") == {}


def test_questions_that_all_models_get_wrong_are_found(folder: str, tmp_path: Path) -> None:
    """Agreement on one wrong option comes first; silence alone is no doubt about a label."""
    runs = [
        run_that_says(folder, tmp_path / name, letters)
        for name, letters in (("m1", "ABBE"), ("m2", "BBCE"), ("m3", "ABEE"))
    ]
    found = doubtful_questions(runs)
    assert [(d.probe.id, d.favourite, d.n_favourite, d.abstained) for d in found] == [
        ("q1", "B", 3, 0),
        ("q2", "B", 1, 1),
    ]
    assert [d.right for d in difficulties(runs)] == [0, 0, 0, 2]
    assert doubtful_table(runs).rows[0][:1] == ("q1",)
    assert doubtful_questions(runs[:1]) == []


def test_a_diagnosis_holds_all_tables(folder: str, tmp_path: Path) -> None:
    """Patterns, silence, foreground and background, sizes, difficulty and doubts."""
    runs = [run_that_says(folder, tmp_path / name, "ABEE") for name in ("m1", "m2")]
    titles = [table.title for table in diagnose(runs)]
    assert titles == [
        "Response patterns",
        "Regions that the captions never mention",
        "m1 by nature",
        "m1 by area",
        "m2 by nature",
        "m2 by area",
        "Difficulty of the questions",
        "Questions that all models get wrong",
    ]
    assert len(patterns_table(runs).rows) >= 2


def test_runs_on_different_items_are_refused(folder: str, tmp_path: Path) -> None:
    """Difficulty needs the same questions in all runs."""
    run = run_that_says(folder, tmp_path / "m", "ABEE")
    other = replace(run, spec=replace(run.spec, items={}))
    with pytest.raises(ComparisonError):
        difficulties([run, other])
