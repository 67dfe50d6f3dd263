"""Deduplication with an embeddings endpoint: its calls are kept, and broken vectors are errors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.worlds.capprobe_world import PLAYERS, config, construct, paint

from snellen.builders.options import DedupOptions
from snellen.construction.embeddings import EmbeddingsCaller, ask_embeddings, packed, unpacked
from snellen.flows import run_by_hand
from snellen.records import CallFailure, Message, Reply, Request
from snellen.settings import Endpoint


class Client:
    """An endpoint that embeds a text as its length and its number of vowels."""

    endpoint = Endpoint("e", "http://127.0.0.1:1/v1", "e")

    async def embeddings(self, texts: list[str]) -> Any:
        return np.array([[len(t), sum(c in "aeiou" for c in t)] for t in texts], np.float32)

    async def close(self) -> None:
        """Has nothing to close."""


def test_texts_go_out_in_parts_and_come_back_in_order() -> None:
    """64 texts a call; the vectors are those of the texts, in their order."""
    texts = [f"text {'a' * k}" for k in range(130)]
    caller = EmbeddingsCaller(Client())  # type: ignore[arg-type]
    asked: list[int] = []

    def answer(request: Request) -> Any:
        asked.append(len(request.messages[0].parts))
        return asyncio.run(caller.call(request))

    found = run_by_hand(ask_embeddings(texts, role="e"), answer)
    assert asked == [64, 64, 2]
    assert not isinstance(found, CallFailure)
    assert np.concatenate(found)[:, 0].tolist() == [len(text) for text in texts]


def test_vectors_survive_the_journal() -> None:
    """A packed array is the same when it is unpacked."""
    vectors = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    assert (unpacked(packed(vectors)) == vectors).all()


def test_a_failed_call_is_a_failure() -> None:
    """Where one part fails there is no array at all."""
    failure = CallFailure("timeout", "late")
    assert run_by_hand(ask_embeddings(["a"], role="e"), lambda _: failure) is failure
    assert isinstance(Request("e", (Message("user", ("a",)),), "embed"), Request)


@pytest.mark.parametrize(
    ("bad", "complaint"), [(0.0, "is zero"), (np.nan, "not finite"), (np.inf, "not finite")]
)
def test_a_broken_vector_stops_the_build(tmp_path: Path, bad: float, complaint: str) -> None:
    """Zero or no number: the question is named, nothing is removed, and the exit code is 1."""

    def qwen(messages: Any) -> Reply:
        # Two generators write five questions about each of three regions.
        vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
        vectors[1] = bad
        return Reply(packed(vectors))

    built = construct(
        paint(tmp_path / "in", 1), tmp_path / "out", until="dedup",
        config=config(dedup=DedupOptions(embeddings="qwen")), players={**PLAYERS, "qwen": qwen},
    )  # fmt: skip
    assert built.exit_code == 1
    assert built.error is not None
    assert complaint in built.error.message
    assert built.funnel[-1].stage == "question"
