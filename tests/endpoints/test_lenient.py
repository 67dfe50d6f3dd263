"""Bodies that are not quite chat completions: what was paid for is read, what broke off is not."""

import json
import math

import pytest

from snellen.endpoints.chat_format import read_reply
from snellen.endpoints.failures import read_error
from snellen.endpoints.lenient import ErrorInReplyError, UnreadableReplyError
from snellen.records import Usage

USAGE = {"prompt_tokens": 10, "completion_tokens": 2}
WHOLE = {
    "choices": [{"message": {"content": "Red."}, "finish_reason": "stop"}],
    "usage": USAGE,
    "model": "m",
}


def body_of(message, usage=USAGE, **choice):
    choice = {"message": message, "finish_reason": "stop", **choice}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def stream_of(*events, end="data: [DONE]\n\n"):
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return (": still at work\n\n" + "".join(lines) + end).encode()


def piece(finish_reason=None, **delta):
    return {"choices": [{"delta": delta, "finish_reason": finish_reason}]}


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + json.dumps(WHOLE).encode(),
        b": waiting\n\n: waiting\n\n" + json.dumps(WHOLE).encode(),
        b"\n\n  \n" + json.dumps(WHOLE).encode() + b"\r\n",
        body_of({"content": ["Re", "d."]}),
        body_of({"content": {"type": "text", "text": "Red."}}),
        body_of({"content": [{"type": "text", "text": {"value": "Red."}}]}),
        body_of({"content": "Red.", "refusal": False}),
        body_of({"content": "Red."}, finish_reason={"type": "stop"}),
        body_of({"content": "Red.", "reasoning": {"text": ""}}),
        body_of({"content": "Red."}, usage={"prompt_tokens": "10", "completion_tokens": 2.0}),
        json.dumps(
            {"choices": [{"text": "Red.", "finish_reason": "stop"}], "usage": USAGE}
        ).encode(),
    ],
)
def test_text_and_counts_outlive_a_strange_shape(body):
    """Marks, comments and blank lines around the JSON, and odd shapes inside, cost nothing."""
    reply = read_reply(body)
    assert (reply.text, reply.finish_reason, reply.usage) == ("Red.", "stop", Usage(10, 2))


@pytest.mark.parametrize("thoughts", [["H", "m"], {"text": "Hm"}, [{"text": "Hm"}]])
@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thoughts_in_a_strange_shape(name, thoughts):
    """Thoughts as lists or objects are read, and cost no answer."""
    reply = read_reply(body_of({"content": "Red.", name: thoughts}))
    assert (reply.text, reply.reasoning) == ("Red.", "Hm")


@pytest.mark.parametrize(
    ("written", "text"),
    [(b"Caf\xe9", "Caf\ufffd"), (rb"Red \ud83d.", "Red \ufffd."), (b"two\nlines", "two\nlines")],
)
def test_damaged_characters(written, text):
    """Half a character is replaced, a raw line break is kept, and both are noted."""
    reply = read_reply(json.dumps(WHOLE).encode().replace(b"Red.", written))
    assert reply.text == text
    assert reply.text.encode()
    assert "unreadable" in reply.notes[0]


def test_numbers_that_json_does_not_have():
    """NaN and minus infinity in counts and log-probabilities leave the rest as it is."""
    top = [{"token": "A", "logprob": -0.5}, {"token": "B", "logprob": -math.inf}]
    logprobs = {"content": [{"token": "A", "logprob": -0.5, "top_logprobs": top}]}
    usage = {"prompt_tokens": math.nan, "completion_tokens": 2}
    reply = read_reply(body_of({"content": "A"}, usage=usage, logprobs=logprobs))
    assert (reply.choices, reply.usage) == ({"A": -0.5}, Usage(None, 2))
    top[1]["logprob"] = -(10**400)
    assert read_reply(body_of({"content": "A"}, logprobs=logprobs)).choices == {"A": -0.5}
    top[1]["logprob"] = None
    assert read_reply(body_of({"content": "A"}, logprobs=logprobs)).usage == Usage(10, 2)


def test_stream_of_events():
    """A stream that nobody asked for is put together, thoughts and counts included."""
    body = stream_of(
        piece(role="assistant", content=""),
        piece(reasoning_content="H"),
        piece(reasoning_content="m"),
        piece(content="Re"),
        piece("stop", content="d."),
        {"choices": [], "usage": USAGE, "model": "m"},
    )
    reply = read_reply(body)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Red.", "Hm", "stop")
    assert (reply.usage, reply.model) == (Usage(10, 2), "m")
    assert read_reply(stream_of(WHOLE)).text == "Red."
    lines = stream_of(piece("stop", content="a\u2028b\x85c")).replace(b"\n", b"\r\n")
    raw = lines.replace(rb"\u2028", "\u2028".encode()).replace(rb"\u0085", "\x85".encode())
    assert read_reply(raw).text == "a\u2028b\x85c"


@pytest.mark.parametrize(
    "body",
    [
        stream_of(piece(content="Re"), end=""),
        stream_of(piece(content="Re"), end='data: {"choices": [{"de'),
        body_of({"content": "The pic"}, finish_reason="abort"),
        body_of({"content": ""}, finish_reason="insufficient_system_resource"),
        body_of({"content": ""}, finish_reason="error"),
    ],
)
def test_what_broke_off_is_no_reply(body):
    """A part of a reply, or none, is never taken for the whole: neither blank nor cut."""
    with pytest.raises(UnreadableReplyError):
        read_reply(body)


@pytest.mark.parametrize("content", [[5], {"words": "Red."}, 5])
def test_content_that_cannot_be_read_is_not_blank(content):
    """A reply whose words are not found is none, for a blank one would be wrong."""
    with pytest.raises(UnreadableReplyError):
        read_reply(body_of({"content": content}))


@pytest.mark.parametrize(
    "body",
    [
        body_of({"content": "The"}, finish_reason="error", error={"code": 502, "message": "lost"}),
        stream_of(piece(content="The"), {"error": {"code": 502, "message": "lost"}}),
        b'\xef\xbb\xbf{"error": {"code": 502, "message": "lost"}}',
    ],
)
def test_errors_halfway(body):
    """An error inside a choice or a stream is that error, with its code and its words."""
    with pytest.raises(ErrorInReplyError) as caught:
        read_reply(body)
    error = read_error(caught.value.body)
    assert (error.code, error.message) == ("502", "lost")


@pytest.mark.parametrize("choice", [{"finish_reason": "length"}, {"message": None}])
def test_choice_without_a_message(choice):
    """One that ended by a limit is a blank reply, cut; one that does not say how is none."""
    body = json.dumps({"choices": [choice]}).encode()
    if "finish_reason" not in choice:
        with pytest.raises(UnreadableReplyError):
            read_reply(body)
        return
    reply = read_reply(body)
    assert (reply.text, reply.finish_reason) == ("", "length")


@pytest.mark.parametrize(
    "said", ["MAX_TOKENS", "max_tokens", "model_length", "model_context_window_exceeded"]
)
def test_other_names_of_the_limit(said):
    """A reply that a limit cut has one finish reason, whatever the server calls it."""
    assert read_reply(body_of({"content": "The"}, finish_reason=said)).finish_reason == "length"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Usage(10, 2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 32}, Usage(10, 22, 20)),
        ({"prompt_tokens": 10, "total_tokens": 32}, Usage(10, 22, 22)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 32,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(10, 22, 20),
        ),
        ({"prompt_tokens": -1, "completion_tokens": -1}, Usage()),
    ],
)
def test_thoughts_that_the_count_leaves_out(usage, counted):
    """Tokens that only the total has are thoughts, and billed; counts below 0 are not known."""
    assert read_reply(body_of({"content": "Red."}, usage=usage)).usage == counted
