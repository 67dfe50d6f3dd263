"""Calls as lines of batch files: the formats of OpenAI (and vLLM), Anthropic and Gemini."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from snellen.endpoints.chat_format import IMAGE_DETAIL, encode_request, read_reply
from snellen.endpoints.failures import Refusal, one_line, read_failure
from snellen.endpoints.http import body_params
from snellen.endpoints.lenient import ErrorInReplyError, UnreadableReplyError
from snellen.errors import UsageError
from snellen.pictures.prepare import Picture
from snellen.records import Answer, CallFailure, JsonObject, Message, Params, Reply, Request, Usage
from snellen.settings import OPENAI_HOST, Endpoint

FormatName = Literal["openai", "anthropic", "gemini"]
MEGABYTE = 10**6
# The most tokens of a reply where a format demands a limit and none is set.
ANTHROPIC_MAX_TOKENS = 4096

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class LinkedPicture:
    """A picture that the provider fetches from an address."""

    mime: str
    url: str

    @property
    def data_uri_parts(self) -> tuple[bytes, bytes]:
        """Its address, in the place of a data URI."""
        return self.url.encode(), b""


Sent = Picture | LinkedPicture


class BatchFormat(ABC):
    """A provider's batch files: their limits, and how a call and its answer are written there."""

    name: FormatName
    most_lines: int
    most_bytes: int
    url: str

    @abstractmethod
    def write(
        self, name: str, request: Request, pictures: Sequence[Sent], endpoint: Endpoint
    ) -> bytes:
        """The line of a call by its name, without a newline."""

    @abstractmethod
    def read(self, line: JsonObject) -> tuple[str, Answer]:
        """The name and the answer of a line of replies; its body is plain JSON."""


def _params(request: Request, endpoint: Endpoint) -> JsonObject:
    """The body fields; those that an endpoint may refuse are not sent where it cannot say so."""
    params = body_params(request, endpoint)
    soft = endpoint.soft_params.keys() - endpoint.params.keys()
    return {name: value for name, value in params.items() if name not in soft}


def _texts_and_pictures(
    message: Message, supply: Iterator[Sent], *, text: Callable[[str], JsonObject],
    picture: Callable[[Sent], JsonObject],
) -> list[JsonObject]:  # fmt: skip
    return [
        text(part) if isinstance(part, str) else picture(next(supply)) for part in message.parts
    ]


def _object(value: object) -> JsonObject:
    """The value where it is an object, an empty one otherwise: a provider may send anything."""
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[JsonObject]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _failed(status: int, error: object) -> CallFailure:
    return read_failure(Refusal(status, _encode({"error": error}), {}), url="the batch")


# Fields of chat completions that another format does not know under any name.
_OPENAI_ALONE = frozenset(
    {
        "seed", "logprobs", "top_logprobs", "n", "presence_penalty", "frequency_penalty",
        "logit_bias", "reasoning_effort",
    }
)  # fmt: skip


def _without(params: Params, banned: frozenset[str], provider: str) -> JsonObject:
    """The fields without the details of pictures, which no other format has.

    Raises:
        UsageError: a field cannot be said in this format.
    """
    for name in params:
        if name in banned:
            raise UsageError(
                f"`{name}` cannot be sent in {provider}'s batch format", hint="leave it out"
            )
    return {k: v for k, v in params.items() if k not in (IMAGE_DETAIL, "response_format")}


_ANTHROPIC_STATUS = {
    "invalid_request_error": 400, "invalid_request": 400, "authentication_error": 401,
    "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "request_too_large": 413, "rate_limit_error": 429, "overloaded_error": 529,
    "timeout_error": 504,
}  # fmt: skip
_ANTHROPIC_ENDS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}


_GEMINI_NAMES = {
    "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed",
    "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
    "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
}  # fmt: skip


# Statuses of gRPC that stand where others have one of HTTP.
_GRPC = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
_GEMINI_BLOCKS = (
    "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "IMAGE_SAFETY",
)  # fmt: skip
_GEMINI_ENDS = {"STOP": "stop", "MAX_TOKENS": "length"} | dict.fromkeys(
    _GEMINI_BLOCKS, "content_filter"
)


class OpenAiBatch(BatchFormat):
    """The format of OpenAI, and of vLLM."""

    name: FormatName = "openai"
    most_lines = 50_000
    most_bytes = 200 * MEGABYTE
    url = "https://api.openai.com/v1"

    def write(
        self, name: str, request: Request, pictures: Sequence[Sent], endpoint: Endpoint
    ) -> bytes:
        params = body_params(request, endpoint)
        if OPENAI_HOST in endpoint.url:
            params = _params(request, endpoint)
            if "max_tokens" in params:  # its newer models take the newer name alone, its older both
                params["max_completion_tokens"] = params.pop("max_tokens")
        body = encode_request(request, pictures, model=endpoint.model, params=params)
        head = {"custom_id": name, "method": "POST", "url": "/v1/chat/completions"}
        return _encode(head)[:-1] + b',"body":' + body + b"}"

    def read(self, line: JsonObject) -> tuple[str, Answer]:
        name = str(line.get("custom_id", ""))
        error, response = line.get("error"), line.get("response")
        if not isinstance(response, dict):
            code = str(error.get("code", "")) if isinstance(error, dict) else ""
            if "expired" in code or "cancel" in code:
                return name, CallFailure("timeout", one_line(f"the batch ended before it: {code}"))
            return name, _failed(500, error)
        body = response.get("body", response)
        status = int(response.get("status_code") or 200)
        if status >= 300:
            return name, read_failure(Refusal(status, _encode(body), {}), url="the batch")
        try:
            return name, read_reply(_encode(body))
        except ErrorInReplyError as broken:
            return name, read_failure(Refusal(200, broken.body, {}), url="the batch")
        except UnreadableReplyError as broken:
            return name, CallFailure("bad_reply", one_line(str(broken)))


class AnthropicBatch(BatchFormat):
    """The format of Anthropic."""

    name: FormatName = "anthropic"
    most_lines = 100_000
    most_bytes = 256 * MEGABYTE
    url = "https://api.anthropic.com/v1"

    def write(
        self, name: str, request: Request, pictures: Sequence[Sent], endpoint: Endpoint
    ) -> bytes:
        supply = iter(pictures)
        params = _without(_params(request, endpoint), _OPENAI_ALONE, "Anthropic")
        limit = params.pop("max_completion_tokens", None) or params.pop("max_tokens", None)
        if (stop := params.pop("stop", None)) is not None:
            params["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        system = "\n\n".join(
            "".join(map(str, m.parts)) for m in request.messages if m.role == "system"
        )
        messages = [
            {
                "role": message.role,
                "content": _texts_and_pictures(
                    message, supply, text=lambda text: {"type": "text", "text": text},
                    picture=self._picture,
                ),
            }
            for message in request.messages
            if message.role != "system"
        ]  # fmt: skip
        body = {"model": endpoint.model, "max_tokens": limit or ANTHROPIC_MAX_TOKENS}
        body |= {"system": system} if system else {}
        return _encode({"custom_id": name, "params": body | {"messages": messages} | params})

    @staticmethod
    def _picture(picture: Sent) -> JsonObject:
        if isinstance(picture, LinkedPicture):
            return {"type": "image", "source": {"type": "url", "url": picture.url}}
        data = picture.base64.decode()
        source = {"type": "base64", "media_type": picture.mime, "data": data}
        return {"type": "image", "source": source}

    def read(self, line: JsonObject) -> tuple[str, Answer]:
        name, result = str(line.get("custom_id", "")), _object(line.get("result"))
        kind = result.get("type")
        if kind in ("canceled", "expired"):
            return name, CallFailure("timeout", f"the batch ended before it: {kind}")
        if kind != "succeeded":
            error = _object(result.get("error"))
            error = _object(error.get("error", error))
            return name, _failed(_ANTHROPIC_STATUS.get(str(error.get("type")), 500), error)
        message = _object(result.get("message"))
        parts = _objects(message.get("content"))
        counts = _object(message.get("usage"))
        cached = counts.get("cache_read_input_tokens")
        prompt = [counts.get("input_tokens"), cached, counts.get("cache_creation_input_tokens")]
        end = message.get("stop_reason")
        return name, Reply(
            "".join(part.get("text", "") for part in parts if part.get("type") == "text"),
            reasoning="".join(part.get("thinking", "") for part in parts) or None,
            finish_reason=_ANTHROPIC_ENDS.get(str(end), end),
            usage=Usage(
                None if prompt[0] is None else sum(n or 0 for n in prompt),
                counts.get("output_tokens"), None, cached,
            ),
            model=message.get("model"),
            refusal=end == "refusal",
        )  # fmt: skip


class GeminiBatch(BatchFormat):
    """The format of Gemini."""

    name: FormatName = "gemini"
    most_lines = 10**9
    most_bytes = 2_000 * MEGABYTE
    url = "https://generativelanguage.googleapis.com/v1beta/openai"

    def write(
        self, name: str, request: Request, pictures: Sequence[Sent], endpoint: Endpoint
    ) -> bytes:
        supply = iter(pictures)
        banned = frozenset({"logprobs", "top_logprobs", "n", "logit_bias", "reasoning_effort"})
        params = _without(_params(request, endpoint), banned, "Gemini")
        config = {_GEMINI_NAMES.get(k, k): v for k, v in params.items() if k != "stop"}
        if (stop := params.get("stop")) is not None:
            config["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        if isinstance(request.schema, Mapping):
            config |= {
                "response_mime_type": "application/json", "response_json_schema": request.schema,
            }  # fmt: skip
        turns: dict[bool, list[JsonObject]] = {True: [], False: []}
        for message in request.messages:
            parts = _texts_and_pictures(
                message, supply, text=lambda text: {"text": text}, picture=self._picture
            )
            role = "model" if message.role == "assistant" else "user"
            turns[message.role == "system"].append({"role": role, "parts": parts})
        body: JsonObject = {"contents": turns[False]}
        if turns[True]:
            said = [part for turn in turns[True] for part in turn["parts"]]
            body["system_instruction"] = {"parts": said}
        if config:
            body["generation_config"] = config
        return _encode({"key": name, "request": body})

    @staticmethod
    def _picture(picture: Sent) -> JsonObject:
        if isinstance(picture, LinkedPicture):
            return {"file_data": {"mime_type": picture.mime, "file_uri": picture.url}}
        return {"inline_data": {"mime_type": picture.mime, "data": picture.base64.decode()}}

    def read(self, line: JsonObject) -> tuple[str, Answer]:
        name = str(line.get("key") or line.get("custom_id") or "")
        response, error = line.get("response"), line.get("error") or line.get("status")
        if not isinstance(response, dict):
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) else 500
            return name, _failed(_GRPC.get(status, status), error)
        candidates = _objects(response.get("candidates"))
        if not candidates:
            said = _object(response.get("promptFeedback") or response.get("prompt_feedback"))
            reason = said.get("blockReason") or said.get("block_reason")
            if reason:
                return name, CallFailure("content_filter", one_line(f"blocked: {reason}"))
            return name, CallFailure("bad_reply", "the reply has no candidates")
        first = candidates[0]
        parts = _objects(_object(first.get("content")).get("parts"))
        thoughts = "".join(part.get("text", "") for part in parts if part.get("thought"))
        counts = _object(response.get("usageMetadata") or response.get("usage_metadata"))
        thought = counts.get("thoughtsTokenCount")
        completion = counts.get("candidatesTokenCount")
        end = first.get("finishReason") or first.get("finish_reason")
        return name, Reply(
            "".join(part.get("text", "") for part in parts if not part.get("thought")),
            reasoning=thoughts or None,
            finish_reason=_GEMINI_ENDS.get(str(end), end),
            usage=Usage(
                counts.get("promptTokenCount"),
                None if completion is thought is None else (completion or 0) + (thought or 0),
                thought, counts.get("cachedContentTokenCount"),
            ),
            model=response.get("modelVersion"),
        )  # fmt: skip


FORMATS: Mapping[str, BatchFormat] = {
    one.name: one for one in (OpenAiBatch(), AnthropicBatch(), GeminiBatch())
}
"""The formats by name. Anthropic and OpenAI state lines and bytes; Gemini bytes alone."""


def picture_bytes(picture: Picture) -> bytes:
    """What a prepared picture is as a file."""
    return b64decode(picture.base64)
