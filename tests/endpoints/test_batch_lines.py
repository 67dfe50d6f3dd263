"""Lines of batch files: how a call is said in each format, and what an answer there means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from snellen.endpoints.batch_lines import FORMATS, LinkedPicture
from snellen.errors import UsageError
from snellen.pictures.prepare import Picture
from snellen.records import CallFailure, Image, Message, Reply, Request, Usage
from snellen.settings import Endpoint

PICTURE = Picture("image/png", b"aGVsbG8=", 1, 1)
END = Endpoint(
    "eye", "http://host/v1", "eye-1", params={"temperature": 0, "max_tokens": 9, "stop": "END"},
    soft_params={"chat_template_kwargs": {"enable_thinking": False}},
)  # fmt: skip
ASKED = Request(
    "model",
    (
        Message("system", ("Be brief.",)),
        Message("user", (Image("a", "", ""), "Describe it.")),
    ),
    "reply",
)


def line(form: str, endpoint: Endpoint = END, picture: Any = PICTURE) -> Any:
    return msgspec.json.decode(FORMATS[form].write("n-1", ASKED, [picture], endpoint))


def answer(form: str, said: dict[str, Any]) -> Any:
    return FORMATS[form].read(said)[1]


class TestWriting:
    def test_openai_is_a_call_as_it_is_sent(self) -> None:
        found = line("openai")
        body = found.pop("body")
        assert found == {"custom_id": "n-1", "method": "POST", "url": "/v1/chat/completions"}
        assert (body["model"], body["max_tokens"], body["stop"]) == ("eye-1", 9, "END")
        assert body["messages"][1]["content"][0]["image_url"]["url"].startswith("data:image/png")
        assert "chat_template_kwargs" in body

    def test_openai_itself_gets_no_field_that_it_refuses(self) -> None:
        at_home = replace(END, url="https://api.openai.com/v1")
        body = line("openai", at_home)["body"]
        assert body["max_completion_tokens"] == 9
        assert "max_tokens" not in body
        assert "chat_template_kwargs" not in body

    def test_anthropic_has_its_system_apart(self) -> None:
        params = line("anthropic")["params"]
        assert (params["system"], params["max_tokens"]) == ("Be brief.", 9)
        assert params["stop_sequences"] == ["END"]
        [message] = params["messages"]
        source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
        assert message["content"] == [
            {"type": "image", "source": source}, {"type": "text", "text": "Describe it."},
        ]  # fmt: skip
        assert line("anthropic", Endpoint("eye", "http://h/v1", "m"))["params"]["max_tokens"] > 99

    def test_gemini_has_contents_and_a_configuration(self) -> None:
        found = line("gemini")
        assert found["key"] == "n-1"
        request = found["request"]
        assert request["system_instruction"] == {"parts": [{"text": "Be brief."}]}
        assert request["generation_config"] == {
            "temperature": 0, "max_output_tokens": 9, "stop_sequences": ["END"],
        }  # fmt: skip
        [turn] = request["contents"]
        assert turn["parts"][0] == {"inline_data": {"mime_type": "image/png", "data": "aGVsbG8="}}

    def test_a_picture_may_have_an_address(self) -> None:
        linked = LinkedPicture("image/png", "https://host/a.png")
        for form, place in (
            ("openai", ("body", "messages", 1, "content", 0, "image_url", "url")),
            ("anthropic", ("params", "messages", 0, "content", 0, "source", "url")),
            ("gemini", ("request", "contents", 0, "parts", 0, "file_data", "file_uri")),
        ):
            value = line(form, picture=linked)
            for step in place:
                value = value[step]
            assert value == "https://host/a.png"

    @pytest.mark.parametrize(("form", "name"), [("anthropic", "seed"), ("gemini", "logprobs")])
    def test_what_a_format_cannot_say_is_refused(self, form: str, name: str) -> None:
        with pytest.raises(UsageError, match=f"`{name}` cannot be sent in"):
            line(form, replace(END, params={name: 1}))


class TestReading:
    def test_a_reply_with_its_usage(self) -> None:
        message = {
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Red."}],
            "stop_reason": "max_tokens", "model": "m",
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
        }  # fmt: skip
        found = answer("anthropic", {"result": {"type": "succeeded", "message": message}})
        assert found == Reply("Red.", "Hm.", "length", Usage(7, 3, None, 2), model="m")
        parts = [{"text": "Hm.", "thought": True}, {"text": "Red."}]
        counts = {"promptTokenCount": 7, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}
        response = {
            "candidates": [{"content": {"parts": parts}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": counts, "modelVersion": "m",
        }  # fmt: skip
        found = answer("gemini", {"key": "n", "response": response})
        assert found == Reply("Red.", "Hm.", "length", Usage(7, 3, 2, None), model="m")

    @pytest.mark.parametrize(
        ("form", "said", "kind"),
        [
            ("openai", {"response": {"status_code": 429, "body": {}}}, "rate_limit"),
            ("openai", {"response": None, "error": {"code": "batch_expired"}}, "timeout"),
            ("openai", {"response": {"status_code": 200, "body": {"choices": []}}}, "bad_reply"),
            ("openai", {"response": None, "error": "what?"}, "overload"),
            ("anthropic", {"result": {"type": "expired"}}, "timeout"),
            (
                "anthropic",
                {"result": {"type": "errored", "error": {"error": {"type": "rate_limit_error"}}}},
                "rate_limit",
            ),
            (
                "anthropic",
                {"result": {"type": "errored", "error": {"type": "authentication_error"}}},
                "auth",
            ),
            ("anthropic", {"result": 5}, "overload"),
            ("gemini", {"error": {"code": 8, "message": "slow down"}}, "rate_limit"),
            ("gemini", {"error": {"code": 400, "message": "bad field"}}, "bad_parameter"),
            ("gemini", {"response": {"promptFeedback": {"blockReason": "SAFETY"}}},
             "content_filter"),
            ("gemini", {"response": {"candidates": "?"}}, "bad_reply"),
        ],
    )  # fmt: skip
    def test_what_failed_is_told_apart(self, form: str, said: dict[str, Any], kind: str) -> None:
        found = answer(form, said)
        assert isinstance(found, CallFailure)
        assert found.kind == kind
