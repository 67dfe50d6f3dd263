"""The parsers of the published systems, to the letter, their traps included.

They serve `--parser official` and the comparison with published figures; Snellen's own reading is
in `verdicts.py` and `letters.py`.
"""

from __future__ import annotations

import re

from snellen.replies.text import NOTE_CHARS, Parsed

NO_MARKERS = "No [reason] or [judge] in output"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_ESCAPE = re.compile(r"\\+([ \d-]|n)?")


def normalize_escape(text: str) -> str:
    r"""The text as PerceptionBench's judge prompt is given it: runs of backslashes made plain.

    A run before a space, a digit or `-` becomes two backslashes and a space, and that character is
    lost; a run before `n` becomes a line end; any other run becomes one backslash.

    >>> normalize_escape("a\\\\frac")
    'a\\frac'
    >>> normalize_escape("x\\5y") == "x" + chr(92) * 2 + " y"
    True

    Source: PerceptionBench, `eval/judge_prompt.txt` and the code around it.
    """

    def plain(match: re.Match[str]) -> str:
        follower = match[1]
        if follower is None:
            return "\\"
        return "\n" if follower == "n" else "\\\\ "

    return _ESCAPE.sub(plain, text)


def official_verdict(text: str) -> Parsed:
    """PerceptionBench's reading of a judge's reply: always a boolean.

    Both markers must be there, in lower case; otherwise the verdict is False with a fixed note.
    The verdict is True exactly if `true` occurs after the last `[judge]`, in any case and even
    inside a word.

    >>> official_verdict("[reason] same [judge] True").value
    True
    >>> official_verdict("True").note
    'No [reason] or [judge] in output'

    Source: PerceptionBench, official evaluation script.
    """
    if "[reason]" not in text or "[judge]" not in text:
        return Parsed(False, note=NO_MARKERS)
    reason = text.split("[judge]", 1)[0].rsplit("[reason]", 1)[-1].strip()
    value = "true" in text.rsplit("[judge]", 1)[-1].lower()
    return Parsed(value, "marked", note=reason[:NOTE_CHARS])


def official_letter_captionqa(text: str, n_options: int) -> int | None:
    r"""CaptionQA's reading of a reader's reply: the index of an option, or None.

    What follows the first `</think>`, then the first `Answer: `, then the first line end is read:
    "A\n" therefore says nothing. The first letter that stands alone decides if it is in range,
    else the first number does.

    >>> official_letter_captionqa("Answer: b", 4)
    1
    >>> official_letter_captionqa("B\n", 4) is None
    True

    Source: CaptionQA, `qa.py`.
    """
    for mark in ("</think>", "Answer: ", "\n"):
        text = text.partition(mark)[2] if mark in text else text
    letter = re.search(r"\b([A-Z])\b", text.upper())
    if letter and LETTERS.index(letter[1]) < max(1, n_options):
        return LETTERS.index(letter[1])
    number = re.search(r"\b([1-9][0-9]?)\b", text)
    if number and int(number[1]) <= max(1, n_options):
        return int(number[1]) - 1
    return None
