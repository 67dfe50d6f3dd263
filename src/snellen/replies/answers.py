"""The reader of answers, and the verdicts that it reads.

Only an answer that is bare or announced is read: the protocol's markers, a JSON field, an answer
that stands alone once its dress is off, or the last announced one ("Final answer: C"). Prose is
never guessed at: a reply that needs it is unreadable, hence asked again. The words that the reader
knows stand in `vocabulary.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from snellen.replies import vocabulary as words
from snellen.replies.official import NO_MARKERS, official_verdict
from snellen.replies.text import (
    NOTE_CHARS,
    Parsed,
    drop_quotations,
    json_places,
    open_reply,
    recovered,
    twice_given,
    undress,
    unread,
)

# How far behind its announcement an answer may reach.
LONGEST_LINE = 2000


def _any(known: Iterable[str]) -> str:
    """A pattern for any of the known words, each whole where its script parts words by spaces."""
    longest_first = sorted(set(known), key=len, reverse=True)
    bounded = [w for w in longest_first if w[0].isalpha() and ord(w[0]) < 0x2E80]
    free = [w for w in longest_first if w not in bounded]
    parts = [rf"(?<!\w)(?:{_either(bounded)})(?!\w)"] if bounded else []
    return "(?:" + "|".join([*parts, *([_either(free)] if free else [])]) + ")"


def _either(known: Sequence[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"\s{1,3}") for word in known)


_DRESS = r"[ \t*_`\"'#>()\[\]{}【】$✓✔✅–—-]{0,12}"
_LINKED = (
    rf"{_DRESS}(?:(?P<word>{_any(words.COPULAS)})?\s{{0,3}}(?P<sign>{_either(words.SIGNS)})|(?P<copula>{_any(words.COPULAS)})"
    r"|(?P<heading>(?=\n)))"
)
_MARKER = re.compile(r"\[\s{0,4}(?:judge|your judge?ment|judge?ment|verdict)\s{0,4}\]", re.I)


def announcement(names: Iterable[str], verbs: Iterable[str] = ()) -> re.Pattern[str]:
    """A name of the answer at the start of a line or sentence, up to where the answer begins."""
    chosen = rf"|{_any(verbs)}" if verbs else ""
    connected = _any(("so", "thus", "therefore", "hence", "所以", "因此"))
    return re.compile(
        rf"(?P<start>^|(?<=[.!?;])\s{{1,3}}|(?<=[。！？；])|(?<=[,，])\s{{0,3}}(?={connected}))"
        rf"{_DRESS}(?:{_any(words.QUALIFIERS)}[\s,*_]{{0,4}}){{0,5}}"
        rf"(?:(?P<name>{_any(names)}){_DRESS}(?:{_any(words.AFTERNAMES)}\s{{0,3}})?{_LINKED}{chosen})",
        re.IGNORECASE | re.MULTILINE,
    )


_TURN = re.compile(_any(words.TURNS), re.I)
_HEDGE = re.compile(_any(words.HEDGES), re.I)
_COMPARED = re.compile(_any(words.COMPARED), re.I)
_SECTION = re.compile(rf"\s*+{_DRESS}{_any(words.SECTIONS)}\s{{0,3}}{_DRESS}[:：=\]]", re.I)
_RESTATED = re.compile(
    rf"^{_DRESS}(?:the\s{{1,3}})?{_any(words.RESTATED)}[^:：\n]{{0,40}}[:：]", re.I | re.M
)
_REPORT = re.compile(_any(words.REPORTS), re.I)
_FINAL = re.compile(_any(("final", "最终", "最終", "endgültige", "finale")), re.I)
_LABELLED = re.compile(r"[:：=\]】\n]")
_NUMBER = re.compile(
    r"[-+]?\d{1,12}(?:[.,]\d{1,12})?\s{0,3}"
    r"(?:(?:/|⁄|out of|of)\s{0,3}\d{1,12}(?:[.,]\d{1,12})?|%|percent|points?|stars?)?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer and where it stands; `rank` is 0 for a lone line, 1 announced, 2 final, 3 JSON."""

    start: int
    end: int
    parsed: Parsed
    rank: int


@dataclass(frozen=True, slots=True)
class Kind:
    """What is read: how an answer looks bare and in JSON, and what announces one.

    `reads_sentences`: an announced answer may end with its sentence; else it needs its line.
    """

    bare: Callable[[str], Parsed | None]
    field: Callable[[object], Parsed | None]
    announced: re.Pattern[str]
    shared: re.Pattern[str] | None = None
    lone: Callable[[str], bool] = lambda text: True
    reads_sentences: bool = False


def read_answer(text: str, kind: Kind) -> Parsed:
    """The answer of a cleaned reply that is bare or announced, or why there is none."""
    whole = kind.bare(text)
    if whole is not None:
        return whole
    fields = [(a, b, kind.field(value)) for a, b, value in json_places(text)]
    found = [_Found(a, b, p, 3) for a, b, p in fields if p is not None]
    # JSON becomes blanks, so that places stay.
    starts, ends = [0, *(b for _, b, _ in fields)], [*(a for a, _, _ in fields), len(text)]
    between = zip(starts, ends, [0, *ends], strict=False)
    text = "".join(text[start:end].rjust(end - last) for start, end, last in between)
    text = drop_quotations(text, _LABELLED)
    found += _announcements(text, kind)
    lines = _lone_lines(text, kind)
    if not found and len({f.parsed.value for f in lines}) > 1:
        return unread("contradiction" if kind.shared else "several_letters", text)
    decided = _decide(found, lines, is_verdict=kind.shared is not None)
    if decided is None:
        decided = _lone_line(text, lines, kind)
    if decided is None:
        return unread(why_none(text), text)
    if decided.parsed.value is not None and decided.rank < 3:
        reason = _taken_back(text[decided.end :], kind)
        return unread(reason, text) if reason else decided.parsed
    return decided.parsed


def _announcements(text: str, kind: Kind) -> list[_Found]:
    """The announced answers, readable or not, in their order."""
    labels = [m for m in kind.announced.finditer(text) if not _is_reported(text, m.start())]
    if kind.shared is not None:
        labels += _MARKER.finditer(text)
        last = kind.shared.search(text, text.rstrip().rfind("\n") + 1)
        if last and last["sign"] and not last["start"] and not _RESTATED.search(text):
            labels.append(last)
        labels.sort(key=lambda m: m.start())
    ends = [m.start() for m in labels[1:]] + [len(text)]
    found = (_value(text, m, end, kind) for m, end in zip(labels, ends, strict=False))
    return [value for value in found if value is not None]


def _is_reported(text: str, at: int) -> bool:
    """Whether the line before the one at a place announces somebody else's words."""
    before = text[max(0, at - 400) : at]
    lines = [line for line in before[: before.rfind("\n") + 1].split("\n") if line.strip()]
    return (
        bool(lines)
        and lines[-1].rstrip(" *_").endswith((":", "："))
        and bool(_REPORT.search(lines[-1]))
    )


def _value(text: str, label: re.Match[str], end: int, kind: Kind) -> _Found | None:
    """The answer behind a label, on its line or on the next that is not blank.

    `end` is where the next label begins; None where that follows at once, as in a heading.
    """
    start = label.end()
    while start < end and text[start] in " \t\n*_`:#":
        start += 1
    if start >= end < len(text):
        return None
    line = text[start : min(end, start + LONGEST_LINE)].split("\n", 1)[0]
    while inner := kind.announced.match(line):
        start, line = start + inner.end(), line[inner.end() :]
    parsed, stop = kind.bare(line), len(line)
    if label.groupdict().get("copula") and re.fullmatch(r"[a-z][.!]?", line.strip()):
        # "The answer is a" has not been ended.
        parsed = unread("no_verdict", line)
    if parsed is None and kind.reads_sentences:
        sentence = re.match(r".{0,300}?(?<=[\w)\]*\"”])[.!。](?=\s|$)", line)
        first = kind.bare(sentence[0]) if sentence else None
        if sentence and first is not None and first.value is not None:
            rest = kind.bare(line[sentence.end() :])
            parsed = unread("contradiction", line) if rest else first
            stop = sentence.end()
    if parsed is None:
        parsed = unread(why_none(line), line)
    rank = 2 if _FINAL.search(label[0]) else 1
    return _Found(label.start(), start + stop, parsed, rank)


def _lone_lines(text: str, kind: Kind) -> list[_Found]:
    """The lines that are an answer and nothing else."""
    found: list[_Found] = []
    read: dict[str, Parsed | None] = {}
    at = 0
    for line in text.split("\n"):
        if line not in read:
            read[line] = kind.bare(line) if line.strip() and kind.lone(line) else None
        parsed = read[line]
        if parsed is not None and parsed.value is not None:
            found.append(_Found(at, at + len(line), parsed, 0))
        at += len(line) + 1
    return found


def _decide(found: list[_Found], lines: list[_Found], *, is_verdict: bool) -> _Found | None:
    """The last announced answer, unless another differs; a final one settles earlier ones."""
    if not found:
        return None
    if any(f.rank == 3 for f in found):
        chosen = [f for f in found if f.rank == 3]
        unreadable = next((f for f in chosen if f.parsed.value is None), None)
        if unreadable is not None:
            return unreadable
        rivals = [f for f in [*found, *lines] if f.parsed.value is not None]
    else:
        chosen = [f for f in found if f.rank == 2] or found
        last = found[-1] if found[-1].start > chosen[-1].start else chosen[-1]
        if last.parsed.value is None:
            return last
        rivals = [f for f in chosen if f.parsed.value is not None] + [last]
        listed = {f.parsed.value for f in lines if f.end < last.start}
        if is_verdict or len(listed) == 1:
            rivals += lines
        else:
            # Options that are listed first are not answers.
            rivals += [f for f in lines if f.start > last.start]
    winner = max(chosen, key=lambda f: f.start)
    if any(f.parsed.value != winner.parsed.value for f in rivals):
        return replace(winner, parsed=unread("contradiction", winner.parsed.note))
    return winner


def _lone_line(text: str, lines: list[_Found], kind: Kind) -> _Found | None:
    """An answer alone on the last line, or, where that is enough, alone on the first."""
    if not lines:
        return None
    before = text[: lines[-1].start].rstrip(" \t\n*_")
    if not text[lines[-1].end :].strip():
        return None if before.endswith((":", "：", "?", "？")) else lines[-1]
    first = lines[0]
    if not kind.reads_sentences or text[: first.start].strip():
        return None
    others = set(_CAPITAL.findall(text, first.end)) - {first.parsed.value}
    return None if others else first


_CAPITAL = re.compile(r"(?<![A-Za-z'’])[A-HJ-Z](?![A-Za-z'’])")


def _taken_back(rest: str, kind: Kind) -> str | None:
    """The reason why what follows an announced answer makes prose of it; None where it does not."""
    if not rest.strip(" \t\n*_`.\"'”)]") or (kind.shared and _SECTION.match(rest)):
        return None
    rest = rest[:2000]
    if _HEDGE.search(rest):
        return "hedged"
    if kind.shared:
        return "contradiction" if _TURN.search(rest) or _COMPARED.search(rest) else None
    turned = re.search(rf"(?:^|[.,;!?\n。，；！？])\s{{0,3}}{_any(words.TURNS)}", rest, re.I)
    return "contradiction" if turned else None


def why_none(text: str) -> str:
    """The reason why a text that was not read has no answer."""
    if text.strip().lower() in words.NULLS:
        return "no_verdict"
    head = text[:300].lower()
    if any(refusal in head for refusal in words.REFUSALS):
        return "refusal"
    if _HEDGE.search(text[:2000]) or (len(text) < 40 and text.rstrip().endswith("?")):
        return "hedged"
    said = set(re.findall(r"\b(?:true|false)\b", text[:80].lower()))
    return "contradiction" if len(said) == 2 and len(text) < 80 else "no_verdict"


def settle(parsed: Parsed, finish_reason: str | None) -> Parsed:
    """What was read, seen in the light of why the reply ended."""
    if finish_reason == "length" and parsed.how != "marked":
        return unread("truncated", parsed.note)
    if finish_reason == "content_filter" and parsed.value is None:
        return unread("content_filter", parsed.note)
    return parsed


def _stripped(text: str) -> str:
    """A short text without brackets, final stops and connectors around it."""
    short = undress(text)
    if len(short) > 200 or "\n" in short:
        return ""
    for connector in words.CONNECTORS:
        cut = without_start(short, connector).strip(" ,:")
        short = cut or short
    return short.strip(" \t\"'“”‘’«»`*.!。,;:、()[]{}<>【】（）")


def without_start(text: str, word: str) -> str:
    rest = text[len(word) :] if text.lower().startswith(word) else text
    return text if word.isascii() and rest[:1].isalnum() else rest


# Verdicts


def _bare_verdict(text: str) -> Parsed | None:
    if len(text) > 300:
        return None
    found = {**words.REPLIED, **words.JUDGED}.get(_word(text))
    if found is None:
        number = undress(text).rstrip(" .!。,;")
        if _NUMBER.fullmatch(number):
            return unread("not_binary")
        return None
    return unread("hedged", text) if undress(text).endswith(("?", "？")) else recovered(found)


def _word(text: str) -> str:
    """A verdict word in the spelling of the table; a sign beside it that agrees is left out."""
    plain = " ".join(undress(text).strip(" .!?。？,;:、()[]{}<>【】").lower().split())
    if plain in words.JUDGED or plain in words.REPLIED:
        return plain
    parts = plain.replace("\ufe0f", "").split(" ", 1)
    if len(parts) == 2 and parts[0] in ("✅", "✓", "✔", "❌", "✗", "✘"):
        agrees = {**words.REPLIED, **words.JUDGED}.get(parts[1]) is words.JUDGED[parts[0]]
        return parts[1] if agrees else ""
    return " ".join(_stripped(plain).split())


def read_boolean(value: object) -> Parsed:
    """A JSON value or a short text that should be one verdict and nothing else.

    >>> [read_boolean(v).value for v in (True, "false", 0, "No")]
    [True, False, False, False]
    >>> read_boolean(0.5).reason
    'not_binary'
    """
    if isinstance(value, bool):
        return recovered(value)
    if isinstance(value, int | float):
        return recovered(bool(value)) if value in (0, 1) else unread("not_binary")
    if not isinstance(value, str):
        return unread("no_verdict")
    return _bare_verdict(value) or unread(why_none(value), value)


def _verdict_field(value: object) -> Parsed | None:
    """The verdict of a JSON object: its verdict fields must agree. None if it has no such field."""
    if isinstance(value, list):
        return _verdict_field(value[0]) if len(value) == 1 else None
    if not isinstance(value, dict):
        return None
    note = next((str(value[k]) for k in words.NOTE_KEYS if k in value), "")
    for keys in (words.VERDICT_KEYS, words.SECOND_KEYS):
        hits = [k for k in value if plain_key(k) in keys]
        if any(k in twice_given(value) for k in hits):
            return unread("contradiction", note)
        said = [_verdict_field(value[k]) or read_boolean(value[k]) for k in hits]
        if said:
            return replace(agreed(said), note=note[:NOTE_CHARS])
    inner = [v for v in value.values() if isinstance(v, dict)]
    return _verdict_field(inner[0]) if len(inner) == len(value) == 1 else None


def plain_key(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def agreed(said: Sequence[Parsed]) -> Parsed:
    values = {p.value for p in said if p.value is not None}
    if len(values) > 1:
        return unread("contradiction")
    return next((p for p in said if p.value is None), said[0])


_VERDICT = Kind(
    _bare_verdict,
    _verdict_field,
    announcement(words.VERDICT_NAMES),
    announcement(words.SHARED_NAMES),
    lone=lambda text: _word(text) in words.JUDGED,
)
_CLOSING = re.compile(r"\[/(?:reason|judge)\]")


def parse_verdict(text: str, *, finish_reason: str | None = None) -> Parsed:
    """The verdict of a judge's reply under the direct protocol.

    With `[reason]` and `[judge]`, the section after the last `[judge]` decides. Without them, a
    bare verdict, a JSON field, or the last announced verdict does. A reply that the endpoint cut
    off counts only in the protocol's own form.

    >>> parse_verdict("[reason] same colour [judge] True")
    Parsed(value=True, how='marked', reason=None, note='same colour')
    >>> parse_verdict("Verdict: False").how
    'recovered'
    >>> parse_verdict("Yes, the answer does not match the reference.").reason
    'no_verdict'
    """
    cleaned = open_reply(text, finish_reason)
    if isinstance(cleaned, Parsed):
        return cleaned
    parsed = _read_markers(cleaned, text) or read_answer(cleaned, _VERDICT)
    return settle(parsed, finish_reason)


def _read_markers(cleaned: str, text: str) -> Parsed | None:
    """The section after the last `[judge]` of a reply that has both of the protocol's markers.

    A reading is `marked` only where the official script reads the reply itself alike.
    """
    plain = _CLOSING.sub(" ", cleaned.translate(str.maketrans("【】", "[]")))
    own = drop_quotations(plain, _MARKER)
    plain = own if "[judge]" in own else plain
    if "[reason]" not in plain or "[judge]" not in plain:
        return None
    note = plain.split("[judge]", 1)[0].rsplit("[reason]", 1)[-1].strip()[:NOTE_CHARS]
    section = plain.rsplit("[judge]", 1)[1].split("[reason]", 1)[0].strip(" :\n")
    parsed = _bare_verdict(section)
    if parsed is None:
        first = re.match(r"[\W_]{0,20}(true|false)\b[*_`\"')\]]{0,8}", section, re.I)
        rest = section[first.end() :] if first else ""
        if first and (reason := _taken_back(rest, _VERDICT)):
            parsed = unread(reason, section)
        elif first:
            parsed = recovered(first[1].lower() == "true")
        else:
            parsed = read_answer(section, _VERDICT) if section else unread("no_verdict")
    official = official_verdict(text)
    is_alike = official.note != NO_MARKERS and official.value is parsed.value
    return replace(parsed, how="marked" if is_alike else parsed.how, note=note)


def parse_statement(text: str, *, finish_reason: str | None = None) -> Parsed:
    """Whether one rubric holds, from a reply to a prompt that asks for it alone.

    >>> parse_statement("true").value, parse_statement("<Result>false</Result>").value
    (True, False)
    """
    cleaned = open_reply(text, finish_reason)
    if isinstance(cleaned, Parsed):
        return cleaned
    pieces = [piece for piece in re.split(r"<[^<>]*+>", cleaned) if piece.strip()]
    if len(pieces) == 1 and "<" in cleaned and _word(pieces[0]) in ("true", "false"):
        return settle(recovered(_word(pieces[0]) == "true"), finish_reason)
    parsed = parse_verdict(text, finish_reason=finish_reason)
    alone = undress(cleaned).strip(" .").lower() in ("true", "false")
    return replace(parsed, how="marked") if alone and parsed.value is not None else parsed
