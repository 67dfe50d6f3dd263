"""Verification: a panel of models answers each question, and rules say whether the question stays.

The panel sees the question as it stands, in other words, and without its pictures. The answers are
judged as in an evaluation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.perception.asking import REWORD, reworded_in
from snellen.builders.perception.options import PanelOptions
from snellen.builders.perception.rows import (
    STRATA,
    AtomicRow,
    PanelAnswer,
    PanelResult,
    Stratum,
)
from snellen.builders.rubrics.trial import played_by
from snellen.builders.steps import Made, Rejected, asked_again, failure_kind, undone
from snellen.flows import Asked, Flow, ask_until, reply_row
from snellen.protocols.direct import DirectOptions, interleave, judge_reply, same_text
from snellen.records import (
    IMAGE_MARK,
    CallFailure,
    Image,
    Item,
    Message,
    Probe,
    ReplyRow,
    Request,
)
from snellen.templates import bundled

SOLVE = "build_solve"
JUDGE_PROMPTS = ("direct_judge", "remind_verdict")
SEEN, REWORDED, BLIND = "solve", "reworded", "blind"
# Flags with which a question stays only if people accept it.
UNCONFIRMED, DISPUTED = "unconfirmed", "disputed"
FOR_PEOPLE = (UNCONFIRMED, DISPUTED)
_PLAIN = re.compile(r"[^\w\s.-]|\.$")


@dataclass(frozen=True, slots=True)
class Panel:
    """Who solves, judges and rewords: roles, and the names of the solvers in the same order."""

    solvers: tuple[str, ...]
    names: tuple[str, ...]
    judge: str
    rewriter: str
    options: PanelOptions


def verify(row: AtomicRow, panel: Panel) -> Flow[Made]:
    """Puts one question before the panel; the rules are applied later, to all that was said.

    There is no paraphrase of a question that blind answers hit.
    """
    seen, blind = yield [
        _round(row, row.problem, panel, SEEN),
        _round(row, row.problem, panel, BLIND),
    ]
    if failed := seen.failure or blind.failure:
        return _failed(row, failed)
    found = PanelResult(seen.answers, (), blind.answers)
    counts = {}
    if not ruled(found, panel.options).reason:
        asked = yield from _reword(row, panel)
        if asked.value is None:
            return undone(asked, row.id, made_from=(row.id,))
        [again] = yield [_round(row, asked.value, panel, REWORDED)]
        if again.failure:
            return _failed(row, again.failure)
        found = msgspec.structs.replace(found, reworded=again.answers, paraphrase=asked.value)
        counts = asked_again(asked)
    return Made((msgspec.structs.replace(row, panel=found),), counts=counts)


def _failed(row: AtomicRow, kind: str) -> Made:
    gone = Rejected(id=row.id, made_from=(row.id,), reason=f"call_{kind}")
    return Made(rejected=(gone,), failure=kind)


def _reword(row: AtomicRow, panel: Panel) -> Flow[Asked[str]]:
    text = bundled(REWORD).fill(problem=row.problem)
    request = Request(panel.rewriter, (Message("user", (*row.images, text)),), "reword")
    return (
        yield from ask_until(
            request, lambda reply: reworded_in(reply, row.problem), reasks=panel.options.reasks
        )
    )


class _Round(msgspec.Struct, frozen=True):
    """The answers of the panel to one way of asking, or the kind of a call that failed."""

    answers: tuple[PanelAnswer, ...] = ()
    failure: str = ""


def _round(row: AtomicRow, problem: str, panel: Panel, way: str) -> Flow[_Round]:
    """Asks all solvers, and has what they say judged."""
    images: tuple[Image, ...] = () if way == BLIND else row.images
    text = problem if images else IMAGE_MARK.sub("", problem)
    parts = (*interleave(text, images), f"\n\n{bundled(SOLVE).text}")
    messages = [Message("user", parts)]
    if row.hint:
        messages.insert(0, Message("system", (row.hint,)))
    replies = yield [Request(role, tuple(messages), way, probe=role) for role in panel.solvers]
    if failed := next((one for one in replies if isinstance(one, CallFailure)), None):
        return _Round(failure=failed.kind)
    said = [reply_row(one, row.id) for one in replies]
    verdicts = yield [
        _judged(row, problem, one, panel, f"{way}.{name}")
        for one, name in zip(said, panel.names, strict=True)
    ]
    for verdict in verdicts:
        if isinstance(verdict, str):
            return _Round(failure=verdict)
    return _Round(
        tuple(
            PanelAnswer(name, (one.reply or "").strip(), verdict)
            for name, one, verdict in zip(panel.names, said, verdicts, strict=True)
        )
    )


def _judged(
    row: AtomicRow, problem: str, said: ReplyRow, panel: Panel, probe: str
) -> Flow[bool | str | None]:
    """Whether an answer is right; None where the judge gave no verdict, a kind for a failed call.

    An answer that is the reference but for case and space is right without a call, and a blank one
    is wrong.
    """
    reply = (said.reply or "").strip()
    if said.status != "ok" or not reply:
        return False
    if same_text(reply, row.answer):
        return True
    item = Item(row.id, (), (Probe(probe, problem, row.answer),), text=problem)
    options = DirectOptions(reasks=panel.options.reasks)
    verdict = yield from played_by(judge_reply(item, said, options), {"judge": panel.judge})
    if verdict.status == "unscored" and not verdict.is_unreadable:
        return failure_kind(Asked(None, verdict.reason or ""))
    return verdict.correct


class Ruling(msgspec.Struct, frozen=True):
    """What the rules say of a question: why it goes, or its flags and its stratum."""

    reason: str = ""
    flags: tuple[str, ...] = ()
    stratum: str = ""


def ruled(found: PanelResult, options: PanelOptions) -> Ruling:
    """Applies the rules to the answers of a panel.

    Solvers without a verdict are left out of each share. The paraphrase counts where there is one.
    """
    scored = [one for one in found.answers if one.correct is not None]
    if len(scored) < options.least:
        return Ruling("thin_panel")
    blind = [one.correct for one in found.blind if one.correct is not None]
    if blind and sum(blind) >= options.blind * len(blind):
        return Ruling("answerable_blind")
    again = {one.solver: one.correct for one in found.reworded if one.correct is not None}
    alike = [again[one.solver] == one.correct for one in scored if one.solver in again]
    if alike and sum(alike) < options.steady * len(alike):
        return Ruling("several_readings")
    right = sum(one.correct is True for one in scored)
    flags = []
    if right < options.agree * len(scored):
        flags.append(UNCONFIRMED)
    others = Counter(plain_answer(one.reply) for one in scored if not one.correct)
    others.pop("", None)
    if others and max(others.values()) >= max(2, options.other * len(scored)):
        flags.append(DISPUTED)
    return Ruling(flags=tuple(flags), stratum=stratum(right, len(scored)))


def settled(rows: Sequence[AtomicRow], options: PanelOptions) -> Made:
    """The questions that pass the rules, with flags and difficulty; the others with the answers."""
    kept, gone = [], []
    for row in rows:
        found = row.panel or PanelResult()
        ruling = ruled(found, options)
        if ruling.reason:
            detail = {"answer": row.answer, **msgspec.to_builtins(found)}
            gone.append(
                Rejected(id=row.id, made_from=(row.id,), reason=ruling.reason, detail=detail)
            )
        else:
            kept.append(msgspec.structs.replace(row, stratum=ruling.stratum, flags=ruling.flags))
    flags = Counter(f"flag: {flag}" for row in kept for flag in row.flags)
    strata = {str(name): sum(row.stratum == name for row in kept) for name in STRATA}
    return Made(tuple(kept), tuple(gone), counts={**flags, **strata})


def stratum(right: int, n: int) -> Stratum:
    """The difficulty of a question that `right` of `n` solvers answer: by thirds of the wrong ones.

    Easy: at most a third is wrong; medium: at most two thirds; hard: more.

    >>> [stratum(right, 3) for right in (3, 2, 1, 0)]
    ['easy', 'easy', 'medium', 'hard']
    """
    wrong = n - right
    easy, medium, hard = STRATA
    return easy if 3 * wrong <= n else medium if 3 * wrong <= 2 * n else hard


def plain_answer(text: str) -> str:
    """An answer without what does not tell it from another: case, space and punctuation.

    >>> plain_answer(" The cup.") == plain_answer("the  cup")
    True
    """
    return " ".join(_PLAIN.sub(" ", text.strip().casefold()).split())
