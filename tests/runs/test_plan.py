"""What a run's model and judge are bound to: which key and which parameters go where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snellen.endpoints.http import ChatClient
from snellen.runs.plan import make_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import Plan

HERE, THERE = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"


def planned(folder: Path, **words: Any) -> Plan:
    """The plan of a run of two endpoints."""
    usual = {"model": "m", "api_url": HERE, "judge": "j", "cache": False}
    return make_plan(RunRequest("mini-reading", folder / "run", **(usual | words)))


def key_of(plan: Plan, role: str) -> str:
    """The key that goes with the calls of a role."""
    client = plan.bindings[role].caller
    assert isinstance(client, ChatClient)
    return client.endpoint.key


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({}, "secret"),
        ({"judge_url": THERE}, ""),
        ({"judge_url": THERE, "judge_key": "other"}, "other"),
        ({"judge_key": "other"}, "other"),
    ],
)
def test_the_models_key_goes_to_no_other_address(
    words: dict[str, Any], key: str, tmp_path: Path
) -> None:
    """A judge at the model's address shares its key; one elsewhere has its own or none."""
    plan = planned(tmp_path, api_key="secret", **words)
    assert (key_of(plan, "model"), key_of(plan, "judge")) == ("secret", key)


def test_the_models_variable_goes_to_no_other_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for a key that a variable holds."""
    monkeypatch.setenv("MODEL_KEY", "secret")
    assert key_of(planned(tmp_path, api_key_env="MODEL_KEY"), "judge") == "secret"
    apart = planned(tmp_path, api_key_env="MODEL_KEY", judge_url=THERE)
    assert key_of(apart, "judge") == ""


def test_what_is_said_wins_over_a_file_and_a_file_over_the_protocol(tmp_path: Path) -> None:
    """A judge's parameters: the protocol's, then those of snellen.toml, then the request's."""
    file = tmp_path / "snellen.toml"
    file.write_text("[models.j.params]\ntemperature = 0.3\ntop_p = 0.5\n", encoding="utf-8")
    usual = planned(tmp_path).judge.params
    assert usual["temperature"] == 0
    kept = planned(tmp_path, config=file).judge.params
    assert (kept["temperature"], kept["top_p"]) == (0.3, 0.5)
    said = planned(tmp_path, config=file, judge_params={"temperature": 0.7}).judge.params
    assert (said["temperature"], said["max_tokens"]) == (0.7, usual["max_tokens"])


def test_a_judge_gets_one_token_limit(tmp_path: Path) -> None:
    """Servers that know the newer name refuse both."""
    params = planned(tmp_path, judge_params={"max_completion_tokens": 99}).judge.params
    assert params["max_completion_tokens"] == 99
    assert "max_tokens" not in params
