"""A job drives any number of roles and types of rows, as a builder of benchmarks needs them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.fakes.server import Behaviour, FakeServer

from snellen.endpoints.bind import Binding
from snellen.endpoints.http import ChatClient
from snellen.engine.cache import ResponseCache
from snellen.engine.counters import Counters
from snellen.engine.forecast import forecast
from snellen.engine.job import Batch, Job, Work, drive
from snellen.engine.scheduler import DriveOptions
from snellen.errors import INTERRUPTED, EndpointError, SnellenError
from snellen.flows import Flow
from snellen.records import CallFailure, Message, Reply, Request, Usage
from snellen.settings import Endpoint
from snellen.testing import ScriptedClient

PICTURES = tuple(f"picture-{k}" for k in range(6))
ROLES = ("describer", "author", "proposer", "juror")
CALLS = len(PICTURES) * (1 + 2 + 1 + 3)


@dataclass(frozen=True, slots=True)
class Caption:
    """What the first stage makes."""

    picture: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What the second stage makes, from captions."""

    picture: str
    text: str
    votes: int


def request(role: str, text: str, probe: str = "") -> Request:
    return Request(role, (Message("user", (text,)),), role, probe=probe)


def caption(picture: str) -> Flow[Caption]:
    """A description, and two authors who make a caption of it."""
    [seen] = yield [request("describer", f"describe {picture}")]
    drafts = yield [request("author", f"write {k}: {seen.text}", str(k)) for k in range(2)]
    return Caption(picture, max((d for d in drafts), key=lambda d: len(d.text)).text)


def statements(made: Caption) -> Flow[list[Statement]]:
    """A proposed statement before three jurors, each statement a child flow."""
    [proposed] = yield [request("proposer", f"propose on {made.text}")]
    found = yield [vote(made.picture, proposed.text)]
    return list(found)


def vote(picture: str, text: str) -> Flow[Statement]:
    votes = yield [request("juror", f"vote {k}: {text}", str(k)) for k in range(3)]
    return Statement(picture, text, sum(isinstance(v, Reply) and v.text == "yes" for v in votes))


@dataclass(slots=True)
class World:
    """A builder of two stages, the second made of the first one's rows."""

    client: ScriptedClient = field(default_factory=lambda: ScriptedClient(answer))
    captions: list[Caption] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def batches(self) -> Iterator[Batch]:
        yield Batch(self.first(), "captions", len(PICTURES))
        assert len(self.captions) == len(PICTURES)
        made = sorted(self.captions, key=lambda c: c.picture)
        yield Batch(((c.picture, 0, statements(c)) for c in made), "statements", len(made))

    def first(self) -> Iterator[Work]:
        for picture in PICTURES:
            yield picture, 0, caption(picture)

    def keep_caption(self, _item: str, _repeat: int, row: Caption) -> None:
        self.captions.append(row)

    def keep_statement(self, _item: str, _repeat: int, row: Statement) -> None:
        if row not in self.statements:  # a child flow gave it before
            self.statements.append(row)

    def job(self, **more: object) -> Job:
        endpoint = Endpoint("m", "http://127.0.0.1:1/v1", "m", concurrency=2)
        sinks = {Caption: self.keep_caption, Statement: self.keep_statement}
        bindings = {role: Binding(self.client, endpoint) for role in ROLES}
        return replace(Job(bindings, self.batches(), sinks=sinks), **more)  # type: ignore[arg-type]

    @property
    def rows(self) -> tuple[set[Caption], set[Statement]]:
        return set(self.captions), set(self.statements)


def answer(request: Request) -> Reply:
    text = str(request.messages[0].parts[0])
    said = {"describer": f"seen {text}", "juror": "yes" if "0" in text else "no"}
    return Reply(said.get(request.role, f"{request.role} of {text}"), usage=Usage(100, 10))


def drove(world: World, **more: object) -> object:
    return asyncio.run(asyncio.wait_for(drive(world.job(**more)), 30))


@pytest.fixture
def whole() -> tuple[set[Caption], set[Statement]]:
    """The rows of a job that nothing has disturbed."""
    world = World()
    asyncio.run(drive(world.job())).check()
    return world.rows


def test_rows_of_each_type_go_to_their_sink_and_feed_the_next_batch() -> None:
    """Four roles are asked, captions come before statements, children give rows too."""
    world = World()
    ended = asyncio.run(drive(world.job()))
    assert (ended.completed, ended.error, ended.exit_code(has_results=True)) == (True, None, 0)
    assert [c.picture for c in sorted(world.captions, key=lambda c: c.picture)] == [*PICTURES]
    assert len(world.statements) == len(PICTURES)
    assert {role: c.done for role, c in ended.counters.roles.items()} == {
        "describer": 6, "author": 12, "proposer": 6, "juror": 18,
    }  # fmt: skip
    ended.check()


def test_a_second_start_takes_every_reply_from_the_journal(
    tmp_path: Path, whole: tuple[set[Caption], set[Statement]]
) -> None:
    """Rows are the same, and no call is made."""
    first, second = World(), World(ScriptedClient([]))
    asyncio.run(drive(first.job(folder=tmp_path))).check()
    ended = asyncio.run(drive(second.job(folder=tmp_path)))
    assert (second.rows, second.client.seen) == (whole, [])
    assert sum(c.replayed for c in ended.counters.roles.values()) == CALLS


def test_ctrl_c_keeps_what_was_answered_and_the_next_start_asks_the_rest(
    tmp_path: Path, whole: tuple[set[Caption], set[Statement]]
) -> None:
    """No reply is lost and none is asked for twice but those in flight."""

    def interrupting(request: Request) -> Reply:
        if len(first.client.seen) == CALLS // 2:
            signal.raise_signal(signal.SIGINT)
        return answer(request)

    first, second = World(ScriptedClient(interrupting)), World()
    ended = asyncio.run(drive(first.job(folder=tmp_path)))
    assert (ended.completed, ended.interrupted) == (False, True)
    assert ended.exit_code(has_results=True) == INTERRUPTED
    with pytest.raises(SnellenError) as raised:
        ended.check()
    assert raised.value.exit_code == INTERRUPTED
    asyncio.run(drive(second.job(folder=tmp_path))).check()
    assert second.rows == whole
    assert len(first.client.seen) + len(second.client.seen) <= CALLS + 2


def test_a_budget_stops_a_job_and_a_higher_one_goes_on(
    tmp_path: Path, whole: tuple[set[Caption], set[Statement]]
) -> None:
    """The error says so, the exit code is 3, and what was paid for is not paid again."""

    def priced(world: World, max_cost_usd: float) -> Job:
        job = world.job(folder=tmp_path, options=DriveOptions(max_cost_usd=max_cost_usd))
        endpoint = Endpoint(
            "m", "http://127.0.0.1:1/v1", "m", params={"max_tokens": 10}, concurrency=2,
            price_in_usd=0.0, price_out_usd=1e6,
        )  # fmt: skip
        bound = {role: replace(b, endpoint=endpoint) for role, b in job.bindings.items()}
        return replace(job, bindings=bound)

    first, second = World(), World()
    ended = asyncio.run(drive(priced(first, 200.0)))
    assert "--max-cost 200" in str(ended.error)
    assert ended.exit_code(has_results=False) == 3
    assert len(first.client.seen) == 20
    asyncio.run(drive(priced(second, 1000.0))).check()
    assert (second.rows, len(second.client.seen)) == (whole, CALLS - 20)


def test_another_folder_takes_replies_from_the_cache(
    tmp_path: Path, whole: tuple[set[Caption], set[Statement]]
) -> None:
    """Where a cache is given, a second job pays for nothing."""
    for n in (CALLS, 0):
        world, cache = World(), ResponseCache(tmp_path / "replies.sqlite")
        asyncio.run(drive(world.job(folder=tmp_path / str(n), cache=cache))).check()
        cache.close()
        assert (world.rows, len(world.client.seen)) == (whole, n)


@pytest.mark.parametrize("looks", [True, False])
def test_a_wrong_key_of_any_role_stops_the_job_before_its_first_call(looks: bool) -> None:
    """With the look ahead; without it, the first call of that role tells."""
    world = World()
    with FakeServer("yes", Behaviour(key="right")) as server:
        endpoint = Endpoint("jury", server.url, "fake", key="wrong")
        job = world.job(preflight=looks)
        juror = Binding(ChatClient(endpoint), endpoint)
        ended = asyncio.run(drive(replace(job, bindings={**job.bindings, "juror": juror})))
    assert isinstance(ended.error, EndpointError)
    assert (ended.error.kind, ended.exit_code(has_results=False)) == ("auth", 1)
    assert (len(world.client.seen) == 0) is looks


def test_progress_is_shown_by_stage() -> None:
    """Each batch counts its own items."""
    seen: dict[str, tuple[int, int]] = {}

    @asynccontextmanager
    async def show(counters: Counters) -> AsyncIterator[None]:
        async def look() -> None:
            while True:
                seen[counters.stage] = (counters.n_items, counters.flows_done)
                await asyncio.sleep(0)

        task = asyncio.create_task(look())
        yield
        task.cancel()

    drove(World(), progress=show)
    assert set(seen) - {""} == {"captions", "statements"}
    assert all(n == len(PICTURES) and 0 < done <= n for n, done in list(seen.values())[-2:])


def test_a_forecast_counts_by_stage_and_role_and_sends_nothing(tmp_path: Path) -> None:
    """It makes no folder, and later stages are made of assumed rows."""
    world = World(ScriptedClient([]))
    job = world.job(folder=tmp_path / "out")
    found = forecast(job, answer, sinks=job.sinks)
    assert {s: {r: f.calls for r, f in roles.items()} for s, roles in found.stages.items()} == {
        "captions": {"describer": 6, "author": 12, "proposer": 0, "juror": 0},
        "statements": {"describer": 0, "author": 0, "proposer": 6, "juror": 18},
    }
    assert found.roles["juror"].completion_tokens == 180
    assert (world.client.seen, (tmp_path / "out").exists()) == ([], False)


def test_a_forecast_leaves_out_what_the_journal_holds(tmp_path: Path) -> None:
    """Failed calls are to be made again."""

    def failing(request: Request) -> Reply | CallFailure:
        return CallFailure("content_filter", "no") if request.role == "juror" else answer(request)

    drove(World(ScriptedClient(failing)), folder=tmp_path)
    world = World()
    job = world.job(folder=tmp_path)
    roles = forecast(job, answer, sinks=job.sinks).roles
    assert {role: (f.calls, f.stored) for role, f in roles.items()} == {
        "describer": (0, 6), "author": (0, 12), "proposer": (0, 6), "juror": (18, 0),
    }  # fmt: skip
