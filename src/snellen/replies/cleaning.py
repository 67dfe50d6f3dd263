"""From a reply's text to what can be read: thoughts apart, dress off, JSON found, blanks named.

The parsers of verdicts (`verdicts.py`), letters (`letters.py`, `several.py`) and assessments
(`assessments.py`) stand on this file; the package gathers them. Every parser is a table of named
steps, tried in order; a step that does not apply gives None. A reply that cannot be read has a
reason, never a value.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

NOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says: `value` is a letter, a boolean, a group's booleans, or None.

    `how` is `marked` for the protocol's own form, `recovered` for another form that leaves no
    doubt, and empty when nothing was read. `reason` says why nothing was read:

    `empty`, `truncated`, `thought_only`, `refusal`, `content_filter`: there is no answer;
    `contradiction` (two answers), `conflict` (two versions of one answer), `several_letters`,
    `hedged`, `negated`, `placeholder`, `not_binary` (a number that is neither 0 nor 1),
    `not_an_option`, `no_verdict` (prose): there is one that does not count;
    `missing_group`, `wrong_count`, `unreadable_item`: a list of answers is not the one asked for.

    `note` is the judge's stated reason, at most 200 characters. `parts` are the results of a group
    that cannot be read whole but names each rubric by an id: None where a rubric has two results.
    """

    value: str | bool | tuple[bool, ...] | None
    how: Literal["marked", "recovered", ""] = ""
    reason: str | None = None
    note: str = ""
    parts: tuple[bool | None, ...] = field(default=(), repr=False)


def unread(reason: str, note: str = "") -> Parsed:
    """A reply that was not read, and why."""
    return Parsed(None, "", reason, note[:NOTE_CHARS])


def recovered(value: str | bool | tuple[bool, ...], note: str = "") -> Parsed:
    """An answer outside of the protocol's form that leaves no doubt."""
    return Parsed(value, "recovered", None, note[:NOTE_CHARS])


THOUGHT_TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<unused94>thought", "<unused95>"),
)
# A judge thinks in these too; in a tested caption they may hold the description itself.
_ASIDE_TAG = re.compile(
    r"<\s*(?P<name>reasoning|reflection|scratchpad|analysis|thoughts)\s*>.*?<\s*/\s*(?P=name)\s*>",
    re.DOTALL | re.IGNORECASE,
)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<body>.*?)(?=<\|(?:end|start|channel|return|call)\|>|\Z)",
    re.DOTALL,
)
_BARE_CHANNELS = re.compile(r"\s*analysis(.*?)assistantfinal(.*)", re.DOTALL)


def split_thinking(text: str) -> tuple[str | None, str]:
    """The thoughts at the start of a reply (None when there are none), and what follows them.

    Knows think tags, a closing tag whose opening the chat template swallowed, and the channels of
    gpt-oss. A block that was never closed leaves nothing. Tags further inside are left alone:
    a caption may well quote one.

    >>> split_thinking("<think>red or crimson?</think>True")
    ('red or crimson?', 'True')
    >>> split_thinking("red or crimson?</think>True")
    ('red or crimson?', 'True')
    >>> split_thinking("True")
    (None, 'True')
    """
    channels = _split_channels(text)
    if channels is not None:
        return channels
    thoughts: list[str] = []
    rest = text
    while (split := _split_once(rest)) is not None:
        thoughts.append(split[0])
        rest = split[1]
    return ("\n".join(thoughts) if thoughts else None), rest


def _split_channels(text: str) -> tuple[str | None, str] | None:
    bare = _BARE_CHANNELS.fullmatch(text)
    if bare:
        return bare[1], bare[2]
    if not text.lstrip().startswith(("<|channel|>", "<|start|>")):
        return None
    parts = [(m["name"], m["body"]) for m in _CHANNEL.finditer(text)]
    if not parts:
        return None
    thoughts = [body for name, body in parts if name != "final"]
    final = "".join(body for name, body in parts if name == "final")
    return ("\n".join(thoughts) if thoughts else None), final


def _split_once(text: str) -> tuple[str, str] | None:
    lowered = text.lower()
    if "think" not in lowered and "thought" not in lowered:
        return None
    start = len(text) - len(text.lstrip())
    for opening, closing in THOUGHT_TAGS:
        end = lowered.find(closing)
        if lowered.startswith(opening, start):
            body = start + len(opening)
            end = lowered.find(closing, body)
            return (text[body:], "") if end < 0 else (text[body:end], text[end + len(closing) :])
        if end >= 0 and opening not in lowered[:end]:
            return text[:end], text[end + len(closing) :]
    return None


def drop_thinking(text: str) -> str:
    """A judge's reply without any thoughts, wherever they stand."""
    rest = split_thinking(text)[1]
    for opening, closing in THOUGHT_TAGS:
        block = re.escape(opening) + r".*?(?:" + re.escape(closing) + r"|\Z)"
        rest = re.sub(block, " ", rest, flags=re.DOTALL | re.IGNORECASE)
    return _ASIDE_TAG.sub(" ", rest)


# Letters and symbols by category, yet nothing on a screen.
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f") | set(map(chr, range(0xFE00, 0xFE10)))


def drop_invisible(text: str) -> str:
    """The text without characters that show nothing and part nothing (zero width, controls)."""
    return "".join(
        c
        for c in text
        if c in "\n\t" or (c not in _UNSEEN and unicodedata.category(c) not in ("Cf", "Cc", "Cs"))
    )


def blank_reason(
    text: str | None, *, reasoning: str | None, finish_reason: str | None, refusal: bool = False
) -> str | None:
    """Why a reply has no answer in it: `empty`, `truncated`, `thought_only`, or None when it has.

    `reasoning` is what the endpoint sent beside the text; `refusal` its own flag. A refusal in
    words is an answer.

    >>> blank_reason("\u200b\\n", reasoning=None, finish_reason="stop")
    'empty'
    >>> blank_reason("<think>a cat, or", reasoning=None, finish_reason="length")
    'truncated'
    >>> blank_reason("", reasoning="a cat", finish_reason="stop")
    'thought_only'
    """
    thinking, rest = split_thinking(text or "")
    if drop_invisible(rest).strip():
        return None
    if finish_reason == "length":
        return "truncated"
    thoughts = drop_invisible((thinking or "") + (reasoning or "")).strip()
    return "thought_only" if thoughts and not refusal else "empty"


_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_BOXED = re.compile(r"\\boxed\s*\{\s*((?:\\[a-z]+\s*\{[^{}]*\}|[^{}])*)\}")
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|rm|bf)\s*\{([^{}]*)\}")
_LATEX_PARENS = re.compile(r"\\[()\[\]]")
_ANSWER_TAG = re.compile(
    r"<\s*(verdict|answer|final_answer|judge?ment|judge|decision|choice|option)\s*>"
    r"\s*([^<]*?)\s*<\s*/\s*\1\s*>",
    re.IGNORECASE,
)
_STYLE_TAG = re.compile(r"<\s*/?\s*(?:b|i|u|strong|em|p|span|br|code)\s*/?\s*>", re.IGNORECASE)


def fold_width(text: str) -> str:
    """Full-width and other compatibility forms as the plain ones (NFKC)."""
    return unicodedata.normalize("NFKC", text)


def unfence(text: str) -> str:
    """Without the lines that open and close code fences."""
    return _FENCE_LINE.sub("", text)


def unbox(text: str) -> str:
    r"""LaTeX and answer tags as plain text; what is boxed or tagged becomes a labelled line.

    >>> unbox(r"so \boxed{\text{B}}").split("\n")
    ['so ', 'Final answer: B', '']
    """
    text = _LATEX.sub(r"\1", _LATEX_PARENS.sub("", text))
    text = _BOXED.sub(r"\nFinal answer: \1\n", text)
    text = _ANSWER_TAG.sub(r"\nFinal answer: \2\n", text)
    return _STYLE_TAG.sub(" ", text)


def plain_lines(text: str) -> str:
    """One kind of line end and plain spaces, at most three in a row.

    A judge in a loop may send nothing but white space until it is cut off.
    """
    text = re.sub(r"\r\n?|\u2028|\u2029|\x85", "\n", text)
    text = re.sub(r"[^\S\n]{4,}", "   ", text)
    return re.sub(r"(?<=\n)(?: {0,3}\n){3,}", "\n\n", re.sub(r"[^\S\n]", " ", text))


# Replies that are shorter take no time, whatever is in them.
LONG_REPLY = 4000
_LOOP = re.compile(r"(?s)(.{1,20}?)\1{1000,}")


def cut_loops(text: str) -> str:
    """A piece that a judge in a loop gives thousands of times in a row, a thousand times only.

    No count that is asked for comes near it, and no step has to go through a whole loop.

    >>> len(cut_loops("-\\n" * 9000))
    2000
    """
    if len(text) <= LONG_REPLY:
        return text
    return _LOOP.sub(lambda found: found[1] * 1000, text)


_SPECIAL_TOKEN = re.compile(
    r"<[|｜][\w ▁]{2,40}[|｜]>|</?s>|<(?:end|start)_of_turn>|<(?:eos|bos|pad)>|\[/?INST\]"
)


def drop_tokens(text: str) -> str:
    """Without the special tokens that some servers leave in a reply."""
    return _SPECIAL_TOKEN.sub(" ", text)


Step = Callable[[str], str]

CLEANING: dict[str, Step] = {
    "lines": plain_lines,
    "loops": cut_loops,
    "thoughts": drop_thinking,
    "tokens": drop_tokens,
    "width": fold_width,
    "invisible": drop_invisible,
    "fences": unfence,
    "boxes": unbox,
}


def clean(text: str) -> str:
    """A judge's reply as the parsers read it.

    >>> clean("<think>True?</think>Ｆａｌｓｅ")
    'False'
    """
    for step in CLEANING.values():
        text = step(text)
    return text.strip()


_EMPHASIS = re.compile(r"\*+|_{2,}|~~|`+|\$|(?<!\w)_|_(?!\w)")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]*|[-•‣][ \t]+)+", re.MULTILINE)
WRAPPERS = " \t\n\"'“”‘’«»「」『』"


def undress(text: str) -> str:
    """Without emphasis, heading signs, list bullets and quotes around the whole.

    >>> undress('## "**True**"')
    'True'
    """
    return _EMPHASIS.sub("", _LINE_START.sub("", text)).strip(WRAPPERS)


_QUOTED = re.compile(
    r'(?<!\w)"(?=\S)[^"]{1,4000}?(?<=\S)"(?!\w)'
    r"|“[^”]{1,4000}”|«[^»]{1,4000}»|「[^」]{1,4000}」|『[^』]{1,4000}』|‘[^’\n]{1,400}’(?!\w)"
    r"|(?<!\w)'(?=\S)[^'\n]{1,400}?(?<=\S)'(?!\w)"
    r"|`[^`\n]{1,400}`|^[ \t]*>.*$",
    re.MULTILINE,
)


# "The answer says Verdict: True" reports somebody else's verdict, even without quotation marks.
# Only right before the name of a verdict: "it shows a fox, so the answer is B" is the judge's own.
ATTRIBUTED = re.compile(
    r"\b(?:says?|said|saying|reads?|reading|wrote|writes?|writing|written|claims?|claimed|states?"
    r"|stated|contains?|containing|includes?|including|quotes?|quoted|ends?\s+(?:with|in)"
    r"|ending\s+(?:with|in)|prints?|printed|text|words?|line|instruction|injected|embedded|phrase"
    r"|sign|poster|caption's|student's)\b"
    r"(?:(?!\b(?:so|hence|thus|therefore|and|but|then|my|final)\b)[^.!?\n,;]){0,15}$",
    re.IGNORECASE,
)


def drop_quotations(text: str, holding: re.Pattern[str] | None = None) -> str:
    """The text with its quotations blanked out, or only those that hold a match of `holding`.

    What a judge quotes is somebody else's word: the tested answer's, or the caption's. A text that
    is nothing but one quotation is kept.

    >>> drop_quotations('It says "Verdict: True".', re.compile("Verdict:")).split()
    ['It', 'says', '.']
    """

    def blank(match: re.Match[str]) -> str:
        if holding is not None and not holding.search(match[0]):
            return match[0]
        return " " * len(match[0])

    kept = _QUOTED.sub(blank, text)
    return kept if kept.strip(" .\n\t") else text.strip().strip("\"'“”«»「」『』`> ")


_STRINGS = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_COMMENT = re.compile(rf"({_STRINGS})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LOOSE = re.compile(rf"({_STRINGS})|,(?=\s*[}}\]])|\b(True|False|None)\b", re.DOTALL)
_BRACKETS = re.compile(rf"{_STRINGS}|//[^\n]*|/\*.*?\*/|[\[\]{{}}]", re.DOTALL)
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_MAX_TRIES = 60


class _Twice(dict[str, Any]):
    """A JSON object in which a key stood twice with different values: `twice` names such keys."""

    twice: frozenset[str] = frozenset()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = _Twice(pairs)
    values.twice = frozenset(k for k, v in pairs if values[k] != v)
    return values


def twice_given(value: Any) -> frozenset[str]:
    """The keys that an object found by `find_json` gave twice, with different values."""
    return value.twice if isinstance(value, _Twice) else frozenset()


def json_places(text: str) -> Iterator[tuple[int, int, Any]]:
    """Every outermost JSON object or list in a text, as (start, end, value).

    Comments, trailing commas, raw line ends in strings, single quotes and Python's words are
    forgiven. What is not closed is not there.
    """
    at, tries = 0, 0
    while tries < _MAX_TRIES and (start := _next_bracket(text, at)) >= 0:
        tries += 1
        end = _closing(text, start)
        value = _loads(text[start:end]) if end else None
        if end and isinstance(value, dict | list):
            yield start, end, value
            at = end
        else:
            at = start + 1


def _next_bracket(text: str, at: int) -> int:
    places = [p for p in (text.find("{", at), text.find("[", at)) if p >= 0]
    return min(places, default=-1)


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        if match[0] in ("{", "["):
            depth += 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _loads(text: str) -> Any:
    for candidate in (text, mend(text)):
        try:
            return json.loads(candidate, object_pairs_hook=_pairs, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def mend(text: str) -> str:
    r"""Almost-JSON as JSON: without comments and trailing commas, with JSON's quotes and words.

    >>> mend("{'ok': True,} // done").strip()
    '{"ok": true}'
    """

    def loose(match: re.Match[str]) -> str:
        if match[1]:
            return _as_json_string(match[1])
        return _PYTHON_WORDS.get(match[2] or "", "")

    return _LOOSE.sub(loose, _COMMENT.sub(lambda m: m[1] or " ", text))


def _as_json_string(quoted: str) -> str:
    if quoted.startswith('"'):
        return quoted
    try:
        return json.dumps(ast.literal_eval(quoted.replace("\n", "\\n")))
    except (ValueError, SyntaxError):
        return json.dumps(quoted[1:-1])


def differ_side_by_side(text: str, answers: Sequence[tuple[int, int, Parsed]]) -> bool:
    """Whether two JSON answers, each (start, end, answer), differ with no word between them.

    A word between can say that the second corrects the first; without one, neither decides.
    """
    return any(
        a.value is not None and b.value is not None and a.value != b.value
        for (_, end, a), (start, _, b) in pairwise(answers)
        if not text[end:start].strip(" \n,;")
    )


def find_json(text: str) -> Any:
    r"""The one JSON object or list in a reply, out of fences and prose; None without or with two.

    Objects that say the same count as one.

    >>> find_json('```json\n{"correct": true, // same\n "why": "both red",}\n```')
    {'correct': True, 'why': 'both red'}
    >>> find_json('the set {red, blue} is wrong') is None
    True
    """
    values = [value for _, _, value in json_places(CLEANING["thoughts"](text))]
    objects = [v for v in values if isinstance(v, dict)] or values
    if not objects or any(v != objects[0] for v in objects):
        return None
    return objects[0]
