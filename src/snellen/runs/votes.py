"""How a panel's judges voted: where they disagreed, and who is how often with the panel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from snellen.records import Item, Probe, Verdict
from snellen.runs.folder import Run
from snellen.stats.agreement import fleiss_kappa


@dataclass(slots=True)
class Votes:
    """Probes with two valid votes or more: how many, and on how many the votes were not alike."""

    n: int = 0
    split: int = 0

    def add(self, values: Sequence[Any]) -> None:
        """Counts one probe's valid votes."""
        if len(values) > 1:
            self.n += 1
            self.split += len(set(values)) > 1

    @property
    def share(self) -> float | None:
        """The share that is split; None without probes."""
        return self.split / self.n if self.n else None


@dataclass(slots=True)
class Member:
    """One judge of a panel: its valid votes, and those that the panel's verdict agreed with."""

    valid: int = 0
    with_panel: int = 0
    decided: int = 0


@dataclass(slots=True)
class PanelVotes:
    """The votes of a run. `kappa` is Fleiss' over the probes; None where it cannot be had."""

    overall: Votes = field(default_factory=Votes)
    by: dict[str, dict[str, Votes]] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    kappa: float | None = None


def panel_votes(run: Run) -> PanelVotes | None:
    """The votes of a run's panel; None where one judge read the replies."""
    if not run.spec.judge.members:
        return None
    found = PanelVotes()
    ballots: list[tuple[Any, ...]] = []
    for item, probe, verdict in _voted(run):
        votes = verdict.votes or {}
        valid = tuple(value for value in votes.values() if value is not None)
        ballots.append(valid)
        found.overall.add(valid)
        for dimension, label in _labels(item, probe, run.protocol.dimensions):
            found.by.setdefault(dimension, {}).setdefault(label, Votes()).add(valid)
        for name, value in votes.items():
            _count(found.members.setdefault(name, Member()), value, verdict)
    found.kappa = _kappa(ballots)
    return found


def _voted(run: Run) -> Iterator[tuple[Item, Probe, Verdict]]:
    for item in run.items:
        for repeat in range(run.spec.repeats):
            for probe in item.probes:
                verdict = run.verdicts.get((item.id, repeat, probe.id))
                if verdict is not None and verdict.votes is not None:
                    yield item, probe, verdict


def _labels(item: Item, probe: Probe, dimensions: Sequence[str]) -> Iterator[tuple[str, str]]:
    for dimension in dimensions:
        own = probe.groups.get(dimension)
        for label in (own,) if own else item.groups.get(dimension, ()):
            yield dimension, label


def _count(member: Member, value: str | bool | None, verdict: Verdict) -> None:
    if value is None:
        return
    member.valid += 1
    if verdict.status == "scored":
        member.decided += 1
        member.with_panel += value == verdict.verdict


def _kappa(ballots: Sequence[Sequence[Any]]) -> float | None:
    labels = sorted({str(value) for ballot in ballots for value in ballot})
    counts = [[sum(str(v) == label for v in ballot) for label in labels] for ballot in ballots]
    if not counts or not labels:
        return None
    kappa = fleiss_kappa(counts)
    return None if math.isnan(kappa) else kappa


def panel_extra(run: Run) -> dict[str, Any]:
    """What a summary says of a panel: its rule, and its disagreement in all and by label."""
    found = panel_votes(run)
    if found is None:
        return {}
    return {
        "panel": {
            **run.spec.judge.params,
            "disagreement": _plain(found.overall),
            "by": {
                dimension: {label: _plain(votes) for label, votes in sorted(labels.items())}
                for dimension, labels in found.by.items()
            },
            "members": {
                name: {"valid": m.valid, "decided": m.decided, "with_panel": m.with_panel}
                for name, m in found.members.items()
            },
            "kappa": found.kappa,
        }
    }


def _plain(votes: Votes) -> dict[str, Any]:
    return {"n": votes.n, "split": votes.split, "share": votes.share}
