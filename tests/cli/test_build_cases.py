"""`snellen build capprobe` as it is typed, with generators, budgets and pictures that are odd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fakes.server import Behaviour, Body, FakeServer
from tests.worlds.capprobe_world import MODELS, alpha, answer, paint

from snellen.cli import cli

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "build_cases.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
CONFIG = """
[roles.describer]
model = "describer"
url = "{url}"
price_in_usd = 1000
price_out_usd = 1000
params = {{max_tokens = 600}}
[roles.questioner]
model = "alpha"
url = "{url}"
price_in_usd = 1000
price_out_usd = 1000
params = {{max_tokens = 600}}
[select]
labels = "none"
[segment]
max_regions = 2
"""
Entry = dict[str, Any]
Generator = Callable[[list[Entry]], str]


@dataclass
class Endpoint:
    """An endpoint whose generator may be replaced, and how many calls it has had."""

    config: Path
    generator: Generator | None = None
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    folder = tmp_path_factory.mktemp("served")
    end = Endpoint(folder / "build.toml")

    def said(body: Body) -> str:
        end.asked.append(body["model"])
        if body["model"] == "alpha" and end.generator is not None:
            messages = [one for one in body["messages"] if one["role"] == "user"][:1]
            return end.generator(json.loads(alpha(messages))["qas"])
        return answer(body)

    with FakeServer(said, Behaviour(models=tuple(MODELS))) as fake:
        end.config.write_text(CONFIG.format(url=fake.url), encoding="utf-8")
        yield end


def typed(end: Endpoint, source: Path, out: Path, *words: str) -> Result:
    line = ["build", "capprobe", str(source), "--config", str(end.config), "--out", str(out)]
    return CliRunner().invoke(cli, [*line, "--quiet", *words], standalone_mode=False)


def sheet(qas: list[Any]) -> str:
    return json.dumps({"qas": qas})


def always_b(qas: list[Entry]) -> str:
    for one in qas:
        right, other, *rest = (option.partition(". ")[2] for option in one["options"])
        one["options"] = [other, right, *rest]
        one["correct_answer"] = "B"
    return sheet(qas)


def first(qas: list[Entry], **changes: Any) -> str:
    """The questions with other fields in the first one."""
    return sheet([{**qas[0], **changes}, *qas[1:]])


GENERATORS: dict[str, Generator] = {
    "always_b": always_b,
    "both_a_and_b": lambda q: first(q, options=[*q[0]["options"][:3], "D. Both A and B"]),
    "cut_in_fence": lambda q: f"```json\n{sheet(q)[:400]}",
    "blank": lambda q: "",
    "same_text_twice": lambda q: sheet([q[0], {**q[1], "question": q[0]["question"]}, *q[2:]]),
    "right_equals_other": lambda q: first(
        q, options=[q[0]["options"][0], "B." + q[0]["options"][0][2:], *q[0]["options"][2:]]
    ),
    "prose": lambda q: "I see a picture with several areas, and like all of them.",
    "half": lambda q: sheet(q)[:300],
    "fences": lambda q: f"```json\n{sheet(q)}\n```",
    "repeats_itself": lambda q: sheet(q * 2),
    "three_options": lambda q: first(q, options=q[0]["options"][:3]),
    "letter_e": lambda q: first(q, correct_answer="E"),
    "unknown_category": lambda q: first(q, category="Feelings"),
    "jargon": lambda q: first(q, question="What colour is the masked region at the top left?"),
    "bare_reference": lambda q: first(q, question="What colour is the dog?"),
    "entry_is_text": lambda q: sheet(["What colour is it?", *q[1:]]),
    "bare_list": json.dumps,
    "thoughts": lambda q: f"<think>Five questions, then.</think>\n{sheet(q)}",
    "no_questions": lambda q: sheet([]),
    "distractors_alike": lambda q: first(q, options=[*q[0]["options"][:3], q[0]["options"][2]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['generator']}")
def test_odd_generators_are_handled_and_counted(
    tmp_path: Path, server: Endpoint, case: dict[str, Any]
) -> None:
    """Each reply gives the questions and the rejections that it should, a region."""
    server.generator = GENERATORS[case["generator"]]
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    result = typed(server, source, out, "--until", "question", "--json")
    server.generator = None
    record = json.loads(result.stdout)[-1]
    n_regions = json.loads(result.stdout)[1]["made"]
    assert result.return_value == case["exit"], result.stderr
    assert n_regions > 0
    assert record["made"] == case["made"] * n_regions
    assert record["reasons"] == {name: n * n_regions for name, n in case["reasons"].items()}
    assert record["in"] == record["kept"] + record["rejected"]
    gone = (out / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    mine = [json.loads(line) for line in gone if json.loads(line)["stage"] == "question"]
    assert len(mine) == sum(record["reasons"].values())
    lines = (out / "stages" / "04-question.jsonl").read_text(encoding="utf-8").splitlines()
    letters = [json.loads(line)["answer"] for line in lines]
    if case["made"] == 5:
        assert set(letters) == set("ABCD")
        counts = [letters.count(letter) for letter in "ABCD"]
        assert max(counts) - min(counts) <= n_regions


@pytest.mark.slow
def test_no_region_and_seven_hundred_are_both_in_the_funnel(
    tmp_path: Path, server: Endpoint
) -> None:
    """A picture without a box is listed; of 700 boxes the cap keeps two, and names the others."""
    source = paint(tmp_path / "in", 1, 2)
    boxes = [[3 * (k % 100), 8 * (k // 100), 18, 14] for k in range(700)]
    found = {
        "images": [{"id": 1, "file_name": "001.png"}, {"id": 2, "file_name": "002.png"}],
        "annotations": [{"id": k, "image_id": 2, "bbox": box} for k, box in enumerate(boxes)],
    }
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    own = tmp_path / "build.toml"
    more = f'source = "boxes"\nmax_overlap = 1.0\nannotations = "{path}"\n'
    own.write_text(server.config.read_text(encoding="utf-8") + more, encoding="utf-8")
    end = Endpoint(own)
    result = typed(end, source, tmp_path / "out", "--until", "segment", "--json")
    record = json.loads(result.stdout)[-1]
    assert (record["in"], record["kept"], record["made"]) == (2, 1, 2)
    assert record["reasons"] == {"no_region": 1, "over_region_cap": 698}


@pytest.mark.slow
def test_a_budget_stops_a_build_and_what_was_paid_for_is_kept(
    tmp_path: Path, server: Endpoint
) -> None:
    """The limit ends the build with a resume line; a higher one goes on and repeats no call."""
    source, out = paint(tmp_path / "in", 1, 2, 3, 4), tmp_path / "out"
    server.asked.clear()
    stopped = typed(server, source, out, "--max-cost", "15", "--concurrency", "1")
    assert stopped.return_value != 0
    assert "resume with: " in stopped.stderr
    n_first = len(server.asked)
    paid = (out / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 < n_first == len(paid)
    assert not (out / "benchmark").exists()
    done = typed(server, source, out, "--max-cost", "500", "--concurrency", "1")
    assert done.return_value == 0, done.stderr
    server_calls = len(server.asked)
    whole = tmp_path / "whole"
    typed(server, source, whole)
    assert server_calls == len(server.asked) - server_calls
    for path in (whole / "stages").iterdir():
        assert path.read_bytes() == (out / "stages" / path.name).read_bytes()


def test_a_dry_run_writes_nothing(tmp_path: Path, server: Endpoint) -> None:
    """Calls and tokens are printed; no folder appears, and nobody is asked."""
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    before = sorted(path for path in tmp_path.rglob("*"))
    server.asked.clear()
    result = typed(server, source, out, "--dry-run", "--json")
    assert result.return_value == 0
    roles = {row["role"]: row["calls"] for row in json.loads(result.stdout) if row["role"]}
    assert set(roles) == {"describer", "questioner"}
    assert min(roles.values()) > 0
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert server.asked == []
