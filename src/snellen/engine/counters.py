"""What has happened in a run so far, for its summary and for whoever shows its progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields

from snellen.records import Usage


@dataclass(slots=True)
class RoleCounters:
    """What has happened to one role's calls so far.

    `tries` counts what went out; `done` the calls that ended, `failed` those without a reply.
    """

    tries: int = 0
    done: int = 0
    failed: int = 0
    replayed: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    unknown_usage: int = 0
    cost_usd: float = 0.0
    unknown_cost: int = 0

    def add(self, other: RoleCounters) -> None:
        """Adds what has happened elsewhere."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def count(self, usage: Usage, cost: float | None) -> None:
        """Adds a reply that was paid for."""
        if usage.prompt is None and usage.completion is None:
            self.unknown_usage += 1
        self.prompt_tokens += usage.prompt or 0
        self.completion_tokens += usage.completion or 0
        self.reasoning_tokens += usage.reasoning or 0
        self.cached_tokens += usage.cached or 0
        self.unknown_cost += cost is None
        self.cost_usd += cost or 0.0


@dataclass(slots=True)
class Counters:
    """The state of a job. `pending` maps calls in flight to their start (monotonic) and item.

    `flows_done` of `n_items` items and `probes_done` of `probes` are those of the batch under way,
    which `stage` names; 0 stands for a number that nobody has said. `away` maps servers that are
    waited for to since when and until when, in seconds of the system's clock.
    """

    roles: dict[str, RoleCounters] = field(default_factory=dict)
    stage: str = ""
    n_items: int = 0
    flows_done: int = 0
    probes: int = 0
    probes_done: int = 0
    in_flight: int = 0
    started_at: float = 0.0
    pending: dict[int, tuple[float, str]] = field(default_factory=dict)
    away: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, other: Counters) -> None:
        """Adds what has happened in another job; its calls in flight are not known by name."""
        for role, counted in other.roles.items():
            self.roles.setdefault(role, RoleCounters()).add(counted)
        self.n_items += other.n_items
        self.flows_done += other.flows_done
        self.probes += other.probes
        self.probes_done += other.probes_done
        self.in_flight += other.in_flight
        self.away |= other.away

    @property
    def oldest(self) -> tuple[float, str] | None:
        """The age in seconds and the item of the oldest call in flight."""
        if not self.pending:
            return None
        started, item = min(self.pending.values())
        return time.monotonic() - started, item
