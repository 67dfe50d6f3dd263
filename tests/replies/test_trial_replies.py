"""Replies taken after bug reports of other tools, each with the outcome it ought to have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.replies import (
    UNCERTAIN,
    Parsed,
    blank_reason,
    parse_assessment,
    parse_letter,
    parse_verdict,
)

LINES = (Path(__file__).parents[1] / "data" / "trial_replies.jsonl").read_text(encoding="utf-8")
CASES = [json.loads(line) for line in LINES.splitlines()]


def by_kind(kind: str) -> list[Any]:
    found = [(case, reply) for case in CASES if case["kind"] == kind for reply in case["replies"]]
    return [pytest.param(*pair, id=f"{pair[0]['id']}-{i}") for i, pair in enumerate(found)]


def check(parsed: Parsed, case: dict[str, Any]) -> None:
    assert parsed.value is case["value"] or parsed.value == case["value"]
    if case["value"] is None:
        assert parsed.reason == case.get("reason", parsed.reason)
        assert parsed.reason
        assert parsed.how == ""
    else:
        assert parsed.reason is None


@pytest.mark.parametrize(("case", "reply"), by_kind("verdict"))
def test_verdicts(case: dict[str, Any], reply: str) -> None:
    """A verdict is read, or has its named reason."""
    check(parse_verdict(reply, finish_reason=case.get("finish_reason", "stop")), case)


@pytest.mark.parametrize(("case", "reply"), by_kind("letter"))
def test_letters(case: dict[str, Any], reply: str) -> None:
    """A letter is read, or has its named reason."""
    uncertain = case.get("uncertain", UNCERTAIN)
    check(parse_letter(reply, case["options"], uncertain=uncertain), case)


@pytest.mark.parametrize(("case", "reply"), by_kind("assessment"))
def test_assessments(case: dict[str, Any], reply: str) -> None:
    """A group is read whole, or has its named reason, whatever the other group is."""
    parsed = parse_assessment(reply, *case["sizes"])
    values = [None if p.value is None else list(p.value) for p in parsed]
    assert values == case["values"]
    assert [p.reason for p in parsed] == case["reasons"]


def test_the_same_prose_is_read_the_same_a_hundred_times() -> None:
    """No reply is answered by chance."""
    options = ["a tin kettle", "a wooden spoon", "three plates", "a bare table"]
    outcomes = {parse_letter("Sorry, I can't see an image.", options) for _ in range(100)}
    assert {p.value for p in outcomes} == {None}


def test_an_empty_caption_that_was_cut_off_is_blank() -> None:
    """A caption without a word costs no judge call, and says that it was cut off."""
    assert blank_reason("", reasoning="A jetty, and", finish_reason="length") == "truncated"
