"""The client against a real server: llama.cpp with a small model, on loopback."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.worlds.real_server import MODEL, RealServer, missing_parts

from snellen.endpoints.http import ChatClient
from snellen.records import CallFailure, Image, Message, Reply, Request
from snellen.settings import Endpoint

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_parts()), reason=f"not installed: {', '.join(missing_parts())}"
    ),
]

CAPTION = "A man in a red jacket stands beside a blue bus, and rain falls on the square. " * 26
QUESTIONS = ("What colour is the bus?", "What does the man wear?", "How is the weather?")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with RealServer() as server:
        yield server.url


def ask(text, **params):
    return Request("judge", (Message("user", (text,)),), "answer", params=params)


def call_all(url, requests, pictures=(), **fields):
    async def run():
        client = ChatClient(Endpoint("real", url, MODEL, **fields))
        try:
            return [await client.call(request, pictures) for request in requests]
        finally:
            await client.close()

    return asyncio.run(run())


def test_a_completion_with_usage(url):
    """A chat completion comes back with text, finish reason, tokens and the model's name."""
    [reply] = call_all(url, [ask("Say hello.", max_tokens=8, temperature=0)])
    assert isinstance(reply, Reply)
    assert reply.text.strip()
    assert (reply.finish_reason, reply.model) == ("length", MODEL)
    assert reply.usage.completion == 8
    assert reply.usage.prompt is not None
    assert reply.usage.prompt > 4


def test_logprobs(url):
    """The candidates for the first token are negative numbers, best first token included."""
    request = ask("Say hello.", max_tokens=1, temperature=0, logprobs=True, top_logprobs=5)
    [reply] = call_all(url, [request])
    assert reply.choices is not None
    assert len(reply.choices) == 5
    assert reply.text in reply.choices
    assert max(reply.choices, key=reply.choices.get) == reply.text
    assert all(value <= 0 for value in reply.choices.values())


def test_a_schema_is_obeyed(url):
    """A response format with a schema is passed on: the answer is JSON of that shape."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    [reply] = call_all(url, [ask("Is it so?", max_tokens=40, response_format=wanted)])
    assert reply.text.strip().startswith("{")
    assert '"ok"' in reply.text
    assert reply.notes == ()


def cached_shares(url, texts):
    requests = [ask(text, max_tokens=1, temperature=0) for text in texts]
    replies = call_all(url, [ask("Something else.", max_tokens=1), *requests])[1:]
    assert all(reply.usage.prompt > 400 for reply in replies)
    return [reply.usage.cached / reply.usage.prompt for reply in replies]


def test_caption_first_reuses_the_prefix(url):
    """With the caption first, later questions reuse at least 80% of the prompt's tokens."""
    first, *later = cached_shares(url, [f"{CAPTION}\n{question}" for question in QUESTIONS])
    assert first < 0.2
    assert min(later) >= 0.8


def test_question_first_reuses_next_to_nothing(url):
    """With the question first, the same questions share no useful prefix."""
    shares = cached_shares(url, [f"{question}\n{CAPTION}" for question in QUESTIONS])
    assert max(shares) < 0.2


def test_failures_of_a_real_server(url):
    """Too long a prompt, a picture for a blind model and a wrong path are told apart."""
    [long] = call_all(url, [ask("word " * 4000)])
    image = Image("a", "0" * 64, "a")
    [blind] = call_all(
        url,
        [replace(ask(""), messages=(Message("user", (image,)),))],
        [FakePicture()],
    )
    [lost] = call_all(url.replace("/v1", "/v7"), [ask("Hello")])
    assert [f.kind for f in (long, blind, lost) if isinstance(f, CallFailure)] == [
        "context_length",
        "bad_parameter",
        "unknown_model",
    ]


class FakePicture:
    mime = "image/png"
    base64 = b"AAAA"
    data_uri_parts = (b"data:image/png;base64,", b"AAAA")
