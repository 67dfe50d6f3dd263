"""One call to an endpoint: what is sent, what is learnt, what each failure becomes."""

import asyncio
import base64
import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from aiohttp import web
from tests.fakes.fast_server import FastServer
from tests.fakes.server import Behaviour, FakeServer, completion, picture_uris, text_of
from yarl import URL

from snellen.endpoints.connections import proxy_for
from snellen.endpoints.http import (
    CallableModel,
    ChatClient,
    body_params,
    build_body,
    chat_url,
)
from snellen.errors import SettingsError, UsageError
from snellen.pictures.prepare import Picture
from snellen.records import CallFailure, Image, Message, Reply, Request
from snellen.settings import Endpoint
from snellen.testing import ScriptedClient

KEY = "sk-Zq3xVtN8uLw0pR"
ASK = Request("model", (Message("user", ("Which colour is the bus?",)),), "answer")


def prepared(mime, data):
    return Picture(mime, data, 1, 1)


def endpoint_at(url, **fields):
    return Endpoint("e", url, fields.pop("model", "fake"), key=fields.pop("key", KEY), **fields)


def call(url, request=ASK, pictures=(), **fields):
    async def once():
        client = ChatClient(endpoint_at(url, **fields))
        try:
            return await client.call(request, pictures)
        finally:
            await client.close()

    return asyncio.run(once())


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_a_reply_comes_back():
    """A call gives text, finish reason, usage, latency and the model's own name."""
    with FakeServer("Red.") as server:
        reply = call(server.url)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.model) == ("Red.", "stop", "fake")
    assert (reply.usage.prompt, reply.usage.completion) == (5, 1)
    assert reply.latency_s > 0


def test_headers_and_fields_are_sent():
    """Key, extra headers, and the body fields of endpoint and request reach the server."""
    request = replace(ASK, params={"temperature": 1})
    with FakeServer() as server:
        call(
            server.url,
            request,
            headers={"X-Team": "eyes"},
            params={"temperature": 0, "seed": 7},
            soft_params={"top_k": 1},
        )
        seen = server.requests[0]
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.headers["x-team"] == "eyes"
    assert {name: seen.body[name] for name in ("temperature", "seed", "top_k")} == {
        "temperature": 1,
        "seed": 7,
        "top_k": 1,
    }


def test_a_field_set_to_none_is_never_sent():
    """An endpoint that sets a field to None goes without it, even if the request has it."""
    endpoint = endpoint_at("http://h/v1", params={"temperature": None, "seed": 1})
    request = replace(ASK, params={"temperature": 0})
    assert body_params(request, endpoint) == {"seed": 1}
    assert b"temperature" not in build_body(request, (), endpoint)


def test_large_pictures_arrive_whole():
    """Pictures of several megabytes arrive unchanged and in order."""
    data = [base64.b64encode(bytes([n]) * 1_500_000) for n in range(2)]
    image = Image("a", "0" * 64, "a")
    request = Request("model", (Message("user", (image, "and", image)),), "caption")
    with FakeServer() as server:
        reply = call(server.url, request, [prepared("image/png", d) for d in data])
        uris = picture_uris(server.requests[0].body)
    assert isinstance(reply, Reply)
    assert uris == [f"data:image/png;base64,{d.decode()}" for d in data]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limit"),
        ("quota", "quota"),
        ("500", "overload"),
        ("503", "overload"),
        ("error_200", "overload"),
        ("400", "bad_parameter"),
        ("content_filter", "content_filter"),
        ("html", "overload"),
        ("html_200", "bad_reply"),
        ("cut_json", "bad_reply"),
        ("wrong_json", "bad_reply"),
        ("not_json", "bad_reply"),
        ("no_choices", "bad_reply"),
        ("cut", "connection"),
        ("reset", "connection"),
        ("hang", "timeout"),
        ("slow", "timeout"),
    ],
)
def test_faults_become_failures(fault, kind):
    """Each fault of a server becomes one kind of failure after one attempt."""
    with FakeServer(behaviour=Behaviour(schedule=[fault])) as server:
        failure = call(server.url, timeout_s=0.3 if kind == "timeout" else 20)
        calls = server.calls["/v1/chat/completions"]
    assert isinstance(failure, CallFailure)
    assert (failure.kind, calls) == (kind, 1)
    assert failure.latency_s > 0


@pytest.mark.parametrize(
    ("fault", "text", "reasoning", "finish"),
    [
        ("null", "", None, "stop"),
        ("empty", "", None, "stop"),
        ("thought_only", "", "Let me", "length"),
        ("cut_thought", "", "Let me look", "length"),
        ("cut_answer", "The picture shows a", None, "length"),
        ("refusal", "I cannot help with that.", None, "stop"),
    ],
)
def test_odd_replies_are_replies(fault, text, reasoning, finish):
    """Blank, cut and refusing replies are replies, for the protocol to judge."""
    with FakeServer(behaviour=Behaviour(schedule=[fault])) as server:
        reply = call(server.url)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.reasoning, reply.finish_reason) == (text, reasoning, finish)
    assert reply.refusal is (fault == "refusal")


@pytest.mark.parametrize("fault", ["429", "429_date"])
def test_retry_after_is_passed_on(fault):
    """The wait that a 429 demands is in the failure, from seconds and from a date."""
    behaviour = Behaviour(schedule=[fault], retry_after_s=30)
    with FakeServer(behaviour=behaviour) as server:
        failure = call(server.url)
    assert isinstance(failure, CallFailure)
    assert failure.retry_after_s == pytest.approx(30, abs=3)


def test_wrong_key_and_wrong_model():
    """A wrong key is `auth`, a wrong model `unknown_model`."""
    with FakeServer(behaviour=Behaviour(key=KEY)) as server:
        wrong_key = call(server.url, key="sk-other-key-000")
        wrong_model = call(server.url, model="nobody")
    assert isinstance(wrong_key, CallFailure)
    assert isinstance(wrong_model, CallFailure)
    assert (wrong_key.kind, wrong_model.kind) == ("auth", "unknown_model")
    assert "nobody" in wrong_model.message


def test_wrong_path_is_explained():
    """A path where nothing answers is named, with the hint at /v1."""
    with FakeServer() as server:
        failure = call(server.url.replace("/v1", "/api"))
    assert isinstance(failure, CallFailure)
    assert "/api/chat/completions" in failure.message
    assert "/v1" in failure.message


def test_nobody_there(closed_port):
    """A port where nobody listens is a connection failure that names the address."""
    failure = call(f"http://127.0.0.1:{closed_port}/v1")
    assert isinstance(failure, CallFailure)
    assert failure.kind == "connection"
    assert failure.message == (
        f"no connection to http://127.0.0.1:{closed_port}/v1: Connection refused"
    )


def test_no_tls_there():
    """A server without TLS behind an https URL is a connection failure."""
    with FakeServer() as server:
        failure = call(server.url.replace("http:", "https:"))
    assert isinstance(failure, CallFailure)
    assert failure.kind == "connection"
    assert "https://127.0.0.1" in failure.message
    assert "does the server speak http, not https?" in failure.message


@pytest.fixture
def distrusted(tmp_path) -> Iterator[str]:
    """The URL of a server whose certificate nobody has signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=h"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def shake_hands() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as met:
                context.wrap_socket(met, server_side=True).close()

        thread = threading.Thread(target=shake_hands)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}/v1"
        thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_a_certificate_that_is_not_trusted(distrusted):
    """A self-signed certificate is named as such, with the way to trust it."""
    failure = call(distrusted)
    assert isinstance(failure, CallFailure)
    assert failure.kind == "connection"
    assert "self-signed certificate" in failure.message
    assert "SSL_CERT_FILE" in failure.message


def test_what_never_went_out_is_told_apart(closed_port):
    """A refused connection cannot have cost anything; one that breaks off can."""
    with FakeServer(behaviour=Behaviour(schedule=["reset", "cut", "500"])) as server:
        broken = [call(server.url) for _ in range(3)]
    assert [failure.was_sent for failure in broken] == [True, True, True]
    assert call(f"http://127.0.0.1:{closed_port}/v1").was_sent is False


def test_a_connection_that_was_closed_meanwhile():
    """A break at once is stale on a connection that had served before, and on no other."""

    async def ask_often(url):
        client = ChatClient(endpoint_at(url))
        answers = [await client.call(ASK) for _ in range(4)]
        await client.close()
        return answers

    with FakeServer(behaviour=Behaviour(schedule=["reset", "", "reset", ""])) as server:
        new, _, old, last = asyncio.run(ask_often(server.url))
    assert (new.kind, new.is_stale, new.was_sent) == ("connection", False, True)
    assert (old.kind, old.is_stale, old.was_sent) == ("connection", True, False)
    assert isinstance(last, Reply)


def test_long_headers():
    """Headers of more than 8 kB, as gateways send them, cost no reply."""
    long = web.json_response(completion({"content": "Red."}), headers={"x-policy": "a" * 20_000})
    with FakeServer(lambda body: long) as server:
        reply = call(server.url)
    assert isinstance(reply, Reply)
    assert reply.text == "Red."


def test_no_such_host():
    """A host without an address is a connection failure that names it."""
    failure = call("http://snellen.invalid/v1")
    assert isinstance(failure, CallFailure)
    assert failure.kind == "connection"
    assert failure.message.startswith("no connection to http://snellen.invalid/v1: ")


def test_the_query_of_a_url_is_kept():
    """A query that belongs to the URL is sent with every call, secret values unshown."""
    with FakeServer(behaviour=Behaviour(schedule=["", "400"])) as server:
        url = f"{server.url}?api-version=3&api_key=quux-corge"
        reply, failure = call(url), call(url.replace("/v1?", "/v2?"))
        query = server.requests[0].query
    assert isinstance(reply, Reply)
    assert query == "api-version=3&api_key=quux-corge"
    assert isinstance(failure, CallFailure)
    assert "api-version=3&api_key=***" in failure.message


def test_an_echoed_key_is_scrubbed():
    """A server that echoes the Authorization header cannot put the key into a message."""
    with FakeServer(behaviour=Behaviour(schedule=["echo_key"])) as server:
        failure = call(server.url)
    assert isinstance(failure, CallFailure)
    assert "Authorization" in failure.message
    assert KEY[3:9] not in failure.message


def test_an_echoed_key_is_scrubbed_from_replies():
    """A key that a server puts into a good reply is replaced there too."""
    with FakeServer(lambda body: f"Your key is {KEY}.") as server:
        reply = call(server.url)
    assert isinstance(reply, Reply)
    assert reply.text == "Your key is ***."


def test_a_key_that_is_a_word_changes_no_reply():
    """A placeholder key does not black out the same word in an answer."""
    with FakeServer("Help is not-needed.") as server:
        reply = call(server.url, key="not-needed")
    assert isinstance(reply, Reply)
    assert reply.text == "Help is not-needed."


def test_credentials_in_the_url():
    """User and password in a URL are sent as basic authentication and never shown."""
    with FakeServer(behaviour=Behaviour(schedule=["echo_key"])) as server:
        failure = call(server.url.replace("//", "//me:pa55word@"), key="")
        sent = server.requests[0].headers["Authorization"]
    assert sent == "Basic " + base64.b64encode(b"me:pa55word").decode()
    assert isinstance(failure, CallFailure)
    assert "pa55word" not in failure.message
    assert sent[6:14] not in failure.message


LIMIT_REFUSED = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


def test_the_limits_name_is_learnt_once():
    """Of 16 calls in flight each finds the limit's new name itself; later ones know it."""
    behaviour = Behaviour(refuses={"max_tokens": LIMIT_REFUSED}, delay_s=0.02)

    async def run(url):
        client = ChatClient(endpoint_at(url, params={"max_tokens": 50}))
        first = await asyncio.gather(*(client.call(ASK, ()) for _ in range(16)))
        before = len(server.requests)
        later = await client.call(ASK, ())
        await client.close()
        return [*first, later], len(server.requests) - before

    with FakeServer(behaviour=behaviour) as server:
        replies, asked = asyncio.run(run(server.url))
        limits = [seen.body.get("max_completion_tokens") for seen in server.requests]
    assert {reply.notes for reply in replies} == {("max_tokens sent as max_completion_tokens",)}
    assert asked == 1
    assert limits.count(50) == 17
    assert limits.count(None) <= 16


def test_soft_fields_are_given_up():
    """A soft field that is refused by name is dropped for the endpoint, and noted."""
    refused = {"chat_template_kwargs": "Unrecognized request argument: chat_template_kwargs"}
    with FakeServer(behaviour=Behaviour(refuses=refused)) as server:
        soft = {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 1}
        reply = call(server.url, soft_params=soft)
        sent = server.requests[-1].body
    assert isinstance(reply, Reply)
    assert reply.notes == ("chat_template_kwargs not sent: refused",)
    assert "chat_template_kwargs" not in sent
    assert sent["top_k"] == 1


def test_soft_fields_refused_without_a_name():
    """A refusal that names nothing is tried once without the soft fields."""
    with FakeServer(behaviour=Behaviour(refuses={"top_k": "Bad request"})) as server:
        reply = call(server.url, soft_params={"top_k": 1})
    assert isinstance(reply, Reply)
    assert reply.notes == ("top_k not sent: refused",)


def test_other_refusals_do_not_cost_soft_fields():
    """A refusal that stays without the soft fields is reported, and they stay."""

    async def run(url):
        client = ChatClient(endpoint_at(url, soft_params={"top_k": 1}))
        answers = [await client.call(ASK, ()) for _ in range(3)]
        await client.close()
        return answers

    with FakeServer(behaviour=Behaviour(schedule=["400", "400", "400"])) as server:
        first, second, third = asyncio.run(run(server.url))
        sent = ["top_k" in seen.body for seen in server.requests]
    assert isinstance(first, CallFailure)
    assert isinstance(second, CallFailure)
    assert isinstance(third, Reply)
    assert sent == [True, False, True, True]


def test_hard_fields_fail_with_a_hint():
    """A refused field that is not soft is a failure that names it and the way out."""
    refused = {"temperature": "Unsupported value: 'temperature' does not support 0."}
    with FakeServer(behaviour=Behaviour(refuses=refused)) as server:
        failure = call(server.url, params={"temperature": 0})
        calls = len(server.requests)
    assert isinstance(failure, CallFailure)
    assert (failure.kind, calls) == ("bad_parameter", 1)
    assert "`temperature` is refused" in failure.message
    assert "soft_params" in failure.message


@pytest.mark.parametrize(
    "words", ["response_format of type json_schema is not supported", "Bad request"]
)
def test_a_schema_that_an_endpoint_does_not_take_is_learnt_once(words):
    """A request's schema goes out as a response format until it is refused, by name or without."""
    bound = replace(ASK, schema=("A", "B"))

    async def run(url):
        client = ChatClient(endpoint_at(url))
        replies = [await client.call(request, ()) for request in (ASK, bound, bound)]
        await client.close()
        return replies

    with FakeServer(behaviour=Behaviour(refuses={"response_format": words})) as server:
        replies = asyncio.run(run(server.url))
        sent = ["response_format" in seen.body for seen in server.requests]
    assert [reply.notes for reply in replies] == [(), *[("response_format not sent: refused",)] * 2]
    assert sent == [False, True, False, False]


def test_a_schema_binds_the_reply():
    """A choice is an object with an answer; an endpoint's own response format stays."""
    with FakeServer("A") as server:
        call(server.url, replace(ASK, schema=("A", "B")))
        call(server.url, replace(ASK, schema={"type": "array"}))
        own = {"type": "json_object"}
        call(server.url, replace(ASK, schema=("A", "B")), params={"response_format": own})
        sent = [seen.body["response_format"] for seen in server.requests]
    assert sent[0]["json_schema"]["schema"]["properties"] == {"answer": {"enum": ["A", "B"]}}
    assert sent[1]["json_schema"]["schema"] == {"type": "array"}
    assert sent[2] == own


def test_a_refused_schema_is_given_up():
    """A response format that the server does not know is dropped and noted."""
    request = replace(ASK, params={"response_format": {"type": "json_schema"}})
    refused = {"response_format": "response_format of type json_schema is not supported"}
    with FakeServer(behaviour=Behaviour(refuses=refused)) as server:
        reply = call(server.url, request)
    assert isinstance(reply, Reply)
    assert reply.notes == ("response_format not sent: refused",)


def test_one_pool_for_all_calls():
    """Calls share connections: no more are opened than calls are in flight."""

    async def run(url):
        client = ChatClient(endpoint_at(url, concurrency=8))
        for _ in range(4):
            await asyncio.gather(*(client.call(ASK, ()) for _ in range(8)))
        await client.close()

    with FastServer(delay_s=0.01) as server:
        asyncio.run(run(server.url))
        stats = server.stats()
    assert stats["calls"] == 32
    assert stats["peak"] == 8
    assert stats["connections"] <= 9  # the question for the counts is one


def test_prefix_cache_is_reported():
    """Cached prompt tokens reach the usage."""

    async def run(url):
        client = ChatClient(endpoint_at(url))
        caption = "word " * 50
        asks = [replace(ASK, messages=(Message("user", (caption + end,)),)) for end in ("x", "y")]
        replies = [await client.call(ask, ()) for ask in asks]
        await client.close()
        return [reply.usage.cached for reply in replies]

    with FakeServer() as server:
        assert asyncio.run(run(server.url)) == [0, 50]


def test_logprobs_become_choices():
    """Log-probabilities of the first token arrive as choices where they are asked for."""
    request = replace(ASK, params={"logprobs": True, "top_logprobs": 5})
    with FakeServer("B") as server:
        asked, unasked = call(server.url, request), call(server.url)
    assert isinstance(asked, Reply)
    assert asked.choices == {"B": -0.1, "?": -2.5}
    assert isinstance(unasked, Reply)
    assert unasked.choices is None


def listed(url):
    """What an endpoint's list of models comes to."""

    async def run():
        client = ChatClient(endpoint_at(url))
        try:
            return await client.list_models()
        finally:
            await client.close()

    return asyncio.run(run())


def test_models_are_listed():
    """The model list is read, and its failure is a failure."""
    with FakeServer(behaviour=Behaviour(models=("b", "a"))) as server:
        assert listed(server.url) == ("b", "a")
        failure = listed(server.url + "/other")
    assert isinstance(failure, CallFailure)


@pytest.mark.parametrize("body", [b'{"data": 5}', b"<html>", b"[" * 100_000, b"\xff\xfe"])
def test_a_list_of_models_that_is_none_is_a_failure(body):
    """JSON of another shape, or nested without end, and what is no JSON end no run."""

    class Odd(FakeServer):
        async def _models(self, http):
            return web.Response(body=body, content_type="application/json")

    with Odd() as server:
        failure = listed(server.url)
    assert isinstance(failure, CallFailure)
    assert failure.kind == "bad_reply"


def test_embeddings_keep_the_order_of_the_texts():
    """Embeddings are put into the order of the texts, whatever order they come in."""

    async def run(url):
        client = ChatClient(endpoint_at(url))
        try:
            return await client.embeddings(["aab", "b"]), await client.embeddings([])
        finally:
            await client.close()

    with FakeServer() as server:
        found, none = asyncio.run(run(server.url))
    assert isinstance(found, np.ndarray)
    assert found[:, :2].tolist() == [[2, 1], [0, 1]]
    assert none.shape == (0, 0)


@pytest.mark.parametrize(
    ("written", "base"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("https://h/v1", "https://h/v1"),
        ("https://h/v1/", "https://h/v1"),
        (" https://h/v1/chat/completions ", "https://h/v1"),
        ("https://h/v1/chat/completions/", "https://h/v1"),
        ("https://u:p@h/api?v=1", "https://h/api?v=1"),
    ],
)
def test_base_urls(written, base):
    """The base URL is found in whatever people write."""
    assert chat_url(written) == base


@pytest.mark.parametrize(
    "written", ["localhost:8000/v1", "h", "", "ftp://h", "http://", "http://[h", "http://a..b/v1"]
)
def test_what_is_no_url(written):
    """A URL without scheme or host is refused with an example."""
    with pytest.raises(SettingsError) as caught:
        chat_url(written)
    assert "http://" in caught.value.hint


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key": "sk-1\nX: y"}, "authorization header"),
        ({"headers": {"X-Name": "ü"}}, "x-name header"),
        ({"params": {"stream": True}}, "`stream`"),
    ],
)
def test_what_cannot_be_sent(fields, said):
    """Keys, headers and fields that cannot be sent are refused before any call, key unshown."""
    with pytest.raises(SettingsError, match=said) as caught:
        ChatClient(endpoint_at("http://h/v1", **fields))
    assert "sk-1" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("long_body", "bad_reply", "longer than 16 MB"),
        ("endless", "bad_reply", "longer than 16 MB"),
        ("gzip_bomb", "bad_reply", "longer than 16 MB"),
        ("long_error", "bad_parameter", "bad request. bad request."),
    ],
)
def test_a_body_is_read_within_bounds(fault, kind, said):
    """What is too long is a failure, and only its beginning was ever in memory."""
    with FakeServer("ok", Behaviour(schedule=(fault,))) as server:
        tracemalloc.start()
        failure = call(server.url)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert isinstance(failure, CallFailure)
    assert (failure.kind, said in failure.message) == (kind, True)
    assert peak < 80 * 2**20


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_packed_reply_is_unpacked(coding):
    """Where the server packs, in either way that it is told of."""
    bits = {"gzip": 31, "deflate": 15}[coding]

    def answer(body):
        packer = zlib.compressobj(wbits=bits)
        data = packer.compress(json.dumps(completion({"content": "Red."})).encode())
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        return web.Response(body=data + packer.flush(), headers=headers)

    with FakeServer(answer) as server:
        reply = call(server.url)
    assert isinstance(reply, Reply)
    assert reply.text == "Red."


def test_a_call_that_is_sent_on_is_followed_on_the_same_host():
    """A 307 or 308 keeps method and body."""
    with FakeServer("Red.", Behaviour(schedule=("moved", ""))) as server:
        reply = call(server.url)
        assert [seen.query for seen in server.requests] == ["", "moved=1"]
        assert server.requests[1].body == server.requests[0].body
    assert isinstance(reply, Reply)


def test_a_call_that_is_sent_on_to_another_host_is_not_followed():
    """The key goes to no other."""
    with FakeServer("Red.") as other:

        def answer(body):
            return web.Response(status=307, headers={"Location": other.url})

        with FakeServer(answer) as server:
            failure = call(server.url)
        assert not other.requests
    assert isinstance(failure, CallFailure)
    assert other.url in failure.message


@pytest.mark.parametrize(
    ("no_proxy", "url", "goes_by"),
    [
        ("", "http://0.0.0.0/v1", False),
        ("", "http://[::1]:8000/v1", False),
        ("", "http://10.1.2.3:8000/v1", True),
        ("10.0.0.0/8", "http://10.1.2.3:8000/v1", False),
        ("10.0.0.0/8", "http://11.1.2.3:8000/v1", True),
        ("host.invalid:8000", "http://host.invalid:8000/v1", False),
        ("host.invalid:8000", "http://host.invalid:9000/v1", True),
        ("[fd00::/8]:8000", "http://[fd00::5]:8000/v1", False),
        (".invalid", "http://host.invalid/v1", False),
    ],
)
def test_what_goes_by_a_proxy(no_proxy, url, goes_by, monkeypatch):
    """Never this machine, and nothing that `no_proxy` names by name, port or range."""
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert (proxy_for(URL(url))[0] is not None) is goes_by


def test_an_answer_by_way_of_a_proxy_says_so(monkeypatch):
    """It may be the proxy's own."""
    with FakeServer("ok", Behaviour(schedule=("html",))) as server:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        failure = call("http://snellen.invalid/v1")
    assert isinstance(failure, CallFailure)
    assert failure.message.startswith("by way of the proxy http://127.0.0.1")


def test_proxies_come_from_the_environment(monkeypatch):
    """A call to another host goes through the proxy that the environment names."""
    with FakeServer("through the proxy") as server:
        for name in ("http_proxy", "HTTP_PROXY"):
            place = server.url.removesuffix("/v1").removeprefix("http://")
            monkeypatch.setenv(name, f"http://me:secret@{place}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        reply = call("http://snellen.invalid/v1")
    assert isinstance(reply, Reply)
    assert reply.text == "through the proxy"
    pair = base64.b64encode(b"me:secret").decode()
    headers = {name.lower(): value for name, value in server.requests[0].headers.items()}
    assert headers["proxy-authorization"] == f"Basic {pair}"
    assert headers["authorization"] == f"Bearer {KEY}"


def test_a_proxy_never_sees_the_key(monkeypatch):
    """What a tunnel is asked for with holds the proxy's password and nothing of the endpoint's."""
    seen: list[bytes] = []

    def refuse() -> None:
        with server.accept()[0] as met:
            seen.append(met.recv(65536))
            met.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=refuse)
        thread.start()
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://me:secret@127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        failure = call("https://snellen.invalid/v1", headers={"api-key": KEY})
        thread.join()
    assert seen[0].startswith(b"CONNECT snellen.invalid:443")
    assert KEY.encode() not in seen[0]
    assert base64.b64encode(b"me:secret") in seen[0]
    assert isinstance(failure, CallFailure)
    assert (failure.kind, failure.status) == ("auth", 407)
    assert "the proxy that the environment names" in failure.message


def test_a_proxy_that_is_not_there(monkeypatch, closed_port):
    """The message names the proxy, without its password: the endpoint is not to blame."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://me:secret@127.0.0.1:{closed_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    failure = call("http://snellen.invalid/v1")
    assert isinstance(failure, CallFailure)
    assert f"proxy http://127.0.0.1:{closed_port}" in failure.message
    assert "secret" not in failure.message


@pytest.mark.parametrize("named", ["socks5://127.0.0.1:9", "http://[h"])
def test_a_proxy_that_cannot_be_used(monkeypatch, named):
    """It is refused before any call, with the way out."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, named)
    with pytest.raises(SettingsError, match="the proxy for http") as caught:
        ChatClient(endpoint_at("http://snellen.invalid/v1"))
    assert "no_proxy" in caught.value.hint


def run_once(caller, request=ASK, pictures=()):
    async def once():
        try:
            return await caller.call(request, pictures)
        finally:
            await caller.close()

    return asyncio.run(once())


def test_functions_are_models():
    """A Python function, blocking or not, gets OpenAI-style messages and answers."""
    image = Image("a", "0" * 64, "a")
    request = Request("model", (Message("user", (image, "Which colour?")),), "answer")
    seen = []

    def answer(messages):
        seen.append(messages)
        return "<think>Hm</think>Red."

    async def answer_later(messages):
        return answer(messages)

    for function in (answer, answer_later):
        reply = run_once(CallableModel(function), request, [prepared("image/png", b"QUJD")])
        assert (reply.text, reply.reasoning) == ("Red.", "Hm")
    uri = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    text = {"type": "text", "text": "Which colour?"}
    assert seen == [[{"role": "user", "content": [uri, text]}]] * 2


def test_functions_may_give_replies():
    """A function may give a whole Reply; anything else is a bad reply that names the type."""
    kept = run_once(CallableModel(lambda messages: Reply("Red.", finish_reason="length")))
    assert (kept.text, kept.finish_reason) == ("Red.", "length")
    bad = run_once(CallableModel(lambda messages: 5))
    assert (bad.kind, "int" in bad.message) == ("bad_reply", True)


def test_a_functions_error_passes():
    """What a function raises is not swallowed here."""

    def fail(messages):
        raise LookupError("no weights")

    with pytest.raises(LookupError, match="no weights"):
        run_once(CallableModel(fail))


def test_scripts_answer():
    """A scripted client answers from a mapping, a sequence or a function, and keeps requests."""
    failure = CallFailure("overload", "busy")
    by_text = ScriptedClient({"shape": "Round.", "colour": failure})
    assert run_once(by_text).kind == "overload"
    assert by_text.seen == [ASK]
    assert run_once(ScriptedClient(["Red."])).text == "Red."
    assert run_once(ScriptedClient(lambda request: request.purpose)).text == "answer"


@pytest.mark.parametrize("script", [{"shape": "Round."}, []])
def test_scripts_end(script):
    """A script without an answer says so instead of making one up."""
    with pytest.raises(UsageError, match="script"):
        run_once(ScriptedClient(script))


def test_text_of_fake_requests():
    """The fake server counts requests by the text that they hold."""
    with FakeServer({"colour": "Red."}) as server:
        call(server.url)
        assert server.count("bus") == 1
        assert text_of(server.requests[0].body) == "Which colour is the bus?"
