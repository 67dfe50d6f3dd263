"""What `snellen.tokens` promises of token counts."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from snellen import tokens

RECORDED = {
    "": 0,
    "A red bus.": 4,
    "A red double-decker bus waits beside the kerb; its sign reads “24 Hampstead”.": 20,
    "I'VE seen it's they'll DON'T": 7,
    "1234567890 3.14159 0x1F": 14,
    "两只猫坐在红色的沙发上。": 12,
    "Ein Straßenschild mit der Aufschrift „Übermut“": 13,
    "مرحبا بالعالم": 4,
    "👩\u200d👩\u200d👧\u200d👦 waves 👋🏽": 16,
    '{"count": 3, "objects": ["cup", "cup"]}': 16,
    "\n\n  - item one\n\n\t- item two   ": 11,
    "naïve café e\u0301": 6,
    "https://example.org/a/b?c=d#e": 11,
}


@pytest.mark.parametrize("text", RECORDED)
def test_counts_are_those_of_the_published_tokenizer(text: str) -> None:
    """Texts of many scripts have the counts that an independent tokenizer recorded."""
    assert tokens.count_tokens([text]) == [RECORDED[text]]


LETTERS, SMALL = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PUBLISHED_SPLIT = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{LETTERS}]*[{SMALL}]+{CONTRACTIONS}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{LETTERS}]+[{SMALL}]*{CONTRACTIONS}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
# Every character that a text can hold.
CHARACTERS = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


def tiktoken_with(split: str, ranks: dict[bytes, int]) -> tiktoken.Encoding:
    """An encoding of the published implementation, which needs no network when built like this."""
    return tiktoken.Encoding("other", pat_str=split, mergeable_ranks=ranks, special_tokens={})


@pytest.fixture(scope="module")
def published() -> tiktoken.Encoding:
    """The published tokenizer over the packaged vocabulary."""
    packed = resources.files("snellen") / "data" / "o200k_base.tiktoken.gz"
    lines = map(bytes.split, gzip.decompress(packed.read_bytes()).splitlines())
    return tiktoken_with(PUBLISHED_SPLIT, {b64decode(token): int(rank) for token, rank in lines})


@pytest.mark.parametrize("text", RECORDED)
def test_ids_equal_those_of_the_published_tokenizer(text: str, published: Any) -> None:
    """Token by token the ids are tiktoken's."""
    assert tokens.load().encode(text) == published.encode_ordinary(text)


def test_ids_of_captions_equal_those_of_the_published_tokenizer(published: Any) -> None:
    """So are those of every bundled caption and question, one text at a time."""
    folder = Path(str(resources.files("snellen") / "data" / "mini"))
    texts = [line for file in folder.rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert len(texts) > 1_000
    for text in texts:
        assert tokens.load().encode(text) == published.encode_ordinary(text)


@pytest.mark.parametrize("seed", range(4))
def test_ids_of_random_texts_equal_those_of_the_published_tokenizer(
    seed: int, published: Any
) -> None:
    """Characters at the edges of every class, mixed with what the split looks for, in any order."""
    rng = random.Random(seed)
    known = tokens.load()
    edges = [chr(c) for c in edge_points() if not 0xD800 <= c < 0xE000]
    some = list("'sStTreREvVelLmMdDſ \n\r\t/.,019aZ\u0301的") * (60 if seed % 2 else 4)
    ascii_only = [chr(c) for c in range(128)] + some[:30]
    for chars in (edges + some, ascii_only):
        for _ in range(1_500):
            text = "".join(rng.choices(chars, k=rng.randint(1, 40)))
            assert known.encode(text) == published.encode_ordinary(text), ascii(text)


def edge_points() -> list[int]:
    """The code points where a class of characters begins or ends, and those beside them."""
    packed = resources.files("snellen") / "data" / "o200k_base.classes.json"
    ends = {
        int(end, 16)
        for ranges in json.loads(packed.read_bytes()).values()
        for word in ranges.split()
        for end in word.split("-")
    }
    return sorted({near for end in ends for near in (end - 1, end, end + 1) if near >= 0})


@pytest.mark.parametrize(
    ("name", "published_class"),
    [
        ("upper", r"[\p{Lu}\p{Lt}]"),
        ("lower", r"\p{Ll}"),
        ("other", r"[\p{Lm}\p{Lo}]"),
        ("mark", r"\p{M}"),
        ("number", r"\p{N}"),
        ("space", r"\s"),
    ],
)
def test_classes_of_characters_are_the_published_ones(name: str, published_class: str) -> None:
    """Each packaged class holds the characters that tiktoken's patterns find, and no other."""
    packed = resources.files("snellen") / "data" / "o200k_base.classes.json"
    ours = set()
    for word in json.loads(packed.read_bytes())[name].split():
        first, _, last = word.partition("-")
        ours.update(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    # An encoding of single bytes keeps what its pattern finds and drops all else.
    finder = tiktoken_with(published_class, {bytes([byte]): byte for byte in range(256)})
    assert ours == set(finder.decode(finder.encode_ordinary(CHARACTERS)))


def test_halves_of_a_surrogate_pair_are_one_character() -> None:
    """JSON that escapes an emoji in two halves counts as the emoji."""
    assert tokens.load().encode("a \ud83d\ude00!") == tokens.load().encode("a \U0001f600!")


def test_counts_keep_the_order_of_the_texts() -> None:
    """Any iterable is counted, one number a text, in order."""
    texts = list(RECORDED)
    assert tokens.count_tokens(iter(texts)) == list(RECORDED.values())
    assert tokens.count_tokens([]) == []


def test_names_of_special_tokens_are_ordinary_text() -> None:
    """A caption that quotes a special token is counted letter by letter, and refused nowhere."""
    assert tokens.count_tokens(["<|endoftext|>", "<|endofprompt|>"]) == [7, 7]


def test_strange_characters_are_counted() -> None:
    """Null bytes count, and a lone surrogate counts as a replacement character."""
    lone, replaced, null = tokens.count_tokens(["a\ud800b", "a\ufffdb", "a\0b"])
    assert lone == replaced
    assert null == 3


@pytest.mark.parametrize("unit", ["a", " ", "\n", "na ", "的", "0"])
def test_endless_repetition_is_counted(unit: str) -> None:
    """A model that repeats itself to its limit costs time in proportion, and no crash."""
    short, long = tokens.count_tokens([unit * 2_000, unit * 40_000])
    assert 15 * short <= long <= 21 * short


def test_threads_share_one_tokenizer() -> None:
    """Threads that ask at once get the same tokenizer."""
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: tokens.load(), range(8)))
    assert all(tokenizer is loaded[0] for tokenizer in loaded)


def test_vocabulary_is_the_published_one() -> None:
    """The packaged file unpacks to the whole published vocabulary, with its licence beside it."""
    folder = resources.files("snellen") / "data"
    packed = folder.joinpath("o200k_base.tiktoken.gz").read_bytes()
    lines = gzip.decompress(packed).splitlines()
    assert len(lines) == 199_998
    assert lines[0] == b"IQ== 0"
    assert "MIT License" in folder.joinpath("o200k_base.LICENSE.txt").read_text(encoding="utf-8")


def printed_by(program: str) -> str:
    """What a program prints in a process of its own, which has not loaded the tokenizer."""
    line, where = [sys.executable, "-c", program], {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(line, env=where, capture_output=True, text=True, check=True).stdout


def test_counting_opens_no_connection() -> None:
    """A fresh process counts with every socket forbidden."""
    program = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise SystemExit('a connection was tried')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from snellen.tokens import count_tokens\n"
        "print(count_tokens(['A red bus.']))\n"
    )
    assert printed_by(program).strip() == "[4]"


def test_a_damaged_vocabulary_is_refused() -> None:
    """A file that is not the packaged one gives one line and a hint, and never other counts."""
    program = (
        "from snellen import tokens\n"
        "from snellen.errors import SnellenError\n"
        "tokens.CLASSES_DIGEST = '0' * 64\n"
        "try: tokens.count_tokens(['A red bus.'])\n"
        "except SnellenError as error: print(error, '|', error.hint)\n"
    )
    told = printed_by(program)
    assert "o200k_base.classes.json is not the one that was packaged" in told
    assert "install snellen again" in told
