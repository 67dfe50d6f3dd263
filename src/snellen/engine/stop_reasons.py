"""Why a run stops before its end: endpoints without hope, money, inputs that have changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from snellen.engine.journal import CallRow
from snellen.engine.pacing import Budget
from snellen.errors import EndpointError, RunFolderError, SnellenError
from snellen.records import CallFailure
from snellen.settings import Endpoint

# Failures that say something about one item and nothing about the endpoint.
ITEM_FAILURES = frozenset({"input_error", "language", "context_length", "content_filter"})


@dataclass(slots=True)
class Streak:
    """Calls of one role that failed one after the other, all alike.

    One item's trouble is no streak: at least two items must have failed. An endpoint that has
    answered before is believed longer.
    """

    answered: bool = False
    kind: str = ""
    count: int = 0
    items: set[str] = field(default_factory=set)

    def broken(self) -> None:
        """Notes a reply."""
        self.answered = True
        if self.count:
            self.count = 0
            self.items.clear()

    def grown(self, failure: CallFailure, item: str) -> None:
        """Notes a failure."""
        if failure.kind in ITEM_FAILURES:
            return
        if failure.kind != self.kind:
            self.kind, self.count = failure.kind, 0
            self.items.clear()
        self.count += 1
        self.items.add(item)

    def is_hopeless(self, give_up_after: int, ceiling: int) -> bool:
        """Whether nobody seems to be there: `ceiling` is the number of calls in flight at most."""
        limit = max(give_up_after, 2 * ceiling) if self.answered else give_up_after
        return self.count >= limit and len(self.items) > 1


def changed(row: CallRow) -> RunFolderError:
    """The stored call at an address was another one."""
    probe = f", probe {row.probe}" if row.probe else ""
    return RunFolderError(
        f"the stored {row.purpose} call of item {row.item}{probe} was made with another request",
        hint="inputs have changed since this run began; use another --out",
    )


def hopeless(endpoint: Endpoint, failure: CallFailure) -> EndpointError:
    """A failure that no further call can mend."""
    hints = {
        "auth": "check the key: --api-key-env or --judge-key-env names the variable that holds it",
        "quota": "credit or the day's quota is used up; the same command goes on from here later",
        "unknown_model": "check URL and name; `snellen endpoint URL` lists the models that it has",
    }
    return EndpointError(
        f"{endpoint.name} at {endpoint.url}: {failure.message}",
        kind=failure.kind,
        hint=hints[failure.kind],
    )


def all_alike(endpoint: Endpoint, failure: CallFailure, streak: Streak) -> EndpointError:
    """A streak of failures that seems to have no end."""
    which = "last" if streak.answered else "first"
    return EndpointError(
        f"the {which} {streak.count} calls to {endpoint.name} at {endpoint.url} all failed alike "
        f"({failure.kind}): {failure.message}",
        kind=failure.kind,
        hint="`snellen endpoint URL --model NAME` says what the endpoint can do",
    )


def out_of_money(budget: Budget) -> SnellenError:
    """The next call could cost more than is left."""
    error = SnellenError(
        f"the next call could exceed --max-cost {budget.max_usd:g} USD "
        f"({budget.spent_usd:.4f} USD spent)",
        hint="start the same command with a higher --max-cost to go on from here",
    )
    error.exit_code = 3
    return error
