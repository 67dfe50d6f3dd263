"""Attribution: what went wrong first in a wrong reply, and of which type that is.

Several attributors look at each failure, none knows of the others. Where they differ, an arbiter
sees what all have found, or people decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.perception.options import PerceptionOptions
from snellen.builders.perception.rows import (
    AttributedRow,
    Attribution,
    ErrorType,
    FailureRow,
)
from snellen.builders.perception.taxonomy import listing
from snellen.builders.steps import Made, asked_again, is_failed, joined, undone
from snellen.errors import DataError
from snellen.flows import Asked, Flow, ask_until
from snellen.keys import rng_for
from snellen.records import IMAGE_MARK, LETTERS, Message, Reply, Request
from snellen.replies.fences import fence
from snellen.replies.typed import UnreadableError, json_reply
from snellen.schemas import nearest
from snellen.stats.agreement import cohen_kappa, fleiss_kappa, raw_agreement
from snellen.templates import bundled

FAILURE, ATTRIBUTE, ARBITRATE = "build_failure", "build_attribute", "build_arbitrate"
DESCRIBE = "build_describe_error"
AGREED, ARBITER, PEOPLE = "agreed", "arbiter", "people"


def shown(failure: FailureRow, task: str) -> tuple[Message, ...]:
    """The message that shows a failure, with a task below it."""
    options = "\n".join(
        f"{letter}. {one}" for letter, one in zip(LETTERS, failure.options, strict=False)
    )
    asked = IMAGE_MARK.sub(lambda mark: f"[picture {mark[1]}]", failure.question)
    question = f"{asked}\n\n{options}" if options else asked
    text = bundled(FAILURE).fill(
        question=fence(question, "question", "reference_answer", "reply"),
        reference=fence(failure.reference, "question", "reference_answer", "reply"),
        reply=fence(failure.reply, "question", "reference_answer", "reply"),
    )
    return (Message("user", (*failure.images, f"{text}\n\n{task}")),)


class Description(msgspec.Struct, frozen=True):
    """What an attributor says of a failure before there are types."""

    steps: list[str]
    earliest_wrong: int
    description: str


class Finding(Description, frozen=True):
    """What an attributor says of a failure."""

    type: str


def description_in(reply: Reply) -> Description:
    """A description in a reply.

    Raises:
        UnreadableError: it has another form, or names a step that there is not.
    """
    return _checked(json_reply(Description)(reply))


def finding_in(reply: Reply, types: Sequence[ErrorType]) -> Finding:
    """A finding in a reply.

    Raises:
        UnreadableError: it has another form, or names a step or a type that there is not.
    """
    found = json_reply(Finding)(reply)
    is_perceptual = _known(found.type, types).is_perceptual
    _checked(found)
    if is_perceptual and found.earliest_wrong == 0:
        raise UnreadableError(
            "not_as_asked", f"`{found.type}` needs a wrong step, but `earliest_wrong` is 0"
        )
    return found


def _known(name: str, types: Sequence[ErrorType]) -> ErrorType:
    one = next((one for one in types if one.id == name), None)
    if one is None:
        names = [known.id for known in types]
        raise UnreadableError("not_as_asked", f"there is no type `{name}`; {nearest(name, names)}")
    return one


def _checked(found: Description) -> Description:
    if not found.steps or not found.description.strip():
        raise UnreadableError("not_as_asked", "steps and description must not be empty")
    if not 0 <= found.earliest_wrong <= len(found.steps):
        raise UnreadableError(
            "not_as_asked",
            f"`earliest_wrong` is {found.earliest_wrong}, but there are {len(found.steps)} steps",
        )
    return found


@dataclass(frozen=True, slots=True)
class Attributors:
    """Who attributes: roles and names in the same order, and the arbiter's role, "" without."""

    roles: tuple[str, ...]
    names: tuple[str, ...]
    arbiter: str
    options: PerceptionOptions
    seed: int


def describe(failure: FailureRow, *, role: str, reasks: int) -> Flow[Asked[Description]]:
    """Asks one attributor what went wrong first, without naming any types."""
    messages = shown(failure, bundled(DESCRIBE).text)
    request = Request(role, messages, "describe", probe=failure.id)
    return (yield from ask_until(request, description_in, reasks=reasks))


def attribute(
    failure: FailureRow, types: Sequence[ErrorType], attributors: Attributors
) -> Flow[Made]:
    """Attributes one failure; a failure on which attributors differ is settled by the arbiter.

    Without an arbiter the row keeps the first attributor's type, to be settled by people.
    """
    reasks = attributors.options.reasks
    messages = shown(failure, bundled(ATTRIBUTE).fill(types=listing(types)))
    asked: list[Asked[Finding]] = yield [
        ask_until(
            Request(role, messages, "attribute", probe=role),
            lambda reply: finding_in(reply, types),
            reasks=reasks,
        )
        for role in attributors.roles
    ]
    if lost := sorted((one for one in asked if one.value is None), key=lambda a: not is_failed(a)):
        return undone(lost[0], failure.id, made_from=(failure.id,))
    found = [one.value for one in asked if one.value is not None]
    counts = joined(Made(counts=asked_again(one)) for one in asked).counts
    chosen, decided_by = found[0].type, AGREED
    if len({one.type for one in found}) > 1:
        decided_by = PEOPLE
        if attributors.arbiter:
            ruled = yield from _arbitrate(failure, types, found, attributors)
            if ruled.value is None:
                return undone(ruled, failure.id, made_from=(failure.id,))
            counts = joined((Made(counts=counts), Made(counts=asked_again(ruled)))).counts
            chosen, decided_by = ruled.value.type, ARBITER
    row = AttributedRow(
        id=failure.id,
        made_from=(failure.id,),
        type=chosen,
        is_perceptual=_known(chosen, types).is_perceptual,
        source_bmk=failure.source_bmk,
        source_idx=failure.source_idx,
        model=failure.model,
        attributions=tuple(
            Attribution(name, tuple(f.steps), f.earliest_wrong, f.description.strip(), f.type)
            for name, f in zip(attributors.names, found, strict=True)
        ),
        decided_by=decided_by,
    )
    return Made((row,), counts=counts)


class Ruling(msgspec.Struct, frozen=True):
    """What an arbiter answers."""

    type: str


def _arbitrate(
    failure: FailureRow,
    types: Sequence[ErrorType],
    found: Sequence[Finding],
    attributors: Attributors,
) -> Flow[Asked[Ruling]]:
    """Asks the arbiter, who sees the findings without names, in a seeded order."""
    order = rng_for(attributors.seed, failure.id, "arbiter").permutation(len(found))
    lines = [
        f"{n}. `{found[k].type}`: {fence(found[k].description.strip())}"
        for n, k in enumerate(order, 1)
    ]
    task = bundled(ARBITRATE).fill(attributions="\n".join(lines), types=listing(types))

    def parse(reply: Reply) -> Ruling:
        ruling = json_reply(Ruling)(reply)
        _known(ruling.type, types)
        return ruling

    request = Request(attributors.arbiter, shown(failure, task), "arbitrate")
    return (yield from ask_until(request, parse, reasks=attributors.options.reasks))


def chosen_type(name: str, after: Mapping[str, object], labels: Sequence[str]) -> str:
    """The type that people's edit of the attribution `name` chooses.

    Raises:
        DataError: the edit changes another field, or names no type of the taxonomy.
    """
    chosen = str(after.get("type", ""))
    if set(after) != {"type"} or chosen not in labels:
        raise DataError(
            f"the edit of {name} names no type of the taxonomy: {dict(after)}",
            hint=f'edit with after = {{"type": "..."}}; {nearest(chosen, labels)}',
        )
    return chosen


class PairAgreement(msgspec.Struct, frozen=True):
    """How far two attributors agree: on the type, and on whether it is a perceptual one.

    Agreements are shares of `n` failures; kappa is None where chance alone is certain. Intervals
    (95%) are resampled by question.
    """

    pair: tuple[str, str]
    n: int
    types: float
    kappa: float | None
    types_interval: tuple[float, float] | None
    kappa_interval: tuple[float, float] | None
    branch: float
    branch_kappa: float | None


class AgreementReport(msgspec.Struct, frozen=True):
    """Who agrees with whom, and who settled what; `fleiss` is kappa over all attributors."""

    failures: int
    pairs: tuple[PairAgreement, ...]
    fleiss: float | None
    decided_by: dict[str, int]


def agreement(
    rows: Sequence[AttributedRow], types: Sequence[ErrorType], *, decided: Mapping[str, int]
) -> AgreementReport:
    """The agreement of the attributors on the same failures.

    Attributors that saw other failures than the first one are compared on those that both saw.
    """
    names = list(dict.fromkeys(one.attributor for row in rows for one in row.attributions))
    said = [{one.attributor: one.type for one in row.attributions} for row in rows]
    perceptual = {one.id for one in types if one.is_perceptual}
    pairs = []
    for k, first in enumerate(names):
        for second in names[k + 1 :]:
            both = [n for n, one in enumerate(said) if first in one and second in one]
            a, b = ([said[n][name] for n in both] for name in (first, second))
            clusters = [f"{rows[n].source_bmk}/{rows[n].source_idx}" for n in both]
            kinds = [[one in perceptual for one in side] for side in (a, b)]
            whole = cohen_kappa(a, b, clusters=clusters)
            pairs.append(
                PairAgreement(
                    (first, second),
                    len(both),
                    whole.raw,
                    _known_number(whole.kappa),
                    whole.raw_interval,
                    whole.kappa_interval,
                    raw_agreement(kinds[0], kinds[1]),
                    _known_number(cohen_kappa(kinds[0], kinds[1]).kappa),
                )
            )
    labels = list(dict.fromkeys(label for one in said for label in one.values()))
    counts = [[list(one.values()).count(label) for label in labels] for one in said]
    fleiss = _known_number(fleiss_kappa(counts)) if rows else None
    return AgreementReport(len(rows), tuple(pairs), fleiss, dict(decided))


def _known_number(value: float) -> float | None:
    return None if math.isnan(value) else value
