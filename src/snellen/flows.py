"""What a flow is, and the flows that every protocol and builder is made of.

A flow is a generator that never touches the world. It yields a list of `Request`s, or a list of
child flows, and is sent the list of answers or of the children's results, in the same order. What
it returns is its result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import msgspec

from snellen.errors import DataError
from snellen.records import (
    NO_USAGE,
    Answer,
    CallFailure,
    Item,
    Message,
    Params,
    Reply,
    ReplyRow,
    Request,
    Usage,
)
from snellen.replies import Parsed, blank_reason, split_thinking
from snellen.replies.text import drop_doubtful_mark
from snellen.replies.typed import UnreadableError
from snellen.templates import bundled

R = TypeVar("R")
T = TypeVar("T")
Flow = Generator[Any, Any, R]
Schema = Params | tuple[str, ...]
Given = Mapping[tuple[str, int], ReplyRow]

REASKS = 2
# What other tools write in place of a reply that they did not get. Source: PerceptionBench, ports.
FAILURE_TEXTS = ("Failed to obtain answer", "[error]")


def run_by_hand(
    flow: Flow[R],
    answer: Callable[[Request], Answer],
    *,
    on_result: Callable[[object], None] | None = None,
) -> R:
    """Drives a flow without any I/O: `answer` plays model and judge. For tests and simulation.

    `on_result` takes what the flow and each of its child flows return.

    >>> from snellen.records import Message, Reply, Request
    >>> def hello():
    ...     [reply] = yield [Request("model", (Message("user", ("Hi",)),), "reply")]
    ...     return reply.text.upper()
    >>> run_by_hand(hello(), lambda request: Reply("hello"))
    'HELLO'
    """
    sent: Any = None
    while True:
        try:
            wanted: Sequence[Any] = flow.send(sent)
        except StopIteration as stop:
            result: R = stop.value
            if on_result is not None:
                on_result(result)
            return result
        sent = [
            answer(w) if isinstance(w, Request) else run_by_hand(w, answer, on_result=on_result)
            for w in wanted
        ]


def with_system(flow: Flow[R], texts: Mapping[str, str]) -> Flow[R]:
    """The same flow with a system message before the requests of a role: `model`, or `judge`.

    A system message that a request has already follows the text after a blank line.
    """
    if not texts:
        return (yield from flow)
    sent: Any = None
    while True:
        try:
            wanted: Sequence[Any] = flow.send(sent)
        except StopIteration as stop:
            result: R = stop.value
            return result
        sent = yield [
            _prefixed(one, texts) if isinstance(one, Request) else with_system(one, texts)
            for one in wanted
        ]


def _prefixed(request: Request, texts: Mapping[str, str]) -> Request:
    text = texts.get("model" if request.role == "model" else "judge")
    if text is None:
        return request
    first, *rest = request.messages
    if first.role == "system":
        first = Message("system", (text + "\n\n", *first.parts))
        return replace(request, messages=(first, *rest))
    return replace(request, messages=(Message("system", (text,)), *request.messages))


def ask_model(
    request: Request, item_id: str, *, repeat: int = 0, given: Given | None = None
) -> Flow[ReplyRow]:
    """The model's reply to one item; from `given`, without a call, where replies exist already.

    Blank replies keep the reason why they are blank as their status (`contract`: blank replies).
    A text before a closing mark of thoughts with nothing behind it is kept, and marked doubtful.
    """
    if given is not None:
        row = given.get((item_id, repeat)) or given.get((item_id, 0))
        if row is None:
            return ReplyRow(item_id, None, status="failed", failure="no_reply", repeat=repeat)
        return replace(row, repeat=repeat)
    [answer] = yield [request]
    return reply_row(answer, item_id, repeat=repeat)


def reply_row(answer: Answer, item_id: str, *, repeat: int = 0) -> ReplyRow:
    """An answer of the model as a row; its tokens are counted later."""
    if isinstance(answer, CallFailure):
        return ReplyRow(
            item_id,
            None,
            status="failed",
            failure=answer.kind,
            reasoning=answer.message,
            latency_s=answer.latency_s,
            repeat=repeat,
        )
    blank = blank_reason(
        answer.text,
        reasoning=answer.reasoning,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    doubtful = drop_doubtful_mark(answer.text)
    return ReplyRow(
        item_id,
        answer.text.strip() if doubtful is None else doubtful,
        reasoning=answer.reasoning,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        latency_s=answer.latency_s,
        status=blank or "ok",
        repeat=repeat,
        doubt=doubtful is not None,
    )


def failed_reason(row: ReplyRow) -> str | None:
    """Why an item has no reply to judge (`model_timeout` ...), or None."""
    return f"model_{row.failure}" if row.failure else None


class Asked(msgspec.Struct, Generic[T], frozen=True):
    """What asking ended with: the value of the last reply, or why there is none.

    `reason` is None where there is a value; else `ROLE_KIND` for a failed call, such as
    `judge_timeout`, or `unreadable_WHY`. `partial` is what of an unreadable reply could be read.
    `raw` is the last reply's text, or the failure's message; `usage` adds up all asks; `errors`
    says of each unreadable reply what was wrong with it, in order.
    """

    value: T | None
    reason: str | None = None
    raw: str = ""
    usage: Usage = NO_USAGE
    reply: Reply | None = None
    errors: tuple[str, ...] = ()
    partial: object = None


def ask_until(
    request: Request,
    parse: Callable[[Reply], T],
    *,
    remind: str | None = None,
    schema: Schema | None = None,
    reasks: int = REASKS,
) -> Flow[Asked[T]]:
    r"""Ask until a reply parses: at most `reasks` times again.

    `parse` makes a value of a reply or raises `UnreadableError`; `json_reply(type)` is one for JSON
    replies. The reminder stands at the end of the request, so that its prefix stays as it was;
    `{error}` in it is replaced by what was wrong. `schema` binds the replies from the second on,
    where the endpoint can: the first ask stays as the protocol has it. A failed call ends the
    asking: retries are the scheduler's.

    >>> from snellen.replies import json_reply
    >>> class Card(msgspec.Struct):
    ...     question: str
    >>> request = Request("writer", (Message("user", ("Write a question.",)),), "card")
    >>> replies = iter(["What colour is it?", '{"question": "What colour is it?"}'])
    >>> asked = run_by_hand(ask_until(request, json_reply(Card)), lambda _: Reply(next(replies)))
    >>> asked.value
    Card(question='What colour is it?')
    >>> asked.errors
    ('JSON is malformed: invalid character (byte 0)',)
    """
    usage, wanted = NO_USAGE, request
    errors: tuple[str, ...] = ()
    for ask in range(reasks + 1):
        [answer] = yield [wanted]
        if isinstance(answer, CallFailure):
            reason = f"{request.role}_{answer.kind}"
            return Asked(None, reason, answer.message, usage, None, errors)
        usage = add_usage(usage, answer.usage) if ask else answer.usage
        try:
            return Asked(parse(answer), None, answer.text, usage, answer, errors)
        except UnreadableError as error:
            unreadable, errors = error, (*errors, str(error))
        text = bundled("remind_error").text if remind is None else remind
        wanted = again(request, ask + 1, text.replace("{error}", str(unreadable)), schema=schema)
    reason = f"unreadable_{unreadable.reason}"
    return Asked(None, reason, answer.text, usage, answer, errors, unreadable.partial)


def ask_parts(
    request: Request,
    parse: Callable[[Reply], Sequence[Parsed]],
    n: int,
    *,
    remind: str,
    schema: Schema | None = None,
    reasks: int = REASKS,
) -> Flow[tuple[list[Asked[Parsed]], Usage]]:
    """Ask for `n` things in one call until each was readable once; and the usage of all asks.

    A part that an earlier reply made readable is kept as it was.
    """
    parts: list[Asked[Parsed]] = [Asked(None, f"{request.role}_not_asked")] * n

    def parse_open(reply: Reply) -> None:
        for k, parsed in enumerate(parse(reply)):
            if parts[k].reason is not None and parsed.value is None:
                reason = f"unreadable_{parsed.reason}"
                parts[k] = Asked(None, reason, reply.text, partial=parsed)
            elif parts[k].reason is not None:
                parts[k] = Asked(parsed, None, reply.text)
        left = next((part.reason for part in parts if part.reason is not None), None)
        if left is not None:
            raise UnreadableError(left.removeprefix("unreadable_"))

    asked = yield from ask_until(request, parse_open, remind=remind, schema=schema, reasks=reasks)
    if asked.reply is None:
        failed: Asked[Parsed] = Asked(None, asked.reason, asked.raw)
        parts = [failed if part.reason is not None else part for part in parts]
    return parts, asked.usage


def readable(parsed: Parsed) -> Parsed:
    """A reading that has a value.

    Raises:
        UnreadableError: it has none; the reading is the error's `partial`.
    """
    if parsed.value is None:
        raise UnreadableError(parsed.reason or "no_verdict", partial=parsed)
    return parsed


def said(asked: Asked[Parsed]) -> Parsed:
    """What was read of the last reply, even where that has no value."""
    found = asked.partial if asked.value is None else asked.value
    return found if isinstance(found, Parsed) else Parsed(None)


def again(request: Request, ask: int, reminder: str, *, schema: Schema | None = None) -> Request:
    """The same request with a reminder at its end, so that its prefix stays as it was."""
    *before, last = request.messages
    ended = Message(last.role, (*last.parts, "\n\n" + reminder))
    if isinstance(last.parts[-1], str):
        ended = Message(last.role, (*last.parts[:-1], f"{last.parts[-1]}\n\n{reminder}"))
    return replace(request, messages=(*before, ended), ask=ask, schema=schema)


def add_usage(a: Usage, b: Usage) -> Usage:
    """Two usages added; a count is None only where both are.

    >>> add_usage(Usage(prompt=3), Usage(prompt=4, completion=1))
    Usage(prompt=7, completion=1, reasoning=None, cached=None)
    """
    return Usage(
        _add(a.prompt, b.prompt),
        _add(a.completion, b.completion),
        _add(a.reasoning, b.reasoning),
        _add(a.cached, b.cached),
    )


def _add(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def given_rows(replies: Mapping[str, str]) -> dict[tuple[str, int], ReplyRow]:
    """Replies that exist, as rows: thoughts apart, and the reason why a blank one is blank.

    What other tools wrote where a call had failed is no reply.

    >>> given_rows({"cat": "Failed to obtain answer via API."})[("cat", 0)].failure
    'no_answer'
    >>> given_rows({"cat": " "})[("cat", 0)].status
    'empty'
    >>> given_rows({"cat": "<think>Stripes?</think>A cat."})[("cat", 0)].reply
    'A cat.'
    """
    return {(name, 0): _given_row(name, text) for name, text in replies.items()}


def _given_row(name: str, text: str) -> ReplyRow:
    if text.lstrip().startswith(FAILURE_TEXTS):
        return ReplyRow(name, None, status="failed", failure="no_answer", reasoning=text.strip())
    thought, rest = split_thinking(text)
    return reply_row(Reply(rest, reasoning=thought), name)


def match_given(items: Sequence[Item], given: Given | None) -> tuple[str, ...]:
    """Notices of replies that exist for no item, and of items that none exists for.

    Raises:
        DataError: there are replies, and not one of them is for any item.
    """
    if given is None:
        return ()
    known = {item.id for item in items}
    found = {name for name, _ in given}
    if found and known.isdisjoint(found):
        raise DataError(
            f"none of the {len(found)} given replies has the id of an item: found "
            f"{min(found)!r}, expected for example {items[0].id!r}",
            hint='rows are {"id", "reply"}; ids are those of `image_id`, `id` or `index`',
        )
    strange, missing = sorted(found - known), [i.id for i in items if i.id not in found]
    notices = []
    if strange:
        notices.append(f"not used: {len(strange)} replies to no item of this run ({_few(strange)})")
    if missing:
        notices.append(f"{len(missing)} of {len(items)} items have no reply ({_few(missing)})")
    return tuple(notices)


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
