"""Whole runs against a fake endpoint: faults, stops, resume, cache, secrets."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.server import Body, FakeServer, error_response, picture_uris, text_of
from tests.worlds.engine_world import (
    JUDGE,
    MODEL,
    answer,
    chats,
    command,
    environment,
    evaluate,
    numbers,
    rows,
    serve,
    small_benchmark,
)

import snellen
from snellen.engine import pacing
from snellen.errors import DataError, EndpointError, RunFolderError, UsageError
from snellen.runs.folder import load_run
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are of a few milliseconds."""
    monkeypatch.setattr(pacing, "BASE_DELAY_S", 0.002)
    monkeypatch.setattr(pacing, "MAX_DELAY_S", 0.02)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pictures, forty questions."""
    return small_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="module")
def undisturbed(benchmark: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without any trouble, to compare with."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    with serve() as server:
        assert evaluate(benchmark, server.url, out, cache=False).exit_code == 0
    return out


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a run goes."""
    return tmp_path / "run"


@pytest.fixture
def hurried(tmp_path: Path) -> Path:
    """Settings under which a hanging call is given up after a third of a second."""
    file = tmp_path / "snellen.toml"
    tables = [f"[models.{name}]\ntimeout_s = 0.35\n" for name in (MODEL, JUDGE)]
    file.write_text("".join(tables), encoding="utf-8")
    return file


def priced(folder: Path, usd: float) -> Path:
    """Settings with a price for a million completion tokens, and small limits on replies."""
    file = folder / "prices.toml"
    table = (
        "[models.{}]\nprice_in_usd = 0.0\nprice_out_usd = {}\n[models.{}.params]\nmax_tokens = 20\n"
    )
    text = "".join(table.format(name, usd, name) for name in (MODEL, JUDGE))
    file.write_text(text, encoding="utf-8")
    return file


class TestFaults:
    def test_a_rough_server_gives_the_verdicts_of_a_smooth_one(
        self, benchmark: Path, undisturbed: Path, out: Path, hurried: Path
    ) -> None:
        """30% 429, 5% 500, 1% hanging, cut and broken bodies change no number."""
        faults = {
            "429": 0.3, "500": 0.05, "hang": 0.01, "cut": 0.03, "reset": 0.02, "html": 0.02,
            "cut_json": 0.02, "no_choices": 0.02,
        }  # fmt: skip
        with serve(faults=faults, retry_after_s=0.01, seed=4, jitter_s=0.005) as server:
            finished = evaluate(benchmark, server.url, out, config=hurried, max_tries=12)
            assert server.faults["429"] > 5
            assert server.faults["500"] + server.faults["cut"] > 1
        assert finished.exit_code == 0
        assert numbers(out) == numbers(undisturbed)
        assert sum(r["tries"] > 1 for r in rows(out, "calls")) > 5

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["429", "429_date"])
    def test_a_demanded_wait_is_kept_in_both_of_its_forms(
        self, benchmark: Path, out: Path, form: str
    ) -> None:
        """R01: the call comes again no earlier than Retry-After says, and none fails."""
        wait_s = 1.0 if form == "429" else 2.0  # a date has whole seconds
        with serve(schedule=["", "", form], retry_after_s=wait_s) as server:
            finished = evaluate(benchmark, server.url, out, limit=4)
            limited = next(s for s in server.requests if s.fault)
            again = [s for s in server.requests if s.body == limited.body and s is not limited]
        assert again[0].started_s - limited.started_s >= wait_s - (0 if form == "429" else 1.0)
        assert finished.summary.counts.unscored == 0
        # On a busy machine the first judgement may come before the last caption.
        usage = finished.summary.usage
        assert usage["model"]["retries"] + usage["judge"]["retries"] == 1

    @pytest.mark.parametrize(("allowed", "code"), [(0.05, 3), (0.5, 0)])
    def test_one_item_that_fails_for_ever_leaves_the_others_scored(
        self, benchmark: Path, undisturbed: Path, out: Path, allowed: float, code: int
    ) -> None:
        """J24: its probes are unscored with the reason; the exit code follows --max-unscored."""
        bad = "of s0002?"

        def script(body: Body) -> Any:
            if bad in text_of(body):
                return error_response(500, "Internal error: 1 worker lost")
            return answer(body)

        with serve(script) as server:
            finished = evaluate(benchmark, server.url, out, max_unscored=allowed, max_tries=2)
            sent = Counter(text_of(b) for b in chats(server, "judge"))
        clean = {(r["id"], r["probe_id"]): r["correct"] for r in rows(undisturbed, "verdicts")}
        found = {(r["id"], r["probe_id"]): r for r in rows(out, "verdicts")}
        unscored = {key for key, r in found.items() if r["status"] == "unscored"}
        assert unscored == {key for key in clean if key[0] == "s0002"}
        assert {found[key]["reason"] for key in unscored} == {"judge_overload"}
        assert all(found[key]["correct"] == clean[key] for key in clean.keys() - unscored)
        assert {n for text, n in sent.items() if bad in text} == {2}
        assert finished.exit_code == code
        assert finished.summary.counts.unscored_by_reason == {"judge_overload": len(unscored)}

    def test_a_picture_too_long_for_the_model_is_asked_once_and_never_judged(
        self, benchmark: Path, out: Path
    ) -> None:
        """D04: one call, no judge call, its reason kept; the others finish."""
        first: list[str] = []

        def script(body: Body) -> Any:
            for uri in picture_uris(body):
                first.append(uri)
                if uri == first[0]:
                    said = "maximum context length is 8192 tokens, you sent 10127"
                    return error_response(400, said)
            return answer(body)

        with serve(script) as server:
            finished = evaluate(benchmark, server.url, out, max_unscored=1.0)
        bad = [r for r in rows(out, "replies") if r["status"] != "ok"]
        assert [r["failure"] for r in bad] == ["context_length"]
        assert first.count(first[0]) == 1
        reasons = finished.summary.counts.unscored_by_reason
        assert list(reasons) == ["model_context_length"]
        assert finished.summary.counts.scored == 40 - reasons["model_context_length"]
        assert len(chats(server, "judge")) == finished.summary.counts.scored

    def test_a_blocked_judgement_is_sent_once_and_counted(self, benchmark: Path, out: Path) -> None:
        """J23: a content filter is no rate limit."""

        def script(body: Body) -> Any:
            if "number 0 at the left of s0001?" in text_of(body):
                return error_response(400, "blocked by policy", code="content_filter")
            return answer(body)

        with serve(script) as server:
            finished = evaluate(benchmark, server.url, out)
            sent = [b for b in chats(server) if "number 0 at the left of s0001?" in text_of(b)]
        assert len(sent) == 1
        assert finished.summary.counts.unscored_by_reason == {"judge_content_filter": 1}
        told = "1 judge call failed (content_filter), the first with: HTTP 400: blocked by policy"
        assert finished.notices == (told,)

    def test_a_call_that_never_comes_back_ends_at_its_limit(
        self, benchmark: Path, undisturbed: Path, out: Path, hurried: Path
    ) -> None:
        """R03: after its time it is tried again, then given up; the others are scored."""
        n = sum(r["id"] == "s0000" for r in rows(undisturbed, "verdicts"))
        schedule = ["", "hang", *[""] * (n - 1), "hang"]
        with serve(schedule=schedule) as server:
            finished = evaluate(
                benchmark, server.url, out, config=hurried, max_tries=2, concurrency=1,
                limit=1, max_unscored=1.0,
            )  # fmt: skip
        assert finished.summary.counts.unscored_by_reason == {"judge_timeout": 1}
        assert finished.summary.counts.scored == n - 1

    @pytest.mark.slow
    def test_the_limit_is_each_calls_own_and_not_the_runs(
        self, benchmark: Path, out: Path, hurried: Path
    ) -> None:
        """R09: a run that takes far longer than a call may take is no matter."""
        with serve(delay_s=0.05) as server:
            finished = evaluate(benchmark, server.url, out, config=hurried, concurrency=3)
        assert finished.exit_code == 0
        assert finished.summary.usage["judge"]["retries"] == 0

    def test_four_of_five_is_not_five_of_five(self, tmp_path: Path, out: Path) -> None:
        """D06: five calls that finish with four right verdicts are four fifths."""
        source = small_benchmark(tmp_path / "five", images=1, questions=5)
        lines = (source / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        right = {json.loads(line)["question"]: json.loads(line)["answer"] for line in lines}
        wrong = next(iter(right))

        def script(body: Body) -> str:
            if picture_uris(body):
                return "A caption."
            [question] = [q for q in right if q in text_of(body)]
            return right[question] if question != wrong else "E"

        with serve(script) as server:
            finished = evaluate(source, server.url, out)
        assert finished.summary.metrics["overall_acc"].value == pytest.approx(0.8)


class TestStops:
    @pytest.mark.parametrize(
        ("behaviour", "kind"),
        [({"key": "another"}, "auth"), ({"schedule": ["quota"] * 99}, "quota")],
    )
    def test_a_hopeless_endpoint_is_one_message_within_the_first_calls(
        self, benchmark: Path, out: Path, behaviour: dict[str, Any], kind: str
    ) -> None:
        """A wrong key or an empty account: exit code 1, and hardly a call."""
        with serve(**behaviour) as server:
            finished = evaluate(benchmark, server.url, out, api_key="not-this-one")
            assert len(chats(server)) <= 6
        assert isinstance(finished.error, EndpointError)
        assert (finished.error.kind, finished.exit_code) == (kind, 1)
        assert finished.summary.status == "incomplete"

    def test_a_wrong_key_is_known_before_the_first_call(self, benchmark: Path, out: Path) -> None:
        """The model list refuses it, so that no picture is sent at all."""
        with serve(key="another") as server:
            evaluate(benchmark, server.url, out)
            assert chats(server) == []

    def test_a_wrong_judge_key_stops_before_captions_are_paid_for(
        self, benchmark: Path, out: Path
    ) -> None:
        """Both endpoints are looked at before the first call."""
        with serve() as server, serve(key="another") as judge:
            finished = evaluate(benchmark, server.url, out, judge_url=judge.url)
            assert chats(server) == []
        assert finished.exit_code == 1

    def test_an_unknown_model_is_one_message(self, benchmark: Path, out: Path) -> None:
        """The endpoint's list is shown as a notice, its refusal ends the run."""
        with serve() as server:
            finished = evaluate(benchmark, server.url, out, model="nobody", cache=False)
            assert len(chats(server)) == 0
            refused = [s for s in server.requests if s.body.get("model") == "nobody"]
        assert len(refused) <= 6
        assert finished.exit_code == 1
        assert isinstance(finished.error, EndpointError)
        assert finished.error.kind == "unknown_model"
        assert any("does not list `nobody`" in notice for notice in finished.notices)

    @pytest.mark.parametrize(
        "said", ["Missing scopes: api.model.read", "x-api-key header is required"]
    )
    def test_a_key_that_may_only_chat_is_let_pass(
        self, benchmark: Path, out: Path, said: str
    ) -> None:
        """A list that is refused for want of rights or its own header says nothing of the key."""
        from aiohttp import web

        async def refuse(self: FakeServer, http: web.Request) -> web.Response:
            return error_response(401, said)

        server = serve()
        server._models = refuse.__get__(server)  # type: ignore[method-assign]
        with server:
            assert evaluate(benchmark, server.url, out).exit_code == 0

    def test_a_judge_that_is_not_there_leaves_no_score_and_keeps_the_replies(
        self, benchmark: Path, undisturbed: Path, out: Path
    ) -> None:
        """No score instead of a zero, exit code 3; when it is back no model call is repeated."""
        with serve() as server:
            gone = f"http://127.0.0.1:{_free_port()}/v1"
            finished = evaluate(benchmark, server.url, out, judge_url=gone, max_tries=2)
            assert finished.exit_code == 3
            assert isinstance(finished.error, EndpointError)
            assert {m.value for m in finished.summary.metrics.values()} == {None}
            assert finished.summary.counts.scored == 0
            asked = len(chats(server, "model"))
            kept = sum(r["status"] == "ok" for r in rows(out, "replies"))
            assert kept == asked > 0
            finished = evaluate(benchmark, server.url, out)
            assert len(chats(server, "model")) == 6
        assert finished.exit_code == 0
        assert numbers(out) == numbers(undisturbed)

    def test_a_judge_that_only_errs_leaves_no_score(self, benchmark: Path, out: Path) -> None:
        """500s for ever are a judge that is down."""
        with serve() as server, serve(lambda _: error_response(500, "lost")) as judge:
            finished = evaluate(benchmark, server.url, out, judge_url=judge.url, max_tries=2)
        assert finished.exit_code == 3
        assert {m.value for m in finished.summary.metrics.values()} == {None}

    def test_a_field_that_all_calls_are_refused_for_stops_the_run_early(
        self, benchmark: Path, out: Path
    ) -> None:
        """R02: asked once a sample at most, one clear message that names the field."""
        with serve(refuses={"stop": "Unsupported parameter: 'stop'"}) as server:
            finished = evaluate(
                benchmark, server.url, out, judge_params={"stop": ["X"]}, concurrency=4
            )
            sent = Counter(text_of(b) for b in chats(server, "judge"))
        assert set(sent.values()) == {1}
        assert len(sent) < 40
        assert finished.exit_code == 3
        assert finished.error is not None
        assert "`stop` is refused" in finished.error.message
        assert finished.notices == ()

    def test_an_endpoint_without_a_model_list_is_no_matter(
        self, benchmark: Path, out: Path
    ) -> None:
        """Many servers have none."""
        from aiohttp import web

        async def missing(self: FakeServer, http: web.Request) -> web.Response:
            return web.Response(status=404, text="not found")

        server = serve()
        server._models = missing.__get__(server)  # type: ignore[method-assign]
        with server:
            finished = evaluate(benchmark, server.url, out)
        assert (finished.exit_code, finished.notices) == (0, ())


class TestBudget:
    @pytest.mark.slow
    def test_money_runs_out_with_exit_code_3_and_is_never_exceeded(
        self, benchmark: Path, out: Path, tmp_path: Path
    ) -> None:
        """A higher budget goes on from there; the same one does not."""
        config = priced(tmp_path, 1000.0)
        with serve() as server:
            finished = evaluate(benchmark, server.url, out, config=config, max_cost=0.1)
            spent = finished.summary.usage["cost_usd"]
            assert finished.exit_code == 3
            assert 0.05 < spent <= 0.1
            assert finished.error is not None
            assert "higher --max-cost" in finished.error.hint
            finished = evaluate(benchmark, server.url, out, config=config, max_cost=0.1)
            assert finished.exit_code == 3
            assert finished.summary.usage["cost_usd"] <= 0.1
            finished = evaluate(benchmark, server.url, out, config=config, max_cost=5.0)
            assert len(chats(server)) == 46
        assert finished.exit_code == 0
        assert finished.summary.usage["cost_usd"] <= 5.0

    def test_cached_replies_cost_nothing(self, benchmark: Path, tmp_path: Path) -> None:
        """A second run from the cache passes under a budget of nothing."""
        config = priced(tmp_path, 1000.0)
        with serve() as server:
            words = {"config": config, "cache": True}
            evaluate(benchmark, server.url, tmp_path / "a", **words)
            finished = evaluate(benchmark, server.url, tmp_path / "b", max_cost=0.0, **words)
        assert finished.exit_code == 0
        assert finished.summary.usage["cost_usd"] == 0

    def test_the_offline_judge_is_free(self, benchmark: Path, out: Path, tmp_path: Path) -> None:
        """Its verdicts do not turn the cost of the model's replies into an unknown one."""
        with serve() as server:
            finished = evaluate(
                benchmark, server.url, out, judge="embedded", judge_url="",
                config=priced(tmp_path, 1000.0), limit=1,
            )  # fmt: skip
        usage = finished.summary.usage
        assert usage["judge"]["cost_usd"] == 0
        assert usage["cost_usd"] == usage["model"]["cost_usd"] > 0

    def test_a_budget_without_prices_is_refused(self, benchmark: Path, out: Path) -> None:
        """What a call costs must be known before money is counted."""
        with pytest.raises(UsageError, match=f"the prices of {MODEL}"):
            make_plan(
                RunRequest(str(benchmark), out, model=MODEL, api_url="http://127.0.0.1:1/v1",
                           judge="embedded", max_cost=1.0)
            )  # fmt: skip


class TestResume:
    def test_a_finished_run_makes_no_call(self, benchmark: Path, out: Path) -> None:
        """Not even a look at the endpoint; all numbers as before."""
        with serve() as server:
            evaluate(benchmark, server.url, out)
            before, files = len(server.requests), numbers(out)
            lines = {n: len(rows(out, n)) for n in ("calls", "replies", "verdicts")}
            finished = evaluate(benchmark, server.url, out, cache=False)
            assert len(server.requests) == before
        assert finished.exit_code == 0
        assert numbers(out) == files
        assert {n: len(rows(out, n)) for n in lines} == lines

    def test_only_what_failed_is_asked_again(
        self, benchmark: Path, undisturbed: Path, out: Path
    ) -> None:
        """C05: three pictures that failed to the end are three model calls later."""
        failing = [True]
        bad: list[str] = []

        def script(body: Body) -> Any:
            for uri in picture_uris(body):
                if failing[0] and (uri in bad or len(bad) < 3):
                    bad.append(uri)
                    return error_response(500, "lost")
            return answer(body)

        with serve(script) as server:
            first = evaluate(benchmark, server.url, out, max_tries=2, concurrency=1)
            assert first.exit_code == 3
            assert first.summary.counts.scored > 0
            failing[0] = False
            before = len(chats(server, "model"))
            finished = evaluate(benchmark, server.url, out)
            assert len(chats(server, "model")) - before == len(set(bad)) == 3
        assert finished.exit_code == 0
        assert numbers(out) == numbers(undisturbed)

    @pytest.mark.parametrize("name", ["calls", "replies", "verdicts"])
    def test_a_torn_last_line_is_dropped_with_a_notice(
        self, benchmark: Path, undisturbed: Path, out: Path, name: str
    ) -> None:
        """C06: whole records are kept, no sample is there twice, and numbers are the same."""
        with serve() as server:
            evaluate(benchmark, server.url, out)
            before = len(chats(server))
            file = out / f"{name}.jsonl"
            file.write_bytes(file.read_bytes()[:-30])
            finished = evaluate(benchmark, server.url, out, cache=False)
            assert len(chats(server)) - before == (1 if name == "calls" else 0)
        assert any("half-written" in notice for notice in finished.notices)
        assert numbers(out) == numbers(undisturbed)
        found = load_run(out)
        assert (len(found.verdicts), len(found.replies)) == (40, 6)

    @pytest.mark.parametrize("name", ["replies", "verdicts"])
    def test_a_damaged_projection_is_written_anew_from_the_journal(
        self, benchmark: Path, undisturbed: Path, out: Path, name: str
    ) -> None:
        """Everything but the journal can be rebuilt without a call."""
        with serve() as server:
            evaluate(benchmark, server.url, out)
            before = len(chats(server))
            file = out / f"{name}.jsonl"
            lines = file.read_bytes().splitlines(keepends=True)
            file.write_bytes(b"".join([*lines[:3], b"garbage\n", *lines[3:]]))
            (out / "summary.json").unlink()
            evaluate(benchmark, server.url, out)
            assert len(chats(server)) == before
        assert numbers(out) == numbers(undisturbed)
        assert len(load_run(out).verdicts) == 40
        assert len(load_run(out).replies) == 6

    @pytest.mark.parametrize("name", ["run.json", "summary.json"])
    def test_a_damaged_description_says_how_to_go_on(
        self, benchmark: Path, undisturbed: Path, out: Path, name: str
    ) -> None:
        """And what it says is true: without the file, the same command repeats no call."""
        with serve() as server:
            evaluate(benchmark, server.url, out)
            before = len(chats(server))
            (out / name).write_bytes((out / name).read_bytes()[:-30])
            with pytest.raises(RunFolderError, match=name) as caught:
                load_run(out)
            assert "delete it and give the same command again" in caught.value.hint
            (out / name).unlink()
            evaluate(benchmark, server.url, out, cache=False)
            assert len(chats(server)) == before
        assert numbers(out) == numbers(undisturbed)

    def test_rows_in_another_order_and_more_of_them_go_on(
        self, benchmark: Path, tmp_path: Path, out: Path
    ) -> None:
        """C08: records are matched by id and content; new items are added, with a notice."""
        with serve() as server:
            evaluate(benchmark, server.url, out, limit=3)
            before = len(chats(server))
            copy = _copy(benchmark, tmp_path / "copy")
            file = copy / "images.jsonl"
            lines = file.read_text(encoding="utf-8").splitlines()
            file.write_text("\n".join(reversed(lines)) + "\n", encoding="utf-8")
            finished = evaluate(copy, server.url, out, cache=False)
            assert len(chats(server)) == 46 > before
        assert "3 items are new since the run began" in finished.notices
        assert finished.summary.counts.probes == 40

    def test_one_id_for_two_rows_is_an_error_on_loading(
        self, benchmark: Path, tmp_path: Path, out: Path
    ) -> None:
        """C08: same id, other content."""
        copy = _copy(benchmark, tmp_path / "copy")
        file = copy / "questions.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines()
        again = json.loads(lines[0]) | {"question": "Another one?"}
        file.write_text("\n".join([*lines, json.dumps(again)]) + "\n", encoding="utf-8")
        with pytest.raises(DataError, match="s0000-q0"):
            evaluate(copy, "http://127.0.0.1:9/v1", out)

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"model": JUDGE}, rf"another model \(model.name was {MODEL}, now {JUDGE}\)"),
            ({"judge": MODEL}, "another judge"),
            ({"seed": 7}, "another seed"),
            ({"params": {"temperature": 1}}, "params.temperature was None, now 1"),
            ({"judge_params": {"temperature": 1}}, "another judge"),
            ({"reasks": 0}, "another options"),
            ({"repeat": 2}, "another repeats"),
            ({"max_pixels": 5000}, "another image_preparation"),
        ],
    )
    def test_another_run_in_the_folder_is_refused_with_the_difference(
        self, benchmark: Path, undisturbed: Path, change: dict[str, Any], named: str
    ) -> None:
        """Settings that change a number need a folder of their own."""
        with pytest.raises(RunFolderError, match=named):
            evaluate(benchmark, load_run(undisturbed).spec.model.url, undisturbed, **change)

    def test_another_prompt_is_refused_with_the_difference(
        self, benchmark: Path, undisturbed: Path, tmp_path: Path
    ) -> None:
        """Prompts are compared by their text."""
        prompt = tmp_path / "mine.txt"
        prompt.write_text("Say what you see.", encoding="utf-8")
        url = load_run(undisturbed).spec.model.url
        with pytest.raises(RunFolderError, match="another prompts"):
            evaluate(benchmark, url, undisturbed, caption_prompt=prompt)

    def test_an_item_that_has_changed_is_refused_by_name(
        self, benchmark: Path, undisturbed: Path, tmp_path: Path
    ) -> None:
        """Same id, other content."""
        copy = _copy(benchmark, tmp_path / "copy")
        file = copy / "questions.jsonl"
        text = file.read_text(encoding="utf-8").replace("red 0", "pink 0", 1)
        file.write_text(text, encoding="utf-8")
        url = load_run(undisturbed).spec.model.url
        with pytest.raises(RunFolderError, match="item s0000 has changed"):
            evaluate(copy, url, undisturbed)

    def test_fewer_items_are_refused(self, benchmark: Path, undisturbed: Path) -> None:
        """A run does not shrink by being started again."""
        url = load_run(undisturbed).spec.model.url
        with pytest.raises(RunFolderError, match="which this command leaves out"):
            evaluate(benchmark, url, undisturbed, limit=2)

    def test_a_newer_version_reads_the_stored_replies_and_says_so(
        self, benchmark: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """C09: replies are kept, verdicts are parsed anew, and both versions are on record."""
        with serve() as server:
            evaluate(benchmark, server.url, out)
            before = len(server.requests)
            monkeypatch.setattr("snellen.runs.run.__version__", "9.9")
            monkeypatch.setattr("snellen.flows.blank_reason", lambda *a, **k: "empty")
            finished = evaluate(benchmark, server.url, out)
            assert len(server.requests) == before
        assert finished.summary.counts.scored_by_reason == {"empty": 40}
        assert any("begun with snellen" in notice for notice in finished.notices)
        assert [s.snellen for s in load_run(out).spec.sessions][1] == "9.9"

    def test_the_same_folder_twice_at_once_is_refused(self, benchmark: Path, out: Path) -> None:
        """K02: the second start names the process that holds it; nothing is doubled."""

        async def both(server: FakeServer) -> Any:
            words: dict[str, Any] = {
                "model": MODEL, "api_url": server.url, "judge": JUDGE, "judge_url": server.url,
                "cache": False,
            }  # fmt: skip
            first, second = (
                execute(make_plan(RunRequest(str(benchmark), out, **words))) for _ in range(2)
            )
            task = asyncio.create_task(first)
            while not chats(server) and not task.done():
                await asyncio.sleep(0.01)
            with pytest.raises(RunFolderError, match="in use by process"):
                await second
            return await task

        with serve(delay_s=0.25) as server:
            finished = asyncio.run(both(server))
        assert finished.exit_code == 0
        assert len(rows(out, "verdicts")) == 40


class TestCache:
    def test_a_second_run_is_served_from_the_cache(self, benchmark: Path, tmp_path: Path) -> None:
        """Another folder, the same requests: not one call."""
        with serve() as server:
            evaluate(benchmark, server.url, tmp_path / "a", cache=True)
            before = len(chats(server))
            evaluate(benchmark, server.url, tmp_path / "b", cache=True)
            assert len(chats(server)) == before
        assert numbers(tmp_path / "a") == numbers(tmp_path / "b")

    @pytest.mark.slow
    def test_what_shapes_an_answer_is_in_the_key(self, benchmark: Path, tmp_path: Path) -> None:
        """C01: address, parameters and prompts share no answer; fake servers count the calls."""
        prompt = tmp_path / "mine.txt"
        prompt.write_text("Say what you see.", encoding="utf-8")
        with serve() as one, serve() as two:
            for k, words in enumerate(
                (
                    {"api_url": one.url},
                    {"api_url": two.url},
                    {"api_url": one.url, "params": {"temperature": 1}},
                    {"api_url": one.url, "caption_prompt": prompt},
                )
            ):
                evaluate(benchmark, one.url, tmp_path / str(k), cache=True, **words)
            assert (len(chats(one, "model")), len(chats(two, "model"))) == (18, 6)

    def test_another_judge_prompt_repeats_the_judging_only(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        """C02: no model call, all judge calls."""
        from snellen.templates import bundled

        prompt = tmp_path / "judge.txt"
        prompt.write_text("Be fair.\n" + bundled("reading_judge").text, encoding="utf-8")
        with serve() as server:
            evaluate(benchmark, server.url, tmp_path / "a", cache=True)
            evaluate(benchmark, server.url, tmp_path / "b", cache=True, judge_prompt=prompt)
            assert (len(chats(server, "model")), len(chats(server, "judge"))) == (6, 80)

    def test_repeats_and_asks_are_asked_each_time(self, benchmark: Path, out: Path) -> None:
        """A repeat is another reply, an ask another judgement."""

        def script(body: Body) -> str:
            return answer(body) if picture_uris(body) else "I would rather not say."

        with serve(script) as server:
            evaluate(benchmark, server.url, out, repeat=2, limit=1)
            n_probes = len({b["messages"][0]["content"] for b in chats(server, "judge")}) // 2
            assert len(chats(server, "model")) == 2
            assert len(chats(server, "judge")) == 2 * n_probes * 3 or n_probes == 0

    @pytest.mark.slow
    def test_two_processes_share_one_cache(self, benchmark: Path, tmp_path: Path) -> None:
        """Two runs at once on one cache both end well."""
        with serve(delay_s=0.01) as server:
            running = [
                subprocess.Popen(
                    command(benchmark, server.url, tmp_path / name, "--quiet", "--cache"),
                    env=environment(), stdout=subprocess.DEVNULL,
                )
                for name in "ab"
            ]  # fmt: skip
            assert [r.wait(60) for r in running] == [0, 0]
        assert numbers(tmp_path / "a") == numbers(tmp_path / "b")


class TestParameters:
    def test_the_other_name_of_the_token_limit_is_learnt_once(
        self, benchmark: Path, out: Path
    ) -> None:
        """P01: the limit is really sent, under the name that the endpoint takes."""
        refuses = {
            "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        }
        with serve(refuses=refuses) as server:
            finished = evaluate(benchmark, server.url, out, concurrency=1)
            bodies = chats(server, "judge")
        assert finished.exit_code == 0
        assert sum("max_tokens" in b for b in bodies) == 1
        assert {b["max_completion_tokens"] for b in bodies if "max_tokens" not in b} == {2048}
        notes = [r["reply"]["notes"] for r in rows(out, "calls") if r["role"] == "judge"]
        assert all(n == ["max_tokens sent as max_completion_tokens"] for n in notes)

    def test_a_setting_drops_a_parameter_for_all_calls_alike(
        self, benchmark: Path, out: Path
    ) -> None:
        """P02: what was really sent is on record and differs for no sample."""
        with serve(refuses={"temperature": "temperature must be 1"}) as server:
            finished = evaluate(benchmark, server.url, out, judge_params={"temperature": None})
            assert not any("temperature" in b for b in chats(server))
        assert finished.exit_code == 0
        assert load_run(out).spec.judge.params.get("temperature") is None

    def test_judgements_outside_the_form_are_read_and_counted(
        self, benchmark: Path, out: Path
    ) -> None:
        """P04: an announced answer in another form is scored, and its number is reported."""

        def script(body: Body) -> str:
            return answer(body) if picture_uris(body) else "The answer is **B**."

        with serve(script) as server:
            finished = evaluate(benchmark, server.url, out)
        counts = finished.summary.counts
        assert (counts.scored, counts.unscored) == (40, 0)
        assert counts.scored_by_reason == {"recovered": 40}


class TestManyCalls:
    @pytest.mark.slow
    def test_150_in_flight_are_really_in_flight(self, tmp_path: Path, out: Path) -> None:
        """No pool of connections in between holds calls back."""
        source = small_benchmark(tmp_path / "b", images=20, questions=500)
        with serve(delay_s=0.1) as server:
            evaluate(source, server.url, out, concurrency=150)
            assert server.peak == 150

    def test_the_concurrency_is_never_exceeded(self, benchmark: Path, out: Path) -> None:
        """Model and judge behind one address share it."""
        with serve(delay_s=0.01) as server:
            evaluate(benchmark, server.url, out, concurrency=3)
            assert server.peak == 3


class TestFolder:
    def test_a_folder_that_cannot_be_written_is_one_clear_error(
        self, benchmark: Path, tmp_path: Path
    ) -> None:
        """A file stands where the folder should be."""
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(RunFolderError, match="cannot be written"):
            evaluate(benchmark, "http://127.0.0.1:1/v1", tmp_path / "file" / "run")

    def test_a_full_disk_at_the_end_is_one_clear_error(
        self, benchmark: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And the journal holds everything for the next start."""

        def full(file: Path, value: Any) -> None:
            if file.name == "summary.json":
                raise OSError(28, "No space left on device")

        with serve() as server, monkeypatch.context() as patch:
            patch.setattr("snellen.runs.run.write_json", full)
            with pytest.raises(RunFolderError, match="No space left"):
                evaluate(benchmark, server.url, out)
        assert len(rows(out, "calls")) == 46

    def test_a_cache_that_breaks_is_a_notice(
        self, benchmark: Path, out: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The run goes on without it."""
        monkeypatch.setattr("snellen.engine.cache._PUT", "INSERT INTO nowhere VALUES (?, ?, ?)")
        with serve() as server:
            finished = evaluate(benchmark, server.url, out, cache=True)
        assert finished.exit_code == 0
        assert any("replies are no longer shared" in notice for notice in finished.notices)


class TestPython:
    def test_functions_serve_as_model_and_judge(self, benchmark: Path, out: Path) -> None:
        """Sync and async, without any endpoint."""

        async def judge(messages: list[dict[str, Any]]) -> str:
            return "A"

        run = snellen.run(str(benchmark), model=lambda _: "a bus", judge=judge, out=out)
        assert run.summary is not None
        assert run.summary.counts.scored == 40

    def test_given_captions_need_no_model(self, benchmark: Path, out: Path) -> None:
        """The judge alone is called, and an id without a caption is unscored."""
        captions = {f"s{k:04d}": "A red bus." for k in range(5)}
        with serve() as server:
            finished = evaluate(
                benchmark, server.url, out, model="", api_url="",
                replies=captions, max_unscored=1.0,
            )  # fmt: skip
            assert chats(server, "model") == []
        reasons = finished.summary.counts.unscored_by_reason
        assert list(reasons) == ["model_no_reply"]

    def test_a_run_can_be_awaited(self, benchmark: Path, out: Path) -> None:
        """For callers that have an event loop of their own."""

        async def go() -> Any:
            return await snellen.run_async(
                str(benchmark), model=lambda _: "a bus", judge=lambda _: "B", out=out
            )

        assert asyncio.run(go()).summary.status == "complete"

    def test_a_stop_before_any_verdict_is_raised(self, benchmark: Path, out: Path) -> None:
        """The error is the command's one line."""
        with serve(key="another") as server, pytest.raises(EndpointError, match="HTTP 401"):
            snellen.run(str(benchmark), model=MODEL, api_url=server.url, judge=JUDGE, out=out)


def test_no_outside_connection_is_tried(benchmark: Path, out: Path, no_network: list[str]) -> None:
    """U03: a local folder and local endpoints reach for no other machine."""
    with serve() as server:
        evaluate(benchmark, server.url, out)
    assert no_network == []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


@pytest.mark.parametrize(("allow", "code"), [(False, 3), (True, 0)])
def test_blank_replies_are_said_loudly_unless_they_are_allowed(
    tmp_path: Path, allow: bool, code: int
) -> None:
    """A model whose replies are blank has a score of nothing: exit code 3, with the reason."""
    from snellen.cli.run import _reasons

    folder = small_benchmark(tmp_path / "data", images=4, questions=8)

    def script(body: Body) -> str:
        return "" if picture_uris(body) else answer(body)

    with serve(script) as server:
        done = evaluate(folder, server.url, tmp_path / "out", allow_blank=allow)
    assert done.exit_code == code
    assert done.summary.counts.scored_by_reason["empty"] == 8
    if code:
        [reason] = _reasons(done)
        assert "8 of 8 probes stand on blank replies (empty 8)" in reason
        assert "--allow-blank" in reason
