"""Judge prompts of the user's: which forms fit which run, and what the judge then reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import question, reading_folder, write_lines

import snellen
from snellen.cli import cli
from snellen.errors import SnellenError
from snellen.runs.rejudge import rejudge_plan
from snellen.runs.request import RunRequest

LETTERED = """From <CAPTION> alone.
<CAPTION>
{CAPTION_HERE}
</CAPTION>
QUESTION:
{QUESTION_HERE}
OPTIONS:
A. {OPTION_A}
B. {OPTION_B}
C. {OPTION_C}
D. {OPTION_D}
E. Not mentioned / Cannot be determined
One letter."""
LISTED = "Mine.\n{CAPTION_HERE}\n{QUESTION_HERE}\n{OPTIONS_HERE}"
SEVERAL = "Mine.\n{CAPTION_HERE}\n{QUESTIONS_HERE}"
FORCED = LETTERED.replace("E. Not mentioned / Cannot be determined\n", "")


def run(tmp_path: Path, prompt: str, **words: Any) -> tuple[snellen.Run, list[str]]:
    """A run with this judge prompt, and the texts that its judge got."""
    file = tmp_path / "prompt.txt"
    file.write_text(prompt + "\n", encoding="utf-8")
    seen: list[str] = []

    def judge(messages: list[dict[str, Any]]) -> str:
        seen.append(str(messages[-1]["content"]))
        return "B"

    data = reading_folder(tmp_path / "bench")
    given = (
        {"replies": {"a": "Two {OPTION_A} cups.", "b": "Cups."}} if "control" not in words else {}
    )
    done = snellen.run(
        str(data), judge=judge, judge_prompt=file, out=tmp_path / "run", **given, **words
    )
    return done, seen


def test_the_published_form_lists_the_options_itself(tmp_path: Path) -> None:
    """Each option follows its own letter, E stands once, and a caption's marks are not filled."""
    done, seen = run(tmp_path, LETTERED)
    assert "A. one\nB. two\nC. three\nD. four\nE. Not mentioned" in seen[0]
    assert "Two {OPTION_A} cups." in "".join(seen)
    assert seen[0].count("Not mentioned") == 1
    assert done.spec.prompts["verdict"].text == LETTERED
    assert {v.verdict for v in done.verdicts.values()} == {"B"}


def test_the_published_form_follows_the_option_order(tmp_path: Path) -> None:
    """With shuffled options the letter said is translated back to the stored one."""
    done, seen = run(tmp_path, LETTERED, option_order=3)
    stored = ["one", "two", "three", "four"]
    said = {stored["ABCD".index(str(v.verdict))] for v in done.verdicts.values()}
    assert said == {text.split("\nB. ")[1].split("\n")[0] for text in seen}


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (LISTED, {}),
        (SEVERAL, {"questions_a_call": 2}),
        (FORCED, {"control": "blind"}),
        (LISTED, {"control": "blind"}),
    ],
)
def test_a_prompt_replaces_the_one_that_the_run_uses(
    tmp_path: Path, prompt: str, words: dict[str, Any]
) -> None:
    """One question a call, several, or blind: the file is what the judge gets."""
    done, seen = run(tmp_path, prompt, max_unscored=1, reasks=0, **words)
    assert done.spec.prompts["verdict"].text == prompt
    lead = prompt.split("{", maxsplit=1)[0]
    assert seen
    assert all(text.startswith(lead) for text in seen)
    assert not any("You cannot see the picture" in text for text in seen)


def test_a_prompt_with_formulas_serves_the_run_and_the_next_judge(tmp_path: Path) -> None:
    """LaTeX in a prompt of the user's arrives as it stands, now and when it is judged again."""
    prompt = r"Is \frac{a}{total} x_{max}? " + LISTED
    done, seen = run(tmp_path, prompt)
    assert all(text.startswith(r"Is \frac{a}{total} x_{max}? Mine.") for text in seen)
    plan = rejudge_plan(done, RunRequest("", tmp_path / "again", judge=lambda _: "A"))
    assert plan.options.prompts["verdict"].text == prompt


@pytest.mark.parametrize(
    ("prompt", "words", "said"),
    [
        (LETTERED.replace("{OPTION_D}", ""), {}, "lacks {OPTION_D}"),
        (LETTERED + "{OPTIONS_HERE}", {}, "unknown {OPTIONS_HERE}"),
        (LISTED, {"questions_a_call": 2}, "lacks {QUESTIONS_HERE}"),
        (LETTERED, {"control": "blind"}, "offers E"),
        ("Only words", {}, "lacks {CAPTION_HERE}, {OPTIONS_HERE}, {QUESTION_HERE}"),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused_before_the_first_call(
    tmp_path: Path, prompt: str, words: dict[str, Any], said: str
) -> None:
    """One line names the file and the marks; no run folder is begun."""
    with pytest.raises(SnellenError) as caught:
        run(tmp_path, prompt, **words)
    assert said in caught.value.message
    assert str(tmp_path / "prompt.txt") in caught.value.message
    assert caught.value.hint
    assert not (tmp_path / "run").exists()


def test_judging_again_keeps_the_published_form(tmp_path: Path) -> None:
    """The stored prompt serves the next judge, until the way of asking changes."""
    done, _ = run(tmp_path, LETTERED)
    for words, text in (({}, LETTERED), ({"questions_a_call": 2}, None)):
        request = RunRequest("", tmp_path / "again", judge=lambda _: "A", **words)
        plan = rejudge_plan(done, request)
        assert (plan.options.prompts["verdict"].text == LETTERED) is (text is not None)


def test_a_prompt_file_that_moved_goes_on_with_the_run(tmp_path: Path) -> None:
    """The same words in another file resume without a call; other words are refused."""
    done, _ = run(tmp_path, LISTED)
    moved = tmp_path / "moved.txt"
    moved.write_text(LISTED, encoding="utf-8")
    words = {"replies": {"a": "Two {OPTION_A} cups.", "b": "Cups."}, "out": done.folder}

    def judge(_: Any) -> str:
        raise AssertionError("nothing is left to ask")

    again = snellen.run(str(tmp_path / "bench"), judge=judge, judge_prompt=moved, **words)
    assert again.verdicts == done.verdicts
    moved.write_text(LISTED + " Now.", encoding="utf-8")
    with pytest.raises(SnellenError, match=r"prompts\.verdict\.sha256"):
        snellen.run(str(tmp_path / "bench"), judge=judge, judge_prompt=moved, **words)


def test_letters_in_the_options_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run on options that bring their letters says so; plain options give no notice."""
    lettered = {"options": ["A. one", "B. two", "C. three", "D. four"]}
    for name, more in (("own", lettered), ("plain", {})):
        rows = [question(k, "ab"[k - 1], **more) for k in (1, 2)]
        folder = reading_folder(tmp_path / name)
        write_lines(folder / "questions.jsonl", rows)
        captions = tmp_path / "captions.json"
        captions.write_text('{"a": "Cups.", "b": "Cups."}', encoding="utf-8")
        words = ["run", str(folder), "--replies", str(captions), "--judge", "embedded"]
        cli.main([*words, "--out", str(tmp_path / f"{name}-run")], standalone_mode=False)
        told = "the options of 2 of 2 questions begin with letters of their own"
        assert (told in capsys.readouterr().err) is (name == "own")
