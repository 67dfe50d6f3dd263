"""Checks of statements by code."""

from __future__ import annotations

import pytest

from snellen.builders.rubrics.checks import check, clash, entails, fault_of, gated, said_in
from snellen.builders.rubrics.rows import EASY_WRONG, MUST_RIGHT, RubricKind, RubricRow

MUST = "The response must "


def row(number: int, kind: RubricKind, text: str) -> RubricRow:
    return RubricRow(
        id=f"p.{kind[0]}{number:02d}", image_id="p", kind=kind, text=MUST + text,
        proposer="q", index=number,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["identify the cup as red.", "not mention a dog", "state that there are between 3 and 5 cups.",
     'quote the sign as "Bed and Breakfast".', "describe the zebra as black and white.",
     "NOT claim that the lamp is on.", "state that the roof is orange or yellow."],
)  # fmt: skip
def test_a_single_fact_in_form_passes(text: str) -> None:
    """Ranges, names in quotation marks and pairs of colours are one fact."""
    assert fault_of(MUST + text, max_words=40) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [("Mentions a dog.", "other_form"), ("The response should mention a dog.", "other_form"),
     (MUST + "mention a dog and a cat.", "not_atomic"),
     (MUST + "mention a dog; it is red", "not_atomic"),
     (MUST + "mention a dog. It must be red.", "not_atomic"),
     (MUST + "not mention a dog or cat", "not_atomic"),
     (MUST + "look", "length"), (MUST + "mention " + "very " * 40 + "much", "length")],
)  # fmt: skip
def test_other_forms_several_facts_and_lengths_are_named(text: str, reason: str) -> None:
    """Each fault has its reason."""
    assert fault_of(text, max_words=40) == reason


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("mention three cups.", "state that there are 3 cups.", "duplicate"),
        ("mention a dog.", "not mention a dog.", "contradiction"),
        ("state that there are 3 cups.", "state that there are four cups.", "contradiction"),
        ("identify the cup as red.", "identify the cup as blue.", "contradiction"),
        ("state that the cup is left of the jug.", "state that the cup is right of the jug.",
         "contradiction"),
        ("identify the left car as red.", "identify the right car as red.", None),
        ("identify the left car as red.", "identify the right car as blue.", None),
        ("identify the first word.", "identify the second word.", None),
        ("not mention a red cup.", "not mention a blue cup.", None),
        ("mention a red dog.", "not mention a blue dog.", None),
        ("mention a dog.", "mention a cat.", None),
    ],
)  # fmt: skip
def test_clashes(one: str, other: str, found: str | None) -> None:
    """Duplicates and contradictions are told from other pairs, both ways round."""
    assert clash(said_in(MUST + one), said_in(MUST + other)) == found
    assert clash(said_in(MUST + other), said_in(MUST + one)) == found


def test_a_demand_entails_less_and_a_ban_entails_more() -> None:
    """`a red cup on the table` entails `a cup`; no dog entails no brown dog, not the other way."""
    full, cup = said_in(MUST + "mention a red cup on the table."), said_in(MUST + "mention a cup.")
    assert entails(full, cup)
    assert not entails(cup, full)
    dog, brown = said_in(MUST + "not mention a dog."), said_in(MUST + "not mention a brown dog.")
    assert entails(dog, brown)
    assert not entails(brown, dog)
    assert not entails(full, dog)


def test_of_two_that_clash_the_later_goes_and_names_the_other() -> None:
    """Must-Right ones come first, whatever the order in which they were written."""
    made = check(
        [
            row(1, EASY_WRONG, "mention a cup."),
            row(2, EASY_WRONG, "not mention a spoon."),
            row(3, EASY_WRONG, "not mention any spoon."),
            row(1, MUST_RIGHT, "identify the cup as red."),
            row(4, EASY_WRONG, "identify the cup as green."),
        ],
        max_words=40,
    )
    assert [one.id for one in made.rows] == ["p.m01", "p.e02"]
    assert {one.id: (one.reason, one.detail["partner"]) for one in made.dropped} == {
        "p.e01": ("entailed", "p.m01"),
        "p.e03": ("duplicate", "p.e02"),
        "p.e04": ("contradiction", "p.m01"),
    }


def test_a_picture_without_a_gate_loses_its_other_statements() -> None:
    """Easy-Wrong statements count behind a gate only."""
    made = gated([row(1, EASY_WRONG, "mention a cup.")])
    assert (made.rows, [one.reason for one in made.rejected]) == ((), ["no_must_right"])
