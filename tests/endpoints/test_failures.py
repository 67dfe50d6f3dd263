"""What refusals mean, and what their messages hide."""

import base64
import json
import time
from email.utils import formatdate
from urllib.parse import quote

import pytest

from snellen.endpoints.failures import (
    Refusal,
    one_line,
    public_url,
    read_error,
    read_failure,
    retry_after_s,
    secrets_of,
)

KEY = "sk-Zq3+x/VtN8uLw0pR"
URL = "http://host/v1/chat/completions"


def refuse(status, message="", *, headers=None, **more):
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return read_failure(Refusal(status, body, headers or {}), url=URL, secrets=[KEY])


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (429, "slow down", "rate_limit_exceeded", "rate_limit"),
        (429, "You exceeded your current quota", "insufficient_quota", "quota"),
        (429, "You exceeded your current quota, retry in 20 s", None, "rate_limit"),
        (401, "no", None, "auth"),
        (403, "no", None, "auth"),
        (403, "flagged by moderation", None, "content_filter"),
        (402, "pay", None, "quota"),
        (404, "The model `x` does not exist", "model_not_found", "unknown_model"),
        (400, "maximum context length is 8192 tokens, you sent 10127", None, "context_length"),
        (400, "prompt is too long: 9 tokens", None, "context_length"),
        (500, "the request exceeds the available context size", None, "context_length"),
        (500, "image input is not supported", "server_error", "bad_parameter"),
        (400, "blocked by policy", "content_filter", "content_filter"),
        (400, "Unsupported value: temperature", "unsupported_value", "bad_parameter"),
        (400, "API key not valid", None, "auth"),
        (400, "gpt-x is not a valid model ID", None, "unknown_model"),
        (400, "The model does not support image input", None, "bad_parameter"),
        (422, "whatever", None, "bad_parameter"),
        (408, "", None, "timeout"),
        (504, "", None, "timeout"),
        (500, "Internal error: 1 worker lost", None, "overload"),
        (502, "", None, "overload"),
        (503, "", None, "overload"),
        (529, "", "overloaded_error", "overload"),
        (407, "", None, "auth"),
        (429, "x", "exceeded_current_quota_error", "quota"),
        (429, "余额不足或无可用资源包,请充值。", "1113", "quota"),
        (429, "Your team has used all available credits", None, "quota"),
        (403, "The free tier of the model has been exhausted.", None, "quota"),
        (403, "Sorry, your account balance is insufficient", None, "quota"),
        (400, "Access denied", "Arrearage", "quota"),
        (429, "Rate limit exceeded: free-models-per-day", None, "quota"),
        (429, "You have reached your daily token limit", None, "quota"),
        (429, "Slow down. Your daily report is at https://h", None, "rate_limit"),
        (429, "Request too large for m: Limit 6000", "rate_limit_exceeded", "context_length"),
        (400, "The decoder prompt is longer than the maximum model length", None, "context_length"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096", None, "context_length"),
        (400, "Range of input length should be [1, 30720]", None, "context_length"),
        (400, "Your request exceeded model token limit: 8192", None, "context_length"),
        (400, "litellm.ContextWindowExceededError: no", None, "context_length"),
        (500, "missing data required for image input", None, "bad_parameter"),
        (200, "model 'x' not found", None, "unknown_model"),
        (200, "This model's maximum context length is 8192", None, "context_length"),
        (200, "Unexpected endpoint or method. (POST /chat)", None, "unknown_model"),
        (200, "busy", None, "bad_reply"),
    ],
)
def test_kind_of_refusal(status, message, code, kind):
    """A refusal's kind comes from its code, then its status, then its words."""
    assert refuse(status, message, code=code).kind == kind


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (b'{"object": "error", "message": "flat", "code": 400}', "flat", ""),
        (b'{"error": "only text"}', "only text", ""),
        (b'[{"error": {"message": "in a list", "status": "X"}}]', "in a list", ""),
        (b'{"detail": "Not Found"}', "Not Found", ""),
        (
            b'{"detail": [{"loc": ["body", "top_q", 0], "msg": "Extra inputs"}]}',
            "top_q.0: Extra inputs",
            "top_q",
        ),
        (b"<html><style>p {}</style><h1>Bad &amp; gone</h1></html>", "Bad & gone", ""),
        (b"\xff\xfe", "\ufffd\ufffd", ""),
        (b"[" * 5_000, "[" * 5_000, ""),
    ],
)
def test_error_shapes(body, message, param):
    """The message is found in every usual shape of an error body."""
    error = read_error(body)
    assert (error.message, error.param) == (message, param)


def test_wrong_path_names_v1():
    """A 404 that speaks of no model says which address is empty and that /v1 may be missing."""
    failure = read_failure(Refusal(404, b"nope", {}), url="http://host/api/chat/completions")
    assert failure.kind == "unknown_model"
    assert "http://host/api/chat/completions" in failure.message
    assert "/v1" in failure.message


@pytest.mark.parametrize(
    ("error", "is_nowhere"),
    [
        ({"detail": "Not Found"}, True),
        ({"error": {"code": "404", "message": "Resource not found"}}, True),
        ({"error": {"message": "No endpoints found that support image input"}}, False),
        ({"error": {"code": "DeploymentNotFound", "message": "It does not exist."}}, False),
        ({"error": {"message": "model: claude-9"}}, False),
    ],
)
def test_nothing_answers_only_where_nothing_does(error, is_nowhere):
    """A 404 that says what is missing is no empty address."""
    failure = read_failure(Refusal(404, json.dumps(error).encode(), {}), url=URL)
    assert ("nothing answers" in failure.message) is is_nowhere


def test_gateway_passes_on_the_words_behind_it():
    """What the server behind a gateway said is in the message and decides the kind."""
    raw = json.dumps({"error": {"message": "maximum context length is 8192 tokens"}})
    failure = refuse(400, "Provider returned error", metadata={"raw": raw})
    assert failure.kind == "context_length"
    assert "8192" in failure.message
    assert "upstream" in refuse(429, "No", metadata={"raw": "slow upstream"}).message


def test_limit_of_a_day():
    """A day's limit stops the run, unless the server says that it passes within minutes."""
    said = "Rate limit reached on requests per day (RPD)"
    assert refuse(429, said, headers={"Retry-After": "40000"}).kind == "quota"
    assert refuse(429, said, headers={"Retry-After": "432"}).kind == "rate_limit"
    delay = {"@type": "google.rpc.RetryInfo", "retryDelay": "22.5s"}
    minute = refuse(429, "You exceeded your current quota", details=[delay])
    assert (minute.kind, minute.retry_after_s) == ("rate_limit", 22.5)
    day = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}
    assert refuse(429, "You exceeded your current quota", details=[day, delay]).kind == "quota"


def test_redirect_to_a_path():
    """A redirect within the host is named as a whole address."""
    failure = read_failure(Refusal(308, b"", {"Location": "/api/v1/chat/completions"}), url=URL)
    assert "http://host/api/v1/chat/completions" in failure.message


def test_redirect_names_its_target():
    """A redirect is not followed; the message names where it leads, without credentials."""
    headers = {"Location": "https://me:secret@host/v1"}
    failure = read_failure(Refusal(301, b"", headers), url=URL)
    assert "https://host/v1" in failure.message
    assert "secret" not in failure.message


def test_status_inside_a_200():
    """An error object in a body of status 200 counts with the status that it names."""
    body = b'{"error": {"message": "busy", "code": 503}}'
    failure = read_failure(Refusal(200, body, {}), url=URL)
    assert (failure.kind, failure.status) == ("overload", 503)


def test_retry_after_in_both_forms():
    """Retry-After is read as seconds, as milliseconds and as a date; past dates mean no wait."""
    assert retry_after_s({"retry-after": "2.5"}) == 2.5
    assert retry_after_s({"Retry-After-Ms": "1500", "Retry-After": "9"}) == 1.5
    coming = retry_after_s({"Retry-After": formatdate(time.time() + 30, usegmt=True)})
    assert coming is not None
    assert 20 < coming <= 30
    assert retry_after_s({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after_s({"Retry-After": "soon"}) is None
    assert retry_after_s({}) is None


def test_a_wait_until_a_date_goes_by_the_servers_clock():
    """A machine whose clock is wrong waits as long as the server meant."""
    headers = {"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"}
    assert retry_after_s({**headers, "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 30.0
    assert retry_after_s({**headers, "Date": "broken"}) == 0.0


@pytest.mark.parametrize("value", ["-5", "nan", "", "3s", "2026-11-30T10:00:00Z"])
def test_a_wait_that_is_none(value):
    """What is neither a number nor a date demands nothing."""
    assert retry_after_s({"Retry-After": value}) is None


@pytest.mark.parametrize(
    "spelling",
    [
        KEY,
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(b"Bearer " + KEY.encode()).decode(),
        base64.urlsafe_b64encode(b"u:" + KEY.encode()).decode(),
        json.dumps(KEY).replace("/", "\\/"),
        KEY[:10],
        KEY[-8:],
        f"{KEY[:5]}********{KEY[-4:]}",
        "sk-...w0pR",
        f"Authorization: Bearer {KEY}",
    ],
)
def test_keys_never_show(spelling):
    """No six characters of a key are shown, however the server spells or shortens it."""
    message = refuse(401, f"Incorrect key {spelling} given").message
    assert message.startswith("HTTP 401: Incorrect key")
    for form in (KEY, spelling):
        shown = [form[i : i + 6] for i in range(len(form) - 5) if form[i : i + 6] in message]
        assert [piece for piece in shown if piece not in "Authorization: Bearer "] == []


def test_message_is_one_short_line():
    """A message is one line of at most 300 characters, without control characters."""
    message = refuse(500, "first\nsecond\t\x1b[31m " + "word " * 500).message
    assert len(message) == 300
    assert message.isprintable()


def test_pictures_never_show():
    """Pictures that a server echoes are left out of the message."""
    data = base64.b64encode(bytes(range(256)) * 40).decode()
    message = refuse(400, f"cannot read data:image/png;base64,{data} or {data}").message
    assert message == "HTTP 400: cannot read (picture) or (data)"


def test_url_credentials_are_secrets():
    """Password, query keys and authorising headers are secrets; other headers are not."""
    found = secrets_of(
        "sk-1", "http://u:p%40ss@h/v1?api_key=quux&v=2", {"X-Api-Key": "abc", "A": "b"}
    )
    assert found == ("sk-1", "p@ss", "quux", "abc")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:p@h:8/v1", "http://h:8/v1"),
        ("http://h/v1?token=abc&api-version=2", "http://h/v1?token=***&api-version=2"),
        ("http://h/v1", "http://h/v1"),
        ("http://h/v1?code=abc&jwt=abc", "http://h/v1?code=***&jwt=***"),
        ("http://h/v1?pwd=abc&session=abc&bearer=", "http://h/v1?pwd=***&session=***&bearer=***"),
        ("http://u:a/p@h:8/v1", "http://h:8/v1"),
        ("http://u:a?#p@h/v1", "http://h/v1"),
        ("http://h:8000/v1/@cf/m", "http://h:8000/v1/@cf/m"),
        ("u:p@h/v1", "h/v1"),
        ("http://[::1", "***"),
    ],
)
def test_public_url(url, shown):
    """A URL is shown without user, password and secret query values."""
    assert public_url(url).endswith(shown)
    assert "p@" not in public_url(url)


def test_short_secrets_are_scrubbed():
    """A key too short to be shown in part is still replaced where it stands whole."""
    assert one_line("key abc1 refused", ["abc1"]) == "key *** refused"


@pytest.mark.parametrize("key", ["k3y", "abcdefghij", "pass/word?#", 'quo"te\\n', "ключ-секрет"])
def test_an_echoed_key_is_masked_in_every_spelling(key):
    """Whole, escaped as JSON, URL-encoded and in base64; short and all-letter keys too."""
    basic = base64.b64encode(f"me:{key}".encode()).decode()
    spellings = (key, json.dumps(key)[1:-1], quote(key, safe=""), basic)
    said = one_line("; ".join(f"found {spelling} here" for spelling in spellings), [key])
    assert not any(spelling in said for spelling in spellings)
    assert said.count("here") == 4
