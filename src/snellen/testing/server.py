"""A fake OpenAI-compatible endpoint with faults.

In a test:

    with FakeServer({"colour": "Red."}, faults={"429": 0.1}) as server:
        ...  # server.url, server.calls, server.peak

By hand: `python -m snellen.testing --port 8009 --answer "A dog." --fault 500=0.2`.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import io
import itertools
import json
import random
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from types import TracebackType
from typing import Any

from aiohttp import web

from snellen.records import JsonObject

Body = JsonObject
Answer = str | Mapping[str, object] | web.Response
Script = str | Mapping[str, Answer] | Callable[[Body], Answer]

REMEMBERED_PROMPTS = 64


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a fake endpoint behaves beside what it answers.

    `faults` maps a fault's name to its probability; `schedule` names the fault of each call in
    turn ("" for none) and goes first. `delay_s` is waited before each answer, and up to
    `jitter_s` more, so that answers come out of order. `refuses` maps a body field to the message
    of the 400 that it gets. `key` is the only key that is let in, if not empty. `max_pictures`
    limits the pictures of a request, `max_pixels` what a picture counts in tokens (one a 28 x 28
    patch), `context_tokens` the prompt. `gives_logprobs` offers the answer's first character.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    schedule: Sequence[str] = ()
    delay_s: float = 0.0
    jitter_s: float = 0.0
    seed: int = 0
    refuses: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    models: tuple[str, ...] = ("fake",)
    max_pictures: int | None = None
    max_pixels: int | None = None
    context_tokens: int | None = None
    gives_logprobs: bool = True
    retry_after_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came in. `fault` is what it met, "" for none; times are monotonic."""

    path: str
    body: Body
    headers: Mapping[str, str]
    started_s: float
    fault: str = ""
    query: str = ""


def text_of(body: Body) -> str:
    """All texts of a request's messages, one a line."""
    lines = []
    for message in body.get("messages", ()):
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        lines += [part["text"] for part in parts if "text" in part]
    return "\n".join(lines)


def picture_uris(body: Body) -> list[str]:
    """The data URIs of a request's pictures, in their order."""
    return [
        part["image_url"]["url"]
        for message in body.get("messages", ())
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def picture_size(uri: str) -> tuple[int, int]:
    """Width and height of the picture in a data URI."""
    from PIL import Image

    data = base64.b64decode(uri.partition(",")[2])
    with Image.open(io.BytesIO(data)) as picture:
        return picture.size


def error_response(status: int, message: str, **more: object) -> web.Response:
    """A refusal in OpenAI's shape; `more` are further fields of the error object."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error | more}, status=status)


def completion(message: Mapping[str, object], **more: object) -> Body:
    """The body of a chat completion around an assistant's message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    choice |= {name: more.pop(name) for name in ("finish_reason", "logprobs") if name in more}
    base = {"id": "fake", "object": "chat.completion", "created": 0, "model": "fake"}
    return {**base, "choices": [choice], **more}


class FakeServer:
    """A fake endpoint on a free port of 127.0.0.1, in a thread of its own.

    `answer` is a text; or a mapping from a piece of the request's text to the answer, of which the
    first that fits wins ("" fits all); or a function of the request's body. An answer is a text,
    the fields of the assistant's message, or a whole response.
    """

    def __init__(
        self, answer: Script = "ok", behaviour: Behaviour | None = None, *, port: int = 0
    ) -> None:
        self.behaviour = behaviour or Behaviour()
        self.requests: list[Seen] = []
        self.calls: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.peak = 0
        self.url = ""
        self._answer = answer
        self._random = random.Random(self.behaviour.seed)
        self._in_flight = 0
        self._peers: set[Any] = set()
        self._finished: deque[str] = deque(maxlen=REMEMBERED_PROMPTS)
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def connections(self) -> int:
        """How many connections were opened so far."""
        return len(self._peers)

    def count(self, piece: str) -> int:
        """How many chat requests held this piece of text."""
        return sum(piece in text_of(seen.body) for seen in self.requests)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=1024)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        body = json.loads(await http.read())
        fault = self._draw_fault()
        self._note(http, body, fault)
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)
        try:
            b = self.behaviour
            await asyncio.sleep(b.delay_s + b.jitter_s * self._random.random())
            refusal = self._refuse(http, body)
            if refusal is not None:
                return refusal
            return await FAULTS[fault](self, http, body) if fault else self._reply(body)
        finally:
            self._in_flight -= 1

    def _draw_fault(self) -> str:
        number = self.calls["/v1/chat/completions"]
        if number < len(self.behaviour.schedule):
            return self.behaviour.schedule[number]
        drawn = self._random.random()
        for fault, probability in self.behaviour.faults.items():
            drawn -= probability
            if drawn < 0:
                return fault
        return ""

    def _note(self, http: web.Request, body: Body, fault: str = "") -> None:
        self._peers.add(http.transport.get_extra_info("peername") if http.transport else None)
        self.calls[http.path] += 1
        self.faults[fault] += bool(fault)
        now_s, headers = time.monotonic(), dict(http.headers)
        self.requests.append(Seen(http.path, body, headers, now_s, fault, http.query_string))

    def _lets_in(self, http: web.Request) -> bool:
        key = self.behaviour.key
        return not key or http.headers.get("Authorization") == f"Bearer {key}"

    def _refuse(self, http: web.Request, body: Body) -> web.Response | None:
        b, pictures = self.behaviour, picture_uris(body)
        if not self._lets_in(http):
            return error_response(401, "Incorrect API key", code="invalid_api_key")
        if body.get("model") not in b.models:
            said = f"The model `{body.get('model')}` does not exist"
            return error_response(404, said, code="model_not_found")
        for name, message in b.refuses.items():
            if name in body:
                return error_response(400, message)
        if b.max_pictures is not None and len(pictures) > b.max_pictures:
            return error_response(400, f"At most {b.max_pictures} image(s) may be provided")
        tokens = self._count_prompt(body)
        if b.context_tokens is not None and tokens > b.context_tokens:
            limit = f"maximum context length is {b.context_tokens} tokens"
            return error_response(400, f"This model's {limit}, you sent {tokens}")
        return None

    def _reply(self, body: Body) -> web.Response:
        answer = self._look_up(body)
        if isinstance(answer, web.Response):
            return answer
        message = {"content": answer} if isinstance(answer, str) else dict(answer)
        more: Body = {"model": body["model"], "usage": self._usage(body, message)}
        if body.get("logprobs") and self.behaviour.gives_logprobs:
            text = str(message.get("content") or "")
            first = text[:1] or "E"
            top = [{"token": first, "logprob": -0.1}, {"token": "?", "logprob": -2.5}]
            more["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        more |= {"finish_reason": message.pop("finish_reason", "stop")}
        return web.json_response(completion(message, **more))

    def _look_up(self, body: Body) -> Answer:
        if isinstance(self._answer, str):
            return self._answer
        if callable(self._answer):
            return self._answer(body)
        text = text_of(body)
        for piece, answer in self._answer.items():
            if piece in text:
                return answer
        return error_response(500, f"the script has no answer to: {text[:100]}")

    def _count_prompt(self, body: Body) -> int:
        tokens = len(text_of(body).split())
        for uri in picture_uris(body) if self.behaviour.max_pixels is not None else ():
            width, height = picture_size(uri)
            tokens += min(width * height, self.behaviour.max_pixels or 0) // 28**2
        return tokens

    def _usage(self, body: Body, message: Mapping[str, object]) -> Body:
        text = text_of(body)
        cached = max((_shared_words(text, old) for old in self._finished), default=0)
        self._finished.append(text)
        prompt, thought = self._count_prompt(body), str(message.get("reasoning_content") or "")
        said = len(str(message.get("content") or "").split()) + len(thought.split())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": len(thought.split())},
        }

    async def _models(self, http: web.Request) -> web.Response:
        self._note(http, {})
        if not self._lets_in(http):
            return error_response(401, "Incorrect API key", code="invalid_api_key")
        return web.json_response({"data": [{"id": name} for name in self.behaviour.models]})

    async def _embeddings(self, http: web.Request) -> web.Response:
        body = json.loads(await http.read())
        self._note(http, body)
        rows = [
            {
                "index": number,
                "embedding": [
                    float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"
                ],
            }
            for number, text in enumerate(body["input"])
        ]
        return web.json_response({"data": rows[::-1], "model": body["model"]})


def _shared_words(text: str, other: str) -> int:
    """How many whole words two texts share from their start on."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    same = low == len(text) == len(other)
    return len(text[:low].split()) - (0 if same or not low or text[low - 1].isspace() else 1)


Fault = Callable[["FakeServer", web.Request, Body], Awaitable[web.StreamResponse]]
FAULTS: dict[str, Fault] = {}


def fault(name: str) -> Callable[[Fault], Fault]:
    """Puts a function into the table of faults."""

    def put(function: Fault) -> Fault:
        FAULTS[name] = function
        return function

    return put


@fault("429")
async def _too_many(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    response = error_response(429, "Too many requests", code="rate_limit_exceeded")
    response.headers["Retry-After"] = f"{server.behaviour.retry_after_s:g}"
    return response


@fault("429_date")
async def _too_many_until(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    response = error_response(429, "Too many requests")
    until = time.time() + server.behaviour.retry_after_s
    response.headers["Retry-After"] = formatdate(until, usegmt=True)
    return response


@fault("hang")
async def _hang(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


@fault("slow")
async def _slow(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """Byte after byte, so that a limit between bytes never strikes."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(http)
    for byte in json.dumps(completion({"content": "ok"})).encode():
        await response.write(bytes([byte]))
        await asyncio.sleep(0.05)
    return response


async def _pieces(http: web.Request, pieces: Iterable[bytes], **more: Any) -> web.StreamResponse:
    """A body piece by piece, for as long as somebody reads it."""
    response = web.StreamResponse(**more)
    await response.prepare(http)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            await response.write(piece)
    return response


@fault("long_body")
async def _long_body(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """A completion of 200 MB."""
    start, end = json.dumps(completion({"content": "|"})).encode().split(b"|")
    pieces = itertools.chain([start], itertools.repeat(b"a" * 2**20, 200), [end])
    return await _pieces(http, pieces, headers={"Content-Type": "application/json"})


@fault("endless")
async def _endless(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """Server-sent events without an end."""
    pieces = itertools.repeat(b'data: {"choices": []}\n\n' * 1000)
    return await _pieces(http, pieces, headers={"Content-Type": "text/event-stream"})


@fault("gzip_bomb")
async def _gzip_bomb(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """Half a megabyte that unpacks to half a gigabyte."""
    packer = zlib.compressobj(9, wbits=31)
    blank = b" " * 2**24
    pieces = [*(packer.compress(blank) for _ in range(32)), packer.flush()]
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return await _pieces(http, pieces, headers=headers)


@fault("long_error")
async def _long_error(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """A refusal with a page of 50 MB."""
    pieces = itertools.repeat(b"bad request. " * 2**16, 64)
    return await _pieces(http, pieces, status=400, headers={"Content-Type": "text/plain"})


@fault("moved")
async def _moved(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    location = str(http.url.with_query(moved="1"))
    return web.Response(status=307, headers={"Location": location})


@fault("cut")
async def _cut(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    """A body that announces more bytes than come."""
    whole = json.dumps(completion({"content": "ok"})).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(http)
    await response.write(whole[: len(whole) // 2])
    assert http.transport is not None
    http.transport.close()
    return response


@fault("reset")
async def _reset(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    assert http.transport is not None
    http.transport.abort()
    return web.Response()


@fault("echo_key")
async def _echo(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
    sent = http.headers.get("Authorization", "")
    return error_response(400, f"bad request, headers were: Authorization: {sent}")


def _fixed(make: Callable[[], web.Response]) -> Fault:
    async def answer(server: FakeServer, http: web.Request, body: Body) -> web.StreamResponse:
        return make()

    return answer


def _whole(**fields: object) -> Fault:
    """A chat completion whose message has these fields."""
    finish = fields.pop("finish_reason", "stop")
    return _fixed(lambda: web.json_response(completion(fields, finish_reason=finish)))


def _text(text: str, kind: str = "application/json", status: int = 200) -> Fault:
    return _fixed(lambda: web.Response(text=text, content_type=kind, status=status))


FAULTS |= {
    "quota": _fixed(
        lambda: error_response(429, "You exceeded your quota", code="insufficient_quota")
    ),
    "500": _text("Internal error: 1 worker lost", "text/plain", 500),
    "503": _fixed(lambda: error_response(503, "The server is overloaded")),
    "400": _fixed(lambda: error_response(400, "Bad request")),
    "content_filter": _fixed(
        lambda: error_response(400, "blocked by policy", code="content_filter")
    ),
    "html": _text("<html><head><title>502 Bad Gateway</title></head></html>", "text/html", 502),
    "html_200": _text("<!doctype html><p>Please log in</p>", "text/html"),
    "cut_json": _text('{"choices": [{"message": {"content": "o'),
    "wrong_json": _text('{"choices": [{"message": {"content": 5}}]}'),
    "not_json": _text("ok", "text/plain"),
    "no_choices": _text('{"choices": []}'),
    "error_200": _text('{"error": {"message": "upstream is overloaded", "code": 503}}'),
    "null": _whole(content=None),
    "empty": _whole(content=""),
    "thought_only": _whole(content=None, reasoning_content="Let me", finish_reason="length"),
    "cut_thought": _whole(content="<think>Let me look", finish_reason="length"),
    "cut_answer": _whole(content="The picture shows a", finish_reason="length"),
    "refusal": _whole(content=None, refusal="I cannot help with that."),
}


def main() -> None:
    """Read the command line and serve until interrupted."""

    def read_fault(text: str) -> tuple[str, float]:
        name, _, probability = text.partition("=")
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"unknown fault {name!r}; known: {', '.join(FAULTS)}")
        return name, float(probability or 1)

    parser = argparse.ArgumentParser(description="a fake OpenAI-compatible endpoint with faults")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--answer", default="ok")
    parser.add_argument("--rule", action="append", default=[], metavar="PIECE=ANSWER")
    parser.add_argument("--fault", type=read_fault, action="append", default=[], metavar="NAME=P")
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--jitter-ms", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--key", default="")
    parser.add_argument("--model", action="append", default=[])
    options = parser.parse_args()
    rules = {piece: text for piece, _, text in (rule.partition("=") for rule in options.rule)}
    behaviour = Behaviour(
        faults=dict(options.fault),
        delay_s=options.delay_ms / 1000,
        jitter_s=options.jitter_ms / 1000,
        seed=options.seed,
        key=options.key,
        models=tuple(options.model) or ("fake",),
    )
    with FakeServer({**rules, "": options.answer}, behaviour, port=options.port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(dict(server.calls), dict(server.faults), "peak", server.peak)
