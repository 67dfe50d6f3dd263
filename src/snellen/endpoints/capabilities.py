"""What an endpoint can do, found out by asking: answers, sees, thinks, gives logprobs."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from snellen.endpoints.chat_format import LIMIT_NAMES, is_listed
from snellen.endpoints.failures import public_url
from snellen.endpoints.http import ChatClient
from snellen.keys import rng_for
from snellen.pictures.prepare import Picture
from snellen.records import RETRYABLE, Answer, CallFailure, Image, Message, Params, Reply, Request

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels

    from snellen.settings import Endpoint

COUNTS = (1, 2, 4, 8)
SIDES = (224, 448, 896, 1792)
HEIGHTS = (64, 48, 32, 24, 16, 12, 8)
SHAPES = (("red", "circle"), ("blue", "square"))
GROWTH = 1.1  # times the picture's tokens that count as more of them
TRIES = 3
LONGEST_WAIT_S = 10.0
MAX_TOKENS = 2048  # room for the thoughts of models that cannot do without
CALL_TIMEOUT_S = 120.0

SWITCHES_OFF: tuple[Params, ...] = (
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"reasoning_effort": "none"},
    {"thinking": {"type": "disabled"}},
    {"enable_thinking": False},
)
SWITCHES_ON: tuple[Params, ...] = (
    {"chat_template_kwargs": {"enable_thinking": True}},
    {"reasoning_effort": "high"},
    {"thinking": {"type": "enabled"}},
    {"enable_thinking": True},
)

Thinking = Literal["never", "on request", "unless turned off", "always"]


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """What was found; None stands for what could not be found out.

    `latency_s` is that of a short text call over an open connection. `is_listed` says whether the
    model stands in the endpoint's list. `sees_pictures`: two drawn shapes were told apart.
    `pictures_taken` is the most pictures that one request may hold of those tried (1, 2, 4, 8),
    `pictures_read` the most of which every digit was named in order. `picture_tokens` maps the
    side of a square picture, in pixels, to what it adds to the prompt. `smallest_text_px` is the
    height of the smallest number that was read in a picture of 1792 x 1792. `thinking_switch`
    are the body fields that turn thinking off (or on, if it thinks on request). `logprobs` is
    the number of candidates that the first token came with, 0 if there are none.
    """

    url: str
    model: str
    failure: str | None = None
    hint: str = ""
    latency_s: float | None = None
    is_listed: bool | None = None
    models: tuple[str, ...] = ()
    sees_pictures: bool | None = None
    blindness: str = ""
    pictures_taken: int | None = None
    pictures_read: int | None = None
    picture_tokens: Mapping[int, int] = field(default_factory=dict)
    smallest_text_px: int | None = None
    thinking: Thinking | None = None
    thinking_switch: Params = field(default_factory=dict)
    logprobs: int | None = None
    counts_tokens: bool = False
    counts_cached: bool = False
    notes: tuple[str, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether a short text call had a reply."""
        return self.failure is None

    @property
    def lines(self) -> tuple[str, ...]:
        """The report in plain words, one finding a line."""
        if self.failure is not None:
            lines = [f"answers: no ({self.failure})"]
            return (*lines, f"hint: {self.hint}") if self.hint else tuple(lines)
        thinks: str = self.thinking or "not known"
        if self.thinking_switch:
            switch = ", ".join(f"{name} = {value}" for name, value in self.thinking_switch.items())
            thinks = f"{thinks} ({switch})"
        logprobs = "not known" if self.logprobs is None else "no"
        if self.logprobs:
            logprobs = f"yes, {self.logprobs} candidates for the first token"
        text_px = self.smallest_text_px
        smallest = f"{text_px} px high" if text_px else f"none, not even {HEIGHTS[0]} px high"
        pictures = (
            f"pictures in one request: takes {self.pictures_taken} of {COUNTS[-1]} tried,"
            f" reads {self.pictures_read}",
            f"smallest text read in {SIDES[-1]} x {SIDES[-1]} pixels: {smallest}",
            f"scaling: {describe_scaling(self.picture_tokens)}",
        )
        found = [
            f"answers: yes, in {self.latency_s or 0:.2f} s",
            f"model listed: {_say(self.is_listed)}",
            f"sees pictures: {_say(self.sees_pictures)}{self.blindness and f' ({self.blindness})'}",
            *(pictures if self.sees_pictures else ()),
            f"thinks: {thinks}",
            f"logprobs: {logprobs}",
            f"counts tokens: {_say(self.counts_tokens)}, cached ones: {_say(self.counts_cached)}",
        ]
        return (*found, *(f"note: {note}" for note in self.notes))


def _say(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not known"}[value]


def describe_scaling(tokens: Mapping[int, int]) -> str:
    """How pictures are scaled, by what squares of growing side add to the prompt.

    >>> describe_scaling({224: 64, 448: 256, 896: 1024, 1792: 1024})
    'more than 896 x 896 pixels add no tokens, so larger pictures are scaled down'
    """
    sides = sorted(tokens)
    if len(sides) < 2 or min(tokens.values()) <= 0:
        return "not known, since the endpoint does not count the tokens of pictures"
    pairs = pairwise(sides)
    growing = [large for small, large in pairs if tokens[large] > GROWTH * tokens[small]]
    if not growing:
        return f"every picture adds {tokens[sides[-1]]} tokens, so all are brought to one size"
    if growing[-1] == sides[-1]:
        return f"none seen: tokens grow up to {sides[-1]} x {sides[-1]} pixels"
    side = growing[-1]
    return f"more than {side} x {side} pixels add no tokens, so larger pictures are scaled down"


async def probe_endpoint(endpoint: Endpoint, *, seed: int = 0) -> EndpointReport:
    """What the endpoint can do. Makes about 20 calls, one after the other.

    The endpoint's own parameters are sent with each. Without a model, the only one in its list is
    asked. An endpoint that does not answer at all is reported, not raised. Raises: SettingsError,
    for what cannot be sent.
    """
    client = ChatClient(replace(endpoint, timeout_s=min(endpoint.timeout_s, CALL_TIMEOUT_S)))
    try:
        if not endpoint.model:
            return await _ask_only_model(client, seed)
        interview = _Interview(client, seed)
        report = await interview.text()
        if not report.answers:
            return report
        report = await interview.thinking(report)
        report = await interview.logprobs(report)
        report = await interview.sight(report)
        if report.sees_pictures:
            report = await interview.count(report)
            report = await interview.scaling(report)
        sent = {"max_tokens": MAX_TOKENS, **endpoint.soft_params, **endpoint.params}
        return replace(report, notes=client.dialect.notes(sent))
    finally:
        await client.close()


async def _ask_only_model(client: ChatClient, seed: int) -> EndpointReport:
    report = EndpointReport(public_url(client.endpoint.url), "")
    listed = await client.list_models()
    if isinstance(listed, CallFailure):
        return replace(report, failure=listed.message, hint=_hint(listed, ()))
    if len(listed) != 1:
        known = f"the endpoint lists: {', '.join(listed[:10])}" if listed else "it lists none"
        said = f"no model was named, and {len(listed)} are listed"
        return replace(report, failure=said, hint=f"name one with --model; {known}", models=listed)
    report = await probe_endpoint(replace(client.endpoint, model=listed[0]), seed=seed)
    return replace(report, notes=(f"asked `{listed[0]}`, the only model there", *report.notes))


class _Interview:
    """The questions to one endpoint; each adds to a report what the answers show."""

    def __init__(self, client: ChatClient, seed: int) -> None:
        self._client, self._seed = client, seed

    async def text(self) -> EndpointReport:
        """Answers, model list and counts; the second call is timed, over the open connection."""
        endpoint = self._client.endpoint
        report = EndpointReport(public_url(endpoint.url), endpoint.model)
        listed = await self._client.list_models()
        if isinstance(listed, tuple):
            report = replace(report, models=listed, is_listed=is_listed(endpoint.model, listed))
        text = "Answer with the single word: yes"
        await self._ask(text)
        answer = await self._ask(text)
        if isinstance(answer, CallFailure):
            return replace(report, failure=answer.message, hint=_hint(answer, report.models))
        return replace(
            report,
            latency_s=answer.latency_s,
            counts_tokens=answer.usage.prompt is not None,
            counts_cached=answer.usage.cached is not None,
        )

    async def thinking(self, report: EndpointReport) -> EndpointReport:
        text = "A train leaves at 9:47 and arrives at 13:05. How many minutes does it take?"
        plain = await self._ask(text)
        if isinstance(plain, CallFailure):
            return report
        wanted = not _has_thoughts(plain)
        for switch in SWITCHES_ON if wanted else SWITCHES_OFF:
            answer = await self._ask(text, **switch)
            if isinstance(answer, Reply) and _has_thoughts(answer) is wanted:
                kind: Thinking = "on request" if wanted else "unless turned off"
                return replace(report, thinking=kind, thinking_switch=switch)
        return replace(report, thinking="never" if wanted else "always")

    async def logprobs(self, report: EndpointReport) -> EndpointReport:
        text = "Answer with one letter, A or B. Which comes first in the alphabet?"
        answer = await self._ask(text, logprobs=True, top_logprobs=5)
        if isinstance(answer, CallFailure):
            return replace(report, logprobs=0 if answer.kind == "bad_parameter" else None)
        return replace(report, logprobs=len(answer.choices or ()))

    async def sight(self, report: EndpointReport) -> EndpointReport:
        """Sees if it names colour and form of both drawings, and of each only its own."""
        from PIL import Image as Drawing
        from PIL import ImageDraw

        order = rng_for(self._seed, "probe", "sight").permutation(2).tolist()
        told: list[bool] = []
        for colour, form in (SHAPES[n] for n in order):
            text = "Which is it: a red circle, a red square, a blue circle or a blue square?"
            pixels = Drawing.new("RGB", (448, 448), "white")
            draw = ImageDraw.Draw(pixels)
            outline = draw.ellipse if form == "circle" else draw.rectangle
            outline((112, 112, 336, 336), fill=colour)
            answer = await self._ask(text, [_encode(pixels)])
            if isinstance(answer, CallFailure):
                refused = answer.kind in ("bad_parameter", "input_error")
                return replace(
                    report, sees_pictures=False if refused else None, blindness=answer.message
                )
            words = re.findall(r"[a-z]+", answer.text.lower())
            told.append({w for pair in SHAPES for w in pair} & set(words) == {colour, form})
        blindness = "" if all(told) else "two drawn shapes were not told apart"
        return replace(report, sees_pictures=all(told), blindness=blindness)

    async def count(self, report: EndpointReport) -> EndpointReport:
        """More and more pictures of a digit each, until a request is refused."""
        taken = read = 0
        for count in COUNTS:
            digits = rng_for(self._seed, "probe", "count", str(count)).permutation(9)[:count] + 1
            pictures = [_encode(_draw_lines([str(d)], (120,), side=224)) for d in digits]
            text = "Each picture shows one digit. Write only these digits, in the pictures' order."
            answer = await self._ask(text, pictures)
            if isinstance(answer, CallFailure):
                break
            taken = count
            named = re.findall(r"\d", answer.text)
            if named[-count:] == [str(d) for d in digits]:
                read = count
        return replace(report, pictures_taken=taken, pictures_read=read)

    async def scaling(self, report: EndpointReport) -> EndpointReport:
        """What larger pictures add to the prompt, and how small a text can be read."""
        numbers = [
            str(n)
            for n in rng_for(self._seed, "probe", "scaling").integers(1000, 9999, len(HEIGHTS))
        ]
        text = "List all the numbers in the picture, from top to bottom."
        alone = await self._ask(text)
        tokens: dict[int, int] = {}
        smallest: int | None = None
        for side in SIDES:
            picture = _encode(_draw_lines(numbers, HEIGHTS, side=side))
            answer = await self._ask(text, [picture])
            if isinstance(answer, CallFailure):
                break
            counts = (
                None if isinstance(alone, CallFailure) else alone.usage.prompt,
                answer.usage.prompt,
            )
            if counts[0] is not None and counts[1] is not None:
                tokens[side] = counts[1] - counts[0]
            if side == SIDES[-1]:
                read = set(re.findall(r"\d+", answer.text.replace(",", "")))
                heights = zip(HEIGHTS, numbers, strict=True)
                smallest = min(
                    (height for height, number in heights if number in read), default=None
                )
        return replace(report, picture_tokens=tokens, smallest_text_px=smallest)

    async def _ask(self, text: str, pictures: Sequence[Picture] = (), **params: object) -> Answer:
        """The answer to one question; passing troubles are waited out a few times."""
        images = tuple(Image(f"probe-{n}", p.digest, "") for n, p in enumerate(pictures))
        if not self._client.endpoint.params.keys() & set(LIMIT_NAMES):
            params["max_tokens"] = MAX_TOKENS
        request = Request("model", (Message("user", (*images, text)),), "probe", params=params)
        for _ in range(TRIES - 1):
            answer = await self._client.call(request, pictures)
            if (
                isinstance(answer, Reply)
                or answer.kind not in RETRYABLE
                or (answer.kind in ("connection", "timeout"))
            ):
                return answer
            await asyncio.sleep(min(answer.retry_after_s or 1.0, LONGEST_WAIT_S))
        return await self._client.call(request, pictures)


def _hint(failure: CallFailure, models: Sequence[str]) -> str:
    if failure.kind == "unknown_model" and models:
        return f"the endpoint lists: {', '.join(models[:10])}"
    return {
        "auth": "name the variable that holds the key with --api-key-env",
        "connection": "is the server running, and is the URL right?",
        "unknown_model": "the URL usually ends in /v1, and --model is the name the server knows",
    }.get(failure.kind, "")


def _has_thoughts(reply: Reply) -> bool:
    return bool((reply.reasoning or "").strip()) or bool(reply.usage.reasoning)


def _draw_lines(lines: Sequence[str], heights: Sequence[int], *, side: int) -> Pixels:
    """Black lines of digits of these heights in pixels, one under the other, on a white square."""
    from PIL import Image as Drawing
    from PIL import ImageDraw, ImageFont

    pixels = Drawing.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(pixels)
    top = side // 20
    for line, height in zip(lines, heights, strict=True):
        # Digits of the built-in font are 0.73 of its size high.
        font = ImageFont.load_default(height / 0.73)
        draw.text((side // 10, top), line, fill="black", font=font, anchor="lt")
        top += height + max(height, 16)
    return pixels


def _encode(pixels: Pixels) -> Picture:
    buffer = io.BytesIO()
    pixels.save(buffer, "PNG")
    data = buffer.getvalue()
    return Picture("image/png", base64.b64encode(data), *pixels.size)
