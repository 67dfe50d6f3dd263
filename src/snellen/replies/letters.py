"""Letters: the choices of a reader's reply to one question, or to several asked in one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from snellen.replies import vocabulary as words
from snellen.replies.answers import (
    Kind,
    agreed,
    announcement,
    plain_key,
    read_answer,
    settle,
    why_none,
    without_start,
)
from snellen.replies.text import (
    Parsed,
    json_places,
    open_reply,
    recovered,
    split_thinking,
    twice_given,
    undress,
    unread,
)

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
UNCERTAIN = "Not mentioned / Cannot be determined"


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of one question; the letter of each is its place in the alphabet.

    `abstains` says that the last option is the abstention: either half of its text chooses it too.
    """

    texts: tuple[str, ...]
    abstains: bool = False

    @property
    def letters(self) -> str:
        """The letters that can be chosen."""
        return ALPHABET[: len(self.texts)]


def _spaced(text: str) -> str:
    return re.sub(r"\s{0,9}/\s{0,9}", "/", " ".join(text.split()))


def _bare(text: str) -> str:
    folded = _spaced(text).casefold()
    trimmed = folded.strip(" \"'“”‘’«»`*").rstrip(".,;!。").rstrip(" \"'“”‘’«»`*")
    return trimmed or folded


# From strict to loose: a looser comparison decides only where a stricter one finds nothing.
COMPARISONS: tuple[Callable[[str], str], ...] = (
    _spaced,
    lambda text: _spaced(text).casefold(),
    _bare,
    lambda text: _bare(undress(text)),
)


@lru_cache(256)
def _named(choices: Choices) -> tuple[dict[str, set[str]], ...]:
    """For each comparison the letters by the texts that choose them."""
    pairs = list(zip(choices.letters, choices.texts, strict=True))
    if choices.abstains and " / " in choices.texts[-1]:
        pairs += [(choices.letters[-1], half) for half in choices.texts[-1].split(" / ")]
    found: tuple[dict[str, set[str]], ...] = tuple({} for _ in COMPARISONS)
    for plain, letters in zip(COMPARISONS, found, strict=True):
        for letter, text in pairs:
            letters.setdefault(plain(text), set()).add(letter)
    return found


def _letters_of(text: str, choices: Choices) -> set[str]:
    """The letters whose option has this text, by the strictest comparison that finds any."""
    if len(text) > 40 + 2 * max(map(len, choices.texts), default=0):
        return set()
    for plain, letters in zip(COMPARISONS, _named(choices), strict=True):
        if hits := letters.get(plain(text)):
            return hits
    return set()


def match_text(text: str, choices: Choices) -> str | None:
    """The letter of the one option whose text this is; None for none, and for two alike.

    >>> match_text("a blue car.", Choices(("car", "a blue car")))
    'B'
    """
    hits = _letters_of(text, choices)
    return next(iter(hits)) if len(hits) == 1 else None


_LETTER = re.compile(
    r"[(\[{<【\"']{0,3}\s{0,3}(?P<letter>[A-Za-z])\s{0,3}(?P<close>[)\]}>】\"']{0,3})"
    r"(?P<mark>\s{0,3}[.:：)、,;–—=-]{1,2}(?=\W|$|[^\x00-\x7f])|\s|(?<=[)\]}>】])|$)\s{0,3}(?P<rest>.*)",
    re.DOTALL,
)
_SEVERAL = re.compile(
    r"[(\[]?(?P<a>[A-Za-z])[)\]]?(?:\s{0,3}(?:[,;/&+|、]|\band\b|\bor\b|和|或|及|与|與|还是|還是)\s{0,3}"
    r"(?:(?:and|or)\s{1,3})?[(\[]?(?P<b>[A-Za-z])[)\]]?){1,25}[.!]?",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$?\s?[\[<{(]?\s?(?:the |your )?(?:letter|x)\s?[\]>})]?\s?\.?", re.I)


def _bare_choice(text: str, choices: Choices) -> Parsed | None:
    """The choice that a text is, once its dress is off; None for a text that is more than that."""
    text = text.strip()
    if len(text) > 400 + 2 * max(map(len, choices.texts), default=0):
        return None
    by_text = match_text(text, choices)
    short = undress(text)
    single = len(short.strip("()[]{}<>【】. ")) == 1
    if by_text and not (single and short.strip("()[]{}<>【】. ").upper() in choices.letters):
        return recovered(by_text)
    for fillers in (words.CONNECTORS, words.FILLERS):
        for filler in fillers:
            cut = without_start(short, filler).lstrip(" ,")
            if cut != short and re.match(r"[(\[{<]?[A-Z](?:\W|$)", cut):
                short = cut
    for ending in words.ENDINGS:
        short = short.rstrip(" 。.").removesuffix(ending).strip() or short
    if short.endswith(("?", "？")) and len(short.strip("()[]. ?？")) == 1:
        return unread("hedged", text)
    if _PLACEHOLDER.fullmatch(text) and not single:
        return unread("placeholder", text)
    if (letters := _several(short, choices)) is not None:
        return letters
    found = _LETTER.fullmatch(short)
    return _chosen(found, choices) if found else None


def _several(short: str, choices: Choices) -> Parsed | None:
    """Two or more letters and nothing else: "AB", "A and C"; one letter given twice is one."""
    run = short.rstrip(" .!")
    if len(run) > 100:
        return None
    if 1 < len(run) <= 6 and run.isupper() and set(run) <= set(choices.letters):
        letters = set(run)
    elif _SEVERAL.fullmatch(short):
        letters = set(re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", short.upper()))
    else:
        return None
    if not letters <= set(choices.letters):
        return None
    first = run[0] if len(letters) == 1 else ""
    return recovered(first) if first else unread("several_letters", short)


def _chosen(found: re.Match[str], choices: Choices) -> Parsed | None:
    """A letter with nothing behind it, or with its own option's text."""
    letter, rest = found["letter"].upper(), found["rest"].strip()
    if letter not in choices.letters:
        return None if rest else unread("not_an_option", letter)
    if not rest:
        return recovered(letter)
    named = _letters_of(rest, choices) or _letters_of(rest.strip("()[] ."), choices)
    if named:
        return recovered(letter, rest) if letter in named else unread("contradiction", rest)
    again = _LETTER.fullmatch(rest)
    if again and not again["rest"].strip() and again["letter"].upper() in choices.letters:
        same = again["letter"].upper() == letter
        return recovered(letter) if same else unread("several_letters", rest)
    return None


def _choice_field(value: object, choices: Choices) -> Parsed | None:
    """The choice in a JSON object's answer field; None when it has no such field."""
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], str):
            return _bare_choice(value[0], choices)
        letters = {v for v in value if isinstance(v, str) and v in choices.letters}
        return unread("several_letters") if len(letters) > 1 else None
    if not isinstance(value, dict):
        return None
    hits = [k for k in value if plain_key(k) in words.CHOICE_KEYS]
    if any(k in twice_given(value) for k in hits):
        return unread("contradiction")
    said = [_choice_value(value[k], choices) for k in hits]
    return agreed(said) if said else None


def _choice_value(value: object, choices: Choices) -> Parsed:
    if isinstance(value, list | dict):
        return _choice_field(value, choices) or unread("no_verdict")
    if isinstance(value, bool) or value is None:
        return unread("no_verdict")
    return _bare_choice(str(value), choices) or unread(why_none(str(value)))


_CHOICE_NAMED = announcement(words.CHOICE_NAMES, words.CHOOSING)


def parse_letter(
    text: str,
    options: Sequence[str],
    *,
    uncertain: str | None = UNCERTAIN,
    finish_reason: str | None = None,
) -> Parsed:
    r"""The letter that a reader's reply chooses.

    `options` are texts without letters; with `uncertain`, one more option of that text follows
    them, which either half of its text chooses as well. A lone capital letter is the protocol's
    own form. Another form counts if it is bare (a letter, an option's exact text, or both) or the
    last announced one.

    >>> parse_letter("B", ["red", "blue"]).how
    'marked'
    >>> parse_letter("Answer: (B) blue", ["red", "blue"])
    Parsed(value='B', how='recovered', reason=None, note='blue')
    >>> parse_letter("B: red", ["red", "blue"]).reason
    'contradiction'
    >>> parse_letter("Not mentioned", ["red", "blue"]).value
    'C'
    """
    texts = (*options, uncertain) if uncertain is not None else tuple(options)
    choices = Choices(texts, abstains=uncertain is not None)
    visible = split_thinking(text)[1].strip()
    if len(visible) == 1 and visible in ALPHABET:
        known = visible in choices.letters
        return Parsed(visible, "marked") if known else unread("not_an_option", visible)
    cleaned = open_reply(text, finish_reason)
    if isinstance(cleaned, Parsed):
        return cleaned
    kind = Kind(
        lambda said: _bare_choice(said, choices),
        lambda value: _choice_field(value, choices),
        _CHOICE_NAMED,
        reads_sentences=True,
    )
    return settle(read_answer(cleaned, kind), finish_reason)


# Several letters in one reply

_NUMBERED = re.compile(
    r"\s{0,9}(?:q(?:uestion)?\s{0,3})?[(\[]?(\d{1,4})\s{0,3}[.):\]\-–=]{1,3}\s{0,9}(.+)", re.I
)
# Where the next answer begins in a line that holds them all: "1. B, 2. C".
_NEXT_NUMBER = re.compile(r"(?<![\s,;])[\s,;]++(?=(?:q\s?)?[(\[]?\d{1,4}\s{0,3}[.):\]])", re.I)


def parse_letters(
    text: str,
    n: int,
    *,
    options: Sequence[Sequence[str]] = (),
    uncertain: str | None = UNCERTAIN,
    finish_reason: str | None = None,
) -> tuple[Parsed, ...]:
    r"""The letters for `n` questions that were asked in one call, in their order.

    Numbered lines (from 1, or from 0), one line an answer, or a JSON list or object. With another
    count than `n` nothing is read. `options` are those of each question; without them, four of
    unknown text.

    >>> [p.value for p in parse_letters("1. B\n2. E", 2)]
    ['B', 'E']
    >>> parse_letters("B", 2)[0].reason
    'wrong_count'
    """
    cleaned = open_reply(text, finish_reason)
    if isinstance(cleaned, Parsed):
        return (cleaned,) * n
    answers = _numbered_json(cleaned) or _numbered_lines(cleaned)
    if finish_reason == "length" and len(answers) != n:
        return (unread("truncated"),) * n
    if sorted(answers) == list(range(n)):
        answers = {number + 1: said for number, said in answers.items()}
    if sorted(answers) != list(range(1, n + 1)):
        return (unread("wrong_count"),) * n
    each = options or [("\0a", "\0b", "\0c", "\0d")] * n
    return tuple(_read_said(answers[i + 1], each[i], uncertain) for i in range(n))


def _read_said(said: Sequence[str], options: Sequence[str], uncertain: str | None) -> Parsed:
    read = [parse_letter(one, options, uncertain=uncertain) for one in said]
    if len({p.value for p in read}) > 1:
        return unread("conflict", " ".join(said))
    return read[0]


def _numbered_lines(text: str) -> dict[int, list[str]]:
    lines = [undress(line) for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        lines = _NEXT_NUMBER.split(lines[0])
    numbered = [m for m in map(_NUMBERED.fullmatch, lines) if m]
    answers: dict[int, list[str]] = {}
    if numbered:
        for match in numbered:
            answers.setdefault(int(match[1]), []).append(match[2])
        return answers
    pieces = re.split(r"[,;\s]++", lines[0]) if len(lines) == 1 else lines
    return {i: [piece] for i, piece in enumerate(pieces, start=1)}


def _numbered_json(text: str) -> dict[int, list[str]]:
    answers: dict[int, list[str]] = {}
    for _, _, value in json_places(text):
        rows = value.items() if isinstance(value, dict) else enumerate(value, start=1)
        for key, row in rows:
            number, said = _row(key, row)
            if number is not None:
                answers.setdefault(number, []).append(said)
            elif isinstance(row, list):
                return {i: [str(v)] for i, v in enumerate(row, start=1)}
    return answers


def _row(key: object, row: object) -> tuple[int | None, str]:
    if isinstance(row, dict):
        names = {plain_key(k): v for k, v in row.items()}
        key = next((names[k] for k in ("number", "id", "question", "n") if k in names), key)
        row = next((v for k, v in names.items() if k in words.CHOICE_KEYS), "")
    digits = re.fullmatch(r"\D{0,40}(\d{1,4})", str(key))
    return (int(digits[1]) if digits and not isinstance(row, list) else None), str(row)
