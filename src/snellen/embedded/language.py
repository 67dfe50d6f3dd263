"""Tells whether a text is English enough for a judge that reads English only."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_FUNCTION_WORDS = {
    "English": "the of is and with are this that it to at by from has there its which an on",
    "German": "der die das und ist ein eine einen mit auf den im von zu sich dem nicht sind auch",
    "French": "le la les un une des est et dans sur avec du qui au il elle sont pas ce cette",
    "Spanish": "el la los las un una es en con de del que se por su hay está sobre",
    "Portuguese": "os um uma com de da do em na que se ao uma dos das está há",
    "Italian": "il lo la gli le un una è di che con nel della sono si del su al una",
    "Dutch": "de het een en van met op zijn er aan dat niet te ook voor naar een bij",
    "Polish": "na jest się nie do to że po jak są przez oraz",
    "Turkish": "ve bir bu ile için de da olan üzerinde var gibi daha çok",
    "Indonesian": "yang dan di dengan ini itu sebuah untuk pada dari adalah ke ada",
    "Vietnamese": "và một của là có trong với được trên các người cho những này",
    "Swedish": "och är en ett på med som av det den till har i för",
}
_WORD_SETS = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_SCRIPTS = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
_OTHERS = "Cyrillic Arabic Hebrew Greek Devanagari Bengali Tamil Telugu Thai Georgian Armenian"
_SCRIPTS |= {name.upper(): name for name in _OTHERS.split()}
# A sign of these scripts says about as much as three Latin letters do.
_DENSE = frozenset({"Chinese", "Japanese", "Korean"})


@lru_cache(maxsize=8192)
def foreign_language(text: str) -> str | None:
    """The script or language that most of a text is in, or None where it may be English.

    Short Latin text is never called foreign: names, codes and numbers belong to no language.

    >>> foreign_language("一只橙色的猫坐在垫子上"), foreign_language("The sign says 出口")
    ('Chinese', None)
    >>> foreign_language("Eine Katze sitzt auf der Matte und schaut in die Kamera")
    'German'
    """
    return None if text.isascii() and len(text) < 24 else _by_script(text) or _by_words(text)


def _by_script(text: str) -> str | None:
    if text.isascii():
        return None
    weights: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            script = _script(char)
            weights[script] += 3 if script in _DENSE else 1
    foreign = weights.total() - weights["Latin"]
    if foreign <= weights["Latin"]:
        return None
    del weights["Latin"]
    # Japanese text is mostly Chinese signs, but Chinese text has no kana.
    if weights["Japanese"] and weights["Japanese"] >= 0.1 * weights["Chinese"]:
        return "Japanese"
    return weights.most_common(1)[0][0]


@lru_cache(maxsize=8192)
def _script(char: str) -> str:
    if char.isascii():
        return "Latin"
    first = unicodedata.name(char, "UNKNOWN").split()[0]
    if first in ("LATIN", "FULLWIDTH", "MODIFIER", "FEMININE", "MASCULINE", "MICRO"):
        return "Latin"
    return _SCRIPTS.get(first, "non-Latin")


def _by_words(text: str) -> str | None:
    words = re.findall(r"[^\W\d_]{2,}", unicodedata.normalize("NFC", text).lower())
    if len(words) < 8:
        return None
    counts = {name: sum(w in known for w in words) for name, known in _WORD_SETS.items()}
    english = counts.pop("English")
    name = max(counts, key=lambda n: counts[n])
    is_foreign = counts[name] >= 0.15 * len(words) and counts[name] > 2 * english
    return name if is_foreign else None
