"""Token counts in o200k_base, the vocabulary in which caption lengths are compared.

The vocabulary lies in the package, so that counting never touches a network.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from snellen.errors import SnellenError
from snellen.keys import digest

if TYPE_CHECKING:
    from tiktoken import Encoding

TOKENIZER = "o200k_base"
VOCABULARY_DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The SHA-256 of the unpacked vocabulary file, as tiktoken pins it."""

_SPECIAL_TOKENS = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PATTERN = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_CONTRACTIONS}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_CONTRACTIONS}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

_lock = Lock()
_loaded: list[Encoding] = []


def count_tokens(texts: Iterable[str]) -> list[int]:
    """The number of o200k_base tokens of each text; names of special tokens are ordinary text.

    A lone surrogate counts as the replacement character. The first call builds the tokenizer
    unless `load` has done so.

    >>> count_tokens(["A red bus.", ""])
    [4, 0]
    """
    encode = load().encode_ordinary
    return [len(encode(text)) for text in texts]


def load() -> Encoding:
    """The tokenizer, built once a process; call it early in a thread, since it takes 0.3 s.

    Raises: SnellenError when the packaged vocabulary is missing or damaged.
    """
    with _lock:
        if not _loaded:
            _loaded.append(_build())
        return _loaded[0]


def _build() -> Encoding:
    from tiktoken import Encoding

    return Encoding(
        TOKENIZER,
        pat_str=_PATTERN,
        mergeable_ranks=_read_ranks(_read_vocabulary()),
        special_tokens=_SPECIAL_TOKENS,
    )


def _read_vocabulary() -> bytes:
    import gzip
    import zlib
    from importlib import resources

    file = resources.files("snellen") / "data" / f"{TOKENIZER}.tiktoken.gz"
    hint = "install snellen again"
    try:
        vocabulary = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise SnellenError(f"the token vocabulary cannot be read: {error}", hint=hint) from error
    if digest(vocabulary) != VOCABULARY_DIGEST:
        raise SnellenError("the token vocabulary is not the one that was packaged", hint=hint)
    return vocabulary


def _read_ranks(vocabulary: bytes) -> dict[bytes, int]:
    """Tokens and their merge ranks, from lines of a token in base64 and its rank."""
    from binascii import a2b_base64

    fields = vocabulary.split()
    return dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))
