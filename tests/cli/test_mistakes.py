"""Typical mistakes on the command line and in snellen.toml: the cause, and the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.engine_world import JUDGE, MODEL, chats, command, serve, small_benchmark, type_in

from snellen.cli import cli
from snellen.errors import SnellenError
from snellen.readers import load_benchmark
from snellen.readers.mini import MINI
from snellen.runs.folder import load_run
from snellen.settings import load_settings

HERE = "http://127.0.0.1:1/v1"
KEY = "sk-CANARY93b1CANARY"


def refused(*words: str) -> SnellenError:
    """The error of a command that is started in this process."""
    done = CliRunner().invoke(cli, list(words))
    assert isinstance(done.exception, SnellenError), done.output
    return done.exception


def running(*words: str) -> list[str]:
    return ["run", "mini-reading", "--judge", "embedded", *words]


@pytest.mark.parametrize(
    ("words", "cause", "way_out"),
    [
        (["run", "--model", "m"], "no benchmark", "snellen run mini-reading"),
        (running(), "no model given", "--model NAME --api-url URL"),
        (["run", "mini-reading", "--model", "m"], "no judge given", "--judge embedded"),
        (running("--model", "m"), "no URL for `m`", "--api-url URL"),
        (running("--model", "q2.5"), "no URL for `q2.5`", '[models."q2.5"]'),
        (["run", "mini-redaing", "--model", "m", "--judge", "embedded"], "mini-redaing",
         "did you mean `mini-reading`?"),
        (running("--model", "m", "--api-url", HERE, "--api-key-env", KEY),
         "a key was given where the name of a variable", "export MY_KEY"),
        (running("--model", "m", "--api-url", HERE, "--param", f"api_key={KEY}"),
         "the body field `api_key`", "--api-key-env VAR"),
        (running("--model", "m", "--api-url", HERE, "--temperature", "1", "--param",
                 "temperature=0"), "temperature is given twice", "--temperature is enough"),
        (running("--model", "m", "--api-url", HERE, "--control", "no-image"),
         "no control `no-image`", "--control blind"),
        (["eval", "mini-reading", "--dataset-args", '{"other": {}}'], "speaks of other",
         "name the benchmark"),
        (["eval", "--datasets", "mini-reading", "--dataset-args",
          '{"mini-reading": {"local_path": "x"}}'], "`local_path` has an option", "--data PATH"),
        (["eval", "mini-reading", "--dataset-args", "{subset_list: 3}"], "is no JSON",
         "single quotes"),
        (["eval", "mini-reading", "--generation-config", '{"n": 4}'], "`n` has an option",
         "--repeat K"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line(
    words: list[str], cause: str, way_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what was found, the hint what to type; a key is not repeated."""
    monkeypatch.chdir(tmp_path)
    error = refused(*words)
    assert cause in error.message
    assert way_out in error.hint
    assert "CANARY" not in error.message + error.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "cause", "way_out"),
    [
        ('[models.qwen2.5-vl]\nurl = "u"', "a dot divides a name", '[models."qwen2.5-vl"]'),
        ('[models.m]\napi_key = "k"', "no key stands in this file", 'key_env = "MY_KEY"'),
        ("[models.m]\ntemperature = 0", "a parameter of the request", "[models.m.params]"),
        ('[models.m]\nbase_url = "u"', "unknown key `base_url`", "did you mean `url`?"),
        ("cache = 1", "`cache` is 1", "cache = true"),
        ("[model.m]", "unknown key `model`", "did you mean `models`?"),
    ],
)
def test_a_mistake_in_the_settings(tmp_path: Path, text: str, cause: str, way_out: str) -> None:
    """The file and the table are named, and how the line should read."""
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SnellenError) as caught:
        load_settings(file)
    assert cause in caught.value.message
    assert "mine.toml" in caught.value.message
    assert way_out in caught.value.hint


def test_init_writes_settings_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is, and with every line that is commented out; a file that exists is left alone."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init"]).exit_code == 0
    assert load_settings().models["my-model"].url
    assert "exists" in refused("init").message
    file = tmp_path / "snellen.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    whole = [line.removeprefix("# ") if " = " in line or "# [" in line else line for line in lines]
    file.write_text("\n".join(whole), encoding="utf-8")
    model = load_settings().models["my-model"]
    assert (model.model, model.params["max_tokens"]) == ("served-name", 4096)


@pytest.mark.slow
def test_usual_names_of_parameters_are_sent(tmp_path: Path) -> None:
    """Temperature, token limit, top_p and system message of model and judge arrive and are kept."""
    benchmark = small_benchmark(tmp_path / "data", images=1, questions=2)
    for name in ("eye", "mind"):
        (tmp_path / f"{name}.txt").write_text(f"You are {name}.", encoding="utf-8")
    words = [
        "--temperature", "0.7", "--max-tokens", "99", "--top-p", "0.5",
        "--system", str(tmp_path / "eye.txt"), "--judge-temperature", "0.1",
        "--judge-max-tokens", "7", "--judge-system", str(tmp_path / "mind.txt"),
    ]  # fmt: skip
    with serve() as server:
        assert type_in(command(benchmark, server.url, tmp_path / "run", *words)).returncode == 0
        [model], judge = chats(server, "model"), chats(server, "judge")[0]
    assert (model["temperature"], model["max_tokens"], model["top_p"]) == (0.7, 99, 0.5)
    assert (judge["temperature"], judge["max_tokens"]) == (0.1, 7)
    assert model["messages"][0] == {"role": "system", "content": "You are eye."}
    assert judge["messages"][0] == {"role": "system", "content": "You are mind."}
    spec = load_run(tmp_path / "run").spec
    assert spec.prompts["reply_system"].text == "You are eye."
    assert spec.prompts["verdict_system"].text == "You are mind."


@pytest.mark.slow
def test_evalscopes_options_are_understood(tmp_path: Path) -> None:
    """Subsets, parameters and the batch size of an EvalScope command have their effect."""
    data = MINI / "direct"
    subset = json.dumps({str(data): {"subset_list": ["visual_counting_error"]}})
    with serve(lambda body: "[judge] True") as server:
        line = command(data, server.url, tmp_path / "run", "--dataset-args", subset,
                       "--generation-config", "temperature=0.3,max_tokens=50",
                       "--eval-batch-size", "2", "--allow-outside", str(MINI))  # fmt: skip
        line[line.index("run")] = "eval"
        done = type_in(line)
        body = chats(server)[0]
    assert done.returncode == 0, done.stderr
    assert (body["temperature"], body["max_tokens"]) == (0.3, 50)
    items = load_run(tmp_path / "run").items
    assert 0 < len(items) < len(load_benchmark("mini-direct").items)


@pytest.mark.slow
def test_address_and_key_of_the_environment_are_taken_and_told(tmp_path: Path) -> None:
    """OPENAI_BASE_URL and its key serve where nothing else is given; the key goes no further."""
    benchmark = small_benchmark(tmp_path / "data", images=1, questions=1)
    with serve(key=KEY) as ours, serve() as other:
        variables = {"OPENAI_BASE_URL": ours.url, "OPENAI_API_KEY": KEY}
        line = ["-m", "snellen", "run", str(benchmark), "--model", MODEL, "--judge", JUDGE]
        line = [*command(benchmark, ours.url, tmp_path)[:1], *line, "--judge-url", other.url,
                "--out", str(tmp_path / "run")]  # fmt: skip
        done = type_in(line, **variables)
        assert not any(KEY in " ".join(seen.headers.values()) for seen in other.requests)
    assert done.returncode == 0, done.stderr
    assert f"OPENAI_BASE_URL and OPENAI_API_KEY of the environment used for {MODEL}" in done.stderr
    assert KEY not in done.stdout + done.stderr
