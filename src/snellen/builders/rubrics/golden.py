"""Circular peer review: every author is a juror of all candidates, its own among them.

A round compares the candidates. Each juror sees them with the picture, anonymous and in an order of
its own, criticises each and ranks all. One candidate that all put first ends the review; else each
juror rewrites its own first choice, and the next round compares the rewrites. Whoever is still
divided after the last round loses the picture.
Source: PerceptionRubrics, section 3.3.1, appendices B and C.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from snellen.builders.rubrics.options import GoldenOptions
from snellen.builders.rubrics.rows import Ballot, PeerReview, Round, ScoredRow
from snellen.builders.rubrics.tags import bare, inside, whole_number
from snellen.builders.steps import Made, asked_again, is_failed, joined, undone
from snellen.flows import Asked, Flow, ask_until
from snellen.keys import rng_for
from snellen.records import Image, Message, Reply, Request
from snellen.replies.fences import fence
from snellen.replies.text import blank_reason, drop_thinking
from snellen.replies.typed import UnreadableError
from snellen.templates import bundled

DRAFT, VOTE, REWRITE = "build_draft", "build_vote", "build_rewrite"
T = TypeVar("T")
LEAST_AUTHORS = 3


@dataclass(frozen=True, slots=True)
class Circle:
    """The authors, by the role that each plays and by name, and how they come to agree."""

    roles: tuple[str, ...]
    names: tuple[str, ...]
    options: GoldenOptions
    seed: int


def peer_review(picture: ScoredRow, circle: Circle) -> Flow[Made]:
    """Reviews the captions of one picture to unanimity, or to the end of the rounds."""
    image, options = picture.file.image(picture.name), circle.options
    rounds: list[Round] = []
    again: list[Made] = []
    captions = yield [draft(image, role, reasks=options.reasks) for role in circle.roles]
    for number in range(1, options.rounds + 1):
        if rounds:
            choices = [rewrite(image, circle, rounds[-1], juror) for juror in _jurors(circle)]
            captions = yield choices
        if lost := _lost(captions):
            return undone(lost, picture.id, made_from=(picture.id,))
        candidates = tuple(one.value for one in captions)
        ballots = yield [
            vote(image, candidates, circle, Seen(picture.id, number, juror))
            for juror in _jurors(circle)
        ]
        if lost := _lost(ballots):
            return undone(lost, picture.id, made_from=(picture.id,))
        again += (Made(counts=asked_again(one)) for one in (*captions, *ballots))
        rounds.append(Round(candidates, tuple(one.value for one in ballots)))
        may_end = number > 1 or options.unanimity == "first-round"
        if may_end and len(set(rounds[-1].firsts)) == 1:
            break
    agreed = rounds[-1].firsts[0] if len(set(rounds[-1].firsts)) == 1 else None
    row = PeerReview(
        id=picture.id,
        made_from=(picture.id,),
        authors=circle.names,
        rounds=tuple(rounds),
        agreed=agreed,
    )
    return Made((row,), counts=joined(again).counts)


def _jurors(circle: Circle) -> range:
    return range(len(circle.roles))


def _lost(asked: Sequence[Asked[T]]) -> Asked[T] | None:
    """An answer that did not come: a failed call, which the next start repeats, goes first."""
    gone = [one for one in asked if one.value is None]
    return next(filter(is_failed, gone), gone[0] if gone else None)


def caption_in(reply: Reply) -> str:
    """The caption that a reply consists of.

    Raises:
        UnreadableError: the reply is blank, cut off, or a refusal.
    """
    text = drop_thinking(reply.text).strip()
    reason = blank_reason(
        text,
        reasoning=reply.reasoning,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
    )
    if reason is None and reply.finish_reason == "length":
        reason = "truncated"
    if reason is not None:
        raise UnreadableError(reason, f"there is no whole caption ({reason})")
    return text


def draft(image: Image, role: str, *, reasks: int) -> Flow[Asked[str]]:
    """Asks an author for a caption of its own."""
    request = Request(role, (Message("user", (image, bundled(DRAFT).text)),), "draft", probe=role)
    return (yield from ask_until(request, caption_in, reasks=reasks))


@dataclass(frozen=True, slots=True)
class Seen:
    """Who looks at which picture in which round."""

    picture_id: str
    round: int
    juror: int


def slots_for(seen: Seen, n: int, *, seed: int) -> tuple[int, ...]:
    """The order in which a juror sees `n` candidates: candidate numbers from 0, first slot first.

    Jurors are told apart by their place, so that another name changes nothing.
    """
    rng = rng_for(seed, seen.picture_id, "slots", str(seen.round), str(seen.juror))
    return tuple(int(k) for k in rng.permutation(n))


def vote(
    image: Image, candidates: Sequence[str], circle: Circle, seen: Seen
) -> Flow[Asked[Ballot]]:
    """Asks a juror to criticise and rank all candidates."""
    slots = slots_for(seen, len(candidates), seed=circle.seed)
    numbers = range(1, len(slots) + 1)
    text = bundled(VOTE).fill(
        n=str(len(slots)),
        candidates=_framed("candidate", [candidates[k] for k in slots]),
        critiques="\n".join(
            f"<candidate_{k}_critique>...</candidate_{k}_critique>" for k in numbers
        ),
        order=",".join(map(str, reversed(numbers))),
    )
    role = circle.roles[seen.juror]
    probe = f"{seen.round}.{seen.juror}"
    request = Request(role, (Message("user", (image, text)),), "vote", probe=probe)
    return (
        yield from ask_until(
            request,
            lambda reply: ballot_in(reply, seen.juror, slots),
            reasks=circle.options.reasks,
        )
    )


def ballot_in(reply: Reply, juror: int, slots: tuple[int, ...]) -> Ballot:
    """A juror's ballot; slots are turned back into candidates.

    Raises:
        UnreadableError: a critique is absent, the ranking is none of all slots, or the best one is
            not its first.
    """
    body = bare(reply, "voting_result")
    analysis = inside(body, "analysis")
    said = [inside(analysis, f"candidate_{k}_critique") for k in range(1, len(slots) + 1)]
    rest = body.replace(analysis, "", 1)
    ranking = [part.strip() for part in inside(rest, "ranking").split(",")]
    if sorted(ranking) != sorted(str(k) for k in range(1, len(slots) + 1)):
        raise UnreadableError(
            "not_as_asked", f"the ranking must name 1 to {len(slots)} once each: {ranking}"
        )
    best = whole_number(rest, "best_candidate_id", most=len(slots))
    if best != int(ranking[0]):
        raise UnreadableError(
            "not_as_asked",
            f"the best candidate is {best}, but the ranking begins with {ranking[0]}",
        )
    critiques = dict(zip(slots, said, strict=True))
    return Ballot(
        juror,
        slots,
        tuple(critiques[k] for k in range(len(slots))),
        tuple(slots[int(place) - 1] for place in ranking),
        inside(rest, "rationale"),
    )


def rewrite(image: Image, circle: Circle, last: Round, juror: int) -> Flow[Asked[str]]:
    """Asks a juror to rewrite its own first choice, with what all jurors said of it."""
    choice = last.firsts[juror]
    critiques = [ballot.critiques[choice] for ballot in last.ballots]
    text = bundled(REWRITE).fill(
        caption=_framed("caption", [last.candidates[choice]]),
        critiques=_framed("critique", critiques),
    )
    role = circle.roles[juror]
    request = Request(role, (Message("user", (image, text)),), "rewrite", probe=str(juror))
    return (yield from ask_until(request, caption_in, reasks=circle.options.reasks))


def _framed(tag: str, texts: Sequence[str]) -> str:
    """Texts in numbered frames that none of them can close."""
    frames = [f"{tag}_{k}" for k in range(1, len(texts) + 1)]
    return "\n\n".join(
        f"<{frame}>\n{fence(text, *frames)}\n</{frame}>"
        for frame, text in zip(frames, texts, strict=True)
    )
