"""Rewards over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.worlds.engine_world import JUDGE, serve, small_benchmark

from snellen.rewards import Scorer
from snellen.rewards.serving import reward_app
from snellen.web.guard import Access

REPLY = "A red bus under a tree."


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture
def client(benchmark: Path):
    with serve() as server:
        scorer = Scorer(str(benchmark), JUDGE, judge_url=server.url, unscored=0.0)
        found = TestClient(reward_app(scorer, Access()), base_url="http://127.0.0.1")
        found.item = scorer.benchmark.items[0].id
        [found.score] = scorer.score_now([REPLY], [found.item])
        yield found


def test_the_bodies_of_both_trainers_are_answered(client) -> None:
    """OpenRLHF gets lists, slime a number, on whatever path."""
    batch = {"query": ["Q " + REPLY] * 2, "prompts": ["Q "] * 2, "labels": [client.item] * 2}
    answer = client.post("/get_reward", json=batch).json()
    assert answer["rewards"] == [client.score.value] * 2
    one = {"prompt": "Q", "response": REPLY, "label": client.item}
    assert client.post("/", json=one).json() == client.score.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "query"),
        ({"query": ["a"], "prompts": [], "labels": []}, "1 queries, 0 prompts"),
        ({"response": "a", "label": "nobody"}, "nobody"),
        ([], "object"),
    ],
)
def test_a_wrong_body_is_refused_with_its_reason(client, body: object, said: str) -> None:
    answer = client.post("/", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["error"]
    assert client.post("/", content=b"{").status_code == 422


def test_strangers_and_web_pages_are_refused(client, benchmark: Path) -> None:
    one = {"prompt": "Q", "response": REPLY, "label": client.item}
    assert client.post("/", json=one, headers={"host": "evil.example"}).status_code == 421
    assert client.post("/", json=one, headers={"origin": "http://evil.example"}).status_code == 403
    guarded = TestClient(
        reward_app(Scorer(str(benchmark), "embedded", unscored=0.0), Access("s3cret")),
        base_url="http://127.0.0.1",
    )
    assert guarded.post("/", json=one).status_code == 401
    assert guarded.post("/?token=s3cret", json=one).status_code == 200


def test_a_judge_that_is_away_is_503_and_no_reward(benchmark: Path) -> None:
    scorer = Scorer(
        str(benchmark), JUDGE, judge_url="http://127.0.0.1:9/v1", unscored=0.0, max_tries=1,
        patience=0,
    )  # fmt: skip
    found = TestClient(reward_app(scorer, Access()), base_url="http://127.0.0.1")
    one = {"prompt": "Q", "response": REPLY, "label": scorer.benchmark.items[0].id}
    answer = found.post("/", json=one)
    assert answer.status_code == 503
    assert "hint" in answer.json()
