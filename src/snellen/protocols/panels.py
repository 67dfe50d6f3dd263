"""Judge panels: several judges on the same replies, and one verdict from their votes.

A panel wraps a protocol's flow and knows nothing of the protocol: every member goes through the
whole flow with calls of its own, on one and the same reply of the model. What a member concludes
is sealed until the votes are counted, so that no member's verdict is taken for the panel's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

from snellen.errors import UsageError
from snellen.flows import Flow, add_usage
from snellen.records import Outcome, ReplyRow, Request, Verdict

Rule = Literal["majority", "unanimity"]
RULES: tuple[Rule, ...] = ("majority", "unanimity")
JUDGE = "judge"
TIE, SPLIT, TOO_FEW = "panel_tie", "panel_split", "panel_too_few"


@dataclass(frozen=True, slots=True)
class Panel:
    """Who votes, and what makes a verdict.

    `majority`: what more than half of the valid votes say, else unscored. `unanimity`: what all
    valid votes say, else unscored. A vote is valid when the member's own verdict is scored; with
    fewer than `min_valid` there is no verdict.

    Raises:
        UsageError: the panel cannot come to a verdict as it is.
    """

    members: tuple[str, ...]
    rule: Rule = "majority"
    min_valid: int = 1

    def __post_init__(self) -> None:
        n = len(self.members)
        if n < 2 or len(set(self.members)) < n:
            raise UsageError(
                f"a panel needs several different judges, not {', '.join(self.members) or 'none'}",
                hint="repeat --judge, each time with another name",
            )
        if not 1 <= self.min_valid <= n:
            raise UsageError(
                f"{self.min_valid} valid votes cannot be asked of {n} judges",
                hint=f"give --min-valid from 1 to {n}",
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each member: `judge`, `judge2`, `judge3` ..."""
        return tuple(role_of(k) for k in range(len(self.members)))


def role_of(seat: int) -> str:
    """The role in which a member's calls are made.

    >>> role_of(0), role_of(1)
    ('judge', 'judge2')
    """
    return JUDGE if seat == 0 else f"{JUDGE}{seat + 1}"


@dataclass(frozen=True, slots=True)
class _Sealed:
    """What one member's flow, or a part of it, ended with."""

    result: Any


def ask_panel(
    make: Callable[[], Flow[Outcome]], panel: Panel, *, asks_model: bool = True
) -> Flow[Outcome]:
    """One item before a panel: the model is asked once, then every member judges its reply.

    `make` begins the protocol's flow of the item anew. `asks_model` says that this flow's first
    step is the model's reply, which all protocols begin with unless a control leaves it out.
    """
    first: list[ReplyRow] | None = (yield next(make())) if asks_model else None
    sealed = yield [_sit(make(), seat, first) for seat in range(len(panel.members))]
    outcomes: list[Outcome] = [one.result for one in sealed]
    ballots = zip(*(outcome.verdicts for outcome in outcomes), strict=True)
    return Outcome(outcomes[0].reply, tuple(count_votes(panel, votes) for votes in ballots))


def _sit(flow: Flow[Any], seat: int, first: list[ReplyRow] | None) -> Flow[_Sealed]:
    """A flow as one member goes through it; `first` answers its first step where given."""
    if first is not None:
        next(flow)
    answers: Any = first
    while True:
        try:
            wanted = flow.send(answers)
        except StopIteration as stop:
            return _Sealed(stop.value)
        given = yield [
            _to_seat(want, seat) if isinstance(want, Request) else _sit(want, seat, None)
            for want in wanted
        ]
        answers = [one.result if isinstance(one, _Sealed) else one for one in given]


def _to_seat(request: Request, seat: int) -> Request:
    """The request as a member's own: role, address and shared prefix apart from the others'."""
    if seat == 0 or request.role != JUDGE:
        return request
    return replace(
        request,
        role=role_of(seat),
        purpose=f"{request.purpose}{seat + 1}",
        lead=request.lead and f"{request.lead}\x1f{seat + 1}",
    )


def count_votes(panel: Panel, votes: Sequence[Verdict]) -> Verdict:
    """The panel's verdict on one probe, from the members' verdicts in their order.

    >>> def said(letter):
    ...     return Verdict("i", "q", letter, letter == "A", "scored")
    >>> count_votes(Panel(("x", "y", "z")), [said("A"), said("B"), said("A")]).verdict
    'A'
    >>> count_votes(Panel(("x", "y")), [said("A"), said("B")]).reason
    'panel_tie'
    """
    valid = [vote for vote in votes if vote.status == "scored"]
    if all(_same(vote, votes[0]) for vote in votes) and votes[0].reason and not votes[0].raw:
        return votes[0]  # settled without a judge, alike for all: a blank or a missing reply
    winner = _winner(panel, valid)
    common = replace(
        votes[0],
        raw=_words(panel, votes),
        usage=reduce(add_usage, (vote.usage for vote in votes)),
        note="",
        probabilities=None,
        votes={
            name: vote.verdict if vote.status == "scored" else None
            for name, vote in zip(panel.members, votes, strict=True)
        },
    )
    if isinstance(winner, str):
        return replace(common, verdict=None, correct=None, status="unscored", reason=winner)
    return replace(
        common,
        verdict=winner.verdict,
        correct=winner.correct,
        status="scored",
        reason=winner.reason,
    )


def _same(a: Verdict, b: Verdict) -> bool:
    return (a.verdict, a.status, a.reason, a.raw) == (b.verdict, b.status, b.reason, b.raw)


def _winner(panel: Panel, valid: Sequence[Verdict]) -> Verdict | str:
    """The vote that carries the panel, or why there is none."""
    if len(valid) < panel.min_valid:
        return TOO_FEW
    [(value, n), *others] = Counter(vote.verdict for vote in valid).most_common()
    if panel.rule == "unanimity" and others:
        return SPLIT
    if 2 * n <= len(valid):
        return TIE
    return next(vote for vote in valid if vote.verdict == value)


def _words(panel: Panel, votes: Sequence[Verdict]) -> str:
    said = zip(panel.members, votes, strict=True)
    return "\n".join(f"[{name}] {vote.raw or vote.reason or vote.verdict}" for name, vote in said)
