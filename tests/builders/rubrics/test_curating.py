"""Scores, domains and thresholds of pictures."""

from __future__ import annotations

import msgspec
import pytest

from snellen.builders.rows import Shot
from snellen.builders.rubrics.curating import (
    above,
    domain_of_folders,
    place,
    score,
    scores_in,
    thresholds_for,
)
from snellen.builders.rubrics.options import CurateOptions
from snellen.builders.rubrics.rows import ScoredRow
from snellen.flows import run_by_hand
from snellen.records import Image, Reply, Request
from snellen.replies.typed import UnreadableError

IMAGE = Image("cat.png", "0" * 64, "cat.png")
PART = "<{0}><reasoning>Much & more.</reasoning><score>{1}</score></{0}>"


def evaluation(complexity: object, informativeness: object) -> str:
    parts = (
        PART.format("visual_complexity", complexity),
        PART.format("informativeness", informativeness),
    )
    return f"<image_evaluation>{''.join(parts)}</image_evaluation>"


def scored(number: int, domain: str, complexity: int, informativeness: int) -> ScoredRow:
    return ScoredRow(
        id=f"p{number}", name=f"{number}.png", file=Shot("x", "y"), width=9, height=9,
        domain=domain, complexity=complexity, informativeness=informativeness,
    )  # fmt: skip


def test_both_scores_are_read() -> None:
    """Each has its reasons and a whole number."""
    found = scores_in(Reply(evaluation(8, 3)))
    assert (found.complexity, found.informativeness) == (8, 3)
    assert found.reasons == ("Much & more.", "Much & more.")


@pytest.mark.parametrize(
    "text",
    [evaluation(8, 12), evaluation("high", 3), evaluation(8, 3).replace("informativeness", "info"),
     evaluation(8, 3).replace("<reasoning>Much & more.</reasoning>", "", 1), "8 and 3"],
)  # fmt: skip
def test_broken_scores_are_unreadable(text: str) -> None:
    """A score out of range, a part that is absent, or prose is not read."""
    with pytest.raises(UnreadableError):
        scores_in(Reply(text))


def test_a_broken_reply_is_asked_again_with_the_error() -> None:
    """The second ask ends with what was wrong; the third is not needed."""
    asked: list[str] = []

    def answer(request: Request) -> Reply:
        asked.append(str(request.messages[-1].parts[-1]))
        return Reply(evaluation(11, 5) if len(asked) == 1 else evaluation(10, 5))

    answered = run_by_hand(score(IMAGE, role="scorer", reasks=2), answer)
    assert answered.value is not None
    assert (answered.value.complexity, len(answered.errors)) == (10, 1)
    assert "from 1 to 10" in asked[1]


def test_a_domain_is_one_of_the_seven() -> None:
    """Another name is asked about again, and given up after the re-asks."""
    found = run_by_hand(
        place(IMAGE, role="scorer", reasks=1), lambda _: Reply('{"domain": "Document/OCR"}')
    )
    assert found.value == "Document/OCR"
    lost = run_by_hand(place(IMAGE, role="scorer", reasks=1), lambda _: Reply('{"domain": "Docs"}'))
    assert (lost.value, lost.reason, len(lost.errors)) == (None, "unreadable_not_as_asked", 2)


def test_folders_name_domains_in_any_spelling() -> None:
    """The nearest folder that is a domain, whole or short, wins."""
    assert domain_of_folders(("natural scene", "x")) == "Natural Scene"
    assert domain_of_folders(("Natural", "STEM_Expert")) == "STEM/Expert"
    assert domain_of_folders(("holiday", "2024")) is None


PICTURES = [
    *(scored(k, "Natural Scene", k, k) for k in range(1, 11)),
    scored(11, "Document/OCR", 4, 4),
    scored(12, "Document/OCR", 6, 7),
]


def test_a_given_threshold_counts_both_scores() -> None:
    """A domain's own threshold wins over the general one, and the rest are named."""
    options = CurateOptions(threshold=16, thresholds={"Document/OCR": 13})
    thresholds = thresholds_for(PICTURES, options)
    assert [(t.domain, t.threshold, t.kept) for t in thresholds] == [
        ("Document/OCR", 13, 1), ("Natural Scene", 16, 3)
    ]  # fmt: skip
    made = above(PICTURES, thresholds)
    assert [row.id for row in made.rows] == ["p8", "p9", "p10", "p12"]
    assert {one.reason for one in made.rejected} == {"below_threshold"}
    assert made.rejected[-1].detail == {"domain": "Document/OCR", "total": 8, "threshold": 13}


def test_a_wanted_number_chooses_the_highest_threshold_that_keeps_as_many() -> None:
    """A domain with fewer pictures keeps all; a threshold that is given stays."""
    thresholds = {t.domain: t for t in thresholds_for(PICTURES, CurateOptions(wanted=4))}
    assert (thresholds["Natural Scene"].threshold, thresholds["Natural Scene"].kept) == (14, 4)
    assert (thresholds["Document/OCR"].threshold, thresholds["Document/OCR"].kept) == (2, 2)
    fixed = CurateOptions(wanted=4, thresholds={"Natural Scene": 20})
    assert thresholds_for(PICTURES, fixed)[1].kept == 1


def test_the_report_says_what_each_threshold_would_keep() -> None:
    """Counts fall from all pictures to those with the full score."""
    [_, natural] = thresholds_for(PICTURES, CurateOptions())
    assert natural.would_keep[2] == natural.pictures == 10
    assert natural.would_keep[20] == 1
    assert list(natural.would_keep) == list(range(2, 21))


def test_an_unknown_domain_in_the_options_is_named_with_the_nearest() -> None:
    """The error says which of the seven was probably meant."""
    with pytest.raises(msgspec.ValidationError, match="did you mean `Natural Scene`"):
        msgspec.convert({"thresholds": {"Nature Scene": 12}}, CurateOptions)
