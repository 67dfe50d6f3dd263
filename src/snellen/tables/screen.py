"""Foreign text on a screen: legible, measured in cells, and folded into lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_SOFT_HYPHEN = "\xad"
# The vowels and last consonants of Hangul syllables in letters.
_JOINED = re.compile(r"[\u1160-\u11ff\ud7b0-\ud7ff]")
_BREAKS = re.compile(r"\r\n|[\t\n\v\f\r\x85\u2028\u2029]")
_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def legible(text: str) -> str:
    """A text of foreign origin as one line that shows its control characters and obeys none.

    White space becomes blanks; other control characters and direction marks are spelled out.

    >>> legible("two\\r\\nlines"), legible("\\x1b[2J")
    ('two lines', '\\\\x1b[2J')
    """
    if text.isprintable():
        return text
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], _BREAKS.sub(" ", text))


def folded(text: str, width: int) -> Iterator[str]:
    """A text in lines of at most `width` cells, broken between words where that is possible."""
    for paragraph in text.split("\n") if text else ():
        line: str | None = None
        for word in paragraph.split(" "):
            longer = word if line is None else f"{line} {word}"
            if cells_of(longer) <= width:
                line = longer
                continue
            if line is not None:
                yield line
            *whole, line = cut(word, width)
            yield from whole
        yield line or ""


def cut(word: str, width: int) -> list[str]:
    """A word in pieces of at most `width` cells, at least one character each."""
    pieces = [""]
    for char in word:
        if pieces[-1] and cells_of(pieces[-1] + char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def cells_of(text: str) -> int:
    """The cells that a text takes on the screen: East Asian characters two, combining ones none.

    Of a Hangul syllable written as its letters, the first takes both cells.

    >>> cells_of("naïve"), cells_of("两只猫")
    (5, 6)
    """
    if text.isascii():
        return len(text)
    total = 0
    for char in text:
        if unicodedata.category(char) in {"Mn", "Me", "Cf"} or _JOINED.match(char):
            total += char == _SOFT_HYPHEN
        else:
            total += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return total
