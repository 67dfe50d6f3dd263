"""The prompts that ship with Snellen."""

from __future__ import annotations

import re

import pytest

from snellen.replies import parse_assessment, parse_verdict
from snellen.templates import bundled

FIELDS: dict[str, set[str]] = {
    "direct_judge": {"problem", "reference_answer", "assistant_answer"},
    "reading_judge": {"CAPTION_HERE", "QUESTION_HERE", "OPTIONS_HERE"},
    "reading_judge_forced": {"CAPTION_HERE", "QUESTION_HERE", "OPTIONS_HERE"},
    "reading_judge_several": {"CAPTION_HERE", "QUESTIONS_HERE"},
    "rubric_judge": {"caption", "group_a_rubrics", "group_b_rubrics"},
    "rubric_judge_one": {"caption", "rubric"},
    "scalar_judge": {"caption", "reference"},
    "captionqa_judge_system": set(),
    "captionqa_judge_user": {"CAPTION_HERE", "QUESTION_HERE", "OPTIONS_HERE"},
    "describe_reading": set(),
    "describe_rubric": set(),
    "describe_captionqa": set(),
    "remind_rating": set(),
    "remind_letter": set(),
    "remind_letters": set(),
    "remind_verdict": set(),
    "remind_statement": set(),
    "remind_assessment": set(),
}


@pytest.mark.parametrize(("name", "fields"), FIELDS.items(), ids=FIELDS)
def test_a_prompt_has_the_fields_of_its_protocol(name: str, fields: set[str]) -> None:
    """No field is missing and none is unknown."""
    template = bundled(name)
    assert template.fields == fields
    filled = template.fill(**dict.fromkeys(fields, "x"))
    assert filled == filled.strip()


@pytest.mark.parametrize("name", ["reading_judge", "reading_judge_forced", "reading_judge_several"])
def test_the_caption_stands_ahead_in_its_tags(name: str) -> None:
    """All questions about one caption share a prefix that ends after the caption."""
    text = bundled(name).text
    before, after = text.split("<CAPTION>\n{CAPTION_HERE}\n</CAPTION>")
    assert "{" not in before
    assert "QUESTION" in after


def test_the_forced_prompt_offers_no_way_out() -> None:
    """Without the uncertain option the letter E is not named."""
    assert re.search(r"\bE\b", bundled("reading_judge").text)
    assert not re.search(r"\bE\b", bundled("reading_judge_forced").text)


def test_the_description_prompts_are_the_published_ones() -> None:
    """The captioners of both reading benchmarks are asked in the published words."""
    assert bundled("describe_reading").text == "Please describe this image in detail."
    assert bundled("describe_captionqa").text == "Describe this image in detail."


def test_the_direct_prompt_teaches_by_replies_that_can_be_read() -> None:
    """Each worked example ends in the protocol's form, and every rule has one, both ways."""
    text = bundled("direct_judge").text
    examples = re.findall(
        r"^Example (\d)\w?\. .*\n(\[reason\] .*\n\[judge\] .*)$", text, re.MULTILINE
    )
    assert {rule for rule, _ in examples} == set("012345678")
    read = [parse_verdict(reply) for _, reply in examples]
    assert {p.how for p in read} == {"marked"}
    assert {p.value for p in read} == {True, False}
    assert all(len(reply.split()) < 60 for _, reply in examples)
    assert all(f"\n{rule}. " in text for rule in range(9))


def test_the_rubric_prompt_shows_a_reply_that_can_be_read() -> None:
    """The form that the judge is shown is the form that the parser calls marked."""
    a, b = parse_assessment(bundled("rubric_judge").text, 2, 1)
    assert (a.value, a.how, b.value) == ((True, False), "marked", (True,))


@pytest.mark.parametrize(
    "name", ["direct_judge", "rubric_judge", "rubric_judge_one", "scalar_judge"]
)
def test_the_tested_text_is_framed(name: str) -> None:
    """The text under test stands between tags of its own, and what it says is only graded."""
    text = bundled(name).text
    assert re.search(
        r"<(answer|caption)_under_test>\n\{(?:assistant_answer|caption)\}\n</\1_under_test>", text
    )
    assert "part of what is" in text
