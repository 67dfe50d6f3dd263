"""Wait for a server that is away: a restart or a broken line must not cost a run.

Pure arithmetic on a clock that the caller passes in, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snellen.records import CallFailure

# So many failures in a row, with no reply in between, mean that the server is away.
AWAY_AFTER = 6
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 5.0
# Statuses with which gateways and loading servers say that nobody is behind them.
AWAY_STATUSES = frozenset({502, 503, 504, 521, 522, 523, 524, 529})


def says_away(failure: CallFailure) -> bool:
    """Whether a failure looks like a server that is away: no connection, or a gateway's word.

    >>> says_away(CallFailure("overload", "loading", status=503))
    True
    >>> says_away(CallFailure("overload", "worker lost", status=500))
    False
    """
    if failure.kind == "connection":
        return not failure.is_stale
    return failure.kind in ("overload", "timeout") and failure.status in AWAY_STATUSES


@dataclass(slots=True)
class Presence:
    """Whether a server is there. One that has never answered is never waited for.

    `patience_s` bounds a wait; 0 waits for nobody. `since_s` and `until_s` are those of the wait
    under way.
    """

    patience_s: float
    answered: bool = False
    is_away: bool = False
    since_s: float = 0.0
    until_s: float = 0.0
    _count: int = 0
    _calls: set[int] = field(default_factory=set)
    _waits: int = 0

    def note_reply(self) -> bool:
        """Notes a reply; whether it ends a wait."""
        self.answered = True
        if not self._count:
            return False
        was_away, self.is_away = self.is_away, False
        self._count = self._waits = 0
        self._calls.clear()
        return was_away

    def note_failure(self, failure: CallFailure, *, call: int, at_s: float) -> bool:
        """Notes the failure of a call, by a number of its own; whether the server is away.

        One call that always fails is no absence, unless there is not even a connection.
        """
        if not self.answered or not self.patience_s or not says_away(failure):
            return self.is_away
        if not self._count:
            self.since_s, self.until_s = at_s, at_s + self.patience_s
        self._count += 1
        self._calls.add(call)
        if self._count >= AWAY_AFTER and (len(self._calls) > 1 or not failure.was_sent):
            self.is_away = True
        return self.is_away

    def is_over(self, at_s: float) -> bool:
        """Whether patience has ended."""
        return self.is_away and at_s >= self.until_s

    def next_wait_s(self, failure: CallFailure, *, at_s: float) -> float:
        """How long to wait before the next probe: longer each time, at most until the end."""
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._waits, 10))
        self._waits += 1
        return max(0.0, min(max(wait, failure.retry_after_s or 0.0), self.until_s - at_s))
