"""Replies from bodies that are not quite chat completions: what was paid for is not thrown away.

Gateways stream though nobody asked, put thoughts or content into other shapes, write NaN, and cut
characters in half. `mend` brings all of that into the one shape that `wire` reads.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Iterator

from snellen.records import JsonObject, Params

_EVENT_FIELDS = ("data:", "event:", "id:", "retry:", ":")


class UnreadableReplyError(ValueError):
    """A body that holds no reply; the text says why. Never leaves the client."""


class ErrorInReplyError(ValueError):
    """A body of status 200 that holds an error instead of a reply; `body` is that error as JSON.

    Never leaves the client.
    """

    def __init__(self, body: bytes) -> None:
        super().__init__("an error instead of a reply")
        self.body = body


def mend(body: bytes, said: str) -> tuple[JsonObject, str]:
    """The completion in a body that is none by the letter, and a note of what was wrong with it.

    `said` is what a strict reader found wrong.

    Raises: UnreadableReplyError, ErrorInReplyError.

    >>> mend(b'data: {"choices": [{"delta": {"content": "E"}}]}\\n\\ndata: [DONE]', "")[1]
    'the reply came as a stream of events'
    """
    text = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").strip()
    if text.startswith(_EVENT_FIELDS):
        events = list(_events(text, said))
        if events:
            return _tidy(_joined(events), said), "the reply came as a stream of events"
        # Some gateways keep the line busy with comments before a body that is no stream.
        text = "\n".join(line for line in _lines(text) if not line.startswith(":")).strip()
    value = _read_json(text, body, said)
    return _tidy(value, said), f"parts of the reply are unreadable: {said}"


def _read_json(text: str, body: bytes, said: str) -> object:
    """A JSON value, with NaN, infinities and raw line breaks allowed."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        head, found = body[:200].lstrip().lower(), "text"
        if not head:
            found = "an empty body"
        elif head.startswith(b"<"):
            found = "HTML"
        elif head.startswith(tuple(field.encode() for field in _EVENT_FIELDS)):
            found = "a stream of events"
        elif head.startswith((b"{", b"[")):
            found = "cut JSON"
        raise UnreadableReplyError(f"{found} instead of JSON ({said})") from error


def _events(text: str, said: str) -> Iterator[JsonObject]:
    """The objects of a stream of events.

    Raises: UnreadableReplyError, for a stream that breaks off before its end.
    """
    is_whole = False
    for line in _lines(text):
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            is_whole = True
        elif data:
            event = _read_json(data, b"data:", said)
            if isinstance(event, dict):
                first = _first(event.get("choices"))
                is_whole = is_whole or bool(first.get("finish_reason") or event.get("error"))
                yield event
    if "data:" in text and not is_whole:
        raise UnreadableReplyError("a stream of events that was cut off, instead of JSON")


def _lines(text: str) -> list[str]:
    """The lines as event streams have them: other line separators may stand inside of JSON."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _first(entries: object) -> Params:
    entry = entries[0] if isinstance(entries, list) and entries else None
    return entry if isinstance(entry, dict) else {}


def _joined(events: list[JsonObject]) -> JsonObject:
    """The completion whose pieces are the events of a stream."""
    whole: JsonObject = {"choices": [{"message": {}}]}
    choice = whole["choices"][0]
    for event in events:
        whole |= {k: v for k, v in event.items() if k in ("usage", "model", "error") and v}
        piece = _first(event.get("choices"))
        choice |= {k: v for k, v in piece.items() if k in ("finish_reason", "error") and v}
        message, delta = choice["message"], piece.get("delta") or piece.get("message") or {}
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if more := _plain(delta.get(name)):
                message[name] = message.get(name, "") + more
    return whole


def _tidy(value: object, said: str) -> JsonObject:
    """A completion with everything in its usual shape; what has none is left out."""
    if not isinstance(value, dict):
        raise UnreadableReplyError(f"JSON that is no chat completion ({said})")
    choices = value.get("choices")
    if value.get("error") or not isinstance(choices, list):
        raise ErrorInReplyError(json.dumps(value).encode())
    if not choices:
        raise UnreadableReplyError("the reply has no choices")
    choice = _first(choices)
    reason = choice.get("finish_reason")
    if isinstance(reason, dict):
        reason = reason.get("type")
    tidied: JsonObject = {
        "choices": [
            {
                "message": _tidy_message(choice, said),
                "finish_reason": reason if isinstance(reason, str) else None,
                "logprobs": _tidy_logprobs(choice.get("logprobs")),
                "error": choice.get("error"),
            }
        ],
        "usage": _tidy_usage(value.get("usage")),
    }
    if isinstance(value.get("model"), str):
        tidied["model"] = _whole_text(value["model"])
    return tidied


def _tidy_message(choice: Params, said: str) -> JsonObject:
    """The message of a choice; one that ended without a message is blank."""
    message = choice.get("message")
    if message is None and (choice.get("finish_reason") or isinstance(choice.get("text"), str)):
        message = {"content": choice.get("text")}
    if not isinstance(message, dict):
        raise UnreadableReplyError(f"JSON that is no chat completion ({said})")
    content = message.get("content")
    if not isinstance(content, str | list | dict | None):
        raise UnreadableReplyError(f"JSON that is no chat completion ({said})")
    parts = content if isinstance(content, list) else [content]
    thoughts = [p.get("thinking") for p in parts if isinstance(p, dict)]
    words, thought = _plain(parts), _plain(thoughts)
    if content and words is None and thought is None:
        raise UnreadableReplyError(f"JSON that is no chat completion ({said})")
    found = {
        "content": words,
        "reasoning_content": _plain(message.get("reasoning_content")),
        "reasoning": _plain(message.get("reasoning")) or thought,
        "refusal": _plain(message.get("refusal")),
    }
    return {name: text for name, text in found.items() if text is not None}


def _plain(value: object) -> str | None:
    """The text of a string, a part, or a list of such; None where there is none."""
    if isinstance(value, str):
        return _whole_text(value)
    if isinstance(value, dict):
        return _plain(value.get("text", value.get("value")))
    if isinstance(value, list):
        texts = [text for text in map(_plain, value) if text is not None]
        return "".join(texts) if texts else None
    return None


def _whole_text(text: str) -> str:
    """The text with halves of characters replaced: they cannot be written in UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _tidy_logprobs(logprobs: object) -> JsonObject | None:
    """The first token's candidates, which are all that is used."""
    first = _first(logprobs.get("content") if isinstance(logprobs, dict) else None)
    token = _candidate(first)
    if token is None:
        return None
    more = first.get("top_logprobs")
    top = [_candidate(entry) for entry in more] if isinstance(more, list) else []
    return {"content": [{**token, "top_logprobs": [entry for entry in top if entry]}]}


def _candidate(entry: object) -> JsonObject | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return None
    said = entry.get("logprob")
    is_number = isinstance(said, int | float) and abs(said) < 2**53
    return {"token": _whole_text(entry["token"]), "logprob": said if is_number else None}


def _tidy_usage(usage: object) -> JsonObject | None:
    """The counts that are counts, also where they are written as text or as 12.0."""
    if not isinstance(usage, dict):
        return None
    found: JsonObject = {}
    for name, value in usage.items():
        if isinstance(value, dict):
            found[name] = _tidy_usage(value)
        elif isinstance(value, int | float | str) and not isinstance(value, bool):
            with contextlib.suppress(ValueError, OverflowError):
                if 0 <= (number := float(value)) < 2**53:
                    found[name] = int(number)
    return found
