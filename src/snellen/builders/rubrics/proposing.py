"""Statements of both streams, as a proposer writes them, and the check of Must-Right ones.

Must-Right statements come from picture and golden caption, Easy-Wrong ones from golden caption and
the pool's predictions. Prompts of both streams have a part that depends on the domain.
Source: PerceptionRubrics, section 3.3.2 and appendix C.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.rubrics.options import RubricsOptions
from snellen.builders.rubrics.rows import (
    EASY_WRONG,
    MUST_RIGHT,
    GoldenRow,
    Prediction,
    RubricKind,
    RubricRow,
)
from snellen.builders.steps import Made, Rejected, asked_again, undone
from snellen.flows import Flow, ask_until
from snellen.keys import rng_for
from snellen.records import Image, Message, Reply, Request
from snellen.replies.fences import fence
from snellen.replies.typed import UnreadableError, json_reply
from snellen.templates import bundled

MUST_PROMPT, EASY_PROMPT, GROUND_PROMPT = "build_must_right", "build_easy_wrong", "build_ground"
# The prompt file of each domain: its first paragraph is for Must-Right, its second for Easy-Wrong.
FOCUS = {
    "Digital UI/UX": "build_focus_gui",
    "Structured Data": "build_focus_structured",
    "Creative/Cultural": "build_focus_creative",
    "Document/OCR": "build_focus_document",
    "Natural Scene": "build_focus_natural",
    "Logic/Puzzle": "build_focus_logic",
    "STEM/Expert": "build_focus_stem",
}


@dataclass(frozen=True, slots=True)
class Proposer:
    """Who proposes: the role that it plays, its name, and what it is told to keep to."""

    role: str
    name: str
    options: RubricsOptions
    seed: int


def focus_of(domain: str, kind: RubricKind) -> str:
    """What a proposer is told about a domain."""
    paragraphs = bundled(FOCUS[domain]).text.split("\n\n")
    return paragraphs[0 if kind == MUST_RIGHT else 1]


def _image(golden: GoldenRow) -> Image:
    return golden.file.image(golden.name)


def propose_must_right(golden: GoldenRow, proposer: Proposer) -> Flow[Made]:
    """The Must-Right statements of a picture."""
    least, most = proposer.options.must_right
    text = bundled(MUST_PROMPT).fill(
        least=str(least),
        most=str(most),
        focus=focus_of(golden.domain, MUST_RIGHT),
        caption=fence(golden.caption, "golden_caption"),
        max_words=str(proposer.options.max_words),
    )

    def parse(reply: Reply) -> list[str]:
        found = json_reply(list[str])(reply)
        if not least <= len(found) <= most:
            raise UnreadableError(
                "not_as_asked", f"expected {least} to {most} statements, found {len(found)}"
            )
        return found

    message = Message("user", (_image(golden), text))
    request = Request(proposer.role, (message,), "must_right")
    asked = yield from ask_until(request, parse, reasks=proposer.options.reasks)
    if asked.value is None:
        return undone(asked, golden.id, made_from=(golden.id,))
    rows = tuple(
        _rubric(golden, MUST_RIGHT, proposer, index=index, text=one)
        for index, one in enumerate(asked.value, 1)
    )
    return Made(rows, counts=asked_again(asked))


class Claim(msgspec.Struct, frozen=True):
    """An Easy-Wrong statement: the numbers, from 1, of the predictions that get it wrong."""

    text: str
    wrong_in: list[int] | None = None
    severe: bool = False


class _Claims(msgspec.Struct):
    rubrics: list[Claim | str]


def claims_in(reply: Reply, n: int) -> list[Claim]:
    """The statements that a proposer makes about a pool of `n`; a plain text has no evidence.

    Raises:
        UnreadableError: the reply has another form, or names a prediction that there is not.
    """
    found = [
        Claim(one) if isinstance(one, str) else one for one in json_reply(_Claims)(reply).rubrics
    ]
    for claim in found:
        for number in claim.wrong_in or ():
            if not 1 <= number <= n:
                raise UnreadableError(
                    "not_as_asked", f"wrong_in names response {number}, but there are 1 to {n}"
                )
    return found


def pool_order(image_id: str, n: int, *, seed: int) -> tuple[int, ...]:
    """The order in which a proposer sees a pool of `n`, so that no model has a place of its own."""
    return tuple(int(k) for k in rng_for(seed, image_id, "pool order").permutation(n))


def propose_easy_wrong(
    golden: GoldenRow, predictions: Sequence[Prediction], proposer: Proposer
) -> Flow[Made]:
    """The Easy-Wrong statements of a picture: errors that are frequent in the pool, or severe.

    The proposer does not see the picture. Statements about rarer errors are dropped.
    """
    options = proposer.options
    order = pool_order(golden.id, len(predictions), seed=proposer.seed)
    shown = [predictions[k] for k in order]
    text = bundled(EASY_PROMPT).fill(
        n=str(len(shown)),
        focus=focus_of(golden.domain, EASY_WRONG),
        caption=fence(golden.caption, "golden_caption"),
        responses="\n\n".join(
            f"<response_{k}>\n{fence(one.text, f'response_{k}')}\n</response_{k}>"
            for k, one in enumerate(shown, 1)
        ),
        max_words=str(options.max_words),
    )
    request = Request(proposer.role, (Message("user", (text,)),), "easy_wrong")
    asked = yield from ask_until(
        request, lambda reply: claims_in(reply, len(shown)), reasks=options.reasks
    )
    if asked.value is None:
        return undone(asked, golden.id, made_from=(golden.id,))
    rows, rare = [], []
    for index, claim in enumerate(asked.value, 1):
        row = _rubric(golden, EASY_WRONG, proposer, index=index, text=claim.text)
        if claim.wrong_in is not None:
            wrong = {shown[number - 1].model for number in claim.wrong_in}
            row = msgspec.structs.replace(
                row,
                wrong_in=tuple(one.model for one in predictions if one.model in wrong),
                seen_by=len(shown),
                error_rate=len(wrong) / len(shown),
                is_severe=claim.severe,
            )
        # An error that nobody makes is none, however severe.
        is_severe = claim.severe and bool(row.wrong_in)
        if row.error_rate is None or row.error_rate >= options.frequent or is_severe:
            rows.append(row)
        else:
            detail = {"text": row.text, "error_rate": row.error_rate}
            rare.append(
                Rejected(id=row.id, made_from=(golden.id,), reason="rare_error", detail=detail)
            )
    return Made(tuple(rows), dropped=tuple(rare), counts=asked_again(asked))


def _rubric(
    golden: GoldenRow, kind: RubricKind, proposer: Proposer, *, index: int, text: str
) -> RubricRow:
    return RubricRow(
        id=f"{golden.id}.{kind[0]}{index:02d}",
        made_from=(golden.id,),
        image_id=golden.id,
        kind=kind,
        text=" ".join(text.split()),
        proposer=proposer.name,
        index=index,
    )


class Grounds(msgspec.Struct, frozen=True):
    """Whether a statement holds in the picture, and in the caption."""

    in_image: bool
    in_caption: bool


def ground(row: RubricRow, golden: GoldenRow, *, role: str, reasks: int) -> Flow[Made]:
    """Keeps a Must-Right statement that holds in both picture and golden caption."""
    text = bundled(GROUND_PROMPT).fill(
        caption=fence(golden.caption, "golden_caption"), rubric=fence(row.text, "statement")
    )
    request = Request(role, (Message("user", (_image(golden), text)),), "ground")
    asked = yield from ask_until(request, json_reply(Grounds), reasks=reasks)
    if asked.value is None:
        return undone(asked, row.id, made_from=(row.image_id,))
    found: Grounds = asked.value
    counts = asked_again(asked)
    if found.in_image and found.in_caption:
        return Made((row,), counts=counts)
    reason = "not_in_image" if not found.in_image else "not_in_caption"
    gone = Rejected(id=row.id, made_from=(row.image_id,), reason=reason, detail={"text": row.text})
    return Made(rejected=(gone,), counts=counts)
