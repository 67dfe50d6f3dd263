"""Pacing is arithmetic on a clock that the caller passes in."""

from __future__ import annotations

import random

import pytest

from snellen.engine.pacing import (
    MAX_RETRY_AFTER_S,
    AdaptiveLimit,
    Budget,
    MinuteRate,
    RetryPolicy,
    backoff_s,
    cost_usd,
    estimate_tokens,
    worst_cost_usd,
)
from snellen.errors import SettingsError
from snellen.records import CallFailure, Image, Message, Request, Usage
from snellen.settings import Endpoint

PRICED = Endpoint("m", "http://127.0.0.1/v1", "m", price_in_usd=2.0, price_out_usd=10.0)
OVERLOAD = CallFailure("overload", "busy")
LIMITED = CallFailure("rate_limit", "slow down")


def ask(*parts: str | Image) -> Request:
    return Request("model", (Message("user", parts),), "reply")


def test_the_backoff_doubles_its_ceiling_and_jitters_over_all_of_it() -> None:
    """Waits spread from 0 to a ceiling that doubles from half a second up to 30 s."""
    rng = random.Random(1)
    for tries, ceiling in ((1, 0.5), (2, 1.0), (4, 4.0), (9, 30.0), (500, 30.0)):
        waits = [backoff_s(OVERLOAD, tries=tries, rng=rng) for _ in range(400)]
        assert 0 <= min(waits) < 0.1 * ceiling
        assert 0.9 * ceiling < max(waits) <= ceiling


def test_a_wait_is_never_shorter_than_the_endpoint_demands() -> None:
    """Retry-After is a floor, with a little jitter on top."""
    failure = CallFailure("rate_limit", "", retry_after_s=7.0)
    waits = [backoff_s(failure, tries=9, rng=random.Random(k)) for k in range(100)]
    assert 7.0 <= min(waits) < max(waits) <= 7.5


def test_rate_limits_do_not_use_up_the_tries_of_a_call() -> None:
    """Tries count without those that were rate limited; rate limits have a bound of their own."""
    policy = RetryPolicy(max_tries=3, max_rate_limited=5)
    assert policy.allows(OVERLOAD, tries=2, rate_limited=0)
    assert not policy.allows(OVERLOAD, tries=3, rate_limited=0)
    assert policy.allows(OVERLOAD, tries=6, rate_limited=4)
    assert policy.allows(LIMITED, tries=4, rate_limited=4)
    assert not policy.allows(LIMITED, tries=5, rate_limited=5)


def test_an_endpoint_that_has_closed_for_the_day_is_not_waited_for() -> None:
    """A Retry-After of more than ten minutes ends the call."""
    patient = CallFailure("rate_limit", "", retry_after_s=MAX_RETRY_AFTER_S)
    closed = CallFailure("rate_limit", "", retry_after_s=86_400.0)
    assert RetryPolicy().allows(patient, tries=1, rate_limited=1)
    assert not RetryPolicy().allows(closed, tries=1, rate_limited=1)


def test_the_limit_falls_once_a_second_and_climbs_back_by_one_a_round() -> None:
    """A burst of rate limits cuts once; as many successes as are in flight add one."""
    limit = AdaptiveLimit(100)
    for _ in range(50):
        limit.slow_down(10.0)
    assert limit.limit == 70
    limit.slow_down(11.5)
    assert limit.limit == 49
    for _ in range(50):
        limit.speed_up()
    assert limit.limit == 50
    for _ in range(20_000):
        limit.speed_up()
    assert limit.limit == 100


def test_the_limit_never_falls_below_one() -> None:
    """However often it is cut, one call may be in flight."""
    limit = AdaptiveLimit(4)
    for second in range(100):
        limit.slow_down(2.0 * second)
    assert limit.limit == 1


def test_a_minute_rate_lets_its_amount_through_and_no_more() -> None:
    """120 a minute are two at once, then one each half second."""
    rate = MinuteRate(120)
    at, taken = 0.0, 0
    while at < 60.0:
        wait = rate.wait_s(at)
        if wait == 0:
            rate.take(at)
            taken += 1
        at += max(wait, 1e-3)
    assert 119 <= taken <= 122


def test_one_huge_call_passes_and_leaves_a_debt() -> None:
    """A call of more tokens than a second's worth is let through, and the next waits for it."""
    rate = MinuteRate(600)
    assert rate.wait_s(0.0) == 0.0
    rate.take(0.0, 100)
    assert rate.wait_s(0.0) == pytest.approx(9.1)
    assert rate.wait_s(9.2) == 0.0


def test_no_rate_is_no_wait() -> None:
    """None limits nothing."""
    rate = MinuteRate(None)
    rate.take(0.0, 10**9)
    assert (rate.limited, rate.wait_s(0.0)) == (False, 0.0)


@pytest.mark.parametrize("nonsense", [0, -5, float("nan")])
def test_a_rate_that_lets_nothing_through_is_refused(nonsense: float) -> None:
    """A rate of 0 a minute would wait for ever."""
    with pytest.raises(SettingsError, match="lets no call through"):
        MinuteRate(nonsense)


def test_the_cost_of_a_call_counts_cached_tokens_at_their_own_price() -> None:
    """Cached prompt tokens cost what is set for them, or the full price."""
    usage = Usage(prompt=1_000_000, completion=100_000, cached=400_000)
    assert cost_usd(usage, PRICED) == pytest.approx(3.0)
    cheaper = Endpoint("m", "", "m", price_in_usd=2, price_out_usd=10, price_cached_in_usd=0.5)
    assert cost_usd(usage, cheaper) == pytest.approx(1.2 + 0.2 + 1.0)
    apart = Usage(prompt=100_000, completion=0, cached=400_000)  # cached ones not in the prompt's
    assert cost_usd(apart, PRICED) == pytest.approx(0.2)
    assert cost_usd(apart, cheaper) == pytest.approx(0.05)


def test_an_unknown_price_or_count_is_an_unknown_cost() -> None:
    """None, never 0."""
    assert cost_usd(Usage(prompt=1), PRICED) is None
    assert cost_usd(Usage(prompt=1, completion=1), Endpoint("m", "", "m")) is None


def test_what_is_free_costs_nothing_however_much_it_was() -> None:
    """Counts are not needed where every price is 0."""
    free = Endpoint("m", "", "m", price_in_usd=0, price_out_usd=0)
    assert cost_usd(Usage(), free) == 0.0


def test_the_worst_case_covers_what_a_call_can_cost() -> None:
    """Estimates are upper ones: for English, Chinese and digits, with the limit that is sent."""
    from snellen.tokens import count_tokens

    for text in (
        "A red bus stands near a tree. " * 40,
        "一辆红色的公共汽车停在树旁" * 30,
        "3141592653" * 40,
    ):
        assert estimate_tokens(ask(text)) >= count_tokens([text])[0]
    worst = worst_cost_usd(ask("x" * 2000), PRICED, {"max_tokens": 500})
    assert worst == pytest.approx((estimate_tokens(ask("x" * 2000)) * 2 + 500 * 10) / 1e6)
    assert worst_cost_usd(ask("x"), PRICED, {}) > worst_cost_usd(
        ask("x"), PRICED, {"max_tokens": 9}
    )
    for no_limit in (-1, 0, None, "many"):
        unlimited = worst_cost_usd(ask("x"), PRICED, {"max_tokens": no_limit})
        assert unlimited == worst_cost_usd(ask("x"), PRICED, {})
    picture = Image("a.png", "d", "a.png")
    assert estimate_tokens(ask(picture, "What is it?")) > 4096


def test_a_budget_is_never_exceeded_whatever_calls_turn_out_to_cost() -> None:
    """Reserved worst cases and settled costs together stay within the budget."""
    rng = random.Random(3)
    budget = Budget(1.0)
    in_flight: list[float] = []
    for _ in range(2000):
        worst = rng.uniform(0.0, 0.1)
        if budget.reserve(worst):
            in_flight.append(worst)
        if in_flight and rng.random() < 0.5:
            reserved = in_flight.pop(rng.randrange(len(in_flight)))
            spent = None if rng.random() < 0.1 else reserved * rng.random()
            budget.settle(reserved, spent)
        assert budget.spent_usd + sum(in_flight) <= 1.0 + 1e-9
    assert budget.spent_usd > 0.8


def test_no_budget_reserves_anything() -> None:
    """None is no limit."""
    assert Budget(None).reserve(1e9)


def test_a_rate_may_change_while_calls_wait() -> None:
    """What has gathered stays, up to one second of the new rate; emptied, it fills anew."""
    rate = MinuteRate(600)
    rate.set_rate(120, 0.0)
    for _ in range(2):
        assert rate.wait_s(0.0) == 0.0
        rate.take(0.0)
    assert rate.wait_s(0.0) == pytest.approx(0.5)
    rate.set_rate(600, 1.0)
    rate.empty(1.0)
    assert rate.wait_s(1.0) == pytest.approx(0.1)
    MinuteRate(None).empty(0.0)


def test_another_ceiling_frees_a_limit_that_stood_at_the_old_one() -> None:
    limit = AdaptiveLimit(9)
    limit.set_ceiling(3)
    assert limit.limit == 3
    limit.set_ceiling(30)
    assert limit.limit == 30
    limit.slow_down(0.0)
    limit.set_ceiling(60)
    assert limit.limit == 21
