"""A letter: the choice of a reader's reply among lettered options, or why it makes none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from snellen.replies.cleaning import (
    Parsed,
    blank_reason,
    clean,
    differ_side_by_side,
    drop_quotations,
    fold_width,
    json_places,
    recovered,
    split_thinking,
    twice_given,
    undress,
    unread,
)
from snellen.replies.verdicts import HEDGE, REACH, own_labels, settle, why_none

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
UNCERTAIN = "Not mentioned / Cannot be determined"


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of one question; the letter of each is its place in the alphabet."""

    texts: tuple[str, ...]

    @property
    def letters(self) -> str:
        """The letters that can be chosen."""
        return ALPHABET[: len(self.texts)]


def _spaced(text: str) -> str:
    return re.sub(r"\s*/\s*", "/", re.sub(r"\s+", " ", fold_width(text)).strip())


def _bare(text: str) -> str:
    folded = _spaced(text).casefold()
    trimmed = folded.strip(" \"'“”‘’«»`*").rstrip(".,;!。").rstrip(" \"'“”‘’«»`*")
    return trimmed or folded


# From strict to loose: a looser comparison decides only where a stricter one finds nothing.
COMPARISONS: dict[str, Callable[[str], str]] = {
    "as written": _spaced,
    "any case": lambda text: _spaced(text).casefold(),
    "bare": _bare,
    "undressed": lambda text: _bare(undress(text)),
}


def match_text(text: str, choices: Choices) -> str | None:
    """The letter of the one option whose text this is; None for none, and for two alike.

    >>> match_text("a blue car.", Choices(("car", "a blue car")))
    'B'
    """
    for plain in COMPARISONS.values():
        wanted = plain(text)
        hits = [
            letter
            for letter, option in zip(choices.letters, choices.texts, strict=True)
            if plain(option) == wanted
        ]
        if hits:
            return hits[0] if len(hits) == 1 else None
    return None


TOKEN = re.compile(
    r"[(\[{<【]{0,2}\s*(?P<letter>[A-Za-z])\s*(?P<close>[)\]}>】]{1,2})?"
    r"(?P<delimiter>\s*$|\s*[:,;!\n。、，；)\]]|\s*(?=\?)|\.(?=\s|$)|\.(?=[A-Z][a-z])"
    r"|[ ]*[-–—](?=\s)|\s+(?:because|since|as|for)\b|\s+\("
    r"|\s*(?=[\u4e00-\u9fff]|です|だ。|입니다|이다)|(?<=[)\]}>】])\s*|\s*(?=[✓✔✅])"
    r"|\s+(?P<bare>(?=\S)))",
)
_FILLER_START = re.compile(
    r"(?:(?:the\s+)?(?:option|choice|letter|answer)\s+|选项\s*)(?=[(\[]?[A-Z][)\]]?(?:\W|$))"
    r"|(?:so|thus|therefore|hence|ok(?:ay)?|sure|it's|it\s+is|it\s+must\s+be|[✓✔✅]|->|→)\s*[,:!]?"
    r"\s*(?:it's|it\s+is|it\s+must\s+be)?\s*(?-i:(?=[(\[]?[A-Z][)\]]?[.!]?\s*\Z))",
    re.IGNORECASE,
)
_TWO = re.compile(
    r"[(\[]?\s*([A-Z])\s*[)\]]?\s*(?:[,;/&+|、.:]|\band\b|\bor\b|[和或及与與]|还是|還是|[ ])"
    r"[ ]*(?:and|or)?[ ]*[(\[]?\s*([A-Z])\s*[)\]]?"
    r"(?=\s*(?:$|[.,;:)\]/&\n]|and\b|or\b|[\u4e00-\u9fff]))"
)
_TWO_SMALL = re.compile(
    r"\(?([a-z])\)?\s*(?:,|/|&|\band\b|\bor\b)\s*\(?([a-z])\)?[.!]?", re.IGNORECASE
)
_RUN = re.compile(r"[A-Z]{2,6}")
PLACEHOLDER = re.compile(
    r"\$\s*LETTER|[\[<{(]?\s*(?:the\s+|your\s+)?(?:LETTER|X)\s*[\]>})]?\s*\.?$", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\s*(?:(?:not|isn't|cannot\s+be|can't\s+be|neither|never)\s+(?:option\s+)?|不是?\s*)[(\[]?[A-Z]\b",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"(?:[Nn]ot\s+(?:option\s+)?|不是?\s*)[(\[]?([A-Z])[)\]]?\s*[,;，；]?\s*"
    r"(?:but\s+(?:rather\s+)?(?:option\s+)?|而?是\s*)[(\[]?([A-Z])[)\]]?\s*[.!。]?"
)
REVISED = re.compile(
    r"(?:^|[.!?,;\n。，；！？]\s*)(?:actually|wait|no,|rather|instead|on second|correction"
    r"|or maybe|hold on|scratch that|nein\b|non,"
    r"|等等|等一下|不[,，]|不对|不對|更正|其实|其實|应该是|應該是|应为|應為)",
    re.IGNORECASE,
)
_OR_ELSE = re.compile(
    r"(?:\b(?:or|and|oder|ou|или)\s+|(?:或者?|还是|還是)\s*)[(\[]?([A-Z])[)\]]?(?=[.:,;)。，]|\s*$)"
)
# Another letter that begins a sentence as a letter of an option does: "A: a cup. B: a jug."
_LISTED_ON = re.compile(r"(?:^|[.;,。；，])\s*(?:and\s+)?(?:\(?([A-Z])\)?:|([A-Z])[.)])(?=\s)")
_NO = r"no|not|false|wrong|incorrect|nicht|falsch|faux|falso|✗|✘|❌"
_DENIED = re.compile(rf"(?:{_NO})(?!\w).{{0,20}}", re.IGNORECASE)
_PLAIN_NO = re.compile(rf"(?:{_NO})", re.IGNORECASE)
_DENIED_IN_CHINESE = re.compile(
    r"(?:选项|選項|项|項)?\s*(?:是|并|並|都|也|应该|應該)*\s*(?:不|错|錯|没|沒|无|無|非|否)"
)
# After a letter without a stop these words weigh it, ask about it or add another.
_WEIGHED_IN_CHINESE = re.compile(
    r"(?:选项|選項|项|項)?\s*(?:吗|嗎|和|或|与|與|及|还是|還是|也|都|可能|似乎|大概|最可能)"
)
# "C, not D" and "C, no doubt" deny nothing of C.
_SETS_ASIDE = re.compile(
    r"(?:and\s+)?(?:(?:not\s+(?:option\s+)?|不是?\s*(?:选项)?)(?P<others>[(\[]?[A-Z][)\]]?(?:(?:\s*,|\s+n?or|\s+and)+\s*"
    r"[(\[]?[A-Z][)\]]?)*)|no\s+(?:doubt|question|other)\b.*)",
    re.IGNORECASE,
)
# An option that itself says that there is no answer.
ABSTAINS = re.compile(
    r"(?:cannot|can't|can not|unable|unknown|insufficient|none of|not\s+(?:mentioned|stated"
    r"|specified|given|described|clear|enough|sure|known|answerable)|no\s+(?:information|mention|answer))\b",
    re.IGNORECASE,
)
ALSO = re.compile(
    r"\b(?:probably|possibly|maybe|perhaps|likely|could\s+be|might\s+be)\s+[(\[]?([A-Z])[)\]]?"
    r"(?=[.:,;)]|\s*$)"
    r"|(?<![A-Za-z])[(\[]?([A-Z])[)\]]?\s+(?:is|seems|could\s+be|may\s+be|might\s+be|would\s+be)\s+"
    r"(?:also\s+|still\s+|equally\s+)?(?:possible|plausible|likely|right|correct)\b"
)


# Words right after a letter that leave it open: "B, but not sure", "B (most likely)".
_BEFORE_DOUBT = re.compile(
    r"\W*(?:(?:but|though|although)\s+)?(?:i(?:'m|’m|\s+am)\s+)?(?:most\s+|very\s+|quite\s+)?",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\W*(?:(?:with\s+)?low\s+confidence|i\s+(?:think|guess|suppose))\b", re.I)


def is_open(first: str) -> bool:
    """Whether the words right after a letter leave its choice open."""
    lead = _BEFORE_DOUBT.match(first)
    doubted = lead is not None and HEDGE.match(first, lead.end())
    return bool(doubted or _UNSURE.match(first) or _WEIGHED_IN_CHINESE.match(first))


def read_choice(text: str, choices: Choices) -> Parsed | None:
    """The choice that a text begins with; None when it begins with none.

    Exact option text comes first: "A blue car" may be option B.
    """
    body = _FILLER_START.sub("", undress(text))
    by_text = match_text(text, choices) or match_text(body, choices)
    single = len(body.strip("()[]. ")) == 1 and body.strip("()[]. ").upper() in choices.letters
    if by_text and not single:
        return recovered(by_text)
    if _NEGATED.match(body):
        aside = _BUT.fullmatch(body)
        both = {aside[1], aside[2]} if aside else set()
        kept = aside is not None and len(both) == 2 and both <= set(choices.letters)
        return recovered(aside[2]) if aside and kept else unread("negated", body)
    if PLACEHOLDER.match(text.strip()) and not single:
        return unread("placeholder", body)
    if is_several(body, choices):
        return unread("several_letters", body)
    match = TOKEN.match(body)
    return _weigh(match, body, choices) if match else None


def is_several(body: str, choices: Choices) -> bool:
    """Whether a text begins with two or more letters: "AB", "A and C", "B / D"."""
    run = _RUN.fullmatch(body.rstrip(" ."))
    if run and set(run[0]) <= set(choices.letters):
        return len(set(run[0])) > 1
    two = _TWO.match(body) or _TWO_SMALL.fullmatch(body)
    both = {two[1].upper(), two[2].upper()} if two else set()
    return len(both) == 2 and both <= set(choices.letters)


def _weigh(match: re.Match[str], body: str, choices: Choices) -> Parsed | None:
    letter, rest = match["letter"].upper(), body[match.end() :].strip()
    first = _first_sentence(rest)
    named = match_text(first, choices) if first else None
    if match["bare"] is not None:
        return _after_space(letter, named)
    if match["letter"].islower() and not _small_counts(match, first, named == letter):
        return None
    if letter not in choices.letters:
        return None if rest and not match["close"] else unread("not_an_option", body)
    if named not in (None, letter) or begins_with_other(first, letter, choices):
        return unread("contradiction", body)
    reason = _taken_from(letter, rest, choices)
    return unread(reason, body) if reason else recovered(letter, first)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", text.lstrip(":.,;)-–— "))[0].strip()


def _taken_from(letter: str, rest: str, choices: Choices) -> str | None:
    """The reason why the words after a letter take it back; None where they do not.

    The option's own text counts for nothing: it may be "half full" or "vitamin B or C".
    """
    own_text = choices.texts[choices.letters.index(letter)].strip().rstrip(".")
    rest = re.sub(rf"(?<!\w){re.escape(own_text)}(?!\w)", "", rest, count=1, flags=re.I).strip()
    own, first = _bare(own_text), _first_sentence(rest)
    others = choices.letters.replace(letter, "")
    listed = [*_OR_ELSE.finditer(rest), *_LISTED_ON.finditer(rest.split("\n")[0])]
    if is_denied(first, letter, own=own):
        return "negated"
    if any(other[other.lastindex or 0] in others for other in listed):
        return "several_letters"
    if any((other[1] or other[2]) in others for other in ALSO.finditer(rest)):
        return "contradiction"
    if REVISED.search(rest):
        return "contradiction"
    if rest.startswith("?"):
        return "hedged"
    doubted = is_open(first) and not own.startswith(_bare(first))
    return "hedged" if doubted and not ABSTAINS.match(own) else None


def is_denied(first: str, letter: str, *, own: str) -> bool:
    """Whether the words after a letter say that its option, whose text is `own`, is not so.

    After the letter of an abstention "not stated" agrees with it.
    """
    said = first.strip(" ().").rstrip(".")
    if ABSTAINS.match(own):
        return bool(_PLAIN_NO.fullmatch(said))
    aside = _SETS_ASIDE.fullmatch(said)
    if aside and letter not in re.findall(r"\b[A-Z]\b", aside["others"] or ""):
        return False
    if _DENIED_IN_CHINESE.match(said) and not own.startswith(said[:2]):
        return True
    return not own.startswith(_bare(first)) and bool(_DENIED.fullmatch(first.rstrip(".")))


def _after_space(letter: str, named: str | None) -> Parsed | None:
    # "B a blue car" names its option twice; "A dog" is prose, or names two options.
    if named is None:
        return None
    return recovered(letter) if named == letter else unread("contradiction")


def _small_counts(match: re.Match[str], first: str, own_text: bool) -> bool:
    return not first or own_text or bool(match["close"]) or match["delimiter"].strip() in (":", ")")


def begins_with_other(first: str, letter: str, choices: Choices) -> bool:
    """Whether the words after a letter begin with another option's text."""
    said = _bare(first)
    begun = [
        (len(_bare(option)), other)
        for other, option in zip(choices.letters, choices.texts, strict=True)
        if re.match(re.escape(_bare(option)) + r"(?!\w)", said)
    ]
    return bool(begun) and max(begun)[1] != letter


_LABEL_NAMES = (
    r"(?:final\s+|correct\s+|best\s+|right\s+|my\s+){0,5}"
    r"(?:answer|choice|selection|verdict|ans|option|letter|答案|选项|選項|选择|答え|答|正解|정답"
    r"|antwort|lösung|réponse|respuesta|risposta|resposta|ответ|الإجابة|الجواب)"
    r"(?:\s+(?:correcta|correcte|corretta|correta|الصحيحة))?"
)
_FILLER = r"(?:\s*(?:option|choice|letter|选项)\b)?"
STRONG_LABEL = re.compile(
    rf"(?<![A-Za-z]){_LABEL_NAMES}(?:\s+(?:letter|option|choice))?[\"'*_`\])】]*\s*"
    rf"(?:(?:is|是|为)\s*:|[:=]+|->|→|=>){_FILLER}",
    re.IGNORECASE,
)
WEAK_LABEL = re.compile(
    rf"(?<![A-Za-z]){_LABEL_NAMES}(?:\s+to\s+[^.\n:]{{1,60}}?)?\s*"
    rf"(?:\bis\b|\bshould\s+be\b|\bwould\s+be\b|\bmust\s+be\b|\bist\b|\best\b|\bes\b|\bè|\bé|هي|هو"
    rf"|は|은|는|应该是|应为|是|为|】|\s-(?=\s))(?!\s*:){_FILLER}"
    r"|\bi(?:'d|\s+would)?\s+(?:choose|select|pick|go\s+with|answer)\b"
    + _FILLER
    + r"|(?<![不别勿非])选择?(?=\s*[A-Z])"
    r"|(?<![A-Za-z])(?:final\s+)?answer\s+(?=[(\[*]*[A-Z][)\]*.]*\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
ANY_LABEL = re.compile(rf"{_LABEL_NAMES}[\"'*_`\s]*(?::|=|is\b|是)", re.IGNORECASE)


def read_alone(text: str, choices: Choices) -> Parsed | None:
    """A capital letter and nothing else: the protocol's own form."""
    if re.fullmatch(r"[A-Z]", text) is None:
        return None
    return Parsed(text, "marked") if text in choices.letters else unread("not_an_option", text)


def read_text(text: str, choices: Choices) -> Parsed | None:
    """The exact text of one option."""
    letter = match_text(text, choices)
    single = len(undress(text).strip("()[]. ")) == 1 and text.strip("()[]. *").isalpha()
    return recovered(letter) if letter and not single else None


def read_labels(text: str, choices: Choices) -> Parsed | None:
    """The last choice that is announced as the answer, in words or in a JSON field."""
    read = [(start, end, read_field(value, choices)) for start, end, value in json_places(text)]
    fields = [(start, end, field) for start, end, field in read if field is not None]
    if differ_side_by_side(text, fields):
        return unread("contradiction", text)
    found = [(start, field) for start, _, field in fields]
    rest = text
    for start, end, _ in fields:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    rest = drop_quotations(rest, ANY_LABEL)
    for match in own_labels(STRONG_LABEL, rest):
        found.append((match.start(), _labelled(rest, match, choices)))
    for match in own_labels(WEAK_LABEL, rest):
        weak = _labelled(rest, match, choices)
        if weak.reason != "no_verdict":
            found.append((match.start(), weak))
    decided = CHOOSE["labelled"](sorted(found, key=lambda pair: pair[0]))
    if decided is None:
        return None
    lead = None if listed_letters(rest, choices) else read_choice(rest.split("\n")[0], choices)
    said = {lead.value} if lead is not None and isinstance(lead.value, str) else set()
    return _agree(decided, said | lone_letters(rest, choices))


def choose_last(found: list[tuple[int, Parsed]]) -> Parsed | None:
    """The last of several announced answers, readable or not."""
    return found[-1][1] if found else None


CHOOSE: dict[str, Callable[[list[tuple[int, Parsed]]], Parsed | None]] = {"labelled": choose_last}


def _labelled(text: str, label: re.Match[str], choices: Choices) -> Parsed:
    line = text[label.end() : label.end() + REACH].lstrip(" \t*_\"'`\n").split("\n", 1)[0]
    parsed = read_choice(line, choices)
    if parsed is not None:
        return parsed
    sentence = re.split(r"(?<=\w)[.!?](?:\s|$)", line, maxsplit=1)[0]
    by_text = match_text(sentence, choices)
    if by_text:
        return recovered(by_text)
    return unread("hedged" if HEDGE.match(undress(line)) else "no_verdict", line)


ANSWER_KEYS = frozenset(
    {"answer", "letter", "choice", "option", "selected", "selection", "verdict", "result"}
    | {"response", "output", "prediction", "selectedoption", "antwort"}
    | {"finalanswer", "correctanswer", "answerletter", "答案", "选项"}
)


def read_field(value: Any, choices: Choices) -> Parsed | None:
    """The choice in a JSON object's answer field; None when it has no such field."""
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], str):
            return read_choice(value[0], choices)
        letters = {v for v in value if isinstance(v, str) and v in choices.letters}
        return unread("several_letters") if len(letters) > 1 else None
    hits = [k for k in value if re.sub(r"[\W_]", "", k.lower()) in ANSWER_KEYS]
    if any(k in twice_given(value) for k in hits):
        return unread("contradiction")
    read = [_read_value(value[k], choices) for k in hits]
    if len({p.value for p in read if p.value}) > 1:
        return unread("contradiction")
    return read[0] if read else None


def _read_value(value: Any, choices: Choices) -> Parsed:
    if isinstance(value, list | dict):
        return read_field(value, choices) or unread("no_verdict")
    if isinstance(value, bool) or value is None:
        return unread("no_verdict")
    return read_choice(str(value), choices) or unread("no_verdict")


def lone_letters(text: str, choices: Choices) -> set[str]:
    """The letters that stand alone on the first or the last line."""
    lines = [undress(line).strip("()[]. ") for line in text.split("\n") if line.strip()]
    return {line for line in lines[:1] + lines[-1:] if len(line) == 1 and line in choices.letters}


def _agree(parsed: Parsed, others: set[str]) -> Parsed:
    if parsed.value is not None and others - {parsed.value}:
        return unread("contradiction", parsed.note)
    return parsed


def read_whole(text: str, choices: Choices) -> Parsed | None:
    """A reply that begins with its choice; a list that weighs every option is no choice."""
    parsed = read_choice(text, choices)
    if parsed is None:
        return None
    if listed_letters(text, choices):
        final = final_letter(text, choices)
        return recovered(final) if final else unread("several_letters", parsed.note)
    return _agree(parsed, lone_letters(text, choices))


def listed_letters(text: str, choices: Choices) -> set[str]:
    """The letters that begin the lines of a reply that goes through its options, at least two."""
    lines = "\n".join(undress(line) for line in text.split("\n"))
    starts = set(re.findall(r"^\s*[(\[*]*([A-Z])(?:[)\].:*]|\s*$)", lines, re.MULTILINE))
    listed = {s for s in starts if s in choices.letters}
    return listed if len(listed) > 1 else set()


_LAST_LETTER = re.compile(r"[.!?:;。]\s+[(\[]?(?P<letter>[A-Z])[)\]]?[.!]?\s*\Z")


def final_letter(text: str, choices: Choices) -> str | None:
    """The letter alone on the last line, if no other line holds another letter alone."""
    lines = [undress(line).strip("()[]. ") for line in text.split("\n") if line.strip()]
    lone = {line for line in lines if len(line) == 1 and line in choices.letters}
    return lines[-1] if len(lines) > 1 and lone == {lines[-1]} else None


def read_end(text: str, choices: Choices) -> Parsed | None:
    """A choice on the last line, or as the last sentence of a reply."""
    final = final_letter(text, choices)
    if final:
        return recovered(final)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        starts = [TOKEN.match(undress(line)) for line in lines[:-1]]
        listed = [m for m in starts if m and m["letter"] in choices.letters and m["bare"] is None]
        parsed = None if listed else read_choice(lines[-1], choices)
        if parsed is not None:
            return _agree(parsed, lone_letters(text, choices))
    match = _LAST_LETTER.search(undress(drop_quotations(text)))
    if match is None or match["letter"] not in choices.letters:
        return None
    return recovered(match["letter"])


_BOLD = re.compile(r"(?:\*\*|__)\s*(.+?)\s*(?:\*\*|__)")
_MENTION = re.compile(
    r"\b(?:[Oo]ption|[Cc]hoice)\s+[(\[]?([A-Z])[)\]]?\s+(?:is\s+(?:the\s+)?(?:correct|right|best|answer)|matches|fits)\b"
    r"|(?<![\w(])\(?([A-Z])\)?\s+(?:is|ist|est|es)\s+(?:the\s+|die\s+|la\s+)?"
    r"(?:correct|right|best|answer|richtige?|korrekt|bonne|correcte|correcta)\b"
)


def read_emphasis(text: str, choices: Choices) -> Parsed | None:
    """The one choice that a reply sets in bold or calls correct."""
    bold = [read_choice(words, choices) for words in _BOLD.findall(text)]
    said = {p.value for p in bold if p is not None and p.value}
    said |= {m[1] or m[2] for m in _MENTION.finditer(undress(text)) if (m[1] or m[2])}
    letters = {s for s in said if isinstance(s, str) and s in choices.letters}
    if len(letters) > 1:
        return unread("several_letters")
    return recovered(letters.pop()) if letters and not HEDGE.search(text) else None


LETTER_STEPS: dict[str, Callable[[str, Choices], Parsed | None]] = {
    "alone": read_alone,
    "text": read_text,
    "labels": read_labels,
    "whole": read_whole,
    "end": read_end,
    "emphasis": read_emphasis,
}


def parse_letter(
    text: str,
    options: Sequence[str],
    *,
    uncertain: str | None = UNCERTAIN,
    finish_reason: str | None = None,
) -> Parsed:
    r"""The letter that a reader's reply chooses.

    `options` are texts without letters; with `uncertain`, one more option of that text follows
    them. A lone capital letter is the protocol's own form. Other forms count if they leave no
    doubt; the last announced answer decides. Only its letter or its exact text chooses the
    uncertain option: "the caption does not say" is prose.

    >>> parse_letter("B", ["red", "blue"]).how
    'marked'
    >>> parse_letter("Answer: (B) blue", ["red", "blue"])
    Parsed(value='B', how='recovered', reason=None, note='blue')
    >>> parse_letter("B: red", ["red", "blue"]).reason
    'contradiction'
    """
    choices = Choices((*options, uncertain) if uncertain is not None else tuple(options))
    visible = split_thinking(text)[1].strip()
    cleaned = clean(text)
    if not cleaned:
        reason = blank_reason(text, reasoning=None, finish_reason=finish_reason)
        return unread(reason or "no_verdict")
    for name, step in LETTER_STEPS.items():
        parsed = step(visible if name == "alone" else cleaned, choices)
        if parsed is not None:
            return settle(parsed, finish_reason)
    return settle(unread(why_none(cleaned)), finish_reason)
