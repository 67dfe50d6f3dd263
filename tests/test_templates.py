"""Prompts are filled in one pass and checked whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from snellen.errors import TemplateError
from snellen.templates import Template, bundled, from_file


def test_a_value_cannot_add_a_mark() -> None:
    """Captions are hostile: what looks like a mark in them stays as it is."""
    template = Template("t", "<{a}> {b} <{a}>")
    assert template.fill(a="{b}{a}", b="{a}\\1") == "<{b}{a}> {a}\\1 <{b}{a}>"


@pytest.mark.parametrize(
    ("text", "missing", "unknown"),
    [
        ("no mark at all", ["caption", "question"], []),
        ("{caption} {question} {other}", [], ["other"]),
        ("{caption} {qestion}", ["question"], ["qestion"]),
    ],
)
def test_a_prompt_with_other_fields_is_refused_with_what_it_must_hold(
    text: str, missing: list[str], unknown: list[str]
) -> None:
    """The message names the prompt and each field that is missing or unknown, the hint all."""
    with pytest.raises(TemplateError) as caught:
        Template("mine.txt", text).fill(caption="c", question="q")
    message = caught.value.message
    assert message.startswith("prompt mine.txt ")
    assert sorted(re.findall(r"\{(\w+)\}", message)) == sorted(missing + unknown)
    assert ("unknown" in message) is bool(unknown)
    assert "{caption}, {question}" in caught.value.hint


def test_braces_that_are_no_mark_stay() -> None:
    """JSON and LaTeX in a prompt need no escape."""
    template = Template("t", '{"a": 1} \\frac{1}{2} { x } {} {x}')
    assert template.fields == {"x"}
    assert template.fill(x="y") == '{"a": 1} \\frac{1}{2} { x } {} y'


@pytest.mark.parametrize(
    "formula",
    [
        r"\frac{a}{total}",
        r"\frac{\sqrt{x}}{ab}",
        r"5\text{cm} is 50\,\mathrm{mm}",
        r"$x_{max}^{n}$, {k}, \sqrt[3]{abc}",
        r"\begin{array}{cc}1&2\end{array}",
        r"\operatorname*{argmax}",
    ],
)
def test_formulas_in_a_prompt_stay(formula: str) -> None:
    """What LaTeX has in braces is text, beside marks and right before one."""
    template = Template("t", f"{formula}{{question}} {formula}")
    assert template.fits(frozenset({"question"}))
    assert template.fill(question="{q}") == f"{formula}{{q}} {formula}"


def test_a_mark_behind_a_written_line_end_is_filled() -> None:
    r"""A name that has a value is a mark even where `\n` before it looks like a command."""
    template = Template("t", r"Caption:\n{caption}")
    template.require(frozenset({"caption"}))
    assert template.fill(caption="A cat.") == r"Caption:\nA cat."


def test_a_file_is_read_as_utf_8_without_its_last_newline(tmp_path: Path) -> None:
    """Its name is its path, its hash that of the text."""
    file = tmp_path / "p.txt"
    file.write_text("Was siehst du? 你看到了什么\n", encoding="utf-8")
    template = from_file(file)
    assert (template.name, template.text) == (str(file), "Was siehst du? 你看到了什么")
    assert template.sha256 == Template("other", template.text).sha256


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfA {b}\r\nC\r\n", b"A {b}\nC\n\n", b"A {b}\nC"])
def test_editors_leave_no_trace(tmp_path: Path, data: bytes) -> None:
    """A byte order mark, other line ends and final newlines give the same prompt and hash."""
    file = tmp_path / "p.txt"
    file.write_bytes(data)
    assert from_file(file).text == "A {b}\nC"


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path, data: bytes | None) -> None:
    """Not there, or not UTF-8."""
    file = tmp_path / "p.txt"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(TemplateError, match=r"p\.txt cannot be read"):
        from_file(file)


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_a_blank_prompt_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file is a mistake, not a prompt of no words."""
    file = tmp_path / "p.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TemplateError, match=r"p\.txt is empty"):
        from_file(file)


def test_bundled_prompts_are_there_by_name() -> None:
    """Without a final newline, and with the fields that their protocol fills."""
    judge = bundled("reading_judge")
    assert {"CAPTION_HERE", "QUESTION_HERE", "OPTIONS_HERE"} == judge.fields
    assert not judge.text.endswith("\n")
