"""Token counts in o200k_base, the vocabulary in which caption lengths are compared.

The vocabulary and the character classes that split a text lie in the package: counting touches
no network and gives the same numbers on every Python. The ids are tiktoken's, as tests hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from threading import Lock

from snellen.errors import SnellenError
from snellen.keys import digest

TOKENIZER = "o200k_base"
VOCABULARY_DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The SHA-256 of the unpacked vocabulary file, as tiktoken pins it."""
CLASSES_DIGEST = "eb44ba60d14518ac92b6ba453d75203e502f6dec74411bac3cdeb43858ff67d7"
"""The SHA-256 of the file of character classes (Unicode 16, the version of tiktoken 0.14)."""

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_ASCII = 0x7F
# Words whose tokens are remembered: those of some thousand captions.
_REMEMBERED = 16_384

_lock = Lock()
_loaded: list[Tokenizer] = []


def count_tokens(texts: Iterable[str]) -> list[int]:
    """The number of o200k_base tokens of each text; names of special tokens are ordinary text.

    A lone surrogate counts as the replacement character. The first call builds the tokenizer
    unless `load` has done so.

    >>> count_tokens(["A red bus.", ""])
    [4, 0]
    """
    encode = load().encode
    return [len(encode(text)) for text in texts]


def load() -> Tokenizer:
    """The tokenizer, built once a process; call it early in a thread, since it takes 0.1 s.

    Raises: SnellenError when the packaged vocabulary is missing or damaged.
    """
    with _lock:
        if not _loaded:
            _loaded.append(Tokenizer(_read_ranks(), _read_classes()))
        return _loaded[0]


class Tokenizer:
    """Byte-pair encoding: a text is split into words, and a word's bytes are merged by rank.

    `ranks` maps a token's bytes to its id, which is its rank too; `classes` maps the names upper,
    lower, other (letters without case), mark, number and space to ranges of code points.
    """

    def __init__(
        self, ranks: Mapping[bytes, int], classes: Mapping[str, list[tuple[int, int]]]
    ) -> None:
        self._ranks, self._classes = ranks, classes
        self._of_word = lru_cache(_REMEMBERED)(self._encode_word)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens.

        >>> load().encode("A red bus.")
        [32, 3592, 1918, 13]
        """
        if text.isascii():
            words = self._ascii_words.findall(text)
        else:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            words = self._words.findall(text)
        return [token for word in words for token in self._of_word(word)]

    # Plain English is split ten times faster by a pattern without the other characters.
    @cached_property
    def _ascii_words(self) -> re.Pattern[str]:
        below = {
            name: [(first, min(last, _ASCII)) for first, last in ranges if first <= _ASCII]
            for name, ranges in self._classes.items()
        }
        return re.compile(_pattern(below))

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(_pattern(self._classes))

    def _encode_word(self, word: str) -> tuple[int, ...]:
        spelled = word.encode()
        whole = self._ranks.get(spelled)
        return tuple(_merge(spelled, self._ranks)) if whole is None else (whole,)


def _merge(word: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The tokens of a word: again and again the neighbours of the lowest rank become one part.

    Part by part `ends` holds where the part that begins there ends (0: swallowed by another), and
    `before` where the part ahead of it begins. Time grows with n log n.
    """
    size = len(word)
    ends, before = list(range(1, size + 1)), list(range(-1, size - 1))
    pairs: list[tuple[int, int, int]] = []
    for start in range(size - 1):
        _offer(pairs, word, ranks, start, start + 2)
    while pairs:
        _, start, end = heappop(pairs)
        middle = ends[start]
        if not middle or middle >= end or ends[middle] != end:
            continue  # a part of this pair has been merged with another one
        ends[start], ends[middle] = end, 0
        if end < size:
            before[end] = start
            _offer(pairs, word, ranks, start, ends[end])
        if start:
            _offer(pairs, word, ranks, before[start], end)
    return [ranks[word[start:end]] for start, end in enumerate(ends) if end]


def _offer(
    pairs: list[tuple[int, int, int]], word: bytes, ranks: Mapping[bytes, int], start: int, end: int
) -> None:
    rank = ranks.get(word[start:end])
    if rank is not None:
        heappush(pairs, (rank, start, end))


def _pattern(classes: Mapping[str, list[tuple[int, int]]]) -> str:
    """How o200k_base splits a text: words with what leads them, numbers, signs, white space."""

    def chars(*names: str) -> str:
        ranges = sorted(pair for name in names for pair in classes[name])
        return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)

    upper, lower = chars("upper", "other", "mark"), chars("lower", "other", "mark")
    letter, number, space = chars("upper", "lower", "other"), chars("number"), chars("space")
    lead = rf"[^\r\n{letter}{number}]?"
    return "|".join(
        (
            rf"{lead}[{upper}]*[{lower}]+{_CONTRACTIONS}",
            rf"{lead}[{upper}]+[{lower}]*{_CONTRACTIONS}",
            rf"[{number}]{{1,3}}",
            rf" ?[^{space}{letter}{number}]+[\r\n/]*",
            rf"[{space}]*[\r\n]+",
            rf"[{space}]+(?![^{space}])",
            rf"[{space}]+",
        )
    )


def _read_ranks() -> dict[bytes, int]:
    """Tokens and their ranks, from lines of a token in base64 and its rank."""
    from binascii import a2b_base64
    from gzip import decompress

    fields = _read(f"{TOKENIZER}.tiktoken.gz", VOCABULARY_DIGEST, decompress).split()
    return dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))


def _read_classes() -> dict[str, list[tuple[int, int]]]:
    """Ranges of code points by class, from words such as `41-5a` or `aa`, in hex."""
    import msgspec

    found = msgspec.json.decode(_read(f"{TOKENIZER}.classes.json", CLASSES_DIGEST, bytes))
    return {name: [_range(word) for word in words.split()] for name, words in found.items()}


def _range(word: str) -> tuple[int, int]:
    first, _, last = word.partition("-")
    return int(first, 16), int(last or first, 16)


def _read(name: str, expected: str, unpack: Callable[[bytes], bytes]) -> bytes:
    """A file of the package, unpacked and checked against its digest."""
    import zlib
    from importlib import resources

    hint = "install snellen again"
    try:
        held = unpack((resources.files("snellen") / "data" / name).read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise SnellenError(f"the token vocabulary cannot be read: {error}", hint=hint) from error
    if digest(held) != expected:
        raise SnellenError(f"{name} is not the one that was packaged", hint=hint)
    return held
