"""Which pictures are worth a rubric: two scores by a model, a domain, a threshold a domain.

Source: PerceptionRubrics, section 3.2 and appendix C.1. How the two scores combine is not stated;
here they are added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from snellen.builders.rubrics.options import CurateOptions
from snellen.builders.rubrics.rows import ScoredRow
from snellen.builders.rubrics.tags import bare, inside, whole_number
from snellen.builders.steps import Made, Rejected
from snellen.flows import Asked, Flow, ask_until
from snellen.records import Image, Message, Reply, Request
from snellen.replies.typed import UnreadableError, json_reply
from snellen.schemas import DOMAINS
from snellen.templates import bundled

SCORE, DOMAIN = "build_score", "build_domain"
TOTALS = range(2, 21)
# Short names that the paper's tables give to domains.
_SHORT = {
    "gui": "Digital UI/UX", "ui": "Digital UI/UX", "structured": "Structured Data",
    "creative": "Creative/Cultural", "doc": "Document/OCR", "document": "Document/OCR",
    "ocr": "Document/OCR", "natural": "Natural Scene", "nature": "Natural Scene",
    "logic": "Logic/Puzzle", "puzzle": "Logic/Puzzle", "stem": "STEM/Expert",
}  # fmt: skip


class Scores(msgspec.Struct, frozen=True):
    """Both scores of a picture, 1 to 10, and the reasons for each."""

    complexity: int
    informativeness: int
    reasons: tuple[str, str]


def scores_in(reply: Reply) -> Scores:
    """The scores of a scorer's reply, which is bare XML.

    Raises:
        UnreadableError: it has another form, or a score that cannot be.
    """
    body = bare(reply, "image_evaluation")
    parts = [inside(body, name) for name in ("visual_complexity", "informativeness")]
    numbers = [whole_number(part, "score", most=10) for part in parts]
    reasons = (inside(parts[0], "reasoning"), inside(parts[1], "reasoning"))
    return Scores(numbers[0], numbers[1], reasons)


def score(image: Image, *, role: str, reasks: int) -> Flow[Asked[Scores]]:
    """Asks for both scores of a picture."""
    request = Request(role, (Message("user", (image, bundled(SCORE).text)),), "score")
    return (yield from ask_until(request, scores_in, reasks=reasks))


class _Domain(msgspec.Struct):
    domain: str


def place(image: Image, *, role: str, reasks: int) -> Flow[Asked[str]]:
    """Asks for the domain of a picture."""
    text = bundled(DOMAIN).fill(domains="\n".join(f"- {name}" for name in DOMAINS))

    def parse(reply: Reply) -> str:
        found = json_reply(_Domain)(reply).domain
        if found not in DOMAINS:
            raise UnreadableError("not_as_asked", f"{found!r} is none of the listed domains")
        return found

    request = Request(role, (Message("user", (image, text)),), "domain")
    return (yield from ask_until(request, parse, reasks=reasks))


def domain_of_folders(folders: Sequence[str]) -> str | None:
    """The domain that a folder above a picture is named after; the nearest folder wins.

    >>> domain_of_folders(("Document OCR", "gui"))
    'Digital UI/UX'
    """
    names = {_letters(name): name for name in DOMAINS} | _SHORT
    return next((names[key] for key in map(_letters, reversed(folders)) if key in names), None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.casefold())


class DomainThreshold(msgspec.Struct, frozen=True):
    """The threshold of one domain, and how many pictures each one would keep."""

    domain: str
    threshold: int
    pictures: int
    kept: int
    would_keep: dict[int, int]


def thresholds_for(
    pictures: Sequence[ScoredRow], options: CurateOptions
) -> tuple[DomainThreshold, ...]:
    """The threshold of each domain that has pictures: given, or chosen for a wanted number."""
    found = []
    for domain in DOMAINS:
        totals = [one.total for one in pictures if one.domain == domain]
        if not totals:
            continue
        would_keep = {least: sum(total >= least for total in totals) for least in TOTALS}
        chosen = options.thresholds.get(domain, options.threshold)
        if options.wanted and domain not in options.thresholds:
            enough = (least for least in TOTALS if would_keep[least] >= options.wanted)
            chosen = max(enough, default=TOTALS[0])
        found.append(DomainThreshold(domain, chosen, len(totals), would_keep[chosen], would_keep))
    return tuple(found)


def above(pictures: Sequence[ScoredRow], thresholds: Sequence[DomainThreshold]) -> Made:
    """The pictures that reach their domain's threshold, and the others as rejections."""
    least: Mapping[str, int] = {one.domain: one.threshold for one in thresholds}
    gone = tuple(
        Rejected(
            id=one.id,
            made_from=one.made_from,
            reason="below_threshold",
            detail={"domain": one.domain, "total": one.total, "threshold": least[one.domain]},
        )
        for one in pictures
        if one.total < least[one.domain]
    )
    return Made(tuple(one for one in pictures if one.total >= least[one.domain]), gone)
