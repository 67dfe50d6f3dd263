"""Why a run stops before its end: endpoints without hope, money, inputs that have changed."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from snellen.engine.journal import CallRow
from snellen.engine.pacing import Budget
from snellen.engine.patience import Presence
from snellen.errors import EndpointError, RunFolderError, SnellenError
from snellen.records import CallFailure, Reply
from snellen.settings import Endpoint

EMPTY = "the reply has no content"
# Failures that say something about one item and nothing about the endpoint.
ITEM_FAILURES = frozenset({"input_error", "language", "context_length", "content_filter"})
# Those that say something about the endpoint where a judge has them.
JUDGE_FAILURES = frozenset({"context_length", "content_filter"})
_ASKS_TOO_MUCH = re.compile(r"max_(completion_)?tokens")


@dataclass(slots=True)
class Streak:
    """Calls of one role that failed one after the other, all alike.

    One item's trouble is no streak: at least two items must have failed. An endpoint that has
    answered before is believed longer. A judge gets every item's text in the same form, so that
    its filter, its context and its empty replies are trouble of the endpoint.
    """

    role: str
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
        counts = failure.kind not in ITEM_FAILURES or bool(_ASKS_TOO_MUCH.search(failure.message))
        if not counts and not (is_judge(self.role) and failure.kind in JUDGE_FAILURES):
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


def is_judge(role: str) -> bool:
    """Whether a role is that of a judge, alone or in a panel: it gets all items in one form."""
    return role.startswith("judge")


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
        hint=_hint(failure, streak.role),
    )


def _hint(failure: CallFailure, role: str) -> str:
    limit = "--max-tokens" if role == "model" else "--judge-max-tokens"
    if failure.kind == "context_length":
        return f"give a lower {limit}, or serve the model with a longer context"
    if failure.message.startswith(EMPTY):
        return f"the whole reply may go into thoughts: give a higher {limit}, or turn thinking off"
    if failure.kind == "content_filter":
        return "the endpoint's filter takes the texts that are judged: use another judge"
    return "`snellen endpoint URL --model NAME` says what the endpoint can do"


def empty_reply(reply: Reply) -> CallFailure:
    """A reply without content as a failure, for counting such replies."""
    n = len(reply.reasoning or "")
    thought = f", and {n} characters in the reasoning field" if n else ""
    return CallFailure("bad_reply", EMPTY + thought)


def waits(name: str, failure: CallFailure, *, since_s: float, until_s: float) -> str:
    """What is told when a server is away; times are seconds of the system's clock."""
    since, until = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (since_s, until_s))
    return (
        f"{name} has not answered since {since} ({failure.message}); the run waits for it until "
        f"{until}"
    )


def stayed_away(name: str, failure: CallFailure, presence: Presence) -> EndpointError:
    """A server that has not come back while it was waited for."""
    return EndpointError(
        f"{name} has not answered for {presence.until_s - presence.since_s:.0f} s: "
        f"{failure.message}",
        kind=failure.kind,
        hint="the same command goes on from here; --patience SECONDS waits longer",
    )


class OutOfMoneyError(SnellenError):
    """The next call could cost more than the budget holds."""

    exit_code = 3


def out_of_money(budget: Budget) -> OutOfMoneyError:
    """The next call could cost more than is left."""
    return OutOfMoneyError(
        f"the next call could exceed --max-cost {budget.max_usd:g} USD "
        f"({budget.spent_usd:.4f} USD spent)",
        hint="start the same command with a higher --max-cost to go on from here",
    )
