"""Keys, addresses and seeds are the same everywhere and differ where answers could."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.worlds.engine_world import environment

from snellen.keys import (
    digest,
    digest_of,
    digest_of_set,
    rng_for,
    seed_for,
)
from snellen.records import Image, Message, ReadTask, Request, address, request_key

IMAGE = Image("a.png", "d1", "/here/a.png")
REQUEST = Request(
    "model", (Message("system", ("Be brief.",)), Message("user", (IMAGE, "What is it?"))), "reply"
)


def key(request: Request = REQUEST, **more: Any) -> str:
    words: dict[str, Any] = {"model": "m", "params": {"temperature": 0, "seed": 1}, "prep": "p"}
    return request_key(request, **{**words, **more})


OTHERS = {
    "another model": key(model="n"),
    "another parameter": key(params={"temperature": 1, "seed": 1}),
    "a parameter less": key(params={"temperature": 0}),
    "another preparation": key(prep="q"),
    "another repeat": key(repeat=1),
    "another ask": key(replace(REQUEST, ask=1)),
    "a schema": key(replace(REQUEST, schema={"type": "object"})),
    "a choice": key(replace(REQUEST, schema=("A", "B"))),
    "another system prompt": key(
        replace(REQUEST, messages=(Message("system", ("Be long.",)), REQUEST.messages[1]))
    ),
    "another role of a message": key(
        replace(REQUEST, messages=(Message("user", ("Be brief.",)), REQUEST.messages[1]))
    ),
    "another picture": key(
        replace(
            REQUEST,
            messages=(
                REQUEST.messages[0],
                Message("user", (replace(IMAGE, digest="d2"), "What is it?")),
            ),
        )
    ),
    "picture and text in another order": key(
        replace(REQUEST, messages=(REQUEST.messages[0], Message("user", ("What is it?", IMAGE))))
    ),
    "a text in two parts": key(
        replace(
            REQUEST,
            messages=(REQUEST.messages[0], Message("user", (IMAGE, "What ", "is it?"))),
        )
    ),
    "a text that spells two": key(
        replace(
            REQUEST,
            messages=(REQUEST.messages[0], Message("user", (IMAGE, "What \x02is it?"))),
        )
    ),
    "a text that spells a picture": key(
        replace(REQUEST, messages=(REQUEST.messages[0], Message("user", ("\x01d1What is it?",))))
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_shapes_an_answer_is_in_the_key(name: str) -> None:
    """One change, another key; and no two changes give the same."""
    assert OTHERS[name] != key()
    assert len(set(OTHERS.values())) == len(OTHERS)


def test_what_shapes_no_answer_is_not_in_the_key() -> None:
    """The path of a picture, the order of parameters, the structured task, the lead."""
    moved = replace(
        REQUEST,
        messages=(
            REQUEST.messages[0],
            Message("user", (Image("b", "d1", "/there/b.png", 3, 9), "What is it?")),
        ),
        lead="x",
        task=ReadTask("c", "q", ("a", "b")),
    )
    assert key(moved) == key()
    assert key(params={"seed": 1, "temperature": 0}) == key()


def test_half_a_surrogate_pair_has_a_key() -> None:
    """Text that is no text must not end a run."""
    assert key(replace(REQUEST, messages=(Message("user", ("\ud800",)),))) != key()


def test_an_address_is_unique_within_a_run() -> None:
    """Item, repeat, purpose, probe and ask, none of which can run into the next."""
    judge = Request("judge", (), "verdict", probe="q1")
    found = {
        address("a", 0, judge),
        address("a", 1, judge),
        address("b", 0, judge),
        address("a", 0, replace(judge, ask=1)),
        address("a", 0, replace(judge, probe="q")),
        address("a", 0, replace(judge, purpose="v", probe="erdictq1")),
    }
    assert len(found) == 6


def test_digests_do_not_hang_on_order_where_they_promise_so() -> None:
    """Sorted keys, sets of digests."""
    assert digest_of({"a": 1, "b": [2, 3]}) == digest_of({"b": [2, 3], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})
    assert digest_of_set(["x", "y"]) == digest_of_set(["y", "x"]) != digest_of_set(["x"])
    assert digest("é") == digest("é".encode())


def test_seeds_and_keys_are_the_same_in_another_process() -> None:
    """Python's own hashes change from process to process; these do not."""
    code = (
        "from snellen.keys import *; from snellen.records import *;"
        "r = Request('judge', (Message('user', ('Hm',)),), 'verdict');"
        "print(seed_for(3, 'a', 'b'), request_key(r, model='m', params={'x': 1}))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8",
            env=environment(PYTHONHASHSEED=seed), check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert printed[0] == printed[1]
    assert printed[0].split()[0] == str(seed_for(3, "a", "b"))


def test_a_seed_is_one_purposes_own() -> None:
    """Names cannot run into each other, and each gives another stream."""
    assert len({seed_for(0, "ab", "c"), seed_for(0, "a", "bc"), seed_for(1, "ab", "c")}) == 3
    first, again = rng_for(0, "x").random(4), rng_for(0, "x").random(4)
    assert (first == again).all()
    assert (first != rng_for(0, "y").random(4)).any()
