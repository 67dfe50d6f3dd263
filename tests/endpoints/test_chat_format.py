"""Requests as bytes, and bytes as replies."""

import json

import msgspec
import pytest

from snellen.endpoints.chat_format import (
    Dialect,
    ErrorInReplyError,
    UnreadableReplyError,
    encode_request,
    learn,
    plain_messages,
    read_reply,
)
from snellen.errors import UsageError
from snellen.pictures.prepare import Picture
from snellen.records import Image, Message, Request, Usage


def prepared(mime, data):
    return Picture(mime, data, 1, 1)


PICTURES = (prepared("image/png", b"QUJD"), prepared("image/jpeg", b"REVG"))
IMAGE = Image("a.png", "0" * 64, "a.png")
TWO = Request("model", (Message("user", (IMAGE, 'say "hi"\n', IMAGE)),), "caption")


def body_of(request, pictures=(), **params):
    return json.loads(encode_request(request, pictures, model="m", params=params))


def reply_of(message, **more):
    choice = {"message": message, **{k: more.pop(k) for k in list(more) if k in CHOICE_FIELDS}}
    return read_reply(json.dumps({"choices": [choice], **more}).encode())


CHOICE_FIELDS = ("finish_reason", "logprobs")


def test_text_messages_have_string_content():
    """A message without pictures is sent as a plain string, its parts joined."""
    messages = (Message("system", ("Be brief.",)), Message("user", ("Grüße ", "\u2028")))
    assert body_of(Request("judge", messages, "grade"), temperature=0) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Grüße \u2028"},
        ],
        "temperature": 0,
    }


def test_pictures_stand_in_their_places():
    """Texts and pictures are sent as parts in the message's order, base64 unchanged."""
    content = body_of(TWO, PICTURES)["messages"][0]["content"]
    assert content == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "text", "text": 'say "hi"\n'},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,REVG"}},
    ]


def test_detail_goes_to_the_pictures():
    """The setting image_detail is no body field but a field of every picture."""
    body = body_of(TWO, PICTURES, image_detail="high")
    assert "image_detail" not in body
    assert body["messages"][0]["content"][2]["image_url"]["detail"] == "high"


def test_missing_picture_is_named():
    """Fewer pictures than the messages name is an error that says so."""
    with pytest.raises(UsageError, match="more pictures"):
        encode_request(TWO, PICTURES[:1], model="m", params={})


def test_half_a_surrogate_pair_is_replaced():
    """A text with half a surrogate pair is sent with a replacement character."""
    request = Request("model", (Message("user", ("a\ud800b",)),), "caption")
    assert body_of(request)["messages"][0]["content"] == "a\ufffdb"


def test_plain_messages_for_functions():
    """A Python function gets the same messages as dicts."""
    assert plain_messages(TWO, PICTURES) == body_of(TWO, PICTURES)["messages"]


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "Red."}, "Red.", None),
        ({"content": None}, "", None),
        ({}, "", None),
        (
            {"content": [{"type": "text", "text": "Re"}, {"type": "text", "text": "d."}]},
            "Red.",
            None,
        ),
        ({"content": "Red.", "reasoning_content": "Hm"}, "Red.", "Hm"),
        ({"content": "Red.", "reasoning": "Hm"}, "Red.", "Hm"),
        ({"content": "<think>Hm</think>\nRed."}, "Red.", "Hm"),
        ({"content": "<think>Hm", "reasoning": None}, "", "Hm"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
                    {"type": "text", "text": "Red."},
                ]
            },
            "Red.",
            "Hm",
        ),
    ],
)
def test_text_and_thoughts(message, text, reasoning):
    """Text and thoughts are told apart in every usual shape of a message."""
    reply = reply_of(message)
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_refusal_words_are_the_text():
    """A refusal is marked, and its words are the text."""
    reply = reply_of({"content": None, "refusal": "I cannot."}, finish_reason="stop")
    assert (reply.text, reply.refusal) == ("I cannot.", True)
    assert reply_of({"content": "Fine.", "refusal": None}).refusal is False


def test_usage_is_read_where_it_is_told():
    """Tokens are read from OpenAI's fields, cached ones also from a cache-hit field."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert reply_of({"content": "x"}, usage=usage).usage == Usage(10, 5, 3, 8)
    hits = {"prompt_tokens": 10, "prompt_cache_hit_tokens": 6, "prompt_tokens_details": None}
    assert reply_of({"content": "x"}, usage=hits).usage == Usage(10, None, None, 6)
    assert reply_of({"content": "x"}).usage == Usage()


def test_first_token_candidates():
    """The candidates for the first token come with their log-probabilities."""
    top = [{"token": "A", "logprob": -0.1, "bytes": [65]}, {"token": "B", "logprob": -2.4}]
    logprobs = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": top}]}
    reply = reply_of({"content": "A"}, logprobs=logprobs, finish_reason="length")
    assert reply.choices == {"A": -0.1, "B": -2.4}
    assert reply.finish_reason == "length"
    assert reply_of({"content": "A"}, logprobs=None).choices is None


def test_strange_counts_do_not_cost_the_answer():
    """An answer with an unreadable usage is kept, and a note says so."""
    reply = reply_of({"content": "Red."}, usage={"prompt_tokens": "many"})
    assert (reply.text, reply.usage) == ("Red.", Usage())
    assert "unreadable" in reply.notes[0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"choices": []}', "no choices"),
        (b'{"choices": [{"message": {"content": "o', "cut JSON"),
        (b'{"choices": [{"message": {"content": 5}}]}', "no chat completion"),
        (b'{"choices": [{}]}', "no chat completion"),
        (b"<!doctype html><p>Log in", "HTML"),
        (b"", "an empty body"),
        (b'data: {"choices": []}', "a stream of events"),
        (b'["a"]', "no chat completion"),
        (b"\xff\xfe", "text"),
        (b'{"error": ' + b"[" * 20_000, "cut JSON"),
    ],
)
def test_unreadable_bodies(body, why):
    """A body without a reply is unreadable, and the error says what it is."""
    with pytest.raises(UnreadableReplyError, match=why):
        read_reply(body)


@pytest.mark.parametrize("body", [b'{"error": {"message": "x"}}', b'{"message": "x", "code": 400}'])
def test_errors_in_a_good_status(body):
    """A body of status 200 that holds an error is not taken for a reply."""
    with pytest.raises(ErrorInReplyError):
        read_reply(body)


SOFT = frozenset({"chat_template_kwargs"})
KWARGS = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("words", "sent", "renamed", "dropped"),
    [
        (
            "'max_tokens' is not supported with this model. use 'max_completion_tokens' instead.",
            {"max_tokens": 9},
            {"max_tokens": "max_completion_tokens"},
            set(),
        ),
        (
            "extra inputs are not permitted max_completion_tokens",
            {"max_completion_tokens": 9},
            {"max_completion_tokens": "max_tokens"},
            set(),
        ),
        ("unrecognized argument: chat_template_kwargs", KWARGS, {}, {"chat_template_kwargs"}),
        ("unknown field enable_thinking", KWARGS, {}, {"chat_template_kwargs"}),
        (
            "json_schema is not supported here",
            {"response_format": {"type": "json_schema"}},
            {},
            {"response_format"},
        ),
    ],
)
def test_lessons(words, sent, renamed, dropped):
    """A refusal that names a renamed or soft field teaches how to do without."""
    lesson = learn(Dialect(), words, sent=sent, soft=SOFT)
    assert lesson == Dialect(renamed, frozenset(dropped))


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("max_tokens or max_completion_tokens is too large: 9, not supported", {"max_tokens": 9}),
        ("unsupported value: temperature must be 1", {"temperature": 0}),
        ("invalid picture", KWARGS),
        ("chat_template_kwargs was read", KWARGS),
    ],
)
def test_no_lesson(words, sent):
    """A refusal of a hard field, of a value's size or of something else teaches nothing."""
    assert learn(Dialect(), words, sent=sent, soft=SOFT) is None


@pytest.mark.parametrize(
    "words",
    [
        "`temperature` is deprecated for this model.",
        "`temperature` may only be set to 1 when thinking is enabled.",
        "`temperature` has to be a strictly positive float",
        "temperature: range: expected value in (0, 2]",
        "the parameter temperature cannot be used with reasoning models",
        "invalid temperature: only 1 is allowed for this model",
    ],
)
def test_a_refused_default_is_given_up(words):
    """A soft field that a server names in a refusal of any wording is dropped."""
    sent = {"temperature": 0, "max_tokens": 9}
    lesson = learn(Dialect(), words, sent=sent, soft=frozenset({"temperature"}))
    assert lesson == Dialect({}, frozenset({"temperature"}))


def test_a_lesson_is_learnt_once():
    """A server that refuses both names of the limit does not turn a call round and round."""
    words = "unsupported: max_tokens, max_completion_tokens"
    first = learn(Dialect(), words, sent={"max_tokens": 9}, soft=SOFT)
    assert first is not None
    sent = first.translate({"max_tokens": 9})
    assert sent == {"max_completion_tokens": 9}
    assert learn(first, words, sent=sent, soft=SOFT) is None
    assert first.notes({"max_tokens": 9}) == ("max_tokens sent as max_completion_tokens",)


def test_bodies_are_json_whatever_the_text():
    """Quotes, control characters and line separators in texts do not break the body."""
    text = '"\\\x00\x1f\x7f\u2028</script>😀'
    request = Request("model", (Message("user", (text,)),), "caption")
    body = encode_request(request, (), model='m"', params={})
    assert msgspec.json.decode(body)["messages"][0]["content"] == text
