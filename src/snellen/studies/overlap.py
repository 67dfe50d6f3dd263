"""What gating is measured against: overlap and similarity of replies and golden captions.

Every measure takes pairs (reply, golden caption) and is higher for replies that are more alike.
METEOR matches words and stems, not synonyms, so that it needs no word net and is the same on every
machine. CIDEr is computed here: the one packaged implementation weighs 100 MB and wants Java for
its neighbours.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from snellen.errors import MissingExtraError

if TYPE_CHECKING:
    from snellen.embedded.encoder import Encoder

Pairs = Sequence[tuple[str, str]]

LONGEST_GRAM = 4
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def words_of(text: str) -> list[str]:
    """Lower-case words without punctuation.

    >>> words_of("A red bus, 2 dogs.")
    ['a', 'red', 'bus', '2', 'dogs']
    """
    return _WORD.findall(text.lower())


def bleu(pairs: Pairs) -> float:
    """Corpus BLEU-4 in 0..1, by sacrebleu with its own settings.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    try:
        import sacrebleu
    except ImportError as error:
        raise MissingExtraError("sacrebleu", "overlap") from error
    found = sacrebleu.corpus_bleu([p[0] for p in pairs], [[p[1] for p in pairs]])
    return float(found.score) / 100.0


def rouge_l(pairs: Pairs) -> float:
    """The mean F of the longest common subsequence in 0..1, by rouge-score, on stems.

    Raises:
        MissingExtraError: rouge-score is not installed.
    """
    try:
        from rouge_score import tokenize
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError("rouge-score", "overlap") from error
    scorer = RougeScorer(["rougeL"], tokenizer=_Split(tokenize.tokenize))
    return _mean([scorer.score(golden, reply)["rougeL"].fmeasure for reply, golden in pairs])


def meteor(pairs: Pairs) -> float:
    """The mean METEOR in 0..1, by nltk, on words and stems.

    Raises:
        MissingExtraError: nltk is not installed.
    """
    try:
        from nltk.translate.meteor_score import meteor_score
    except ImportError as error:
        raise MissingExtraError("nltk", "overlap") from error
    stems = _Stems()
    return _mean(
        [
            meteor_score([words_of(golden)], words_of(reply), stemmer=stems, wordnet=_NoSynonyms)
            for reply, golden in pairs
        ]
    )


class _Stems:
    """Porter's stemmer, which is slow, asked once for each word; a table is kept that long."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer

        self.stem = cache(PorterStemmer().stem)


class _Split:
    """rouge-score's own way into stems."""

    def __init__(self, tokenize: Callable[[str, object], list[str]]) -> None:
        self._tokenize, self._stems = tokenize, _Stems()

    def tokenize(self, text: str) -> list[str]:
        """The stems of a text."""
        return self._tokenize(text, self._stems)


class _NoSynonyms:
    """Stands where nltk would look for synonyms."""

    @staticmethod
    def synsets(word: str) -> list[object]:
        """No word has any."""
        return []


def cider(pairs: Pairs, *, length_sigma: float | None = None) -> float:
    """The mean CIDEr in 0..10: cosine of n-gram counts weighted by rarity among the references.

    With `length_sigma` (6 in the usual tools) it is CIDEr-D, where counts are clipped and a
    difference in length is punished: among descriptions of hundreds of words that leaves nothing
    but zeros, so the plain form is the default.

    >>> round(cider([("a red bus", "a red bus"), ("two cups", "two dogs")]), 2)
    4.38

    Source: Vedantam et al. 2015, equations (2) and (3), and section 5 for CIDEr-D.
    """
    references = [_grams(golden) for _, golden in pairs]
    seen: Counter[tuple[str, ...]] = Counter()
    for counts in references:
        seen.update(counts.keys())
    rarity = {gram: math.log(len(pairs) / n) for gram, n in seen.items()}
    unseen = math.log(len(pairs)) if pairs else 0.0
    scores = []
    for (reply, _), golden in zip(pairs, references, strict=True):
        both = tuple(
            {gram: n * rarity.get(gram, unseen) for gram, n in counts.items()}
            for counts in (_grams(reply), golden)
        )
        longer = len(words_of(reply)) - sum(n for gram, n in golden.items() if len(gram) == 1)
        scores.append(_cider_one(both[0], both[1], longer, length_sigma))
    return _mean(scores)


Weights = Mapping[tuple[str, ...], float]


def _grams(text: str) -> Counter[tuple[str, ...]]:
    words = words_of(text)
    return Counter(
        tuple(words[k : k + n])
        for n in range(1, LONGEST_GRAM + 1)
        for k in range(len(words) - n + 1)
    )


def _cider_one(reply: Weights, golden: Weights, longer: int, sigma: float | None) -> float:
    total = 0.0
    for n in range(1, LONGEST_GRAM + 1):
        a = {gram: w for gram, w in reply.items() if len(gram) == n}
        b = {gram: w for gram, w in golden.items() if len(gram) == n}
        size = math.sqrt(sum(w * w for w in a.values()) * sum(w * w for w in b.values()))
        if size:
            # CIDEr-D counts a gram at most as often as the reference holds it.
            shared = (
                (w if sigma is None else min(w, b[gram])) * b[gram]
                for gram, w in a.items()
                if gram in b
            )
            total += sum(shared) / size
    penalty = 1.0 if sigma is None else math.exp(-(longer**2) / (2.0 * sigma**2))
    return 10.0 * penalty * total / LONGEST_GRAM


def embedding_similarity(pairs: Pairs) -> float:
    """The mean cosine of replies and golden captions in -1..1, each the mean of its sentences.

    The encoder is the embedded judge's.

    Raises:
        MissingExtraError: the embedded judge's parts are not installed.
    """
    from snellen.settings import encoder_path

    encoder = _encoder(encoder_path(), os.getpid())
    sides = [
        [[s for s in (part.strip() for part in _SENTENCE_END.split(text)) if s] for text in pair]
        for pair in pairs
    ]
    vectors = encoder.embed({s for side in sides for sentences in side for s in sentences})
    cosines = []
    for reply, golden in sides:
        if not reply or not golden:
            cosines.append(0.0)
            continue
        a, b = (np.mean([vectors[s] for s in part], axis=0) for part in (reply, golden))
        cosines.append(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))
    return _mean(cosines)


@lru_cache(maxsize=1)
def _encoder(path: Path | None, _process: int) -> Encoder:
    """The encoder of one process: the golden captions are the same for every model."""
    from snellen.embedded.encoder import Encoder

    return Encoder(path)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


MEASURES: Mapping[str, Callable[[Pairs], float]] = {
    "bleu": bleu,
    "rouge_l": rouge_l,
    "meteor": meteor,
    "cider": cider,
    "embedding_similarity": embedding_similarity,
}
TITLES: Mapping[str, str] = {
    "bleu": "BLEU",
    "rouge_l": "ROUGE-L",
    "meteor": "METEOR (no synonyms)",
    "cider": "CIDEr",
    "embedding_similarity": "Embedding similarity",
}
