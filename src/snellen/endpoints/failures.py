"""What an endpoint's refusal means: status and error body to a `CallFailure`, keys scrubbed."""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from html import unescape
from http import HTTPStatus
from urllib.parse import (
    parse_qsl,
    quote,
    quote_plus,
    unquote,
    urlencode,
    urljoin,
    urlsplit,
    urlunsplit,
)

import msgspec

from snellen.records import CallFailure, FailureKind

MESSAGE_LENGTH = 300
# An endpoint that asks for a longer wait than this, in seconds, has closed for the day.
MAX_RETRY_AFTER_S = 600.0
LONGEST_PAGE = 20_000  # bytes of an error that are looked at
SHORTEST_PIECE = 6  # characters of a key that must not be shown in a row

# Parts of a URL's query that are known to hold no secret; the values of all others are masked.
HARMLESS = frozenset(
    {
        "api-version", "api_version", "version", "v", "model", "deployment", "region", "location",
        "project", "alt", "format", "stream", "timeout", "provider", "beta",
    }
)  # fmt: skip
# A user and a password before the host; a password that was not encoded may hold `/`, `?`, `#`.
_USER_INFO = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://|(?![a-z][a-z0-9+.-]*://))"
    r"(?:(?P<usual>[^/?#]*)@|(?P<odd>[^/?#@:]*:(?!\d+(?:[/?#]|$)).*)@)",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"key|token|secret|sig|auth|passw|credential|cookie", re.IGNORECASE)
_PICTURE = re.compile(r"data:[\w/+.-]*;base64,[A-Za-z0-9+/=_\\-]*")
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_-]{120,}")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_BEARER = re.compile(r"\b(bearer|basic)\s+[^\s\"',;)}]+", re.IGNORECASE)
_MASKED = re.compile(r"[^\s\"'`:=]{0,80}\*{2,}[^\s\"'`,.;]*|\bsk-[\w-]*\.{3}[\w-]*")
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error as a server words it; empty strings where it does not say."""

    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""

    @property
    def words(self) -> str:
        """All that it says, in lower case."""
        return f"{self.code} {self.type} {self.param} {self.message}".lower()


def read_error(body: bytes) -> ErrorBody:
    """The error in a body, be it JSON in any of the usual shapes, HTML or plain text.

    >>> read_error(b'{"error": {"message": "no such model", "code": "model_not_found"}}').code
    'model_not_found'
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:LONGEST_PAGE].decode("utf-8", "replace")
        return ErrorBody(message=unescape(_MARKUP.sub(" ", text)).strip())
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return ErrorBody(message=str(value))
    error = value.get("error", value)
    if not isinstance(error, dict):
        return ErrorBody(message=str(error))
    message, param = error.get("message"), error.get("param")
    if message is None:
        message = error.get("detail")
        if isinstance(message, list) and message and isinstance(message[0], dict):
            # Validating frameworks give a list of places and what is wrong there.
            places = [[str(step) for step in r.get("loc", ()) if step != "body"] for r in message]
            param = param or (places[0][0] if places[0] else "")
            pairs = zip(places, message, strict=True)
            message = "; ".join(f"{'.'.join(place)}: {r.get('msg', '')}" for place, r in pairs)
    # A gateway passes on what the server behind it said, which alone may say what was wrong.
    metadata, behind = error.get("metadata"), ""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw:
        behind = f": {read_error(raw.encode()).message if isinstance(raw, str) else _as_text(raw)}"
    return ErrorBody(
        message=_as_text(message if message is not None else error) + behind,
        code=_as_text(error.get("code")),
        type=_as_text(error.get("type") or error.get("status")),
        param=_as_text(param),
    )


def _as_text(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:LONGEST_PAGE]


# Codes are the server's own word and so go before the status.
_BY_CODE: Mapping[str, FailureKind] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "insufficient_balance": "quota",
    "exceeded_current_quota_error": "quota",
    "arrearage": "quota",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_denied": "auth",
    "model_not_found": "unknown_model",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "responsibleaipolicyviolation": "content_filter",
    "data_inspection_failed": "content_filter",
    "datainspectionfailed": "content_filter",
    "moderation_blocked": "content_filter",
    "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "overload",
    "unsupported_parameter": "bad_parameter",
    "unsupported_value": "bad_parameter",
}

_BY_STATUS: Mapping[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "unknown_model",
    405: "unknown_model",
    407: "auth",
    408: "timeout",
    409: "overload",
    425: "rate_limit",
    429: "rate_limit",
    498: "auth",
    499: "timeout",
    501: "bad_parameter",
    504: "timeout",
    522: "timeout",
    524: "timeout",
}

_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|balance is insufficient|out of credits?"
    r"|credit balance|available credits|spending limit|free tier[^.]{0,40}\bexhausted"
    r"|余额不足|欠费"
)
# A limit of this kind is not waited for, unless the server says that it need not take long.
_DAILY = re.compile(
    r"per[-_ ]?day|\bdaily\b[^.]{0,40}\b(limit|quota)|\b(limit|quota)\b[^.]{0,40}\bdaily\b"
)
# Gemini has no Retry-After, but says so in the body.
_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')
_TOO_LARGE = re.compile(r"request too large for")
_CONTEXT = re.compile(
    r"context[_ ]?(length|window|size)|maximum (context|model length)|too many (input )?tokens"
    r"|(prompt|input|request)\b[^.]{0,60}\b(too long|longer than|exceed(s|ed)?)\b"
    r"[^.]{0,60}\b(token|context|length)"
    r"|prompt is too long|reduce the length|range of input length"
    r"|`inputs` (tokens|must have less than)\b"
)
_FILTER = re.compile(
    r"content[_ ](filter|policy|management)|blocked by policy|safety (system|filter)"
    r"|moderation|inappropriate content|flagged"
)
_NO_MODEL = re.compile(
    r"(not a valid|invalid|unknown|no such) model\b|\bmodel\b[^.]{0,80}"
    r"\b(does not exist|not found|is not available|is not supported on this)"
)
_BLIND = re.compile(
    r"(image|vision|multimodal|picture)s?\b[^.]{0,30}\bnot support"
    r"|does not support[^.]{0,30}(image|vision|multimodal)|required for image input"
)
_NO_PATH = re.compile(r"unexpected endpoint")
_SOMETHING = re.compile(r"\bmodels?\b|endpoints|deployment|provider")
_BAD_KEY = re.compile(
    r"(invalid|incorrect|not valid|missing)[^.]{0,20}api[ _-]?key|api[ _-]?key not"
)


def failure_kind(status: int, error: ErrorBody) -> FailureKind:
    """What went wrong, from the server's code, then its status, then its words.

    >>> failure_kind(429, ErrorBody(code="insufficient_quota"))
    'quota'
    """
    if _TOO_LARGE.search(error.words):
        return "context_length"  # for all tokens of a minute, so that waiting is in vain
    for word in (error.code.lower(), error.type.lower()):
        if word in _BY_CODE:
            return _BY_CODE[word]
    if status in (403, 429) and _QUOTA.search(error.words):
        return "quota"
    if status == 403:
        return "content_filter" if _FILTER.search(error.words) else "auth"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        if _CONTEXT.search(error.words):
            return "context_length"
        return "bad_parameter" if _BLIND.search(error.words) else "overload"
    if status >= 400:
        return _refusal_kind(error.words)
    if status >= 300:
        return "unknown_model"
    # An error without any status: its words may say that a second try is in vain.
    kind = _refusal_kind(error.words)
    return "bad_reply" if kind == "bad_parameter" else kind


def _refusal_kind(words: str) -> FailureKind:
    """Of a 400, 413, 422 or another status that says only that the request will not do."""
    if _CONTEXT.search(words):
        return "context_length"
    if _FILTER.search(words):
        return "content_filter"
    if _BAD_KEY.search(words):
        return "auth"
    if _NO_MODEL.search(words) or _NO_PATH.search(words):
        return "unknown_model"
    return "quota" if _QUOTA.search(words) else "bad_parameter"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the headers demand, in seconds, from either form; None if they do not.

    A date is taken against the server's own clock, where it shows it: this machine's may be wrong.

    >>> retry_after_s({"Retry-After": "3"})
    3.0
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = named.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) * unit_s
        until_s = _date_s(value)
        if until_s is not None:
            now_s = _date_s(named.get("date", ""))
            return max(0.0, until_s - (time.time() if now_s is None else now_s))
    return None


def _date_s(value: str) -> float | None:
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def one_line(text: str, secrets: Iterable[str] = ()) -> str:
    """A text fit for a message: one line of at most 300 characters without keys and pictures.

    >>> one_line("no  such\\nkey: sk-0123456789", ["sk-0123456789"])
    'no such key: ***'
    """
    text = _LONG_RUN.sub("(data)", _PICTURE.sub("(picture)", text[:LONGEST_PAGE]))
    text = "".join(c if c.isprintable() else " " for c in text)
    text = " ".join(scrub(text, secrets).split())
    return text if len(text) <= MESSAGE_LENGTH else text[: MESSAGE_LENGTH - 1] + "…"


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret replaced by `***`.

    That covers secrets that are URL-encoded, in base64, masked by the server, or shown in part
    (six characters in a row).
    """
    for secret in secrets:
        text = _ENCODED.sub(partial(_scrub_encoded, secret=secret.encode()), text)
        for form in forms_of(secret):
            text = _scrub_form(text, form)
    return _MASKED.sub("***", _BEARER.sub(r"\1 ***", text))


def _scrub_encoded(found: re.Match[str], secret: bytes) -> str:
    """A run of base64 characters, or `***` where it holds the secret."""
    run = found[0]
    standard = run.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(standard + "=" * (-len(standard) % 4))
    except binascii.Error:
        return run
    return "***" if secret in data else run


def forms_of(secret: str) -> set[str]:
    """The spellings under which a server may echo a secret; longest pieces are cut from each."""
    quoted = {secret, quote(secret, safe=""), quote_plus(secret)}
    quoted |= {msgspec.json.encode(secret).decode()[1:-1], json.dumps(secret)[1:-1]}
    for offset in range(3):
        # Base64 depends on what stands before the secret, by its length modulo 3.
        data = base64.b64encode(b"\0" * offset + secret.encode())
        core = data[(0, 2, 3)[offset] :].rstrip(b"=")[:-1].decode()
        if len(core) >= SHORTEST_PIECE:
            quoted |= {core, core.replace("+", "-").replace("/", "_")}
    return {form for form in quoted if form}


def _scrub_form(text: str, form: str) -> str:
    text = text.replace(form, "***")
    pieces = [form[i : i + SHORTEST_PIECE] for i in range(len(form) - SHORTEST_PIECE + 1)]
    hidden = bytearray(len(text))
    for piece in pieces:
        start = text.find(piece)
        while start >= 0:
            hidden[start : start + len(piece)] = b"\1" * len(piece)
            start = text.find(piece, start + 1)
    if not any(hidden):
        return text
    return re.sub(
        "\0+", "***", "".join("\0" if h else c for c, h in zip(text, hidden, strict=True))
    )


def secrets_of(key: str, url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """All that must never be shown of an endpoint: key, header values, credentials in its URL.

    >>> secrets_of("", "http://me:pass@host/v1?key=abcdef", {})
    ('pass', 'abcdef')
    """
    url, credentials = take_off_credentials(url)
    user, _, password = credentials.partition(":")
    query = parse_qsl(urlsplit(url).query)
    found = [key, unquote(password or user)]
    found += [value for name, value in query if name.lower() not in HARMLESS]
    for name, value in headers.items():
        if _SECRET_NAME.search(name):
            found += [value, *value.split()[1:]]
    return tuple(dict.fromkeys(s for s in found if len(s) >= 3))


def take_off_credentials(url: str) -> tuple[str, str]:
    """A URL without its user and password, and these as they stand in it.

    >>> take_off_credentials("http://me:pa/ss?#@host/v1")
    ('http://host/v1', 'me:pa/ss?#')
    >>> take_off_credentials("http://host:8000/v1/@cf/m")
    ('http://host:8000/v1/@cf/m', '')
    """
    found = _USER_INFO.match(url)
    if found is None:
        return url, ""
    return found["scheme"] + url[found.end() :], found["usual"] or found["odd"] or ""


def public_url(url: str) -> str:
    """The URL without user, password and query values that may be secret, fit to be shown.

    >>> public_url("https://me:pass@host:8000/v1?code=abcdef&api-version=3")
    'https://host:8000/v1?code=***&api-version=3'
    """
    try:
        parts = urlsplit(take_off_credentials(url)[0])
    except ValueError:
        return "***"
    query = [
        (name, value if name.lower() in HARMLESS else "***")
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query, safe="*"), ""))


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer that is no reply: its status, headers and body."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    latency_s: float = 0.0


def read_failure(refusal: Refusal, *, url: str, secrets: Iterable[str] = ()) -> CallFailure:
    """The failure that an HTTP refusal of the endpoint at `url` stands for.

    >>> read_failure(Refusal(404, b"", {}), url="http://host/api").kind
    'unknown_model'
    """
    error = read_error(refusal.body)
    status = refusal.status
    if status == 200 and re.fullmatch(r"[45]\d\d", error.code):
        # Gateways pass on the status of the server behind them in a body of status 200.
        status = int(error.code)
    kind = failure_kind(status, error)
    wait_s = retry_after_s(refusal.headers)
    if kind == "rate_limit":
        # A limit is one of a moment or of a day.
        text = refusal.body[:LONGEST_PAGE].decode("utf-8", "replace")
        is_long = wait_s is None or wait_s > MAX_RETRY_AFTER_S
        delay = _DELAY.search(text)
        if wait_s is None and delay is not None:
            wait_s = float(delay[1])
        kind = "quota" if is_long and _DAILY.search(text.lower()) else "rate_limit"
    known = {one.value: one.phrase for one in HTTPStatus}
    said = error.message or known.get(status, "no explanation")
    hint = _hint(refusal, error, url)
    return CallFailure(
        kind=kind,
        message=one_line(f"HTTP {status}: {hint}{said}", secrets),
        status=status,
        retry_after_s=wait_s,
        latency_s=refusal.latency_s,
    )


def _hint(refusal: Refusal, error: ErrorBody, url: str) -> str:
    """What to do, where the status alone shows that the address is wrong."""
    place = public_url(url)
    if 300 <= refusal.status < 400:
        location = refusal.headers.get("Location", "")
        target = public_url(urljoin(url, location)) if location else "another place"
        return f"{place} sends on to {target}; use that as the URL. "
    if refusal.status == 407:
        return "the proxy that the environment names wants a user and a password. "
    if refusal.status == 413 and not _TOO_LARGE.search(error.words):
        return "too large for the server or a proxy before it (--max-pixels shrinks pictures). "
    # Nothing is served there: a 404 that says so little, or LM Studio's 200.
    words = error.message.lower()
    is_nowhere = refusal.status == 200 and _NO_PATH.search(words) is not None
    if refusal.status == 404:
        is_nowhere = not error.code.lower().endswith("notfound") and not _SOMETHING.search(words)
    if refusal.status == 405 or is_nowhere:
        end = "" if "/v1" in place else " (does the URL lack /v1?)"
        return f"nothing answers at {place}{end}. "
    return ""
