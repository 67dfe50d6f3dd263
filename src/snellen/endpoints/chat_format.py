"""The chat-completions format on the wire: a request to bytes, bytes to a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from snellen.endpoints.lenient import ErrorInReplyError, UnreadableReplyError, mend
from snellen.errors import UsageError
from snellen.records import JsonObject, Message, Params, Reply, Request, Usage
from snellen.replies import split_thinking

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
RESERVED = frozenset({"model", "messages", "stream", "stream_options"})
IMAGE_DETAIL = "image_detail"

# What servers call a reply that a token limit cut, or a filter; the rest are known by their names.
_ENDS: Mapping[str, str] = {
    "MAX_TOKENS": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "SAFETY": "content_filter",
    "sensitive": "content_filter",
}
# What they say of a reply that is not whole through no fault of its own.
_BREAKS = frozenset({"error", "abort", "insufficient_system_resource", "network_error"})

_encode = msgspec.json.Encoder().encode


class PreparedPicture(Protocol):
    """A picture ready to be sent: its URI in two pieces, of which the second may be large."""

    @property
    def data_uri_parts(self) -> tuple[bytes, bytes]: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint has taught: fields under another name, fields that it does not take."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def notes(self, params: Params) -> tuple[str, ...]:
        """What it changes in these body fields, in words."""
        if not self.renamed and not self.dropped:
            return ()
        found = [f"{old} sent as {new}" for old, new in self.renamed.items() if old in params]
        found += [f"{name} not sent: refused" for name in sorted(self.dropped & params.keys())]
        return tuple(found)

    def translate(self, params: Params) -> Params:
        """The body fields as this endpoint takes them."""
        if not self.renamed and not self.dropped:
            return params
        kept = {k: v for k, v in params.items() if k not in self.dropped}
        return {self.renamed.get(k, k): v for k, v in kept.items()}


def encode_request(
    request: Request,
    pictures: Sequence[PreparedPicture],
    *,
    model: str,
    params: Params,
) -> bytes:
    """The JSON body of a call. Base64 goes in as it is: it needs no escaping.

    `pictures` are the prepared pictures in the order in which the messages name them; `params`
    are the other body fields, of which `image_detail` (`low`, `high`) goes to the pictures.

    Raises: UsageError, for fewer pictures than the messages name.

    >>> request = Request("model", (Message("user", ("Hi",)),), "caption")
    >>> encode_request(request, (), model="m", params={"seed": 1})
    b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":1}'
    """
    fields = dict(params)
    detail = fields.pop(IMAGE_DETAIL, None)
    tail = b'"}}' if detail is None else b'","detail":%s}}' % _encode(detail)
    supply = iter(pictures)
    pieces = [b'{"model":', _encode_text(model), b',"messages":[']
    for number, message in enumerate(request.messages):
        pieces.append(b"," if number else b"")
        _add_message(pieces, message, supply=supply, tail=tail)
    pieces.append(b"]")
    if fields:
        pieces += [b",", _encode(fields)[1:]]
    else:
        pieces.append(b"}")
    return b"".join(pieces)


def response_format(schema: Params | Sequence[str]) -> JsonObject:
    """The body field that binds a reply to a JSON schema, or to one of several answers.

    Many endpoints take objects alone, so that a choice becomes an object with an `answer`.

    >>> response_format(("A", "B"))["json_schema"]["schema"]["properties"]
    {'answer': {'enum': ['A', 'B']}}
    """
    if not isinstance(schema, Mapping):
        schema = {
            "type": "object",
            "properties": {"answer": {"enum": list(schema)}},
            "required": ["answer"],
            "additionalProperties": False,
        }
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def _add_message(
    pieces: list[bytes],
    message: Message,
    *,
    supply: Iterator[PreparedPicture],
    tail: bytes,
) -> None:
    pieces.append(b'{"role":"%s","content":' % message.role.encode())
    texts = [part for part in message.parts if isinstance(part, str)]
    if len(texts) == len(message.parts):
        pieces += [_encode_text("".join(texts)), b"}"]
        return
    for number, part in enumerate(message.parts):
        pieces.append(b"," if number else b"[")
        if isinstance(part, str):
            pieces += [b'{"type":"text","text":', _encode_text(part), b"}"]
            continue
        picture = next(supply, None)
        if picture is None:
            raise UsageError("the messages name more pictures than were prepared for them")
        head, data = picture.data_uri_parts
        pieces += [b'{"type":"image_url","image_url":{"url":"', head, data, tail]
    pieces.append(b"]}")


def _encode_text(text: str) -> bytes:
    try:
        return _encode(text)
    except UnicodeEncodeError:
        # Half a surrogate pair is not text; servers refuse the whole body for it.
        return _encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def plain_messages(request: Request, pictures: Sequence[PreparedPicture]) -> list[JsonObject]:
    """The messages as the list of dicts that Python callers know, pictures as data URIs.

    >>> plain_messages(Request("model", (Message("user", ("Hi",)),), "caption"), ())
    [{'role': 'user', 'content': 'Hi'}]
    """
    body = encode_request(request, pictures, model="", params={})
    messages: list[JsonObject] = msgspec.json.decode(body)["messages"]
    return messages


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    thinking: str | list[_Part] | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None


class _Candidate(msgspec.Struct):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Candidate] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Candidate] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    error: object = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: object = None


_decode: Callable[[bytes], _Completion] = msgspec.json.Decoder(_Completion).decode


def read_reply(body: bytes, *, latency_s: float = 0.0, notes: tuple[str, ...] = ()) -> Reply:
    """The reply in the body of a chat completion.

    Raises: UnreadableReplyError, ErrorInReplyError.

    >>> read_reply(b'{"choices": [{"message": {"content": "E"}}]}').text
    'E'
    """
    try:
        completion = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # A count in a strange shape must not cost an answer that was paid for.
        mended, note = mend(body, str(error))
        completion, notes = msgspec.convert(mended, _Completion), (*notes, note)
    if completion.error or completion.choices is None:
        raise ErrorInReplyError(body)
    if not completion.choices:
        raise UnreadableReplyError("the reply has no choices")
    choice = completion.choices[0]
    if choice.error:
        raise ErrorInReplyError(_encode({"error": choice.error}))
    if choice.finish_reason in _BREAKS:
        raise UnreadableReplyError(
            f"the server broke its reply off (finish_reason `{choice.finish_reason}`)"
        )
    text, thought, refused = _read_message(choice.message)
    return Reply(
        text=text,
        reasoning=thought,
        finish_reason=_ENDS.get(choice.finish_reason or "", choice.finish_reason),
        usage=_read_usage(completion.usage),
        latency_s=latency_s,
        model=completion.model,
        refusal=refused,
        choices=_first_token(choice.logprobs),
        notes=notes,
    )


def _read_message(message: _Message) -> tuple[str, str | None, bool]:
    """Text, thoughts, and whether it is a refusal; a refusal's words are its text."""
    content, thought = message.content, message.reasoning_content or message.reasoning
    refusal = message.refusal
    if isinstance(content, list):
        thought = thought or _join(content, "thinking")
        refusal = refusal or _join(content, "refusal")
        content = _join(content, "text")
    found, text = take_off_thoughts(content or "")
    if found is not None:
        thought = f"{thought}\n{found}" if thought else found
    refused = refusal is not None and not text.strip()
    return (refusal or text if refused else text), thought, refused


def take_off_thoughts(text: str) -> tuple[str | None, str]:
    """A leading think block (None if there is none), and the rest without the break between them.

    >>> take_off_thoughts("<think>Hm</think>\\n\\nRed.")
    ('Hm', 'Red.')
    """
    thought, rest = split_thinking(text)
    return (None, text) if thought is None else (thought, rest.lstrip())


def _join(parts: Sequence[_Part], name: str) -> str | None:
    found = [getattr(part, name) for part in parts]
    texts = [x if isinstance(x, str) else _join(x, "text") or "" for x in found if x is not None]
    return "".join(texts) if texts else None


def _read_usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    before, after = usage.prompt_tokens_details, usage.completion_tokens_details
    cached = before.cached_tokens if before else None
    thought = after.reasoning_tokens if after else None
    prompt, completion = _count(usage.prompt_tokens), _count(usage.completion_tokens)
    # Gemini and Grok leave thoughts, which are billed as completion, out of its tokens.
    is_known = prompt is not None and usage.total_tokens is not None
    listed = (prompt or 0) + (completion or 0)
    unlisted = max(0, (usage.total_tokens or 0) - listed) if is_known else 0
    if unlisted:
        completion = (completion or 0) + unlisted
        thought = unlisted if thought is None else thought
    return Usage(
        prompt=prompt,
        completion=completion,
        reasoning=_count(thought),
        cached=_count(usage.prompt_cache_hit_tokens if cached is None else cached),
    )


def _count(said: int | None) -> int | None:
    """A count of tokens; -1 and the like stand for one that is not known."""
    return said if said is None or said >= 0 else None


def _first_token(logprobs: _Logprobs | None) -> Mapping[str, float] | None:
    if logprobs is None or not logprobs.content:
        return None
    first = logprobs.content[0]
    found: dict[str, float] = {}
    for candidate in (first, *(first.top_logprobs or ())):
        if candidate.logprob is not None:  # minus infinity, which JSON cannot say
            found[candidate.token] = max(candidate.logprob, found.get(candidate.token, -1e9))
    return found or None


_REFUSED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|not permitted|not allowed|unexpected"
    r"|instead|\binvalid\b|\bextra\b|does not take|not available|additional propert|only the def"
    r"|deprecated|no longer|(must|has to|should) be|(may|can) only|cannot|can't|\brange\b"
)
_SCHEMA_WORDS = ("response_format", "json_schema", "structured output", "guided", "grammar")


def learn(dialect: Dialect, words: str, *, sent: Params, soft: frozenset[str]) -> Dialect | None:
    """What a refused request teaches, or None if there is nothing to try instead.

    `words` are the server's, in lower case; `sent` the body fields as they went out; `soft` the
    fields that may be given up. `response_format` always may.

    >>> words = "unsupported parameter: use 'max_completion_tokens' instead"
    >>> learn(Dialect(), words, sent={"max_tokens": 9}, soft=frozenset()).renamed
    {'max_tokens': 'max_completion_tokens'}
    """
    if not _REFUSED.search(words):
        return None
    for name, other in (LIMIT_NAMES, LIMIT_NAMES[::-1]):
        met_before = name in dialect.renamed.values()
        # The older name is refused by naming the newer; the newer by servers that know no other.
        is_size = "too large" in words or "too small" in words
        named_instead = _names(words, other if name == LIMIT_NAMES[0] else name)
        if name in sent and not met_before and named_instead and not is_size:
            return Dialect({**dialect.renamed, name: other}, dialect.dropped)
    named = frozenset(name for name in soft & sent.keys() if is_named(words, name, sent[name]))
    if "response_format" in sent and any(word in words for word in _SCHEMA_WORDS):
        named |= {"response_format"}
    return Dialect(dialect.renamed, dialect.dropped | named) if named else None


def is_named(words: str, name: str, value: object = None) -> bool:
    """Whether a refusal names a body field, or a field inside of it.

    >>> is_named("unknown field enable_thinking", "chat_template_kwargs", {"enable_thinking": 0})
    True
    """
    inner = value if isinstance(value, Mapping) else ()
    return any(_names(words, part.lower()) for part in (name, *inner))


def _names(words: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None


def is_listed(model: str, names: Sequence[str]) -> bool:
    """Whether a model stands in an endpoint's list, also by the name that only the list uses.

    >>> is_listed("gemini-x", ["models/gemini-x"]), is_listed("llava", ["llava:latest"])
    (True, True)
    """
    known = {alias for name in names for alias in (name, name.removeprefix("models/"))}
    return model in known or f"{model}:latest" in known
