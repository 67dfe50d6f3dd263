"""Answer rewards over HTTP, in the forms of OpenRLHF and slime."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from snellen.errors import MissingExtraError, SnellenError, UsageError
from snellen.records import JsonObject
from snellen.rewards.openrlhf import answer_of, reply_of
from snellen.rewards.scorer import Scorer
from snellen.rewards.shapes import numbers, require_number, text_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from snellen.web.guard import Access

LARGEST_BODY = 64 * 1024 * 1024


def reward_app(scorer: Scorer, access: Access) -> Starlette:
    """The application that answers POST on every path; the shape of the body decides.

    A body that cannot be scored gets status 422, a judge that cannot be reached 503, each with
    `error` and `hint`: a failure never becomes a reward.

    Raises:
        UsageError: the scorer states no number for replies without a score.
        MissingExtraError: starlette is not installed.
    """
    require_number(scorer, "a trainer that asks over HTTP")
    try:
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette, which serves the rewards,", "web") from error

    async def answer(request: Request) -> Response:
        refusal = _refusal(request, access)
        if refusal is not None:
            status, said, hint = refusal
            return JSONResponse({"error": said, "hint": hint}, status)
        try:
            return JSONResponse(await rewards_of(scorer, json.loads(await request.body())))
        except ValueError as error:
            return JSONResponse({"error": f"the body is no JSON: {error}", "hint": ""}, 422)
        except UsageError as error:
            return JSONResponse({"error": error.message, "hint": error.hint}, 422)
        except SnellenError as error:
            return JSONResponse({"error": error.message, "hint": error.hint}, 503)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


async def rewards_of(scorer: Scorer, body: object) -> object:
    """The answer to one body: OpenRLHF's for a batch, a number for slime's one sample.

    OpenRLHF sends `query`, `prompts` and `labels`, slime `prompt`, `response` and `label`. Labels
    are item ids.

    Raises:
        UsageError: the body has another form, or an id is unknown.
        EndpointError: the judge cannot be reached.
    """
    if not isinstance(body, dict):
        raise UsageError("the body is no JSON object", hint=FORMS)
    if "response" in body:
        scores = await scorer.score([text_of(body["response"])], [str(body.get("label"))])
        return numbers(scores)[0]
    queries, prompts, labels = (_list(body, name) for name in ("query", "prompts", "labels"))
    if not len(queries) == len(prompts) == len(labels):
        raise UsageError(
            f"{len(queries)} queries, {len(prompts)} prompts and {len(labels)} labels", hint=FORMS
        )
    replies = [reply_of(query, prompt) for query, prompt in zip(queries, prompts, strict=True)]
    return answer_of(await scorer.score(replies, labels))


FORMS = (
    "send {query: [...], prompts: [...], labels: [...]} as OpenRLHF does, or "
    "{prompt, response, label} as slime does; labels are item ids"
)


def _list(body: JsonObject, name: str) -> list[str]:
    value = body.get(name)
    if not isinstance(value, list):
        raise UsageError(f"`{name}` is missing or no list", hint=FORMS)
    return [one if isinstance(one, str) else str(one) for one in value]


def _refusal(request: Request, access: Access) -> tuple[int, str, str] | None:
    """The status, the reason and a hint where a request may not be answered."""
    headers = request.headers
    if not access.knows_host(headers.get("host", "")):
        return 421, "this server does not answer to that name", "use the address that it printed"
    query = dict(parse_qsl(request.url.query))
    given = query.get("token") or headers.get("authorization", "").removeprefix("Bearer ")
    if access.token and not access.knows_token(given):
        return (
            401,
            "a token is missing or wrong",
            "use the printed address, token included",
        )
    if headers.get("origin") or headers.get("sec-fetch-site"):
        return 403, "rewards are not answered to web pages", "ask from a program"
    size = headers.get("content-length", "")
    if not size.isdecimal() or int(size) > LARGEST_BODY:
        return 413, f"a body must say its size, at most {LARGEST_BODY:,} bytes", "send less at once"
    return None
