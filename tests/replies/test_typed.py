"""JSON replies as values of a type."""

from __future__ import annotations

import re

import msgspec
import pytest

from snellen.records import Reply
from snellen.replies import UnreadableError, json_reply, json_schema


class Card(msgspec.Struct):
    """What the tests ask for."""

    question: str
    options: list[str]
    answer: int = 0


CARD = '{"question": "Hue?", "options": ["red"]}'


@pytest.mark.parametrize(
    "text",
    [
        CARD,
        f"\n{CARD}\n",
        f"```json\n{CARD}\n```",
        f"Here it is:\n```\n{CARD}\n```\nDone.",
        f"<think>{{}}</think>\n{CARD}",
        f"{{}}</think>{CARD}<|im_end|>",
    ],
)
def test_thoughts_and_fences_come_off(text: str) -> None:
    """What is left is decoded as the type."""
    assert json_reply(Card)(Reply(text)) == Card("Hue?", ["red"])


@pytest.mark.parametrize(
    ("reply", "reason", "message"),
    [
        (Reply(""), "empty", "blank"),
        (Reply("", finish_reason="length"), "truncated", "blank"),
        (Reply(CARD[:20], finish_reason="length"), "truncated", "Input data was truncated"),
        (Reply("Sure."), "no_json", "malformed"),
        (Reply(CARD + CARD), "no_json", "trailing"),
        (Reply('{"question": 1, "options": []}'), "not_as_asked", "`$.question`"),
        (Reply('{"question": "Hue?"}'), "not_as_asked", "missing required field `options`"),
        (Reply("[" * 100_000), "not_as_asked", "got `array`"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(reply: Reply, reason: str, message: str) -> None:
    """Nothing is guessed at: the error names what was found and where."""
    with pytest.raises(UnreadableError, match=re.escape(message)) as caught:
        json_reply(Card)(reply)
    assert caught.value.reason == reason
    assert "\n" not in str(caught.value)


def test_the_schema_of_a_type_names_its_fields() -> None:
    """It can stand in a request."""
    schema = json_schema(Card)
    assert schema["$defs"]["Card"]["required"] == ["question", "options"]
