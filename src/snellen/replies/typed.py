"""JSON replies as values of a type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from snellen.records import JsonObject, Reply
from snellen.replies.text import (
    blank_reason,
    drop_thinking,
)

T = TypeVar("T")


class UnreadableError(ValueError):
    """A reply that cannot be parsed: the message says why in one line, `reason` in one word.

    `partial` is what could be read of the reply all the same.
    """

    def __init__(self, reason: str, message: str = "", *, partial: object = None) -> None:
        super().__init__(message or reason.replace("_", " "))
        self.reason = reason
        self.partial = partial


_FENCED = re.compile(r"^[ \t]*+(?:```|~~~)[\w+-]*+[ \t]*+\n(.*?)^[ \t]*+(?:```|~~~)", re.M | re.S)


def json_reply(kind: type[T]) -> Callable[[Reply], T]:
    r"""A parser of replies that are JSON of a type: a msgspec struct, a dict, a list and the like.

    Thoughts and a code fence are taken off; the rest is decoded strictly. The parser raises
    `UnreadableError` with one line that says what is wrong and where.

    >>> class Card(msgspec.Struct):
    ...     question: str
    ...     options: list[str]
    >>> parse = json_reply(Card)
    >>> parse(Reply('<think>Hm</think>```json\n{"question": "Hue?", "options": ["red"]}\n```'))
    Card(question='Hue?', options=['red'])
    >>> parse(Reply('{"question": "Hue?"}'))
    Traceback (most recent call last):
    snellen.replies.typed.UnreadableError: Object missing required field `options`
    """
    decoder = msgspec.json.Decoder(kind)

    def parse(reply: Reply) -> T:
        text = drop_thinking(reply.text).strip()
        reason = blank_reason(text, reasoning=reply.reasoning, finish_reason=reply.finish_reason)
        if reason is not None:
            raise UnreadableError(reason, f"the reply is blank ({reason})")
        fenced = _FENCED.findall(text) if "```" in text or "~~~" in text else []
        try:
            return decoder.decode(fenced[0] if len(fenced) == 1 else text)
        except msgspec.ValidationError as error:
            raise UnreadableError("not_as_asked", str(error)) from error
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            cut = reply.finish_reason == "length"
            raise UnreadableError("truncated" if cut else "no_json", str(error)) from error

    return parse


def json_schema(kind: type) -> JsonObject:
    """The JSON schema of a type, as `Request.schema` takes it."""
    return msgspec.json.schema(kind)
