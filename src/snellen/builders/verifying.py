"""Checks of questions by models, before people look: blind guessing, and a second opinion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.options import VerifyOptions
from snellen.builders.rows import PictureRow, QuestionRow
from snellen.builders.steps import Made, Rejected, failure_kind, is_failed
from snellen.flows import Asked, Flow, ask_until
from snellen.keys import rng_for
from snellen.records import Message, Reply, Request
from snellen.replies import UnreadableError, split_thinking
from snellen.schemas import LETTERS
from snellen.templates import bundled

BLIND, SEEN = "build_check_blind", "build_check_seen"


def letter_in(reply: Reply) -> str:
    """The one letter that a checker answers.

    Raises:
        UnreadableError: the reply is anything else.
    """
    text = split_thinking(reply.text)[1].strip().strip("*().: ").upper()
    if len(text) == 1 and text in LETTERS:
        return text
    raise UnreadableError("no_letter", f"it is not one letter A to D: {text[:40]!r}")


@dataclass(frozen=True, slots=True)
class Checkers:
    """The roles that check: one without the picture, one that sees it."""

    blind: str
    seen: str


def verify(
    row: QuestionRow, picture: PictureRow, *, checkers: Checkers, options: VerifyOptions, seed: int
) -> Flow[Made]:
    """One question before the checkers; flags and rejections as the options say.

    Source of the blind check: CaptionQA's filter, 10 draws with shuffled options.
    """
    flags = list(row.flags)
    counts = {}
    if options.blind != "off":
        draws = yield [
            _draw(row, checkers.blind, number, seed=seed) for number in range(options.blind_draws)
        ]
        failed = next((one for one in draws if is_failed(one)), None)
        if failed is not None:
            return _without_checker(failed, row)
        hits = sum(one.value == row.right for one in draws)
        counts["blind_unreadable"] = sum(one.value is None for one in draws)
        if hits >= options.blind_hits:
            if options.blind == "drop":
                return _gone(row, "answerable_blind", hits=hits, draws=options.blind_draws)
            flags.append("answerable_blind")
    if options.agreement != "off":
        text = _filled(SEEN, row.question, row.options)
        message = Message("user", (picture.file.image(picture.name), text))
        asked = yield from ask_until(Request(checkers.seen, (message,), "agree"), letter_in)
        if is_failed(asked):
            return _without_checker(asked, row)
        if asked.value is None:
            flags.append("unverified")
        elif asked.value != row.answer:
            if options.agreement == "drop":
                chosen = row.options[LETTERS.index(asked.value)]
                return _gone(row, "disagreement", chosen=chosen)
            flags.append("disagreement")
    kept = msgspec.structs.replace(row, flags=tuple(dict.fromkeys(flags)))
    return Made((kept,), counts={k: v for k, v in counts.items() if v})


def _draw(row: QuestionRow, role: str, number: int, *, seed: int) -> Flow[Asked[str]]:
    """The option that is guessed without the picture, the options in an order of their own."""
    order = rng_for(seed, row.id, "blind", str(number)).permutation(len(LETTERS))
    options = [row.options[k] for k in order]
    text = _filled(BLIND, row.question, options)
    request = Request(role, (Message("user", (text,)),), "blind", probe=str(number))
    return (yield from ask_until(request, lambda reply: options[LETTERS.index(letter_in(reply))]))


def _filled(prompt: str, question: str, options: Sequence[str]) -> str:
    lines = (f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True))
    return bundled(prompt).fill(question=question, options="\n".join(lines))


def _gone(row: QuestionRow, reason: str, **detail: object) -> Made:
    return Made(rejected=(Rejected(id=row.id, made_from=(row.id,), reason=reason, detail=detail),))


def _without_checker(asked: Asked[str], row: QuestionRow) -> Made:
    """A question that could not be checked stays, is flagged, and is checked at the next start."""
    kept = msgspec.structs.replace(row, flags=(*row.flags, "unverified"))
    return Made((kept,), failure=failure_kind(asked))
