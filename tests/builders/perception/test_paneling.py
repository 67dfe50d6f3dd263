"""The rules of the panel, by hand: what is kept, what people have to see, and how hard it is."""

from __future__ import annotations

import pytest

from snellen.builders.perception.options import PanelOptions
from snellen.builders.perception.paneling import (
    Panel,
    ruled,
    settled,
    stratum,
    verify,
)
from snellen.builders.perception.rows import AtomicRow, PanelAnswer, PanelResult
from snellen.builders.rows import Shot
from snellen.flows import run_by_hand
from snellen.records import CallFailure, Image, Reply, Request

OPTIONS = PanelOptions()


def said(*answers: tuple[str, bool | None]) -> tuple[PanelAnswer, ...]:
    return tuple(PanelAnswer(f"s{n}", reply, correct) for n, (reply, correct) in enumerate(answers))


RIGHT = (("cup", True), ("cup", True), ("cup", True))
BLIND = (("?", False), ("?", False), ("?", False))


def test_a_question_that_all_can_answer_stays() -> None:
    """Three right, three right reworded, none right blind."""
    found = ruled(PanelResult(said(*RIGHT), said(*RIGHT), said(*BLIND)), OPTIONS)
    assert (found.reason, found.flags, found.stratum) == ("", (), "easy")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (PanelResult(said(("cup", True), ("cup", True), ("", None))), "thin_panel"),
        (
            PanelResult(said(*RIGHT), (), said(("cup", True), ("cup", True), ("?", False))),
            "answerable_blind",
        ),
        (
            PanelResult(said(*RIGHT), said(("a", False), ("b", False), ("cup", True))),
            "several_readings",
        ),
    ],
)
def test_why_a_question_goes(result: PanelResult, reason: str) -> None:
    """Two verdicts of three; two of three hit blind; one of three judged alike (0.33 < 0.6)."""
    assert ruled(result, OPTIONS).reason == reason


def test_one_blind_hit_of_three_and_two_alike_of_three_are_borne() -> None:
    """A third is below the half, two thirds are above 0.6."""
    found = PanelResult(
        said(*RIGHT),
        said(("cup", True), ("cup", True), ("mug", False)),
        said(("cup", True), ("?", False), ("?", False)),
    )
    assert ruled(found, OPTIONS).reason == ""


def test_doubtful_references_are_for_people() -> None:
    """None right: unconfirmed. Two of three say the same other thing: disputed, in any spelling."""
    alone = PanelResult(said(("mug", False), ("bowl", False), ("jar", False)))
    assert ruled(alone, OPTIONS).flags == ("unconfirmed",)
    both = PanelResult(said(("Mug.", False), ("mug", False), ("cup", True)))
    assert ruled(both, OPTIONS).flags == ("disputed",)
    assert ruled(both, OPTIONS).stratum == "medium"
    blank = PanelResult(said(("", False), ("", False), ("cup", True)))
    assert ruled(blank, OPTIONS).flags == ()


def test_strata_by_hand() -> None:
    """Thirds of the wrong answers: of six solvers up to two, up to four, more."""
    assert [stratum(6 - wrong, 6) for wrong in range(7)] == [
        "easy", "easy", "easy", "medium", "medium", "hard", "hard",
    ]  # fmt: skip


def question(**fields: str) -> AtomicRow:
    given = {"problem": "<|image_1|>What is this?", "answer": "cup", **fields}
    return AtomicRow(
        id="q", files=(Shot("a.png", "d" * 64),), error_category="ocr_error",
        origin="new", writer="w", **given,
    )  # fmt: skip


PANEL = Panel(("solver/a", "solver/b", "solver/c"), ("a", "b", "c"), "judge", "decomposer", OPTIONS)


def test_a_panel_is_asked_in_three_ways_and_exact_answers_need_no_judge() -> None:
    """Pictures are shown twice and left out once; the hint is sent; the judge sees no picture."""
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        if request.role == "decomposer":
            return Reply('{"problem": "<|image_1|>Name this."}')
        if request.role == "judge":
            return Reply("[reason] other\n[judge] False")
        return Reply("Cup." if request.purpose != "blind" else "no idea")

    made = run_by_hand(verify(question(hint="In English."), PANEL), answer)
    [row] = made.rows
    assert [one.correct for one in row.panel.answers] == [True] * 3
    assert row.panel.paraphrase == "<|image_1|>Name this."
    by = {(one.role.partition("/")[0], one.purpose) for one in asked}
    assert by == {("solver", "solve"), ("solver", "blind"), ("solver", "reworded"),
                  ("judge", "verdict"), ("decomposer", "reword")}  # fmt: skip
    for one in asked:
        pictures = [part for m in one.messages for part in m.parts if isinstance(part, Image)]
        assert len(pictures) == (one.purpose in ("solve", "reworded", "reword"))
        if one.role.startswith("solver"):
            assert one.messages[0].role == "system"
    assert sum(one.role == "judge" for one in asked) == 3


def test_no_paraphrase_of_what_blind_answers_hit() -> None:
    """The rule is applied when all is said; another rule needs no further call for kept ones."""
    asked: list[str] = []

    def answer(request: Request) -> Reply:
        asked.append(request.purpose)
        return Reply("cup")

    made = run_by_hand(verify(question(), PANEL), answer)
    assert "reworded" not in asked
    left = settled(made.rows, OPTIONS)
    assert [one.reason for one in left.rejected] == ["answerable_blind"]
    assert left.rejected[0].detail["blind"][0]["reply"] == "cup"


@pytest.mark.parametrize("role", ["solver/b", "judge"])
def test_a_failed_call_leaves_the_question_for_the_next_start(role: str) -> None:
    """A question without an answer, or without a verdict, is no rejected one for good."""

    def answer(request: Request) -> Reply | CallFailure:
        return CallFailure("timeout", "slow") if request.role == role else Reply("mug")

    made = run_by_hand(verify(question(), PANEL), answer)
    assert (made.failure, made.rejected[0].reason) == ("timeout", "call_timeout")


def test_an_unreadable_verdict_is_no_wrong_answer() -> None:
    """The solver is left out of the shares."""

    def answer(request: Request) -> Reply:
        return Reply("It may well be so." if request.role == "judge" else "mug")

    made = run_by_hand(verify(question(), PANEL), answer)
    assert [one.correct for one in made.rows[0].panel.answers] == [None] * 3
    assert [one.reason for one in settled(made.rows, OPTIONS).rejected] == ["thin_panel"]
