"""What `snellen.tokens` promises of token counts."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import pytest

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


def test_ids_equal_those_of_another_implementation() -> None:
    """Token by token the ids are those of a second implementation, where it is installed."""
    other = pytest.importorskip("bpe_openai").get_encoding("o200k_base")
    for text in RECORDED:
        assert tokens.load().encode_ordinary(text) == other.encode_ordinary(text)


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


def test_counting_opens_no_connection() -> None:
    """A fresh process counts with every socket forbidden and no cache folder of tiktoken's."""
    program = (
        "import socket\n"
        "def refuse(*args, **kwargs): raise SystemExit('a connection was tried')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from snellen.tokens import count_tokens\n"
        "print(count_tokens(['A red bus.']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "TIKTOKEN_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[4]"
