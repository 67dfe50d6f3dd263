"""The published parsers, with their traps."""

from __future__ import annotations

import pytest

from snellen.replies import normalize_escape, official_letter_captionqa, official_verdict

NO_MARKERS = "No [reason] or [judge] in output"


@pytest.mark.parametrize(
    ("reply", "value", "note"),
    [
        ("[reason] same [judge] True", True, "same"),
        ("[reason] same [judge] TRUE.", True, "same"),
        ("[reason] other [judge] False", False, "other"),
        ("[reason] other [judge] untrue", True, "other"),
        ("[reason] other [judge] Not true", True, "other"),
        ("[reason] other [judge] yes", False, "other"),
        ("[reason] other [judge]", False, "other"),
        ("[reason] one [reason] two [judge] False [judge] True", True, "two"),
        ("[judge] True [reason] late", True, ""),
        ("True", False, NO_MARKERS),
        ("[judge] True", False, NO_MARKERS),
        ("[Reason] same [Judge] True", False, NO_MARKERS),
        ("", False, NO_MARKERS),
    ],
)
def test_perception_bench_verdicts(reply: str, value: bool, note: str) -> None:
    """The verdict is always a boolean: `true` after the last marker, or False."""
    parsed = official_verdict(reply)
    assert parsed.value is value
    assert parsed.note == note
    assert parsed.reason is None


def test_the_stored_reason_is_cut() -> None:
    """A reason is kept to 200 characters."""
    assert len(official_verdict(f"[reason] {'x' * 300} [judge] True").note) == 200


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("no backslash", "no backslash"),
        (r"\frac", r"\frac"),
        (r"\\\\frac", r"\frac"),
        (r"a\ b", "a\\\\ b"),
        (r"a\\ b", "a\\\\ b"),
        (r"x\5y", "x\\\\ y"),
        (r"x\\-y", "x\\\\ y"),
        (r"one\ntwo", "one\ntwo"),
        (r"one\\ntwo", "one\ntwo"),
        (r"\nabla", "\nabla"),
        ("end\\\\", "end\\"),
    ],
)
def test_runs_of_backslashes_are_made_plain(text: str, plain: str) -> None:
    """Before a space, digit or minus a run eats that character; before n it becomes a line end."""
    assert normalize_escape(text) == plain


@pytest.mark.parametrize(
    ("reply", "n_options", "index"),
    [
        ("B", 4, 1),
        ("b", 4, 1),
        ("Answer: B", 4, 1),
        ("<think>A</think>C", 4, 2),
        ("A\nB", 4, 1),
        ("A\n", 4, None),
        ("\nB", 4, 1),
        ("I think B", 9, 8),
        ("I think 2", 4, 1),
        ("option 3", 4, 2),
        ("F", 4, None),
        ("F 2", 4, 1),
        ("7", 4, None),
        ("Answer: A. Answer: B", 4, 0),
        ("Blue", 4, None),
        ("a cat", 4, 0),
        ("", 4, None),
    ],
)
def test_captionqa_letters(reply: str, n_options: int, index: int | None) -> None:
    """The first letter that stands alone, after cuts that lose a letter before a line end."""
    assert official_letter_captionqa(reply, n_options) == index
