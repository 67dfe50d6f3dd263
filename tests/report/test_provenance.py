"""What was measured and how: everything in run.json can be read."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from tests.worlds.report_runs import PROMPT, reading_run

from snellen.report.provenance import (
    NOT_STATED,
    describe_pictures,
    facts_of,
    item_sets,
    prompts_of,
)
from snellen.runs.spec import PromptRecord, RunSpec


def test_every_field_of_run_json_is_told(tmp_path: Path) -> None:
    """The facts name data, parties with parameters, prompts, options, pictures and versions."""
    facts = dict(facts_of([reading_run(tmp_path)]).shared)
    assert facts["Benchmark"] == "bench-reading"
    assert facts["Hash of the data"] == "d" * 64
    assert facts["Licence of the data"] == "CC-BY-4.0"
    assert facts["Items used"] == "4"
    assert facts["Model: parameters sent"] == "temperature = 0.7, top_p = 0.9"
    assert facts["Judge: name"] == "j"
    assert facts["Prompt: verdict"] == f"reading_judge, sha256 {PROMPT.sha256}"
    assert facts["Option: reasks"] == "2"
    assert "files above 1,000 stored pixels are refused" in facts["Preparation of pictures"]
    assert facts["Sessions"] == "2026-01-02T03:04:05Z with snellen 0.1.0, Python 3.11.0"
    assert "Judge: revision" in facts["Not stated"]


def test_no_field_is_forgotten(tmp_path: Path) -> None:
    """A value put into any text field of the run's settings is found among its facts."""
    run = reading_run(tmp_path)
    for field in fields(RunSpec):
        if field.type != "str":
            continue
        spec = replace(run.spec, **{field.name: "find-me"})
        values = [value for _, value in facts_of([replace(run, spec=spec)]).shared]
        assert any("find-me" in value for value in values), field.name


def test_what_differs_stands_apart(tmp_path: Path) -> None:
    """Facts that runs share are told once, others with one value a run."""
    facts = facts_of([reading_run(tmp_path, "a"), reading_run(tmp_path, "b")])
    assert facts.differing == (("Model: name", ("a", "b")),)
    assert "Judge: name" in dict(facts.shared)


def test_a_fact_that_one_run_states_is_not_stated_by_the_other(tmp_path: Path) -> None:
    """A value on one side only is a difference."""
    one = reading_run(tmp_path, "m")
    other = replace(one, spec=replace(one.spec, revision="abc"))
    differing = dict(facts_of([one, other]).differing)
    assert differing["Revision of the data"] == (NOT_STATED, "abc")


def test_prompts_are_told_once(tmp_path: Path) -> None:
    """A prompt that several runs used has one entry; another text under its purpose its own."""
    one = reading_run(tmp_path)
    other = replace(
        one, spec=replace(one.spec, prompts={"verdict": PromptRecord("mine", "cd" * 32, "x")})
    )
    assert [prompt.name for _, prompt in prompts_of([one, one, other])] == ["reading_judge", "mine"]


def test_item_sets_name_their_runs(tmp_path: Path) -> None:
    """Runs on the same items share a list of ids; a run on fewer items has its own."""
    one, two = reading_run(tmp_path, "a"), reading_run(tmp_path, "b")
    few = replace(one, spec=replace(one.spec, items={"i0": "0"}))
    assert [(names, len(items)) for names, items in item_sets([one, two, few])] == [
        (("a", "b"), 4),
        (("a",), 1),
    ]


def test_unknown_picture_rules_stay_as_they_are() -> None:
    """A line that is no list of picture rules is shown itself."""
    assert describe_pictures("as they are") == "as they are"
    assert describe_pictures("") == NOT_STATED
