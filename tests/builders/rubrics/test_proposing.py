"""Statements from a proposer: forms of the reply, evidence, rates, domains, grounding."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from snellen.builders.rows import Shot
from snellen.builders.rubrics.options import RubricsOptions
from snellen.builders.rubrics.proposing import (
    FOCUS,
    Proposer,
    focus_of,
    ground,
    propose_easy_wrong,
    propose_must_right,
)
from snellen.builders.rubrics.rows import EASY_WRONG, MUST_RIGHT, GoldenRow, Prediction, RubricRow
from snellen.flows import run_by_hand
from snellen.records import Reply, Request
from snellen.schemas import DOMAINS

GOLDEN = GoldenRow(
    id="p1", name="cat.png", file=Shot("cat.png", "0" * 64), domain="Natural Scene", complexity=7,
    informativeness=7, caption="A grey cat on a mat.", author="ann", authors=("ann",), round=1,
)  # fmt: skip
TEXTS = {
    "m1": "A cat.", "m2": "A dog.", "m3": "A dog, a lamp.", "m4": "A cat.",
    "m5": "A dog.", "m6": "A cat.", "m7": "A cat.", "m8": "A cat, a bird.",
}  # fmt: skip
POOL = [
    Prediction(id=f"p1.{model}", image_id="p1", model=model, text=text)
    for model, text in TEXTS.items()
]


def proposer(seed: int = 0, **options: Any) -> Proposer:
    return Proposer("proposer/q", "q", RubricsOptions(**options), seed)


def honest(request: Request) -> Reply:
    """Reports which responses have a dog, a lamp, or a bird."""
    text = str(request.messages[-1].parts[-1])
    shown = re.findall(r"<response_(\d+)>\n(.*?)\n</response_\1>", text, re.S)
    rubrics = [
        {"text": f"The response must not mention a {thing}.",
         "wrong_in": [int(k) for k, one in shown if thing in one],
         "severe": thing in ("bird", "ghost")}
        for thing in ("dog", "lamp", "bird", "ghost")
    ]  # fmt: skip
    return Reply(json.dumps({"rubrics": rubrics}))


@pytest.mark.parametrize("seed", range(5))
def test_rates_and_evidence_are_those_of_the_pool_in_whatever_order_it_is_shown(seed: int) -> None:
    """Three of eight have the dog; the lamp is rare, the bird severe, and nobody has the ghost."""
    made = run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer(seed)), honest)
    dog, bird = made.rows
    assert (dog.wrong_in, dog.error_rate, dog.seen_by) == (("m2", "m3", "m5"), 3 / 8, 8)
    assert dog.proposer == "q"
    assert (bird.is_severe, bird.error_rate) == (True, 1 / 8)
    rare, none = made.dropped
    assert (rare.reason, rare.detail["error_rate"]) == ("rare_error", 1 / 8)
    assert (none.reason, none.detail["error_rate"]) == ("rare_error", 0.0)


def test_the_threshold_is_a_setting() -> None:
    """At an eighth the lamp is frequent; at a half not even the dog is."""
    low = run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer(frequent=0.125)), honest)
    high = run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer(frequent=0.5)), honest)
    assert (len(low.rows), len(high.rows)) == (3, 1)


def test_plain_texts_are_taken_without_evidence() -> None:
    """A statement of which nothing is claimed has no rate."""
    reply = Reply('{"rubrics": ["The response must not mention a dog."]}')
    made = run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer()), lambda _: reply)
    assert (made.rows[0].error_rate, made.rows[0].wrong_in) == (None, ())


def test_a_response_that_there_is_not_is_asked_about_again() -> None:
    """Nine of eight is no evidence; after the re-asks the picture has no statements."""
    reply = Reply('{"rubrics": [{"text": "The response must not lie.", "wrong_in": [9]}]}')
    made = run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer(reasks=1)), lambda _: reply)
    assert made.rejected[0].reason == "unreadable"
    assert "1 to 8" in made.rejected[0].detail["error"]


def test_models_of_the_pool_are_not_named_and_the_picture_is_not_shown() -> None:
    """The proposer of Easy-Wrong statements gets numbered texts."""
    seen: list[Request] = []

    def answer(request: Request) -> Reply:
        seen.append(request)
        return honest(request)

    run_by_hand(propose_easy_wrong(GOLDEN, POOL, proposer()), answer)
    [text] = seen[0].messages[-1].parts
    assert isinstance(text, str)
    assert not any(model in text for model in TEXTS)


@pytest.mark.parametrize(("n", "asks"), [(2, 3), (3, 1), (5, 1), (6, 3)])
def test_must_right_statements_are_three_to_five(n: int, asks: int) -> None:
    """Other numbers are asked about again."""
    count = 0

    def answer(_: Request) -> Reply:
        nonlocal count
        count += 1
        return Reply(json.dumps([f"The response must mention thing {k}." for k in range(n)]))

    made = run_by_hand(propose_must_right(GOLDEN, proposer()), answer)
    assert count == asks
    assert len(made.rows) == (n if asks == 1 else 0)
    assert [one.id for one in made.rows] == [f"p1.m{k:02d}" for k in range(1, len(made.rows) + 1)]


def test_prompts_of_both_streams_differ_by_domain() -> None:
    """Each of the seven domains has words of its own for each stream."""
    assert set(FOCUS) == set(DOMAINS)
    texts = {focus_of(domain, kind) for domain in DOMAINS for kind in (MUST_RIGHT, EASY_WRONG)}
    assert len(texts) == 14
    prompts = set()
    for domain in DOMAINS:
        seen: list[str] = []

        def answer(request: Request, seen: list[str] = seen) -> Reply:
            seen.append(str(request.messages[-1].parts[-1]))
            return Reply(json.dumps(["The response must mention a cat."] * 3))

        row = GoldenRow(**{name: getattr(GOLDEN, name) for name in GOLDEN.__struct_fields__}
                        | {"domain": domain})  # fmt: skip
        run_by_hand(propose_must_right(row, proposer()), answer)
        prompts.add(seen[0])
    assert len(prompts) == 7


@pytest.mark.parametrize(
    ("answer", "reason"),
    [((True, True), None), ((False, True), "not_in_image"), ((True, False), "not_in_caption")],
)
def test_a_statement_is_grounded_in_picture_and_caption(
    answer: tuple[bool, bool], reason: str | None
) -> None:
    """Both must hold; which one does not is the reason."""
    row = RubricRow(
        id="p1.m01", image_id="p1", kind=MUST_RIGHT, text="The response must mention a cat.",
        proposer="q", index=1,
    )  # fmt: skip
    reply = Reply(json.dumps({"in_image": answer[0], "in_caption": answer[1]}))
    made = run_by_hand(ground(row, GOLDEN, role="grounder", reasks=0), lambda _: reply)
    assert [one.reason for one in made.rejected] == ([reason] if reason else [])
    assert len(made.rows) == (reason is None)
