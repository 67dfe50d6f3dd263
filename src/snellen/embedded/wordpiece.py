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
_INVISIBLE = ("Cc", "Cf", "Co")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
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
    spaced = "".join(_spaced(c) for c in unicodedata.normalize("NFD", _cleaned(text)))
    return spaced.split()


def _cleaned(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " + c + " " if _is_ideograph(ord(c)) else _clean(c) for c in text)


@cache
def _clean(char: str) -> str:
    if char in "\t\n\r":
        return " "
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    return "" if char == "\ufffd" or category in _INVISIBLE else char


@lru_cache(maxsize=4096)
def _spaced(char: str) -> str:
    if unicodedata.category(char) == "Mn":
        return ""
    lower = char.lower()
    return f" {lower} " if _is_punctuation(char) else lower


def _is_punctuation(char: str) -> bool:
    # BERT counts every ASCII sign that is no letter or digit, such as $ and +, as punctuation.
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char)[0] == "P"


def _is_ideograph(point: int) -> bool:
    return point >= 0x3400 and any(low <= point <= high for low, high in _IDEOGRAPHS)


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
        raise SettingsError(
            f"the vocabulary of the embedded judge has SHA-256 {digest(data)}, "
            f"not {VOCABULARY_SHA256}",
            hint="install snellen again",
        )
    return {piece: number for number, piece in enumerate(data.decode().rstrip("\n").split("\n"))}
