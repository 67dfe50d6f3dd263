"""Who answers requests: an OpenAI-compatible endpoint or a Python function."""

from __future__ import annotations

import asyncio
import errno
import inspect
import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray
from yarl import URL

from snellen.endpoints.bodies import ACCEPTED, BodyError, BodyReader
from snellen.endpoints.chat_format import (
    RESERVED,
    Dialect,
    encode_request,
    is_named,
    learn,
    plain_messages,
    read_reply,
    response_format,
    take_off_thoughts,
)
from snellen.endpoints.connections import (
    Connector,
    basic_authorization,
    is_reused,
    proxy_for,
    why_unreached,
)
from snellen.endpoints.failures import (
    Refusal,
    failure_kind,
    forms_of,
    one_line,
    public_url,
    read_error,
    read_failure,
    secrets_of,
    take_off_credentials,
)
from snellen.endpoints.lenient import ErrorInReplyError, UnreadableReplyError
from snellen.errors import SettingsError
from snellen.records import Answer, CallFailure, FailureKind, JsonObject, Params, Reply, Request

if TYPE_CHECKING:
    from snellen.pictures.prepare import Picture
    from snellen.settings import Endpoint

SPARE_CONNECTIONS = 4
LARGE_BODY = 1 << 20
# Common servers close idle connections after 5 s; to reuse one just then loses the call.
IDLE_S = 4.0
# Others close sooner. What breaks off this soon, on a connection that was open, was never read.
STALE_S = 1.0
MOST_REDIRECTS = 3
TOO_MANY_FILES = frozenset({errno.EMFILE, errno.ENFILE})
LONGEST_HEADER = 1 << 16  # bytes; gateways send policies and cookies of more than the usual 8 kB
TEACHING_STATUSES = frozenset({400, 404, 415, 422, 501})


class Caller(Protocol):
    """Whatever answers requests. It makes one attempt; retries are the scheduler's."""

    async def call(self, request: Request, pictures: Sequence[Picture]) -> Answer: ...

    async def close(self) -> None: ...


def chat_url(url: str) -> str:
    """The base URL of an endpoint without credentials, from what people write.

    A host without a path gets `/v1`; a final slash and `/chat/completions` are taken off; any
    other path stands as it is.

    Raises: SettingsError, for a URL without scheme or host.

    >>> chat_url("http://127.0.0.1:8000")
    'http://127.0.0.1:8000/v1'
    >>> chat_url("https://host/api/v3/chat/completions/")
    'https://host/api/v3'
    """
    try:
        parts = urlsplit(take_off_credentials(url.strip())[0])
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"`{public_url(url.strip())}` is not the URL of an endpoint",
            hint="write it with scheme and path, for example http://127.0.0.1:8000/v1",
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}{query}"


def body_params(request: Request, endpoint: Endpoint) -> JsonObject:
    """The body fields of a call: the endpoint's, then the request's, which win.

    A field that the endpoint sets to None is never sent, whoever asks for it. A request's schema
    goes out as `response_format`, unless the endpoint has one of its own.
    """
    own = request.params
    if request.schema is not None and "response_format" not in endpoint.params:
        own = {**own, "response_format": response_format(request.schema)}
    return _merged_params(own, endpoint)


def _merged_params(own: Params, endpoint: Endpoint) -> JsonObject:
    merged = {**endpoint.soft_params, **endpoint.params, **own}
    banned = [name for name, value in endpoint.params.items() if value is None]
    return {k: v for k, v in merged.items() if v is not None and k not in banned}


def build_body(request: Request, pictures: Sequence[Picture], endpoint: Endpoint) -> bytes:
    """The JSON body that an endpoint is sent before it has taught anything."""
    params = body_params(request, endpoint)
    return encode_request(request, pictures, model=endpoint.model, params=params)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A call before it is put into an endpoint's dialect."""

    request: Request
    pictures: Sequence[Picture]
    params: Params


class ChatClient:
    """Calls one OpenAI-compatible endpoint over one pool of connections.

    The pool opens in the first call, belongs to that call's event loop, and is closed there.

    Raises: SettingsError, for a URL, key, header or body field that cannot be sent.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        taken = sorted(RESERVED & {*endpoint.params, *endpoint.soft_params})
        if taken:
            raise SettingsError(
                f"endpoint `{endpoint.name}` sets the body field `{taken[0]}`, which Snellen sets",
                hint="take it out of the params",
            )
        self.endpoint = endpoint
        self._base = URL(chat_url(endpoint.url))
        self._chat = self._at("chat/completions")
        self._params = _merged_params({}, endpoint)
        self._proxy, pass_by = proxy_for(self._base)
        self._proxy_headers = pass_by if self._base.scheme == "https" else None
        self._headers = _headers_of(endpoint) | (pass_by if self._base.scheme == "http" else {})
        self._secrets = secrets_of(endpoint.key, endpoint.url, self._headers | pass_by)
        # A short secret could be a word of an answer: `not-needed` is, and is a common key.
        unmistakable = [
            s
            for s in self._secrets
            if (len(s) >= 20 and s.isalpha())
            or (len(s) >= 12 and any(map(str.isdigit, s)) and any(map(str.isalpha, s)))
        ]
        self._secret_bytes = [form.encode() for s in unmistakable for form in forms_of(s)]
        self._soft = frozenset(endpoint.soft_params) - endpoint.params.keys()
        self._dialect = Dialect()
        self._knows_soft = not self._soft
        self._session: aiohttp.ClientSession | None = None

    @property
    def dialect(self) -> Dialect:
        """What the endpoint has taught so far."""
        return self._dialect

    async def call(self, request: Request, pictures: Sequence[Picture] = ()) -> Answer:
        """One attempt. A refused parameter is learnt and the call repeated at once without it."""
        is_own = request.params or request.schema is not None
        params = body_params(request, self.endpoint) if is_own else self._params
        draft = _Draft(request, pictures, params)
        while True:
            dialect = self._dialect
            answer = await self._attempt(draft, dialect)
            if not isinstance(answer, Refusal):
                self._knows_soft = self._knows_soft or isinstance(answer, Reply)
                return answer
            if not self._learn(answer, draft.params, dialect):
                failure = self._explain(answer, draft.params)
                if request.schema is not None and failure.kind == "bad_parameter":
                    freed = await self._without(frozenset({"response_format"}), draft)
                    return freed if isinstance(freed, Reply) else failure
                if self._named(answer, draft.params):
                    return failure
                return await self._without_soft(draft, failure)

    def _learn(self, refusal: Refusal, params: Params, used: Dialect) -> bool:
        """Whether to ask again: this call has learnt something, or another did meanwhile."""
        if refusal.status not in TEACHING_STATUSES:
            return False
        error = read_error(refusal.body)
        if failure_kind(refusal.status, error) not in ("bad_parameter", "unknown_model"):
            return False
        if self._dialect is not used:
            return True
        lesson = learn(used, error.words, sent=used.translate(params), soft=self._soft)
        if lesson is None:
            return False
        self._dialect = lesson
        return True

    async def _without_soft(self, draft: _Draft, failure: CallFailure) -> Answer:
        """A second try where a refusal names no field and soft ones were never seen to work."""
        soft = self._soft & draft.params.keys() - self._dialect.dropped
        if failure.kind != "bad_parameter" or self._knows_soft or not soft:
            return failure
        answer = await self._without(soft, draft)
        self._knows_soft = isinstance(answer, Reply | Refusal)
        return answer if isinstance(answer, Reply) else failure

    async def _without(self, names: frozenset[str], draft: _Draft) -> Answer | Refusal:
        """A try without some fields, which are given up for good where that has a reply."""
        trial = Dialect(self._dialect.renamed, self._dialect.dropped | names)
        answer = await self._attempt(draft, trial)
        if isinstance(answer, Reply):
            self._dialect = trial
        return answer

    async def _attempt(self, draft: _Draft, dialect: Dialect) -> Answer | Refusal:
        body = encode_request(
            draft.request,
            draft.pictures,
            model=self.endpoint.model,
            params=dialect.translate(draft.params),
        )
        started = time.perf_counter()
        answer = await self._exchange("POST", self._chat, body)
        latency_s = time.perf_counter() - started
        if isinstance(answer, CallFailure) and answer.is_stale and latency_s > STALE_S:
            answer = replace(answer, is_stale=False, was_sent=True)
        if not isinstance(answer, bytes):
            return replace(answer, latency_s=latency_s)
        try:
            return read_reply(answer, latency_s=latency_s, notes=dialect.notes(draft.params))
        except ErrorInReplyError as error:
            return Refusal(200, error.body, {}, latency_s)
        except UnreadableReplyError as error:
            return self._failure("bad_reply", str(error), latency_s=latency_s)

    async def _exchange(
        self, method: str, url: URL, body: bytes | None = None
    ) -> bytes | Refusal | CallFailure:
        # The headers go with each request: aiohttp would show those of a session to the proxy.
        session = self._open()
        # aiohttp warns of large bodies unless they come as a file.
        try:
            for _ in range(MOST_REDIRECTS + 1):
                is_large = body is not None and len(body) > LARGE_BODY
                async with session.request(
                    method,
                    url,
                    data=io.BytesIO(body) if is_large and body is not None else body,
                    headers=self._headers,
                    allow_redirects=False,
                    proxy=self._proxy,
                    proxy_headers=self._proxy_headers,
                ) as response:
                    received = await self._bodies.read(response)
                target = _moved_to(response)
                if target is None:
                    break
                url = target
        except BodyError as error:
            return self._failure("bad_reply", f"{public_url(str(self._base))}: {error}")
        except (aiohttp.ClientError, OSError) as error:
            return self._broken(error)
        for secret in self._secret_bytes:
            if secret in received:
                received = received.replace(secret, b"***")
        if response.status < 300:
            return received
        return Refusal(response.status, received, response.headers)

    def _broken(self, error: Exception) -> CallFailure:
        """The failure for an exchange that ended without an HTTP answer."""
        place = public_url(str(self._base))
        if getattr(getattr(error, "os_error", error), "errno", None) in TOO_MANY_FILES:
            # As with a server's own limit: fewer calls at once, and no try is lost.
            said = "too many open files (`ulimit -n` says how many there may be)"
            return replace(self._failure("rate_limit", said), was_sent=False)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            wait_s = self.endpoint.connect_timeout_s
            return self._unsent(f"no connection to {place} within {wait_s:g} s")
        if isinstance(error, TimeoutError):
            wait_s = self.endpoint.timeout_s
            return self._failure("timeout", f"no whole reply from {place} within {wait_s:g} s")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            refusal = Refusal(error.status, b"", error.headers or {})
            return read_failure(refusal, url=place, secrets=self._secrets)
        if isinstance(error, aiohttp.ClientResponseError):
            said = f"{place} does not speak HTTP as it should: {error.message}"
            return self._failure("bad_reply", said)
        if isinstance(error, aiohttp.ClientPayloadError):
            return self._failure("connection", f"{place} broke off before its reply was whole")
        if isinstance(error, aiohttp.ServerDisconnectedError):
            failure = self._failure("connection", f"{place} broke off before its reply was whole")
            return _mark_stale(failure)
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            place = f"{place} by the proxy {self._proxy} that the environment names"
        said = f"no connection to {place}: {why_unreached(error)}"
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._unsent(said)
        return _mark_stale(self._failure("connection", said))

    def _unsent(self, text: str) -> CallFailure:
        return replace(self._failure("connection", text), was_sent=False)

    def _failure(self, kind: FailureKind, text: str, *, latency_s: float = 0.0) -> CallFailure:
        return CallFailure(kind, one_line(text, self._secrets), latency_s=latency_s)

    def _explain(self, refusal: Refusal, params: Params) -> CallFailure:
        """The failure that a refusal stands for, with what to do about a refused parameter."""
        url = public_url(str(self._chat))
        failure = read_failure(refusal, url=url, secrets=self._secrets)
        if self._proxy is not None:
            said = f"by way of the proxy {self._proxy}: {failure.message}"
            failure = replace(failure, message=one_line(said, self._secrets))
        named = self._named(refusal, params)
        if failure.kind != "bad_parameter" or not named:
            return failure
        hint = f"`{named[0]}` is refused (move it to soft_params to go without): {failure.message}"
        return replace(failure, message=one_line(hint))

    @staticmethod
    def _named(refusal: Refusal, params: Params) -> list[str]:
        """The body fields that a refusal names."""
        words = read_error(refusal.body).words
        return [name for name, value in params.items() if is_named(words, name, value)]

    async def list_models(self) -> tuple[str, ...] | CallFailure:
        """The names that the endpoint's model list holds, in its order."""
        answer = await self._exchange("GET", self._at("models"))
        listed = self._read(answer, _ModelList)
        if isinstance(listed, CallFailure):
            return listed
        return tuple(entry.id for entry in listed.data)

    async def embeddings(self, texts: Sequence[str]) -> NDArray[np.float32] | CallFailure:
        """One embedding a text, (n, d), in the order of the texts; (0, 0) for none."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        body = msgspec.json.encode({"model": self.endpoint.model, "input": list(texts)})
        found = self._read(
            await self._exchange("POST", self._at("embeddings"), body), _EmbeddingList
        )
        if isinstance(found, CallFailure):
            return found
        rows = [row.embedding for row in sorted(found.data, key=lambda row: row.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            return self._failure(
                "bad_reply", f"{len(rows)} embeddings for {len(texts)} texts, or of unequal length"
            )
        return np.array(rows, dtype=np.float32)

    def _read(self, answer: bytes | Refusal | CallFailure, shape: type[_T]) -> _T | CallFailure:
        if isinstance(answer, CallFailure):
            return answer
        if isinstance(answer, Refusal):
            return self._explain(answer, {})
        try:
            return msgspec.json.decode(answer, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._failure("bad_reply", f"{public_url(str(self._base))}: {error}")

    def _at(self, path: str) -> URL:
        return (self._base / path).with_query(self._base.query)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            endpoint = self.endpoint
            self._bodies = BodyReader()
            self._session = aiohttp.ClientSession(
                connector=Connector(
                    limit=endpoint.concurrency + SPARE_CONNECTIONS, keepalive_timeout=IDLE_S
                ),
                timeout=aiohttp.ClientTimeout(
                    total=endpoint.timeout_s, sock_connect=endpoint.connect_timeout_s
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=LONGEST_HEADER,
                max_field_size=LONGEST_HEADER,
            )
        return self._session

    async def close(self) -> None:
        """Close the connections; a later call would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


_T = TypeVar("_T")


class _Model(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Model]


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _EmbeddingList(msgspec.Struct):
    data: list[_Embedding]


def _moved_to(response: aiohttp.ClientResponse) -> URL | None:
    """Where a 307 or 308 sends a call on to, on the same host; the key goes to no other."""
    location = response.headers.get("Location")
    if response.status not in (307, 308) or not location:
        return None
    try:
        target = response.url.join(URL(location))
    except ValueError:
        return None
    return target if target.origin() == response.url.origin() else None


def _headers_of(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": ACCEPTED,
        "user-agent": "snellen",
    }
    user, _, password = take_off_credentials(endpoint.url.strip())[1].partition(":")
    if endpoint.key:
        headers["authorization"] = f"Bearer {endpoint.key}"
    elif user or password:
        headers["authorization"] = basic_authorization(unquote(user), unquote(password))
    headers |= {name.lower(): value for name, value in endpoint.headers.items()}
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise SettingsError(
                f"the {name} header of endpoint `{endpoint.name}` holds a line break or another"
                " character that no header can carry",
                hint="copy the key again, without quotes and line breaks",
            )
    return headers


def _mark_stale(failure: CallFailure) -> CallFailure:
    """A connection that broke without a byte: one that was open before was closed already."""
    is_stale = is_reused()
    return replace(failure, is_stale=is_stale, was_sent=not is_stale)


Function = Callable[..., object]


class CallableModel:
    """A Python function as a model.

    `function` gets the messages as OpenAI-style dicts, pictures as data URIs, and returns a text
    or a `Reply`. It may be a coroutine function; others run in threads, at most `threads` at once.
    What it raises is not caught here.
    """

    def __init__(self, function: Function, *, threads: int = 8) -> None:
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="model")

    async def call(self, request: Request, pictures: Sequence[Picture] = ()) -> Answer:
        """The function's answer, with a leading think block taken off."""
        messages = plain_messages(request, pictures)
        started = time.perf_counter()
        if self._is_async:
            said: object = self._function(messages)
        else:
            loop = asyncio.get_running_loop()
            said = await loop.run_in_executor(self._pool, self._said, messages)
        if inspect.isawaitable(said):
            said = await said
        return as_answer(said, latency_s=time.perf_counter() - started)

    def _said(self, messages: list[JsonObject]) -> object:
        """What the function gives; a future cannot hold StopIteration, and would wait for ever."""
        try:
            return self._function(messages)
        except StopIteration as error:
            raise RuntimeError("StopIteration: the function has no more replies to give") from error

    async def close(self) -> None:
        """Let running functions end and start no other."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def as_answer(said: object, *, latency_s: float) -> Answer:
    """What a Python function gave as an answer, with a leading think block taken off."""
    if isinstance(said, Reply | CallFailure):
        return replace(said, latency_s=said.latency_s or latency_s)
    if not isinstance(said, str):
        text = f"the model function gave {type(said).__name__}; it must give str or Reply"
        return CallFailure("bad_reply", text, latency_s=latency_s)
    # A subclass, such as a text out of a numpy array, can be written into no file.
    thought, text = take_off_thoughts(str.__str__(said))
    return Reply(text=text, reasoning=thought, latency_s=latency_s)
