"""The scheduler fills slots, retries, stops, and leaves nothing hanging."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snellen.endpoints.bind import Binding
from snellen.endpoints.http import CallableModel
from snellen.engine import pacing, patience
from snellen.engine.cache import ResponseCache
from snellen.engine.journal import CallRow, Journal, read_rows
from snellen.engine.pacing import RetryPolicy
from snellen.engine.queues import Gates
from snellen.engine.scheduler import DriveOptions, Scheduler
from snellen.errors import EndpointError, RunFolderError, SnellenError, TemplateError
from snellen.flows import Flow
from snellen.records import Answer, CallFailure, FailureKind, Image, Message, Reply, Request, Usage
from snellen.settings import Endpoint
from snellen.testing import ScriptedClient

FAST = DriveOptions(retry=RetryPolicy(max_tries=3, max_rate_limited=5))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are of a few milliseconds."""
    monkeypatch.setattr(pacing, "BASE_DELAY_S", 0.002)
    monkeypatch.setattr(pacing, "MAX_DELAY_S", 0.01)


def ask(text: str, role: str = "model", **more: Any) -> Request:
    return Request(role, (Message("user", (text,)),), "reply", **more)


def asking(text: str, **more: Any) -> Flow[Answer]:
    [answer] = yield [ask(text, **more)]
    return answer  # type: ignore[no-any-return]


def bind(client: Any, url: str = "http://127.0.0.1:1/v1", **more: Any) -> Binding:
    return Binding(client, Endpoint("m", url, "m", **more))


class Results(dict[str, Any]):
    """What the flows ended with, by item."""

    def __call__(self, item: str, repeat: int, result: Any) -> None:
        self[item] = result


def drive(
    client: Any,
    work: Iterable[tuple[str, int, Flow[Any]]],
    *,
    options: DriveOptions = FAST,
    journal: Journal | None = None,
    **more: Any,
) -> tuple[Scheduler, Results]:
    """Drives flows against one client that plays all roles."""
    binding = client if isinstance(client, Binding) else bind(client, **more)
    results = Results()
    scheduler = Scheduler(
        {"model": binding, "judge": binding}, journal=journal, options=options, on_result=results
    )
    asyncio.run(asyncio.wait_for(scheduler.drive(work), 30))
    return scheduler, results


def some(n: int) -> list[tuple[str, int, Flow[Answer]]]:
    return [(f"i{k}", 0, asking(f"question {k}")) for k in range(n)]


def failing(kind: FailureKind, times: int, **more: Any) -> Callable[[Request], Reply | CallFailure]:
    """Each request fails `times` times before it is answered."""
    seen: Counter[Request] = Counter()

    def answer(request: Request) -> Reply | CallFailure:
        text = str(request.messages[0].parts[0])
        seen[text] += 1  # type: ignore[index]
        if seen[text] <= times:  # type: ignore[index]
            return CallFailure(kind, f"no: {kind}", **more)
        return Reply(f"to {text}", usage=Usage(10, 5))

    return answer


class TestDriving:
    def test_every_flow_gets_its_own_answers(self) -> None:
        """However many are under way, no answer goes astray."""
        client = ScriptedClient(failing("overload", 0), delay_s=0.001)
        _, results = drive(client, some(300), concurrency=20)
        texts = {name: reply.text for name, reply in results.items()}
        assert texts == {f"i{k}": f"to question {k}" for k in range(300)}

    def test_all_slots_are_full_while_there_is_work(self) -> None:
        """The limit is reached and never exceeded."""
        client = ScriptedClient(failing("overload", 0), delay_s=0.2)
        drive(client, some(400), concurrency=150)
        assert client.peak == 150

    def test_a_limit_belongs_to_the_address_whatever_the_role(self) -> None:
        """Model and judge behind one URL share its slots."""
        client = ScriptedClient(failing("overload", 0), delay_s=0.002)

        def both(k: int) -> Flow[Answer]:
            yield [ask(f"m{k}")]
            [answer] = yield [ask(f"j{k}", role="judge")]
            return answer  # type: ignore[no-any-return]

        drive(client, [(str(k), 0, both(k)) for k in range(60)], concurrency=7)
        assert client.peak == 7

    def test_children_run_side_by_side_and_answers_keep_their_order(self) -> None:
        """A flow gets its children's results in the order in which it named them."""

        async def late(messages: list[dict[str, Any]]) -> str:
            text = messages[0]["content"]
            await asyncio.sleep(0.01 if text.endswith("0") else 0)
            return text.upper()

        def parent() -> Flow[list[str]]:
            found = yield [asking(f"c{k}") for k in range(5)]
            return [a.text for a in found]

        _, results = drive(CallableModel(late), [("p", 0, parent())])
        assert results["p"] == ["C0", "C1", "C2", "C3", "C4"]

    def test_only_a_bounded_number_of_flows_is_under_way(self) -> None:
        """Input is streamed: what cannot be sent soon is not looked at yet."""
        begun, ahead = [0], []

        def work() -> Iterable[tuple[str, int, Flow[Answer]]]:
            for k in range(500):
                begun[0] += 1
                yield str(k), 0, asking(f"q{k}")

        def answer(request: Request) -> str:
            ahead.append(begun[0])
            return "ok"

        client = ScriptedClient(answer, delay_s=0.001)
        drive(client, work(), concurrency=10)
        done_before = range(len(ahead))
        assert max(b - d for b, d in zip(ahead, done_before, strict=True)) <= 20 + 10 + 1

    def test_a_very_long_chain_of_stored_calls_does_not_overflow_the_stack(
        self, tmp_path: Path
    ) -> None:
        """Thousands of stored answers in a row are given out one after the other."""

        def chain(n: int) -> Flow[int]:
            for k in range(n):
                yield [ask(f"step {k}", probe=str(k))]
            return n

        with Journal(tmp_path) as journal:
            drive(ScriptedClient(lambda _: "ok"), [("a", 0, chain(3000))], journal=journal)
        client = ScriptedClient([])
        with Journal(tmp_path) as journal:
            _, results = drive(client, [("a", 0, chain(3000))], journal=journal)
        assert (results["a"], client.seen) == (3000, [])

    def test_a_flow_that_wants_nothing_goes_on(self) -> None:
        """An empty list of wishes gets an empty list of answers."""

        def idle() -> Flow[str]:
            answers = yield []
            assert answers == []
            return "done"
            yield

        _, results = drive(ScriptedClient([]), [("a", 0, idle())])
        assert results["a"] == "done"

    def test_batches_are_driven_one_after_another(self) -> None:
        """The second batch is not looked at before the first has ended."""
        done = Results()

        def batches() -> Iterable[Sequence[tuple[str, int, Flow[Answer]]]]:
            yield some(20)
            assert len(done) == 20
            yield [("last", 0, asking("last"))]

        binding = bind(ScriptedClient(lambda _: "ok", delay_s=0.001), concurrency=4)
        scheduler = Scheduler({"model": binding}, on_result=done)
        asyncio.run(scheduler.drive_batches(batches()))
        assert len(done) == 21


class TestLeads:
    def test_the_first_with_a_prefix_goes_ahead_and_the_others_follow_its_reply(self) -> None:
        """The questions on one caption wait for the first; other captions do not."""
        started: list[tuple[str, float]] = []

        async def answer(messages: list[dict[str, Any]]) -> str:
            started.append((messages[0]["content"], time.monotonic()))
            await asyncio.sleep(0.01)
            return "ok"

        def caption(name: str) -> Flow[Any]:
            return (yield [asking(f"{name}{k}", lead=name, role="judge") for k in range(4)])

        drive(CallableModel(answer), [(n, 0, caption(n)) for n in "xy"])
        order = [text for text, _ in started]
        assert set(order[:2]) == {"x0", "y0"}
        assert {text[0] for text in order[2:5]} <= {"x", "y"}
        assert min(at for text, at in started if text[1] != "0") - started[0][1] >= 0.009

    def test_a_slow_first_call_holds_the_others_for_a_moment_only(self) -> None:
        """After 30 ms the rest go, reply or not."""
        client = ScriptedClient(lambda _: "ok", delay_s=0.3)

        def caption() -> Flow[Any]:
            return (yield [asking(f"q{k}", lead="x", role="judge") for k in range(4)])

        drive(client, [("x", 0, caption())])
        assert client.peak == 4

    def test_a_first_call_that_fails_releases_the_others(self) -> None:
        """A lead that must wait to be tried again is no barrier."""
        client = ScriptedClient(failing("overload", 2))

        def caption() -> Flow[Any]:
            return (yield [asking(f"q{k}", lead="x", role="judge") for k in range(6)])

        _, results = drive(client, [("x", 0, caption())])
        assert [a.text for a in results["x"]] == [f"to q{k}" for k in range(6)]

    def test_one_slot_does_not_deadlock(self) -> None:
        """With one call at a time all leads and followers get their turn."""
        client = ScriptedClient(lambda _: "ok")

        def caption(name: str) -> Flow[Any]:
            return (yield [asking(f"{name}{k}", lead=name, role="judge") for k in range(5)])

        drive(client, [(n, 0, caption(n)) for n in "abc"], concurrency=1)
        assert len(client.seen) == 15


class Server:
    """A server that is away for some of the calls that reach it."""

    def __init__(self, failure: CallFailure, *, away: range) -> None:
        self.failure, self.away = failure, away
        self.at_once: list[int] = []
        self.in_flight = 0
        self.n = 0

    async def call(self, request: Request, pictures: Sequence[Any] = ()) -> Answer:
        self.n, n = self.n + 1, self.n
        self.in_flight += 1
        self.at_once.append(self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        return self.failure if n in self.away else Reply("ok")

    async def close(self) -> None:
        pass


class TestPatience:
    @pytest.fixture(autouse=True)
    def short_probes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that is away is tried again every few milliseconds."""
        monkeypatch.setattr(patience, "FIRST_WAIT_S", 0.001)
        monkeypatch.setattr(patience, "LONGEST_WAIT_S", 0.002)

    @pytest.mark.parametrize(
        "failure",
        [
            CallFailure("connection", "refused", was_sent=False),
            CallFailure("connection", "reset"),
            CallFailure("overload", "loading", status=503),
            CallFailure("timeout", "gateway", status=504),
        ],
    )
    def test_a_server_that_comes_back_costs_no_call(self, failure: CallFailure) -> None:
        """Every call is answered in the end, and the wait is told at its begin and its end."""
        server, told = Server(failure, away=range(40, 90)), list[str]()
        results = Results()
        scheduler = Scheduler(
            {"model": bind(server, concurrency=8)},
            options=replace(FAST, patience_s=30.0), on_result=results, tell=told.append,
        )  # fmt: skip
        asyncio.run(asyncio.wait_for(scheduler.drive(some(100)), 30))
        assert (scheduler.error, scheduler.completed) == (None, True)
        assert all(isinstance(r, Reply) for r in results.values())
        assert (len(results), server.n) == (100, 150)
        assert ["waits for it until" in told[0], "answers again after" in told[1]] == [True, True]
        assert scheduler.counters.away == {}

    def test_one_call_at_a_time_probes_and_then_all_slots_are_full(self) -> None:
        """A server that starts again is not met by a crowd."""
        server = Server(CallFailure("connection", "refused"), away=range(40, 90))
        drive(server, some(200), options=replace(FAST, patience_s=30.0), concurrency=8)
        assert max(server.at_once[60:90]) == 1
        assert max(server.at_once[90:]) == 8

    def test_patience_ends(self, tmp_path: Path) -> None:
        """The run stops, and what was not answered is left for the next start."""
        failure = CallFailure("overload", "loading", status=503)
        server = Server(failure, away=range(40, 10**9))
        with Journal(tmp_path) as journal:
            scheduler, _ = drive(
                server, some(100), options=replace(FAST, patience_s=0.05), journal=journal,
                concurrency=8,
            )  # fmt: skip
        assert isinstance(scheduler.error, EndpointError)
        assert "--patience" in scheduler.error.hint
        rows = list(read_rows(tmp_path / "calls.jsonl", CallRow))
        assert len(rows) == 40
        assert all(r.reply is not None for r in rows)

    def test_a_server_that_never_answered_is_not_waited_for(self) -> None:
        """A wrong address would cost ten minutes."""
        server = Server(CallFailure("connection", "refused", was_sent=False), away=range(10**9))
        scheduler, _ = drive(server, some(100), concurrency=4)
        assert isinstance(scheduler.error, EndpointError)
        assert "first 8 calls" in scheduler.error.message

    def test_an_item_that_always_breaks_its_worker_is_no_absence(self) -> None:
        """Its call fails and the run ends, as the last one too."""
        failure = CallFailure("overload", "worker lost", status=503)
        client = ScriptedClient(lambda r: failure if r == ask("question 9") else Reply("ok"))
        scheduler, results = drive(client, some(10), concurrency=2)
        assert (scheduler.error, results["i9"]) == (None, failure)


class TestRetries:
    @pytest.mark.parametrize("kind", ["overload", "timeout", "connection", "bad_reply"])
    def test_passing_troubles_are_tried_again(self, kind: FailureKind) -> None:
        """Two failures and an answer are an answer, with three tries in its row."""
        scheduler, results = drive(ScriptedClient(failing(kind, 2)), some(5))
        assert all(isinstance(r, Reply) for r in results.values())
        assert scheduler.counters.roles["model"].retries == 10

    def test_rate_limits_do_not_count_as_tries(self) -> None:
        """Four rate limits pass where three tries are allowed."""
        _, results = drive(ScriptedClient(failing("rate_limit", 4)), some(5))
        assert all(isinstance(r, Reply) for r in results.values())

    def test_the_wait_that_an_endpoint_demands_is_kept(self) -> None:
        """The second try comes no earlier than Retry-After says."""
        at: list[float] = []
        inner = failing("rate_limit", 1, retry_after_s=0.2)

        def answer(request: Request) -> Reply | CallFailure:
            at.append(time.monotonic())
            return inner(request)

        drive(ScriptedClient(answer), some(1))
        assert at[1] - at[0] >= 0.2

    @pytest.mark.parametrize(
        "kind", ["context_length", "content_filter", "input_error", "language", "bad_parameter"]
    )
    def test_what_would_fail_again_is_asked_once(self, kind: FailureKind) -> None:
        """No second try, and the others finish."""
        inner = failing("overload", 0)
        client = ScriptedClient(
            lambda r: CallFailure(kind, "no") if r == ask("question 3") else inner(r)
        )
        scheduler, results = drive(client, some(10))
        assert results["i3"] == CallFailure(kind, "no")
        assert (len(client.seen), scheduler.error) == (10, None)

    def test_a_call_that_fails_for_ever_becomes_a_failure_and_no_more(self) -> None:
        """After its tries the flow gets the failure; everything else is answered."""
        inner = failing("overload", 0)
        client = ScriptedClient(
            lambda r: CallFailure("overload", "worker lost") if r == ask("question 3") else inner(r)
        )
        scheduler, results = drive(client, some(50))
        assert (results["i3"].kind, scheduler.error) == ("overload", None)
        assert sum(isinstance(r, Reply) for r in results.values()) == 49
        assert client.seen.count(ask("question 3")) == 3

    def test_a_rate_limit_lowers_what_is_in_flight(self) -> None:
        """After one cut seven slots of ten are left, and all calls are answered."""
        in_flight: list[int] = []
        now, full = [0], asyncio.Event()

        async def answer(messages: list[dict[str, Any]]) -> str | CallFailure:
            now[0] += 1
            in_flight.append(now[0])
            number = len(in_flight)
            if number >= 10:
                full.set()
            await full.wait()
            await asyncio.sleep(0.001)
            now[0] -= 1
            return CallFailure("rate_limit", "slow down") if number <= 10 else "ok"

        options = DriveOptions(retry=RetryPolicy(max_rate_limited=1000))
        _, results = drive(CallableModel(answer), some(60), options=options, concurrency=10)
        assert all(isinstance(r, Reply) for r in results.values())
        assert max(in_flight[:10]) == 10
        assert max(in_flight[20:30]) <= 8

    def test_an_endpoint_that_is_closed_for_the_day_stops_the_run(self) -> None:
        """A Retry-After of a day is not waited for."""
        client = ScriptedClient(lambda _: CallFailure("rate_limit", "come back", None, 86_400.0))
        scheduler, _ = drive(client, some(50))
        assert isinstance(scheduler.error, EndpointError)
        assert "come back" in scheduler.error.message

    def test_a_python_function_may_raise_anything(self) -> None:
        """What a model function raises is that call's failure."""

        def broken(messages: list[dict[str, Any]]) -> str:
            if "3" in messages[0]["content"]:
                raise ZeroDivisionError("by zero")
            return "ok"

        _, results = drive(CallableModel(broken), some(10))
        assert results["i3"].message == "ZeroDivisionError: by zero"
        assert sum(isinstance(r, Reply) for r in results.values()) == 9

    def test_a_call_cancelled_from_outside_is_a_failure_and_no_hang(self) -> None:
        """A client whose own task dies does not leave its flow waiting for ever."""

        async def dies(messages: list[dict[str, Any]]) -> str:
            raise asyncio.CancelledError

        _, results = drive(CallableModel(dies), some(1))
        assert results["i0"].kind == "bad_reply"


class TestStops:
    @pytest.mark.parametrize("kind", ["auth", "quota", "unknown_model"])
    def test_a_hopeless_failure_stops_at_once(self, kind: FailureKind) -> None:
        """One message, and no call after the first answers."""
        client = ScriptedClient(lambda _: CallFailure(kind, "HTTP 401: no"), delay_s=0.005)
        scheduler, _ = drive(client, some(100), concurrency=4)
        assert isinstance(scheduler.error, EndpointError)
        assert (scheduler.error.kind, len(client.seen)) == (kind, 4)
        assert scheduler.error.hint

    def test_the_first_calls_that_all_fail_alike_stop_the_run(self) -> None:
        """Eight failures of one kind on several items, and nothing else before them."""
        client = ScriptedClient(lambda _: CallFailure("bad_parameter", "HTTP 400: stop"))
        scheduler, _ = drive(client, some(500), concurrency=2)
        assert isinstance(scheduler.error, EndpointError)
        assert "first 8 calls" in scheduler.error.message
        assert "HTTP 400: stop" in scheduler.error.message
        assert len(client.seen) <= 12

    def test_failures_of_different_kinds_are_no_streak(self) -> None:
        """Only failures that are all alike say that nobody is there."""
        kinds: list[FailureKind] = ["bad_parameter", "bad_reply"]

        def answer(request: Request) -> CallFailure:
            return CallFailure(kinds[int(str(request.messages[0].parts[0]).split()[1]) % 2], "no")

        options = DriveOptions(retry=RetryPolicy(max_tries=1))
        scheduler, results = drive(ScriptedClient(answer), some(40), options=options, concurrency=1)
        assert (scheduler.error, len(results)) == (None, 40)

    def test_the_trouble_of_one_item_is_no_streak(self) -> None:
        """One caption whose questions all fail, first of all, does not stop the others."""

        def caption(name: str) -> Flow[Any]:
            return (yield [asking(f"{name}{k}", role="judge") for k in range(12)])

        client = ScriptedClient(
            lambda r: (
                CallFailure("bad_parameter", "no") if r.messages[0].parts[0][0] == "a" else "ok"
            )  # type: ignore[index]
        )
        scheduler, results = drive(client, [(n, 0, caption(n)) for n in "abc"], concurrency=2)
        assert scheduler.error is None
        assert all(isinstance(a, Reply) for a in results["b"] + results["c"])

    @pytest.mark.parametrize(
        "kind", ["context_length", "content_filter", "input_error", "language"]
    )
    def test_failures_of_items_are_no_streak(self, kind: FailureKind) -> None:
        """However many items are alike in what is wrong with them, the rest is asked."""
        client = ScriptedClient(
            lambda r: CallFailure(kind, "no") if len(client.seen) <= 30 else Reply("ok")
        )
        scheduler, results = drive(client, some(40), concurrency=2)
        assert scheduler.error is None
        assert sum(isinstance(r, Reply) for r in results.values()) == 10

    def test_an_endpoint_that_dies_on_the_way_stops_the_run(self) -> None:
        """Without patience: after answers, twice as many failures in a row as calls in flight."""
        client = ScriptedClient(
            lambda r: (
                Reply("ok") if len(client.seen) <= 50 else CallFailure("connection", "refused")
            )
        )
        options = replace(FAST, patience_s=0.0)
        scheduler, _ = drive(client, some(1000), options=options, concurrency=8)
        assert isinstance(scheduler.error, EndpointError)
        assert "last 16 calls" in scheduler.error.message

    @pytest.mark.parametrize(
        ("failure", "option"),
        [
            (CallFailure("context_length", "HTTP 400: too long"), "--judge-max-tokens"),
            (CallFailure("content_filter", "HTTP 400: blocked"), "another judge"),
            (Reply("", reasoning="A cat, so A."), "turn thinking off"),
        ],
    )
    def test_a_judge_that_fails_alike_on_every_item_stops_the_run(
        self, failure: Reply | CallFailure, option: str
    ) -> None:
        """Its context, its filter, or replies whose content is empty: the cause is named."""
        client = ScriptedClient(lambda _: failure)
        work = [(str(k), 0, asking(f"q{k}", role="judge")) for k in range(100)]
        scheduler, _ = drive(client, work, concurrency=2)
        assert isinstance(scheduler.error, EndpointError)
        assert option in scheduler.error.hint
        assert len(client.seen) <= 10

    def test_a_token_limit_beyond_the_context_stops_the_run(self) -> None:
        """It says nothing about items, whoever's limit it is."""
        said = "`max_tokens` is too large: the context has 4096 tokens"
        client = ScriptedClient(lambda _: CallFailure("context_length", said))
        scheduler, _ = drive(client, some(100), concurrency=2)
        assert isinstance(scheduler.error, EndpointError)
        assert "--max-tokens" in scheduler.error.hint

    def test_what_was_waiting_to_be_tried_again_is_left_for_the_next_start(
        self, tmp_path: Path
    ) -> None:
        """A stop makes no failures of calls that still had tries."""

        def answer(request: Request) -> CallFailure:
            if request == ask("question 5"):
                return CallFailure("auth", "HTTP 401")
            return CallFailure("overload", "busy")

        with Journal(tmp_path) as journal:
            drive(ScriptedClient(answer, delay_s=0.002), some(20), journal=journal, concurrency=6)
        rows = list(read_rows(tmp_path / "calls.jsonl", CallRow))
        assert [r.failure.kind for r in rows if r.failure is not None] == ["auth"]

    def test_calls_in_flight_at_a_stop_are_stored(self, tmp_path: Path) -> None:
        """Replies that were on their way are paid for, hence kept."""

        async def answer(messages: list[dict[str, Any]]) -> Any:
            if messages[0]["content"] == "question 2":
                await asyncio.sleep(0.02)
                return CallFailure("auth", "HTTP 401")
            await asyncio.sleep(0.05)
            return "ok"

        with Journal(tmp_path) as journal:
            drive(CallableModel(answer), some(100), journal=journal, concurrency=5)
        rows = list(read_rows(tmp_path / "calls.jsonl", CallRow))
        assert sum(r.reply is not None for r in rows) == 4

    def test_a_stop_does_not_wait_for_a_hanging_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a hopeless error what is in flight has a few seconds and no more."""
        monkeypatch.setattr("snellen.engine.scheduler.STOP_GRACE_S", 0.05)

        async def answer(messages: list[dict[str, Any]]) -> Any:
            if messages[0]["content"] == "question 2":
                return CallFailure("auth", "HTTP 401")
            await asyncio.sleep(3600)
            return "too late"

        scheduler, _ = drive(CallableModel(answer), some(100), concurrency=5)
        assert scheduler.error is not None

    def test_an_interrupt_ends_within_a_moment(self) -> None:
        """Hanging calls are cut off; a second one cuts them off at once."""

        async def go(times: int) -> float:
            client = ScriptedClient(lambda _: "ok", delay_s=3600)
            scheduler = Scheduler({"model": bind(client)})
            driving = asyncio.create_task(scheduler.drive(some(10)))
            await asyncio.sleep(0.01)
            started = time.monotonic()
            for _ in range(times):
                scheduler.interrupt()
            await driving
            assert scheduler.interrupted
            return time.monotonic() - started

        assert asyncio.run(go(1)) < 1.5
        assert asyncio.run(go(2)) < 0.5

    def test_an_interrupt_before_the_start_calls_nothing(self) -> None:
        """Nothing is sent, nothing hangs."""
        client = ScriptedClient([])
        scheduler = Scheduler({"model": bind(client)})
        scheduler.interrupt()
        asyncio.run(scheduler.drive(some(3)))
        assert client.seen == []

    def test_a_drive_that_is_cancelled_starts_nothing_more(self) -> None:
        """A caller who cancels gets its loop back without stray calls."""

        async def go() -> int:
            client = ScriptedClient(lambda _: "ok", delay_s=0.05)
            scheduler = Scheduler({"model": bind(client, concurrency=3)})
            driving = asyncio.create_task(scheduler.drive(some(50)))
            await asyncio.sleep(0.02)
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
            n = len(client.seen)
            await asyncio.sleep(0.1)
            assert len(asyncio.all_tasks()) == 1
            return len(client.seen) - n

        assert asyncio.run(go()) == 0


class TestDefects:
    def test_a_defect_in_a_flow_is_raised_and_does_not_hang(self) -> None:
        """A flow that raises after its answer ends the drive with that error."""

        def broken() -> Flow[None]:
            yield [ask("x")]
            raise KeyError("defect")

        with pytest.raises(KeyError, match="defect"):
            drive(ScriptedClient(lambda _: "ok"), [*some(5), ("b", 0, broken()), *some(5)])

    def test_a_defect_in_a_flow_before_its_first_call_is_raised(self) -> None:
        """Also where no call was made yet."""

        def broken() -> Flow[None]:
            raise KeyError("defect")
            yield

        with pytest.raises(KeyError, match="defect"):
            drive(ScriptedClient(lambda _: "ok"), [("b", 0, broken())])

    def test_a_defect_in_what_takes_results_is_raised(self) -> None:
        """Whoever stores results may not fail in silence."""

        def take(item: str, repeat: int, result: Any) -> None:
            raise RuntimeError("defect")

        scheduler = Scheduler({"model": bind(ScriptedClient(lambda _: "ok"))}, on_result=take)
        with pytest.raises(RuntimeError, match="defect"):
            asyncio.run(asyncio.wait_for(scheduler.drive(some(3)), 10))

    def test_an_expected_failure_of_a_flow_stops_the_run_with_its_words(self) -> None:
        """A prompt that cannot be filled is the user's to mend, and no traceback."""

        def broken() -> Flow[None]:
            yield [ask("x")]
            raise TemplateError("prompt p lacks {x}")

        scheduler, _ = drive(ScriptedClient(lambda _: "ok"), [("b", 0, broken())])
        assert scheduler.error is not None
        assert scheduler.error.message == "prompt p lacks {x}"

    def test_a_full_disk_stops_the_run_with_one_clear_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What stands in the journal stays whole, and the run can go on later."""
        write, written = os.write, [0]

        def full(fd: int, data: bytes) -> int:
            if written[0] > 1500:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written[0] += len(data)
            return write(fd, data)

        with Journal(tmp_path) as journal, monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            scheduler, _ = drive(
                ScriptedClient(failing("overload", 0), delay_s=0.001),
                some(100),
                journal=journal,
                concurrency=4,
            )
        assert isinstance(scheduler.error, RunFolderError)
        assert "No space left" in scheduler.error.message
        kept = len(list(read_rows(tmp_path / "calls.jsonl", CallRow)))
        assert kept >= 3
        client = ScriptedClient(failing("overload", 0))
        with Journal(tmp_path) as journal:
            _, results = drive(client, some(100), journal=journal)
        assert (len(results), len(client.seen)) == (100, 100 - kept)


class TestJournalAndCache:
    def test_nothing_reaches_a_flow_before_it_stands_in_the_journal(self, tmp_path: Path) -> None:
        """When a flow gets its answer, the row is in the file."""
        stored: list[int] = []

        def watching(k: int) -> Flow[None]:
            yield [ask(f"q{k}")]
            text = (tmp_path / "calls.jsonl").read_text(encoding="utf-8")
            stored.append(text.count(f'"item":"{k}"'))

        with Journal(tmp_path) as journal:
            work = [(str(k), 0, watching(k)) for k in range(20)]
            drive(ScriptedClient(lambda _: "ok"), work, journal=journal)
        assert stored == [1] * 20

    def test_a_second_start_repeats_exactly_what_failed(self, tmp_path: Path) -> None:
        """Answered calls are taken from the journal, failed ones are made again."""
        inner = failing("overload", 0)
        broken = ScriptedClient(
            lambda r: (
                CallFailure("overload", "x")
                if str(r.messages[0].parts[0])[-1] in "37"
                else inner(r)
            )
        )
        with Journal(tmp_path) as journal:
            drive(broken, some(10), journal=journal)
        healthy = ScriptedClient(failing("overload", 0))
        with Journal(tmp_path) as journal:
            scheduler, results = drive(healthy, some(10), journal=journal)
        assert healthy.seen == [ask("question 3"), ask("question 7")]
        assert all(isinstance(r, Reply) for r in results.values())
        assert scheduler.counters.roles["model"].replayed == 8

    def test_another_request_at_a_stored_address_is_refused(self, tmp_path: Path) -> None:
        """Inputs that changed are named, not silently mixed."""
        with Journal(tmp_path) as journal:
            drive(ScriptedClient(lambda _: "ok"), some(3), journal=journal)
        client = ScriptedClient([])
        with Journal(tmp_path) as journal:
            scheduler, _ = drive(client, [("i1", 0, asking("other"))], journal=journal)
        assert isinstance(scheduler.error, RunFolderError)
        assert "item i1" in scheduler.error.message
        assert client.seen == []

    def test_the_cache_spares_calls_and_only_replies_are_kept(self, tmp_path: Path) -> None:
        """Failures are asked again, answers are not."""

        def go(client: ScriptedClient, **endpoint: Any) -> Scheduler:
            cache = ResponseCache(tmp_path / "c.sqlite")
            binding = bind(client, **endpoint)
            scheduler = Scheduler({"model": binding}, cache=cache, options=FAST)
            asyncio.run(scheduler.drive(some(10)))
            cache.close()
            return scheduler

        inner = failing("overload", 0)
        first = ScriptedClient(
            lambda r: CallFailure("overload", "x") if r == ask("question 3") else inner(r)
        )
        go(first)
        second = ScriptedClient(failing("overload", 0))
        scheduler = go(second)
        assert second.seen == [ask("question 3")]
        assert scheduler.counters.roles["model"].cached == 9
        other = ScriptedClient(failing("overload", 0))
        go(other, params={"temperature": 1})
        assert len(other.seen) == 10

    def test_a_reply_that_its_limit_cut_is_not_served_under_another_limit(
        self, tmp_path: Path
    ) -> None:
        """And where no limit was sent, it is not kept at all."""

        def go(finish: str, **params: Any) -> int:
            cache = ResponseCache(tmp_path / "c.sqlite")
            client = ScriptedClient(lambda _: Reply("cut", finish_reason=finish))
            scheduler = Scheduler({"model": bind(client, params=params)}, cache=cache)
            asyncio.run(scheduler.drive(some(1)))
            cache.close()
            return len(client.seen)

        assert [go("length", max_tokens=5), go("length", max_tokens=5)] == [1, 0]
        assert [go("length", max_tokens=50), go("length"), go("length"), go("stop")] == [1] * 4
        assert go("stop") == 0

    def test_repeats_and_asks_are_entries_of_their_own(self, tmp_path: Path) -> None:
        """A second opinion is not the first one again."""
        client = ScriptedClient(lambda _: "ok")
        for _ in range(2):
            cache = ResponseCache(tmp_path / "c.sqlite")
            scheduler = Scheduler({"model": bind(client)}, cache=cache)
            work = [(f"a{r}", r, asking("same")) for r in range(3)]
            work += [(f"b{a}", 0, asking("same", ask=a)) for a in range(1, 3)]
            asyncio.run(scheduler.drive(work))
            cache.close()
        assert len(client.seen) == 5


PRICES = {"price_in_usd": 0.0, "price_out_usd": 1000.0, "params": {"max_tokens": 10}}


class TestBudget:
    """Each call costs 0.005 USD and could cost 0.01."""

    def spend(self, budget: float, n: int, **more: Any) -> tuple[Scheduler]:
        client = ScriptedClient(failing("overload", 0), delay_s=0.001)
        options = DriveOptions(max_cost_usd=budget, retry=FAST.retry)
        scheduler, _ = drive(bind(client, **PRICES), some(n), options=options, **more)
        return scheduler, client

    def test_a_budget_stops_the_run_before_it_is_exceeded(self) -> None:
        """The worst case of the next call must fit; the exit code is 3."""
        scheduler, client = self.spend(0.1001, 100)
        assert isinstance(scheduler.error, SnellenError)
        assert scheduler.error.exit_code == 3
        assert len(client.seen) == 19
        assert scheduler.counters.roles["model"].cost_usd == pytest.approx(0.095)

    def test_a_budget_that_suffices_stops_nothing(self) -> None:
        """Unused reservations are given back."""
        scheduler, client = self.spend(0.51, 100)
        assert (scheduler.error, len(client.seen)) == (None, 100)

    def test_a_budget_is_the_runs_and_not_a_starts(self, tmp_path: Path) -> None:
        """The same budget again spends nothing more; a larger one goes on."""
        with Journal(tmp_path) as journal:
            self.spend(0.1001, 100, journal=journal)
        with Journal(tmp_path) as journal:
            scheduler, client = self.spend(0.1001, 100, journal=journal)
        assert (len(client.seen), scheduler.error is not None) == (0, True)
        with Journal(tmp_path) as journal:
            scheduler, client = self.spend(0.2001, 100, journal=journal)
        assert len(client.seen) == 20
        assert scheduler.counters.roles["model"].cost_usd <= 0.2001

    def test_calls_that_may_have_been_charged_count_at_their_worst(self) -> None:
        """A time-out may have cost what a reply would."""
        client = ScriptedClient(failing("timeout", 2))
        options = DriveOptions(max_cost_usd=0.1, retry=FAST.retry)
        scheduler, _ = drive(bind(client, **PRICES, concurrency=1), some(100), options=options)
        assert scheduler.error is not None
        assert len(client.seen) <= 0.1 / 0.01 + 4

    def test_closed_connections_take_no_try(self) -> None:
        """With a single try, a call still outlives ten of them; retries are counted."""
        client = ScriptedClient(failing("connection", 10, is_stale=True))
        once = DriveOptions(retry=RetryPolicy(max_tries=1))
        scheduler, results = drive(bind(client), some(3), options=once)
        assert all(isinstance(answer, Reply) for answer in results.values())
        assert scheduler.counters.roles["model"].retries == 30

    def test_closed_connections_leave_a_calls_other_tries(self) -> None:
        """Three tries are three, whatever was closed before them."""
        told = [{"is_stale": True}] * 5 + [{}] * 2
        client = ScriptedClient([*(CallFailure("connection", "no", **t) for t in told), "ok"])
        options = DriveOptions(retry=RetryPolicy(max_tries=3))
        _, results = drive(bind(client), some(1), options=options)
        assert isinstance(results["i0"], Reply)

    def test_connections_that_always_close_are_a_failure(self) -> None:
        """Ten closed ones are pardoned and no more."""
        client = ScriptedClient(failing("connection", 99, is_stale=True))
        once = DriveOptions(retry=RetryPolicy(max_tries=1))
        _, results = drive(bind(client), some(1), options=once)
        assert all(isinstance(answer, CallFailure) for answer in results.values())
        assert len(client.seen) == 11

    def test_calls_that_never_went_out_cost_nothing(self) -> None:
        """A server that is down for a while uses up no money."""
        client = ScriptedClient(failing("connection", 2, was_sent=False))
        options = DriveOptions(max_cost_usd=0.1, retry=FAST.retry)
        scheduler, _ = drive(bind(client, **PRICES, concurrency=1), some(15), options=options)
        assert (scheduler.error, len(client.seen)) == (None, 45)


class TestRates:
    def test_requests_a_minute_are_kept(self) -> None:
        """600 a minute: ten at once, then one each tenth of a second."""
        client = ScriptedClient(lambda _: "ok")
        started = time.monotonic()
        drive(client, some(15), requests_per_minute=600)
        assert time.monotonic() - started >= 0.45

    @pytest.mark.slow
    def test_tokens_a_minute_are_kept(self) -> None:
        """A large call is let through and the next waits for its debt."""
        at: list[float] = []

        def answer(request: Request) -> str:
            at.append(time.monotonic())
            return "ok"

        text = "x" * 200  # counts as 120
        work = [(str(k), 0, asking(f"{text}{k}")) for k in range(3)]
        drive(ScriptedClient(answer), work, tokens_per_minute=6_000)
        assert at[2] - at[0] >= 1.2


def test_pictures_in_preparation_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lanes, few bytes allowed: one picture after the other, and no deadlock."""
    from tests.worlds.benchmark_files import png

    from snellen.pictures import prepare

    monkeypatch.setattr("snellen.engine.scheduler.MAX_PREPARED_BYTES", 2**20)
    (tmp_path / "a.png").write_bytes(png())
    image: Image = prepare.image_from_path(tmp_path / "a.png")
    clients = [ScriptedClient(lambda _: "ok", delay_s=0.001) for _ in range(2)]
    bindings = {
        "model": bind(clients[0], "http://127.0.0.1:1/v1"),
        "judge": bind(clients[1], "http://127.0.0.1:2/v1"),
    }

    def looking(k: int) -> Flow[Any]:
        requests = [
            Request(role, (Message("user", (image, f"{k}")),), role) for role in ("model", "judge")
        ]
        return (yield requests)

    scheduler = Scheduler(bindings)
    work = [(str(k), 0, looking(k)) for k in range(20)]
    asyncio.run(asyncio.wait_for(scheduler.drive(work), 20))
    assert [len(c.seen) for c in clients] == [20, 20]
    assert max(c.peak for c in clients) <= 2


def test_a_broken_picture_is_its_items_failure(tmp_path: Path) -> None:
    """No call is made for it, and the others go on."""
    (tmp_path / "a.png").write_bytes(b"no picture at all")
    image = Image("a.png", "", str(tmp_path / "a.png"))

    def looking() -> Flow[Any]:
        [answer] = yield [Request("model", (Message("user", (image, "?")),), "reply")]
        return answer

    client = ScriptedClient(lambda _: "ok")
    _, results = drive(client, [("bad", 0, looking()), *some(3)])
    assert (results["bad"].kind, len(client.seen)) == ("input_error", 3)


def test_the_counters_name_the_oldest_call_in_flight() -> None:
    """Its item and its age."""

    async def go() -> tuple[float, str] | None:
        asked, seen = asyncio.Event(), asyncio.Event()

        async def late(messages: list[dict[str, Any]]) -> str:
            asked.set()
            await seen.wait()
            return "ok"

        scheduler = Scheduler({"model": bind(CallableModel(late))})
        driving = asyncio.create_task(scheduler.drive(some(1)))
        await asked.wait()
        await asyncio.sleep(0.02)
        oldest = scheduler.counters.oldest
        seen.set()
        await driving
        assert scheduler.counters.oldest is None
        return oldest

    found = asyncio.run(go())
    assert found is not None
    assert found[1] == "i0"
    assert found[0] > 0.01


def test_an_interrupt_after_the_last_call_leaves_the_run_complete() -> None:
    """What was done is done."""
    scheduler, results = drive(ScriptedClient(lambda _: "ok"), some(3))
    scheduler.interrupt()
    assert (scheduler.completed, len(results)) == (True, 3)


class TestSideBySide:
    def test_schedulers_share_the_limit_of_an_address(self) -> None:
        """Both get on, and together have no more calls in flight than the limit."""
        client = ScriptedClient(failing("overload", 0), delay_s=0.002)
        gates: Gates = {}
        results = [Results(), Results()]

        async def both() -> None:
            schedulers = [
                Scheduler({"model": bind(client, concurrency=4)}, on_result=one, gates=gates)
                for one in results
            ]
            await asyncio.gather(*(one.drive(some(50)) for one in schedulers))

        asyncio.run(asyncio.wait_for(both(), 30))
        assert [len(one) for one in results] == [50, 50]
        assert client.peak == 4

    def test_a_stopped_run_frees_its_slots_for_the_others(self) -> None:
        """What a run that ends by an error held is taken up by the run beside it."""
        gates: Gates = {}
        slow = ScriptedClient(failing("overload", 0), delay_s=0.001)
        refusing = ScriptedClient(failing("auth", 1000), delay_s=0.001)
        results = Results()

        async def both() -> None:
            ends = [
                Scheduler({"model": bind(refusing, concurrency=2)}, options=FAST, gates=gates),
                Scheduler({"model": bind(slow, concurrency=2)}, on_result=results, gates=gates),
            ]
            await asyncio.gather(*(end.drive(some(20)) for end in ends))
            assert ends[0].error is not None

        asyncio.run(asyncio.wait_for(both(), 30))
        assert len(results) == 20
