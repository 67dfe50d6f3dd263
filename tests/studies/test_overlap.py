"""Overlap and similarity with golden captions."""

import math

import pytest

from snellen.studies.overlap import (
    MEASURES,
    bleu,
    cider,
    embedding_similarity,
    meteor,
    rouge_l,
    words_of,
)

GOLDEN = (
    "a red bus stands at the stop in the rain",
    "two cups of tea on a wooden table",
    "a dog runs along the beach with a red ball",
)
SAID = (
    "a red bus stands at a stop in heavy rain",
    "two cups on the table",
    "a red ball on a wooden table",
)
PAIRS = tuple(zip(SAID, GOLDEN, strict=True))


def test_cider_d_equals_the_usual_tool():
    """With its length penalty the value is that of pycocoevalcap 1.2 on the same sentences."""
    assert cider(PAIRS, length_sigma=6.0) == pytest.approx(2.810058136942331)
    stammered = (
        ("a red red red bus a a car", "a red bus and a red car"),
        ("two two cups", "two cups"),
    )
    assert cider(stammered, length_sigma=6.0) == pytest.approx(2.918329323800968)


def test_cider_does_not_punish_length():
    """Without the penalty a longer text with all grams of the reference keeps its score."""
    longer = tuple((f"{said} " * 5, golden) for said, golden in PAIRS)
    assert cider(longer) > 0.8 * cider(PAIRS)
    assert cider(longer, length_sigma=6.0) < 0.01 * cider(PAIRS, length_sigma=6.0)


def test_cider_weighs_rare_grams():
    """A gram that all references share counts nothing; equal texts score 10."""
    assert cider((("a b c d", "a b c d"), ("e f g h", "e f g h"))) == pytest.approx(10.0)
    assert cider((("a", "a"), ("a", "a"))) == 0.0


def test_rouge_l_by_hand():
    """F of the longest common subsequence: 4 of 5 said words and 4 of 8 in the reference."""
    precision, recall = 4 / 5, 4 / 8
    wanted = 2 * precision * recall / (precision + recall)
    # two, cups, on, table stand in both, in this order.
    assert rouge_l([PAIRS[1]]) == pytest.approx(wanted)


def test_meteor_by_hand():
    """One chunk of all words: the harmonic mean is 1, the penalty half the cube of 1 / 4."""
    assert meteor([("a red bus stands", "a red bus stands")]) == pytest.approx(1 - 0.5 / 4**3)


def test_meteor_knows_stems_and_no_synonyms():
    """Forms of a word match, other words of the same meaning do not."""
    assert meteor([("dogs", "dog")]) == pytest.approx(0.5)
    assert meteor([("car", "automobile")]) == 0.0


def test_bleu_bounds():
    """Equal corpora score 1, disjoint ones 0."""
    assert bleu([(g, g) for g in GOLDEN]) == pytest.approx(1.0)
    assert bleu([("x y z w", GOLDEN[0])]) == pytest.approx(0.0, abs=1e-3)


def test_embeddings_tell_topics_apart():
    """A caption is nearer to its own golden caption than to another's; an empty one is at 0."""
    own = embedding_similarity(PAIRS)
    crossed = embedding_similarity(tuple(zip(SAID, GOLDEN[1:] + GOLDEN[:1], strict=True)))
    assert own > crossed + 0.1
    assert embedding_similarity([("", GOLDEN[0])]) == 0.0
    assert embedding_similarity([(GOLDEN[0], GOLDEN[0])]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", [n for n in MEASURES if n != "embedding_similarity"])
def test_blank_replies(name):
    """A blank reply scores 0 and lowers the mean; nothing at all has no value."""
    both = [PAIRS[0], ("", GOLDEN[1])]
    assert MEASURES[name](both) < MEASURES[name]([PAIRS[0], (GOLDEN[1], GOLDEN[1])])
    if name != "bleu":
        assert math.isnan(MEASURES[name]([]))


def test_words():
    """Words are lower-case and without punctuation, in any script."""
    assert words_of("Ünder, the 2 signs: 猫!") == ["ünder", "the", "2", "signs", "猫"]
