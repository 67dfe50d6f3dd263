"""Snellen inside other people's programs: scripts, notebooks, processes, signals."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snellen
from snellen import errors
from snellen.endpoints import bind

JUDGED = "Judgement: True"


def judge(_messages: Any) -> str:
    return JUDGED


def two(**words: Any) -> snellen.Run:
    """A run of two items."""
    return snellen.run(**{"benchmark": "mini-direct", "judge": judge, "limit": 2, **words})


@pytest.fixture
def handlers() -> Iterator[list[Any]]:
    """Handlers of the program around, which are there again after the test."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    own = [lambda *_: None, lambda *_: None]
    for number, handler in zip(numbers, own, strict=True):
        signal.signal(number, handler)
    yield own
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def now_handling() -> list[Any]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_a_run_gives_signals_back_to_who_handled_them(handlers: list[Any]) -> None:
    """A program's own handlers of Ctrl-C and of a request to end are as they were after a run."""
    seen: list[Any] = []

    def model(_messages: Any) -> str:
        seen.extend(now_handling())
        return "two"

    two(model=model)
    assert now_handling() == handlers
    assert not set(seen) & set(handlers)


def test_runs_at_once_give_signals_back_at_the_last_end(handlers: list[Any]) -> None:
    """Two runs of one loop leave no handler of theirs, whichever ends first."""

    async def both() -> None:
        words = {"model": judge, "judge": judge}
        short = snellen.run_async("mini-direct", limit=1, **words)
        await asyncio.gather(snellen.run_async("mini-direct", **words), short)
        assert now_handling()[1] is handlers[1]

    asyncio.run(both())
    assert now_handling() == handlers


def interrupted_by(number: signal.Signals) -> Callable[[Any], Any]:
    """A model that sends its own process a signal at the first call."""
    asked: list[int] = []

    async def model(_messages: Any) -> str:
        asked.append(1)
        if len(asked) == 1:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.02)
        return "two"

    return model


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("has_own_handler", [True, False])
def test_an_interrupt_ends_the_script_and_not_only_the_run(
    number: signal.Signals, has_own_handler: bool, tmp_path: Path
) -> None:
    """Ctrl-C in `run` raises KeyboardInterrupt; the same call goes on where it stopped."""
    told: list[int] = []
    before = signal.getsignal(number)
    if has_own_handler:
        signal.signal(number, lambda n, _frame: told.append(n))
    elif number is signal.SIGTERM:
        signal.signal(number, signal.default_int_handler)
    words = {"model": interrupted_by(number), "out": tmp_path / "run", "concurrency": 1}
    try:
        with pytest.raises(KeyboardInterrupt):
            two(**words, limit=5)
    finally:
        signal.signal(number, before)
    assert told == [number] * has_own_handler
    done = two(**words, limit=5)
    assert done.summary is not None
    assert done.summary.counts.scored == 5


@pytest.mark.slow
def test_an_interrupt_ends_all_runs_of_a_loop_in_good_order(tmp_path: Path) -> None:
    """Ctrl-C while several runs are under way ends each, and then the program around them."""

    async def both() -> None:
        model = interrupted_by(signal.SIGINT)
        words = {"model": model, "judge": judge, "concurrency": 1}
        outs = [tmp_path / "a", tmp_path / "b"]
        await asyncio.gather(*(snellen.run_async("mini-direct", out=o, **words) for o in outs))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(both())
    for name in ("a", "b"):
        summary = snellen.load_run(tmp_path / name).summary
        assert summary is not None
        assert summary.status == "incomplete"


def test_a_run_in_a_thread_leaves_signals_alone() -> None:
    """A thread that is not the main one may run too."""
    before, found = now_handling(), []
    thread = threading.Thread(target=lambda: found.append(two(model=judge)))
    thread.start()
    thread.join()
    assert len(found[0].verdicts) == 2
    assert now_handling() == before


@pytest.mark.parametrize("call", [snellen.run, snellen.score_captions])
def test_a_notebook_is_told_of_the_async_twin(call: Callable[..., Any]) -> None:
    """Where a loop is running, `run` says what to write instead, and leaves no coroutine behind."""

    async def cell() -> None:
        if call is snellen.run:
            call("mini-direct", model=judge, judge=judge)
        else:
            call({}, benchmark="mini-reading", judge=judge)

    with pytest.raises(errors.UsageError) as caught:
        asyncio.run(cell())
    assert "_async" in caught.value.hint


def used_up() -> Callable[[Any], str]:
    replies = iter(["two"])
    return lambda _messages: next(replies)


def test_a_model_that_runs_out_of_replies_ends_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`next` of an iterator that is used up is a failed call, and no wait without end."""
    run = two(model=used_up(), max_tries=1)
    assert run.summary is not None
    assert (run.summary.counts.scored, run.summary.counts.unscored) == (1, 1)
    assert "no more replies" in caplog.text


def test_why_calls_failed_is_told_to_the_logger(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A function's own words of its failure reach the log, and nothing reaches stdout."""

    def model(messages: Any) -> str:
        raise MemoryError("no room for 3 tiles")

    with caplog.at_level(logging.WARNING, logger="snellen"):
        two(model=model, max_tries=1)
    assert "2 model calls failed" in caplog.text
    assert "no room for 3 tiles" in caplog.text
    assert not capsys.readouterr().out


def test_a_text_out_of_an_array_is_a_reply() -> None:
    """Texts of numpy are written as plain ones, from functions and as given replies."""
    run = two(model=lambda _messages: np.array(["two"])[0])
    assert {row.reply for row in run.replies.values()} == {"two"}
    given = dict(zip(["cat"], np.array(["A cat."]), strict=True))
    scored = snellen.score_captions(given, benchmark="mini-reading", judge=lambda _m: "A")
    assert scored.replies["cat", 0].reply == "A cat."


def test_a_missing_caption_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """None among given replies is what null is in a file; anything else that is no text is not."""
    captions: dict[str, Any] = {"cat": "A cat.", "coffee": None}
    run = snellen.score_captions(captions, benchmark="mini-reading", judge=lambda _m: "A")
    assert run.replies["coffee", 0].failure == "no_reply"
    assert "'coffee'" in caplog.text
    for odd in (float("nan"), b"A cat.", ["A cat."]):
        with pytest.raises(errors.UsageError, match="coffee"):
            snellen.score_captions(
                {**captions, "coffee": odd}, benchmark="mini-reading", judge=judge
            )


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("repeat", 0), ("repeat", 1.5), ("limit", 0), ("limit", "3"), ("sample", 0),
        ("concurrency", 0), ("max_tries", 0), ("reasks", -1), ("max_pixels", 0), ("seed", "x"),
        ("seed", None), ("on_bad_row", "drop"), ("source", "x"), ("hint", "maybe"),
        ("params", "temperature"), ("limit_per_subset", -1), ("min_valid", 0),
        ("questions_a_call", 0), ("benchmark", None), ("benchmark", {"name": "mini-direct"}),
    ],
)  # fmt: skip
def test_a_value_that_a_command_refuses_is_refused(word: str, value: Any, tmp_path: Path) -> None:
    """A bad word is named in one line, with a hint, before a folder is made."""
    with pytest.raises(errors.UsageError, match=word.replace("_", "[_ -]")) as caught:
        two(**{"model": judge, "out": tmp_path / "run", word: value})
    assert caught.value.hint
    assert not (tmp_path / "run").exists()


def test_a_word_with_a_slip_is_named_with_the_nearest() -> None:
    """A word that no run has is not taken for another protocol's."""
    with pytest.raises(errors.UsageError, match="`repeats`") as caught:
        two(model=judge, repeats=3)
    assert "`repeat`" in caught.value.hint


def test_numbers_of_numpy_are_numbers() -> None:
    """A limit and a seed out of an array serve as Python's own do."""
    run = two(model=judge, limit=np.int64(1), seed=np.int64(3))
    assert len(run.items) == 1
    assert run.spec.seed == 3


@pytest.mark.parametrize(
    "error",
    [
        errors.SnellenError("m", hint="h"),
        errors.DataError("m", file="f", row=2, field="x", hint="h"),
        errors.ImageError("m", file="f"),
        errors.MissingExtraError("datasets", "hub"),
        errors.EndpointError("m", kind="auth", hint="h"),
    ],
)
def test_errors_pass_between_processes(error: errors.SnellenError) -> None:
    """Every error comes out of a pickle as it went in: else a pool waits for it without end."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_run_is_one_line_and_pickles_whole() -> None:
    """What a notebook shows of a run is short; what a process sends of it is all of it."""
    run = two(model=judge)
    assert len(repr(run)) < 400
    assert "mini-direct" in repr(run)
    assert "\n" not in repr(run)
    assert pickle.loads(pickle.dumps(run)) == run


@pytest.mark.parametrize(("given", "threads"), [("", "1"), ("3", "3")])
def test_commands_add_up_in_one_thread(given: str, threads: str) -> None:
    """Every command, not `run` alone, keeps numpy to one thread unless the user says otherwise."""
    script = (
        "import os, sys; from snellen.__main__ import main; assert 'numpy' not in sys.modules\n"
        "try: main()\nexcept SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    kept = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    env = kept | ({"OPENBLAS_NUM_THREADS": given} if given else {})
    line = [sys.executable, "-c", script, "compare", "nowhere"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [threads]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"resamples": 0}, "resamples"), ({"seed": -1}, "seed"), ({"seed": "x"}, "seed"),
        ({"level": 95}, "level"), ({"level": 0}, "level"), ({"metrics": "zz"}, "`zz`"),
        ({"across": "zz"}, "`zz`"), ({"runs": "folder"}, "list"), ({"runs": [None, None]}, "None"),
    ],
)  # fmt: skip
def test_comparing_refuses_what_it_cannot_do(words: dict[str, Any], said: str) -> None:
    """A bad word of `compare` is named with a hint; one name is no list of letters."""
    run = two(model=judge)
    with pytest.raises(errors.UsageError, match=said) as caught:
        snellen.compare(**{"runs": [run, run], **words})
    assert caught.value.hint


def test_comparing_takes_one_metric_by_its_name() -> None:
    """A metric alone needs no list around it."""
    run = two(model=judge)
    assert [m.name for m in snellen.compare([run, run], metrics="accuracy").metrics] == ["accuracy"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork where there is fork")
def test_a_forked_process_has_an_embedded_judge_of_its_own() -> None:
    """The judge of a forked process is not its parent's, whose threads it has not got."""
    here = bind.embedded_judge()
    assert bind.embedded_judge() is here
    child = os.fork()
    if not child:
        os._exit(int(bind.embedded_judge() is here))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
