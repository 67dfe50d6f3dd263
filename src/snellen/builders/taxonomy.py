"""Domains and sub-domains: matching pictures to labels, and taking a balanced set of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from snellen.builders.rows import Label, PictureRow
from snellen.builders.steps import Rejected
from snellen.flows import Asked, Flow, ask_until
from snellen.keys import seed_for
from snellen.records import Image, Message, Reply, Request
from snellen.replies import UnreadableError, json_reply
from snellen.templates import bundled

Taxonomy = Mapping[str, tuple[str, ...]]
MATCH_PROMPT = "build_match"


class Match(msgspec.Struct, frozen=True):
    """One label that a matcher names, with its confidence, 0 to 1."""

    label: str
    confidence: float


class _Matches(msgspec.Struct):
    labels: list[Match]


_parse = json_reply(_Matches)


@dataclass(frozen=True, slots=True)
class Matched:
    """The labels of a picture, or why it has none; `asked` is how the last ask ended."""

    asked: Asked[tuple[Match, ...]]
    labels: tuple[Label, ...] = ()
    reason: str = ""


def matches_in(reply: Reply, labels: Sequence[str]) -> tuple[Match, ...]:
    """The labels that a matcher's reply names.

    Raises:
        UnreadableError: the reply has another form, or a label or confidence that cannot be.
    """
    found = _parse(reply).labels
    by_fold = {label.casefold(): label for label in labels}
    matches = []
    for one in found:
        label = by_fold.get(one.label.strip().casefold())
        if label is None:
            raise UnreadableError("no_label", f"the label {one.label!r} is not in the list")
        if not 0 <= one.confidence <= 1:
            raise UnreadableError("no_share", f"the confidence {one.confidence:g} is not 0 to 1")
        matches.append(Match(label, one.confidence))
    return tuple(matches)


def match(image: Image, taxonomy: Taxonomy, *, role: str, least: float) -> Flow[Matched]:
    """Labels a picture: the domains first, then the sub-domains of each domain kept.

    Source: CapProbe, section 3.1, steps 2 and 3.
    """
    first = yield from _ask(image, tuple(taxonomy), role=role, probe="L1")
    if first.value is None:
        return Matched(first)
    domains = [one for one in first.value if one.confidence >= least]
    if not domains:
        return Matched(first, reason="no_domain")
    found: dict[tuple[str, str], Label] = {}
    last = first
    for domain in domains:
        last = yield from _ask(image, taxonomy[domain.label], role=role, probe=domain.label)
        if last.value is None:
            return Matched(last)
        for one in last.value:
            if one.confidence >= least:
                both = min(domain.confidence, one.confidence)
                found[domain.label, one.label] = Label(domain.label, one.label, both)
    return Matched(last, tuple(found.values()), "" if found else "no_subdomain")


def _ask(
    image: Image, labels: Sequence[str], *, role: str, probe: str
) -> Flow[Asked[tuple[Match, ...]]]:
    text = bundled(MATCH_PROMPT).fill(labels="\n".join(f"- {label}" for label in labels))
    request = Request(role, (Message("user", (image, text)),), "match", probe=probe)
    return (yield from ask_until(request, lambda reply: matches_in(reply, labels)))


def sample_by_domain(
    pictures: Sequence[PictureRow], per_l1: int, *, seed: int
) -> tuple[tuple[PictureRow, ...], tuple[Rejected, ...]]:
    """At most so many pictures a domain: the rarest domain chooses first, by confidence.

    Ties are broken by a seeded order. A picture with several domains counts under each of them. 0
    is no cap.
    """
    if not per_l1:
        return tuple(pictures), ()
    by_domain: dict[str, list[PictureRow]] = {}
    for picture in pictures:
        for domain in dict.fromkeys(label.l1 for label in picture.labels):
            by_domain.setdefault(domain, []).append(picture)
    taken: set[str] = set()
    for domain in sorted(by_domain, key=lambda name: (len(by_domain[name]), name)):
        ranked = sorted(
            by_domain[domain],
            key=lambda one: (-confidence_in(one, domain), seed_for(seed, one.id, "select")),
        )
        room = per_l1 - sum(one.id in taken for one in ranked)
        for one in [one for one in ranked if one.id not in taken][: max(0, room)]:
            taken.add(one.id)
    kept = tuple(one for one in pictures if one.id in taken or not one.labels)
    gone = tuple(
        Rejected(id=one.id, made_from=one.made_from, reason="over_domain_cap",
                 detail={"domains": sorted({label.l1 for label in one.labels})})
        for one in pictures if one.id not in taken and one.labels
    )  # fmt: skip
    return kept, gone


def confidence_in(picture: PictureRow, domain: str) -> float:
    """How surely a picture shows a domain."""
    return max(label.confidence for label in picture.labels if label.l1 == domain)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many pictures each label has: all domains, and all (domain, sub-domain) pairs."""

    l1: Mapping[str, int]
    l2: Mapping[tuple[str, str], int]

    def thin(self, least: int) -> tuple[tuple[str, int], ...]:
        """Domains with fewer pictures than `least`, the empty ones among them."""
        return tuple((name, n) for name, n in self.l1.items() if n < least)

    @property
    def empty_pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of domain and sub-domain without a picture."""
        return tuple(pair for pair, n in self.l2.items() if not n)


def coverage(pictures: Sequence[PictureRow], taxonomy: Taxonomy) -> Coverage:
    """How many pictures each label of a taxonomy has."""
    l1, l2 = Counter[str](), Counter[tuple[str, str]]()
    for picture in pictures:
        l1.update({label.l1 for label in picture.labels})
        l2.update({(label.l1, label.l2) for label in picture.labels})
    pairs = [(domain, sub) for domain, subs in taxonomy.items() for sub in subs]
    return Coverage({name: l1[name] for name in taxonomy}, {pair: l2[pair] for pair in pairs})
