"""Hostile text gets a verdict, however often something is repeated."""

from __future__ import annotations

import pytest

from snellen.embedded.evidence import page_of
from snellen.embedded.grading import grade
from snellen.embedded.statements import claim_of
from snellen.records import GradeTask

N = 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a" + " " * N + "b",
        "a.\n" + "\n" * N + "b",
        "(" * N,
        "1," * N,
        "not red " * N,
        "total " * N,
        "one " + "million " * N,
        "B. " * N,
        r"\boxed{" * N,
    ],
    ids=["blanks", "lines", "brackets", "digits", "denials", "sums", "scales", "letters", "boxes"],
)
def test_a_long_repetition_is_read(text: str) -> None:
    """As a caption, a statement, an answer and a reference, a repetition ends in a result."""
    page_of(text)
    claim_of(text)
    for reference in ("B", "3", "red, green", "yes", "a red car"):
        assert grade(GradeTask("Which? A. red B. blue", reference, text)).reason
    assert grade(GradeTask("Which one?", text, "a red car")).reason
