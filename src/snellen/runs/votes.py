"""How a panel's judges voted: where they disagreed, and how often each is with the panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from snellen.records import JsonObject, walk
from snellen.runs.folder import Run
from snellen.stats.agreement import fleiss_kappa

Vote = str | bool


@dataclass(slots=True)
class Votes:
    """Probes with two valid votes or more: how many, and on how many the votes were not alike."""

    n: int = 0
    split: int = 0

    def add(self, values: Sequence[Vote]) -> None:
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
    decided: int = 0
    with_panel: int = 0


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
    ballots: list[list[str]] = []
    for item, repeat in walk(run.items, run.spec.repeats):
        for probe in item.probes:
            verdict = run.verdicts.get((item.id, repeat, probe.id))
            if verdict is None or verdict.votes is None:
                continue
            valid = [value for value in verdict.votes.values() if value is not None]
            ballots.append([str(value) for value in valid])
            found.overall.add(valid)
            for dimension in run.protocol.dimensions:
                own = probe.groups.get(dimension)
                for label in (own,) if own else item.groups.get(dimension, ()):
                    found.by.setdefault(dimension, {}).setdefault(label, Votes()).add(valid)
            for name, value in verdict.votes.items():
                member = found.members.setdefault(name, Member())
                if value is not None:
                    member.valid += 1
                    if verdict.status == "scored":
                        member.decided += 1
                        member.with_panel += value == verdict.verdict
    labels = sorted({value for ballot in ballots for value in ballot})
    if labels:
        kappa = fleiss_kappa([[ballot.count(label) for label in labels] for ballot in ballots])
        found.kappa = None if math.isnan(kappa) else kappa
    return found


def panel_extra(run: Run) -> JsonObject:
    """What a summary says of a panel: its rule, and its disagreement in all and by label."""
    found = panel_votes(run)
    if found is None:
        return {}
    by = {
        dimension: {label: {**asdict(v), "share": v.share} for label, v in sorted(labels.items())}
        for dimension, labels in found.by.items()
    }
    overall = {**asdict(found.overall), "share": found.overall.share}
    members = {name: asdict(member) for name, member in found.members.items()}
    panel = {"disagreement": overall, "by": by, "members": members, "kappa": found.kappa}
    return {"panel": {**run.spec.judge.params, **panel}}
