"""The word pieces of the embedded judge."""

from __future__ import annotations

import random

import pytest

from snellen.embedded.wordpiece import END, START, UNKNOWN, encode, split_words, vocabulary

# Ids as the reference implementation gives them.
RECORDED = {
    "": (101, 102),
    "An orange cat.": (101, 2019, 4589, 4937, 1012, 102),
    "Café naïve ÅNGSTRÖM": (101, 7668, 15743, 17076, 15687, 102),
    "What's 3.5% of $1,200?": (
        (101, 2054, 1005, 1055, 1017, 1012, 1019, 1003, 1997, 1002, 1015, 1010, 3263, 1029, 102)
    ),
    "中文 sign": (101, 1746, 1861, 3696, 102),
    "unbelievableness": (101, 23653, 2791, 102),
    "tab\tand\u00a0no\u200bbreak": (101, 21628, 1998, 2053, 23890, 102),
    "🙂": (101, 100, 102),
}


@pytest.mark.parametrize("text", RECORDED)
def test_ids_equal_the_recorded_ids_of_the_reference(text: str) -> None:
    """Accents, signs, ideographs, white space and unknown words become the reference's ids."""
    assert encode(text) == RECORDED[text]


def test_a_long_text_is_cut_and_still_ends_with_the_end_mark() -> None:
    """A text beyond the limit keeps its start mark, its first pieces and the end mark."""
    ids = encode("cat " * 500, longest=16)
    assert len(ids) == 16
    assert (ids[0], ids[-1]) == (START, END)


def test_a_word_beyond_a_hundred_signs_is_unknown() -> None:
    """A very long word is one unknown piece, as in the reference."""
    assert encode("a" * 101) == (START, UNKNOWN, END)


def test_marks_written_in_a_text_are_plain_text() -> None:
    """A caption that says [SEP] cannot end the sequence early."""
    assert encode("[SEP]").count(END) == 1


def test_punctuation_and_ideographs_stand_alone() -> None:
    """Each sign of punctuation and each ideograph is a word."""
    assert split_words("Stop! 出口") == ["stop", "!", "出", "口"]


def test_the_vocabulary_is_complete() -> None:
    """The bundled vocabulary has the 30,522 pieces of bert-base-uncased."""
    assert len(vocabulary()) == 30522
    assert vocabulary()["[CLS]"] == START


def test_ids_equal_those_of_the_tokenizers_library_on_random_text() -> None:
    """Where the reference implementation is installed, both agree on 1,000 random strings."""
    library = pytest.importorskip("tokenizers")
    reference = library.BertWordPieceTokenizer(dict(vocabulary()), lowercase=True)
    random_ = random.Random(7)
    ranges = [(32, 126), (32, 0x24F), (0x370, 0x3FF), (0x4E00, 0x4EFF), (0x2010, 0x205F)]
    for _ in range(1000):
        low, high = random_.choice(ranges)
        text = "".join(chr(random_.randint(low, high)) for _ in range(random_.randint(1, 30)))
        assert list(encode(text, longest=1000)) == reference.encode(text).ids, ascii(text)
