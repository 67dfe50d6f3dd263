"""Score replies while a model is trained: the judging of an evaluation, reply by reply."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack
from weakref import WeakKeyDictionary

import numpy as np

from snellen import tokens
from snellen.api import Judging, RunArguments
from snellen.endpoints.bind import KeptOpen
from snellen.endpoints.chat_format import plain_messages
from snellen.endpoints.http import ChatClient
from snellen.engine.job import Batch, Job, Work, drive
from snellen.engine.journal import Journal
from snellen.engine.queues import Gates, images_of
from snellen.engine.signals import hand_on
from snellen.errors import DataError, EndpointError, SnellenError, UsageError
from snellen.flows import given_rows
from snellen.keys import digest_of, seed_for
from snellen.metrics import probe_table
from snellen.pictures.prepare import prepare
from snellen.protocols import protocol_of
from snellen.records import Benchmark, Item, JsonObject, Outcome, Request
from snellen.runs.folder import write_json
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest, Source, refuse_unknown
from snellen.runs.run import Plan, flow_of, spec_of
from snellen.schemas import nearest

# Calls of one sample each that come within this time are judged together.
WINDOW_S = 0.005
# Scores that are kept in memory, since the replies of a group are often the same.
KEPT_SCORES = 100_000
AWAY = "check the address, and `snellen endpoint URL`; what was judged before is kept"
# Arguments of a run that mean nothing where replies come one by one.
MEANINGLESS = ("repeat", "control", "max_cost", "allow_blank", "keep_unreadable")
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one reply.

    `value` is the metric over scored probes, less the length term. `parts` holds every metric of
    the protocol over scored probes (None where it has no value for this reply), and
    `length_penalty`. `tokens` counts the reply's tokens. `n` is the number of probes, `unscored`
    how many of them have no verdict; `is_scored` is False where `value` is the stated one.
    """

    value: float
    parts: Mapping[str, float | None]
    tokens: int
    n: int
    unscored: int
    is_scored: bool = True

    def __float__(self) -> float:
        """The value."""
        return self.value


_Judged = tuple[dict[Key, Score | None], SnellenError | None]


@dataclass(slots=True)
class _Loop:
    """What belongs to one event loop: replies that wait, and how many drives are under way."""

    waiting: dict[Key, str] = field(default_factory=dict)
    results: dict[Key, asyncio.Future[Score | None]] = field(default_factory=dict)
    gates: Gates = field(default_factory=dict)
    drives: set[asyncio.Task[_Judged]] = field(default_factory=set)


class Scorer:
    """Scores replies to the items of a benchmark, for use as a reward.

    `benchmark` and `judge`, and the arguments about data, judge and protocol, are those of
    `snellen.run`. `metric` is a name of the protocol's; by default its headline. A reply whose
    share of unscored probes is above `max_unscored`, or whose metric has no value, has no score:
    then `score` gives None for it, or `unscored` where that is a number. `length_weight` is taken
    off for every 1,000 tokens of a reply, since descriptions that only grow longer gain coverage.

    `out` is a folder for the journal: a reply that was judged is never paid for again, by this
    process or by the next. Settings that would change a number, and the processes of a training
    (by their RANK), have folders of their own below it. Without `out` scores are kept in memory.

    >>> scorer = Scorer("mini-reading", judge="embedded")
    >>> [score] = scorer.score_now(["A tabby cat sleeps on a blue sofa."], ["cat"])
    >>> score.n
    12

    Raises:
        UsageError: an argument or the metric is unknown, or has no meaning here.
        DataError: the benchmark cannot be read.
    """

    def __init__(
        self,
        benchmark: Source | Benchmark,
        judge: Judging,
        metric: str = "",
        *,
        unscored: float | None = None,
        length_weight: float = 0.0,
        **more: Unpack[RunArguments],
    ) -> None:
        refuse_unknown(more)
        for name in MEANINGLESS:
            if name in more:
                raise UsageError(f"`{name}` has no meaning for a scorer", hint="leave it out")
        out = more.get("out")
        request = RunRequest(benchmark=benchmark, judge=judge, replies={}, **more)
        self._plan = make_plan(request)
        self.benchmark = self._plan.benchmark
        self._protocol = protocol_of(self.benchmark.protocol, self.benchmark.name)
        self.metric = metric or self._protocol.headline
        names = [one.name for one in self._protocol.metrics if one.scored is not None]
        if self.metric not in names:
            raise UsageError(
                f"{self.benchmark.name} has no metric `{self.metric}`",
                hint=nearest(self.metric, names),
            )
        self.unscored, self.max_unscored = unscored, request.max_unscored
        self.length_weight = length_weight
        self._items = {item.id: item for item in self.benchmark.items}
        self._known: dict[Key, Score | None] = {}
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()
        self._bindings = {
            role: replace(one, caller=KeptOpen(one.caller))
            for role, one in self._plan.bindings.items()
        }
        self._journal = _open_journal(Path(out), self._plan) if out else None

    async def score(self, replies: Sequence[str], item_ids: Sequence[str]) -> list[Score | None]:
        """The scores of replies, in their order; None where a reply could not be scored.

        Equal replies to one item are judged once. Calls that come together are judged together.

        Raises:
            UsageError: the lists have different lengths, an id is unknown, or a reply is no text.
            EndpointError: the judge cannot be reached; what was judged is kept.
        """
        if len(replies) != len(item_ids):
            raise UsageError(
                f"there are {len(replies)} replies and {len(item_ids)} item ids",
                hint="give one id for each reply",
            )
        keys = [
            (self._item(str(name)).id, self._repeat(reply, k))
            for k, (reply, name) in enumerate(zip(replies, item_ids, strict=True))
        ]
        loop = asyncio.get_running_loop()
        state = self._loops.setdefault(loop, _Loop())
        found: dict[Key, Score | None] = {}
        wanted: dict[Key, asyncio.Future[Score | None]] = {}
        for key, reply in zip(keys, replies, strict=True):
            if key in self._known:
                found[key] = self._known[key]
            if key in found or key in wanted:
                continue
            if key not in state.results:
                if not state.waiting:
                    loop.call_later(WINDOW_S, self._begin, state)
                state.waiting[key] = reply
                state.results[key] = loop.create_future()
            wanted[key] = state.results[key]
        found.update(zip(wanted, await _all(wanted.values()), strict=True))
        return [found[key] for key in keys]

    def score_now(self, replies: Sequence[str], item_ids: Sequence[str]) -> list[Score | None]:
        """The same as `score`, for callers without an event loop, or inside a running one.

        Raises:
            UsageError, EndpointError: as `score`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.score(replies, item_ids))
        with ThreadPoolExecutor(1) as pool:  # Python starts no loop inside a running one
            return pool.submit(asyncio.run, self.score(replies, item_ids)).result()

    def messages(self, item_id: str) -> list[JsonObject]:
        """The messages that ask a model for its reply to an item, as OpenAI's API has them.

        Pictures are data URIs, prepared as in an evaluation.

        Raises:
            UsageError: the id is unknown.
            ImageError: a picture cannot be sent.
        """
        options = replace(self._plan.options, given=None)
        wanted: object = flow_of(replace(self._plan, options=options), self._item(item_id), 0)
        while isinstance(wanted, Generator):  # the first step of a flow may be another flow
            wanted = next(wanted)[0]
        assert isinstance(wanted, Request)
        return plain_messages(
            wanted, [prepare(image, self._plan.rules) for image in images_of(wanted)]
        )

    def close(self) -> None:
        """Closes the journal. A scorer without a journal needs no closing."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _item(self, name: str) -> Item:
        found = self._items.get(name)
        if found is None:
            raise UsageError(
                f"{self.benchmark.name} has no item {name!r}",
                hint=nearest(name, list(self._items)[:1000]),
            )
        return found

    def _repeat(self, reply: object, place: int) -> int:
        """The number by which the journal tells the replies to one item apart."""
        if not isinstance(reply, str):
            raise UsageError(
                f"the reply at place {place} is of type {type(reply).__name__}", hint="give text"
            )
        # Below 2**53, so that every reader of JSON keeps the number whole.
        return seed_for(0, reply.encode(errors="replace").decode()) >> 11

    def _begin(self, state: _Loop) -> None:
        waiting, state.waiting = state.waiting, {}
        task = asyncio.get_running_loop().create_task(self._judge(waiting, state))
        state.drives.add(task)
        task.add_done_callback(lambda done: self._settle(waiting, state, done))

    async def _judge(self, waiting: Mapping[Key, str], state: _Loop) -> _Judged:
        """Judges replies together: their scores, and what stopped the judging."""
        outcomes: dict[Key, Outcome] = {}
        job = Job(
            self._bindings,
            [Batch(self._work(waiting))],
            sinks={Outcome: lambda name, n, one: outcomes.__setitem__((name, n), one)},
            cache=self._plan.cache,
            options=self._plan.drive,
            preflight=False,
            gates=state.gates,
        )
        ended = await drive(job, journal=self._journal)
        if len(state.drives) == 1:  # connections belong to this loop, which may end now
            for binding in self._plan.bindings.values():
                if isinstance(binding.caller, ChatClient):
                    await binding.caller.close()
        if ended.interrupted:
            await hand_on()
            raise asyncio.CancelledError("interrupted")
        scored = any(v.status == "scored" for one in outcomes.values() for v in one.verdicts)
        error = ended.error
        if error is None and ended.failures and not scored:
            (role, kind), (_, said) = next(iter(ended.failures.items()))
            error = EndpointError(f"the {role} answered nothing: {said}", kind=kind, hint=AWAY)
        return self._scores(outcomes), error

    def _settle(
        self, waiting: Mapping[Key, str], state: _Loop, done: asyncio.Task[_Judged]
    ) -> None:
        """Gives everybody who waits a score, or the reason why there is none."""
        state.drives.discard(done)
        scores: dict[Key, Score | None] = {}
        error: BaseException | None = None
        if not done.cancelled():
            error = done.exception()
            if error is None:
                scores, error = done.result()
        if len(self._known) > KEPT_SCORES:
            self._known.clear()
        self._known.update((k, v) for k, v in scores.items() if v is not None and v.is_scored)
        for result, key in ((state.results.pop(key), key) for key in waiting):
            if result.done():
                continue
            score = scores.get(key)
            if error is not None and (score is None or not score.is_scored):
                result.set_exception(error)
            elif key in scores:
                result.set_result(score)
            else:
                result.cancel("interrupted")

    def _work(self, waiting: Mapping[Key, str]) -> Iterable[Work]:
        for (name, n), reply in waiting.items():
            options = replace(self._plan.options, given=given_rows({name: reply}))
            yield name, n, flow_of(replace(self._plan, options=options), self._items[name], n)

    def _scores(self, outcomes: Mapping[Key, Outcome]) -> dict[Key, Score | None]:
        """Scores by key, all from one table in which every reply is a cluster of its own."""
        items, replies, verdicts = [], {}, {}
        counts = tokens.count_tokens(one.reply.reply or "" for one in outcomes.values())
        for k, (key, outcome) in enumerate(outcomes.items()):
            name = f"{k:09d}"
            items.append(replace(self._items[key[0]], id=name, cluster=name))
            replies[name, 0] = replace(outcome.reply, id=name, repeat=0, tokens=counts[k])
            for one in outcome.verdicts:
                verdicts[name, 0, one.probe_id] = replace(one, id=name, repeat=0)
        tally = self._protocol.tally(probe_table(items, verdicts), replies)
        sums, at = tally.sums(tally.counts), {name: k for k, name in enumerate(tally.clusters)}
        values = {
            one.name: np.broadcast_to(one.scored(sums), tally.n_clusters)
            for one in tally.metrics
            if one.scored is not None
        }
        found: dict[Key, Score | None] = {}
        for k, (key, outcome) in enumerate(outcomes.items()):
            row = at.get(f"{k:09d}")
            parts: dict[str, float | None] = {
                name: None if row is None or not np.isfinite(array[row]) else float(array[row])
                for name, array in values.items()
            }
            found[key] = self._score(parts, outcome, counts[k])
        return found

    def _score(
        self, parts: dict[str, float | None], outcome: Outcome, n_tokens: int
    ) -> Score | None:
        n = len(outcome.verdicts)
        unscored = sum(one.status == "unscored" for one in outcome.verdicts)
        penalty = self.length_weight * n_tokens / 1000
        value, parts["length_penalty"] = parts.get(self.metric), penalty
        if value is not None and unscored <= self.max_unscored * n:
            return Score(value - penalty, parts, n_tokens, n, unscored)
        if self.unscored is None:
            return None
        return Score(self.unscored, parts, n_tokens, n, unscored, is_scored=False)


async def _all(results: Iterable[asyncio.Future[Score | None]]) -> list[Score | None]:
    """All results; a caller that is cancelled leaves them to the others who wait for them."""
    return list(await asyncio.gather(*map(asyncio.shield, results)))


def _open_journal(out: Path, plan: Plan) -> Journal:
    """The journal below `out` for these settings and this process of a training."""
    spec = replace(spec_of(plan), sessions=())
    settings = (spec.data_digest, spec.judge, spec.prompts, spec.options, spec.items)
    folder = out / digest_of(settings)[:12] / f"rank-{os.environ.get('RANK', '0')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "scorer.json", spec)
        return Journal(folder)
    except OSError as error:
        raise DataError(
            f"cannot be written: {error.strerror or error}",
            file=folder,
            hint="make room or give rights there, or choose another `out`",
        ) from error
