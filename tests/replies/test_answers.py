"""True or false, read from judges' replies."""

from __future__ import annotations

import pytest

from snellen.replies import Parsed, parse_statement, parse_verdict
from snellen.replies.text import LONGEST_READ


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("[reason] the same fox [judge] True", True),
        ("[reason]\nthe same fox\n[judge]\nFalse\n", False),
        ("[reason] the same fox\n\n[judge]: **true**.", True),
        ("[reason] the same fox [judge] True\n\nI hope this helps.", True),
        ("[judge] False [reason] on reflection [judge] True", True),
        ("<think>[reason] no [judge] False</think>[reason] yes [judge] True", True),
    ],
)
def test_the_protocols_form_is_marked(reply: str, value: bool) -> None:
    """With both markers the section after the last `[judge]` decides, as officially."""
    parsed = parse_verdict(reply)
    assert (parsed.value, parsed.how, parsed.reason) == (value, "marked", None)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("True", True),
        ("true!", True),
        ("**False**", False),
        ("Yes.", True),
        ("no", False),
        ("1", True),
        ("0", False),
        ("Incorrect", False),
        ("[judge] True", True),
        ("[JUDGE] false", False),
        ("**Verdict:** False", False),
        ("### Verdict\n\nTrue", True),
        ("Verdict → True", True),
        ("<verdict>False</verdict>", False),
        ('{"correct": true}', True),
        ('{"result": {"is_correct": "no"}}', False),
        ("Both name a fox.\n\nTrue", True),
        ("Verdict — False", False),
        ("[[False]]", False),
        ("Verdict: True\nReason: both name a fox", True),
        ("Therefore, True.", True),
        ("✅", True),
        ("❌ False", False),
        ("错误。", False),
        ("[reason] wrong animal [judge] Not true", False),
        ("Reference answer: Yes\nStudent answer: No\nVerdict: False", False),
    ],
)
def test_other_forms_without_doubt_are_recovered(reply: str, value: bool) -> None:
    """A verdict in another form counts, and is marked as recovered."""
    parsed = parse_verdict(reply)
    assert (parsed.value, parsed.how, parsed.reason) == (value, "recovered", None)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("<think>True</think>", "thought_only"),
        ("Maybe", "hedged"),
        ("True?", "hedged"),
        ("Verdict: not sure", "hedged"),
        ("True if foxes count as dogs", "no_verdict"),
        ("True/False", "contradiction"),
        ("Verdict: True or False", "contradiction"),
        ("True\nFalse", "contradiction"),
        ('{"verdict": true, "correct": false}', "contradiction"),
        ("[reason] x [judge] True, not False", "contradiction"),
        ("[reason] x [judge]", "no_verdict"),
        ("[reason] x [judge] see above", "no_verdict"),
        ("null", "no_verdict"),
        ("The answer names a fox.", "no_verdict"),
        ("Correct answer is 5", "no_verdict"),
        ("It is not false.", "no_verdict"),
        ("0.5", "not_binary"),
        ("100%", "not_binary"),
        ("3 out of 4", "not_binary"),
        ("Verdict: 7/10", "not_binary"),
        ("As an AI, I am unable to judge this.", "refusal"),
    ],
)
def test_what_cannot_be_read_has_a_reason(reply: str, reason: str) -> None:
    """Doubt, contradiction, prose, numbers and refusals are no verdicts, each for its reason."""
    assert parse_verdict(reply) == Parsed(None, "", reason, parse_verdict(reply).note)


def test_a_cut_reply_counts_only_in_the_protocols_form() -> None:
    """What follows a complete `[judge] True` cannot change it; any other cut reply is unread."""
    assert parse_verdict("[reason] x [judge] True", finish_reason="length").value is True
    assert parse_verdict("[reason] x [judge] Tr", finish_reason="length").reason == "truncated"
    assert parse_verdict("True", finish_reason="length").reason == "truncated"


def test_the_stated_reason_is_kept_short() -> None:
    """The note is the judge's reason, cut to 200 characters."""
    assert parse_verdict("[reason] same fox [judge] True").note == "same fox"
    assert parse_verdict('{"correct": false, "reason": "other animal"}').note == "other animal"
    assert len(parse_verdict(f"[reason] {'x' * 300} [judge] True").note) == 200


def test_a_statement_is_one_word() -> None:
    """A lone true or false is the form that the one-rubric prompt asks for."""
    assert parse_statement("True") == Parsed(True, "marked")
    assert parse_statement("Verdict: false").how == "recovered"
    assert parse_statement("true or false").reason == "contradiction"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("<Result>false</Result>", False),
        ("<Assessment>\n<GroupA><Result>True</Result></GroupA>\n</Assessment>", True),
        ("<Result>true</Result><Result>false</Result>", None),
        ("<Result>perhaps</Result>", None),
    ],
)
def test_one_statement_in_tags(reply: str, value: bool | None) -> None:
    """A judge that keeps to the form for many statements is read when it is asked about one."""
    assert parse_statement(reply).value is value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Falsch", False),
        ("Die Antwort ist nicht richtig.", None),
        ("Urteil: Wahr", True),
        ("صحيح", True),
        ("غير صحيحة", False),
        ("الإجابة غير صحيحة", None),
        ("错误的", False),
        ("回答是错误的", None),
        ("[reason] 一致 [judge] 真", True),
        ("Верно", True),
        ("Faux.", False),
        ("Richtig, teilweise", None),
        ("No es correcto", None),
        ("正确吗？不正确", None),
    ],
)
def test_verdicts_in_other_languages(reply: str, value: bool | None) -> None:
    """A judge that answers in another language is read by the same rules."""
    assert parse_verdict(reply).value is value


@pytest.mark.parametrize(
    "reply",
    [
        "No, wait. Yes.",
        "True. On second thought, no.",
        "Correct. Scratch that.",
        "True。等等，不对。",
        "正确。但是左右弄反了，所以错误。",
        "错误。实际上是正确的。",
        "Ja, aber die Antwort ist falsch",
        '{"correct": true}\n{"correct": false}',
        "Correct, mostly.",
        "True (I think)",
        "Correct, more or less.",
        "True, but not really.",
    ],
)
def test_a_verdict_that_is_taken_back_or_doubted_is_none(reply: str) -> None:
    """Nothing is read where words behind a verdict call it off, set another beside it or doubt."""
    assert parse_verdict(reply).value is None


@pytest.mark.parametrize(
    "reply",
    [
        "Correct, both name a fox.",
        "True, mostly red is named in both",
        "The answer is correct.",
        "This is correct.",
        "Both are 3. Therefore, the answer is correct.",
        "Both name a fox. True",
        "Both name a fox, hence **True** it is.",
        "False. The correct answer is fox.",
        "False. No, the colours differ.",
        "True. Half of the fox is hidden in both.",
        "True. Any difference? No.",
        "答案正确",
        "错误，正确答案是3",
        "正确。学生没有错误。",
        "This might be 3. The answer is correct.",
        "The reference answer is correct.",
        "Verdict: False. The key has a fox.",
        "True\n\nBoth name a fox.",
    ],
)
def test_what_only_prose_says_is_asked_again(reply: str) -> None:
    """A verdict word with a sentence of its own beside it is not guessed at."""
    assert parse_verdict(reply).value is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"evaluation": {"correct": true}}', True),
        ("<reasoning>might be true</reasoning>\nFalse", False),
        ("True<｜end▁of▁sentence｜>", True),
        ("<analysis>Verdict: True</analysis>", None),
    ],
)
def test_nested_fields_and_marks(reply: str, value: bool | None) -> None:
    """A verdict may stand one object deeper, behind thoughts, or before the end of the turn."""
    assert parse_verdict(reply).value is value


def test_a_reply_beyond_all_forms_is_not_read() -> None:
    """Above the stated length nothing is read, whatever it ends with."""
    assert parse_verdict("so " * LONGEST_READ + "\nVerdict: True").reason == "too_long"
    thoughts = "<think>" + "so " * LONGEST_READ + "</think>"
    assert parse_verdict(thoughts + "Verdict: True").value is True
