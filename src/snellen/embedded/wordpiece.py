"""Text to the word-piece ids of uncased BERT, without any library."""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources

from snellen.errors import SettingsError
from snellen.keys import digest

VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
UNKNOWN, START, END = 100, 101, 102

_LONGEST_WORD = 100
_IDEOGRAPHS = (
    *(range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0)),
    *(range(0x2A700, 0x2B740), range(0x2B740, 0x2B820), range(0x2B920, 0x2CEB0)),
    *(range(0xF900, 0xFB00), range(0x2F800, 0x2FA20)),
)


def encode(text: str, *, longest: int = 128) -> tuple[int, ...]:
    """The ids of a text with the start and end marks, cut to `longest` ids.

    >>> encode("An orange cat.")
    (101, 2019, 4589, 4937, 1012, 102)

    Source: Devlin et al. 2019 (BERT), the uncased tokenization of the released models.
    """
    ids = [START]
    for word in split_words(text):
        ids += _pieces(word)
        if len(ids) >= longest:
            break
    return (*ids[: longest - 1], END)


def split_words(text: str) -> list[str]:
    """Lower-case words without accents; punctuation and ideographs stand alone.

    >>> split_words("Café, 猫!")
    ['cafe', ',', '猫', '!']
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_clean, text))
    return "".join(map(_spaced, unicodedata.normalize("NFD", text))).split()


@lru_cache(maxsize=4096)
def _clean(char: str) -> str:
    """A character with spaces around an ideograph; a space for blanks, nothing for controls."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category == "Zs":
        return " "
    if char == "\ufffd" or category in ("Cc", "Cf", "Co"):
        return ""
    return f" {char} " if any(ord(char) in block for block in _IDEOGRAPHS) else char


@lru_cache(maxsize=4096)
def _spaced(char: str) -> str:
    """A character in lower case with spaces around punctuation; nothing for an accent."""
    category = unicodedata.category(char)
    # BERT counts every ASCII sign that is no letter or digit, such as $ and +, as punctuation.
    sign = category[0] == "P" or (char.isascii() and category[0] == "S")
    return "" if category == "Mn" else f" {char.lower()} " if sign else char.lower()


@lru_cache(maxsize=32768)
def _pieces(word: str) -> tuple[int, ...]:
    """The longest known pieces from the left; one unknown id where some part is unknown."""
    known = vocabulary()
    if len(word) > _LONGEST_WORD:
        return (UNKNOWN,)
    ids: list[int] = []
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            piece = known.get(mark + word[start:end])
            if piece is not None:
                break
        else:
            return (UNKNOWN,)
        ids.append(piece)
        start = end
    return tuple(ids)


@cache
def vocabulary() -> Mapping[str, int]:
    """Each word piece with its id.

    Raises:
        SettingsError: the bundled file is not the one that the weights were trained with.
    """
    path = resources.files("snellen") / "data" / "embedded" / "vocab.txt.gz"
    data = gzip.decompress(path.read_bytes())
    if digest(data) != VOCABULARY_SHA256:
        message = f"the vocabulary has SHA-256 {digest(data)}, not {VOCABULARY_SHA256}"
        raise SettingsError(message, hint="install snellen again")
    return {piece: number for number, piece in enumerate(data.decode().rstrip("\n").split("\n"))}
