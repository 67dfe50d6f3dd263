"""The flows that every protocol is made of, driven by hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from snellen.errors import DataError
from snellen.flows import (
    Asked,
    add_usage,
    again,
    ask_model,
    ask_parts,
    ask_until,
    failed_reason,
    given_rows,
    match_given,
    run_by_hand,
)
from snellen.records import Answer, CallFailure, Image, Item, Message, Reply, Request, Usage
from snellen.replies import Parsed, UnreadableError, json_reply

REQUEST = Request("judge", (Message("user", ("Which?",)),), "verdict", probe="q1", lead="x")


def parse(reply: Reply) -> str:
    if reply.text in "AB":
        return reply.text
    raise UnreadableError("prose", f"`{reply.text}` is no letter")


def ask(
    *answers: Answer, reasks: int = 2, remind: str | None = "One letter!"
) -> tuple[Asked[str], list[Request]]:
    """What asking ends with, and what was asked."""
    seen: list[Request] = []

    def answer(request: Request) -> Answer:
        seen.append(request)
        return answers[len(seen) - 1]

    flow = ask_until(REQUEST, parse, remind=remind, reasks=reasks)
    return run_by_hand(flow, answer), seen


def test_a_readable_reply_is_asked_for_once() -> None:
    """Its usage and its text are kept."""
    asked, seen = ask(Reply("A", usage=Usage(5, 1)))
    assert (asked.value, asked.reason, asked.raw, asked.errors) == ("A", None, "A", ())
    assert asked.usage == Usage(5, 1)
    assert seen == [REQUEST]


def test_an_unreadable_one_is_asked_again_with_a_reminder_and_adds_up() -> None:
    """Each ask has its number, the prefix stays, all tokens count."""
    asked, seen = ask(Reply("hm", usage=Usage(5, 1)), Reply("B", usage=Usage(7, 2)))
    assert (asked.value, asked.usage) == ("B", Usage(12, 3))
    assert asked.errors == ("`hm` is no letter",)
    assert [request.ask for request in seen] == [0, 1]
    assert seen[1].messages[0].parts == ("Which?\n\nOne letter!",)
    assert seen[1].lead == "x"


def test_the_reminder_can_say_what_was_wrong() -> None:
    """Each ask has the error of the reply before it, and none of an earlier one."""
    _, seen = ask(Reply("hm"), Reply("oh"), Reply("A"), remind="Wrong: {error}!")
    endings = [str(request.messages[0].parts[0]).removeprefix("Which?") for request in seen]
    assert endings == ["", "\n\nWrong: `hm` is no letter!", "\n\nWrong: `oh` is no letter!"]
    _, seen = ask(Reply("hm"), Reply("A"), remind=None)
    assert "`hm` is no letter" in str(seen[1].messages[0].parts[0])


@pytest.mark.parametrize("reasks", [0, 1, 2])
def test_after_its_asks_a_reply_is_unreadable_with_the_reason(reasks: int) -> None:
    """The last reply is kept as it came."""
    asked, seen = ask(*[Reply(f"hm {k}") for k in range(3)], reasks=reasks)
    assert (asked.value, asked.reason, asked.raw) == (None, "unreadable_prose", f"hm {reasks}")
    assert len(seen) == len(asked.errors) == reasks + 1


def test_a_failed_call_is_not_asked_again() -> None:
    """Retries are the scheduler's; the role and the failure's kind are the reason."""
    asked, seen = ask(Reply("hm", usage=Usage(5, 1)), CallFailure("timeout", "too late"))
    assert (asked.value, asked.reason, asked.raw) == (None, "judge_timeout", "too late")
    assert (asked.usage, asked.reply) == (Usage(5, 1), None)
    assert len(seen) == 2


def test_a_schema_binds_the_replies_from_the_second_on() -> None:
    """The first ask stays as the protocol has it."""
    seen: list[Request] = []
    replies = iter([Reply("hm"), Reply("oh"), Reply("A")])

    def answer(request: Request) -> Answer:
        seen.append(request)
        return next(replies)

    run_by_hand(ask_until(REQUEST, parse, schema=("A", "B")), answer)
    assert [request.schema for request in seen] == [None, ("A", "B"), ("A", "B")]


class Card(msgspec.Struct):
    """What a builder asks for."""

    question: str


def test_a_typed_value_comes_out_of_json() -> None:
    """A flow of any role gets a value of a type, or the role and the reason."""
    request = Request("writer", (Message("user", ("Write.",)),), "card")
    replies = iter([Reply('{"q": 1}'), Reply('```json\n{"question": "Hue?"}\n```')])
    asked = run_by_hand(ask_until(request, json_reply(Card)), lambda _: next(replies))
    assert asked.value == Card("Hue?")
    assert asked.errors == ("Object missing required field `question`",)
    late = run_by_hand(
        ask_until(request, json_reply(Card)), lambda _: CallFailure("timeout", "late")
    )
    assert late.reason == "writer_timeout"


def halves(reply: Reply) -> list[Parsed]:
    return [Parsed(c, "marked") if c in "AB" else Parsed(None, reason="prose") for c in reply.text]


def test_readable_parts_of_an_earlier_reply_are_kept() -> None:
    """Only what was never readable is unreadable in the end; all asks are counted."""
    replies = iter([Reply("A?", usage=Usage(1, 1)), Reply("?B", usage=Usage(1, 1))])
    flow = ask_parts(REQUEST, halves, 2, remind="Two!")
    parts, usage = run_by_hand(flow, lambda _: next(replies))
    assert [part.value and part.value.value for part in parts] == ["A", "B"]
    assert [part.raw for part in parts] == ["A?", "?B"]
    assert usage == Usage(2, 2)


@pytest.mark.parametrize(
    ("answers", "reasons"),
    [
        ((Reply("??"), Reply("A?"), Reply("B?")), (None, "unreadable_prose")),
        ((Reply("A?"), CallFailure("timeout", "late")), (None, "judge_timeout")),
        ((CallFailure("timeout", "late"),), ("judge_timeout", "judge_timeout")),
    ],
)
def test_parts_that_are_never_readable_have_a_reason(
    answers: tuple[Answer, ...], reasons: tuple[str | None, ...]
) -> None:
    """A failed call takes nothing from what was read before it."""
    left = iter(answers)
    parts, _ = run_by_hand(ask_parts(REQUEST, halves, 2, remind="Two!"), lambda _: next(left))
    assert tuple(part.reason for part in parts) == reasons


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
    (CallFailure("timeout", "late", latency_s=2.0), "failed", None),
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
        ("Failed to obtain answer via API.", "no_answer"),
        (" [error] 429 Too Many Requests", "no_answer"),
        ("The dialog says [error] 429.", "ok"),
        ("[Error] 404 is on the screen", "ok"),
    ],
)
def test_what_a_tool_wrote_for_a_failed_call_is_no_reply(text: str, status: str) -> None:
    """It goes to no judge and counts as a call that failed, with the tool's words kept."""
    row = given_rows({"a": text})["a", 0]
    assert (row.failure or row.status) == status
    assert failed_reason(row) == ("model_no_answer" if status != "ok" else None)
    assert text.strip() in (row.reply, row.reasoning)
