"""How fast an endpoint may be asked: adaptive limits, rates a minute, back-off, and the budget.

All of it is arithmetic on a clock that the caller passes in, so that it is tested without waiting.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from snellen.endpoints.failures import MAX_RETRY_AFTER_S
from snellen.errors import SettingsError
from snellen.records import CallFailure, Image, Params, Request, Usage
from snellen.settings import Endpoint

BASE_DELAY_S = 0.5
MAX_DELAY_S = 30.0
ASSUMED_COMPLETION_TOKENS = 4096
PICTURE_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried. Rate limits are told apart: they say nothing about the call."""

    max_tries: int = 6
    max_rate_limited: int = 40

    def allows(self, failure: CallFailure, *, tries: int, rate_limited: int) -> bool:
        """Whether a call that failed this way may be tried again."""
        if (failure.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            return False
        if failure.kind == "rate_limit":
            return rate_limited < self.max_rate_limited
        return tries - rate_limited < self.max_tries


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """How a run is driven.

    `max_live` bounds the flows that are under way at once. `patience_s` is how long a server that
    has answered before is waited for, in seconds; 0 waits for none.
    """

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_cost_usd: float | None = None
    max_live: int | None = None
    give_up_after: int = 8
    patience_s: float = 600.0
    seed: int = 0


def backoff_s(failure: CallFailure, *, tries: int, rng: random.Random) -> float:
    """The wait before the next try in seconds: full jitter, never less than Retry-After.

    >>> failure = CallFailure("rate_limit", "", retry_after_s=3)
    >>> wait = backoff_s(failure, tries=1, rng=random.Random(0))
    >>> 3 <= wait <= 3.5
    True
    """
    ceiling = min(MAX_DELAY_S, BASE_DELAY_S * 2.0 ** min(tries - 1, 10))
    jitter = rng.uniform(0, ceiling)
    if failure.retry_after_s is not None:
        return failure.retry_after_s + min(jitter, BASE_DELAY_S)
    return jitter


class AdaptiveLimit:
    """The number of calls in flight: cut by three tenths on a rate limit, at most once a second.

    It never exceeds `ceiling` and never falls below 1. A success adds 1/limit, so that one round
    of calls in flight adds one: it finds its way back, and finds a new limit gently.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._limit = float(ceiling)
        self._cut_at = float("-inf")

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        return max(1, int(self._limit))

    def set_ceiling(self, ceiling: int) -> None:
        """Sets another ceiling; a limit that stood at the old one goes with it."""
        is_free = self._limit >= self.ceiling
        self.ceiling = ceiling
        self._limit = float(ceiling) if is_free else min(self._limit, float(ceiling))

    def slow_down(self, at_s: float) -> None:
        """Notes a rate limit at a time in seconds."""
        if at_s - self._cut_at >= 1.0:
            self._limit = max(1.0, self._limit * 0.7)
            self._cut_at = at_s

    def speed_up(self) -> None:
        """Notes a success."""
        if self._limit < self.ceiling:
            self._limit = min(float(self.ceiling), self._limit + 1.0 / self._limit)


class MinuteRate:
    """A token bucket: at most `per_minute` units a minute, with one second's worth in advance.

    Raises:
        SettingsError: the rate is not above 0.
    """

    def __init__(self, per_minute: float | None) -> None:
        if per_minute is not None and not per_minute > 0:
            raise SettingsError(
                f"a limit of {per_minute:g} a minute lets no call through",
                hint="give a number above 0, or leave it out",
            )
        self._rate = None if per_minute is None else per_minute / 60.0
        self._burst = 0.0 if self._rate is None else max(1.0, self._rate)
        self._level = self._burst
        self._at = float("-inf")

    def set_rate(self, per_minute: float, at_s: float) -> None:
        """Sets another rate from a time on; what has gathered is kept, up to the new second."""
        self._refill(at_s)
        self._rate = per_minute / 60.0
        self._burst = max(1.0, self._rate)
        self._level = min(self._level, self._burst)

    def empty(self, at_s: float) -> None:
        """Takes all that has gathered by a time."""
        if self._rate is not None:
            self._refill(at_s)
            self._level = min(self._level, 0.0)

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._rate is not None

    def wait_s(self, at_s: float, amount: float = 1.0) -> float:
        """How long to wait before taking `amount`; 0 when it may be taken now."""
        if self._rate is None:
            return 0.0
        self._refill(at_s)
        need = min(amount, self._burst) - self._level
        return max(0.0, need / self._rate)

    def take(self, at_s: float, amount: float = 1.0) -> None:
        """Takes `amount`, which may leave a debt."""
        if self._rate is not None:
            self._refill(at_s)
            self._level -= amount

    def _refill(self, at_s: float) -> None:
        assert self._rate is not None
        if self._at > float("-inf"):
            self._level = min(self._burst, self._level + (at_s - self._at) * self._rate)
        self._at = at_s


def estimate_tokens(request: Request) -> int:
    """An upper estimate of a request's prompt tokens: half its UTF-8 bytes, and 4,096 a picture."""
    total = 16
    for message in request.messages:
        for part in message.parts:
            total += PICTURE_TOKENS if isinstance(part, Image) else len(part.encode()) // 2 + 4
    return total


def cost_usd(usage: Usage, endpoint: Endpoint) -> float | None:
    """What a call cost in US dollars; None when a price, or a count with a price, is unknown."""
    if endpoint.price_in_usd is None or endpoint.price_out_usd is None:
        return None
    if not (endpoint.price_in_usd or endpoint.price_out_usd or endpoint.price_cached_in_usd):
        return 0.0
    if usage.prompt is None or usage.completion is None:
        return None
    cached = min(usage.cached or 0, usage.prompt)
    cached_price = endpoint.price_cached_in_usd
    if cached_price is None:
        cached_price = endpoint.price_in_usd
    total = (usage.prompt - cached) * endpoint.price_in_usd + cached * cached_price
    return (total + usage.completion * endpoint.price_out_usd) / 1e6


def worst_cost_usd(request: Request, endpoint: Endpoint, params: Params) -> float:
    """The most that a call can cost, with 4,096 tokens assumed where no token limit is sent."""
    limit = params.get("max_tokens") or params.get("max_completion_tokens")
    # -1 stands for no limit with some servers.
    if isinstance(limit, int | float) and limit > 0:
        completion = int(limit)
    else:
        completion = ASSUMED_COMPLETION_TOKENS
    usage = Usage(prompt=estimate_tokens(request), completion=completion)
    return cost_usd(usage, endpoint) or 0.0


class Budget:
    """Money: the worst case is reserved when a call starts, and settled when it ends."""

    def __init__(self, max_usd: float | None) -> None:
        self.max_usd = max_usd
        self.spent_usd = 0.0
        self._reserved = 0.0

    def reserve(self, amount: float) -> bool:
        """Reserves an amount, unless that could exceed the budget."""
        if self.max_usd is not None and self.spent_usd + self._reserved + amount > self.max_usd:
            return False
        self._reserved += amount
        return True

    def settle(self, reserved: float, spent: float | None) -> None:
        """Replaces a reservation by what was spent; an unknown cost counts as the worst case."""
        self._reserved -= reserved
        self.spent_usd += reserved if spent is None else spent
