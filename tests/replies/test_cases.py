"""Adversarial replies, each with the mistake that it invites and its right outcome."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snellen.replies import parse_assessment, parse_letter, parse_verdict

OPTIONS = ("a brass lamp", "two candles", "no light", "a lantern")
LINES = (Path(__file__).parents[1] / "data" / "reply_cases.jsonl").read_text(encoding="utf-8")
CASES = [json.loads(line) for line in LINES.splitlines()]


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{c['kind']}: {c['mistake']}-{k}") for k, c in enumerate(CASES)]
)
def test_a_reply_is_read_as_stated(case: dict[str, Any]) -> None:
    """A reply has its value, or none and the reason; groups are read for two rubrics and one."""
    reply, ending = case["reply"], case.get("finish_reason")
    if case["kind"] == "assessment":
        groups = parse_assessment(reply, 2, 1, finish_reason=ending)
        assert [p.value and list(p.value) for p in groups] == case["value"]  # type: ignore[arg-type]
        assert [p.reason for p in groups] == case["reason"]
        return
    if case["kind"] == "letter":
        parsed = parse_letter(reply, OPTIONS, finish_reason=ending)
    else:
        parsed = parse_verdict(reply, finish_reason=ending)
    assert (parsed.value, parsed.reason) == (case["value"], case.get("reason"))


def test_there_are_many_cases_and_none_twice() -> None:
    """Each kind has many cases for many different mistakes."""
    assert len({(c["kind"], c["reply"], c.get("finish_reason")) for c in CASES}) == len(CASES)
    kinds = Counter(c["kind"] for c in CASES)
    assert kinds["verdict"] >= 90
    assert kinds["letter"] >= 80
    assert kinds["assessment"] >= 35
    assert len({c["mistake"] for c in CASES}) >= 40
