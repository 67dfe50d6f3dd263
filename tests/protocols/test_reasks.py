"""The second ask of every protocol carries a schema, and what fits the schema is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from snellen.flows import run_by_hand
from snellen.protocols import captionqa, direct, reading, rubric
from snellen.records import Answer, Item, Outcome, Probe, Reply, Request

CHOICE = Probe("q", "Which?", "B", ("red", "blue", "green", "white"))
OTHER = Probe("p", "How many?", "A", ("one", "two", "three", "four"))
MUST = Probe("m", "It says red.", "true", kind="must_right")
EASY = Probe("e", "It says two.", "true", kind="easy_wrong")
SHUFFLED = {"permutations": {"q": [4, 3, 2, 1, 0]}}

Flow = Callable[[], Any]
CASES: dict[str, tuple[Flow, str, list[Any]]] = {
    "reading": (
        lambda: reading.read_item(Item("i", (), (CHOICE,)), reading.ReadingOptions()),
        '{"answer": "B"}',
        ["B"],
    ),
    "several questions": (
        lambda: reading.read_item(
            Item("i", (), (CHOICE, OTHER)), reading.ReadingOptions(questions_a_call=2)
        ),
        '{"1": "B", "2": "E"}',
        ["B", "E"],
    ),
    "captionqa": (
        lambda: captionqa.answer_item(
            Item("i", (), (CHOICE,), extra=SHUFFLED), captionqa.CaptionQAOptions()
        ),
        '{"answer": "D"}',
        ["B"],
    ),
    "direct": (
        lambda: direct.ask_item(Item("i", (), (CHOICE,), text="Which?"), direct.DirectOptions()),
        '{"reason": "both blue", "verdict": true}',
        [True],
    ),
    "groups": (
        lambda: rubric.audit_item(Item("i", (), (MUST, EASY)), rubric.RubricOptions()),
        '{"GroupA": [true], "GroupB": [false]}',
        [True, False],
    ),
    "statements": (
        lambda: rubric.audit_item(Item("i", (), (MUST,)), rubric.RubricOptions(one_a_call=True)),
        '{"answer": "false"}',
        [False],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_that_fits_the_schema_is_read(name: str) -> None:
    """The first ask has none, the second one that the reply fits, and the verdict counts."""
    flow, bound, verdicts = CASES[name]
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        if request.role == "model":
            return Reply("A blue bus.")
        asked.append(request)
        return Reply("That depends on the bus." if request.ask == 0 else bound)

    outcome: Outcome = run_by_hand(flow(), answer)
    assert [verdict.verdict for verdict in outcome.verdicts] == verdicts
    assert [request.schema is None for request in asked] == [True, False]


def test_letter_probabilities_need_a_letter() -> None:
    """Where the probabilities of the first token decide, no second ask is bound to an object."""
    options = reading.ReadingOptions(logprobs=True)
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return Reply("Hm." if request.ask == 0 else "B")

    run_by_hand(reading.read_item(Item("i", (), (CHOICE,)), options), answer)
    assert {request.schema for request in seen} == {None}
