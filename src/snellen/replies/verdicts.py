"""True or false: the verdict of a judge's reply, or why it has none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from snellen.replies.cleaning import (
    ATTRIBUTED,
    NOTE_CHARS,
    Parsed,
    blank_reason,
    clean,
    differ_side_by_side,
    drop_quotations,
    json_places,
    recovered,
    twice_given,
    undress,
    unread,
)
from snellen.replies.official import NO_MARKERS, official_verdict

WORDS: dict[str, bool] = {
    "true": True, "yes": True, "correct": True, "right": True, "pass": True, "passed": True,
    "false": False, "no": False, "incorrect": False, "wrong": False, "untrue": False,
    "fail": False, "failed": False, "not true": False, "not correct": False, "not right": False,
    "正确": True, "正確": True, "对": True, "對": True, "是": True, "是的": True, "符合": True,
    "完全正确": True, "完全正確": True, "完全错误": False, "完全錯誤": False,
    "真": True, "假": False,
    "不正确": False, "不正確": False, "错误": False, "錯誤": False, "错": False, "不对": False,
    "不對": False, "不是": False, "否": False, "不符合": False,
    "wahr": True, "richtig": True, "korrekt": True, "ja": True, "falsch": False, "nein": False,
    "unwahr": False, "nicht wahr": False, "nicht richtig": False, "nicht korrekt": False,
    "vrai": True, "oui": True, "faux": False, "non": False, "verdadero": True, "sí": True,
    "falso": False,
    "correcto": True, "correcta": True, "incorrecto": False, "incorrecta": False,
    "верно": True, "правильно": True, "да": True, "неверно": False, "неправильно": False,
    "нет": False, "صحيح": True, "صحيحة": True, "نعم": True, "خطأ": False, "خاطئة": False,
    "غير صحيح": False, "غير صحيحة": False, "لا": False, "正しい": True, "誤り": False,
    "참": True, "거짓": False,
    "✅": True, "✓": True, "✔": True, "❌": False, "✗": False, "✘": False,
}  # fmt: skip
NUMBERS: dict[str, bool] = {"1": True, "0": False, "1.0": True, "0.0": False}
_NULLS = frozenset({"", "null", "none", "nil", "nan", "n/a", "undefined"})


def _alternatives(words: list[str]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(w).replace(r"\ ", r"\s+") for w in longest_first)


_WORD = rf"(?<![A-Za-z0-9_])(?:{_alternatives(list(WORDS))})(?![A-Za-z0-9_])"
# A colon may follow true and false alone: "Correct: 5" names the right answer.
LEAD = re.compile(
    rf"[(\[{{]*(?:(?:答案|回答|判定|判断|结论|结果|الإجابة)\s*(?:是|为)?\s*)?(?P<word>{_WORD})的?\s*[)\]}}]*"
    r"(?=$|\s*[.,;!)\]。，；、！(\n/|✅✓✔❌✗✘]|\s+[-–]\s|\s*—|\s+(?:because|since|as|for|but|if|or|and)\b"
    r"|(?<=[eE])\s*:)",
    re.IGNORECASE,
)
# A tick beside a word says the same; a tick beside the opposite word does not.
_SIGNED_WORD = re.compile(
    r"^(?:[✅✓✔]\ufe0f?\s*(?=true|yes|correct|right|pass)|[❌✗✘]\s*(?=false|no|incorrect|wrong|fail))",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"\s*(?:[/|]|or\b|and\b)", re.IGNORECASE)
_ABOUT_IT = (
    r"(?:the|this|my|your|student['’]?s?|model['’]?s?|assistant['’]?s?|given|tested|die|la|\s)*"
    r"(?:(?:answer|response|reply|prediction|statement|verdict|judge?ment|result)\s+is"
    r"|(?:antwort|aussage)\s+ist|réponse\s+est|respuesta\s+es)"
)
_SENTENCE = re.compile(
    rf"(?:{_ABOUT_IT}|(?:this|that|it)(?:\s+is|['’]s))\s+(?P<word>{_WORD})\s*[.!]*",
    re.IGNORECASE,
)
_CLOSING_SENTENCE = re.compile(
    r"(?:(?:so|thus|therefore|hence|overall|in conclusion|in short)\s*,?\s*)?"
    rf"{_ABOUT_IT}\s+(?P<word>{_WORD})\s*[.!]*",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"[-+]?\d+(?:[.,]\d+)?\s*(?:(?:/|⁄|out of|of)\s*\d+(?:[.,]\d+)?|%|percent|points?|stars?)?",
    re.IGNORECASE,
)

HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibl[ey]|probabl[ey]|likely|unlikely|partial|partially|partly|mostly"
    r"|half|halfway|somewhat|almost|nearly|arguably|unsure|not\s+(?:entirely\s+|quite\s+)?"
    r"(?:sure|certain|clear|fully|completely|entirely|quite)|uncertain|unclear|undecided|ambiguous|borderline"
    r"|depends|debatable|inconclusive|mixed|either|neither|cannot|can't|could\s+be|might|it\s+seems"
    r"|i\s+guess|i\s+suppose|unknown|teilweise|vielleicht|wahrscheinlich|partiellement|peut-être"
    r"|parcialmente|quizás|частично|возможно|جزئيا|ربما)\b|可能|也许|部分|基本|不确定|不太|大概|-ish\b",
    re.IGNORECASE,
)
# In the words after a verdict only doubt about the verdict counts: "True, half of it is red".
DOUBT = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|partially|partly|unsure|uncertain|arguably|depends"
    r"|not\s+(?:entirely\s+)?(?:sure|certain)|i\s+guess|i\s+suppose|could\s+be\s+either"
    r"|teilweise|vielleicht|wahrscheinlich|partiellement|peut-être|parcialmente|quizás|частично"
    r"|возможно|جزئيا|ربما)\b"
    r"|^\W*(?:if\b|(?:but\s+)?(?:i\s+think|mostly|largely|almost|nearly|somewhat|more\s+or\s+less|in\s+part"
    r"|not\s+really|not\s+quite|(?:kind|sort)\s+of)\W*$)|可能|也许|部分|不确定|大概",
    re.IGNORECASE,
)
_CONTRARY = re.compile(
    r"\b(?P<bare>true|false|wahr|falsch|vrai|faux|verdadero|falso)\b"
    r"|(?:\b|(?='))(?:is|are|was|be|so|but|thus|therefore|hence|actually|marked?|answered|answer|it's|that's|'s)\s+(?:\w+\s+)?"
    r"(?P<said>not\s+correct|correct|incorrect|wrong)\b"
    r"(?!\s+(?:answer|one|option|value|word|name|number|reading|term|colou?r))",
    re.IGNORECASE,
)
# After a verdict these words take it back; which of yes and no does depends on the verdict.
_TAKEN_BACK = re.compile(
    r"(?:^|[.!,;:\n。，；！…–—]\s*)(?:(?:but|oh|hmm+|actually)\W{1,3}){0,3}"
    r"(?:(?:wait|hold\s+on|scratch\s+that|on\s+second\s+(?:thought|look)|correction|let\s+me\s+re)\b"
    r"|等等|等一下|(?<!\n)(?P<no>(?:no|nein|non)(?=\s*[.,!]|\s*$)|不[,，])"
    r"|(?<!\n)(?P<yes>(?:yes|ja|oui)(?=\s*[.,!]|\s*$)))",
    re.IGNORECASE,
)
_CONTRARY_IN_CHINESE = re.compile(
    r"(?<!没有)(?<!沒有)(?<!无)(?<!不是)(?P<word>不正确|不正確|不对|不對|错误|錯誤|(?<!不)正确|(?<!不)正確)的?(?=[。，；！,.!;\s]|$)"
)
REFUSAL = re.compile(
    r"\b(?:i\s*(?:'m|’m|\s+am)\s+sorry|sorry\s*,|i\s+apologi[sz]e|i\s+(?:can(?:'t|’t|not)|am\s+(?:not\s+able|unable)"
    r"|'m\s+(?:not\s+able|unable)|won(?:'t|’t)|must\s+decline)|as\s+an\s+ai\b|unable\s+to\s+(?:help|assist|comply))"
    r"|对不起|抱歉|无法(?:回答|协助|提供)",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"{_WORD}\s*\?+", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.!?\n;。；！？]")

MARKER = re.compile(r"\[\s*(?:judge|your\s+judge?ment|judge?ment|verdict)\s*\]", re.IGNORECASE)
# How far around its name a verdict is looked for, in characters.
REACH = 400
_NAMES = (
    r"verdict|judge(?:ment)?|judgment|decision|判定|判断|判斷|结论|結論|评判|裁定|final\s+answer"
    r"|urteil|veredicto|вердикт|الحكم|판정"
)
_WEAK_NAMES = (
    r"(?:is[_ ])?correct(?:ness)?|result|score|grade|rating|conclusion|pass(?:ed)?|satisfied|结果"
)
# A name and a colon promise a verdict; the other forms count only if one follows.
STRONG_LABEL = re.compile(
    rf"(?:{MARKER.pattern}[\"'*_\s]*[:=]?"
    rf"|(?<![A-Za-z])(?:{_NAMES})[\"'*_`\])]*\s*(?:is\s*:|[:=]+|->|→|⇒|=>))[ \t*_\"'`]*",
    re.IGNORECASE,
)
WEAK_LABEL = re.compile(
    rf"(?:(?<![A-Za-z])(?:{_NAMES})(?:\s+(?:is|was|为)\b|\s+[-–—]+\s)"
    rf"|(?:^|(?<=[\n,{{]))[\s\"'*_#-]{{0,40}}+"
    rf"(?:answer|antwort|respuesta|ответ|الإجابة|{_WEAK_NAMES})[\"'*_`]*\s*[:=]+)[ \t*_\"'`]*",
    re.IGNORECASE,
)
ANY_LABEL = re.compile(
    rf"{MARKER.pattern}|(?:{_NAMES}|correct|answer)[\"'*_\s]*(?:is\b|[:=])", re.IGNORECASE
)
CONDITION = re.compile(r"\b(?:would|if|unless|had|were|suppose|imagine|could)\b", re.IGNORECASE)

VERDICT_KEYS = frozenset(
    {
        "correct",
        "iscorrect",
        "verdict",
        "finalverdict",
        "judge",
        "judgment",
        "judgement",
        "decision",
        "answercorrect",
        "isanswercorrect",
        "answeriscorrect",
    }
    | {"判定", "结论"}
)
SECOND_KEYS = frozenset(
    {"result", "score", "grade", "pass", "passed", "satisfied", "met", "label", "value", "rating"}
    | {"answer", "status"}
)
_NOTE_KEYS = ("reason", "reasoning", "explanation", "justification", "why", "理由")


def read_boolean(value: Any) -> Parsed:
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
    return read_lead(value) or unread(why_none(undress(value)))


def read_lead(text: str) -> Parsed | None:
    """The verdict that a text begins with, if nothing after it takes it back; None without one."""
    body = _SIGNED_WORD.sub("", undress(text))
    short = body.rstrip(" .!。,;")
    if NUMBER.fullmatch(short):
        known = NUMBERS.get(short)
        return unread("not_binary") if known is None else recovered(known)
    match = LEAD.match(body) or _SENTENCE.fullmatch(body)
    if match is None:
        return None
    value = WORDS[re.sub(r"\s+", " ", match["word"].lower())]
    rest = body[match.end() :]
    if _CHOICE.match(rest) or says_otherwise(rest, value) or takes_back(rest, value):
        return unread("contradiction", body)
    if DOUBT.search(_CLAUSE_END.split(rest.lstrip(" .,;!"))[0]) or rest.startswith("?"):
        return unread("hedged", body)
    return recovered(value, rest.strip(" .,;:!-–—()\n"))


def says_otherwise(text: str, value: bool) -> bool:
    """Whether a text states the opposite verdict in words of its own (quotations apart)."""
    for match in _CONTRARY.finditer(drop_quotations(text)):
        word = re.sub(r"\s+", " ", (match["bare"] or match["said"]).lower())
        if WORDS[word] != value:
            return True
    found = _CONTRARY_IN_CHINESE.finditer(drop_quotations(text))
    return any(WORDS[match["word"]] != value for match in found)


def takes_back(text: str, value: bool) -> bool:
    """Whether the words after a verdict call it off: "wait", "scratch that", or the other word.

    >>> takes_back(". Hold on, the units differ.", True), takes_back(". No, they differ.", False)
    (True, False)
    """
    found = _TAKEN_BACK.finditer(drop_quotations(text))
    return any(not (match["yes"] if value else match["no"]) for match in found)


def why_none(text: str) -> str:
    """The reason why a text without a verdict has none."""
    if text.strip().lower() in _NULLS:
        return "no_verdict"
    if REFUSAL.search(text[:300]):
        return "refusal"
    if HEDGE.search(text) or _ASKED.fullmatch(undress(text)):
        return "hedged"
    said = {WORDS[w.lower()] for w in re.findall(r"\b(?:true|false)\b", text, re.IGNORECASE)}
    return "contradiction" if len(said) == 2 and len(text) < 80 else "no_verdict"


def read_markers(text: str) -> Parsed | None:
    """The section after the last `[judge]` of a reply that has both of the protocol's markers."""
    text = plain_markers(text)
    text = _unless_all(drop_quotations(text, MARKER), text)
    if "[reason]" not in text or "[judge]" not in text:
        return None
    section = judge_section(text)
    note = text.split("[judge]", 1)[0].rsplit("[reason]", 1)[-1].strip()[:NOTE_CHARS]
    word = undress(section).strip(" .!。[](){}<>:\n").lower()
    if word in ("true", "false"):
        return Parsed(word == "true", "marked", None, note)
    found = _first(section, ("labels", "whole", "edges")) or unread(why_none(section))
    as_official = found.value is ("true" in section.lower()) and found.value is not None
    return replace(found, how="marked" if as_official else found.how, note=note)


_CLOSING = re.compile(r"\[/(?:reason|judge)\]")
_LENTICULAR = str.maketrans("【】", "[]")


def plain_markers(text: str) -> str:
    """The text with lenticular brackets made square, and without markers that close a section."""
    return _CLOSING.sub(" ", text.translate(_LENTICULAR))


def judge_section(text: str) -> str:
    """What follows the last `[judge]`, up to a `[reason]`: an earlier one is part of the reasoning.

    >>> judge_section("[reason] a [judge] b [judge] True [reason] c")
    ' True '
    """
    return text.rsplit("[judge]", 1)[1].split("[reason]", 1)[0]


def _unless_all(kept: str, text: str) -> str:
    return kept if "[judge]" in kept else text


def read_labels(text: str) -> Parsed | None:
    """The last verdict that carries a name, in words (`Verdict: True`) or as a JSON field."""
    places = list(json_places(text))
    read = [(start, end, read_object(value)) for start, end, value in places]
    found = [(start, end, p) for start, end, p in read if p is not None]
    if differ_side_by_side(text, found):
        return unread("contradiction", text)
    rest = text
    for start, end, value in places:
        if isinstance(value, dict):
            rest = rest[:start] + " " * (end - start) + rest[end:]
    rest = drop_quotations(rest, ANY_LABEL)
    strong = [(at, p) for at, _, p in found]
    strong += [(m.start(), _labelled(rest, m)) for m in own_labels(STRONG_LABEL, rest)]
    weak = [(m.start(), _labelled(rest, m)) for m in own_labels(WEAK_LABEL, rest)]
    weak = [(at, p) for at, p in weak if p.reason != "no_verdict"]
    decided = CHOOSE["labelled"](sorted(strong or weak, key=lambda pair: pair[0]))
    if decided is None:
        return None
    lead = read_lead(rest)
    said = {lead.value} if lead is not None and isinstance(lead.value, bool) else set()
    return _agree(decided, said | lone_verdicts(rest))


def clause_before(text: str, at: int) -> str:
    """The words of the same clause that stand before a place in a text."""
    return _CLAUSE_END.split(text[max(0, at - REACH) : at])[-1]


def own_labels(label: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The labels that the judge gives, without those that it reports of somebody else."""
    found = label.finditer(text)
    return [m for m in found if not ATTRIBUTED.search(clause_before(text, m.start()))]


def choose_last(found: list[tuple[int, Parsed]]) -> Parsed | None:
    """The last of several marked verdicts, readable or not: there is no walking back."""
    return found[-1][1] if found else None


CHOOSE: dict[str, Callable[[list[tuple[int, Parsed]]], Parsed | None]] = {"labelled": choose_last}


def _labelled(text: str, label: re.Match[str]) -> Parsed:
    before = clause_before(text, label.start())
    if CONDITION.search(before):
        return unread("hedged", before)
    after = text[label.end() : label.end() + REACH].lstrip(" \t*_#\"'`")
    line = after.lstrip().split("\n", 1)[0]
    stop = STRONG_LABEL.search(line)
    clause = line[: stop.start()] if stop else line
    # Marks that pair up across the label are dress: **Verdict: True**
    return read_lead(clause) or unread(why_none(undress(clause)), clause)


def read_object(value: Any) -> Parsed | None:
    """The verdict of a JSON object: its verdict fields must agree. None if it has no such field."""
    if isinstance(value, list):
        return read_object(value[0]) if len(value) == 1 else None
    if not isinstance(value, dict):
        return None
    note = next((str(value[k]) for k in _NOTE_KEYS if k in value), "")
    for keys in (VERDICT_KEYS, SECOND_KEYS):
        hits = [k for k in value if re.sub(r"[\W_]", "", k.lower()) in keys]
        if any(k in twice_given(value) for k in hits):
            return unread("contradiction", note)
        nested = [read_object(value[k]) for k in hits if isinstance(value[k], dict)]
        read = [read_boolean(value[k]) for k in hits if not isinstance(value[k], dict)]
        read += [p for p in nested if p is not None]
        if read:
            return replace(_one_of(read), note=note[:NOTE_CHARS])
    inner = [v for v in value.values() if isinstance(v, dict)]
    return read_object(inner[0]) if len(inner) == len(value) == 1 else None


def _one_of(read: list[Parsed]) -> Parsed:
    values = {p.value for p in read}
    if {True, False} <= values:
        return unread("contradiction")
    return next((p for p in read if p.value is None), read[0])


def lone_verdicts(text: str) -> set[bool]:
    """The verdicts that stand alone on the first or the last line."""
    lines = [line for line in text.split("\n") if line.strip()]
    said = {WORDS.get(undress(line).strip(" .!。()").lower()) for line in lines[:1] + lines[-1:]}
    return {v for v in said if v is not None}


def _agree(parsed: Parsed, others: set[bool]) -> Parsed:
    if isinstance(parsed.value, bool) and (not parsed.value) in others:
        return unread("contradiction", parsed.note)
    return parsed


def read_whole(text: str) -> Parsed | None:
    """A reply that begins with its verdict."""
    parsed = read_lead(text)
    return parsed and _agree(parsed, lone_verdicts(text))


_LAST_SENTENCE = re.compile(
    r"[.!?。:]\s*\(?(?P<word>true|false|correct|incorrect)\)?[\s.!*]*\Z", re.IGNORECASE
)


def read_edges(text: str) -> Parsed | None:
    """A reply that ends with a verdict on a line, or in a sentence, of its own."""
    lone = lone_verdicts(text)
    if len(lone) == 2:
        return unread("contradiction")
    if lone:
        return recovered(lone.pop())
    bare = undress(drop_quotations(text))
    match = _LAST_SENTENCE.search(bare) or _closing_sentence(bare)
    if match is None or ATTRIBUTED.search(clause_before(bare, match.start())):
        return None
    value = WORDS[re.sub(r"\s+", " ", match["word"].lower())]
    if says_otherwise(bare[: match.start()], value):
        return unread("contradiction")
    return recovered(value, bare[: match.start()])


def _closing_sentence(text: str) -> re.Match[str] | None:
    """The last sentence if it says whether the answer is right, after sentences without doubt."""
    start = max((m.end() for m in re.finditer(r"[.!?]\s+|\n", text)), default=0)
    return None if HEDGE.search(text[:start]) else _CLOSING_SENTENCE.fullmatch(text, start)


def read_emphasis(text: str) -> Parsed | None:
    """The one verdict word that a reply sets in bold."""
    bold = re.findall(r"\*\*\s*(true|false|correct|incorrect)\s*[.!]?\s*\*\*", text, re.IGNORECASE)
    values = {WORDS[word.lower()] for word in bold}
    if len(values) == 2:
        return unread("contradiction")
    value = values.pop() if values else None
    if value is None or HEDGE.search(text):
        return None
    return unread("contradiction") if says_otherwise(text, value) else recovered(value)


VERDICT_STEPS: dict[str, Callable[[str], Parsed | None]] = {
    "markers": read_markers,
    "labels": read_labels,
    "whole": read_whole,
    "edges": read_edges,
    "emphasis": read_emphasis,
}


def _first(text: str, names: tuple[str, ...] | None = None) -> Parsed | None:
    for name in names or tuple(VERDICT_STEPS):
        parsed = VERDICT_STEPS[name](text)
        if parsed is not None:
            return parsed
    return None


def parse_verdict(text: str, *, finish_reason: str | None = None) -> Parsed:
    """The verdict of a judge's reply under the direct protocol.

    With `[reason]` and `[judge]`, the section after the last `[judge]` decides. Without them, the
    last verdict that has a name decides, readable or not; else a verdict that the reply begins or
    ends with. A reply that the endpoint cut off counts only in the protocol's own form.

    >>> parse_verdict("[reason] same colour [judge] True")
    Parsed(value=True, how='marked', reason=None, note='same colour')
    >>> parse_verdict("Verdict: False").how
    'recovered'
    >>> parse_verdict("Half of it fits.").reason
    'hedged'
    """
    cleaned = clean(text)
    if not cleaned:
        reason = blank_reason(text, reasoning=None, finish_reason=finish_reason)
        return unread(reason or "no_verdict")
    parsed = _first(cleaned) or unread(why_none(cleaned))
    return settle(_as_official(parsed, text), finish_reason)


def _as_official(parsed: Parsed, text: str) -> Parsed:
    """A reading is `marked` only where the official script reads the reply itself alike."""
    if parsed.how != "marked":
        return parsed
    official = official_verdict(text)
    alike = official.note != NO_MARKERS and official.value is parsed.value
    return parsed if alike else replace(parsed, how="recovered")


def settle(parsed: Parsed, finish_reason: str | None) -> Parsed:
    """What was read, seen in the light of why the reply ended."""
    if finish_reason == "length" and parsed.how != "marked":
        return unread("truncated", parsed.note)
    if finish_reason == "content_filter" and parsed.value is None:
        return unread("content_filter", parsed.note)
    return parsed


_TAGGED = re.compile(
    r"\s*(?:<\s*\w+[^<>]*>\s*)+(?P<word>true|false)\s*(?:<\s*/\s*\w+\s*>\s*)+", re.IGNORECASE
)


def parse_statement(text: str, *, finish_reason: str | None = None) -> Parsed:
    """Whether one rubric holds, from a reply to a prompt that asks for it alone.

    >>> parse_statement("true").value, parse_statement("<Result>false</Result>").value
    (True, False)
    """
    tagged = _TAGGED.fullmatch(clean(text))
    if tagged is not None:
        return settle(recovered(tagged["word"].lower() == "true"), finish_reason)
    parsed = parse_verdict(text, finish_reason=finish_reason)
    alone = undress(clean(text)).strip(" .").lower() in ("true", "false")
    return replace(parsed, how="marked") if alone and parsed.value is not None else parsed
