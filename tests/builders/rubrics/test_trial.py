"""The trial: golden captions pass their statements, and figures of the pool."""

from __future__ import annotations

import pytest

from snellen.builders.rubrics.rows import EASY_WRONG, MUST_RIGHT, Audit, RubricKind, RubricRow
from snellen.builders.rubrics.trial import audit, correlation, measured, settle_trial
from snellen.flows import run_by_hand
from snellen.records import Answer, CallFailure, Reply, Request


def row(name: str, kind: RubricKind, text: str = "", **words: object) -> RubricRow:
    return RubricRow(
        id=name, image_id=name[0], kind=kind, text=text or f"The response must mention {name}.",
        proposer="q", index=1, **words,
    )  # fmt: skip


ROWS = [row("a1", MUST_RIGHT), row("a2", EASY_WRONG, error_rate=0.5, wrong_in=("m2", "m3")),
        row("a3", EASY_WRONG), row("a4", EASY_WRONG, error_rate=0.5)]  # fmt: skip


def audits(golden: str, **pool: str) -> list[Audit]:
    """Audits of picture `a`: a letter a statement, t, f or ? for no verdict."""
    value = {"t": True, "f": False, "?": None}
    return [
        Audit(
            id=f"a.{source}", image_id="a", source=source,
            verdicts={one.id: value[letter] for one, letter in zip(ROWS, letters, strict=True)},
        )
        for source, letters in {"": golden, **pool}.items()
    ]  # fmt: skip


def test_what_the_golden_caption_fails_is_rejected_with_its_reason() -> None:
    """False and no verdict are two reasons; the statement and its proposer are named."""
    made = settle_trial(ROWS, audits("ttf?", m1="tttt"))
    assert [one.id for one in made.rows] == ["a1", "a2"]
    assert {one.id: one.reason for one in made.rejected} == {
        "a3": "fails_golden_caption", "a4": "unreadable"
    }  # fmt: skip
    assert made.rejected[0].detail["proposer"] == "q"


def test_a_gate_that_fails_takes_the_picture_out() -> None:
    """Without a Must-Right statement the others go too."""
    made = settle_trial(ROWS, audits("fttt"))
    assert made.rows == ()
    assert (
        sorted(one.reason for one in made.rejected)
        == ["fails_golden_caption"] + ["no_must_right"] * 3
    )


def test_difficulty_flags_and_discrimination_are_those_computed_by_hand() -> None:
    """Of four models the share that fails, and the correlation with the rest of the statements."""
    found = {one.id: one for one in measured(
        ROWS, audits("tttt", m1="tttf", m2="tftf", m3="tfff", m4="tttf")[1:]
    )}  # fmt: skip
    assert found["a1"].flags == ("all_pass",)
    assert found["a4"].flags == ("all_fail",)
    assert found["a3"].flags == ("no_evidence",)
    assert [found[name].difficulty for name in ("a1", "a2", "a3", "a4")] == [0.0, 0.5, 0.25, 1.0]
    assert found["a2"].failed_by == ("m2", "m3")
    # a2 passes 1, 0, 0, 1; of the other three statements pass 2, 2, 1, 2.
    assert found["a2"].discrimination == pytest.approx(1 / 3**0.5, abs=1e-4)
    assert found["a1"].discrimination is None


def test_verdicts_that_are_not_there_do_not_count() -> None:
    """A model without a verdict is in neither share."""
    found = {one.id: one for one in measured(ROWS, audits("tttt", m1="tt?f", m2="tftf")[1:])}
    assert found["a3"].difficulty == 0.0
    assert found["a3"].failed_by == ()


def test_claims_of_the_proposer_are_counted_and_confirmed() -> None:
    """Two models were said to err; the judge finds one of them."""
    made = settle_trial(ROWS, audits("tttt", m1="tttt", m2="tftt", m3="tttt"))
    assert made.counts["claimed errors"] == 2
    assert made.counts["claimed errors confirmed"] == 1


def judge(request: Request) -> Answer:
    assert request.role == "judge/j"
    return Reply("<Assessment><GroupA><Result>true</Result></GroupA><GroupB>"
                 "<Result>false</Result></GroupB></Assessment>")  # fmt: skip


def test_an_audit_is_the_call_of_an_evaluation() -> None:
    """The same prompt and parser, by the role of the build; verdicts by the statement's id."""
    made = run_by_hand(audit("A cat.", ROWS[:2], unit="a/golden", source="", role="judge/j"), judge)
    assert made.rows[0].verdicts == {"a1": True, "a2": False}


def test_a_failed_call_is_no_verdict_and_is_made_again_later() -> None:
    """The unit is not finished; until then its statements have a reason of their own."""
    made = run_by_hand(
        audit("A cat.", ROWS[:2], unit="a/golden", source="", role="judge/j"),
        lambda _: CallFailure("timeout", "no answer"),
    )
    assert made.failure == "timeout"
    settled = settle_trial(ROWS[:2], made.rows)
    assert {one.reason for one in settled.rejected} == {"call_timeout"}


def test_a_constant_or_short_side_has_no_correlation() -> None:
    """None, and not a number that is none."""
    assert correlation([(1, 0.2), (1, 0.4), (1, 0.6)]) is None
    assert correlation([(0, 0.2), (1, 0.4)]) is None
