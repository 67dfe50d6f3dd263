"""A reply's text made ready for reading: thoughts apart, dress off, JSON found, blanks named.

Every function here takes time in proportion to the length of its text.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from snellen.records import JsonObject

NOTE_CHARS = 200
# A judge's reply that is longer once thoughts are off is not read: no form asks for so much.
LONGEST_READ = 50_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says: `value` is a letter, a boolean, a group's booleans, or None.

    `how` is `marked` for the protocol's own form, `recovered` for another form that leaves no
    doubt, and empty when nothing was read. `reason` says why nothing was read:

    `empty`, `truncated`, `thought_only`, `refusal`, `content_filter`, `too_long`: there is no
    answer that can be read;
    `contradiction` (two answers), `conflict` (two versions of one answer), `several_letters`,
    `hedged`, `placeholder`, `not_binary` (a number that is neither 0 nor 1), `not_an_option`,
    `no_verdict` (prose): there is one that does not count;
    `missing_group`, `wrong_count`, `wrong_ids`, `unreadable_item`: a list of answers is not the
    one asked for.

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


@dataclass(frozen=True, slots=True)
class ThoughtMark:
    """How one family of models opens and closes its thoughts.

    `must_close`: the opening counts only where the closing follows. `judge_only`: a tested caption
    may hold its description in such tags, so only a judge's are thoughts.
    """

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    must_close: bool = False
    judge_only: bool = False


def _mark(opening: str, closing: str, **how: bool) -> ThoughtMark:
    return ThoughtMark(re.compile(opening, re.I), re.compile(closing, re.I), **how)


def _literal(opening: str, closing: str) -> ThoughtMark:
    return _mark(re.escape(opening), re.escape(closing))


def _tag(name: str, **how: bool) -> ThoughtMark:
    return _mark(rf"<\s{{0,4}}{name}\s{{0,4}}>", rf"<\s{{0,4}}/\s{{0,4}}{name}\s{{0,4}}>", **how)


# A chat template may swallow the opening of these; the closing then stands alone.
_PREFILLED = (
    _tag("think"),
    _tag("thinking"),
    _tag("thought"),
    _tag("seed:think"),
    _tag("reasoning", must_close=True),
    _literal("[think]", "[/think]"),
    _literal("◁think▷", "◁/think▷"),
    _literal("<|begin_of_thought|>", "<|end_of_thought|>"),
    _literal("<|start_thinking|>", "<|end_thinking|>"),
    # Gemma
    _literal("<unused94>thought", "<unused95>"),
    _literal("<|channel>thought", "<channel|>"),
)
THOUGHT_MARKS: tuple[ThoughtMark, ...] = (
    *_PREFILLED,
    # gpt-oss: every channel but the final one, with its marks and without them
    _mark(
        r"(?:<\|start\|>\w{1,40})?<\|channel\|>\s{0,4}(?!final)\w{1,40}[^<]{0,200}"
        r"(?:<\|constrain\|>[^<]{0,100})?<\|message\|>",
        r"<\|(?:end|call|return)\|>|(?=<\|(?:start|channel)\|>)",
    ),
    _mark("analysis", "assistantfinal", must_close=True),
    _tag("thoughts", must_close=True, judge_only=True),
    _tag("analysis", must_close=True, judge_only=True),
    _tag("reflection", must_close=True, judge_only=True),
    _tag("scratchpad", must_close=True, judge_only=True),
)
_LEADING = tuple(mark for mark in THOUGHT_MARKS if not mark.judge_only)
_ENDS_THOUGHT = re.compile("|".join(mark.closing.pattern for mark in _PREFILLED), re.I)
_BEGINS = re.compile(r"\S")
_FINAL_CHANNEL = re.compile(
    r"(?:<\|start\|>\w{1,40})?<\|channel\|>\s{0,4}final[^<]{0,100}"
    r"(?:<\|constrain\|>[^<]{0,100})?<\|message\|>"
)
_TURN_STARTS = re.compile(
    r"(?:\s|<\|im_start\|>(?:assistant)?|<start_of_turn>(?:model)?|<\|start\|>assistant"
    r"|<\|begin_of_text\|>|<[｜|]begin▁of▁sentence[｜|]>|<s>|<bos>"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>)*+"
)
_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|return|eot|end_of_turn)\|>"
    r"|<end_of_turn>|<turn\|>|<eos>|<[｜|]end▁of▁sentence[｜|]>|</s>|\[/INST\]"
)
# A word of every mark: most replies hold none.
_MAY_THINK = re.compile(r"think|thought|reason|channel|unused|analysis|reflection|scratch", re.I)


def _may_think(text: str) -> bool:
    """Whether a text may hold a mark of thoughts: most replies hold none, which is soon seen."""
    signs = any(sign in text for sign in "<[◁") or "assistantfinal" in text
    return signs and _MAY_THINK.search(text) is not None


def split_thinking(text: str) -> tuple[str | None, str]:
    """The thoughts at the start of a reply (None when there are none), and what follows them.

    The marks are those of `THOUGHT_MARKS`. Thoughts that were never closed leave nothing. A
    closing mark whose opening the chat template swallowed ends thoughts too, unless nothing
    follows: then the text stays as it is, mark included (see `drop_doubtful_mark`). Tags further
    inside are left alone: a caption may well quote one. A mark that ends the turn cuts what
    follows.

    >>> split_thinking("<think>red or crimson?</think>True<|im_end|>")
    ('red or crimson?', 'True')
    >>> split_thinking("red or crimson?</think>True")
    ('red or crimson?', 'True')
    >>> split_thinking("True")
    (None, 'True')
    """
    if not _may_think(text):
        return None, _cut_turn(text)
    thoughts, at = _leading_thoughts(text)
    if not thoughts and at == 0:
        closing = _ENDS_THOUGHT.search(text)
        if closing and not any(m.opening.search(text, 0, closing.start()) for m in _PREFILLED):
            before, after = text[: closing.start()], text[closing.end() :]
            if _cut_turn(after).strip():
                more, start = _leading_thoughts(after)
                return "\n".join((before, *more)), _cut_turn(after[start:])
            return (None, text) if before.strip() else ("", "")
    return ("\n".join(thoughts) if thoughts else None), _cut_turn(text[at:])


def _leading_thoughts(text: str) -> tuple[list[str], int]:
    """The blocks of thought that a text begins with, and where they end."""
    thoughts: list[str] = []
    at = 0
    while True:
        found = _BEGINS.search(text, at)
        start = found.start() if found else at
        for mark in _LEADING:
            opening = mark.opening.match(text, start)
            closing = opening and mark.closing.search(text, opening.end())
            if opening and (closing or not mark.must_close):
                break
        else:
            final = _FINAL_CHANNEL.match(text, start)
            return thoughts, final.end() if final else at
        if closing is None:
            return [*thoughts, text[opening.end() :]], len(text)
        thoughts.append(text[opening.end() : closing.start()])
        at = closing.end()


def _cut_turn(text: str) -> str:
    """The text without marks that begin a turn, up to the first that ends one."""
    if "<" not in text and "[/INST]" not in text:
        return text
    start = _TURN_STARTS.match(text)
    began = start is not None and "<" in start[0]
    body = text[start.end() :] if start is not None and began else text
    for end in _TURN_ENDS.finditer(body):
        # HTML strikes text out between <s> and </s>.
        if end[0] != "</s>" or "<s>" not in body[: end.start()]:
            return body[: end.start()]
    return body


def drop_doubtful_mark(text: str) -> str | None:
    """The text before a closing mark of thoughts behind which nothing stands; None without one.

    Whether such a text is the answer or a thought cannot be told.

    >>> drop_doubtful_mark("A blue car.</think>")
    'A blue car.'
    """
    if not _may_think(text):
        return None
    closing = _ENDS_THOUGHT.search(text)
    if closing is None or _cut_turn(text[closing.end() :]).strip():
        return None
    if any(mark.opening.search(text, 0, closing.start()) for mark in _PREFILLED):
        return None
    return text[: closing.start()].strip() or None


def drop_thinking(text: str) -> str:
    """A judge's reply without any thoughts, wherever they stand; blank where all may be thought."""
    if drop_doubtful_mark(text) is not None:
        return ""
    rest = split_thinking(text)[1]
    if not _may_think(rest):
        return rest
    for mark in THOUGHT_MARKS:
        if mark.opening.pattern != "analysis":
            kept: list[str] = []
            at = 0
            while opening := mark.opening.search(rest, at):
                closing = mark.closing.search(rest, opening.end())
                if closing is None and mark.must_close:
                    break
                kept += (rest[at : opening.start()], " ")
                at = closing.end() if closing else len(rest)
            rest = "".join(kept) + rest[at:]
    return _ENDS_THOUGHT.split(rest)[-1]


# Letters and symbols by category, yet nothing on a screen.
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f") | set(map(chr, range(0xFE00, 0xFE10)))


def drop_invisible(text: str) -> str:
    """The text without characters that show nothing and part nothing (zero width, controls)."""
    if text.isascii() and text.isprintable():
        return text
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


_FENCE_LINE = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+-]*+[ \t]*+$", re.MULTILINE)
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|rm|bf)\s*+\{([^{}]*+)\}")
_LATEX_PARENS = re.compile(r"\\[()\[\]]")
# Forms that announce by themselves: \boxed{B}, [[B]], <answer>B</answer>.
_BOXES = (
    re.compile(r"\\boxed\s*+\{([^{}]*+)\}"),
    re.compile(r"\[\[([^\[\]\n]{1,200}+)\]\]"),
    re.compile(
        r"<\s*+(?:verdict|answer|final_answer|judge?ment|judge|decision|choice|option)\s*+>"
        r"([^<]*+)<\s*+/\s*+\w++\s*+>",
        re.IGNORECASE,
    ),
)
_STYLE_TAG = re.compile(
    r"<\s*+/?+\s*+(?:strong|em|span|br|code|b|i|u|p)\s*+/?+\s*+>", re.IGNORECASE
)
_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029|\x85")
_SPECIAL_TOKEN = re.compile(r"<[|｜][\w ▁]{2,40}[|｜]>|</?s>|<(?:end|start)_of_turn>|\[/?INST\]")


def unfence(text: str) -> str:
    """Without the lines that open and close code fences."""
    return _FENCE_LINE.sub("", text)


def unbox(text: str) -> str:
    r"""LaTeX and answer tags as plain text; what is boxed or tagged becomes an announced line.

    >>> unbox(r"so \boxed{\text{B}}").split("\n")
    ['so ', 'Final answer: B', '']
    """
    text = _LATEX.sub(r"\1", _LATEX_PARENS.sub("", text))
    for box in _BOXES:
        text = box.sub(lambda m: f"\nFinal answer: {m[1].strip()}\n", text)
    return text


def clean(text: str, *, unboxed: bool = True) -> str:
    """A judge's reply as the parsers read it; `unboxed` makes announced lines of boxes and tags.

    What is longer than `LONGEST_READ` is cut one character above it and left in its dress.

    >>> clean("<think>True?</think>Ｆａｌｓｅ")
    'False'
    """
    text = drop_thinking(_LINE_ENDS.sub("\n", text)).strip()
    if len(text) <= LONGEST_READ:
        text = unicodedata.normalize("NFKC", _SPECIAL_TOKEN.sub(" ", text))
    if len(text) > LONGEST_READ:
        return text[: LONGEST_READ + 1]
    text = _STYLE_TAG.sub(" ", unfence(drop_invisible(text)))
    return (unbox(text) if unboxed else text).strip()


def open_reply(text: str, finish_reason: str | None, *, unboxed: bool = True) -> str | Parsed:
    """A judge's reply made ready for reading, or why there is nothing to read in it."""
    cleaned = clean(text, unboxed=unboxed)
    if len(cleaned) > LONGEST_READ:
        return unread("truncated" if finish_reason == "length" else "too_long")
    if cleaned:
        return cleaned
    if finish_reason == "content_filter":
        return unread("content_filter")
    reason = blank_reason(text, reasoning=None, finish_reason=finish_reason)
    return unread(reason or "thought_only")


_EMPHASIS = re.compile(r"\*+|_{2,}|~~|`+|\$|(?<!\w)_|_(?!\w)")
_LINE_START = re.compile(r"^[ \t]*+(?:#{1,6}[ \t]++|>[ \t]*+|[-•‣][ \t]++)++", re.MULTILINE)
WRAPPERS = " \t\n\"'“”‘’«»「」『』"


def undress(text: str) -> str:
    """Without emphasis, heading signs, list bullets and quotes around the whole.

    >>> undress('## "**True**"')
    'True'
    """
    return _EMPHASIS.sub("", _LINE_START.sub("", text)).strip(WRAPPERS)


_QUOTED = re.compile(
    r'(?<!\w)"(?=\S)[^"]{1,4000}?(?<=\S)"(?!\w)'
    r"|“[^“”]{1,4000}+”|«[^«»]{1,4000}+»|「[^「」]{1,4000}+」|『[^『』]{1,4000}+』"
    r"|‘[^‘’\n]{1,400}+’(?!\w)|(?<!\w)'(?=\S)[^'\n]{1,400}?(?<=\S)'(?!\w)"
    r"|`[^`\n]{1,400}+`|^[ \t]*+>.*$",
    re.MULTILINE,
)


def drop_quotations(text: str, holding: re.Pattern[str]) -> str:
    """The text with the quotations blanked out that hold a match of `holding`.

    What a judge quotes is somebody else's word: the tested answer's, or the caption's. A text that
    is nothing but one quotation is kept.

    >>> drop_quotations('It says "Verdict: True".', re.compile("Verdict:")).split()
    ['It', 'says', '.']
    """
    kept = _QUOTED.sub(lambda m: " " * len(m[0]) if holding.search(m[0]) else m[0], text)
    return kept if kept.strip(" .\n\t") else text.strip().strip("\"'“”«»「」『』`> ")


_STRINGS = r'"(?:\\.|[^"\\])*+(?:"|\Z)|\'(?:\\.|[^\'\\])*+(?:\'|\Z)'
_COMMENT = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_COMMENTS = re.compile(rf"({_STRINGS})|{_COMMENT}", re.DOTALL)
_LOOSE = re.compile(rf"({_STRINGS})|,(?=\s*+[}}\]])|\b(True|False|None)\b", re.DOTALL)
_BRACKETS = re.compile(rf"{_STRINGS}|{_COMMENT}|[\[\]{{}}]", re.DOTALL)
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
# Brackets that hold no JSON are gone through again from inside, in all this often at most.
_READINGS = 4


class _Twice(dict[str, object]):
    """A JSON object in which a key stood twice with different values: `twice` names such keys."""

    twice: frozenset[str] = frozenset()


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = _Twice(pairs)
    values.twice = frozenset(k for k, v in pairs if values[k] != v)
    return values


def twice_given(value: object) -> frozenset[str]:
    """The keys that an object found by `json_places` gave twice, with different values."""
    return value.twice if isinstance(value, _Twice) else frozenset()


def json_places(text: str) -> Iterator[tuple[int, int, JsonObject | list[object]]]:
    """Every outermost JSON object or list in a text, as (start, end, value).

    Comments, trailing commas, raw line ends in strings, single quotes and Python's words are
    forgiven. What is not closed is not there.
    """
    at, left = 0, _READINGS * len(text)
    while left > 0 and (opening := _OPENING.search(text, at)):
        start = opening.start()
        end = _closing(text, start)
        value = _loads(text[start:end]) if end else None
        if end and isinstance(value, dict | list):
            yield start, end, value
            at = end
        else:
            left -= (end or len(text)) - start
            at = start + 1


_OPENING = re.compile(r"[{\[]")


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


def _loads(text: str) -> object:
    for loosened in (False, True):
        try:
            source = loosen_json(text) if loosened else text
            return json.loads(source, object_pairs_hook=_pairs, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def loosen_json(text: str) -> str:
    r"""Almost-JSON as JSON: without comments and trailing commas, with JSON's quotes and words.

    >>> loosen_json("{'ok': True,} // done").strip()
    '{"ok": true}'
    """

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return _as_json_string(match[1])
        return _PYTHON_WORDS.get(match[2] or "", "")

    return _LOOSE.sub(replace, _COMMENTS.sub(lambda m: m[1] or " ", text))


def _as_json_string(quoted: str) -> str:
    if quoted.startswith('"'):
        return quoted
    try:
        return json.dumps(ast.literal_eval(quoted.replace("\n", "\\n")))
    except (ValueError, SyntaxError):
        return json.dumps(quoted[1:-1])
