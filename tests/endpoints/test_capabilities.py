"""What is found out about endpoints that can more, or less."""

import asyncio
import base64
import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from tests.fakes.server import Behaviour, FakeServer, picture_uris, text_of

from snellen.endpoints.capabilities import EndpointReport, describe_scaling, probe_endpoint
from snellen.endpoints.chat_format import is_listed
from snellen.settings import Endpoint

LEGIBLE_PX = 24
PLAIN = "The answer is 198."


def glyph(ink):
    """A glyph's dark pixels, cropped and brought to one size."""
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    crop = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return np.asarray(Image.fromarray(crop).resize((12, 16))).astype(int)


def template(digit):
    pixels = Image.new("L", (200, 200), 255)
    ImageDraw.Draw(pixels).text((40, 20), digit, font=ImageFont.load_default(120), fill=0)
    return glyph(np.asarray(pixels) < 128)


TEMPLATES = {digit: template(digit) for digit in "0123456789"}


def nearest_digit(seen):
    return min(TEMPLATES, key=lambda digit: abs(TEMPLATES[digit] - seen).sum())


def runs(flags):
    """First and last-plus-one of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(int), [0]))))
    return list(zip(edges[::2], edges[1::2], strict=True))


def read_numbers(pixels):
    """The lines of digits that an eye of limited sharpness reads."""
    ink = np.asarray(pixels.convert("L")) < 128
    lines = []
    for top, bottom in runs(ink.any(axis=1)):
        if bottom - top < LEGIBLE_PX - 2:
            continue
        line = ink[top:bottom]
        glyphs = [glyph(line[:, left:right]) for left, right in runs(line.any(axis=0))]
        lines.append(
            "".join(min(TEMPLATES, key=lambda d: abs(TEMPLATES[d] - g).sum()) for g in glyphs)
        )
    return lines


def name_shape(pixels):
    colour = "red" if pixels.getpixel((224, 224)) == (255, 0, 0) else "blue"
    form = "circle" if pixels.getpixel((118, 118)) == (255, 255, 255) else "square"
    return f"A {colour} {form}."


def look(body):
    """An answer from what is in the pictures."""
    text, pictures = text_of(body), []
    for uri in picture_uris(body):
        with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as opened:
            pictures.append(opened.convert("RGB"))
    if not pictures:
        return PLAIN
    if "circle" in text:
        return name_shape(pictures[0])
    return ", ".join(number for pixels in pictures for number in read_numbers(pixels))


def probe(answer, behaviour=None, **fields):
    fields = {"model": "fake", "soft_params": {}, **fields}
    with FakeServer(answer, behaviour) as server:
        return asyncio.run(probe_endpoint(Endpoint("e", server.url, **fields)))


def test_an_endpoint_that_sees():
    """All that a seeing endpoint offers is found: pictures, their tokens, text, logprobs."""
    report = probe(look, Behaviour(max_pixels=896 * 896))
    assert report.answers
    assert report.is_listed is True
    assert report.sees_pictures is True
    assert (report.pictures_taken, report.pictures_read) == (8, 8)
    assert report.picture_tokens == {224: 64, 448: 256, 896: 1024, 1792: 1024}
    assert report.smallest_text_px == LEGIBLE_PX
    assert report.thinking == "never"
    assert report.logprobs == 2
    assert report.counts_tokens
    lines = "\n".join(report.lines)
    assert "takes 8 of 8 tried, reads 8" in lines
    assert "more than 896 x 896" in lines
    assert f"{LEGIBLE_PX} px high" in lines


def test_a_limit_of_pictures():
    """The most pictures that a request may hold is found."""
    report = probe(look, Behaviour(max_pictures=2, gives_logprobs=False))
    assert (report.pictures_taken, report.pictures_read) == (2, 2)
    assert report.logprobs == 0


def test_pictures_out_of_order_are_not_read():
    """Digits that are named in a wrong order do not count as read."""

    def look_backwards(body):
        answer = look(body)
        return answer if "circle" in text_of(body) else ", ".join(answer.split(", ")[::-1])

    report = probe(look_backwards)
    assert (report.pictures_taken, report.pictures_read) == (8, 1)


@pytest.mark.parametrize("guess", ["A red circle.", "A blue square or a red circle.", "A picture."])
def test_guesses_are_not_sight(guess):
    """An endpoint that says the same of both drawings does not see, and is asked no further."""
    report = probe(guess)
    assert report.sees_pictures is False
    assert report.pictures_taken is None
    assert any("not told apart" in line for line in report.lines)


def test_refused_pictures():
    """An endpoint that refuses pictures does not see; its own words are the reason."""
    report = probe(look, Behaviour(max_pictures=0))
    assert report.sees_pictures is False
    assert "At most 0" in report.blindness


def thought(text):
    return {"content": text, "reasoning_content": "Let me see."}


def test_thinking_that_can_be_turned_off():
    """The field that turns thinking off is found among those that servers know."""

    def answer(body):
        return PLAIN if body.get("reasoning_effort") == "none" else thought(PLAIN)

    report = probe(answer)
    assert report.thinking == "unless turned off"
    assert report.thinking_switch == {"reasoning_effort": "none"}
    assert "thinks: unless turned off (reasoning_effort = none)" in report.lines


def test_thinking_on_request():
    """The field that turns thinking on is found, past fields that are refused."""

    def answer(body):
        return thought(PLAIN) if body.get("thinking") == {"type": "enabled"} else PLAIN

    refused = {"reasoning_effort": "Unknown parameter: reasoning_effort"}
    report = probe(answer, Behaviour(refuses=refused))
    assert report.thinking == "on request"
    assert report.thinking_switch == {"thinking": {"type": "enabled"}}


def test_thinking_always():
    """An endpoint that thinks whatever it is told is reported as such."""
    assert probe(lambda body: thought(PLAIN)).thinking == "always"


def test_an_endpoint_that_does_not_answer():
    """A wrong key or model is reported with what to do, after few calls."""
    wrong_key = probe("ok", Behaviour(key="sk-right-key"), key="sk-wrong-key")
    assert not wrong_key.answers
    assert wrong_key.lines[0].startswith("answers: no (HTTP 401")
    assert "--api-key-env" in wrong_key.hint
    wrong_model = probe("ok", Behaviour(models=("one", "two")), model="three")
    assert wrong_model.lines[-1] == "hint: the endpoint lists: one, two"
    assert wrong_model.is_listed is False


def test_what_was_learnt_is_told():
    """A renamed limit and a soft field that was given up stand in the report."""
    refused = {
        "max_tokens": "Unsupported parameter: use 'max_completion_tokens' instead",
        "top_k": "Unknown parameter: top_k",
    }
    report = probe("ok", Behaviour(refuses=refused), soft_params={"top_k": 1})
    assert report.notes == (
        "max_tokens sent as max_completion_tokens",
        "top_k not sent: refused",
    )


def test_passing_troubles_are_waited_out():
    """A rate limit in between does not end the probing."""
    behaviour = Behaviour(schedule=["429", "", "429"], retry_after_s=0.01)
    assert probe(look, behaviour).sees_pictures is True


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ({}, "not known"),
        ({224: 0, 448: 0}, "not known"),
        ({224: 85, 448: 85, 896: 85, 1792: 85}, "brought to one size"),
        ({224: 64, 448: 256, 896: 1024, 1792: 4096}, "none seen"),
        ({224: 64, 448: 256, 896: 256, 1792: 256}, "more than 448 x 448"),
    ],
)
def test_scaling_in_words(tokens, said):
    """What pictures cost says whether they are scaled down, and from which size on."""
    assert said in describe_scaling(tokens)


def test_the_url_is_shown_without_credentials():
    """A report never holds the password of a URL."""
    report = EndpointReport("http://h/v1", "m", failure="x")
    assert report.lines == ("answers: no (x)",)
    with FakeServer("ok") as server:
        url = server.url.replace("//", "//me:pa55word@")
        assert "pa55word" not in repr(asyncio.run(probe_endpoint(Endpoint("e", url, "fake"))))


def test_without_a_name_the_only_model_is_asked():
    """One that is listed alone is asked; of several the list is shown; none is said to be none."""
    with FakeServer("yes", Behaviour(models=("only",))) as server:
        report = asyncio.run(probe_endpoint(Endpoint("e", server.url, "")))
    assert (report.model, report.answers) == ("only", True)
    assert any("only" in note for note in report.notes)
    with FakeServer("yes", Behaviour(models=("a", "b"))) as server:
        report = asyncio.run(probe_endpoint(Endpoint("e", server.url, "")))
        assert server.calls["/v1/chat/completions"] == 0
    assert (report.answers, report.models) == (False, ("a", "b"))
    assert "a, b" in report.hint


def test_a_model_is_known_by_its_short_name():
    """`models/NAME` and `NAME:latest` in a list are NAME."""
    for listed in ("models/m", "m:latest", "m"):
        assert is_listed("m", [listed])
    assert not is_listed("m", ["m2", "models/m2"])
