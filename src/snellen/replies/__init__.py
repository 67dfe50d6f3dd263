"""Everything that reads a judge's reply, and everything that fences a tested text, in one place.

cleaning.py      thoughts, blanks, dress, quotations, JSON, and what a parser returns
verdicts.py      true or false
letters.py       multiple choice
several.py       multiple choice, several questions a call
assessments.py   groups of rubrics
official.py      the published parsers, to the letter
fences.py        tested texts that cannot break out of a prompt
"""

from __future__ import annotations

from snellen.replies.assessments import parse_assessment
from snellen.replies.cleaning import Parsed, blank_reason, find_json, split_thinking
from snellen.replies.fences import fence, fence_caption
from snellen.replies.letters import UNCERTAIN, parse_letter
from snellen.replies.official import normalize_escape, official_letter_captionqa, official_verdict
from snellen.replies.several import parse_letters
from snellen.replies.verdicts import parse_statement, parse_verdict

__all__ = [
    "UNCERTAIN",
    "Parsed",
    "blank_reason",
    "fence",
    "fence_caption",
    "find_json",
    "normalize_escape",
    "official_letter_captionqa",
    "official_verdict",
    "parse_assessment",
    "parse_letter",
    "parse_letters",
    "parse_statement",
    "parse_verdict",
    "split_thinking",
]
