"""Thoughts, blanks, dress, quotations and JSON in replies."""

from __future__ import annotations

import random
import re

import pytest

from snellen.replies import (
    blank_reason,
    parse_assessment,
    parse_letter,
    parse_letters,
    parse_verdict,
)
from snellen.replies.text import (
    LONGEST_READ,
    clean,
    drop_doubtful_mark,
    drop_quotations,
    json_places,
    split_thinking,
    twice_given,
    undress,
)


@pytest.mark.parametrize(
    ("text", "thinking", "rest"),
    [
        ("A pier.", None, "A pier."),
        ("<think>boats?</think>A pier.", "boats?", "A pier."),
        ("\n <THINK>boats?</Think>\nA pier.", "boats?", "\nA pier."),
        ("<thinking>boats?</thinking>A pier.", "boats?", "A pier."),
        ("<think>a</think><think>b</think>A pier.", "a\nb", "A pier."),
        ("boats?</think>A pier.", "boats?", "A pier."),
        ("A pier.</think>", None, "A pier.</think>"),
        ("<reasoning>boats?</reasoning>A pier.", "boats?", "A pier."),
        ("<reasoning> is a tag. A pier.", None, "<reasoning> is a tag. A pier."),
        ("<|channel>thought\nboats?<channel|>A pier.", "\nboats?", "A pier."),
        ("boats?<channel|>A pier.", "boats?", "A pier."),
        ("A pier.<|im_end|>\n<|im_start|>user", None, "A pier."),
        ("<think>boats?</think>A pier.<end_of_turn>B", "boats?", "A pier."),
        ("<|im_start|>assistant\nA pier.", None, "A pier."),
        ("A shop, <s>9</s> 7 coins.", None, "A shop, <s>9</s> 7 coins."),
        ("<think>boats, and", "boats, and", ""),
        ("[THINK]boats?[/THINK]A pier.", "boats?", "A pier."),
        ("◁think▷boats?◁/think▷A pier.", "boats?", "A pier."),
        (
            "<|channel|>analysis<|message|>boats?<|end|><|start|>assistant<|channel|>final"
            "<|message|>A pier.<|return|>",
            "boats?",
            "A pier.",
        ),
        ("<|channel|>analysis<|message|>boats, and", "boats, and", ""),
        ("<|channel|>final<|message|>A pier.", None, "A pier."),
        ("analysisboats?assistantfinalA pier.", "boats?", "A pier."),
        (
            "A screen shows <think>x</think> in code.",
            None,
            "A screen shows <think>x</think> in code.",
        ),
        ("Analysis of the pier: wooden.", None, "Analysis of the pier: wooden."),
    ],
)
def test_thoughts_are_split_from_what_follows(text: str, thinking: str | None, rest: str) -> None:
    """Thoughts at the start are taken off; a tag inside the text is part of the text."""
    assert split_thinking(text) == (thinking, rest)


@pytest.mark.parametrize(
    ("text", "reasoning", "finish_reason", "refusal", "reason"),
    [
        ("A pier.", None, "stop", False, None),
        ("A pier, and", None, "length", False, None),
        ("I'm sorry, I can't help.", None, "stop", False, None),
        ("", None, "stop", False, "empty"),
        (None, None, "stop", False, "empty"),
        (" \n\t ", None, None, False, "empty"),
        ("\u200b\u2060\ufeff\u3164\u2800", None, "stop", False, "empty"),
        ("", None, "length", False, "truncated"),
        ("<think>boats", None, "length", False, "truncated"),
        ("<think>boats", None, "stop", False, "thought_only"),
        ("<think>boats</think>\n\u200b", None, "stop", False, "thought_only"),
        ("<think>\n\n</think>\n", None, "stop", False, "empty"),
        ("", "boats", "stop", False, "thought_only"),
        ("", "boats", "length", False, "truncated"),
        ("", "boats", "stop", True, "empty"),
        ("", None, "content_filter", False, "empty"),
    ],
)
def test_a_blank_reply_says_why(
    text: str | None,
    reasoning: str | None,
    finish_reason: str | None,
    refusal: bool,
    reason: str | None,
) -> None:
    """Without a visible word a reply is empty, cut off or thoughts alone; words are never blank."""
    found = blank_reason(text, reasoning=reasoning, finish_reason=finish_reason, refusal=refusal)
    assert found == reason


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Sure:\n```json\n{"a": 1}\n```\nDone.', [{"a": 1}]),
        ('{"a": 1, // one\n "b": "x\ny", /* two */}', [{"a": 1, "b": "x\ny"}]),
        ("{'a': True, 'b': None, 'c': 'it\\'s'}", [{"a": True, "b": None, "c": "it's"}]),
        ('{"a": "http://x.org/}", "b": [1, 2,]}', [{"a": "http://x.org/}", "b": [1, 2]}]),
        ('the set {red, blue}, so {"a": 1}', [{"a": 1}]),
        ('{"a": 1} or {"a": 2}', [{"a": 1}, {"a": 2}]),
        ("[1, 2]", [[1, 2]]),
        ('{"a": 1', []),
        ("no object", []),
        ('{"a": True-ish}', []),
    ],
)
def test_json_is_found(text: str, values: list[object]) -> None:
    """Every outermost object and list is found in any dress; a broken one is not there."""
    assert [value for _, _, value in json_places(text)] == values


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A pier.</think>", "A pier."),
        ("A pier.<channel|>\n", "A pier."),
        ("A pier.", None),
        ("boats?</think>A pier.", None),
        ("<think>boats?</think>", None),
        ("</think>", None),
    ],
)
def test_a_closing_mark_alone_leaves_its_text_in_doubt(text: str, kept: str | None) -> None:
    """Whether the text before the mark is an answer or a thought cannot be told."""
    assert drop_doubtful_mark(text) == kept


def test_a_judges_text_in_doubt_is_no_answer() -> None:
    """A judge is asked again, since its verdict may have been a thought."""
    assert parse_verdict("True</think>").reason == "thought_only"
    assert parse_letter("B</think>", ("red", "blue")).reason == "thought_only"
    assert parse_assessment("true</think>", 1, 0)[0].reason == "thought_only"


def test_a_key_given_twice_is_told() -> None:
    """An object remembers which of its keys had two values."""
    [(_, _, value)] = json_places('{"a": 1, "b": 2, "a": 3, "b": 2}')
    assert twice_given(value) == {"a"}


@pytest.mark.parametrize(
    "text", ["{" * 50_000, "[" * 50_000, '{"a": ' * 20_000, '"' * 50_000, "'" * 50_000]
)
def test_hostile_texts_end(text: str) -> None:
    """Nesting without end is no object, and is neither an error nor an endless search."""
    assert list(json_places(text)) == []
    assert clean(text)
    drop_quotations(text, re.compile("x"))


def test_quotations_are_blanked_only_where_they_hold_the_pattern() -> None:
    """Quoted words stay unless they hold what is looked for; lengths are kept."""
    text = 'It says "stop" and "go: now".'
    kept = drop_quotations(text, re.compile("go:"))
    assert kept == text.replace('"go: now"', " " * len('"go: now"'))


def test_marks_of_length_are_no_quotation_marks() -> None:
    """Inch marks after digits do not open a quotation."""
    text = 'A 5" pipe, verdict: x, and a 6" pipe.'
    assert drop_quotations(text, re.compile("x")) == text


@pytest.mark.parametrize(
    "text", ["**True**", "`True`", '"True"', "## True", "> True", "- *True*", "“True”"]
)
def test_dress_comes_off(text: str) -> None:
    """Emphasis, quotes, headings and bullets are no part of a word."""
    assert undress(text) == "True"


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces", [("*\n",), ("*\n", "-\n", "#\n"), (",",), (",", ";", " "), ("my ",), ("my ", "best ")]
)
def test_what_a_judge_in_a_loop_sends_is_unreadable(pieces: tuple[str, ...]) -> None:
    """What is as long as is read at all: what grew with its square would take minutes."""
    text = "".join(random.Random(0).choices(pieces, k=LONGEST_READ // len(pieces[0]) - 1))
    assert parse_verdict(text).value is None
    assert parse_letter(text, ("red", "blue")).value is None
    assert {p.value for p in parse_letters(text, 5)} == {None}
    assert {group.value for group in parse_assessment(text, 5, 5)} == {None}
