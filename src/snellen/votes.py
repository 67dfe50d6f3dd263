"""How a panel's judges voted: where they disagreed, and who is how often with the panel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snellen.agreement import fleiss_kappa
from snellen.records import Item, Probe, Verdict
from snellen.results import Run
from snellen.tables import Table, summary_of


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


def panel_tables(run: Run) -> list[Table]:
    """How a run's panel voted, by member and by the first dimension; none without a panel."""
    found: Mapping[str, Any] | None = summary_of(run).extra.get("panel")
    if not found:
        return []
    kappa = found["kappa"]
    notes = (
        f"rule: {found['panel']}, at least {found['min_valid']} valid votes",
        f"split on {_share(found['disagreement'])} of the probes with two votes or more; "
        f"Fleiss' kappa {'-' if kappa is None else f'{kappa:.2f}'}",
    )
    rows = tuple(
        (name, str(m["valid"]), _per_cent(m["with_panel"], m["decided"]))
        for name, m in found["members"].items()
    )
    columns = ("Judge", "Valid votes", "With the panel %")
    tables = [Table(f"{run.name}: the panel's votes", columns, rows, notes)]
    for dimension in run.protocol.dimensions[:1]:
        labels = found["by"].get(dimension, {})
        split = tuple((label, _share(v), str(v["n"])) for label, v in labels.items())
        if split:
            title = f"{run.name}: disagreement by {dimension}"
            tables.append(Table(title, (dimension, "Split", "Probes"), split))
    return tables


def _share(votes: Mapping[str, Any]) -> str:
    return _per_cent(votes["split"], votes["n"]) + "%" if votes["n"] else "-"


def _per_cent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"
