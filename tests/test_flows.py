"""The flows that every protocol is made of, driven by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from snellen.errors import DataError
from snellen.flows import (
    add_usage,
    again,
    ask_judge,
    ask_model,
    failed_reason,
    given_rows,
    match_given,
    run_by_hand,
)
from snellen.records import Answer, CallFailure, Image, Item, Message, Reply, Request, Usage
from snellen.replies import Parsed

REQUEST = Request("judge", (Message("user", ("Which?",)),), "verdict", probe="q1", lead="x")


def parse(reply: Reply) -> Parsed:
    return Parsed(reply.text, "marked") if reply.text in "AB" else Parsed(None, reason="prose")


def judge(*answers: Answer, reasks: int = 2) -> tuple[object, list[Request]]:
    """What a judgement ends with, and what was asked."""
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return answers[len(seen) - 1]

    return run_by_hand(ask_judge(REQUEST, parse, remind="One letter!", reasks=reasks), answer), seen


def test_a_readable_judgement_is_asked_once() -> None:
    """Its usage and its text are kept."""
    judged, seen = judge(Reply("A", usage=Usage(5, 1)))
    assert (judged.parsed.value, judged.reason, judged.raw) == ("A", None, "A")  # type: ignore[attr-defined]
    assert judged.usage == Usage(5, 1)  # type: ignore[attr-defined]
    assert seen == [REQUEST]


def test_an_unreadable_one_is_asked_again_with_a_reminder_and_adds_up() -> None:
    """Each ask has its number, the prefix stays, all tokens count."""
    judged, seen = judge(Reply("hm", usage=Usage(5, 1)), Reply("B", usage=Usage(7, 2)))
    assert (judged.parsed.value, judged.usage) == ("B", Usage(12, 3))  # type: ignore[attr-defined]
    assert [request.ask for request in seen] == [0, 1]
    assert seen[1].messages[0].parts == ("Which?\n\nOne letter!",)
    assert seen[1].lead == "x"


@pytest.mark.parametrize("reasks", [0, 1, 2])
def test_after_its_asks_a_judgement_is_unreadable_with_the_reason(reasks: int) -> None:
    """The last reply is kept as it came."""
    judged, seen = judge(*[Reply(f"hm {k}") for k in range(3)], reasks=reasks)
    assert judged.reason == "unreadable_prose"  # type: ignore[attr-defined]
    assert judged.raw == f"hm {reasks}"  # type: ignore[attr-defined]
    assert len(seen) == reasks + 1


def test_a_failed_judgement_is_not_asked_again() -> None:
    """Retries are the scheduler's; the failure's kind is the reason."""
    judged, seen = judge(Reply("hm", usage=Usage(5, 1)), CallFailure("timeout", "too late"))
    assert (judged.reason, judged.raw) == ("judge_timeout", "too late")  # type: ignore[attr-defined]
    assert judged.usage == Usage(5, 1)  # type: ignore[attr-defined]
    assert len(seen) == 2


def test_a_reminder_follows_a_picture_as_a_part_of_its_own() -> None:
    """Only a text is lengthened."""
    image = Image("a", "d", "p")
    asked = again(Request("judge", (Message("user", ("see", image)),), "v"), 1, "One letter!")
    assert asked.messages[0].parts == ("see", image, "\n\nOne letter!")


def reply(answer: Answer) -> object:
    request = Request("model", (Message("user", ("Describe.",)),), "reply")
    return run_by_hand(ask_model(request, "a", repeat=1), lambda _: answer)


CASES: list[tuple[Answer, str, str | None]] = [
    (Reply(" A bus. \n"), "ok", "A bus."),
    (Reply(""), "empty", ""),
    (Reply("", reasoning="hm"), "thought_only", ""),
    (Reply("", reasoning="hm", finish_reason="length"), "truncated", ""),
    (Reply("I cannot help.", refusal=True), "ok", "I cannot help."),
    (CallFailure("timeout", "late", latency_s=2.0), "failed:timeout", None),
]


@pytest.mark.parametrize(("answer", "status", "text"), CASES)
def test_a_models_answer_becomes_a_row_with_its_status(
    answer: Answer, status: str, text: str | None
) -> None:
    """Blank replies keep the reason why they are blank, failures their kind."""
    row = reply(answer)
    assert (row.status, row.reply, row.id, row.repeat) == (status, text, "a", 1)  # type: ignore[attr-defined]
    expected = "model_timeout" if status.startswith("failed") else None
    assert failed_reason(row) == expected  # type: ignore[arg-type]


def test_given_replies_ask_nobody() -> None:
    """An id without one is a failure with its own reason."""
    nobody: Callable[[Request], Answer] = lambda _: pytest.fail("a call was made")  # noqa: E731
    request = Request("model", (), "reply")
    given = given_rows({"a": "A bus."})
    found = run_by_hand(ask_model(request, "a", repeat=2, given=given), nobody)
    assert (found.reply, found.repeat) == ("A bus.", 2)
    missing = run_by_hand(ask_model(request, "b", given=given), nobody)
    assert failed_reason(missing) == "model_no_reply"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("<think>A cat?</think>\nA bus.", ("A bus.", "A cat?", "ok")),
        ("A cat?</think>A bus.", ("A bus.", "A cat?", "ok")),
        ("<think>A cat?</think>", ("", "A cat?", "thought_only")),
        ("<|channel>thought\nA cat?<channel|>A bus.", ("A bus.", "\nA cat?", "ok")),
        ("A bus.<|im_end|>\n<|im_start|>user", ("A bus.", None, "ok")),
        ("<think>A cat, or", ("", "A cat, or", "thought_only")),
        ("A bus with a <think> sign.", ("A bus with a <think> sign.", None, "ok")),
    ],
)
def test_given_replies_are_read_as_those_of_an_endpoint(
    text: str, row: tuple[str, str | None, str]
) -> None:
    """No judge sees the thoughts that other tools keep in a reply, and no token of them counts."""
    found = given_rows({"a": text})["a", 0]
    assert (found.reply, found.reasoning, found.status) == row


def test_a_reply_that_may_be_thoughts_is_kept_and_marked() -> None:
    """Before a closing mark with nothing behind it stands the reply, or a thought: nobody knows."""
    found = given_rows({"a": "A bus.</think>", "b": "A cat?</think>A bus."})
    assert (found["a", 0].reply, found["a", 0].status, found["a", 0].doubt) == (
        "A bus.",
        "ok",
        True,
    )
    assert not found["b", 0].doubt


ITEMS = tuple(Item(name, (), ()) for name in ("a", "b", "c", "d"))


@pytest.mark.parametrize(
    ("ids", "notices"),
    [
        ("abcd", ()),
        ("abcdx", ("not used: 1 replies to no item of this run ('x')",)),
        ("bcd", ("1 of 4 items have no reply ('a')",)),
        (
            "axyzw",
            (
                "not used: 4 replies to no item of this run ('w', 'x', 'y', ...)",
                "3 of 4 items have no reply ('b', 'c', 'd')",
            ),
        ),
        ("", ("4 of 4 items have no reply ('a', 'b', 'c', ...)",)),
    ],
)
def test_replies_and_items_without_each_other_are_told(ids: str, notices: tuple[str, ...]) -> None:
    """Neither an id that was mistyped nor an item that was forgotten stays unnoticed."""
    assert match_given(ITEMS, given_rows(dict.fromkeys(ids, "A bus."))) == notices


def test_replies_to_nothing_at_all_are_refused() -> None:
    """A file that is for another benchmark, or in another form, is an error with an example."""
    with pytest.raises(DataError, match="found 'caption', expected for example 'a'"):
        match_given(ITEMS, given_rows({"id": "a", "caption": "A bus."}))
    assert match_given(ITEMS, None) == ()


def test_unknown_counts_stay_unknown_when_usages_are_added() -> None:
    """None is not 0, unless the other is known."""
    assert add_usage(Usage(), Usage()) == Usage()
    assert add_usage(Usage(1, None, 2), Usage(None, None, 3, 4)) == Usage(1, None, 5, 4)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Failed to obtain answer via API.", "failed:no_answer"),
        (" [error] 429 Too Many Requests", "failed:no_answer"),
        ("The dialog says [error] 429.", "ok"),
        ("[Error] 404 is on the screen", "ok"),
    ],
)
def test_what_a_tool_wrote_for_a_failed_call_is_no_reply(text: str, status: str) -> None:
    """It goes to no judge and counts as a call that failed, with the tool's words kept."""
    row = given_rows({"a": text})["a", 0]
    assert row.status == status
    assert failed_reason(row) == ("model_no_answer" if status != "ok" else None)
    assert text.strip() in (row.reply, row.reasoning)
