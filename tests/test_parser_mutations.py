"""Each case names a plausible mistake in a parser, makes it, and shows that the case would notice.

A mutation is a real change of one named part of a parser. A case holds if the parser gives the
outcome that is stated, and the mutated parser does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from snellen.replies import (
    UNCERTAIN,
    assessments,
    cleaning,
    letters,
    parse_assessment,
    parse_letter,
    parse_verdict,
    verdicts,
)
from snellen.replies.cleaning import Parsed, recovered, unread

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]
Outcome = tuple[Any, str | None]
NEVER = re.compile(r"(?!)")


def same(text: str) -> str:
    return text


def without_case(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(pattern.pattern, pattern.flags & ~re.IGNORECASE)


def choose_first(found: Any) -> Any:
    return found[0][1] if found else None


def choose_last_readable(found: Any) -> Any:
    return next((p for _, p in reversed(found) if p.value is not None), None)


def keep_quotations(text: str, holding: Any = None) -> str:
    return text


def every_label(label: re.Pattern[str], text: str) -> Any:
    return list(label.finditer(text))


def attr(module: Any, name: str, value: Any) -> Mutation:
    return lambda patch: patch.setattr(module, name, value)


def item(table: dict[str, Any], name: str, value: Any) -> Mutation:
    return lambda patch: patch.setitem(table, name, value)


def both(*mutations: Mutation) -> Mutation:
    def mutate(patch: Patch) -> None:
        for mutation in mutations:
            mutation(patch)

    return mutate


def keep_finish(parsed: Parsed, finish_reason: str | None) -> Parsed:
    return parsed


CLEANING: dict[str, Mutation] = {
    "thoughts count": item(cleaning.CLEANING, "thoughts", same),
    "no NFKC": item(cleaning.CLEANING, "width", same),
    "zero-width characters stay": item(cleaning.CLEANING, "invisible", same),
    "code fences stay": item(cleaning.CLEANING, "fences", same),
    "boxes stay": item(cleaning.CLEANING, "boxes", same),
    "special tokens stay": item(cleaning.CLEANING, "tokens", same),
    "only strict JSON": attr(cleaning, "mend", same),
    "first line only": item(cleaning.CLEANING, "lines", lambda text: text.split("\n")[0]),
}


def truthy(value: Any) -> Parsed:
    return recovered(bool(value))


def rounded(value: Any) -> Parsed:
    if isinstance(value, float):
        return recovered(value >= 0.5)
    return original_read_boolean(value)


original_read_boolean = verdicts.read_boolean


def substring_true(text: str) -> Parsed:
    return recovered("true" in text.lower() or "correct" in text.lower())


def first_section(text: str) -> str:
    return text.split("[judge]")[1]


def to_the_end(text: str) -> str:
    return text.rsplit("[judge]", 1)[1]


def last_word_only(text: str) -> Parsed | None:
    words = re.findall(r"true|false", text, re.IGNORECASE)
    return recovered(words[-1].lower() == "true") if words else None


def any_number(short: str) -> Parsed:
    return recovered(float(re.findall(r"\d+", short)[0]) > 0)


VERDICT: dict[str, Mutation] = {
    **CLEANING,
    "case-sensitive": attr(verdicts, "LEAD", without_case(verdicts.LEAD)),
    "first named verdict wins": item(verdicts.CHOOSE, "labelled", choose_first),
    "walks back to a readable verdict": item(verdicts.CHOOSE, "labelled", choose_last_readable),
    "quotations count": attr(verdicts, "drop_quotations", keep_quotations),
    "reported verdicts count": attr(verdicts, "own_labels", every_label),
    "the letters t-r-u-e anywhere": item(verdicts.VERDICT_STEPS, "whole", substring_true),
    "last true or false anywhere": item(verdicts.VERDICT_STEPS, "whole", last_word_only),
    "doubt is not heard": both(attr(verdicts, "DOUBT", NEVER), attr(verdicts, "HEDGE", NEVER)),
    "contradiction is not seen": attr(verdicts, "says_otherwise", lambda text, value: False),
    "lone lines are not compared": attr(verdicts, "lone_verdicts", lambda text: set()),
    "a non-empty string is true": attr(verdicts, "read_boolean", truthy),
    "numbers are rounded": attr(verdicts, "read_boolean", rounded),
    "a number above zero passes": attr(
        verdicts,
        "NUMBERS",
        {**verdicts.NUMBERS, "2": True, "7/10": True, "80%": True, "10/10": True},
    ),
    "finish reason ignored": attr(verdicts, "settle", keep_finish),
    "first [judge] section": attr(verdicts, "judge_section", first_section),
    "closing and lenticular markers not known": attr(verdicts, "plain_markers", same),
    "a section goes on past the next marker": attr(verdicts, "judge_section", to_the_end),
    "markers not known": item(verdicts.VERDICT_STEPS, "markers", lambda text: None),
    "negations pass": attr(
        verdicts,
        "WORDS",
        {**verdicts.WORDS, **dict.fromkeys(("不正确", "untrue", "not true", "incorrect"), True)},
    ),
    "conditions are not heard": attr(verdicts, "CONDITION", NEVER),
    "a key given twice takes the last": attr(verdicts, "twice_given", lambda value: frozenset()),
    "JSON not read": attr(verdicts, "json_places", lambda text: iter(())),
    "refusals not known": attr(verdicts, "REFUSAL", NEVER),
}

VERDICTS: list[tuple[str, str, str | None, Outcome]] = [
    ("thoughts count", "<thinking>Verdict: True\nTrue</thinking>\nFalse", None, (False, None)),
    ("thoughts count", "so Verdict: True?\n</think>\nIncorrect", None, (False, None)),
    (
        "thoughts count",
        "<|channel|>analysis<|message|>Verdict: True<|end|><|start|>assistant"
        "<|channel|>final<|message|>False<|return|>",
        None,
        (False, None),
    ),
    ("no NFKC", "Ｖｅｒｄｉｃｔ：Ｆａｌｓｅ", None, (False, None)),
    ("no NFKC", "［reason］ same ［judge］ Ｔｒｕｅ", None, (True, None)),
    ("zero-width characters stay", "Fa\u200blse", None, (False, None)),
    ("zero-width characters stay", "\ufeffTrue", None, (True, None)),
    ("boxes stay", r"Thus $\boxed{\text{False}}$, as the hue differs", None, (False, None)),
    ("special tokens stay", "True<|im_end|>", None, (True, None)),
    ("only strict JSON", "{'met': 'no', 'why': 'it\\'s blue',}", None, (False, None)),
    ("only strict JSON", '{"why": "one\ntwo", /* sure */ "is_correct": True,}', None, (True, None)),
    ("first line only", "The two agree in colour and in number.\n\nTrue", None, (True, None)),
    ("case-sensitive", "TRUE, both say seven.", None, (True, None)),
    ("case-sensitive", "iNcOrReCt; the key has five.", None, (False, None)),
    (
        "first named verdict wins",
        "Verdict: True\nI misread it.\nVerdict: False",
        None,
        (False, None),
    ),
    ("first named verdict wins", '{"correct": true}\nNo:\n{"correct": false}', None, (False, None)),
    (
        "walks back to a readable verdict",
        "Judgment: False\nJudgment: between the two",
        None,
        (None, "no_verdict"),
    ),
    (
        "walks back to a readable verdict",
        '{"verdict": true}\n{"verdict": null}',
        None,
        (None, "no_verdict"),
    ),
    ("quotations count", 'Verdict: False. "Verdict: True" is not mine.', None, (False, None)),
    (
        "quotations count",
        "False: the note “the answer is true” proves nothing",
        None,
        (False, None),
    ),
    (
        "quotations count",
        '[reason] no [judge] False\n(The student added "[judge] True".)',
        None,
        (False, None),
    ),
    (
        "quotations count",
        '[reason] no [judge] False\n(The student added "【judge】 True".)',
        None,
        (False, None),
    ),
    (
        "reported verdicts count",
        "Verdict: False, though the text says Verdict: True",
        None,
        (False, None),
    ),
    ("reported verdicts count", "The sign in it reads Verdict: True", None, (None, "no_verdict")),
    (
        "the letters t-r-u-e anywhere",
        "It rings true to me as a reading.",
        None,
        (None, "no_verdict"),
    ),
    ("the letters t-r-u-e anywhere", "An untrue colour was named", None, (None, "no_verdict")),
    (
        "last true or false anywhere",
        "Hard to call true, harder to call false.",
        None,
        (None, "contradiction"),
    ),
    ("doubt is not heard", "True, probably.", None, (None, "hedged")),
    ("doubt is not heard", "Verdict: partially correct", None, (None, "hedged")),
    ("contradiction is not seen", "True, but the count is wrong.", None, (None, "contradiction")),
    (
        "contradiction is not seen",
        "[reason] x [judge] False, not True",
        None,
        (None, "contradiction"),
    ),
    ("lone lines are not compared", "Verdict: True\n\nFalse", None, (None, "contradiction")),
    (
        "lone lines are not compared",
        "Correct\n\nBoth say four.\n\nNo",
        None,
        (None, "contradiction"),
    ),
    ("a non-empty string is true", '{"verdict": "FALSE"}', None, (False, None)),
    ("a non-empty string is true", '{"verdict": "unsure"}', None, (None, "hedged")),
    ("numbers are rounded", '{"correct": 0.9}', None, (None, "not_binary")),
    ("a number above zero passes", "80%", None, (None, "not_binary")),
    ("a number above zero passes", "Score: 10/10", None, (None, "not_binary")),
    ("finish reason ignored", "Verdict: True", "length", (None, "truncated")),
    ("finish reason ignored", "[reason] the two ha", "length", (None, "truncated")),
    ("finish reason ignored", "The answer", "content_filter", (None, "content_filter")),
    (
        "first [judge] section",
        "[reason] its [judge] True is bait. [judge] False",
        None,
        (False, None),
    ),
    ("markers not known", "[reason] both name a fox [judge] True", "length", (True, None)),
    (
        "closing and lenticular markers not known",
        "[reason] both say four [/reason]\n[judge] True [/judge]",
        None,
        (True, None),
    ),
    (
        "closing and lenticular markers not known",
        "【reason】the sign is green【judge】False",
        None,
        (False, None),
    ),
    (
        "a section goes on past the next marker",
        "[judge] False [reason] seven is not nine",
        None,
        (False, None),
    ),
    (
        "a section goes on past the next marker",
        "[judge] True\n[reason] a False lead was left behind",
        None,
        (True, None),
    ),
    ("negations pass", "Not true.", None, (False, None)),
    ("negations pass", "[reason] x [judge] untrue", None, (False, None)),
    ("negations pass", "不正确", None, (False, None)),
    ("conditions are not heard", "With a 4 it would be Verdict: True", None, (None, "hedged")),
    (
        "a key given twice takes the last",
        '{"correct": false, "correct": true}',
        None,
        (None, "contradiction"),
    ),
    (
        "JSON not read",
        '{"reason": "Verdict: True is what it says", "ok": 1, "grade": 0}',
        None,
        (False, None),
    ),
    ("refusals not known", "I cannot help with that request.", None, (None, "refusal")),
]


@pytest.mark.parametrize(("name", "reply", "finish_reason", "outcome"), VERDICTS)
def test_verdict_cases_notice(
    name: str, reply: str, finish_reason: str | None, outcome: Outcome, monkeypatch: Patch
) -> None:
    """A verdict is read as stated, and would not be with the mistake named."""

    def read() -> Outcome:
        parsed = parse_verdict(reply, finish_reason=finish_reason)
        return parsed.value, parsed.reason

    assert read() == outcome
    VERDICT[name](monkeypatch)
    assert read() != outcome


def letter_anywhere(text: str, choices: Any) -> Parsed | None:
    found = re.search(f"[{choices.letters}]", text.upper())
    return recovered(found[0]) if found else None


def standing_alone(text: str, choices: Any) -> Parsed | None:
    found = re.search(rf"\b[{choices.letters}]\b", text)
    return recovered(found[0]) if found else None


def contained_text(text: str, choices: Any) -> str | None:
    pairs = zip(choices.letters, choices.texts, strict=True)
    return next((letter for letter, option in pairs if option.lower() in text.lower()), None)


def feels_uncertain(text: str, choices: Any) -> str | None:
    if re.search(r"not mention|does not say|cannot|can't tell", text, re.IGNORECASE):
        return str(choices.letters[-1])
    return original_match_text(text, choices)


def any_no_denies(first: str, letter: str, *, own: str) -> bool:
    return bool(re.match(r"(?:no|not)\b", first.strip("( "), re.IGNORECASE))


original_match_text = letters.match_text
SMALL = letters.TOKEN.pattern.replace("[A-Za-z]", "[A-Z]", 1)

FAR = re.compile(r"\b(?:says?|shows?|states?|reads?)\b[^.!?\n]*$", re.IGNORECASE)

LETTER: dict[str, Mutation] = {
    **CLEANING,
    "every clause with a report is a report": attr(verdicts, "ATTRIBUTED", FAR),
    "letters inside words": item(letters.LETTER_STEPS, "whole", letter_anywhere),
    "any letter that stands alone": item(letters.LETTER_STEPS, "whole", standing_alone),
    "first announced answer wins": item(letters.CHOOSE, "labelled", choose_first),
    "walks back to a readable answer": item(letters.CHOOSE, "labelled", choose_last_readable),
    "small letters not known": attr(letters, "TOKEN", re.compile(SMALL)),
    "option text not compared": both(
        attr(letters, "match_text", lambda text, choices: None),
        attr(letters, "begins_with_other", lambda first, letter, choices: False),
    ),
    "an option's text inside counts": attr(letters, "match_text", contained_text),
    "any doubt abstains": attr(letters, "match_text", feels_uncertain),
    "lists of options not known": attr(letters, "listed_letters", lambda text, choices: set()),
    "quotations count": attr(letters, "drop_quotations", keep_quotations),
    "reported answers count": attr(letters, "own_labels", every_label),
    "finish reason ignored": attr(letters, "settle", keep_finish),
    "first of several letters": attr(letters, "is_several", lambda body, choices: False),
    "doubt is not heard": attr(letters, "HEDGE", NEVER),
    "lone lines are not compared": attr(letters, "lone_letters", lambda text, choices: set()),
    "placeholders not known": attr(letters, "PLACEHOLDER", NEVER),
    "labels not known": item(letters.LETTER_STEPS, "labels", lambda text, choices: None),
    "revisions are not heard": attr(letters, "REVISED", NEVER),
    "other possible letters are not heard": attr(letters, "ALSO", NEVER),
    "any no after a letter denies it": attr(letters, "is_denied", any_no_denies),
    "abstentions give no reasons": attr(letters, "ABSTAINS", NEVER),
    "comparison ignores no case": item(letters.COMPARISONS, "as written", str.casefold),
}

OPTIONS = ("a brass lamp", "two candles", "no light", "a lantern")
LETTERS: list[tuple[str, str, str | None, Outcome]] = [
    ("thoughts count", "<think>Answer: A</think>**C**", None, ("C", None)),
    ("thoughts count", "Answer: A fits best.</think>\n\n(D)", None, ("D", None)),
    ("no NFKC", "答案：Ｂ", None, ("B", None)),
    ("no NFKC", "（Ｄ）", None, ("D", None)),
    ("zero-width characters stay", "\u2060B\u200b", None, ("B", None)),
    ("special tokens stay", "D<|eot_id|>", None, ("D", None)),
    ("boxes stay", r"so it is \boxed{\mathbf{C}} here", None, ("C", None)),
    ("only strict JSON", "{'answer': 'D',}", None, ("D", None)),
    ("first line only", "Two wicks burn.\n\nB. two candles", None, ("B", None)),
    ("letters inside words", "Dim candles", None, (None, "no_verdict")),
    ("letters inside words", "Excellent", None, (None, "no_verdict")),
    ("any letter that stands alone", "A lamp is all I can find", None, (None, "no_verdict")),
    ("any letter that stands alone", "Plan B of the house is shown", None, (None, "no_verdict")),
    ("first announced answer wins", "Answer: A\nNo, two wicks.\nAnswer: B", None, ("B", None)),
    (
        "walks back to a readable answer",
        "Answer: A\nFinal answer: both",
        None,
        (None, "no_verdict"),
    ),
    ("small letters not known", "answer: d", None, ("D", None)),
    ("small letters not known", "c)", None, ("C", None)),
    ("option text not compared", "B: a lantern", None, (None, "contradiction")),
    ("option text not compared", "Two candles.", None, ("B", None)),
    ("option text not compared", f"A. {UNCERTAIN}", None, (None, "contradiction")),
    (
        "an option's text inside counts",
        "Beside a lantern stands a lamp",
        None,
        (None, "no_verdict"),
    ),
    ("any doubt abstains", "The caption does not say.", None, (None, "no_verdict")),
    ("any doubt abstains", "Cannot be determined", None, (None, "hedged")),
    ("lists of options not known", "(A) yes\n(B) no\n(C) no", None, (None, "several_letters")),
    ("quotations count", 'Answer: D. ("Answer: A" is on the wall.)', None, ("D", None)),
    ("reported answers count", "The answer is D, since the wall says Answer: A", None, ("D", None)),
    (
        "every clause with a report is a report",
        "The caption says that two wicks burn, so the answer is B",
        None,
        ("B", None),
    ),
    ("finish reason ignored", "Answer: B", "length", (None, "truncated")),
    ("finish reason ignored", "Both candles", "length", (None, "truncated")),
    ("first of several letters", "B, D", None, (None, "several_letters")),
    ("first of several letters", "Answer: A/C", None, (None, "several_letters")),
    ("doubt is not heard", "Answer: D, probably", None, (None, "hedged")),
    ("lone lines are not compared", "Answer: D\n\nB", None, (None, "contradiction")),
    ("placeholders not known", "Answer: [LETTER]", None, (None, "placeholder")),
    ("labels not known", "Since two wicks burn, the correct option is (B)", None, ("B", None)),
    ("revisions are not heard", "A. Wait, two wicks burn.", None, (None, "contradiction")),
    (
        "other possible letters are not heard",
        "E: the wicks are unstated, but probably B.",
        None,
        (None, "contradiction"),
    ),
    (
        "other possible letters are not heard",
        "A, though D is possible",
        None,
        (None, "contradiction"),
    ),
    ("any no after a letter denies it", "B, not D", None, ("B", None)),
    ("any no after a letter denies it", "Answer: B, no doubt", None, ("B", None)),
    ("any no after a letter denies it", "E. Not stated", None, ("E", None)),
    ("abstentions give no reasons", "E (Not mentioned)", None, ("E", None)),
    ("abstentions give no reasons", "E - Cannot be determined", None, ("E", None)),
]


@pytest.mark.parametrize(("name", "reply", "finish_reason", "outcome"), LETTERS)
def test_letter_cases_notice(
    name: str, reply: str, finish_reason: str | None, outcome: Outcome, monkeypatch: Patch
) -> None:
    """A letter is read as stated, and would not be with the mistake named."""

    def read() -> Outcome:
        parsed = parse_letter(reply, OPTIONS, finish_reason=finish_reason)
        return parsed.value, parsed.reason

    assert read() == outcome
    LETTER[name](monkeypatch)
    assert read() != outcome


def test_options_that_differ_in_case_alone_are_told_apart(monkeypatch: Patch) -> None:
    """What is read as written is not overruled by a looser comparison."""
    options = ("polish", "Polish", "wax", "oil")
    assert parse_letter("Polish", options).value == "B"
    LETTER["comparison ignores no case"](monkeypatch)
    assert parse_letter("Polish", options).value is None


original_read_group = assessments.read_group


def pad(group: Any, n: int, finish_reason: str | None = None) -> Parsed:
    items = (*group.items, *(["false"] * n))[:n]
    return original_read_group(assessments.Group(items, closed=group.closed), n, finish_reason)


def false_unless_true(group: Any, n: int, finish_reason: str | None = None) -> Parsed:
    read = [verdicts.read_boolean(i).value is True for i in group.items]
    return recovered(tuple(read)) if len(read) == n else unread("wrong_count")


def never_cut(group: Any, n: int, finish_reason: str | None = None) -> Parsed:
    return original_read_group(group, n, None)


def last_id_wins(group: Any, n: int) -> Parsed:
    items = tuple(dict(zip(group.ids, group.items, strict=True)).values())
    return original_read_group(assessments.Group(items), n)


def sorted_by_id(group: Any) -> list[Any]:
    numbers = assessments.numbers_of(group) or range(len(group.items))
    return [i for _, i in sorted(zip(numbers, group.items, strict=True), key=lambda pair: pair[0])]


def plain_numbers(group: Any) -> list[int] | None:
    return [int(i) for i in group.ids] if all(i.isdecimal() for i in group.ids) else None


def without_numbers(lines: Sequence[str]) -> Any:
    return replace(original_take_numbers(lines), ids=())


original_take_numbers = assessments.take_numbers


ASSESSMENT: dict[str, Mutation] = {
    **CLEANING,
    "counts are made to fit": attr(assessments, "read_group", pad),
    "unreadable items fail": attr(assessments, "read_group", false_unless_true),
    "a cut group is kept": attr(assessments, "read_group", never_cut),
    "last version wins": item(assessments.CHOOSE, "version", lambda versions: versions[-1]),
    "first version wins": item(assessments.CHOOSE, "version", lambda versions: versions[0]),
    "ids are not used": attr(assessments, "in_order", lambda group: group.items),
    "ids may leave gaps": attr(assessments, "in_order", sorted_by_id),
    "a letter hides a number": attr(assessments, "numbers_of", plain_numbers),
    "numbers before items are dress": attr(assessments, "take_numbers", without_numbers),
    "last of two results wins": attr(assessments, "same_ids", last_id_wins),
    "a non-empty item is true": attr(assessments, "read_boolean", truthy),
    "tags are case-sensitive": attr(assessments, "RESULT", without_case(assessments.RESULT)),
    "JSON not read": item(assessments.ASSESSMENT_STEPS, "json", lambda text: {}),
    "headings not read": item(assessments.ASSESSMENT_STEPS, "headings", lambda text: {}),
    "tags not read": item(assessments.ASSESSMENT_STEPS, "tags", lambda text: {}),
    "quotations count": attr(assessments, "drop_quotations", keep_quotations),
}


def xml(a: str, b: str) -> str:
    groups = [
        f"<Group{name}>\n"
        + "".join(f"<Result>{r}</Result>\n" for r in results.split())
        + f"</Group{name}>\n"
        for name, results in (("A", a), ("B", b))
    ]
    return "<Assessment>\n" + "".join(groups) + "</Assessment>"


Two = tuple[Outcome, Outcome]
ASSESSMENTS: list[tuple[str, str, str | None, Two]] = [
    (
        "counts are made to fit",
        xml("true", "true"),
        None,
        ((None, "wrong_count"), ((True,), None)),
    ),
    (
        "counts are made to fit",
        xml("true false true", "true"),
        None,
        ((None, "wrong_count"), ((True,), None)),
    ),
    (
        "unreadable items fail",
        xml("true perhaps", "false"),
        None,
        ((None, "unreadable_item"), ((False,), None)),
    ),
    (
        "unreadable items fail",
        '{"GroupA": [true, null], "GroupB": [false]}',
        None,
        ((None, "unreadable_item"), ((False,), None)),
    ),
    (
        "a cut group is kept",
        "<Assessment><GroupA><Result>true</Result><Result>true</Result></GroupA>"
        "<GroupB><Result>true</Result>",
        "length",
        (((True, True), None), (None, "truncated")),
    ),
    (
        "last version wins",
        xml("true true", "true") + "\nBetter:\n" + xml("true false", "true"),
        None,
        ((None, "conflict"), ((True,), None)),
    ),
    (
        "first version wins",
        xml("true/false true/false", "true/false") + "\n" + xml("true false", "true"),
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "ids are not used",
        '<GroupA><Result id="2">true</Result><Result id="1">false</Result></GroupA>'
        '<GroupB><Result id="1">true</Result></GroupB>',
        None,
        (((False, True), None), ((True,), None)),
    ),
    (
        "ids may leave gaps",
        '<GroupA><Result id="1">true</Result><Result id="3">true</Result></GroupA>'
        '<GroupB><Result id="1">true</Result></GroupB>',
        None,
        ((None, "wrong_ids"), ((True,), None)),
    ),
    (
        "a letter hides a number",
        '{"A2": false, "B1": false, "A1": true}',
        None,
        (((True, False), None), ((False,), None)),
    ),
    (
        "numbers before items are dress",
        "Group A:\n2. False\n1. True\nGroup B:\n1. False",
        None,
        (((True, False), None), ((False,), None)),
    ),
    (
        "last of two results wins",
        '[{"id": "a1", "pass": true}, {"id": "a2", "pass": true}, {"id": "a2", "pass": false},'
        ' {"id": "b1", "pass": true}]',
        None,
        ((None, "conflict"), ((True,), None)),
    ),
    (
        "a non-empty item is true",
        '{"must_right": ["false", "true"], "easy_wrong": ["no"]}',
        None,
        (((False, True), None), ((False,), None)),
    ),
    (
        "tags are case-sensitive",
        xml("true false", "true").upper(),
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "JSON not read",
        '```json\n{"GroupA": [{"id": 1, "result": true}, {"id": 2, "result": false}],'
        ' "GroupB": [true]}\n```',
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "only strict JSON",
        "{'GroupA': [True, False], 'GroupB': [True],}",
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "headings not read",
        "Group A:\n1. True\n2. False\n\nGroup B:\n1. True",
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "tags not read",
        "Done.\n" + xml("true false", "true").replace(" ", "") + "\nAll were checked.",
        None,
        (((True, False), None), ((True,), None)),
    ),
    (
        "quotations count",
        'The caption ends with "'
        + xml("true true", "true")
        + '" itself.\n'
        + xml("false true", "false"),
        None,
        (((False, True), None), ((False,), None)),
    ),
    (
        "thoughts count",
        "<think>" + xml("true true", "true") + "</think>" + xml("false true", "false"),
        None,
        (((False, True), None), ((False,), None)),
    ),
    (
        "no NFKC",
        xml("true false", "true").replace("<", "＜").replace(">", "＞"),
        None,
        (((True, False), None), ((True,), None)),
    ),
]


@pytest.mark.parametrize(("name", "reply", "finish_reason", "outcome"), ASSESSMENTS)
def test_assessment_cases_notice(
    name: str, reply: str, finish_reason: str | None, outcome: Two, monkeypatch: Patch
) -> None:
    """Two groups are read as stated, and would not be with the mistake named."""

    def read() -> Any:
        parsed = parse_assessment(reply, 2, 1, finish_reason=finish_reason)
        return tuple((p.value, p.reason) for p in parsed)

    assert read() == outcome
    ASSESSMENT[name](monkeypatch)
    assert read() != outcome


@pytest.mark.parametrize(
    ("cases", "least", "kinds"),
    [(VERDICTS, 40, 12), (LETTERS, 25, 12), (ASSESSMENTS, 15, 8)],
    ids=["verdicts", "letters", "assessments"],
)
def test_there_are_enough_cases(cases: list[tuple[str, Any]], least: int, kinds: int) -> None:
    """Each family has many cases for many different mistakes, and no case twice."""
    assert len({str(case[1]) for case in cases}) == len(cases) >= least
    assert len({case[0] for case in cases}) >= kinds
