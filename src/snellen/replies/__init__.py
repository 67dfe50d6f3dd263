"""Everything that reads a judge's reply, and everything that fences a tested text, in one place.

text.py       thoughts, blanks, dress, quotations, JSON, and what a parser returns
answers.py    the reader of answers, and verdicts
letters.py    multiple choice, one question a call or several
vocabulary.py the words that the reader knows
typed.py      JSON of a type
groups.py     groups of rubrics
official.py   the published parsers, to the letter
fences.py     tested texts that cannot break out of a prompt
"""

from __future__ import annotations

from snellen.replies.answers import parse_statement, parse_verdict
from snellen.replies.fences import fence, fence_caption, soften_turns
from snellen.replies.groups import parse_assessment
from snellen.replies.letters import UNCERTAIN, parse_letter, parse_letters
from snellen.replies.official import normalize_escape, official_letter_captionqa, official_verdict
from snellen.replies.text import Parsed, blank_reason, split_thinking
from snellen.replies.typed import UnreadableError, json_reply, json_schema

__all__ = [
    "UNCERTAIN",
    "Parsed",
    "UnreadableError",
    "blank_reason",
    "fence",
    "fence_caption",
    "json_reply",
    "json_schema",
    "normalize_escape",
    "official_letter_captionqa",
    "official_verdict",
    "parse_assessment",
    "parse_letter",
    "parse_letters",
    "parse_statement",
    "parse_verdict",
    "soften_turns",
    "split_thinking",
]
