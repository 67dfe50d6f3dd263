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
from snellen.replies.cleaning import (
    clean,
    drop_quotations,
    find_json,
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
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('{"a": 1, // one\n "b": "x\ny", /* two */}', {"a": 1, "b": "x\ny"}),
        ("{'a': True, 'b': None, 'c': 'it\\'s'}", {"a": True, "b": None, "c": "it's"}),
        ('{"a": "http://x.org/}", "b": [1, 2,]}', {"a": "http://x.org/}", "b": [1, 2]}),
        ('the set {red, blue}, so {"a": 1}', {"a": 1}),
        ('<think>{"a": 2}</think>{"a": 1}', {"a": 1}),
        ('{"a": 1} and again {"a": 1}', {"a": 1}),
        ('{"a": 1} or {"a": 2}', None),
        ("[1, 2]", [1, 2]),
        ('{"a": 1', None),
        ("no object", None),
        ('{"a": True-ish}', None),
    ],
)
def test_the_one_json_object_is_found(text: str, value: object) -> None:
    """One object is found in any dress; none, a broken one, or two that differ give None."""
    assert find_json(text) == value


def test_a_key_given_twice_is_told() -> None:
    """An object remembers which of its keys had two values."""
    [(_, _, value)] = json_places('{"a": 1, "b": 2, "a": 3, "b": 2}')
    assert twice_given(value) == {"a"}


@pytest.mark.parametrize(
    "text", ["{" * 50_000, "[" * 50_000, '{"a": ' * 20_000, '"' * 50_000, "'" * 50_000]
)
def test_hostile_texts_end(text: str) -> None:
    """Nesting without end is no object, and is neither an error nor an endless search."""
    assert find_json(text) is None
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
    assert drop_quotations(text) == text


@pytest.mark.parametrize(
    "text", ["**True**", "`True`", '"True"', "## True", "> True", "- *True*", "“True”"]
)
def test_dress_comes_off(text: str) -> None:
    """Emphasis, quotes, headings and bullets are no part of a word."""
    assert undress(text) == "True"


def test_a_loop_of_white_space_shrinks() -> None:
    """What a judge in a loop sends costs no time in the parsers: at most three blanks stay."""
    assert clean("True" + "\t " * 9 + "x") == "True   x"
    assert clean("True\n" + " \n" * 9 + "x") == "True\n\n\nx"


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces", [("*\n",), ("*\n", "-\n", "#\n"), (",",), (",", ";", " "), ("my ",), ("my ", "best ")]
)
def test_what_a_judge_in_a_loop_sends_is_unreadable(pieces: tuple[str, ...]) -> None:
    """100,000 characters of a few pieces: what grew with their square would take minutes."""
    text = "".join(random.Random(0).choices(pieces, k=100_000 // len(pieces[0])))
    assert parse_verdict(text).value is None
    assert parse_letter(text, ("red", "blue")).value is None
    assert {p.value for p in parse_letters(text, 5)} == {None}
    assert {group.value for group in parse_assessment(text, 5, 5)} == {None}


def test_a_loop_is_cut_and_what_stands_around_it_is_kept() -> None:
    """No number of answers that is asked for comes near the thousand pieces that stay."""
    assert clean("so " + "no, " * 5000 + "yes") == "so " + "no, " * 1000 + "yes"
    few = "\n".join(["true"] * 900)
    assert clean(few) == few
